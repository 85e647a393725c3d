//! A run goes on with worker processes that has begun without, and the other way.

use tempfile::TempDir;

use super::*;

#[test]
fn a_run_moves_to_workers_and_back() {
    let (train, dev) = (sentences(13), sentences(7));
    let run = |strategy: Strategy, change: &dyn for<'a> Fn(FitArgs<'a>) -> FitArgs<'a>| {
        let model = compiled(Some(strategy), "float32", plain_args().optimizer(recipe()));
        let history = model.fit(&train, change(fit_args(&dev)));
        left(&model, &history.expect("it trains"))
    };
    let of_two: [fn() -> Strategy; 2] = [|| logical(2).strategy(), || workers(2).strategy()];
    for (from, to) in [(of_two[0], of_two[1]), (of_two[1], of_two[0])] {
        let folder = TempDir::new().expect("a temporary folder");
        let whole = run(from(), &|args| {
            args.checkpoint(folder.path()).every(2).keep_last(10)
        });
        let resume = || run(to(), &|args| args.resume_from(folder.path().join("step-4")));
        let (found, notes) = heard(&["SC0532"], resume);
        assert_eq!(found.losses, whole.losses);
        assert_eq!(found.validation, whole.validation);
        assert!(found.weights == whole.weights);
        assert!(notes.is_empty(), "{notes:?}");
    }
}

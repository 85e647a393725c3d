//! Changes of a step whose replicas are computed by worker processes: labels, weights of examples and dropout travel, the rest
//! is refused.

use stratoscope_models::{FitArgs, Interventions, Run};
use stratoscope_strategy::AsStrategy;

use super::{logical, workers};
use crate::support::{compiled, plain_args, recipe, sentences};

fn trained(strategy: &impl AsStrategy, check: impl FnOnce(&Run)) -> Vec<u64> {
    let model = compiled(
        Some(strategy.strategy()),
        "float32",
        plain_args().optimizer(recipe()),
    );
    let args = FitArgs::new().batch_size(4).seed(3).verbose(false);
    let run = model.start(&sentences(24), args).expect("it is ready");
    check(&run);
    run.step(1).expect("it steps");
    let shown = run.what_if(|it| {
        it.label(1, "blue");
        it.example_weight(2, 0.5);
        it.dropout(0.2);
    });
    shown.expect("it travels").commit().expect("it comes");
    run.step(1).expect("it steps");
    run.set_dropout(0.0).expect("a rate");
    run.relabel([(5, "red")]).expect("a row");
    run.set_weight_decay(0.1).expect("a decay");
    let history = run.finish().expect("it steps");
    history.steps.iter().map(|it| it.loss.to_bits()).collect()
}

#[test]
fn workers_make_the_changes_that_travel_and_refuse_the_others() {
    let expected = trained(&logical(2), |_| {});
    let found = trained(&workers(2), |run| {
        let refused: [fn(&mut Interventions); 3] = [
            |it| it.head(0, 0).scale(0.0),
            |it| it.gradients("classifier").scale(0.0),
            |it| it.weights("classifier").scale(0.0),
        ];
        for change in refused {
            let problem = run.what_if(change).expect_err("it does not travel");
            assert_eq!(problem.code, "SC0733");
        }
    });
    assert_eq!(found, expected);
}

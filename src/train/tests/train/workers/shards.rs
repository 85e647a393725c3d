//! Which examples each worker sees: `AutoShardPolicy`.

use stratoscope_data::AutoShardPolicy;

use super::*;

fn run(strategy: Strategy, data: &Dataset, batch_size: usize) -> Result<Left, Box<Diagnostic>> {
    let args = CompileArgs::new().optimizer(SGD::new(0.05));
    let model = sequential(&strategy, args);
    let fit = FitArgs::new()
        .batch_size(batch_size)
        .epochs(2)
        .shuffle(false)
        .verbose(false);
    let history = model.fit(data, fit)?;
    Ok(left(&model, &history))
}

/// Two workers with the same examples compute the same gradients, whose mean is that of one of them.
#[test]
fn with_off_every_worker_sees_all_examples() {
    let data = make_regression(16, 5, 1).expect("numbers");
    let strategy = workers(2);
    let plain = |strategy: &dyn Fn() -> Strategy, data: &Dataset, batch: usize| {
        let _scope = scope::enter(&strategy()).expect("no scope is active");
        let model = Sequential([Dense(3).input_shape(5), Dense(1)]).expect("layers");
        let args = CompileArgs::new().optimizer(SGD::new(0.05));
        model.compile(args.loss(MeanSquaredError)).expect("valid");
        let fit = FitArgs::new().batch_size(batch).shuffle(false);
        let history = model.fit(data, fit.verbose(false)).expect("it trains");
        let losses = history.steps.iter().map(|it| it.loss);
        losses.collect::<Vec<f64>>()
    };
    let off = data.clone().auto_shard(AutoShardPolicy::Off);
    let (each, notices) = heard(&["SC0813"], || plain(&|| strategy.strategy(), &off, 8));
    assert_eq!(codes(&notices, "SC0813"), 1, "{notices:?}");
    let alone = logical(1);
    let expected = plain(&|| alone.strategy(), &data, 4);
    assert_eq!((each.len(), expected.len()), (4, 4));
    for (found, expected) in each.iter().zip(&expected) {
        assert!(
            (found - expected).abs() < 1e-5 * expected.abs(),
            "{each:?}, {expected:?}"
        );
    }
    // Replicas of one process are no workers.
    let under = |data: &Dataset| run(logical(2).strategy(), data, 8).expect("it trains");
    assert_eq!(under(&off), under(&data));
    // Divided, an epoch has half of the steps.
    let divided = data.clone().auto_shard(AutoShardPolicy::Data);
    assert_eq!(plain(&|| strategy.strategy(), &divided, 8).len(), 2);
}

#[test]
fn what_cannot_be_divided_is_refused() {
    let strategy = workers(2);
    let data = make_regression(16, 5, 1).expect("numbers");
    let refused = |policy, batch_size| {
        let data = data.clone().auto_shard(policy);
        run(strategy.strategy(), &data, batch_size)
            .expect_err("refused")
            .code
    };
    assert_eq!(refused(AutoShardPolicy::File, 8), "SC0803");
    assert_eq!(refused(AutoShardPolicy::Off, 5), "SC0103");
}

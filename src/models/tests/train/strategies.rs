//! Training under every strategy, and local SGD: what is counted, and that the weights are what the
//! definition says.

use stratoscope_data::Dataset;
use stratoscope_models::{
    AdamW, BertForSequenceClassification, CompileArgs, Counters, FitArgs, History, SGD, interrupt,
};
use stratoscope_strategy::{
    AsStrategy, CentralStorageStrategy, CrossDeviceOps, MirroredStrategy, OneDeviceStrategy,
    ParameterServerStrategy, Strategy, TpuStrategy, cpu, scope,
};

use crate::support::{
    assert_near, assert_near_weights, cross_entropy, load, plain_args, sentences, tiny_bert,
    weights,
};

type Named = (String, Vec<f32>);
type Weights = Vec<Named>;

fn mirrored(replicas: usize) -> MirroredStrategy {
    MirroredStrategy::logical(replicas).expect("logical devices")
}

/// The tiny BERT trained on `data` with plain descent unless `args` says otherwise.
fn fitted(
    strategy: &impl AsStrategy,
    args: CompileArgs,
    data: &Dataset,
    fit: FitArgs<'_>,
) -> (BertForSequenceClassification, History) {
    let _scope = scope::enter(strategy).expect("no scope is active");
    let model = load(&tiny_bert(0.0));
    model
        .compile(args.loss(cross_entropy()))
        .expect("valid arguments");
    let history = model.fit(data, fit.verbose(false)).expect("it trains");
    let placement = model.placement().expect("the devices answer");
    assert!(placement.copies_are_equal(), "{}", placement.verdict());
    (model, history)
}

fn descent() -> CompileArgs {
    CompileArgs::new().optimizer(SGD::new(0.5))
}

fn fit() -> FitArgs<'static> {
    FitArgs::new().batch_size(4).seed(5)
}

#[track_caller]
fn near(found: &Weights, expected: &Weights, what: &str) {
    println!("{what}");
    assert_near_weights(found, expected);
}

/// Uneven batches: 13 examples in batches of 4.
#[test]
fn synchronous_strategies_give_the_weights_of_one_device() {
    let run = |strategy: &Strategy| {
        let (model, history) = fitted(strategy, descent(), &sentences(13), fit());
        (weights(&model), history.counters)
    };
    let one = OneDeviceStrategy::new(cpu(0)).expect("a processor");
    let (expected, counters) = run(&one.strategy());
    assert_eq!(counters.all_reduces, 0);
    let two = mirrored(2);
    let (two_alike, _) = run(&two.strategy());
    near(&two_alike, &expected, "mirrored");

    let central = CentralStorageStrategy::logical(2).expect("logical devices");
    let servers = ParameterServerStrategy::logical(2, 2).expect("logical devices");
    for strategy in [central.strategy(), servers.synchronous().strategy()] {
        let (found, counters) = run(&strategy);
        assert!(found == two_alike, "{strategy}: the same bits as mirrored");
        assert_eq!((counters.optimizer_steps, counters.all_reduces), (4, 4));
    }
    let ring = mirrored(3).cross_device_ops(CrossDeviceOps::Ring);
    let tree = mirrored(3).cross_device_ops(CrossDeviceOps::Tree);
    let tpu = TpuStrategy::simulated().expect("logical devices");
    for strategy in [ring.strategy(), tree.strategy(), tpu.strategy()] {
        let (found, counters) = run(&strategy);
        near(&found, &expected, &strategy.to_string());
        assert_eq!(counters.all_reduces, 4);
    }
}

/// The moments are kept once where the variables are, whatever the number of replicas.
#[test]
fn adam_under_one_copy_is_adam() {
    let run = |strategy: &Strategy| {
        let args = plain_args().optimizer(AdamW::new(1e-3).global_clipnorm(0.5));
        weights(&fitted(strategy, args, &sentences(12), fit()).0)
    };
    let expected = run(&mirrored(2).strategy());
    let central = CentralStorageStrategy::logical(2).expect("logical devices");
    assert!(run(&central.strategy()) == expected, "the same bits");
}

/// The table of docs/keras-semantics.md for 8 batches: (S, A, N, R) → executions, optimizer steps, parameter averages; the
/// fit has two epochs.
#[test]
fn the_table_of_local_sgd() {
    let check = |(s, a, n, r): (u64, u64, u64, usize), expected: (u64, u64, u64)| {
        let args = descent()
            .steps_per_execution(s)
            .gradient_accumulation_steps(a)
            .sync_every(n);
        let (_, history) = fitted(&mirrored(r), args, &sentences(32), fit().epochs(2));
        let (executions, optimizer_steps, averages) = expected;
        let expected = Counters {
            batches: 16,
            executions,
            optimizer_steps,
            parameter_averages: averages,
            ..Counters::default()
        };
        assert_eq!(history.counters, expected, "S={s} A={a} N={n} R={r}");
    };
    check((1, 1, 4, 2), (16, 16, 4));
    check((4, 1, 4, 2), (4, 16, 4));
    check((1, 1, 3, 2), (16, 16, 6)); // five on the way, one for the last step
    check((1, 2, 3, 2), (16, 8, 3));
    check((1, 1, 4, 1), (16, 16, 0));
}

#[test]
fn sync_every_1_is_the_plain_all_reduce() {
    let run = |args: CompileArgs| {
        let args = args.optimizer(AdamW::new(1e-3));
        let (model, history) = fitted(&mirrored(2), args, &sentences(12), fit());
        (weights(&model), history.counters)
    };
    let plain = run(CompileArgs::new());
    assert!(plain == run(CompileArgs::new().sync_every(1)));
    assert_eq!((plain.1.all_reduces, plain.1.parameter_averages), (3, 0));
    assert!(plain.0 != run(CompileArgs::new().sync_every(2)).0);
}

/// Two replicas that never meet before the end are two models on the halves of every batch, averaged.
#[test]
fn local_sgd_is_the_mean_of_models_that_trained_alone() {
    let all = sentences(16);
    let half = |which: usize| {
        let rows = all.examples.iter().enumerate();
        let rows = rows.filter(|(row, _)| row / 2 % 2 == which);
        let rows = rows.map(|(_, example)| example.clone());
        Dataset::from_examples(rows, all.label_names.clone(), "a half")
    };
    let in_order = || FitArgs::new().shuffle(false);
    // Each replica has a velocity of its own.
    let args = || CompileArgs::new().optimizer(SGD::new(0.1).momentum(0.9));
    let fit = in_order().batch_size(4);
    let (model, _) = fitted(&mirrored(2), args().sync_every(100), &all, fit);
    let found = weights(&model);
    let alone = [0, 1].map(|which| {
        let fit = in_order().batch_size(2);
        weights(&fitted(&mirrored(1), args(), &half(which), fit).0)
    });
    let mean = |(left, right): (&Named, &Named)| {
        let numbers = left.1.iter().zip(&right.1).map(|(a, b)| 0.5 * a + 0.5 * b);
        (left.0.clone(), numbers.collect::<Vec<f32>>())
    };
    let expected: Weights = alone[0].iter().zip(&alone[1]).map(mean).collect();
    near(&found, &expected, "the mean of two");
    assert!(alone[0] != alone[1], "they did go apart");
}

/// Validation in the middle of a group sees the average and changes nothing.
#[test]
fn validation_between_two_averages() {
    let data = sentences(12);
    let run = |fit: FitArgs<'_>| {
        let args = descent().sync_every(2);
        fitted(&mirrored(2), args, &data, fit.epochs(3))
    };
    let (plain, history) = run(fit());
    assert_eq!(history.counters.parameter_averages, 5, "9 steps");
    let (watched, measured) = run(fit().validation_data(&data));
    assert!(weights(&plain) == weights(&watched));
    // After the last epoch the replicas are averaged: what was measured there is what the model is.
    let last = measured.epochs[2].validation.as_ref().expect("measured");
    let again = watched
        .evaluate(&data, stratoscope_models::EvaluateArgs::new().batch_size(4))
        .expect("it evaluates");
    assert_near(last.loss, again.loss);
    run(fit().validation_data(&data).early_stopping(1));
}

/// Two workers, 13 examples in batches of 4: 4 · 2 pushes less the one for which no example is left.
#[test]
fn asynchronous_workers_push_in_turn() {
    let run = || {
        let strategy = ParameterServerStrategy::logical(2, 1).expect("logical devices");
        fitted(&strategy, descent(), &sentences(13), fit())
    };
    let (model, history) = run();
    let expected = Counters {
        batches: 4,
        executions: 4,
        optimizer_steps: 7,
        pushes: 7,
        // Worker 0 finds 0, 1, 1, 1 updates of worker 1; worker 1 finds one of worker 0 each time.
        staleness: 6,
        ..Counters::default()
    };
    assert_eq!(history.counters, expected);
    let planned = "4 executions, 7 optimizer steps, 7 pushes, 0.9 updates stale on average";
    assert_eq!(history.counters.to_string(), planned);
    assert!(weights(&model) == weights(&run().0), "the same bits again");
}

#[test]
fn sync_every_is_checked() {
    let check = |strategy: &Strategy, every: i64, message: &str| {
        let _scope = scope::enter(strategy).expect("no scope is active");
        let model = load(&tiny_bert(0.0));
        let finding = model
            .compile(plain_args().sync_every(every))
            .expect_err("it cannot be");
        assert_eq!(
            (finding.code.as_str(), finding.message.as_str()),
            ("SC0103", message)
        );
    };
    check(
        &mirrored(2).strategy(),
        0,
        "`sync_every = 0`: expected an integer ≥ 1",
    );
    check(
        &CentralStorageStrategy::logical(2).expect("two").strategy(),
        4,
        "`sync_every = 4`: expected 1, since `central_storage` keeps one copy of each variable",
    );
}

/// An interrupted run ends with an average as any other, and goes on from it.
#[test]
fn an_interrupt_averages() {
    let strategy = mirrored(2);
    let _scope = scope::enter(&strategy).expect("no scope is active");
    let model = load(&tiny_bert(0.0));
    model
        .compile(plain_args().sync_every(3))
        .expect("valid arguments");
    let args = || fit().verbose(false);
    interrupt::request();
    let first = model.fit(&sentences(16), args()).expect("it trains");
    assert!(first.interrupted);
    let counted = |counters: Counters| (counters.optimizer_steps, counters.parameter_averages);
    assert_eq!(counted(first.counters), (1, 1));
    let placement = model.placement().expect("the devices answer");
    assert!(placement.copies_are_equal(), "{}", placement.verdict());
    // Three steps are left: a whole group.
    let args = args().resume(true);
    let rest = model.fit(&sentences(16), args).expect("it goes on");
    assert_eq!(counted(rest.counters), (4, 2));
}

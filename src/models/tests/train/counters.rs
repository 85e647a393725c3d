//! What a run counts, against the formulas of docs/keras-semantics.md; and that neither executions nor
//! replicas nor a seed given twice change a number.

use std::sync::Mutex;

use stratoscope_models::{
    AdamW, BertForSequenceClassification, CompileArgs, Counters, FitArgs, History, SGD,
};
use stratoscope_strategy::{MirroredStrategy, scope};

use crate::support::{
    assert_near, assert_near_weights, cross_entropy, load, plain_args, sentences, tiny_bert,
    weights,
};

struct Case {
    replicas: usize,
    steps_per_execution: usize,
    accumulation: usize,
    batch_size: usize,
    dropout: f64,
}

const CASE: Case = Case {
    replicas: 1,
    steps_per_execution: 1,
    accumulation: 1,
    batch_size: 4,
    dropout: 0.0,
};

/// 32 examples, 8 batches of 4.
fn run(case: &Case, examples: usize) -> (BertForSequenceClassification, History) {
    let strategy = MirroredStrategy::logical(case.replicas).expect("logical devices");
    let _scope = scope::enter(&strategy).expect("no scope is active");
    let model = load(&tiny_bert(case.dropout));
    // Plain descent: its steps are proportional to gradients, so that differences stay what they are.
    let args = CompileArgs::new()
        .optimizer(SGD::new(0.5))
        .loss(cross_entropy())
        .steps_per_execution(case.steps_per_execution)
        .gradient_accumulation_steps(case.accumulation);
    model.compile(args).expect("valid arguments");
    let args = FitArgs::new()
        .epochs(2)
        .batch_size(case.batch_size)
        .seed(5)
        .verbose(false);
    let history = model.fit(&sentences(examples), args).expect("it trains");
    (model, history)
}

#[test]
fn the_table_of_eight_batches() {
    let check = |case: Case, executions: u64, steps: u64, all_reduces: u64| {
        let (_, history) = run(&case, 32);
        let expected = Counters {
            batches: 16,
            executions: 2 * executions,
            optimizer_steps: 2 * steps,
            all_reduces: 2 * all_reduces,
            ..Counters::default()
        };
        assert_eq!(history.counters, expected);
        assert_eq!(history.executions.len() as u64, 2 * executions);
        let made: u64 = history
            .executions
            .iter()
            .map(|record| record.optimizer_steps)
            .sum();
        assert_eq!(made, 2 * steps);
        let batches: u64 = history.executions.iter().map(|record| record.batches).sum();
        assert_eq!(batches, 16);
    };
    check(CASE, 8, 8, 0);
    check(
        Case {
            replicas: 2,
            ..CASE
        },
        8,
        8,
        8,
    );
    check(
        Case {
            replicas: 2,
            steps_per_execution: 4,
            ..CASE
        },
        2,
        8,
        8,
    );
    check(
        Case {
            replicas: 2,
            steps_per_execution: 3,
            ..CASE
        },
        3,
        8,
        8,
    );
    check(
        Case {
            replicas: 2,
            accumulation: 4,
            ..CASE
        },
        8,
        2,
        2,
    );
    check(
        Case {
            replicas: 2,
            accumulation: 3,
            steps_per_execution: 100,
            ..CASE
        },
        1,
        3,
        3,
    );
}

/// However many batches an execution has, every optimizer step is sampled: curves show a warm-up that is
/// shorter than an execution.
#[test]
fn every_optimizer_step_is_sampled() {
    let check = |accumulation: usize, expected_steps: usize| {
        let train = |steps_per_execution: usize| {
            let strategy = MirroredStrategy::logical(2).expect("logical devices");
            let _scope = scope::enter(&strategy).expect("no scope is active");
            let model = load(&tiny_bert(0.1));
            let args = CompileArgs::new()
                .optimizer(SGD::new(stratoscope_models::warmup_linear(0.5, 0.25)))
                .loss(cross_entropy())
                .steps_per_execution(steps_per_execution)
                .gradient_accumulation_steps(accumulation);
            model.compile(args).expect("valid arguments");
            let args = FitArgs::new().epochs(2).batch_size(4).verbose(false);
            model.fit(&sentences(30), args).expect("it trains")
        };
        let (alone, together) = (train(1), train(16));
        assert_eq!(together.executions.len(), 2);
        assert_eq!(alone.steps, together.steps);
        let steps: Vec<u64> = together.steps.iter().map(|sample| sample.step).collect();
        assert_eq!(steps, (1..=expected_steps as u64).collect::<Vec<_>>());
        let rates: Vec<f64> = together.steps.iter().map(|it| it.learning_rate).collect();
        assert_eq!(rates[0], 0.0, "warm-up begins at 0");
        assert!(rates[1] > 0.0 && rates[2] != rates[1], "{rates:?}");
        let sums = |epoch: u64| {
            let of_epoch = alone.executions.iter().filter(|it| it.epoch == epoch);
            let losses = of_epoch.map(|it| it.loss).collect::<Vec<_>>();
            // Seven batches of four examples, and one of two.
            let sizes = [4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 2.0];
            let groups = losses.chunks(accumulation).zip(sizes.chunks(accumulation));
            groups
                .map(|(losses, sizes)| {
                    let sum: f64 = losses.iter().zip(sizes).map(|(l, s)| l * s).sum();
                    sum / sizes.iter().sum::<f64>()
                })
                .collect::<Vec<_>>()
        };
        for (sample, expected) in alone.steps.iter().zip([sums(0), sums(1)].concat()) {
            let difference = (sample.loss - expected).abs();
            assert!(difference < 1e-9, "{sample:?}: {expected}");
        }
    };
    check(1, 16);
    check(3, 6);
}

#[test]
fn executions_change_no_weight() {
    let (one, _) = run(
        &Case {
            replicas: 2,
            dropout: 0.1,
            ..CASE
        },
        30,
    );
    let (four, _) = run(
        &Case {
            replicas: 2,
            dropout: 0.1,
            steps_per_execution: 4,
            ..CASE
        },
        30,
    );
    assert_eq!(weights(&one), weights(&four));
}

/// 13 examples in batches of 5 are 5, 5 and 3; over two replicas 3 + 2, 3 + 2 and 2 + 1.
#[test]
fn uneven_batches_weigh_by_example() {
    let case = |replicas, accumulation| Case {
        replicas,
        accumulation,
        batch_size: 5,
        ..CASE
    };
    let (single, alone) = run(&case(1, 1), 13);
    let (double, split) = run(&case(2, 1), 13);
    for (left, right) in alone.executions.iter().zip(&split.executions) {
        assert_near(left.loss, right.loss);
    }
    let near = |left, right| assert_near_weights(&weights(left), &weights(right));
    near(&single, &double);
    // All of an epoch in one step: three batches accumulated, and one batch of 13.
    let (accumulated, _) = run(&case(2, 3), 13);
    let (whole, _) = run(
        &Case {
            batch_size: 13,
            ..CASE
        },
        13,
    );
    near(&accumulated, &whole);
}

/// One replica has nothing to do in the last batch.
#[test]
fn a_batch_smaller_than_the_replicas() {
    let (single, _) = run(
        &Case {
            batch_size: 4,
            ..CASE
        },
        5,
    );
    let (triple, history) = run(
        &Case {
            replicas: 3,
            batch_size: 4,
            ..CASE
        },
        5,
    );
    assert_eq!(history.counters.all_reduces, 4);
    assert_near_weights(&weights(&triple), &weights(&single));
    let placement = triple.placement().expect("the devices answer");
    assert!(placement.copies_are_equal(), "{}", placement.verdict());
}

#[test]
fn a_seed_gives_the_same_bits_again() {
    let run = |seed: u64| {
        let strategy = MirroredStrategy::logical(2).expect("two logical devices");
        let _scope = scope::enter(&strategy).expect("no scope is active");
        let model = load(&tiny_bert(0.1));
        let args = plain_args().optimizer(AdamW::new(1e-3).global_clipnorm(1.0));
        model.compile(args).expect("valid arguments");
        let args = FitArgs::new()
            .epochs(2)
            .batch_size(7)
            .seed(seed)
            .verbose(false);
        let history = model.fit(&sentences(40), args).expect("it trains");
        let losses: Vec<f64> = history
            .executions
            .iter()
            .map(|record| record.loss)
            .collect();
        (losses, weights(&model))
    };
    let first = run(11);
    assert!(first == run(11), "the same seed gave other numbers");
    assert!(first.0 != run(12).0, "another seed gave the same numbers");
}

/// The observer of the process: once per execution, in order.
#[test]
fn events_come_once_per_execution() {
    use stratoscope_models::events::{self, EpochEnded, ExecutionEnded, FitStarted, Observer};
    #[derive(Default)]
    struct Log(Mutex<Vec<String>>);
    impl Log {
        fn add(&self, text: String) {
            self.0.lock().expect("nobody panics here").push(text);
        }
    }
    impl Observer for Log {
        fn fit_started(&self, event: &FitStarted) {
            self.add(format!("started, {}", event.planned));
        }
        fn execution_ended(&self, event: &ExecutionEnded) {
            self.add(format!(
                "{} batches, {}",
                event.record.batches, event.counters
            ));
        }
        fn epoch_ended(&self, event: &EpochEnded) {
            self.add(format!("epoch {}, best {}", event.record.epoch, event.best));
        }
        fn fit_ended(&self, _run: u64, history: &History) {
            self.add(format!("ended, {}", history.counters));
        }
    }

    let log = std::sync::Arc::new(Log::default());
    events::install(log.clone());
    let strategy = MirroredStrategy::logical(2).expect("two logical devices");
    let _scope = scope::enter(&strategy).expect("no scope is active");
    let model = load(&tiny_bert(0.0));
    model
        .compile(plain_args().steps_per_execution(2))
        .expect("valid arguments");
    let data = sentences(12);
    let args = FitArgs::new().batch_size(4).validation_data(&data);
    model.fit(&data, args).expect("it trains");
    let expected = [
        "started, 2 executions, 3 optimizer steps, 3 all-reduces",
        "2 batches, 1 execution, 2 optimizer steps, 2 all-reduces",
        "1 batches, 2 executions, 3 optimizer steps, 3 all-reduces",
        "epoch 0, best true",
        "ended, 2 executions, 3 optimizer steps, 3 all-reduces",
    ];
    assert_eq!(*log.0.lock().expect("nobody panics here"), expected);
}

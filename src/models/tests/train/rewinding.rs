//! A run that is turned back stands at the very bits of the first time, and goes on to those of a run that never was.

use stratoscope_models::{
    Adafactor, Adam, AdamW, BertForSequenceClassification, FitArgs, History, IntoOptimizer, Lamb,
    Lion, Optimizer, RMSprop, Run, pin,
};
use stratoscope_strategy::{
    AsStrategy, CentralStorageStrategy, ParameterServerStrategy, Partitioner, Strategy,
};

use crate::support::{self, heard, mirrored, plain_args, recipe, sentences, weights};

type Bert = BertForSequenceClassification;

struct Case {
    name: &'static str,
    strategy: fn() -> Option<Strategy>,
    optimizer: fn() -> Optimizer,
    policy: &'static str,
    sync_every: usize,
    accumulation: usize,
    steps_per_execution: usize,
    /// Steps that can be asked for: each group of micro-batches makes one, or one for each worker that pushes.
    steps_of_a_group: u64,
}

const CASE: Case = Case {
    name: "one device",
    strategy: || None,
    optimizer: || recipe().into_optimizer().expect("valid numbers"),
    policy: "float32",
    sync_every: 1,
    accumulation: 1,
    steps_per_execution: 1,
    steps_of_a_group: 1,
};

fn compiled(case: &Case) -> Bert {
    let args = support::grouped(
        plain_args().optimizer((case.optimizer)()),
        case.sync_every,
        case.accumulation,
        case.steps_per_execution,
    );
    support::compiled((case.strategy)(), case.policy, args)
}

/// Eight batches an epoch, sixteen in all.
fn args() -> FitArgs<'static> {
    let args = FitArgs::new().epochs(2).batch_size(4).seed(3);
    args.validation_data_copied(&sentences(7)).verbose(false)
}

/// Every copy of every variable, and of what the optimizer keeps beside it.
fn checksums(model: &Bert) -> String {
    let report = model.placement().expect("the devices answer");
    let rows = report.variables.iter().filter(|row| !row.beside);
    let rows = rows.map(|row| {
        let copies: Vec<String> = row
            .copies
            .iter()
            .map(|it| format!("{:?}", it.checksum))
            .collect();
        format!("{} {}\n", row.name, copies.join(" "))
    });
    rows.collect()
}

fn losses(history: &History) -> Vec<(u64, u64)> {
    let steps = history.steps.iter();
    steps.map(|it| (it.step, it.loss.to_bits())).collect()
}

fn epochs(history: &History) -> Vec<(u64, Option<u64>)> {
    let epochs = history.epochs.iter();
    let validation =
        |it: &stratoscope_models::EpochRecord| it.validation.as_ref().map(|it| it.loss.to_bits());
    epochs
        .map(|it| (it.loss.to_bits(), validation(it)))
        .collect()
}

fn check(case: &Case) {
    let name = case.name;
    let reference = compiled(case);
    let whole = reference.fit(&sentences(30), args()).expect("it trains");
    let model = compiled(case);
    let run: Run = model.start(&sentences(30), args()).expect("it is ready");
    run.keep_snapshots(3, 1000).expect("the run is not over");
    // Checksums after every step, the first time.
    let last = whole.steps.last().expect("it made steps").step;
    let mut first = vec![(0, checksums(&model))];
    for group in 1..last / case.steps_of_a_group {
        run.step(1).expect("it steps");
        first.push((group * case.steps_of_a_group, checksums(&model)));
    }
    let seen = run.history().expect("no callback").steps.len();
    // Back and forth: to a snapshot, between two of them, to the begin, to where it stands.
    let latest = first.len() - 1;
    for at in [latest, latest - 1, latest / 2, 1, 0] {
        let (step, expected) = &first[at];
        let (rewound, notices) = heard(&["SC0529"], || run.rewind(*step));
        let rewound = rewound.expect("it was made");
        assert_eq!(
            (rewound.step, rewound.differs),
            (*step, None),
            "{name}: {rewound}"
        );
        assert!(notices.is_empty());
        assert!(
            checksums(&model) == *expected,
            "{name}: other bits after {rewound}"
        );
        let history = run.history().expect("no callback");
        let is_made = |it: &&(u64, u64)| it.0 <= *step;
        let expected: Vec<(u64, u64)> = losses(&whole).iter().filter(is_made).copied().collect();
        assert_eq!(losses(&history), expected, "{name}");
        // Forth again, to where the others are.
        if at > 0 && at < latest {
            run.until(first[latest].0).expect("it steps");
            assert!(checksums(&model) == first[latest].1, "{name}");
            assert_eq!(run.history().expect("no callback").steps.len(), seen);
        }
    }
    let history = run.finish().expect("it steps");
    assert!(
        weights(&model) == weights(&reference),
        "{name}: other weights at the end"
    );
    assert_eq!(losses(&history), losses(&whole), "{name}");
    assert_eq!(epochs(&history), epochs(&whole), "{name}");
    assert_eq!(history.counters, whole.counters, "{name}");
}

#[test]
fn on_one_device() {
    check(&CASE);
}

#[test]
fn with_averages_and_amsgrad() {
    check(&Case {
        name: "amsgrad and averages",
        optimizer: || {
            let optimizer = Adam::new(1e-3)
                .amsgrad(true)
                .use_ema(true)
                .ema_momentum(0.5);
            optimizer.into_optimizer().expect("valid numbers")
        },
        ..CASE
    });
}

#[test]
fn with_rates_by_layer() {
    check(&Case {
        name: "layer_decay",
        strategy: mirrored,
        optimizer: || {
            let optimizer = AdamW::new(1e-3).layer_decay(0.5).rate_for("*.bias", 2.0);
            optimizer.into_optimizer().expect("valid numbers")
        },
        ..CASE
    });
}

#[test]
fn with_rmsprop_lion_lamb_and_adafactor() {
    check(&Case {
        name: "centered RMSprop",
        optimizer: || {
            let optimizer = RMSprop::new(1e-3).momentum(0.9).centered(true);
            optimizer.into_optimizer().expect("valid numbers")
        },
        ..CASE
    });
    check(&Case {
        name: "Lion",
        strategy: mirrored,
        optimizer: || {
            let optimizer = Lion::new(1e-3).weight_decay(0.1).global_clipnorm(1.0);
            optimizer.into_optimizer().expect("valid numbers")
        },
        ..CASE
    });
    check(&Case {
        name: "Adafactor",
        optimizer: || {
            let optimizer = Adafactor::new(1e-2).relative_step(false).use_ema(true);
            optimizer.into_optimizer().expect("valid numbers")
        },
        ..CASE
    });
    check(&Case {
        name: "LAMB",
        strategy: mirrored,
        optimizer: || {
            let optimizer = Lamb::new(1e-2).weight_decay(0.1).clipnorm(1.0);
            optimizer.into_optimizer().expect("valid numbers")
        },
        ..CASE
    });
}

#[test]
fn on_mirrored_replicas_with_accumulation() {
    check(&Case {
        name: "mirrored",
        strategy: mirrored,
        accumulation: 3,
        ..CASE
    });
}

#[test]
fn in_the_middle_of_an_execution() {
    check(&Case {
        name: "executions of three batches",
        strategy: mirrored,
        steps_per_execution: 3,
        ..CASE
    });
}

#[test]
fn with_replicas_that_step_alone() {
    check(&Case {
        name: "sync_every",
        strategy: mirrored,
        sync_every: 3,
        ..CASE
    });
}

#[test]
fn with_one_copy_and_with_shards() {
    let central: fn() -> Option<Strategy> =
        || Some(CentralStorageStrategy::logical(2).expect("two").strategy());
    let cut: fn() -> Option<Strategy> = || {
        let servers = ParameterServerStrategy::logical(2, 3).expect("two and three");
        let cut = servers.variable_partitioner(Partitioner::MinSize(64));
        Some(cut.expect("a size above 0").synchronous().strategy())
    };
    let asynchronous: fn() -> Option<Strategy> = || {
        Some(
            ParameterServerStrategy::logical(2, 2)
                .expect("two and two")
                .strategy(),
        )
    };
    for (name, strategy, steps_of_a_group) in [
        ("central storage", central, 1),
        ("shards", cut, 1),
        ("asynchronous servers", asynchronous, 2),
    ] {
        check(&Case {
            name,
            strategy,
            steps_of_a_group,
            ..CASE
        });
    }
}

#[test]
fn with_mixed_precision() {
    check(&Case {
        name: "mixed_float16",
        policy: "mixed_float16",
        ..CASE
    });
}

#[test]
fn a_step_without_a_snapshot_is_refused_and_the_ring_says_what_it_holds() {
    let model = compiled(&CASE);
    let run = model.start(&sentences(30), args()).expect("it is ready");
    run.step(12).expect("it steps");
    let report = run.report().expect("no callback");
    let words = report.snapshots.expect("a run of `start!` has some");
    assert!(
        words.starts_with("snapshots every 10 steps: 2 (after steps 0, 10)"),
        "{words}"
    );
    assert!(run.to_string().contains(&words), "{run}");
    let code = |step: u64| run.rewind(step).expect_err("it was not made").code;
    assert_eq!(code(13), "SC0915");
    let before = checksums(&model);
    run.keep_snapshots(5, 0).expect("the run is not over");
    run.step(1).expect("it steps");
    assert_eq!(code(11), "SC0915");
    assert!(
        checksums(&model) != before,
        "nothing else has happened to the run"
    );
    run.finish().expect("it steps");
    assert_eq!(code(1), "SC0521");
}

/// Nothing is to be made again, and what was changed since is undone, weights too.
#[test]
fn a_run_is_turned_back_before_its_first_step() {
    let model = compiled(&CASE);
    let before = checksums(&model);
    let run = model.start(&sentences(30), args()).expect("it is ready");
    let rewound = run.rewind(0).expect("it stands there");
    assert_eq!(rewound.to_string(), "the run stands at step 0 already");
    assert_eq!(run.rewind(1).expect_err("it was not made").code, "SC0915");
    run.set_batch_size(4).expect("a size");
    let other = run.what_if(|it| {
        it.weights("classifier.weight").scale(2.0);
    });
    (other.and_then(|it| it.commit())).expect("other weights");
    assert!(checksums(&model) != before);
    let rewound = run.rewind(0).expect("it stands there");
    assert_eq!((rewound.step, rewound.replayed), (0, 0));
    assert_eq!(rewound.dropped.len(), 2, "{rewound}");
    assert!(checksums(&model) == before);
    let steps = |run: &Run| -> Vec<u64> {
        let history = run.finish().expect("it steps");
        history.steps.iter().map(|it| it.loss.to_bits()).collect()
    };
    let again = steps(&run);
    let model = compiled(&CASE);
    let other = model.start(&sentences(30), args()).expect("it is ready");
    assert!(again == steps(&other));
}

/// Of a run that is written as well: what follows the step is another future, and is written anew.
#[test]
fn checkpoints_follow() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let model = compiled(&CASE);
    let with = args().checkpoint(folder.path()).every(4).keep_last(100);
    let run = model.start(&sentences(30), with).expect("it is ready");
    run.step(10).expect("it steps");
    run.rewind(5).expect("it was made");
    run.finish().expect("it steps");
    let reference = compiled(&CASE);
    let resumed = reference.fit(&sentences(30), args().resume_from(folder.path()));
    resumed.expect("it goes on");
    assert!(weights(&model) == weights(&reference));
    assert!(folder.path().join("step-16").join("manifest.json").exists());
}

/// What was written of the future that is given up is not gone on with.
#[test]
fn another_process_goes_on_from_where_a_run_was_turned_back() {
    let reference = compiled(&CASE);
    let whole = reference.fit(&sentences(30), args()).expect("it trains");
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let model = compiled(&CASE);
    let with = args().checkpoint(folder.path()).every(4).keep_last(100);
    let run = model.start(&sentences(30), with).expect("it is ready");
    run.step(6).expect("it steps");
    run.set_learning_rate(pin(1e-2)).expect("a rate");
    run.step(3).expect("it steps");
    let rewound = run.rewind(5).expect("it was made");
    assert_eq!((rewound.step, rewound.dropped.len()), (5, 1), "{rewound}");
    let written = run.history().expect("no callback").complete_checkpoint;
    let written = written.expect("it is written at once");
    assert!(written.ends_with("step-5"), "{written}");
    // Turned back to where it stands, there is nothing to write.
    run.rewind(5).expect("it was made");
    assert!(!folder.path().join("step-5.2").exists());
    drop(run);
    let other = compiled(&CASE);
    let from = args().resume_from(folder.path());
    let run = other.start(&sentences(30), from).expect("it is complete");
    assert_eq!(run.report().expect("no callback").position.step, 5);
    let history = run.finish().expect("it goes on");
    assert_eq!(losses(&history), losses(&whole));
    assert!(weights(&other) == weights(&reference));
}

//! A run that is interrupted and resumed ends on the very weights of one that is not: on one device, on
//! replicas, with replicas that step alone, with accumulation, wherever the interrupt comes.

use std::cell::RefCell;
use std::rc::Rc;

use stratoscope_data::Dataset;
use stratoscope_models::{
    BertForSequenceClassification, FitArgs, History, interrupt, on_batch_end,
};
use stratoscope_strategy::{
    AsStrategy, CentralStorageStrategy, ParameterServerStrategy, Strategy, scope,
};

use crate::support::{grouped, load, mirrored, plain_args, recipe, sentences, tiny_bert, weights};

type Weights = Vec<(String, Vec<f32>)>;

struct Case {
    name: &'static str,
    strategy: fn() -> Option<Strategy>,
    sync_every: usize,
    accumulation: usize,
    steps_per_execution: usize,
    early_stopping: bool,
}

const CASE: Case = Case {
    name: "",
    strategy: || None,
    sync_every: 1,
    accumulation: 1,
    steps_per_execution: 1,
    early_stopping: false,
};

/// A model that is trained until `interrupts` are used up: each is a number of batches after which one
/// comes, counted from the beginning or from where the run was taken up.
fn trained(case: &Case, interrupts: &[u64]) -> (Weights, History) {
    let args = grouped(
        plain_args().optimizer(recipe()),
        case.sync_every,
        case.accumulation,
        case.steps_per_execution,
    );
    let strategy = (case.strategy)();
    let _scope = strategy
        .as_ref()
        .map(|it| scope::enter(it).expect("no scope is active"));
    let model = load(&tiny_bert(0.1));
    model.compile(args).expect("valid arguments");
    let (train, dev) = (sentences(30), sentences(7));
    for (index, &batches) in interrupts.iter().enumerate() {
        let history = run(case, &model, (&train, &dev), index > 0, Some(batches));
        assert!(history.interrupted, "{}", case.name);
    }
    let history = run(case, &model, (&train, &dev), !interrupts.is_empty(), None);
    assert!(!history.interrupted);
    (weights(&model), history)
}

fn run(
    case: &Case,
    model: &BertForSequenceClassification,
    (train, dev): (&Dataset, &Dataset),
    resume: bool,
    interrupt_after: Option<u64>,
) -> History {
    let seen = Rc::new(RefCell::new(0));
    let counted = Rc::clone(&seen);
    let callback = on_batch_end(move |execution| {
        *counted.borrow_mut() += execution.batches;
        // The request is heard at the next batch: an execution of several ends in its middle.
        if interrupt_after.is_some_and(|after| *counted.borrow() == after) {
            interrupt::request();
        }
    });
    let mut args = FitArgs::new()
        .epochs(2)
        .batch_size(4)
        .seed(3)
        .validation_data(dev)
        .resume(resume)
        .callbacks(callback)
        .verbose(false);
    if case.early_stopping {
        args = args.early_stopping(5);
    }
    model.fit(train, args).expect("it trains")
}

/// Eight batches an epoch, sixteen in all.
fn check(case: Case, points: &[&[u64]]) {
    let (expected, whole) = trained(&case, &[]);
    for interrupts in points {
        let (found, history) = trained(&case, interrupts);
        let name = case.name;
        assert!(
            found == expected,
            "{name}, interrupted after {interrupts:?}: other weights"
        );
        assert_eq!(history.steps, whole.steps, "{name}, {interrupts:?}");
        let losses = |history: &History| -> Vec<(f64, Option<f64>)> {
            let epochs = history.epochs.iter();
            let losses = epochs.map(|it| (it.loss, it.validation.as_ref().map(|it| it.loss)));
            losses.collect()
        };
        assert_eq!(losses(&history), losses(&whole), "{name}, {interrupts:?}");
        // An execution that an interrupt ends is one, and what is left of it another.
        let mut counters = history.counters;
        assert!(counters.executions >= whole.counters.executions);
        counters.executions = whole.counters.executions;
        assert_eq!(counters, whole.counters, "{name}, {interrupts:?}");
    }
}

const POINTS: &[&[u64]] = &[&[1], &[2], &[7], &[8], &[10], &[1, 1, 5], &[3, 6]];

#[test]
fn on_one_device() {
    let name = "one device";
    check(Case { name, ..CASE }, POINTS);
}

#[test]
fn on_mirrored_replicas() {
    let (name, strategy) = ("mirrored", mirrored as fn() -> Option<Strategy>);
    check(
        Case {
            name,
            strategy,
            ..CASE
        },
        POINTS,
    );
}

#[test]
fn with_accumulation_in_the_middle_of_a_group() {
    let (name, strategy) = ("accumulation", mirrored as fn() -> Option<Strategy>);
    let accumulation = 3;
    check(
        Case {
            name,
            strategy,
            accumulation,
            ..CASE
        },
        POINTS,
    );
}

#[test]
fn with_replicas_that_step_alone() {
    let strategy = mirrored as fn() -> Option<Strategy>;
    for (name, accumulation, early_stopping) in [
        ("sync_every", 1, false),
        ("sync_every and accumulation", 2, false),
        ("sync_every and early stopping", 1, true),
    ] {
        check(
            Case {
                name,
                strategy,
                sync_every: 3,
                accumulation,
                early_stopping,
                ..CASE
            },
            POINTS,
        );
    }
}

/// The request comes with the callback of an execution, and is heard one batch later.
#[test]
fn in_the_middle_of_an_execution() {
    let strategy = mirrored as fn() -> Option<Strategy>;
    for sync_every in [1, 3] {
        let (name, steps_per_execution) = ("executions of three", 3);
        check(
            Case {
                name,
                strategy,
                sync_every,
                steps_per_execution,
                ..CASE
            },
            &[&[3], &[6], &[8], &[3, 2]],
        );
    }
}

#[test]
fn under_strategies_with_one_copy() {
    let central: fn() -> Option<Strategy> =
        || Some(CentralStorageStrategy::logical(2).expect("two").strategy());
    let servers: fn() -> Option<Strategy> = || {
        Some(
            ParameterServerStrategy::logical(2, 2)
                .expect("two and two")
                .strategy(),
        )
    };
    for (name, strategy) in [("central storage", central), ("parameter servers", servers)] {
        check(
            Case {
                name,
                strategy,
                ..CASE
            },
            &[&[1], &[7], &[3, 6]],
        );
    }
}

/// What lies between the interrupt and the resumption only reads, and so changes nothing; the model that is
/// read is the average of its replicas.
#[test]
fn reading_in_between_changes_nothing() {
    let strategy = mirrored as fn() -> Option<Strategy>;
    let case = Case {
        name: "reading",
        strategy,
        sync_every: 3,
        ..CASE
    };
    let (expected, _) = trained(&case, &[]);

    let scoped = mirrored().expect("a strategy");
    let _scope = scope::enter(&scoped).expect("no scope is active");
    let model = load(&tiny_bert(0.1));
    let args = plain_args().optimizer(recipe()).sync_every(3);
    model.compile(args).expect("valid arguments");
    let (train, dev) = (sentences(30), sentences(7));
    let first = run(&case, &model, (&train, &dev), false, Some(4));
    // Four steps: an average after three, and the one that the interrupt makes.
    assert_eq!(first.counters.parameter_averages, 2);
    let placement = model.placement().expect("the devices answer");
    assert!(placement.copies_are_equal(), "{}", placement.verdict());
    model.predict("w10 w11").expect("it is read");
    model.gradients(&dev).expect("it is read");
    run(&case, &model, (&train, &dev), true, None);
    assert!(weights(&model) == expected, "other weights");
}

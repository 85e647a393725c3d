//! A run that is driven piece by piece is the run of `fit!`, bit for bit; it can be left and gone on with, and the model
//! belongs to it until it is finished or dropped.

use std::cell::Cell;
use std::rc::Rc;

use stratoscope_data::Dataset;
use stratoscope_diagnostics::Result;
use stratoscope_models::{
    BertForSequenceClassification, EvaluateArgs, FitArgs, History, Run, SGD, StopReason, interrupt,
    on_batch_end, on_epoch_end,
};
use stratoscope_strategy::{AsStrategy, CentralStorageStrategy, ParameterServerStrategy, Strategy};

use crate::support::{self, load, mirrored, plain_args, recipe, sentences, tiny_bert, weights};

type Bert = BertForSequenceClassification;
pub type BertRun = Run;

#[derive(Clone, Copy)]
pub struct Case {
    pub name: &'static str,
    pub strategy: fn() -> Option<Strategy>,
    pub policy: &'static str,
    pub sync_every: usize,
    pub accumulation: usize,
    pub steps_per_execution: usize,
    pub early_stopping: bool,
}

pub const CASE: Case = Case {
    name: "one device",
    strategy: || None,
    policy: "float32",
    sync_every: 1,
    accumulation: 1,
    steps_per_execution: 1,
    early_stopping: false,
};

fn central() -> Option<Strategy> {
    Some(CentralStorageStrategy::logical(2).expect("two").strategy())
}

fn servers() -> Option<Strategy> {
    let servers = ParameterServerStrategy::logical(2, 2).expect("two and two");
    Some(servers.strategy())
}

/// Every way of training that has a state of its own. Eight batches an epoch.
pub fn cases() -> Vec<Case> {
    let named = |name, case: Case| Case { name, ..case };
    let on_two = Case {
        strategy: mirrored,
        ..CASE
    };
    vec![
        CASE,
        named("mirrored", on_two),
        named(
            "accumulation over executions",
            Case {
                accumulation: 3,
                ..on_two
            },
        ),
        named(
            "executions of three",
            Case {
                steps_per_execution: 3,
                ..on_two
            },
        ),
        named(
            "executions of five, groups of two",
            Case {
                steps_per_execution: 5,
                accumulation: 2,
                ..CASE
            },
        ),
        named(
            "replicas that step alone",
            Case {
                sync_every: 3,
                early_stopping: true,
                ..on_two
            },
        ),
        named(
            "central storage",
            Case {
                strategy: central,
                ..CASE
            },
        ),
        named(
            "parameter servers",
            Case {
                strategy: servers,
                ..CASE
            },
        ),
        named(
            "mixed_bfloat16",
            Case {
                policy: "mixed_bfloat16",
                ..CASE
            },
        ),
        named(
            "mixed_float16",
            Case {
                policy: "mixed_float16",
                accumulation: 2,
                ..CASE
            },
        ),
    ]
}

pub fn compiled(case: &Case) -> Bert {
    let args = support::grouped(
        plain_args().optimizer(recipe()),
        case.sync_every,
        case.accumulation,
        case.steps_per_execution,
    );
    support::compiled((case.strategy)(), case.policy, args.drop_unsupported(true))
}

pub fn args(case: &Case) -> FitArgs<'static> {
    let args = FitArgs::new()
        .epochs(2)
        .batch_size(4)
        .seed(3)
        .validation_data_copied(&sentences(7))
        .verbose(false);
    match case.early_stopping {
        true => args.early_stopping(5),
        false => args,
    }
}

pub fn start(case: &Case) -> (Bert, BertRun) {
    let model = compiled(case);
    let run = model.start(&sentences(30), args(case)).expect("it begins");
    (model, run)
}

/// What `fit!` makes of a case.
pub fn by_fit(case: &Case) -> (Bert, History) {
    let model = compiled(case);
    let history = model.fit(&sentences(30), args(case)).expect("it trains");
    assert!(!history.interrupted && history.paused.is_none());
    (model, history)
}

/// Everything of a history that is not a time.
#[track_caller]
pub fn assert_same(found: &History, expected: &History, what: &str) {
    assert_eq!(found.steps, expected.steps, "{what}");
    assert_eq!(found.counters, expected.counters, "{what}");
    let executions = |history: &History| {
        let mut executions = history.executions.clone();
        executions.iter_mut().for_each(|it| it.seconds = 0.0);
        executions
    };
    assert_eq!(executions(found), executions(expected), "{what}");
    let epochs = |history: &History| {
        let mut epochs = history.epochs.clone();
        for epoch in &mut epochs {
            (epoch.seconds, epoch.sequences_per_second) = (0.0, 0.0);
            if let Some(validation) = &mut epoch.validation {
                validation.seconds = 0.0;
            }
        }
        epochs
    };
    assert_eq!(epochs(found), epochs(expected), "{what}");
    assert_eq!(found.best_epoch, expected.best_epoch, "{what}");
    assert_eq!(found.restored_best, expected.restored_best, "{what}");
    assert_eq!(found.loss_scale, expected.loss_scale, "{what}");
    assert_eq!(found.interrupted, expected.interrupted, "{what}");
    assert_eq!(found.paused, expected.paused, "{what}");
}

/// Drives a run in pieces, and compares what it leaves with what `fit!` leaves.
fn check(case: &Case, pieces: fn(&BertRun) -> Result<()>) {
    let (expected, whole) = by_fit(case);
    let (model, run) = start(case);
    pieces(&run).unwrap_or_else(|problem| panic!("{}: {problem}", case.name));
    // What lies between only reads.
    model.predict("w10 w11").expect("it is read");
    let history = run.finish().expect("it ends");
    assert_same(&history, &whole, case.name);
    assert!(
        weights(&model) == weights(&expected),
        "{}: other weights",
        case.name
    );
}

#[test]
fn pieces_are_the_whole() {
    for case in cases() {
        check(&case, |run| {
            for steps in [1, 2, 0, 1] {
                run.step(steps)?;
            }
            run.epoch()?;
            run.step(1)?;
            Ok(())
        });
    }
}

#[test]
fn step_by_step_is_the_whole() {
    for case in cases() {
        check(&case, |run| {
            let mut steps = 0;
            while run.step(1)?.reason != StopReason::Complete {
                steps += 1;
                assert!(steps < 100, "it has no end");
            }
            Ok(())
        });
    }
}

#[test]
fn a_run_that_is_only_finished_is_a_fit() {
    for case in cases() {
        check(&case, |_| Ok(()));
    }
}

#[test]
fn it_stands_where_it_was_sent() {
    let (_model, run) = start(&CASE);
    let position = |run: &BertRun| {
        let position = run.report().expect("it is free").position;
        (position.step, position.epoch, position.batch)
    };
    assert_eq!(position(&run), (0, 0, 0));
    assert_eq!(run.step(3).expect("a step").reason, StopReason::Reached);
    assert_eq!(position(&run), (3, 0, 3));
    run.until(5).expect("a step");
    assert_eq!(position(&run), (5, 0, 5));
    run.until(2).expect("it stands behind it already");
    assert_eq!(position(&run), (5, 0, 5));
    // The end of an epoch belongs to its last step.
    run.step(3).expect("a step");
    assert_eq!(position(&run), (8, 1, 0));
    assert_eq!(run.history().expect("it is free").epochs.len(), 1);
    let stop = run.epoch().expect("an epoch");
    assert_eq!(
        (stop.reason, stop.position.step),
        (StopReason::Complete, 16)
    );
    let complete = run.step(1).expect("nothing is left");
    assert_eq!(complete.reason, StopReason::Complete);
    assert_eq!(complete.recent.len(), 16);
    let shown = run.to_string();
    assert!(shown.contains("all 16 steps are done"), "{shown}");
    assert!(shown.contains("BertForSequenceClassification"), "{shown}");
    run.finish().expect("it ends");
    let over = run.step(1).expect_err("it is finished");
    assert_eq!(over.code, "SC0521");
    assert!(run.to_string().contains("finished"), "{run}");
}

/// An interrupt, `after` so many batches: the call returns, the run stands between two steps, and goes on.
fn check_interrupted(case: &Case, after: u64) {
    let (expected, whole) = by_fit(case);
    let model = compiled(case);
    let seen = Rc::new(Cell::new(0));
    let counted = Rc::clone(&seen);
    let callback = on_batch_end(move |execution| {
        let before = counted.get();
        counted.set(before + execution.batches);
        if before < after && counted.get() >= after {
            interrupt::request();
        }
    });
    let args = args(case).callbacks(callback);
    let run = model.start(&sentences(30), args).expect("it begins");
    let paused = run.finish().expect("it pauses");
    let note = paused.paused.as_ref().expect("it says so");
    assert!(note.contains("interrupted"), "{note}");
    let stop = run.stop().expect("it is free").expect("it has stopped");
    assert_eq!(stop.reason, StopReason::Interrupted);
    let position = stop.position;
    let group = case.accumulation as u64;
    let is_between = position.batch.is_multiple_of(group) || position.batch == position.batches;
    assert!(is_between, "{}: {position}", case.name);
    let refused = model.freeze("bert").expect_err("the run has it");
    assert_eq!(refused.code, "SC0121");
    let history = run.finish().expect("it goes on");
    assert_same(&history, &whole, case.name);
    assert!(weights(&model) == weights(&expected), "{}", case.name);
}

#[test]
fn an_interrupt_pauses() {
    for case in cases() {
        for after in [1, 4, 8] {
            check_interrupted(&case, after);
        }
    }
}

#[test]
fn a_loop_of_steps_hears_the_interrupt() {
    let (_model, run) = start(&CASE);
    run.step(1).expect("a step");
    interrupt::request();
    let stop = run.step(1).expect("it pauses");
    assert_eq!(
        (stop.reason, stop.position.step),
        (StopReason::Interrupted, 1)
    );
    assert_eq!(run.step(1).expect("a step").position.step, 2);
}

#[test]
fn while_it_lives_the_model_is_read_and_not_changed() {
    let (model, run) = start(&CASE);
    run.step(2).expect("steps");
    let data = sentences(4);
    let code = |result: Result<()>| result.map_err(|problem| problem.code);
    let refused = |result: Result<()>, call: &str| {
        assert_eq!(code(result), Err("SC0121".to_owned()), "{call}");
    };
    refused(model.fit(&data, FitArgs::new()).map(drop), "fit");
    refused(model.start(&data, FitArgs::new()).map(drop), "start");
    refused(model.compile(plain_args()).map(drop), "compile");
    refused(model.build((None, 5)), "build");
    refused(model.freeze("bert").map(drop), "freeze");
    refused(model.unfreeze("bert").map(drop), "unfreeze");
    let gradients = model.gradients(&data).expect("it is read");
    refused(model.apply(gradients).map(drop), "apply");
    let problem = model.compile(plain_args()).expect_err("the run has it");
    let text = format!("{problem:?}");
    assert!(
        text.contains("run.finish()?") && text.contains("drop(run)"),
        "{text}"
    );
    let evaluate = EvaluateArgs::new().verbose(false);
    model.evaluate(&data, evaluate).expect("it is read");
    model.predict("w10").expect("it is read");
    model.placement().expect("it is read");
    assert!(!weights(&model).is_empty());
    drop(run);
    model.compile(plain_args()).expect("it is free");
    let run = model.start(&data, args(&CASE)).expect("it is free");
    run.finish().expect("it ends");
    // The variable still lives.
    model.compile(plain_args()).expect("it is free");
}

#[test]
fn what_a_dropped_run_has_learned_is_resumed() {
    for case in cases() {
        let (expected, whole) = by_fit(&case);
        let (model, run) = start(&case);
        run.step(3).expect("steps");
        drop(run);
        let placement = model.placement().expect("it is read");
        assert!(placement.copies_are_equal(), "{}", case.name);
        let args = args(&case).resume(true);
        let history = model.fit(&sentences(30), args).expect("it goes on");
        assert_eq!(history.steps, whole.steps, "{}", case.name);
        assert_eq!(history.counters, whole.counters, "{}", case.name);
        assert!(weights(&model) == weights(&expected), "{}", case.name);
    }
}

#[test]
fn it_outlives_its_variables() {
    let (expected, whole) = by_fit(&CASE);
    let (model, run) = start(&CASE);
    let other = model.clone();
    drop(model);
    assert_same(&run.finish().expect("it ends"), &whole, "alone");
    assert!(weights(&other) == weights(&expected));
}

#[test]
fn a_step_that_fails_is_not_made() {
    let model = load(&tiny_bert(0.1));
    let args = plain_args().optimizer(SGD::new(1e30));
    model.compile(args).expect("valid arguments");
    let data = sentences(30);
    let run = model.start(&data, self::args(&CASE)).expect("it begins");
    let first = run.step(1).map_err(|problem| problem.code);
    // The first update may leave weights that are no numbers, or only such that the next loss is none.
    let made = run.report().expect("it is free").position.step;
    assert_eq!(made, 1, "{first:?}");
    let before = weights(&model);
    let counters = run.history().expect("it is free").counters;
    for _ in 0..2 {
        let problem = run.step(1).expect_err("the weights are ruined");
        assert_eq!(problem.code, "SC0505");
        let report = run.report().expect("it is free");
        assert_eq!((report.position.step, report.position.batch), (1, 1));
        assert_eq!(report.history.counters, counters);
        let bits = |weights: Vec<(String, Vec<f32>)>| -> Vec<u32> {
            let values = weights.into_iter().flat_map(|(_, values)| values);
            values.map(f32::to_bits).collect()
        };
        assert_eq!(bits(weights(&model)), bits(before.clone()));
    }
    drop(run);
    model.compile(plain_args()).expect("it is free");
}

#[test]
fn its_callbacks_hear_what_those_of_fit_hear() {
    let heard = |drive: fn(&Bert, &Dataset, FitArgs<'static>)| {
        let log = Rc::new(Cell::new((0_u64, 0_u64)));
        let (batches, epochs) = (Rc::clone(&log), Rc::clone(&log));
        let args = args(&CASE)
            .callbacks(on_batch_end(move |execution| {
                let (seen, ended) = batches.get();
                batches.set((seen * 31 + execution.first_batch, ended));
            }))
            .callbacks(on_epoch_end(move |epoch| {
                let (seen, ended) = epochs.get();
                epochs.set((seen, ended * 31 + epoch.epoch + 1));
            }));
        drive(&compiled(&CASE), &sentences(30), args);
        log.get()
    };
    let whole = heard(|model, data, args| {
        model.fit(data, args).expect("it trains");
    });
    let pieces = heard(|model, data, args| {
        let run = model.start(data, args).expect("it begins");
        run.step(3).expect("steps");
        run.finish().expect("it ends");
    });
    assert_eq!(pieces, whole);
}

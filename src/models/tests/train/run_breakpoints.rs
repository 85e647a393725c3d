//! Breakpoints of a run: each stops before its step, which is not made; going on gives the bits of an undisturbed run.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use stratoscope_models::breakpoints::{
    accuracy_drop, custom, every, grad_norm, loss, nan, spike, update_ratio,
};
use stratoscope_models::{Condition, EvaluateArgs, SGD, Stop, StopReason, interrupt};
use stratoscope_strategy::{AsStrategy, ParameterServerStrategy, Partitioner};

use crate::callback_methods::watched;
use crate::runs::{BertRun, CASE, Case, args, assert_same, by_fit, cases, start};
use crate::support::{load, plain_args, sentences, tiny_bert, weights};

/// The run stops before the step after `made` ones.
#[track_caller]
fn stops(run: &BertRun, made: u64, condition: &str) -> Stop {
    let stop = run.epoch().expect("it stops");
    let hit = stop.hit().unwrap_or_else(|| panic!("{stop}"));
    assert_eq!(hit.condition, condition, "{stop}");
    assert_eq!(
        (stop.position.step, hit.step.step),
        (made, made + 1),
        "{stop}"
    );
    stop
}

#[test]
fn a_stopped_run_goes_on_to_the_same_bits() {
    for case in cases() {
        let (expected, whole) = by_fit(&case);
        let (model, run) = start(&case);
        run.break_when(custom(|step| step.step >= 4))
            .expect("a condition");
        let first = run.finish().expect("it stops");
        let note = first.paused.as_ref().expect("it says so");
        assert!(note.contains("custom(…)"), "{note}");
        let stop = run.stop().expect("it is free").expect("it has stopped");
        let hit = stop.hit().expect("a breakpoint").clone();
        assert_eq!(hit.step.step, stop.position.step + 1, "{}", case.name);
        assert!(stop.position.step <= 4);
        let size = hit.step.rows.len();
        let most = 4 * case.accumulation;
        assert!(
            size > most - 4 && size <= most,
            "{}: {size} rows",
            case.name
        );
        assert!(!hit.step.update_ratios.is_empty(), "{}", case.name);
        // Nothing has moved, however often it is tried.
        let before = weights(&model);
        let again = run.step(1).expect("it stops again");
        assert_eq!(
            again.hit().map(|it| &it.step),
            Some(&hit.step),
            "{}",
            case.name
        );
        assert_eq!(again.position, stop.position, "{}", case.name);
        assert!(weights(&model) == before, "{}", case.name);
        run.clear_breakpoints().expect("no condition");
        let made = run.step(1).expect("it is made");
        assert_eq!(made.reason, StopReason::Reached, "{}", case.name);
        let last = made.recent.last().expect("a step");
        assert_eq!(
            (last.loss, last.gradient_norm),
            (hit.step.loss, hit.step.gradient_norm.expect("a norm"))
        );
        let history = run.finish().expect("it ends");
        assert_same(&history, &whole, case.name);
        assert!(weights(&model) == weights(&expected), "{}", case.name);
    }
}

#[test]
fn conditions_that_never_hold_change_nothing() {
    for case in cases() {
        let (expected, whole) = by_fit(&case);
        let (model, run) = start(&case);
        let never = nan()
            | spike(1e6)
            | loss().above(1e6)
            | update_ratio().above(1e6)
            | accuracy_drop().by(0.99);
        run.break_when(never).expect("conditions");
        run.break_when(grad_norm().above(1e9) | custom(|_| false))
            .expect("conditions");
        assert_same(&run.finish().expect("it ends"), &whole, case.name);
        assert!(weights(&model) == weights(&expected), "{}", case.name);
    }
}

#[test]
fn every_so_many_steps() {
    let (expected, whole) = by_fit(&CASE);
    let (model, run) = start(&CASE);
    run.break_when(every(3) | nan()).expect("a condition");
    for made in [3, 6] {
        stops(&run, made, "every(3)");
    }
    // The end of the epoch comes first; the stops do not.
    assert_eq!(run.epoch().expect("an epoch").position.step, 8);
    for made in [9, 12, 15] {
        stops(&run, made, "every(3)");
    }
    assert_eq!(run.step(1).expect("a step").reason, StopReason::Complete);
    assert_same(&run.finish().expect("it ends"), &whole, "every(3)");
    assert!(weights(&model) == weights(&expected));
}

/// The first step with a number above all before it, and a limit just below it.
fn first_record(values: &[f64]) -> (u64, f64) {
    let record = (2..values.len()).find(|&at| values[..at].iter().all(|it| *it < values[at]));
    let at = record.expect("one rises above those before");
    (at as u64, values[at] * (1.0 - 1e-9))
}

#[test]
fn a_number_above_a_limit() {
    let (_, whole) = by_fit(&CASE);
    let losses: Vec<f64> = whole.steps.iter().map(|step| step.loss).collect();
    let norms = whole.executions.iter().filter_map(|it| it.gradient_norm);
    let norms: Vec<f64> = norms.collect();
    let check = |condition: fn(f64) -> Condition, values: &[f64], name: &str| {
        let (made, limit) = first_record(values);
        let (_model, run) = start(&CASE);
        run.break_when(condition(limit)).expect("a condition");
        let stop = run.finish().map(|_| run.stop()).expect("it stops");
        let stop = stop.expect("it is free").expect("it has stopped");
        let hit = stop.hit().unwrap_or_else(|| panic!("{stop}"));
        assert!(hit.condition.starts_with(name), "{stop}");
        assert_eq!(stop.position.step, made, "{stop}");
        let (_model, run) = start(&CASE);
        run.break_when(condition(1e6)).expect("a condition");
        assert!(run.finish().expect("it ends").paused.is_none());
    };
    check(|limit| loss().above(limit), &losses, "loss().above(");
    check(
        |limit| grad_norm().above(limit),
        &norms,
        "grad_norm().above(",
    );
}

#[test]
fn a_number_that_is_none_stops_where_nothing_is_lost() {
    let model = load(&tiny_bert(0.1));
    let optimizer = plain_args().optimizer(SGD::new(1e30));
    model.compile(optimizer).expect("valid arguments");
    let run = model.start(&sentences(30), args(&CASE)).expect("it begins");
    run.break_when(nan()).expect("a condition");
    // The first update may be an error of its own, of weights that are no numbers.
    let _ = run.step(1);
    let stop = run.step(5).expect("it stops");
    let hit = stop.hit().unwrap_or_else(|| panic!("{stop}"));
    assert_eq!((hit.condition.as_str(), stop.position.step), ("nan()", 1));
    assert!(hit.step.non_finite.is_some());
    assert!(stop.to_plain().contains("run.why()"), "{stop}");
}

fn sharded() -> Option<stratoscope_strategy::Strategy> {
    let servers = ParameterServerStrategy::logical(2, 2).expect("logical devices");
    let cut = servers
        .variable_partitioner(Partitioner::MinSize(64))
        .expect("a size");
    Some(cut.synchronous().strategy())
}

/// The ratio of the card is that of the update that is then made.
#[test]
fn the_update_ratio_is_that_of_the_step() {
    let sharded = Case {
        name: "shards",
        strategy: sharded,
        ..CASE
    };
    for case in [CASE, cases()[1], sharded] {
        let (model, run) = start(&case);
        run.step(2).expect("steps");
        run.break_when(update_ratio().above(1e-9))
            .expect("a condition");
        let stop = stops(&run, 2, "update_ratio().above(1e-9)");
        let found = &stop.hit().expect("a breakpoint").step.update_ratios;
        let before = weights(&model);
        run.clear_breakpoints().expect("no condition");
        run.step(1).expect("a step");
        let after = weights(&model);
        // What the card has foretold is what the update has measured, to the bit.
        let made = run.update_ratios().expect("no callback");
        assert_eq!(made.steps.last(), Some(&3), "{}", case.name);
        let last = made.layers.iter().map(|it| (it.layer.as_str(), it.last()));
        let foretold = found.iter().map(|it| (it.layer.as_str(), it.ratio));
        assert!(last.eq(foretold), "{}: {made}, not {found:?}", case.name);
        assert!(found.iter().any(|it| it.layer == "classifier"), "{found:?}");
        assert!(
            found.iter().any(|it| it.layer.ends_with("layer.1")),
            "{found:?}"
        );
        for layer in found {
            let (mut weights, mut change) = (0.0_f64, 0.0_f64);
            let prefix = format!("{}.", layer.layer);
            for ((name, old), (_, new)) in before.iter().zip(&after) {
                if name.starts_with(&prefix) {
                    weights += old.iter().map(|it| f64::from(*it).powi(2)).sum::<f64>();
                    let pairs = old.iter().zip(new);
                    change += pairs
                        .map(|(old, new)| f64::from(new - old).powi(2))
                        .sum::<f64>();
                }
            }
            let expected = (change / weights).sqrt();
            let off = (layer.ratio - expected).abs();
            assert!(
                off <= 1e-4 * expected,
                "{}: {layer:?}, not {expected}",
                case.name
            );
        }
    }
}

#[test]
fn updates_are_measured_at_every_step_and_measuring_changes_nothing() {
    for case in cases() {
        let (expected, whole) = by_fit(&case);
        let (model, run) = start(&case);
        assert!(run.update_ratios().expect("no callback").steps.is_empty());
        run.step(2).expect("steps");
        let seen = run.update_ratios().expect("no callback");
        // A step with the rate 0 changes nothing.
        let recent = run.report().expect("no callback").recent;
        let moving = recent.iter().filter(|it| it.learning_rate > 0.0);
        assert_eq!(seen.steps.len(), moving.count(), "{}", case.name);
        let ratios = seen.layers.iter().flat_map(|it| &it.ratios);
        let mut ratios = ratios.filter(|it| !it.is_nan()).peekable();
        assert!(
            ratios.peek().is_some() && ratios.all(|it| *it > 0.0 && *it < 1.0),
            "{seen}"
        );
        run.measure_updates(false).expect("the run is not over");
        run.epoch().expect("an epoch");
        let same = run.update_ratios().expect("no callback").steps;
        assert_eq!(same, seen.steps, "{}", case.name);
        assert_same(&run.finish().expect("it ends"), &whole, case.name);
        assert!(weights(&model) == weights(&expected), "{}", case.name);
        assert_eq!(
            run.measure_updates(true).map_err(|it| it.code),
            Err("SC0521".to_owned())
        );
    }
}

#[test]
fn a_condition_sees_each_step_once() {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let noted = Rc::clone(&seen);
    let (_model, run) = start(&CASE);
    let note = custom(move |step| {
        noted
            .borrow_mut()
            .push((step.step, step.epoch, step.batch, step.loss));
        false
    });
    run.break_when(note).expect("a condition");
    let history = run.finish().expect("it ends");
    let expected: Vec<_> = (history.steps.iter().zip(0_u64..))
        .map(|(step, index)| (step.step, index / 8, index % 8, step.loss))
        .collect();
    assert_eq!(*seen.borrow(), expected);
}

#[test]
fn an_interrupt_is_stronger_than_a_condition() {
    let (_model, run) = start(&CASE);
    run.break_when(custom(|_| true)).expect("a condition");
    interrupt::request();
    let stop = run.step(1).expect("it pauses");
    assert_eq!(stop.reason, StopReason::Interrupted);
    assert!(run.step(1).expect("it stops").hit().is_some());
}

#[test]
fn conditions_of_a_finished_run_are_refused() {
    let (_model, run) = start(&CASE);
    let code = |condition: Condition| run.break_when(condition).map_err(|it| it.code);
    assert_eq!(code(spike(0.5)), Err("SC0103".to_owned()));
    run.finish().expect("it ends");
    assert_eq!(code(nan()), Err("SC0521".to_owned()));
}

/// A condition is asked when a step has been computed and not been made: it reads the weights of before.
#[test]
fn a_condition_may_read_the_model_and_not_change_it() {
    watched(|| {
        let alone = cases().into_iter().find(|it| it.sync_every > 1);
        for case in [CASE, alone.expect("replicas that step alone")] {
            let (expected, whole) = by_fit(&case);
            let (model, run) = start(&case);
            let seen = Rc::new(RefCell::new(Vec::new()));
            let (noted, read, data) = (Rc::clone(&seen), model.clone(), sentences(7));
            let reads = custom(move |step| {
                assert!(read.num_parameters() > 0);
                let evaluated = read.evaluate(&data, EvaluateArgs::new().verbose(false));
                let loss = evaluated.expect("it is read").loss;
                let refused = read.freeze("bert").expect_err("it is in use");
                noted.borrow_mut().push((step.step, loss, refused.code));
                false
            });
            run.break_when(reads).expect("a condition");
            run.step(3).expect("steps");
            let data = sentences(7);
            let evaluated = model.evaluate(&data, EvaluateArgs::new().verbose(false));
            let before_four = evaluated.expect("it is read").loss;
            assert_same(&run.finish().expect("it ends"), &whole, case.name);
            assert!(weights(&model) == weights(&expected), "{}", case.name);
            let seen = seen.borrow();
            assert_eq!(seen.len(), whole.steps.len(), "{}", case.name);
            assert!(seen.iter().all(|(.., code)| code == "SC0121"), "{seen:?}");
            assert_eq!((seen[3].0, seen[3].1), (4, before_four), "{}", case.name);
        }
    });
}

#[test]
fn after_a_panic_of_a_condition_the_run_stands_before_the_step() {
    for case in cases() {
        let (expected, whole) = by_fit(&case);
        let (model, run) = start(&case);
        let mistake = custom(|step| {
            assert!(step.step < 4, "a mistake of the condition's");
            false
        });
        run.break_when(mistake).expect("a condition");
        for _ in 0..2 {
            let caught = catch_unwind(AssertUnwindSafe(|| run.finish()));
            assert!(caught.is_err(), "{}", case.name);
            let made = run.report().expect("it is free").position.step;
            assert!(made == 3 || made == 4, "{}: {made}", case.name);
        }
        run.clear_breakpoints().expect("no condition");
        let history = run.finish().expect("it goes on");
        assert_same(&history, &whole, case.name);
        assert!(weights(&model) == weights(&expected), "{}", case.name);
    }
}

#[test]
fn a_replay_does_not_stop_and_marks_hold_again_afterwards() {
    let (expected, whole) = by_fit(&CASE);
    let (model, run) = start(&CASE);
    run.break_when(every(3)).expect("a condition");
    for made in [3, 6] {
        stops(&run, made, "every(3)");
    }
    run.step(1).expect("a step");
    let rewound = run.rewind(5).expect("it was made");
    assert_eq!((rewound.step, rewound.interrupted), (5, false), "{rewound}");
    stops(&run, 6, "every(3)");
    // The mark to which it is turned back does not stop it at once.
    let rewound = run.rewind(3).expect("it was made");
    assert_eq!(rewound.step, 3, "{rewound}");
    stops(&run, 6, "every(3)");
    run.clear_breakpoints().expect("no condition");
    assert_same(&run.finish().expect("it ends"), &whole, "every(3)");
    assert!(weights(&model) == weights(&expected));
}

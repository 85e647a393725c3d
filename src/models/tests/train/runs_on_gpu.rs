//! Runs of `start!` on a GPU, or what stands in for one: on one device, on two shares of it, and on the CPU and it
//! together. They do all that runs on the CPU do; where sums have another order, numbers are compared and not bits.

use std::fs;

use stratoscope_diagnostics::Result;
use stratoscope_models::breakpoints::{every, grad_norm, loss, nan, spike, update_ratio};
use stratoscope_models::{
    BertForSequenceClassification, Clipping, FitArgs, History, Run, StopReason, pin, scale,
};
use stratoscope_strategy::{AsStrategy, MirroredStrategy, OneDeviceStrategy, Strategy, cpu};
use tempfile::TempDir;

use crate::support::{
    self, assert_near_by, gpu, heard, is_full, largest_difference, mirrored, plain_args, recipe,
    sentences, weights,
};

type Bert = BertForSequenceClassification;
type BertRun = Run;

/// Two right losses after some steps of AdamW on different devices, as a share of them.
const NEAR: f64 = 2e-3;

/// Devices that are tested, and the CPU devices that compute the same sums.
struct Place {
    name: &'static str,
    strategy: Strategy,
    on_cpu: Option<Strategy>,
}

/// All that a run does, in one process: the kernels are compiled once.
fn check(name: &'static str, strategy: fn() -> Result<Strategy>, on_cpu: Option<Strategy>) {
    let strategy = match strategy() {
        Ok(strategy) => strategy,
        Err(reason) => {
            eprintln!("skipped: {reason}");
            return;
        }
    };
    let place = Place {
        name,
        strategy,
        on_cpu,
    };
    a_run_in_pieces_is_that_of_the_cpu(&place);
    what_is_looked_at_is_that_of_the_cpu(&place);
    it_is_turned_back_and_a_difference_is_reported(&place);
    changes_do_there_what_they_do_on_the_cpu(&place);
    it_goes_on_from_its_checkpoints(&place);
}

#[test]
fn on_one_device() {
    let one = || OneDeviceStrategy::new(gpu()).map(|it| it.strategy());
    check("a GPU", one, None);
}

/// With `STRATOSCOPE_FULL_TESTS` only.
#[test]
fn on_two_shares_of_a_device() {
    if !is_full() {
        return;
    }
    let shares = || MirroredStrategy::logical_on(gpu(), 2).map(|it| it.strategy());
    check("two shares of a GPU", shares, mirrored());
}

/// With `STRATOSCOPE_FULL_TESTS` only; `on_gpu::strategies_on_gpu` trains on such a pair each time.
#[test]
fn on_the_cpu_and_a_device() {
    if !is_full() {
        return;
    }
    let both = || MirroredStrategy::on([cpu(0), gpu()]).map(|it| it.strategy());
    check("cpu and a GPU", both, mirrored());
}

fn compiled(strategy: Option<Strategy>) -> Bert {
    let args = plain_args().optimizer(recipe());
    support::compiled(strategy, "float32", args)
}

/// Four batches an epoch, eight in all.
fn args() -> FitArgs<'static> {
    FitArgs::new()
        .epochs(2)
        .batch_size(8)
        .seed(3)
        .validation_data_copied(&sentences(7))
        .verbose(false)
}

fn started(strategy: Option<Strategy>) -> (Bert, BertRun) {
    let model = compiled(strategy);
    let run = model.start(&sentences(30), args()).expect("it is ready");
    run.keep_snapshots(2, 1000).expect("the run is not over");
    (model, run)
}

#[track_caller]
fn assert_losses(found: &History, expected: &History, name: &str) {
    assert_eq!(found.steps.len(), expected.steps.len(), "{name}");
    for (found, expected) in found.steps.iter().zip(&expected.steps) {
        assert_eq!(found.step, expected.step, "{name}");
        assert_eq!(found.learning_rate, expected.learning_rate, "{name}");
        assert_near_by(found.loss, expected.loss, NEAR);
    }
    assert_eq!(found.counters, expected.counters, "{name}");
}

fn a_run_in_pieces_is_that_of_the_cpu(place: &Place) {
    let Place {
        name,
        strategy,
        on_cpu,
    } = place;
    let (strategy, on_cpu) = (strategy.clone(), on_cpu.clone());
    let whole = compiled(on_cpu)
        .fit(&sentences(30), args())
        .expect("it trains");
    let (model, run) = started(Some(strategy));
    let stop = run.step(2).expect("it steps");
    assert_eq!(
        (stop.reason, stop.position.step),
        (StopReason::Reached, 2),
        "{name}"
    );
    let never = nan() | spike(1e6) | loss().above(1e6) | grad_norm().above(1e6);
    run.break_when(never | update_ratio().above(1e6) | every(3))
        .expect("conditions");
    let stop = run.epoch().expect("it stops");
    assert_eq!(
        (
            stop.hit().expect("a condition").condition.as_str(),
            stop.position.step
        ),
        ("every(3)", 3),
        "{name}"
    );
    run.clear_breakpoints().expect("the run is not over");
    // A condition that holds: the step is not made, and nothing has moved.
    run.break_when(update_ratio().above(1e-9))
        .expect("a condition");
    let before = weights(&model);
    let stop = run.step(1).expect("it stops");
    let ratios = &stop.hit().expect("a condition").step.update_ratios;
    assert!(
        ratios
            .iter()
            .any(|it| it.layer == "classifier" && it.ratio > 0.0),
        "{name}: {ratios:?}"
    );
    assert!(weights(&model) == before, "{name}");
    run.clear_breakpoints().expect("the run is not over");
    assert_eq!(run.epoch().expect("an epoch").position.step, 4, "{name}");
    let history = run.finish().expect("it ends");
    assert_losses(&history, &whole, name);
    assert_eq!(history.epochs.len(), 2, "{name}");
}

fn what_is_looked_at_is_that_of_the_cpu(place: &Place) {
    let Place {
        name,
        strategy,
        on_cpu,
    } = place;
    let (strategy, on_cpu) = (strategy.clone(), on_cpu.clone());
    let (_cpu_model, expected) = started(on_cpu);
    let (model, run) = started(Some(strategy));
    for run in [&expected, &run] {
        run.epoch().expect("it steps");
    }
    let before = weights(&model);
    let (batch, of_cpu) = (
        run.batch().expect("a batch"),
        expected.batch().expect("a batch"),
    );
    assert_eq!(batch.len(), of_cpu.len(), "{name}");
    for (found, expected) in batch.examples.iter().zip(&of_cpu.examples) {
        assert_eq!(
            (found.row, &found.text, &found.label),
            (expected.row, &expected.text, &expected.label)
        );
        assert_eq!(found.replica, expected.replica, "{name}");
        assert_near_by(found.loss, expected.loss, NEAR);
    }
    let pairs = [
        (run.gradients(), expected.gradients()),
        (run.weights(), expected.weights()),
        (run.updates(), expected.updates()),
        (
            run.activations("bert.encoder.layer.1.*"),
            expected.activations("bert.encoder.layer.1.*"),
        ),
    ];
    for (found, expected) in pairs {
        let (found, expected) = (
            found.expect("no device fails"),
            expected.expect("no device fails"),
        );
        assert_eq!(found.names(), expected.names(), "{name}: {}", found.title);
        assert!(found.len() > 1, "{name}: {}", found.title);
        assert_eq!(found.non_finite().count(), 0, "{name}: {}", found.title);
        // An update of Adam can be that of a rounding error where the gradient is one.
        if !found.title.contains("update") {
            assert_near_by(found.total().norm, expected.total().norm, NEAR);
        }
    }
    let (found, of_cpu) = (run.attention(1, 0, 2), expected.attention(1, 0, 2));
    let (found, of_cpu) = (found.expect("attention"), of_cpu.expect("attention"));
    assert_eq!(found.pieces, of_cpu.pieces, "{name}");
    for (found, expected) in found.probabilities.iter().zip(&of_cpu.probabilities) {
        for (found, expected) in found.iter().zip(expected) {
            assert!(
                (found - expected).abs() < 1e-4,
                "{name}: {found} {expected}"
            );
        }
    }
    let rows = |run: &BertRun| {
        let worst = run.worst(5).expect("no device fails").examples;
        let best = run.best(5).expect("no device fails").examples;
        (worst[0].row, worst[0].loss, best.len())
    };
    let (found, of_cpu) = (rows(&run), rows(&expected));
    assert_eq!((found.0, found.2), (of_cpu.0, 5), "{name}");
    assert_near_by(found.1, of_cpu.1, NEAR);
    let (found, of_cpu) = (
        run.data_map().expect("an epoch"),
        expected.data_map().expect("an epoch"),
    );
    assert_eq!(found.examples.len(), 30, "{name}");
    for found in &found.examples {
        let mut others = of_cpu.examples.iter();
        let expected = others
            .find(|it| it.row == found.row)
            .expect("the same rows");
        assert!(
            (found.confidence - expected.confidence).abs() < NEAR,
            "{name}: {found:?}"
        );
    }
    assert!(
        run.why()
            .expect("no device fails")
            .to_string()
            .contains("finite"),
        "{name}"
    );
    assert!(weights(&model) == before, "{name}: looking has changed it");
    let (found, of_cpu) = (
        run.finish().expect("it ends"),
        expected.finish().expect("it ends"),
    );
    assert_losses(&found, &of_cpu, name);
}

fn it_is_turned_back_and_a_difference_is_reported(place: &Place) {
    let Place { name, strategy, .. } = place;
    let strategy = strategy.clone();
    let (_model, run) = started(Some(strategy));
    run.step(7).expect("it steps");
    let first = run.history().expect("no callback").steps;
    for step in [6, 3, 0] {
        let (rewound, notices) = heard(&["SC0529"], || run.rewind(step));
        let rewound = rewound.expect("it was made");
        assert_eq!(
            (rewound.step, rewound.snapshot),
            (step, step / 2 * 2),
            "{name}: {rewound}"
        );
        // On a GPU the bits may differ, and then that is reported.
        assert_eq!(
            rewound.differs.is_some(),
            !notices.is_empty(),
            "{name}: {rewound}"
        );
        if let Some((_, before, now)) = rewound.differs {
            assert_near_by(now, before, NEAR);
        }
        assert_eq!(
            run.history().expect("no callback").steps.len() as u64,
            step,
            "{name}"
        );
    }
    let again = run.finish().expect("it ends").steps;
    for (again, first) in again.iter().zip(&first) {
        assert_near_by(again.loss, first.loss, NEAR);
    }
}

fn changes_do_there_what_they_do_on_the_cpu(place: &Place) {
    let Place {
        name,
        strategy,
        on_cpu,
    } = place;
    let (strategy, on_cpu) = (strategy.clone(), on_cpu.clone());
    let changed = |strategy| {
        let (model, run) = started(strategy);
        run.step(2).expect("it steps");
        run.set_learning_rate(scale(0.5)).expect("a factor");
        run.set_clipping(Clipping::Global(0.5)).expect("a norm");
        run.freeze("bert.embeddings").expect("variables");
        let before = weights(&model);
        run.step(1).expect("it steps");
        let frozen = weights(&model).into_iter().zip(before);
        for ((name, now), (_, before)) in frozen {
            let is_frozen = name.starts_with("bert.embeddings");
            assert_eq!(
                largest_difference(&now, &before) == 0.0,
                is_frozen,
                "{name}"
            );
        }
        run.skip_batch().expect("a batch");
        run.unfreeze("bert.embeddings").expect("variables");
        run.set_learning_rate(pin(1e-4)).expect("a rate");
        let history = run.finish().expect("it ends");
        assert_eq!(history.steps.len(), 7);
        assert_eq!(history.edits.len(), 6, "{:?}", history.edits);
        history
    };
    assert_losses(&changed(Some(strategy)), &changed(on_cpu), name);
}

fn it_goes_on_from_its_checkpoints(place: &Place) {
    let Place { name, strategy, .. } = place;
    let strategy = strategy.clone();
    let folder = TempDir::new().expect("a temporary folder");
    let (model, run) = {
        let model = compiled(Some(strategy.clone()));
        let with = args().checkpoint(folder.path()).every(3).keep_last(9);
        let run = model.start(&sentences(30), with).expect("it is ready");
        (model, run)
    };
    run.step(3).expect("it steps");
    let after_three = weights(&model);
    let whole = run.finish().expect("it ends");
    let path = folder.path().join("step-3");
    assert!(fs::metadata(path.join("manifest.json")).is_ok(), "{name}");
    let again = compiled(Some(strategy));
    let run = again
        .start(&sentences(30), args().resume_from(&path))
        .expect("it is complete");
    assert_eq!(
        run.report().expect("no callback").position.step,
        3,
        "{name}"
    );
    assert!(weights(&again) == after_three, "{name}: other weights");
    assert_losses(&run.finish().expect("it ends"), &whole, name);
    // What lies beside is a model of Hugging Face's kind, with the same weights.
    let loaded = Bert::from_pretrained(path.to_str().expect("UTF-8"), 3).expect("it loads");
    assert!(
        weights(&loaded) == after_three,
        "{name}: other weights in the files"
    );
}

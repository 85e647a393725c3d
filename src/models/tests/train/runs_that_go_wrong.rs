//! Runs that really go wrong, and the breakpoints that stop them: the loss spikes after one bad rate or in one bad
//! batch, the accuracy drops when labels contradict what was learned. And a replay that computes something else.

use std::sync::atomic::{AtomicU32, Ordering};

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Tensor};
use stratoscope_bert::Mode;
use stratoscope_data::{Batch, Dataset, Label, make_regression};
use stratoscope_models::breakpoints::{accuracy_drop, spike};
use stratoscope_models::{
    AdamW, BertForSequenceClassification, CompileArgs, Dense, FitArgs, MeanSquaredError, Model,
    Network, Outputs, Run, SGD, Sequential, Stop, features, pin,
};
use stratoscope_strategy::{Origin, scope};

use crate::support::{contradicted, heard, load, plain_args, sentences, tiny_bert, weights};

fn in_order(batch_size: usize) -> FitArgs<'static> {
    FitArgs::new()
        .batch_size(batch_size)
        .shuffle(false)
        .verbose(false)
}

#[track_caller]
fn condition(stop: &Stop) -> &str {
    &stop.hit().unwrap_or_else(|| panic!("{stop}")).condition
}

fn bert(rate: f64, data: &Dataset) -> (BertForSequenceClassification, Run) {
    let model = load(&tiny_bert(0.0));
    let args = plain_args().optimizer(AdamW::new(rate));
    model.compile(args).expect("valid arguments");
    let run = model.start(data, in_order(8)).expect("it is ready");
    (model, run)
}

/// One step with a rate that is a thousand times too high, found at the next one, undone, and the run learns on.
#[test]
fn one_bad_rate_makes_a_spike_before_which_the_run_stops() {
    let data = sentences(480);
    let (model, run) = bert(1e-3, &data);
    run.break_when(spike(4.0)).expect("a condition");
    let stop = run.step(30).expect("it steps");
    assert!(stop.hit().is_none(), "{stop}");
    let usual = stop.recent.last().expect("a step").loss;
    run.set_learning_rate(pin(3.0)).expect("a rate");
    let stop = run.finish().map(|_| run.stop()).expect("it stops");
    let stop = stop.expect("no callback").expect("it has stopped");
    assert_eq!(condition(&stop), "spike(4.0)");
    let hit = stop.hit().expect("a condition");
    assert!(hit.step.loss > 4.0 * usual, "{stop}");
    // The step with the bad rate is made; what its weights lead to is not.
    assert!((31..=33).contains(&stop.position.step), "{stop}");
    let spoiled = weights(&model);
    assert_eq!(
        run.step(1).expect("it stops again").position.step,
        stop.position.step
    );
    assert!(weights(&model) == spoiled, "the step is not made");
    let rewound = run.rewind(30).expect("a snapshot is held");
    assert_eq!(rewound.dropped.len(), 1, "{rewound}");
    let history = run.finish().expect("it ends");
    assert!(history.paused.is_none(), "{:?}", history.paused);
    assert_eq!(history.steps.len(), 60);
    assert!(
        history
            .steps
            .iter()
            .all(|it| it.loss < 4.0 * usual.max(0.5))
    );
}

/// Targets of one batch in another unit.
#[test]
fn one_bad_batch_makes_a_spike_and_is_left_out() {
    let bad = 88..96;
    let data = make_regression(160, 3, 3)
        .expect("sizes above 0")
        .map(|mut example| {
            if bad.contains(&example.row)
                && let Some(Label::Value(value)) = &mut example.label
            {
                *value *= 1000.0;
            }
            example
        });
    let model = Sequential([Dense(4).seed(1), Dense(1).seed(2)]).expect("a valid model");
    let args = CompileArgs::new()
        .optimizer(SGD::new(1e-3))
        .loss(MeanSquaredError);
    model.compile(args).expect("valid arguments");
    let run = model.start(&data, in_order(8)).expect("it is ready");
    run.break_when(spike(100.0)).expect("a condition");
    let stop = run.epoch().expect("it stops");
    assert_eq!(condition(&stop), "spike(100.0)");
    assert_eq!(stop.position.step, 11, "before the batch that spikes");
    let hit = stop.hit().expect("a condition");
    assert_eq!(hit.step.rows, bad.collect::<Vec<_>>());
    run.skip_batch().expect("a batch");
    let history = run.finish().expect("it ends");
    assert_eq!((history.steps.len(), history.paused), (19, None));
    let last = history.steps.last().expect("a step").loss;
    assert!(last < hit.step.loss / 100.0, "{last}");
}

/// From batch 40 on every label is that of another class.
#[test]
fn labels_that_contradict_what_was_learned_drop_the_accuracy() {
    let (good, rows) = (320, 480);
    let wrong = contradicted(&sentences(rows));
    let wrong: Vec<Label> = wrong.examples.iter().filter_map(|it| it.label).collect();
    let data = sentences(rows).map(|mut example| {
        if example.row >= good {
            example.label = Some(wrong[example.row]);
        }
        example
    });
    let (model, run) = bert(2e-3, &data);
    run.break_when(accuracy_drop()).expect("a condition");
    let stop = run.epoch().expect("it stops");
    assert_eq!(condition(&stop), "accuracy_drop()");
    let hit = stop.hit().expect("a condition");
    let best = hit.step.best_accuracy.expect("it has learned");
    assert!(best > 0.6, "{stop}");
    assert!((40..50).contains(&stop.position.step), "{stop}");
    // The batch is one of those whose labels the model contradicts.
    let batch = run.batch().expect("no device fails");
    assert!(batch.examples.iter().all(|it| it.row >= good));
    let right = batch
        .examples
        .iter()
        .filter(|it| it.is_right() == Some(true))
        .count();
    assert!(right < batch.len() / 2, "{right} of {}", batch.len());
    let before = weights(&model);
    assert_eq!(
        condition(&run.step(1).expect("it stops again")),
        "accuracy_drop()"
    );
    assert!(weights(&model) == before, "the step is not made");
    run.rewind(40).expect("a snapshot is held");
    // The same data without the wrong part has no drop.
    let (_model, run) = bert(2e-3, &sentences(good));
    run.break_when(accuracy_drop()).expect("a condition");
    assert!(run.finish().expect("it ends").paused.is_none());
}

static PASSES: AtomicU32 = AtomicU32::new(0);

/// A network that computes something else each time, as sums on a GPU may.
#[derive(Module, Debug)]
struct Restless {
    dense: Linear,
}

impl Network for Restless {
    type Files = Outputs;

    fn logits(&self, batch: &Batch, _: Mode, device: &Device) -> Tensor<2> {
        let pass = PASSES.fetch_add(1, Ordering::Relaxed);
        self.dense.forward(features(batch, device)) + pass as f32 * 1e-3
    }
}

#[test]
fn a_replay_with_other_losses_is_reported() {
    let device = scope::device().expect("a device");
    let network = Restless {
        dense: LinearConfig::new(3, 1).init(&device),
    };
    let model = Model::with_files(network, Outputs::new("Restless", 1), Origin::current())
        .expect("the device takes it");
    let args = CompileArgs::new()
        .optimizer(SGD::new(1e-3))
        .loss(MeanSquaredError);
    model.compile(args).expect("valid arguments");
    let data = make_regression(80, 3, 3).expect("sizes above 0");
    let run = model.start(&data, in_order(8)).expect("it is ready");
    run.keep_snapshots(4, 100).expect("the run is not over");
    run.step(7).expect("it steps");
    let first = run.history().expect("no callback").steps;
    let (rewound, notices) = heard(&["SC0529"], || run.rewind(6));
    let rewound = rewound.expect("it was made");
    let (step, before, now) = rewound.differs.expect("other losses");
    assert_eq!((step, before), (5, first[4].loss), "{rewound}");
    assert!(now != before, "{rewound}");
    assert_eq!(notices.len(), 1);
    assert!(
        notices[0].message.contains("step 5"),
        "{}",
        notices[0].message
    );
}

//! A fork of a run makes the same steps to the same bits, and does not touch the run that it was made from.

use std::cell::RefCell;
use std::rc::Rc;

use burn::module::Module;
use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig};
use burn::tensor::{Device, Tensor};
use stratoscope_bert::Mode;
use stratoscope_data::{Batch, Dataset};
use stratoscope_models::breakpoints::custom;
use stratoscope_models::{
    BertForSequenceClassification, FitArgs, History, Model, ModelOf, ModelOfRun, Network, Outputs,
    Run, compare, features, on_epoch_end, pin, scale,
};
use stratoscope_strategy::{AsStrategy, ParameterServerStrategy, Strategy};
use tempfile::TempDir;

use crate::support::{self, heard, mirrored, plain_args, recipe, sentences, weights};

type Bert = BertForSequenceClassification;

fn compiled(strategy: Option<Strategy>, accumulation: usize, sync_every: usize) -> Bert {
    let args = plain_args().optimizer(recipe());
    let args = support::grouped(args, sync_every, accumulation, 1);
    support::compiled(strategy, "float32", args)
}

/// Eight batches an epoch, sixteen in all.
fn args() -> FitArgs<'static> {
    let args = FitArgs::new().epochs(2).batch_size(4).seed(3);
    args.validation_data_copied(&sentences(7)).verbose(false)
}

fn losses(history: &History) -> Vec<(u64, u64)> {
    let steps = history.steps.iter();
    steps.map(|it| (it.step, it.loss.to_bits())).collect()
}

/// Stepped in turn, one ahead of the other, and both as the run that was never forked.
#[track_caller]
fn check(strategy: fn() -> Option<Strategy>, accumulation: usize, sync_every: usize) {
    let reference = compiled(strategy(), accumulation, sync_every);
    let whole = reference.fit(&sentences(30), args()).expect("it trains");
    let model = compiled(strategy(), accumulation, sync_every);
    let run = model.start(&sentences(30), args()).expect("it is ready");
    run.step(2).expect("it steps");
    let fork = run.fork().expect("it goes on");
    fork.step(1).expect("it steps");
    run.step(2).expect("it steps");
    fork.step(1).expect("it steps");
    let same = compare([&run, &fork]).expect("both go on");
    assert_eq!((&same.parted, &same.weights), (&None, &None), "{same}");
    let of_fork = fork.finish().expect("it steps");
    let of_run = run.finish().expect("it steps");
    for (model, history) in [(&*model, &of_run), (&fork.model(), &of_fork)] {
        assert_eq!(losses(history), losses(&whole));
        assert_eq!(history.counters, whole.counters);
        assert!(weights(model) == weights(&reference));
        let validated = |history: &History| -> Vec<u64> {
            let epochs = history
                .epochs
                .iter()
                .filter_map(|it| it.validation.as_ref());
            epochs.map(|it| it.loss.to_bits()).collect()
        };
        assert_eq!(validated(history), validated(&whole));
    }
}

#[test]
fn a_fork_has_the_same_bits() {
    check(|| None, 1, 1);
}

#[test]
fn a_fork_of_mirrored_replicas_with_accumulation_has_the_same_bits() {
    check(mirrored, 3, 1);
}

#[test]
fn a_fork_of_replicas_that_step_alone_has_the_same_bits() {
    check(mirrored, 1, 3);
}

#[test]
fn a_fork_on_asynchronous_servers_has_the_same_bits() {
    let servers: fn() -> Option<Strategy> = || {
        let servers = ParameterServerStrategy::logical(2, 2).expect("two and two");
        Some(servers.strategy())
    };
    check(servers, 1, 1);
}

fn started() -> (Bert, Run) {
    let model = compiled(None, 1, 1);
    let run = model.start(&sentences(30), args()).expect("it is ready");
    run.keep_snapshots(4, 1000).expect("the run is not over");
    (model, run)
}

#[test]
fn what_is_changed_in_one_is_not_changed_in_the_other() {
    let (model, run) = started();
    run.step(6).expect("it steps");
    let fork = run.fork().expect("it goes on");
    let here = weights(&model);
    fork.set_learning_rate(scale(0.5)).expect("a factor");
    fork.set_batch_size(8).expect("a size");
    fork.freeze("bert").expect("variables of this name");
    fork.step(3).expect("it steps");
    assert!(weights(&model) == here && weights(&fork.model()) != here);
    run.step(3).expect("it steps");
    let found = compare([&run, &fork]).expect("both go on");
    let parted = found.parted.as_ref().expect("the fork was changed");
    assert_eq!(parted.step, 7, "other examples in its first batch");
    assert_eq!(parted.batches, [Some((0, 6)); 2]);
    assert_eq!([parted.rows[0].len(), parted.rows[1].len()], [4, 6]);
    let text = found.to_plain();
    assert!(
        text.contains("fork 1, after step 6: batches of 8 examples"),
        "{text}"
    );
    let other = found.weights.expect("both have a snapshot after step 8");
    assert_eq!((other.step, other.equal_after), (8, Some(4)));
    assert!(other.variables.len() > 2);
    // The fork can be turned back behind the place where it was made, by itself.
    fork.rewind(3).expect("there are snapshots");
    let again = run.history().expect("no callback");
    assert_eq!(again.steps.len(), 9);
    fork.step(6).expect("it steps");
    let same = compare([&run, &fork]).expect("both go on");
    assert_eq!((&same.parted, &same.weights), (&None, &None), "{same}");
    // To the first step whose weights differ, though no loss differs yet.
    fork.set_learning_rate(pin(1.0)).expect("a rate");
    run.step(1).expect("it steps");
    fork.step(1).expect("it steps");
    let found = compare([&run, &fork]).expect("both go on");
    assert_eq!(found.parted, None);
    let weights = found.weights.expect("another rate");
    assert_eq!((weights.step, weights.equal_after), (10, Some(8)));
}

#[test]
fn a_fork_says_what_it_is_and_leaves_callbacks_and_checkpoints() {
    let folder = TempDir::new().expect("a temporary folder");
    let model = compiled(None, 1, 1);
    let with = args().checkpoint(folder.path()).every(4);
    let with = with.callbacks(on_epoch_end(|_| {}));
    let run = model.start(&sentences(30), with).expect("it is ready");
    run.step(5).expect("it steps");
    let (fork, notices) = heard(&["SC0530"], || run.fork());
    let fork = fork.expect("it goes on");
    assert_eq!(notices.len(), 1);
    assert!(
        notices[0]
            .message
            .contains("without the callback and the checkpoints in"),
        "{}",
        notices[0].message
    );
    let second = run.fork().expect("and again");
    let nested = fork.fork().expect("a fork of a fork");
    let labels = [&fork, &second, &nested].map(|run| {
        let report = run.report().expect("no callback");
        report.fork.expect("it is a fork").label
    });
    assert_eq!(labels, ["fork 1", "fork 2", "fork 1.1"]);
    let text = fork.to_string();
    assert!(
        text.starts_with("fork 1, made after step 5, of BertForSequenceClassification"),
        "{text}"
    );
    assert!(text.contains("of its own: "), "{text}");
    let stop = fork.step(1).expect("it steps");
    assert!(
        stop.to_plain().starts_with("fork 1, next: step 7"),
        "{}",
        stop.to_plain()
    );
    drop(run);
    fork.finish().expect("it does not need the run");
    assert_eq!(fork.fork().expect_err("it is over").code, "SC0521");
    // The model of the run is free, that of a fork is not.
    assert_eq!(
        nested
            .model()
            .fit(&sentences(30), args())
            .expect_err("taken")
            .code,
        "SC0121"
    );
    model.fit(&sentences(30), args()).expect("it is free");
}

#[test]
fn a_fork_names_no_checkpoint_of_the_run() {
    let folder = TempDir::new().expect("a temporary folder");
    let model = compiled(None, 1, 1);
    let with = args().checkpoint(folder.path()).every(4);
    let run = model.start(&sentences(30), with).expect("it is ready");
    run.keep_snapshots(3, 1000).expect("the run is not over");
    run.step(11).expect("it steps");
    let named = |run: &Run| {
        let history = run.history().expect("no callback");
        (history.checkpoint, history.complete_checkpoint)
    };
    assert!(matches!(named(&run), (Some(_), Some(_))));
    let fork = run.fork().expect("it goes on");
    assert_eq!(named(&fork), (None, None));
    fork.rewind(10).expect("a snapshot is held");
    assert_eq!(named(&fork), (None, None));
    let history = fork.finish().expect("it steps");
    assert_eq!(
        (history.checkpoint, history.complete_checkpoint),
        (None, None)
    );
    assert!(matches!(named(&run), (Some(_), Some(_))));
}

/// Two layers with a batch normalization between them.
#[derive(Module, Debug)]
struct Normed {
    hidden: Linear,
    norm: BatchNorm,
    last: Linear,
}

impl Network for Normed {
    type Files = Outputs;

    fn logits(&self, batch: &Batch, _: Mode, device: &Device) -> Tensor<2> {
        let x = self.hidden.forward(features(batch, device));
        self.last.forward(self.norm.forward(x))
    }
}

fn rows(count: usize) -> Dataset {
    let row = |index: usize| [0, 1, 2].map(|at| ((index * 7 + at * 5) % 11) as f32 - 4.0);
    let classes = (0..count).map(|index| (index % 3) as i32);
    Dataset::from_arrays((0..count).map(row), classes).expect("as many labels as rows")
}

fn normed() -> ModelOf<Normed> {
    let device = stratoscope_strategy::cpu(0)
        .resolve()
        .expect("the processor")
        .training();
    device.seed(5);
    let network = Normed {
        hidden: LinearConfig::new(3, 8).init(&device),
        norm: BatchNormConfig::new(8).init(&device),
        last: LinearConfig::new(8, 3).init(&device),
    };
    let model = Model::of(network, Outputs::new("Normed", 3)).expect("there is room");
    model.compile(plain_args()).expect("valid arguments");
    model
}

/// The running mean and variance of replica 0, and all other variables.
fn state(model: &Model) -> (Vec<f32>, Vec<(String, Vec<f32>)>) {
    let model = model
        .typed::<Normed>()
        .expect("a network with running states");
    let running = model.with_network(|network| {
        let norm = &network.norm;
        let both = [&norm.running_mean, &norm.running_var];
        both.map(|it| {
            it.value_sync()
                .into_data()
                .iter::<f32>()
                .collect::<Vec<f32>>()
        })
        .concat()
    });
    (running, weights(&model))
}

#[test]
fn a_condition_reads_the_running_state_of_before() {
    let model = normed();
    let args = FitArgs::new().batch_size(4).verbose(false);
    let run = model.start(&rows(30), args).expect("it is ready");
    run.step(2).expect("it steps");
    let (before, read) = (state(&model).0, Rc::new(RefCell::new(Vec::new())));
    let (own, into) = (model.clone(), Rc::clone(&read));
    let condition = custom(move |_| {
        into.borrow_mut().push(state(&own).0);
        false
    });
    run.break_when(condition).expect("a condition");
    run.step(1).expect("it steps");
    assert_eq!(*read.borrow(), std::slice::from_ref(&before));
    assert_ne!(state(&model).0, before, "the step has changed it");
}

/// What `BatchNorm` changes in its forward passes is in snapshots, checkpoints and forks; looking does not change it, nor does a
/// step that is not made.
#[test]
fn running_state_goes_with_a_run() {
    let folder = TempDir::new().expect("a temporary folder");
    let args = || {
        FitArgs::new()
            .epochs(2)
            .batch_size(4)
            .seed(3)
            .verbose(false)
    };
    let (reference, model, resumed) = (normed(), normed(), normed());
    reference.fit(&rows(30), args()).expect("it trains");
    let with = args().checkpoint(folder.path()).every(5).keep_last(100);
    let run = model.start(&rows(30), with).expect("it is ready");
    run.keep_snapshots(3, 1000).expect("the run is not over");
    run.step(4).expect("it steps");
    let at_four = state(&model);
    run.step(3).expect("it steps");
    let at_seven = state(&model);
    assert_ne!(at_four.0, at_seven.0);
    run.batch().expect("a look");
    run.gradients().expect("a look");
    assert!(state(&model) == at_seven, "looking changes nothing");
    run.break_when(stratoscope_models::breakpoints::every(1))
        .expect("a condition");
    run.step(1).expect("it stops before the step");
    assert!(
        state(&model) == at_seven,
        "a step that is not made changes nothing"
    );
    run.clear_breakpoints().expect("no callback");
    let fork = run.fork().expect("it goes on");
    run.rewind(4).expect("it was made");
    assert!(state(&model) == at_four, "turned back");
    assert!(
        state(&fork.model()) == at_seven,
        "the fork stands where it stood"
    );
    fork.finish().expect("it steps");
    run.finish().expect("it steps");
    assert!(state(&model) == state(&reference));
    assert!(state(&fork.model()) == state(&reference));
    let from = args().resume_from(folder.path().join("step-9"));
    resumed.fit(&rows(30), from).expect("it goes on");
    assert!(state(&resumed) == state(&reference), "from a checkpoint");
}

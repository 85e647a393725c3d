//! Steps that are measured have the bits of others, their phases add up, and planted causes are named.

use std::thread::sleep;
use std::time::Duration;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use stratoscope_bert::{Mode, NamedParameter, named_parameters};
use stratoscope_data::{Batch, Dataset, Encoding, Stream, Tokenize};
use stratoscope_diagnostics::Result;
use stratoscope_models::breakpoints::loss;
use stratoscope_models::{
    AdamW, BertForSequenceClassification, Files, FitArgs, Limit, Model, ModelOf, Network, Profile,
    StepPhase, Task,
};
use stratoscope_strategy::{
    AsStrategy, DeviceMesh, MirroredStrategy, Origin, PipelineStrategy, Shard, scope,
};

use crate::pipeline::{self, deep_bert, one_f_one_b};
use crate::support::{
    self, IdNetwork, id_data, id_files, mirrored, plain_args, sentences, weights,
};

type Bert = BertForSequenceClassification;

fn args() -> FitArgs<'static> {
    let args = FitArgs::new().epochs(2).batch_size(4).seed(3);
    args.validation_data_copied(&sentences(7)).verbose(false)
}

fn model(replicas: usize, accumulation: usize) -> Bert {
    let strategy = if replicas == 1 { None } else { mirrored() };
    let args = support::grouped(plain_args(), 1, accumulation, 1);
    support::compiled(strategy, "float32", args)
}

/// The sum of the phases is the time of a step, within 5 %, and that of the layers the time of the passes of one replica.
#[track_caller]
fn adds_up(profile: &Profile) {
    let sum: f64 = profile.phases.iter().map(|it| it.seconds).sum();
    let share = sum / profile.seconds;
    assert!((share - 1.0).abs() <= 0.05, "{share}: {profile}");
    if profile.replicas.len() == 1 && profile.stages.is_none() {
        let of = |phase| profile.phase(phase);
        let forward: f64 = profile.layers.iter().map(|it| it.forward).sum();
        let backward: f64 = profile.layers.iter().map(|it| it.backward).sum();
        assert!(
            (forward / of(StepPhase::Forward) - 1.0).abs() <= 0.05,
            "{profile}"
        );
        // Adding the gradients up is no layer's.
        assert!(
            backward <= of(StepPhase::Backward) * 1.001 && backward > 0.0,
            "{profile}"
        );
    }
}

#[test]
fn steps_have_the_same_bits_and_count_as_steps_of_the_run() {
    for (replicas, accumulation, recompute) in [(1, 1, false), (2, 1, false), (1, 2, true)] {
        let arguments = || args().recompute(recompute);
        let reference = model(replicas, accumulation);
        let whole = reference
            .fit(&sentences(30), arguments())
            .expect("it trains");
        let model = model(replicas, accumulation);
        let run = model
            .start(&sentences(30), arguments())
            .expect("it is ready");
        run.step(1).expect("it steps");
        let profile = run.profile(3).expect("there are steps");
        assert_eq!((profile.made, profile.steps), (3, 2));
        assert!(profile.first.is_some());
        let history = run.history().expect("no callback");
        assert_eq!(history.steps.len(), 4);
        assert_eq!(profile.replicas.len(), replicas);
        adds_up(&profile);
        assert_eq!((profile.exchanged_bytes > 0.0), replicas > 1);
        let history = run.finish().expect("it goes on");
        assert_eq!(history.counters, whole.counters);
        for (found, expected) in history.steps.iter().zip(&whole.steps) {
            assert_eq!(found.loss.to_bits(), expected.loss.to_bits());
        }
        assert!(weights(&model) == weights(&reference));
    }
}

#[test]
fn layers_have_both_directions_and_the_flops_of_their_shapes() {
    let model = model(1, 1);
    let run = model.start(&sentences(30), args()).expect("it is ready");
    let profile = run.profile(1).expect("there are steps");
    assert_eq!((profile.made, profile.steps, profile.first), (1, 1, None));
    let names: Vec<&str> = profile.layers.iter().map(|it| it.name.as_str()).collect();
    for layer in [
        "bert.embeddings",
        "bert.encoder.layer.0",
        "bert.encoder.layer.1",
        "bert.pooler",
        "classifier",
        "loss",
    ] {
        let found = profile.layer(layer);
        let found = found.unwrap_or_else(|| panic!("{layer} in {names:?}"));
        assert!(found.forward > 0.0 && found.backward > 0.0, "{found:?}");
    }
    // What a profile costs is the number of its marks, which depends on the parts of the network alone.
    let marks = profile.events.len();
    assert!(marks < 40 * names.len(), "{marks} for {names:?}");
    // Tiny BERT: H = 32, inner = 37 or so: read from the variables.
    let shape = |name: &str| {
        let variables = model.variables().into_iter();
        let found = variables.into_iter().find(|(known, _)| known == name);
        found.expect("a variable").1.shape().to_vec()
    };
    let inner = shape("bert.encoder.layer.0.intermediate.dense.weight");
    let hidden = shape("bert.encoder.layer.0.attention.self.query.weight")[0];
    let inner: usize = inner.iter().product::<usize>() / hidden;
    let (rows, length) = (4, profile.replicas[0].positions / 4.0);
    let dense = (4 * hidden * hidden + 2 * hidden * inner) as f64;
    let (rows, hidden) = (f64::from(rows), hidden as f64);
    let forward = 2.0 * rows * length * dense + 4.0 * rows * length * length * hidden;
    let found = profile
        .layer("bert.encoder.layer.0")
        .expect("a layer")
        .flops;
    assert!(
        (found / (3.0 * forward) - 1.0).abs() < 1e-9,
        "{found} {forward}"
    );
    assert!(profile.roofline.flops_per_second > 0.0 && profile.roofline.bytes_per_second > 0.0);
    let html = profile.to_html();
    assert!(html.contains("data:image/svg+xml") && html.contains("bert.encoder.layer.1"));
    let folder = tempfile::tempdir().expect("a folder");
    let saved = profile
        .save(folder.path().join("profile.json"))
        .expect("room");
    let text = std::fs::read_to_string(saved).expect("written");
    assert!(text.contains("bert.encoder.layer.1.output") && text.contains("\"ph\":\"X\""));
}

/// Rows of 7 tokens each.
pub fn even_rows(count: usize) -> Dataset {
    let text = |index: usize| format!("w{} w20 w30 w40 w50", 60 + index % 20);
    let labels = ["red", "green", "blue"];
    Dataset::from_labelled((0..count).map(|index| (text(index), labels[index % 3])))
}

/// A profile of a run under a strategy, and the weights that the run ends with.
fn profiled(
    strategy: &impl AsStrategy,
    recompute: bool,
    profiles: bool,
) -> (Option<Profile>, Vec<(String, Vec<f32>)>) {
    let folder = deep_bert();
    let args = pipeline::args(AdamW::new(1e-3)).gradient_accumulation_steps(1);
    let model = pipeline::compiled(strategy, &folder, args);
    let fit = FitArgs::new().batch_size(8).seed(5).recompute(recompute);
    let run = model.start(&even_rows(48), fit.verbose(false));
    let run = run.expect("it is ready");
    let profile = profiles.then(|| run.profile(4).expect("steps"));
    run.finish().expect("it ends");
    (profile, weights(&model))
}

/// Stages and shards compute what one device computes: the same FLOPs, in the same layers.
#[test]
fn stages_and_shards_are_profiled_with_the_flops_of_one_device() {
    let flops = |profile: &Profile| -> Vec<(String, f64)> {
        let layers = profile.layers.iter().filter(|it| it.flops > 0.0);
        let mut all: Vec<_> = layers.map(|it| (it.name.clone(), it.flops)).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    };
    let of = |strategy: &dyn AsStrategy, recompute| {
        let strategy = strategy.strategy();
        let (profile, weights) = profiled(&strategy, recompute, true);
        let (_, quiet) = profiled(&strategy, recompute, false);
        assert!(weights == quiet, "a profile changes no bit");
        let profile = profile.expect("it was asked for");
        adds_up(&profile);
        for name in [
            "bert.embeddings",
            "bert.encoder.layer.4",
            "bert.pooler",
            "classifier",
        ] {
            let layer = profile.layer(name);
            let layer = layer.unwrap_or_else(|| panic!("{name}: {profile}"));
            assert!(
                layer.forward > 0.0 && layer.backward > 0.0,
                "{name}: {profile}"
            );
        }
        profile
    };
    let one = of(&pipeline::one(), false);
    assert_eq!(flops(&one).len(), 7, "{one}");
    let staged = of(&one_f_one_b(3, 4), false);
    assert_eq!(flops(&staged), flops(&one));
    assert_eq!(staged.replicas.len(), 3);
    let stages = staged.stages.as_ref().expect("it is a pipeline");
    assert_eq!(stages.micro_batches, 4);
    // 4 micro-batches of 2 × 7 positions go through each stage.
    assert!(staged.replicas.iter().all(|it| it.positions == 56.0));
    assert!(
        staged.to_plain().contains("stages without their waits"),
        "{staged}"
    );
    // Two rows of stages compute a half of each micro-batch.
    let mesh = DeviceMesh::logical([2, 3], ["batch", "stage"]).expect("devices");
    let rows = PipelineStrategy::over(&mesh).and_then(|it| it.micro_batches(4));
    let rows = of(&rows.expect("two axes"), false);
    assert_eq!(flops(&rows), flops(&one));
    assert_eq!(rows.replicas.len(), 6);
    assert_eq!(rows.stages.as_ref().map(|it| it.count), Some(3));
    assert!(rows.replicas.iter().all(|it| it.positions == 28.0));
    let again = of(&one_f_one_b(3, 4), true);
    let recomputed = of(&pipeline::one(), true);
    assert_eq!(flops(&again), flops(&recomputed));
    assert!(again.flops() > staged.flops());
    // Under ZeRO-3 the layers are gathered, and computed again in the backward pass.
    let two = MirroredStrategy::logical(2).expect("two");
    let zero = two.shard(Shard::Parameters).expect("several");
    assert_eq!(flops(&of(&zero, false)), flops(&recomputed));
}

#[test]
fn without_a_step_there_is_a_card() {
    let model = model(1, 1);
    let run = model
        .start(&sentences(8), args().epochs(1))
        .expect("it is ready");
    let refused = |reason: &str| {
        let card = run.profile(2).expect_err("there is nothing");
        assert_eq!(card.code, "SC0740");
        assert!(card.message.contains(reason), "{}", card.message);
    };
    assert_eq!(run.profile(0).expect_err("none").code, "SC0740");
    run.break_when(loss().above(0.0)).expect("a condition");
    refused("breakpoint");
    run.clear_breakpoints().expect("none");
    let profile = run.profile(10).expect("steps are left");
    assert!(
        profile.made == 2 && profile.to_plain().contains("made 2 steps"),
        "{profile}"
    );
    refused("has made all its steps");
    run.finish().expect("it ends");
    assert_eq!(run.profile(1).expect_err("over").code, "SC0521");
}

/// A BERT that is slow for its replica 1.
#[derive(Module, Debug)]
struct Uneven {
    inner: IdNetwork,
}

impl Network for Uneven {
    type Files = support::IdFiles;

    fn logits(&self, batch: &Batch, mode: Mode, device: &Device) -> Tensor<2> {
        if let Mode::Train { replica: 1, .. } = mode {
            sleep(Duration::from_millis(250));
        }
        self.inner.logits(batch, mode, device)
    }

    fn parameters(&self) -> Vec<NamedParameter> {
        named_parameters(self)
    }
}

/// Texts of ids.
fn rows(count: usize) -> Vec<(String, usize)> {
    let text = |row: usize| format!("{}:0 {}:0 {}:0", 10 + row % 50, 20 + row % 30, 7 + row % 11);
    (0..count).map(|row| (text(row), row % 3)).collect()
}

#[test]
fn a_replica_that_is_slow_is_the_verdict() {
    let strategy = MirroredStrategy::logical(2).expect("two").strategy();
    let entered = scope::enter(&strategy).expect("no scope is active");
    let inner = support::id_network();
    let model: ModelOf<Uneven> =
        Model::with_files(Uneven { inner }, id_files(), Origin::current()).expect("it fits");
    drop(entered);
    model.compile(plain_args()).expect("valid");
    let args = FitArgs::new().batch_size(4).verbose(false);
    let run = model.start(&id_data(rows(32)), args).expect("it is ready");
    let profile = run.profile(4).expect("steps");
    assert_eq!(profile.verdict.limit, Limit::Imbalance, "{profile}");
    assert!(profile.verdict.sentence.contains("`cpu:1`"), "{profile}");
    adds_up(&profile);
}

/// Files whose tokenizer takes its time: a stream is tokenized while the model trains.
#[derive(Clone, Debug)]
struct SlowFiles(support::IdFiles);

impl Tokenize for SlowFiles {
    fn encode(&self, text: &str, pair: Option<&str>, max_length: usize) -> Result<Encoding> {
        sleep(Duration::from_millis(120));
        self.0.tokenizer().encode(text, pair, max_length)
    }

    fn decode(&self, ids: &[u32]) -> String {
        self.0.tokenizer().decode(ids)
    }

    fn tokens(&self, ids: &[u32]) -> Vec<String> {
        self.0.tokenizer().tokens(ids)
    }

    fn pad_id(&self) -> u32 {
        0
    }

    fn unk_id(&self) -> u32 {
        1
    }

    fn vocab_size(&self) -> usize {
        128
    }
}

impl Files for SlowFiles {
    fn model_name(&self) -> &'static str {
        "SlowNetwork"
    }

    fn tokenizer(&self) -> &dyn Tokenize {
        self
    }

    fn label_names(&self) -> &[String] {
        self.0.label_names()
    }

    fn set_label_names(&mut self, names: Vec<String>) {
        self.0.set_label_names(names);
    }

    fn task(&self) -> Task {
        self.0.task()
    }

    fn max_positions(&self) -> usize {
        64
    }
}

#[derive(Module, Debug)]
struct SlowInput {
    inner: IdNetwork,
}

impl Network for SlowInput {
    type Files = SlowFiles;

    fn logits(&self, batch: &Batch, mode: Mode, device: &Device) -> Tensor<2> {
        self.inner.logits(batch, mode, device)
    }

    fn parameters(&self) -> Vec<NamedParameter> {
        named_parameters(self)
    }
}

#[test]
fn a_source_that_is_slow_is_the_verdict() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rows.csv");
    let lines = rows(24)
        .into_iter()
        .map(|(text, class)| format!("{text},LABEL_{class}\n"));
    let text = std::iter::once("text,label\n".to_owned())
        .chain(lines)
        .collect::<String>();
    std::fs::write(&path, text).expect("room");
    let stream = Stream::csv(&path).expect("it is a file of rows");
    let inner = support::id_network();
    let files = SlowFiles(id_files());
    let model: ModelOf<SlowInput> =
        Model::with_files(SlowInput { inner }, files, Origin::current()).expect("it fits");
    model.compile(plain_args()).expect("valid");
    // One row a batch: the tokenizer sleeps on one thread of those that the model computes with.
    let args = FitArgs::new().batch_size(1).verbose(false);
    let run = model.start(&stream, args).expect("it is ready");
    let profile = run.profile(6).expect("steps");
    assert_eq!(profile.verdict.limit, Limit::Input, "{profile}");
    adds_up(&profile);
}

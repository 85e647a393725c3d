//! A run goes on under another strategy than the one that has written its checkpoint: every pair of strategies, beside the run that
//! was not left. The table of `docs/checkpoints.md` says what is tried here.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use safetensors::SafeTensors;
use stratoscope_models::{
    AdamW, BertForSequenceClassification, CompileArgs, Dense, FitArgs, History, IntoOptimizer,
    MeanSquaredError, SGD, Sequential, accuracy,
};
use stratoscope_strategy::{
    AsStrategy, CentralStorageStrategy, DeviceMesh, LayoutMap, MirroredStrategy, ModelParallel,
    OneDeviceStrategy, ParameterServerStrategy, Partitioner, PipelineStrategy, Shard, Strategy,
    cpu, scope,
};
use tempfile::TempDir;

use crate::support::{
    assert_near_by, assert_near_weights, cross_entropy, heard, load, sentences, tiny_bert, weights,
};

/// A strategy, the replicas that divide a batch, and whether sums have the order of mirrored replicas or of one device.
struct Mesh {
    name: &'static str,
    strategy: fn() -> Option<Strategy>,
    replicas: usize,
    is_exact: bool,
}

const fn mesh(
    name: &'static str,
    replicas: usize,
    is_exact: bool,
    strategy: fn() -> Option<Strategy>,
) -> Mesh {
    Mesh {
        name,
        strategy,
        replicas,
        is_exact,
    }
}

fn mirrored(replicas: usize) -> MirroredStrategy {
    MirroredStrategy::logical(replicas).expect("logical devices")
}

fn divided(shard: Shard) -> Option<Strategy> {
    let divided = mirrored(2).shard(shard).expect("several replicas");
    Some(divided.strategy())
}

fn over(replicas: usize, slices: usize) -> Option<Strategy> {
    let mesh = DeviceMesh::logical([replicas, slices], ["batch", "model"]);
    let over = ModelParallel::over(&mesh.expect("logical devices"));
    Some(over.expect("two axes").strategy())
}

fn servers(servers: usize) -> ParameterServerStrategy {
    let servers = ParameterServerStrategy::logical(2, servers).expect("logical devices");
    let partitioner = Partitioner::FixedShards(2);
    servers.variable_partitioner(partitioner).expect("shards")
}

const ALONE: Mesh = mesh("no strategy", 1, true, || None);
const MIRRORED: Mesh = mesh("mirrored", 2, true, || Some(mirrored(2).strategy()));

const MESHES: [Mesh; 13] = [
    ALONE,
    mesh("one device", 1, true, || {
        let one = OneDeviceStrategy::new(cpu(0)).expect("a processor");
        Some(one.strategy())
    }),
    mesh("model parallel", 1, false, || {
        let slices = ModelParallel::logical(2).expect("logical devices");
        Some(slices.strategy())
    }),
    PIPELINE,
    MIRRORED,
    mesh("Shard::Optimizer", 2, true, || divided(Shard::Optimizer)),
    mesh("Shard::Gradients", 2, true, || divided(Shard::Gradients)),
    mesh("Shard::Parameters", 2, true, || divided(Shard::Parameters)),
    mesh("mesh", 2, false, || over(2, 2)),
    mesh("central", 2, true, || {
        let central = CentralStorageStrategy::logical(2).expect("logical devices");
        Some(central.strategy())
    }),
    // Three servers with two shards of each variable: they are not in the order of the rows.
    mesh("servers", 2, true, || {
        Some(servers(3).synchronous().strategy())
    }),
    mesh("four replicas", 4, true, || Some(mirrored(4).strategy())),
    ROWS_OF_STAGES,
];

const PIPELINE: Mesh = mesh("pipeline", 1, true, || {
    let stages = PipelineStrategy::logical(2).expect("logical devices");
    Some(stages.micro_batches(2).expect("a number").strategy())
});

const ROWS_OF_STAGES: Mesh = mesh("a mesh of stages", 2, true, || {
    let mesh = DeviceMesh::logical([2, 2], ["batch", "stage"]).expect("logical devices");
    let rows = PipelineStrategy::over(&mesh).expect("two axes");
    Some(rows.micro_batches(2).expect("a number").strategy())
});

fn compiled(
    mesh: &Mesh,
    folder: &TempDir,
    optimizer: impl IntoOptimizer,
) -> BertForSequenceClassification {
    let strategy = (mesh.strategy)();
    let _scope = strategy
        .as_ref()
        .map(|it| scope::enter(it).expect("no scope is active"));
    let model = load(folder);
    let args = CompileArgs::new().optimizer(optimizer);
    let args = args.loss(cross_entropy()).metrics([accuracy()]);
    model.compile(args).expect("valid arguments");
    model
}

/// Three steps an epoch.
fn fit() -> FitArgs<'static> {
    FitArgs::new()
        .batch_size(4)
        .seed(5)
        .epochs(2)
        .verbose(false)
}

struct Outcome {
    weights: Vec<(String, Vec<f32>)>,
    history: History,
}

impl Outcome {
    fn of(model: &BertForSequenceClassification, args: FitArgs<'_>) -> Self {
        let history = model.fit(&sentences(12), args).expect("it trains");
        Self {
            weights: weights(model),
            history,
        }
    }

    fn losses(&self) -> Vec<u64> {
        let steps = self.history.steps.iter();
        steps.map(|it| it.loss.to_bits()).collect()
    }

    fn assert_same(&self, expected: &Self, what: &str) {
        assert_eq!(self.losses(), expected.losses(), "{what}");
        assert!(self.weights == expected.weights, "{what}: weights");
        assert_eq!(self.measured(), expected.measured(), "{what}");
    }

    /// What the metrics have counted, which are whole numbers: the first epoch on two strategies.
    fn measured(&self) -> Vec<String> {
        let epochs = self.history.epochs.iter();
        epochs.map(|it| format!("{:?}", it.metrics)).collect()
    }

    fn assert_near(&self, expected: &Self, share: f64, what: &str) {
        let steps = [self, expected].map(|it| &it.history.steps);
        assert_eq!(steps[0].len(), steps[1].len(), "{what}");
        for (found, expected) in steps[0].iter().zip(steps[1]) {
            assert_eq!(found.step, expected.step, "{what}");
            assert_near_by(found.loss, expected.loss, share);
        }
        assert_eq!(self.measured(), expected.measured(), "{what}");
    }
}

/// Runs that write a checkpoint after every second step: in the middle of an epoch, and behind its end.
fn written(mesh: &Mesh, model: &TempDir, optimizer: impl IntoOptimizer) -> (TempDir, Outcome) {
    let folder = TempDir::new().expect("a temporary folder");
    let args = fit().checkpoint(folder.path()).every(2).keep_last(10);
    let outcome = Outcome::of(&compiled(mesh, model, optimizer), args);
    (folder, outcome)
}

fn momentum() -> SGD {
    SGD::new(0.05).momentum(0.9).use_ema(true).ema_momentum(0.5)
}

/// Without dropout every strategy makes the same steps but for rounding, and so does a run that goes from any to any.
#[test]
fn every_strategy_goes_on_with_the_checkpoints_of_every_other() {
    let model = tiny_bert(0.0);
    for from in &MESHES {
        let (folder, whole) = written(from, &model, momentum());
        let step = folder.path().join("step-2");
        for to in MESHES.iter().filter(|to| to.name != from.name) {
            let what = format!("from {} to {}", from.name, to.name);
            let moved = compiled(to, &model, momentum());
            let found = Outcome::of(&moved, fit().resume_from(&step));
            found.assert_near(&whole, 1e-5, &what);
            assert_near_weights(&found.weights, &whole.weights);
            let report = moved.placement().expect("the devices answer");
            assert!(report.copies_are_equal(), "{what}");
        }
    }
}

/// With dropout and Adam's moments: as many replicas have the same masks. Where the sums have the same order, every bit is
/// the same, and nobody needs a note; what a pipeline has begun goes on in parts of the size of its micro-batches.
#[test]
fn as_many_replicas_have_the_same_losses() {
    let model = tiny_bert(0.1);
    let optimizer = || AdamW::new(1e-3).global_clipnorm(0.5);
    for from in &MESHES {
        let (folder, whole) = written(from, &model, optimizer());
        let step = folder.path().join("step-4");
        let is_other = |to: &&Mesh| to.name != from.name && to.replicas == from.replicas;
        // The masks of micro-batches are not those of a batch.
        let can = |to: &&Mesh| ![PIPELINE.name, ROWS_OF_STAGES.name].contains(&to.name);
        for to in MESHES.iter().filter(is_other).filter(can) {
            let what = format!("from {} to {}", from.name, to.name);
            let moved = compiled(to, &model, optimizer());
            let (found, notes) = heard(&["SC0532"], || {
                Outcome::of(&moved, fit().resume_from(&step))
            });
            match from.is_exact && to.is_exact {
                true => {
                    found.assert_same(&whole, &what);
                    assert!(notes.is_empty(), "{what}: {notes:?}");
                }
                false => {
                    found.assert_near(&whole, 1e-4, &what);
                    assert_eq!(
                        notes.len(),
                        usize::from(from.is_exact != to.is_exact),
                        "{what}"
                    );
                }
            }
        }
    }
}

/// Other replicas, or other parts of a batch: the run goes on, and a note names what differs.
#[test]
fn what_differs_is_named() {
    let model = tiny_bert(0.1);
    let (folder, whole) = written(&ALONE, &model, AdamW::new(1e-3));
    let step = folder.path().join("step-2");
    let resumed = |to: &Mesh| {
        let moved = compiled(to, &model, AdamW::new(1e-3));
        let (found, notes) = heard(&["SC0532"], || {
            Outcome::of(&moved, fit().resume_from(&step))
        });
        // The steps before are those of the checkpoint.
        assert_eq!(found.losses()[..2], whole.losses()[..2]);
        assert_eq!(found.history.steps.len(), 6);
        assert!(found.history.edits.is_empty());
        let [note] = notes.as_slice() else {
            unreachable!("one note: {notes:?}")
        };
        format!("{note:?}")
    };
    let note = resumed(&MIRRORED);
    for part in [
        "1 replica in the checkpoint, 2 replicas now",
        "still has 4 examples",
    ] {
        assert!(note.contains(part), "{note}");
    }
    let note = resumed(&PIPELINE);
    assert!(
        note.contains("4 examples at once in the checkpoint, 2 examples at once now"),
        "{note}"
    );
    let note = resumed(&MESHES[2]);
    assert!(note.contains("layers in 2 slices now"), "{note}");
}

/// There and back: the second strategy writes to the same folder, and the first one goes on again.
#[test]
fn a_run_moves_several_times() {
    let model = tiny_bert(0.1);
    let (folder, whole) = written(&MIRRORED, &model, AdamW::new(1e-3));
    for name in ["step-4", "step-6"] {
        fs::remove_dir_all(folder.path().join(name)).expect("it is there");
    }
    let args = || {
        let args = fit().checkpoint(folder.path()).every(2).keep_last(10);
        args.resume_from(folder.path())
    };
    let divided = compiled(&MESHES[7], &model, AdamW::new(1e-3));
    let run = divided.start(&sentences(12), args()).expect("it starts");
    run.step(1).expect("it steps");
    let there = weights(&divided);
    run.step(1).expect("it steps");
    run.rewind(3).expect("it was kept");
    assert!(weights(&divided) == there, "rewound");
    run.step(1).expect("it steps");
    drop(run);
    // It was left, as by the end of the process, after the fourth step.
    assert!(folder.path().join("step-4").exists());
    assert!(!folder.path().join("step-6").exists());
    let again = compiled(&MIRRORED, &model, AdamW::new(1e-3));
    Outcome::of(&again, args()).assert_same(&whole, "there and back");
}

/// The weights of the best epoch, which early stopping returns to, are whole in a checkpoint.
#[test]
fn the_best_epoch_moves_too() {
    let (model, dev) = (tiny_bert(0.1), sentences(5));
    let args = || fit().validation_data(&dev).early_stopping(5);
    // So large a rate makes the second epoch worse than the first.
    let optimizer = || AdamW::new(0.05);
    let folder = TempDir::new().expect("a temporary folder");
    let kept = args().checkpoint(folder.path()).every(2).keep_last(10);
    let whole = Outcome::of(&compiled(&MIRRORED, &model, optimizer()), kept);
    for to in [&MESHES[7], &MESHES[9], &MESHES[10]] {
        let moved = compiled(to, &model, optimizer());
        let found = Outcome::of(&moved, args().resume_from(folder.path().join("step-4")));
        found.assert_same(&whole, to.name);
        assert_eq!(found.history.best_epoch, whole.history.best_epoch);
        assert_eq!(found.history.restored_best, whole.history.restored_best);
    }
}

/// Slices that are cut elsewhere, under a strategy of the same name.
#[test]
fn another_layout_of_the_same_devices() {
    let model = tiny_bert(0.0);
    let (folder, whole) = written(&MESHES[2], &model, momentum());
    let fewer = mesh("fewer slices", 1, false, || {
        let mesh = DeviceMesh::logical([1, 2], ["batch", "model"]).expect("logical devices");
        let layout = LayoutMap::new(&mesh)
            .cut("intermediate.dense.weight", [Some("model"), None])
            .and_then(|it| it.cut("intermediate.dense.bias", [Some("model")]))
            .and_then(|it| it.cut("layer.?.output.dense.weight", [None, Some("model")]));
        let slices = ModelParallel::new(layout.expect("a layout")).expect("two devices");
        Some(slices.strategy())
    });
    let moved = compiled(&fewer, &model, momentum());
    let found = Outcome::of(&moved, fit().resume_from(folder.path().join("step-2")));
    found.assert_near(&whole, 1e-5, "fewer slices");
    assert_near_weights(&found.weights, &whole.weights);
}

/// A `Sequential`, on as many strategies as it can have.
#[test]
fn a_sequential_moves() {
    let rows: Vec<Vec<f32>> = (0..24)
        .map(|row| vec![row as f32 / 24.0, (row % 5) as f32])
        .collect();
    let sums: Vec<f32> = rows.iter().map(|row| row[0] - row[1]).collect();
    let data = stratoscope_data::Dataset::from_arrays(rows, sums).expect("as many of both");
    let run = |mesh: &Mesh, args: FitArgs<'_>| {
        let strategy = (mesh.strategy)();
        let _scope = strategy
            .as_ref()
            .map(|it| scope::enter(it).expect("no scope is active"));
        let layers = [Dense(5).activation("relu").seed(1), Dense(1).seed(2)];
        let model = Sequential(layers).expect("layers");
        let compiled = CompileArgs::new().optimizer(AdamW::new(1e-2));
        let compiled = compiled.loss(MeanSquaredError);
        model.compile(compiled).expect("valid arguments");
        let history = model.fit(&data, args).expect("it trains");
        let losses: Vec<f64> = history.steps.iter().map(|it| it.loss).collect();
        losses
    };
    let folder = TempDir::new().expect("a temporary folder");
    let kept = fit().checkpoint(folder.path()).every(5).keep_last(10);
    let whole = run(&MIRRORED, kept);
    for to in [
        &ALONE,
        &MESHES[5],
        &MESHES[6],
        &MESHES[7],
        &MESHES[9],
        &MESHES[10],
    ] {
        let found = run(to, fit().resume_from(folder.path().join("step-5")));
        assert_eq!(found.len(), whole.len(), "{}", to.name);
        for (found, expected) in found.iter().zip(&whole) {
            assert_near_by(*found, *expected, 1e-5);
        }
    }
}

/// Replicas with weights of their own, and workers with weights of different steps, are not the state of one model.
#[test]
fn what_cannot_be_laid_out_is_refused() {
    let model = tiny_bert(0.1);
    let asynchronous = mesh("asynchronous", 2, true, || Some(servers(2).strategy()));
    let refused = |from: &Mesh, to: &Mesh, sync_every: usize, why: &str| {
        let new = |mesh: &Mesh| {
            let strategy = (mesh.strategy)();
            let _scope = strategy
                .as_ref()
                .map(|it| scope::enter(it).expect("no scope is active"));
            let model = load(&model);
            let args = CompileArgs::new().optimizer(AdamW::new(1e-3));
            let args = args.loss(cross_entropy());
            let args = match sync_every {
                1 => args,
                steps => args.sync_every(steps),
            };
            model.compile(args).expect("valid arguments");
            model
        };
        let folder = TempDir::new().expect("a temporary folder");
        let args = fit().checkpoint(folder.path()).every(2);
        new(from).fit(&sentences(12), args).expect("it trains");
        let moved = new(to);
        let before = weights(&moved);
        let found = moved.fit(&sentences(12), fit().resume_from(folder.path()));
        let found = found.expect_err("it cannot go on");
        assert_eq!(found.code, "SC0527");
        let text = format!("{found:?}");
        assert!(text.contains(why), "{text}");
        assert!(weights(&moved) == before, "nothing has changed");
    };
    let three = mesh("three", 3, true, || Some(mirrored(3).strategy()));
    refused(&MIRRORED, &three, 2, "its own weights and moments");
    refused(&asynchronous, &MIRRORED, 1, "weights of different steps");
    refused(&MIRRORED, &asynchronous, 1, "weights of different steps");
}

/// The folder is that of any model: the same tensors of the same shapes, whatever the strategy.
#[test]
fn a_checkpoint_is_the_same_folder_on_every_mesh() {
    /// Shapes and numbers by name.
    type Tensors = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

    fn tensors(folder: &Path) -> Tensors {
        let bytes = fs::read(folder.join("model.safetensors")).expect("it was written");
        let file = SafeTensors::deserialize(&bytes).expect("tensors");
        let numbers = |bytes: &[u8]| -> Vec<f32> {
            let (words, _) = bytes.as_chunks::<4>();
            words.iter().map(|word| f32::from_le_bytes(*word)).collect()
        };
        let tensors = file.iter();
        tensors
            .map(|(name, it)| (name.to_owned(), (it.shape().to_vec(), numbers(it.data()))))
            .collect()
    }
    let model = tiny_bert(0.0);
    let mut first: Option<Tensors> = None;
    for mesh in &MESHES {
        // Without the average of the weights, which is what a run leaves at its end, behind its last checkpoint.
        let (folder, whole) = written(mesh, &model, SGD::new(0.05).momentum(0.9));
        let found = tensors(&folder.path().join("step-6"));
        assert!(folder.path().join("step-6/config.json").exists());
        let expected = first.get_or_insert_with(|| found.clone());
        assert!(found.keys().eq(expected.keys()), "{}", mesh.name);
        for ((name, (shape, found)), (like, expected)) in found.iter().zip(expected.values()) {
            assert_eq!(shape, like, "{}, {name}", mesh.name);
            for (found, expected) in found.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-4, "{}, {name}", mesh.name);
            }
        }
        // What `from_pretrained` reads is what the run has left.
        let path = folder.path().join("last");
        let path = path.to_str().expect("UTF-8");
        let alone = BertForSequenceClassification::from_pretrained(path, 3).expect("it loads");
        assert!(weights(&alone) == whole.weights, "{}", mesh.name);
    }
}

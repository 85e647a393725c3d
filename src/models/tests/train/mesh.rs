//! A mesh of two axes: replicas along the first one, which divide the batch, each with its layers in slices along the last one.
//! The numbers of mirrored training, what each device keeps, and all that a run can do.

use stratoscope_models::{
    AdamW, BertForSequenceClassification, CompileArgs, EvaluateArgs, FitArgs, History,
    IntoOptimizer, SGD, accuracy,
};
use stratoscope_strategy::{
    AsStrategy, CrossDeviceOps, DeviceMesh, LayoutMap, MirroredStrategy, ModelParallel,
    VariableKind, scope,
};
use tempfile::TempDir;

use crate::support::{
    assert_near_by, assert_near_weights, cross_entropy, load, sentences, tiny_bert, weights,
};

fn mesh(replicas: usize, slices: usize) -> DeviceMesh {
    DeviceMesh::logical([replicas, slices], ["batch", "model"]).expect("logical devices")
}

fn over(replicas: usize, slices: usize) -> ModelParallel {
    ModelParallel::over(&mesh(replicas, slices)).expect("two axes")
}

fn mirrored(replicas: usize) -> MirroredStrategy {
    MirroredStrategy::logical(replicas).expect("logical devices")
}

fn compiled(
    strategy: &impl AsStrategy,
    folder: &TempDir,
    optimizer: impl IntoOptimizer,
) -> BertForSequenceClassification {
    let _scope = scope::enter(strategy).expect("no scope is active");
    let model = load(folder);
    let args = CompileArgs::new().optimizer(optimizer);
    let args = args.loss(cross_entropy()).metrics([accuracy()]);
    model.compile(args).expect("valid arguments");
    model
}

fn fit() -> FitArgs<'static> {
    FitArgs::new().batch_size(4).seed(5).epochs(2)
}

/// Losses and norms of every execution.
fn trace(history: &History) -> Vec<(f64, f64)> {
    let executions = history.executions.iter();
    executions
        .map(|it| (it.loss, it.gradient_norm.unwrap_or(0.0)))
        .collect()
}

/// The gradients of a batch with dropout, whose masks are by replica: of every variable, also where replicas have unequal parts.
#[test]
fn gradients_are_those_of_mirrored_replicas() {
    let (folder, data) = (tiny_bert(0.1), sentences(13));
    let of = |strategy: &dyn AsStrategy| {
        let model = compiled(&strategy.strategy(), &folder, AdamW::new(1e-3));
        let gradients = model.gradients(&data).expect("a gradient");
        (gradients.loss(), gradients.norms())
    };
    for (replicas, slices) in [(2, 2), (3, 2), (2, 4)] {
        let (expected, found) = (of(&mirrored(replicas)), of(&over(replicas, slices)));
        assert_near_by(found.0, expected.0, 1e-6);
        assert_eq!(found.1.len(), expected.1.len());
        for ((name, found), (_, expected)) in found.1.iter().zip(&expected.1) {
            // The gradient by a key's bias is 0 but for rounding.
            if !name.ends_with("key.bias") {
                assert!(
                    (found - expected).abs() <= 1e-6 * expected,
                    "{replicas} × {slices}, {name}: {found}, not {expected}"
                );
            }
        }
        assert!(of(&over(replicas, slices)) == found, "the same bits");
    }
}

/// Steps with every kind of clipping, every pattern of the all-reduce, accumulation, recomputing, frozen layers, a batch that does not
/// divide, validation.
#[test]
fn a_run_is_that_of_mirrored_replicas() {
    let (folder, data) = (tiny_bert(0.1), sentences(13));
    let run = |strategy: &dyn AsStrategy, clip: usize, recompute: bool| {
        let strategy = strategy.strategy();
        let _scope = scope::enter(&strategy).expect("no scope is active");
        let model = load(&folder);
        let optimizer = SGD::new(0.05).momentum(0.9);
        let optimizer = match clip {
            0 => optimizer.global_clipnorm(0.5),
            1 => optimizer.clipnorm(0.05),
            _ => {
                model.freeze("bert.encoder.layer.0").expect("it is there");
                optimizer.use_ema(true).ema_momentum(0.5)
            }
        };
        let args = CompileArgs::new()
            .optimizer(optimizer)
            .loss(cross_entropy());
        let args = args.metrics([accuracy()]).gradient_accumulation_steps(2);
        model.compile(args).expect("valid arguments");
        let args = fit().validation_data(&data).recompute(recompute);
        let history = model.fit(&data, args).expect("it trains");
        let metrics: Vec<_> = history.epochs.iter().map(|it| it.metrics.clone()).collect();
        (weights(&model), trace(&history), format!("{metrics:?}"))
    };
    for (clip, ops) in CrossDeviceOps::ALL.into_iter().take(3).enumerate() {
        let expected = run(&mirrored(2).cross_device_ops(ops), clip, false);
        let new = || over(2, 2).cross_device_ops(ops);
        let found = run(&new(), clip, false);
        assert_near_weights(&found.0, &expected.0);
        for (found, expected) in found.1.iter().zip(&expected.1) {
            assert_near_by(found.0, expected.0, 1e-5);
            assert_near_by(found.1, expected.1, 1e-5);
        }
        assert_eq!(found.2, expected.2, "the same examples are right");
        assert!(run(&new(), clip, false) == found, "the same bits");
        assert!(run(&new(), clip, true) == found, "recomputing");
    }
}

/// Weights, gradients and moments, by device; and the bytes of the all-reduce, between the first devices of the replicas.
#[test]
fn each_replica_has_all_variables_on_its_devices() {
    let model = compiled(&over(2, 2), &tiny_bert(0.1), AdamW::new(1e-3));
    let planned = model.placement().expect("the devices answer").collectives;
    model
        .fit(&sentences(8), fit().epochs(1))
        .expect("it trains");
    let report = model.placement().expect("the devices answer");
    let (mut cut, mut whole) = (0, 0);
    for row in report.variables.iter().filter(|row| !row.beside) {
        let places: Vec<usize> = row.copies.iter().map(|it| it.device).collect();
        match row.kind {
            VariableKind::Sharded => {
                cut += row.bytes;
                assert_eq!(places, [0, 1, 2, 3], "{}", row.name);
                assert_eq!(row.copies[0].rows, row.copies[2].rows);
                assert_ne!(row.copies[0].rows, row.copies[1].rows);
            }
            kind => {
                whole += row.bytes;
                assert_eq!(kind, VariableKind::Mirrored);
                assert_eq!(places, [0, 2], "{}", row.name);
            }
        }
    }
    assert!(report.copies_are_equal());
    for device in 0..4 {
        let own = match device % 2 {
            0 => whole + cut / 2,
            _ => cut / 2,
        };
        let totals = report.device_totals(device);
        assert_eq!(totals.weights, own);
        assert_eq!(totals.slots, [own; 3], "gradients and two moments");
        let column = &report.devices[device];
        assert_eq!(
            (column.replica, column.slice),
            (Some(device / 2), Some(device % 2))
        );
    }
    let [done] = report.collectives.as_slice() else {
        unreachable!("one all-reduce: {:?}", report.collectives)
    };
    assert_eq!(done.hops, planned[0].hops, "the plan is what happens");
    assert_eq!(done.payload_bytes, whole + cut);
    let ends = done.hops.iter().flat_map(|hop| &hop.arrows);
    let ends: Vec<(usize, usize)> = ends.map(|it| (it.from, it.to)).collect();
    assert_eq!(ends, [(2, 0), (0, 2)]);
    let verdict = report.verdict();
    assert!(
        verdict.ends_with("equal on all 2 replicas, 20 of them in slices on 2 devices of each"),
        "{verdict}"
    );
    let text = report.to_plain();
    let in_one_line = text.replace('\n', " ");
    let of_replicas = ["replica 0: ", "replica 1: ", "has slice 0", "has slice 1"];
    for part in of_replicas
        .into_iter()
        .chain(["slice 0 rows 0–", "slice 1 columns "])
    {
        assert!(in_one_line.contains(part), "{text}");
    }
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

/// Stepped, looked at, rewound, saved after some steps and gone on with, evaluated, asked and changed by hand.
#[test]
fn a_run_can_do_what_other_runs_can() {
    let (folder, data) = (tiny_bert(0.1), sentences(16));
    let new = || compiled(&over(2, 2), &folder, AdamW::new(1e-3));
    let model = new();
    let run = model.start(&data, fit().verbose(false)).expect("it starts");
    run.step(3).expect("it steps");
    let there = weights(&model);
    run.step(2).expect("it steps");
    run.rewind(3).expect("it was kept");
    assert!(weights(&model) == there, "rewound");
    drop(run.gradients());
    drop(run.updates());
    drop(run.weights());
    assert!(weights(&model) == there, "looking changes nothing");
    run.finish().expect("it ends");
    let straight = new();
    let place = TempDir::new().expect("a temporary folder");
    let path = place.path().join("run");
    let path = path.to_str().expect("UTF-8");
    let kept = straight.fit(&data, fit().checkpoint(path).every(4));
    kept.expect("it trains");
    assert!(weights(&model) == weights(&straight), "the same steps");
    // The folder is that of any model: on one device, and mirrored.
    let last = format!("{path}/last");
    let alone = BertForSequenceClassification::from_pretrained(&last, 3).expect("it loads");
    let of_copies = {
        let _scope = scope::enter(&mirrored(2)).expect("no scope is active");
        BertForSequenceClassification::from_pretrained(&last, 3).expect("it loads")
    };
    for other in [&alone, &of_copies] {
        assert!(weights(other) == weights(&straight), "whole");
        let args = CompileArgs::new().optimizer(AdamW::new(1e-3));
        let args = args.loss(cross_entropy()).metrics([accuracy()]);
        other.compile(args).expect("valid arguments");
        let results =
            [&straight, other].map(|it| it.evaluate(&data, EvaluateArgs::new()).expect("a result"));
        assert_near_by(results[0].loss, results[1].loss, 1e-6);
        let [mine, theirs] = [&straight, other].map(|it| it.predict(&data).expect("predictions"));
        for (mine, theirs) in mine.rows.iter().zip(&theirs.rows) {
            assert_eq!(mine.label, theirs.label);
            assert_near_by(mine.probabilities[0], theirs.probabilities[0], 1e-5);
        }
    }
    // As after a crash: what was written last is of the fourth step, with the moments of all slices.
    std::fs::remove_dir_all(format!("{path}/step-8")).expect("it is there");
    let resumed = new();
    resumed
        .fit(&data, fit().resume_from(path))
        .expect("it goes on");
    assert!(weights(&resumed) == weights(&straight));
}

/// A step by hand on a mesh is that of mirrored replicas.
#[test]
fn a_step_by_hand_reaches_all_devices() {
    let (folder, data) = (tiny_bert(0.1), sentences(8));
    let step = |strategy: &dyn AsStrategy| {
        let model = compiled(&strategy.strategy(), &folder, SGD::new(0.05).momentum(0.9));
        for _ in 0..2 {
            let gradients = model.gradients(&data).expect("a gradient");
            model.apply(gradients).expect("a step");
        }
        let report = model.placement().expect("the devices answer");
        assert!(report.copies_are_equal(), "{}", report.verdict());
        weights(&model)
    };
    assert_near_weights(&step(&over(2, 2)), &step(&mirrored(2)));
}

/// Fewer slices than the layout for BERT has, and a table that each replica puts together before a pass.
#[test]
fn a_layout_cuts_in_each_replica() {
    let (folder, data) = (tiny_bert(0.1), sentences(12));
    let run = |strategy: &dyn AsStrategy| {
        let optimizer = SGD::new(0.05).momentum(0.9);
        let model = compiled(&strategy.strategy(), &folder, optimizer);
        model.fit(&data, fit()).expect("it trains");
        model
    };
    let (rows, columns) = ([Some("model"), None], [None, Some("model")]);
    let layout = LayoutMap::new(&mesh(2, 2))
        .cut("intermediate.dense.weight", rows)
        .and_then(|it| it.cut("intermediate.dense.bias", [Some("model")]))
        .and_then(|it| it.cut("layer.?.output.dense.weight", columns))
        .and_then(|it| it.cut("word_embeddings.weight", rows));
    let strategy = ModelParallel::new(layout.expect("axes of the mesh")).expect("a mesh");
    let model = run(&strategy);
    assert_near_weights(&weights(&model), &weights(&run(&mirrored(2))));
    assert!(
        model
            .placement()
            .expect("the devices answer")
            .copies_are_equal()
    );
}

/// What does not fit a mesh gets a card that names it.
#[test]
fn what_does_not_fit_is_refused() {
    let code = |found: stratoscope_diagnostics::Result<ModelParallel>| {
        found.map_or_else(|problem| problem.code.clone(), |_| "accepted".to_owned())
    };
    let three = DeviceMesh::logical([2, 2, 2], ["batch", "text", "model"]).expect("devices");
    assert_eq!(code(ModelParallel::over(&three)), "SC0627");
    assert_eq!(code(ModelParallel::over(&mesh(4, 1))), "SC0627");
    assert_eq!(
        code(ModelParallel::new(LayoutMap::new(&mesh(4, 1)))),
        "SC0627"
    );
    // Four heads.
    let folder = tiny_bert(0.1);
    let path = folder.path().to_str().expect("UTF-8");
    let _scope = scope::enter(&over(2, 3)).expect("no scope is active");
    let found = BertForSequenceClassification::from_pretrained(path, 3);
    assert_eq!(found.expect_err("three slices").code, "SC0625");
}

//! Devices that compute each layer together, with slices of its weights: the numbers of one device, what each device keeps,
//! all that a run can do, and what is refused.

use stratoscope_models::{
    AdamW, BertForMaskedLM, BertForSequenceClassification, CompileArgs, Dense, EvaluateArgs,
    FitArgs, History, IntoOptimizer, Lamb, Lora, Model, SGD, Sequential, accuracy,
};
use stratoscope_strategy::{
    AsStrategy, DeviceMesh, LayoutMap, ModelParallel, OneDeviceStrategy, VariableKind, cpu, scope,
};
use tempfile::TempDir;

use crate::support::{
    assert_near_by, assert_near_weights, cross_entropy, gpu, load, sentences, tiny_bert, weights,
};

fn sliced(devices: usize) -> ModelParallel {
    ModelParallel::logical(devices).expect("logical devices")
}

fn one() -> OneDeviceStrategy {
    OneDeviceStrategy::new(cpu(0)).expect("a processor")
}

fn under<T>(strategy: &impl AsStrategy, build: impl FnOnce() -> T) -> T {
    let _scope = scope::enter(strategy).expect("no scope is active");
    build()
}

fn compiled(
    strategy: &impl AsStrategy,
    folder: &TempDir,
    optimizer: impl IntoOptimizer,
) -> BertForSequenceClassification {
    under(strategy, || {
        let model = load(folder);
        let args = CompileArgs::new().optimizer(optimizer);
        let args = args.loss(cross_entropy()).metrics([accuracy()]);
        model.compile(args).expect("valid arguments");
        model
    })
}

fn fit() -> FitArgs<'static> {
    FitArgs::new().batch_size(4).seed(5).epochs(2)
}

/// Losses and norms of every execution, to the bit.
fn trace(history: &History) -> Vec<(u64, Option<u64>)> {
    let executions = history.executions.iter();
    executions
        .map(|it| (it.loss.to_bits(), it.gradient_norm.map(f64::to_bits)))
        .collect()
}

/// The gradients of a batch, with dropout: of every variable, on two and four devices.
#[test]
fn gradients_are_those_of_one_device() {
    let (folder, data) = (tiny_bert(0.1), sentences(12));
    let of = |strategy: &dyn AsStrategy| {
        let model = compiled(&strategy.strategy(), &folder, AdamW::new(1e-3));
        let gradients = model.gradients(&data).expect("a gradient");
        (gradients.loss(), gradients.norms())
    };
    let expected = of(&one());
    for devices in [2, 4] {
        let found = of(&sliced(devices));
        assert_near_by(found.0, expected.0, 1e-6);
        assert_eq!(found.1.len(), expected.1.len());
        for ((name, found), (_, expected)) in found.1.iter().zip(&expected.1) {
            // The gradient by a key's bias is 0 but for rounding.
            if !name.ends_with("key.bias") {
                assert!(
                    (found - expected).abs() <= 1e-6 * expected,
                    "{name}: {found}, not {expected}"
                );
            }
        }
    }
}

/// Steps with every kind of clipping, accumulation, recomputing, frozen layers, a batch that does not divide: the weights of one
/// device but for rounding, and the same bits in each run.
#[test]
fn a_run_is_that_of_one_device() {
    let (folder, data) = (tiny_bert(0.1), sentences(13));
    let run = |strategy: &dyn AsStrategy, clip: usize, recompute: bool| {
        let strategy = strategy.strategy();
        let model = under(&strategy, || load(&folder));
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
        (weights(&model), trace(&history))
    };
    for clip in 0..3 {
        let expected = run(&one(), clip, false);
        let found = run(&sliced(2), clip, false);
        assert_near_weights(&found.0, &expected.0);
        assert!(
            run(&sliced(2), clip, false) == found,
            "the same bits in each run"
        );
        assert!(
            run(&sliced(2), clip, true) == found,
            "recomputing changes no bit"
        );
    }
}

/// Weights, gradients and moments, by device: whole heads, rows of the first products, columns of the second ones, all else on
/// the first device.
#[test]
fn a_device_keeps_its_slices_with_their_moments() {
    let model = compiled(&sliced(2), &tiny_bert(0.1), AdamW::new(1e-3));
    model
        .fit(&sentences(8), fit().epochs(1))
        .expect("it trains");
    let report = model.placement().expect("the devices answer");
    let (mut cut, mut whole) = (0, 0);
    for row in report.variables.iter().filter(|row| !row.beside) {
        let axis = if row.name.ends_with("output.dense.weight") {
            1
        } else {
            0
        };
        match row.kind {
            VariableKind::Sharded => {
                cut += row.bytes;
                let half = row.shape[axis] / 2;
                let found: Vec<_> = row
                    .copies
                    .iter()
                    .map(|it| (it.axis, it.rows.clone()))
                    .collect();
                let expected = [(axis, Some(0..half)), (axis, Some(half..2 * half))];
                assert_eq!(found, expected, "{}", row.name);
            }
            _ => {
                whole += row.bytes;
                assert_eq!(
                    (row.copies.len(), row.copies[0].device),
                    (1, 0),
                    "{}",
                    row.name
                );
            }
        }
    }
    // Per layer 4·H² + 2·H·F numbers, and the biases of query, key, value and the first product of the feed-forward part.
    assert_eq!(cut, 4 * 2 * (4 * 32 * 32 + 2 * 32 * 64 + 3 * 32 + 64));
    for (device, own) in [(0, whole + cut / 2), (1, cut / 2)] {
        let totals = report.device_totals(device);
        assert_eq!(totals.weights, own);
        assert_eq!(totals.slots, [own; 3], "gradients and two moments");
    }
    let text = report.to_plain();
    assert!(text.contains("20 of them in slices on 2 devices"), "{text}");
}

/// Stepped, looked at, rewound, saved after some steps and gone on with, evaluated and asked: as on one device.
#[test]
fn a_run_can_do_what_other_runs_can() {
    let (folder, data) = (tiny_bert(0.1), sentences(16));
    let new = || compiled(&sliced(2), &folder, AdamW::new(1e-3));
    let model = new();
    let run = model.start(&data, fit().verbose(false)).expect("it starts");
    run.step(3).expect("it steps");
    let there = weights(&model);
    run.step(2).expect("it steps");
    run.rewind(3).expect("it was kept");
    assert!(weights(&model) == there, "rewound");
    drop(run.gradients());
    drop(run.updates());
    assert!(weights(&model) == there, "looking changes nothing");
    run.finish().expect("it ends");
    let straight = new();
    let place = TempDir::new().expect("a temporary folder");
    let path = place.path().join("run");
    let path = path.to_str().expect("UTF-8");
    let kept = straight.fit(&data, fit().checkpoint(path).every(4));
    kept.expect("it trains");
    assert!(weights(&model) == weights(&straight), "the same steps");
    // The folder is that of any model.
    let last = format!("{path}/last");
    let alone = BertForSequenceClassification::from_pretrained(&last, 3).expect("it loads");
    assert!(
        weights(&alone) == weights(&straight),
        "whole, on one device"
    );
    let args = CompileArgs::new()
        .optimizer(AdamW::new(1e-3))
        .loss(cross_entropy())
        .metrics([accuracy()]);
    alone.compile(args).expect("valid arguments");
    let results =
        [&straight, &alone].map(|it| it.evaluate(&data, EvaluateArgs::new()).expect("a result"));
    assert_near_by(results[0].loss, results[1].loss, 1e-6);
    let [mine, theirs] = [&straight, &alone].map(|it| it.predict(&data).expect("predictions"));
    for (mine, theirs) in mine.rows.iter().zip(&theirs.rows) {
        assert_eq!(mine.label, theirs.label);
        assert_near_by(mine.probabilities[0], theirs.probabilities[0], 1e-5);
    }
    // As after a crash: what was written last is of the fourth step, with the moments of all slices.
    std::fs::remove_dir_all(format!("{path}/step-8")).expect("it is there");
    let resumed = new();
    resumed
        .fit(&data, fit().resume_from(path))
        .expect("it goes on");
    assert!(weights(&resumed) == weights(&straight));
}

/// Other layouts: only the feed-forward parts; rows of a table, which is put together before each pass.
#[test]
fn a_layout_cuts_what_it_names() {
    let (folder, data) = (tiny_bert(0.1), sentences(12));
    let run = |strategy: &dyn AsStrategy| {
        let optimizer = SGD::new(0.05).momentum(0.9);
        let model = compiled(&strategy.strategy(), &folder, optimizer);
        model.fit(&data, fit()).expect("it trains");
        model
    };
    let mesh = DeviceMesh::logical([1, 2], ["batch", "model"]).expect("two devices");
    let (rows, columns) = ([Some("model"), None], [None, Some("model")]);
    let layout = LayoutMap::new(&mesh)
        .cut("intermediate.dense.weight", rows)
        .and_then(|it| it.cut("intermediate.dense.bias", [Some("model")]))
        .and_then(|it| it.cut("layer.?.output.dense.weight", columns))
        .and_then(|it| it.cut("word_embeddings.weight", rows))
        .and_then(|it| it.cut("pooler.dense.weight", columns));
    let strategy = ModelParallel::new(layout.expect("axes of the mesh")).expect("a mesh");
    let model = run(&strategy);
    assert_near_weights(&weights(&model), &weights(&run(&one())));
    let cut = model.placement().expect("the devices answer").variables;
    let cut = cut.iter().filter(|row| row.kind == VariableKind::Sharded);
    assert_eq!(cut.count(), 2 * 3 + 2);
}

/// A model whose decoder is its table of word embeddings.
#[test]
fn a_masked_model_trains_in_slices() {
    let folder = {
        let tiny = tiny_bert(0.1);
        let model = load(&tiny);
        let folder = TempDir::new().expect("a temporary folder");
        model.save_pretrained(folder.path()).expect("room");
        folder
    };
    let run = |strategy: &dyn AsStrategy| {
        let model = under(&strategy.strategy(), || {
            let path = folder.path().to_str().expect("UTF-8");
            let model = BertForMaskedLM::from_pretrained(path).expect("it loads");
            let args = CompileArgs::new()
                .optimizer(SGD::new(0.05))
                .loss(cross_entropy());
            model.compile(args).expect("valid arguments");
            model
        });
        let texts: Vec<String> = (0..8)
            .map(|at| format!("w{} w{} w40", 10 + at, 60 + at))
            .collect();
        let data = stratoscope_data::Dataset::from_texts(texts);
        model.fit(&data, fit().epochs(1)).expect("it trains");
        weights(&model)
    };
    assert_near_weights(&run(&sliced(2)), &run(&one()));
}

/// On the CPU and a GPU together, without dropout: that of some heads takes burn's operations on a GPU, which tune for minutes.
#[test]
fn slices_train_alike_on_gpu() {
    let gpu = gpu();
    if gpu.resolve().is_err() {
        return;
    }
    let (folder, data) = (tiny_bert(0.0), sentences(8));
    let run = |strategy: &dyn AsStrategy| {
        let optimizer = SGD::new(0.05).momentum(0.9);
        let model = compiled(&strategy.strategy(), &folder, optimizer);
        model.fit(&data, fit().epochs(1)).expect("it trains");
        weights(&model)
    };
    let strategy = ModelParallel::on([cpu(0), gpu]).expect("two devices");
    assert_near_weights(&run(&strategy), &run(&one()));
}

fn code<T>(found: stratoscope_diagnostics::Result<T>) -> String {
    match found {
        Ok(_) => "accepted".to_owned(),
        Err(problem) => problem.code.clone(),
    }
}

/// What cannot be computed in slices gets a card that names it.
#[test]
fn what_does_not_fit_is_refused() {
    let folder = tiny_bert(0.1);
    let path = folder.path().to_str().expect("UTF-8");
    let build = |strategy: &ModelParallel| {
        under(strategy, || {
            BertForSequenceClassification::from_pretrained(path, 3)
        })
    };
    // Four heads.
    let found = build(&sliced(3)).expect_err("three devices");
    assert_eq!(found.code, "SC0625");
    assert!(found.message.contains("4 attention heads"), "{found}");
    assert_eq!(code(build(&sliced(8))), "SC0625");
    let mesh = |devices: usize| {
        DeviceMesh::logical([1, devices], ["batch", "model"]).expect("logical devices")
    };
    let (rows, columns) = ([Some("model"), None], [None, Some("model")]);
    let with = |layout: stratoscope_diagnostics::Result<LayoutMap>| {
        build(&ModelParallel::new(layout.expect("axes of the mesh")).expect("a mesh"))
    };
    let two = LayoutMap::new(&mesh(2));
    let refused = [
        // A name of Keras, two patterns for one variable, a layout of a matrix for a bias, 3 classes for 2 devices.
        with(two.clone().cut("intermediate.kernel", columns)),
        with(
            two.clone()
                .cut("query.weight", rows)
                .and_then(|it| it.cut("layer.0.*.weight", rows)),
        ),
        with(two.clone().cut("intermediate.dense.*", rows)),
        with(two.clone().cut("classifier.weight", rows)),
    ];
    for found in refused {
        assert_eq!(found.expect_err("it does not fit").code, "SC0626");
    }
    assert_eq!(
        code(two.clone().cut("query.weight", [Some("data"), None])),
        "SC0626"
    );
    assert_eq!(
        code(two.clone().cut("query.weight", [Some("batch"), None])),
        "SC0626"
    );
    assert_eq!(
        code(two.cut("query.weight", [Some("model"), Some("model")])),
        "SC0626"
    );
    // Other networks, adapters, optimizers that need whole variables, steps of each copy alone.
    let two = sliced(2);
    assert_eq!(
        code(under(&two, || Sequential([Dense(3).input_shape(2)]))),
        "SC0628"
    );
    let model = build(&two).expect("it loads");
    assert_eq!(code(model.add_lora(Lora::new(2))), "SC0628");
    let args = || CompileArgs::new().loss(cross_entropy());
    let refuse = |model: &Model, args| code(model.compile(args));
    assert_eq!(refuse(&model, args().optimizer(Lamb::new(1e-3))), "SC0103");
    assert_eq!(
        refuse(&model, args().optimizer(AdamW::new(1e-3)).sync_every(4)),
        "SC0103"
    );
}

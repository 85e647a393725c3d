//! Replicas that divide the state of training among them: the numbers of mirrored training, memory by rows, and all that a
//! run can do.

use stratoscope_models::{
    Adafactor, AdamW, BertForSequenceClassification, CompileArgs, Dense, FitArgs, History,
    IntoOptimizer, Lamb, MeanSquaredError, SGD, Sequential, accuracy,
};
use stratoscope_strategy::{AsStrategy, MirroredStrategy, Shard, VariableKind, scope};
use tempfile::TempDir;

use crate::support::{
    assert_near_weights, cross_entropy, gpu, load, sentences, tiny_bert, weights,
};

fn mirrored(replicas: usize) -> MirroredStrategy {
    MirroredStrategy::logical(replicas).expect("logical devices")
}

fn divided(replicas: usize, shard: Shard) -> MirroredStrategy {
    mirrored(replicas).shard(shard).expect("several replicas")
}

fn compiled(
    strategy: &impl AsStrategy,
    optimizer: impl IntoOptimizer,
) -> BertForSequenceClassification {
    let _scope = scope::enter(strategy).expect("no scope is active");
    let model = load(&tiny_bert(0.1));
    let args = CompileArgs::new().optimizer(optimizer);
    let args = args.loss(cross_entropy()).metrics([accuracy()]);
    model.compile(args).expect("valid arguments");
    model
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

/// Every kind of clipping and of moments, dropout, accumulation, a last batch that does not divide.
#[test]
fn the_numbers_are_those_of_mirrored_training() {
    fn check<O: IntoOptimizer>(what: &str, optimizer: impl Fn() -> O) {
        let data = sentences(13);
        let run = |strategy: &MirroredStrategy| {
            let model = compiled(strategy, optimizer());
            let history = model.fit(&data, fit().validation_data(&data));
            let history = history.expect("it trains");
            let epochs = history.epochs.iter();
            let measured: Vec<_> = epochs
                .map(|it| (it.metrics.clone(), it.validation.as_ref().map(|it| it.loss)))
                .collect();
            (weights(&model), trace(&history), format!("{measured:?}"))
        };
        for replicas in [2, 3] {
            let expected = run(&mirrored(replicas));
            for shard in Shard::ALL {
                let found = run(&divided(replicas, shard));
                assert_eq!(found.1, expected.1, "{what}, {shard}, {replicas} replicas");
                assert!(found == expected, "{what}, {shard}, {replicas} replicas");
            }
        }
    }
    check("AdamW", || AdamW::new(1e-3).global_clipnorm(0.5));
    check("clipnorm", || {
        AdamW::new(1e-3).clipnorm(0.05).layer_decay(0.5)
    });
    check("momentum", || SGD::new(0.1).momentum(0.9).clipvalue(0.01));
    check("use_ema", || {
        AdamW::new(1e-3)
            .amsgrad(true)
            .use_ema(true)
            .ema_momentum(0.5)
    });
}

/// By micro-batches, and layers that are computed once more.
#[test]
fn accumulation_and_recomputing_change_no_bit() {
    let data = sentences(13);
    let run = |strategy: &MirroredStrategy| {
        let _scope = scope::enter(strategy).expect("no scope is active");
        let model = load(&tiny_bert(0.1));
        let args = CompileArgs::new()
            .optimizer(AdamW::new(1e-3))
            .loss(cross_entropy());
        model
            .compile(args.gradient_accumulation_steps(2))
            .expect("valid arguments");
        model.fit(&data, fit().recompute(true)).expect("it trains");
        weights(&model)
    };
    let expected = run(&mirrored(2));
    for shard in Shard::ALL {
        assert!(run(&divided(2, shard)) == expected, "{shard}");
    }
}

/// Networks whose layers are not computed one by one, with states that forward passes change.
#[test]
fn a_sequential_trains_alike() {
    let rows: Vec<Vec<f32>> = (0..24)
        .map(|row| vec![row as f32 / 24.0, (row % 5) as f32])
        .collect();
    let sums: Vec<f32> = rows.iter().map(|row| row[0] - row[1]).collect();
    let data = stratoscope_data::Dataset::from_arrays(rows, sums).expect("as many of both");
    let run = |strategy: &MirroredStrategy| {
        let _scope = scope::enter(strategy).expect("no scope is active");
        let layers = [Dense(5).activation("relu").seed(1), Dense(1).seed(2)];
        let model = Sequential(layers).expect("layers");
        let args = CompileArgs::new()
            .optimizer(AdamW::new(1e-2))
            .loss(MeanSquaredError);
        model.compile(args).expect("valid arguments");
        let history = model.fit(&data, fit()).expect("it trains");
        trace(&history)
    };
    let expected = run(&mirrored(3));
    for shard in Shard::ALL {
        assert_eq!(run(&divided(3, shard)), expected, "{shard}");
    }
}

/// Weights, gradients and moments of every device, as the report counts them.
#[test]
fn a_device_keeps_its_rows() {
    for shard in Shard::ALL {
        let model = compiled(&divided(4, shard), AdamW::new(1e-3));
        let check = |when: &str| {
            let report = model.placement().expect("the devices answer");
            let kind = match shard {
                Shard::Optimizer | Shard::Gradients => VariableKind::Mirrored,
                Shard::Parameters => VariableKind::Sharded,
            };
            assert!(
                report
                    .variables
                    .iter()
                    .filter(|row| !row.beside)
                    .all(|row| row.kind == kind)
            );
            let all: u64 = report
                .variables
                .iter()
                .filter(|row| !row.beside)
                .map(|row| row.bytes)
                .sum();
            let near = |found: u64, parts: u64, what: &str| {
                let expected = all / parts;
                assert!(
                    found.abs_diff(expected) * 10 < expected,
                    "{shard}, {when}, {what}: {found} of {all}"
                );
            };
            let parts = |from: Shard| if shard >= from { 4 } else { 1 };
            for device in 0..4 {
                let totals = report.device_totals(device);
                near(totals.weights, parts(Shard::Parameters), "weights");
                let [gradients, m, v] = totals.slots[..] else {
                    unreachable!("gradients and two moments: {:?}", report.slots)
                };
                near(gradients, parts(Shard::Gradients), "gradients");
                near(m, 4, "m");
                near(v, 4, "v");
            }
            assert!(report.copies_are_equal());
        };
        check("planned");
        model.fit(&sentences(8), fit()).expect("it trains");
        check("measured");
    }
}

/// Checkpoints are whole, and a run goes on from its own with the same bits.
#[test]
fn a_run_is_saved_and_goes_on() {
    let data = sentences(12);
    for shard in Shard::ALL {
        let folder = TempDir::new().expect("a temporary folder");
        let path = folder.path().join("run");
        let path = path.to_str().expect("UTF-8");
        let run = |args: FitArgs<'_>| {
            let model = compiled(&divided(3, shard), AdamW::new(1e-3));
            model.fit(&data, args).expect("it trains");
            weights(&model)
        };
        let straight = run(fit().checkpoint(path).every(3));
        let last = format!("{path}/last");
        let alone = BertForSequenceClassification::from_pretrained(&last, 3).expect("it loads");
        assert!(weights(&alone) == straight, "{shard}: whole, on one device");
        // As after a crash: what was written last is of the third step.
        std::fs::remove_dir_all(format!("{path}/step-6")).expect("it is there");
        assert!(run(fit().resume_from(path)) == straight, "{shard}");
    }
}

#[test]
fn a_run_is_stepped_and_rewound() {
    let data = sentences(24);
    for shard in Shard::ALL {
        let model = compiled(&divided(2, shard), AdamW::new(1e-3));
        let run = model.start(&data, fit()).expect("it starts");
        run.step(3).expect("it steps");
        let there = weights(&model);
        run.step(2).expect("it steps");
        run.rewind(3).expect("it was kept");
        assert!(weights(&model) == there, "{shard}");
        drop(run.gradients());
        drop(run.updates());
        assert!(weights(&model) == there, "{shard}: looking changes nothing");
        run.finish().expect("it ends");
        let straight = compiled(&divided(2, shard), AdamW::new(1e-3));
        straight.fit(&data, fit()).expect("it trains");
        assert!(weights(&model) == weights(&straight), "{shard}");
    }
}

#[test]
fn what_needs_whole_variables_or_replicas_alone_is_refused() {
    let _scope = scope::enter(&divided(2, Shard::Optimizer)).expect("no scope is active");
    let model = load(&tiny_bert(0.1));
    let unbuilt = Sequential([Dense(1).seed(1)]).expect("a layer");
    let refused = [
        model.compile(
            CompileArgs::new()
                .optimizer(Lamb::new(1e-3))
                .loss(cross_entropy()),
        ),
        model.compile(
            CompileArgs::new()
                .optimizer(Adafactor::new(1e-3))
                .loss(cross_entropy()),
        ),
        unbuilt.compile(
            CompileArgs::new()
                .optimizer(Lamb::new(1e-3))
                .loss(MeanSquaredError),
        ),
    ];
    for found in refused {
        let found = found.expect_err("rows are updated");
        assert_eq!(found.code.as_str(), "SC0103");
        assert!(found.to_string().contains("(`shard`)"), "{found}");
    }
    let args = CompileArgs::new()
        .optimizer(SGD::new(0.1))
        .loss(cross_entropy());
    let found = model
        .compile(args.sync_every(4))
        .expect_err("replicas do not step alone");
    assert!(found.to_string().contains("Shard::Optimizer"), "{found}");
}

/// On two shares of a GPU, and on the CPU and a GPU together.
#[test]
fn shards_train_alike_on_gpu() {
    let data = sentences(8);
    let places: [fn() -> stratoscope_diagnostics::Result<MirroredStrategy>; 2] = [
        || MirroredStrategy::logical_on(gpu(), 2),
        || MirroredStrategy::on([stratoscope_strategy::cpu(0), gpu()]),
    ];
    for place in places {
        let run = |shard: Option<Shard>| -> stratoscope_diagnostics::Result<_> {
            let strategy = match shard {
                Some(shard) => place()?.shard(shard)?,
                None => place()?,
            };
            let model = compiled(&strategy, SGD::new(0.1).momentum(0.9));
            model.fit(&data, fit())?;
            Ok(weights(&model))
        };
        let expected = match run(None) {
            Ok(expected) => expected,
            Err(reason) => {
                println!("skipped: {}", reason.one_line());
                return;
            }
        };
        for shard in Shard::ALL {
            let found = run(Some(shard)).expect("the devices are there");
            assert_near_weights(&found, &expected);
        }
    }
}

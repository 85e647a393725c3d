//! Training on a GPU beside the CPU: optimizers, losses, layers, policies, averages, strategies, networks of one's own,
//! `predict` and `evaluate`. Each row trains twice and must give the same losses, weights and answers but for rounding.
//!
//! It needs an adapter; Mesa's software one (lavapipe) is enough.

use std::panic::{AssertUnwindSafe, catch_unwind};

use burn::module::{Module, Param};
use burn::tensor::{Device, FloatDType, Tensor};
use stratoscope_bert::Mode;
use stratoscope_data::{Batch, Dataset, make_classification, make_regression};
use stratoscope_models::{
    Adafactor, Adam, AdamW, BertForSequenceClassification, BinaryCrossentropy,
    CategoricalCrossentropy, CompileArgs, Dense, Dropout, Embedding, EvaluateArgs, FitArgs,
    Flatten, GlobalAveragePooling1D, Hinge, Huber, IntoLoss, IntoOptimizer, KlDivergence, Lamb,
    Layer, Lion, LogCosh, Loss, MeanAbsoluteError, MeanSquaredError, Model, Network, Outputs,
    RMSprop, SGD, Sequential, SquaredHinge, accuracy, features, set_global_policy, warmup_linear,
};
use stratoscope_strategy::device::choice;
use stratoscope_strategy::{
    AsStrategy, CentralStorageStrategy, CrossDeviceOps, MirroredStrategy, OneDeviceStrategy,
    Origin, ParameterServerStrategy, Strategy, cpu, scope,
};

use crate::support::{
    compiled, contradicted, cross_entropy, gpu, is_full, largest_difference, one_gpu, plain_args,
    sentences, weights,
};

/// The limit for losses in `tests/parity/README.md`, as a share of losses above 1.
const LOSS: f64 = 1e-5;
/// The limit for weights after a run.
const WEIGHTS: f32 = 5e-5;

/// What a run gives.
#[derive(Debug)]
struct Outcome {
    losses: Vec<f64>,
    weights: Vec<(String, Vec<f32>)>,
    scores: Vec<f64>,
    evaluated: f64,
}

/// One device of each kind; `None`, and a line that is counted, without an adapter.
fn pair() -> Option<[Strategy; 2]> {
    let adapter = one_gpu()?;
    let processor = OneDeviceStrategy::new(cpu(0)).expect("a processor");
    Some([processor.strategy(), adapter])
}

fn fit() -> FitArgs<'static> {
    FitArgs::new()
        .epochs(2)
        .batch_size(8)
        .seed(3)
        .verbose(false)
}

/// Trains, then predicts and evaluates.
fn outcome(model: &Model, data: &Dataset, args: FitArgs<'_>) -> Outcome {
    let history = model.fit(data, args).expect("it trains");
    let evaluate = EvaluateArgs::new().batch_size(5).verbose(false);
    let rows = model.predict(data.take(7)).expect("answers").rows;
    Outcome {
        losses: history.executions.iter().map(|it| it.loss).collect(),
        weights: weights(model),
        scores: rows
            .iter()
            .flat_map(|row| [vec![row.score], row.probabilities.clone()].concat())
            .collect(),
        evaluated: model.evaluate(data, evaluate).expect("it is compiled").loss,
    }
}

/// Whether two outcomes are equal but for rounding; `factor` widens the limits.
#[track_caller]
fn agree(name: &str, found: &Outcome, expected: &Outcome, factor: f64) {
    println!("{name}: losses {:?}", found.losses);
    let near = |found: f64, expected: f64, what: &str| {
        let limit = factor * LOSS * expected.abs().max(1.0);
        assert!(
            (found - expected).abs() <= limit,
            "{name}: {what} is {found}, on the CPU {expected}"
        );
    };
    assert_eq!(found.losses.len(), expected.losses.len(), "{name}");
    for (step, (found, expected)) in found.losses.iter().zip(&expected.losses).enumerate() {
        near(*found, *expected, &format!("the loss of step {step}"));
    }
    near(found.evaluated, expected.evaluated, "the evaluated loss");
    for (found, expected) in found.scores.iter().zip(&expected.scores) {
        near(*found, *expected, "a score");
    }
    assert_eq!(found.weights.len(), expected.weights.len(), "{name}");
    for ((variable, found), (_, expected)) in found.weights.iter().zip(&expected.weights) {
        let off = largest_difference(found, expected);
        let limit = factor as f32 * WEIGHTS;
        assert!(off <= limit, "{name}: `{variable}` is off by {off:e}");
    }
}

/// Checks every row of a table, and fails with the names of those that failed: a run on a GPU says all that is wrong there.
fn for_each_row<R>(
    rows: impl IntoIterator<Item = (&'static str, R)>,
    check: impl Fn(&'static str, R),
) {
    let mut failed = Vec::new();
    for (name, row) in rows {
        if catch_unwind(AssertUnwindSafe(|| check(name, row))).is_err() {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "not as on the CPU: {failed:?}");
}

fn rows_of(layers: Vec<Layer>, optimizer: impl IntoOptimizer, loss: Loss) -> Sequential {
    let model = Sequential(layers).expect("layers that fit");
    let args = CompileArgs::new().optimizer(optimizer).loss(loss);
    model.compile(args).expect("they agree");
    model
}

fn loss(loss: impl IntoLoss) -> Loss {
    loss.into_loss().expect("a loss")
}

/// Every optimizer with every option. Adam's epsilon is large, so that its steps are proportional to gradients and
/// rounding is not made a whole step.
#[test]
fn optimizers_on_gpu() {
    let Some(devices) = pair() else { return };
    let data = make_classification(24, 4, 3, 1).expect("sizes above 0");
    let adam = || Adam::new(0.05).epsilon(0.1);
    let adamw = || {
        AdamW::new(warmup_linear(0.05, 0.3))
            .epsilon(0.1)
            .weight_decay(0.1)
    };
    let average = || adam().use_ema(true).ema_momentum(0.5);
    // An optimizer belongs to one model: each model makes its own.
    let make = |name: &str| match name {
        "SGD" => SGD::new(0.2).into_optimizer(),
        "momentum" => SGD::new(0.1).momentum(0.9).into_optimizer(),
        "Nesterov" => SGD::new(0.1).momentum(0.9).nesterov(true).into_optimizer(),
        "clipnorm" => SGD::new(0.2).clipnorm(0.1).into_optimizer(),
        "clipvalue" => SGD::new(0.2).clipvalue(0.01).into_optimizer(),
        "global_clipnorm" => SGD::new(0.2).global_clipnorm(0.1).into_optimizer(),
        "Adam" => adam().into_optimizer(),
        "AMSGrad" => adam().amsgrad(true).into_optimizer(),
        "AdamW" => adamw().global_clipnorm(1.0).into_optimizer(),
        "every variable decays" => adamw().decay_all_parameters(true).into_optimizer(),
        "EMA" => average().into_optimizer(),
        "RMSprop" => RMSprop::new(0.02).epsilon(0.01).into_optimizer(),
        "centered RMSprop" => RMSprop::new(0.02)
            .epsilon(0.01)
            .momentum(0.5)
            .centered(true)
            .into_optimizer(),
        "Lion" => Lion::new(0.01).weight_decay(0.1).into_optimizer(),
        "Adafactor" => Adafactor::new(0.02).weight_decay(0.1).into_optimizer(),
        "LAMB" => Lamb::new(0.02)
            .epsilon(0.1)
            .weight_decay(0.1)
            .into_optimizer(),
        _ => average().ema_overwrite_frequency(2).into_optimizer(),
    };
    let names = [
        "SGD",
        "momentum",
        "Nesterov",
        "clipnorm",
        "clipvalue",
        "global_clipnorm",
        "Adam",
        "AMSGrad",
        "AdamW",
        "every variable decays",
        "EMA",
        "RMSprop",
        "centered RMSprop",
        "Lion",
        "LAMB",
        "Adafactor",
        "EMA that overwrites",
    ];
    for_each_row(names.map(|name| (name, ())), |name, ()| {
        let [expected, found] = devices.clone().map(|device| {
            let _scope = scope::enter(&device).expect("no scope is active");
            let layers = vec![Dense(8).activation("tanh").seed(1), Dense(3).seed(2)];
            let model = rows_of(layers, make(name).expect("valid"), loss(cross_entropy()));
            outcome(&model, &data, fit())
        });
        agree(name, &found, &expected, 1.0);
        assert!(
            found.losses.windows(2).any(|pair| pair[0] != pair[1]),
            "{name} trains"
        );
    });
}

/// Rates by layer: Adam's kernel runs once for each rate, others are tensor operations.
#[test]
fn rates_by_layer_on_gpu() {
    let Some(devices) = pair() else { return };
    let data = sentences(12);
    let make = |name: &str| match name {
        "SGD" => SGD::new(0.2).layer_decay(0.5).into_optimizer(),
        "AdamW" => (AdamW::new(0.01).epsilon(0.1).weight_decay(0.1))
            .layer_decay(0.5)
            .rate_for("*.bias", 2.0)
            .into_optimizer(),
        _ => RMSprop::new(0.01)
            .epsilon(0.1)
            .layer_decay(0.5)
            .into_optimizer(),
    };
    for_each_row(
        ["SGD", "AdamW", "RMSprop"].map(|name| (name, ())),
        |name, ()| {
            let [expected, found] = devices.clone().map(|device| {
                let args = CompileArgs::new().optimizer(make(name).expect("valid"));
                let model = compiled(Some(device), "float32", args.loss(cross_entropy()));
                let fit = FitArgs::new().batch_size(4).seed(3).verbose(false);
                outcome(&model, &data, fit)
            });
            agree(name, &found, &expected, 4.0);
        },
    );
}

/// Every loss and activation, `predict` and `evaluate` of each.
#[test]
fn losses_and_activations_on_gpu() {
    let Some(devices) = pair() else { return };
    let numbers = make_regression(24, 4, 0).expect("sizes above 0");
    let two = make_classification(24, 4, 2, 1).expect("sizes above 0");
    let three = make_classification(24, 4, 3, 1).expect("sizes above 0");
    let smoothed = CategoricalCrossentropy { from_logits: true }.label_smoothing(0.1);
    let binary = |from_logits| loss(BinaryCrossentropy { from_logits });
    let sparse = loss(stratoscope_models::SparseCategoricalCrossentropy { from_logits: false });
    let rows: Vec<(&str, &str, usize, Loss, &Dataset)> = vec![
        ("relu", "linear", 1, loss(MeanSquaredError), &numbers),
        ("tanh", "linear", 1, loss(MeanAbsoluteError), &numbers),
        ("sigmoid", "linear", 1, loss(Huber { delta: 0.5 }), &numbers),
        ("relu", "tanh", 1, loss(LogCosh), &numbers),
        ("relu", "linear", 1, binary(true), &two),
        ("relu", "sigmoid", 1, binary(false), &two),
        ("tanh", "linear", 1, loss(Hinge), &two),
        ("tanh", "linear", 1, loss(SquaredHinge), &two),
        ("relu", "linear", 3, loss(cross_entropy()), &three),
        ("relu", "softmax", 3, sparse, &three),
        ("relu", "linear", 3, loss(smoothed), &three),
        (
            "tanh",
            "softmax",
            3,
            loss(KlDivergence { from_logits: false }),
            &three,
        ),
    ];
    for (hidden, last, outputs, loss, data) in rows {
        let [expected, found] = devices.clone().map(|device| {
            let _scope = scope::enter(&device).expect("no scope is active");
            let layers = vec![
                Dense(8).activation(hidden).seed(1),
                Dense(outputs).activation(last).seed(2),
            ];
            let model = rows_of(layers, SGD::new(0.05), loss);
            outcome(&model, data, fit())
        });
        agree(&format!("{loss} of {last}"), &found, &expected, 1.0);
    }
}

/// The pieces of a model with one output, each with its gradients: a square, a product with one column, a column's
/// sum, ReLU.
#[test]
fn pieces_of_one_output_on_gpu() {
    let Some(devices) = pair() else { return };
    type Piece = fn(Tensor<2>, Tensor<2>) -> Tensor<1>;
    let pieces: [(&str, Piece); 6] = [
        ("square", |x, _| x.powi_scalar(2).sum()),
        ("absolute value", |x, _| x.abs().sum()),
        ("ReLU", |x, _| {
            (burn::tensor::activation::relu(x.clone()) * x).sum()
        }),
        ("product with a column", |x, w| {
            (x.matmul(w.clone()) * 0.3).sum() + w.sum()
        }),
        ("product, squared", |x, w| x.matmul(w).powi_scalar(2).sum()),
        ("column plus bias, squared", |x, w| {
            let bias = w.clone().slice([0..1, 0..1]);
            (x.matmul(w) + bias).powi_scalar(2).sum()
        }),
    ];
    let mut wrong = Vec::new();
    for (name, piece) in pieces {
        let [expected, found] = devices.clone().map(|device| {
            let device = device.replicas()[0].training();
            let numbers = |count: usize| -> Vec<f32> {
                (0..count)
                    .map(|at| ((at * 7 + 3) % 11) as f32 / 5.0 - 1.0)
                    .collect()
            };
            let tensor = |[rows, columns]: [usize; 2]| {
                let flat = Tensor::<1>::from_floats(numbers(rows * columns).as_slice(), &device);
                flat.reshape([rows, columns]).require_grad()
            };
            let (x, w) = (tensor([8, 8]), tensor([8, 1]));
            let value = piece(x.clone(), w.clone());
            let gradients = value.backward();
            let mut all = vec![value.into_scalar::<f32>()];
            for gradient in [x.grad(&gradients), w.grad(&gradients)]
                .into_iter()
                .flatten()
            {
                all.extend(gradient.into_data().iter::<f32>());
            }
            all
        });
        let off = largest_difference(&found, &expected);
        println!("{name}: off by {off:e}");
        if off > 1e-4 {
            wrong.push((name, off));
        }
    }
    assert!(wrong.is_empty(), "not as on the CPU: {wrong:?}");
}

/// Embeddings, pooling, flattening and dropout: the masks are the same numbers on every device.
#[test]
fn layers_on_gpu() {
    let Some(devices) = pair() else { return };
    let data = make_classification(24, 6, 3, 5).expect("sizes above 0");
    let id = |x: &f32| ((x + 2.0) * 5.0).floor().clamp(0.0, 19.0);
    let ids = data
        .examples
        .iter()
        .map(|it| -> Vec<f32> { it.features.iter().map(id).collect() });
    let ids: Vec<Vec<f32>> = ids.collect();
    let classes = data.examples.iter().map(|it| it.class().unwrap_or(0));
    let ids = Dataset::from_arrays(ids, classes.collect::<Vec<usize>>()).expect("equal");
    type Make = fn() -> Vec<Layer>;
    let rows: [(&str, Make); 2] = [
        ("pooled, with dropout", || {
            vec![
                Embedding(20, 8).seed(1),
                GlobalAveragePooling1D(),
                Dropout(0.3),
                Dense(3).seed(2),
            ]
        }),
        ("flat, with dropout", || {
            vec![
                Embedding(20, 8).seed(1),
                Flatten(),
                Dense(8).activation("relu").seed(2),
                Dropout(0.3),
                Dense(3).seed(3),
            ]
        }),
    ];
    for (name, layers) in rows {
        let [expected, found] = devices.clone().map(|device| {
            let _scope = scope::enter(&device).expect("no scope is active");
            let model = rows_of(layers(), SGD::new(0.2), loss(cross_entropy()));
            outcome(&model, &ids, fit())
        });
        agree(name, &found, &expected, 1.0);
    }
}

/// The tiny BERT with dropout, three steps of a batch of 4: every strategy that can have an adapter, local SGD,
/// accumulation, and the patterns of the all-reduce.
#[test]
fn strategies_on_gpu() {
    let Some([one, adapter]) = pair() else { return };
    let data = sentences(12);
    let args = |sync_every: usize, accumulation: usize| {
        let args = CompileArgs::new()
            .optimizer(SGD::new(0.2))
            .loss(cross_entropy())
            .gradient_accumulation_steps(accumulation);
        match sync_every {
            1 => args,
            steps => args.sync_every(steps),
        }
    };
    let bert = |strategy: &Strategy, sync_every, accumulation| {
        let model = compiled(
            Some(strategy.clone()),
            "float32",
            args(sync_every, accumulation),
        );
        let made = outcome(
            &model,
            &data,
            FitArgs::new().batch_size(4).seed(3).verbose(false),
        );
        let placement = model.placement().expect("the devices answer");
        assert!(placement.copies_are_equal(), "{}", placement.verdict());
        made
    };
    // Dropout has masks per replica: expected values come from as many logical devices of the processor.
    let on = |devices| {
        MirroredStrategy::on(devices)
            .expect("both start")
            .strategy()
    };
    let logical = |spec, count: usize| MirroredStrategy::logical_on(spec, count).expect("shares");
    let here = logical(cpu(0), 2).strategy();
    let there = logical(gpu(), 2).strategy();
    let ring = |spec| {
        logical(spec, 3)
            .cross_device_ops(CrossDeviceOps::Ring)
            .strategy()
    };
    let central = |specs| {
        CentralStorageStrategy::on(specs)
            .expect("both start")
            .strategy()
    };
    let central_here = CentralStorageStrategy::logical(2)
        .expect("shares")
        .strategy();
    let servers = || {
        let servers = ParameterServerStrategy::logical(2, 1).expect("three devices");
        servers.synchronous().strategy()
    };
    let servers_here = servers();
    choice::choose(&gpu().to_string()).expect("it has started");
    let servers_there = servers();
    let central_there = CentralStorageStrategy::logical(2)
        .expect("shares")
        .strategy();
    let all_there = MirroredStrategy::new()
        .expect("the default device")
        .strategy();
    choice::reconsider();
    assert_eq!(servers_there.replicas()[0].burn, adapter.replicas()[0].burn);

    let (gpu_first, cpu_first) = (on([gpu(), cpu(0)]), on([cpu(0), gpu()]));
    let rows = [
        ("one device", (adapter, one.clone(), 1, 1)),
        ("the default device", (all_there, one.clone(), 1, 1)),
        ("accumulated", (there.clone(), here.clone(), 1, 2)),
        ("GPU, mirrored", (there.clone(), here.clone(), 1, 1)),
        ("GPU and CPU, mirrored", (gpu_first, here.clone(), 1, 1)),
        ("CPU and GPU, mirrored", (cpu_first, here.clone(), 1, 1)),
        ("local SGD", (there, here, 2, 1)),
        ("a ring", (ring(gpu()), ring(cpu(0)), 1, 1)),
        (
            "central on a GPU",
            (central([gpu(), cpu(0)]), central_here.clone(), 1, 1),
        ),
        ("central, two of a GPU", (central_there, central_here, 1, 1)),
        ("parameter server", (servers_there, servers_here, 1, 1)),
    ];
    for_each_row(rows, |name, (found, expected, sync_every, accumulation)| {
        let expected = bert(&expected, sync_every, accumulation);
        let found = bert(&found, sync_every, accumulation);
        agree(name, &found, &expected, 4.0);
    });
}

/// The policies round what layers put out, on the device; one whose numbers the adapter does not have is refused.
/// Rounding is not the same in the last bit, so that a number near the middle of two may go the other way: the limits
/// are those of 16 bits. With `STRATOSCOPE_FULL_TESTS` only: a software device compiles its kernels for a minute or two.
#[test]
fn policies_on_gpu() {
    if !is_full() {
        return;
    }
    let Some(devices) = pair() else { return };
    let data = sentences(12);
    let adapter = &devices[1].replicas()[0].burn;
    let rows = [
        ("mixed_float16", (FloatDType::F16, 2e-3)),
        ("mixed_bfloat16", (FloatDType::BF16, 2e-2)),
    ];
    for_each_row(rows, |policy, (half, apart)| {
        if !adapter.supports_dtype(half) {
            let _scope = scope::enter(&devices[1]).expect("no scope is active");
            set_global_policy(policy).expect("a policy");
            let refused = Sequential([Dense(4).input_shape(5)]).map(drop);
            set_global_policy("float32").expect("a policy");
            let code = refused.map_err(|problem| problem.code).err();
            assert_eq!(code.as_deref(), Some("SC0714"), "{policy}");
            return;
        }
        let run = |device: &Strategy, policy: &str| {
            let args = plain_args().optimizer(SGD::new(0.1));
            let model = compiled(Some(device.clone()), policy, args);
            let history = model.fit(&data, fit().batch_size(4)).expect("it trains");
            let losses: Vec<f64> = history.executions.iter().map(|it| it.loss).collect();
            (losses, history.loss_scale.is_some())
        };
        let (expected, _) = run(&devices[0], policy);
        let (found, is_scaled) = run(&devices[1], policy);
        let (plain, _) = run(&devices[1], "float32");
        assert_eq!(is_scaled, policy == "mixed_float16");
        println!("{policy}: {found:?}");
        let most = |left: &[f64], right: &[f64]| {
            let pairs = left.iter().zip(right);
            pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
        };
        assert!(most(&found, &expected) < apart, "{policy}: {expected:?}");
        assert!(most(&found, &plain) > 1e-6, "{policy}: nothing was rounded");
    });
}

/// Under `mixed_float16` the scale of the loss is found on a device as on the CPU: a step whose gradient float16 does not
/// have is left out and halves it, and the weights stay.
#[test]
fn the_scale_of_the_loss_on_gpu() {
    let Some(devices) = pair() else { return };
    if !devices[1].replicas()[0]
        .burn
        .supports_dtype(FloatDType::F16)
    {
        println!("skipped: the adapter has no float16");
        return;
    }
    for device in devices {
        set_global_policy("mixed_float16").expect("a policy");
        let model = {
            let _scope = scope::enter(&device).expect("no scope is active");
            Sequential([Dense(1).input_shape((1,))]).expect("a layer")
        };
        set_global_policy("float32").expect("a policy");
        let args = CompileArgs::new()
            .optimizer(SGD::new(1e-6))
            .loss(MeanSquaredError);
        let receipt = model.compile(args).expect("valid arguments").to_plain();
        let is_cpu = device.replicas()[0].name.contains("cpu");
        assert_eq!(receipt.contains("emulated"), is_cpu, "{receipt}");
        // The gradient of (w·1 − 60)² is about −120. Times 2⁹ it is 61 440, and float16 ends at 65 504.
        let data = Dataset::from_arrays(vec![[1.0_f32]; 20], vec![60.0_f32; 20]);
        let data = data.expect("numbers");
        let before = weights(&model);
        let args = || FitArgs::new().batch_size(2).verbose(false);
        let history = model.fit(&data.take(12), args()).expect("six batches");
        let counted = |history: &stratoscope_models::History| {
            let counters = &history.counters;
            (counters.skipped_steps, counters.optimizer_steps)
        };
        assert_eq!(counted(&history), (6, 0), "{history}");
        assert_eq!(history.loss_scale, Some(512.0));
        assert_eq!(weights(&model), before, "nothing was applied");
        let history = model.fit(&data.take(8), args()).expect("four batches");
        assert_eq!(counted(&history), (0, 4), "{history}");
        assert!(largest_difference(&weights(&model)[0].1, &before[0].1) > 0.0);
    }
}

/// A network of one's own: its outputs are weighted sums of its inputs.
#[derive(Module, Debug)]
struct Own {
    weights: Param<Tensor<2>>,
}

impl Network for Own {
    type Files = Outputs;

    fn logits(&self, batch: &Batch, _: Mode, device: &Device) -> Tensor<2> {
        features(batch, device).matmul(self.weights.val())
    }
}

/// Outside of any scope, on the default device, which is named: a network of one's own, a `Sequential` that is built by
/// its data, a checkpoint, and steps by hand.
#[test]
fn the_default_device_is_used_outside_of_scopes() {
    if pair().is_none() {
        return;
    }
    let numbers = make_classification(16, 4, 3, 1).expect("sizes above 0");
    let own = || {
        let device = scope::device().expect("the default device");
        let rows: Vec<f32> = (0..12).map(|at| 0.1 * (at as f32 - 5.0)).collect();
        let weights = Tensor::<1>::from_floats(rows.as_slice(), &device).reshape([4, 3]);
        let network = Own {
            weights: Param::from_tensor(weights),
        };
        let model = Model::with_files(network, Outputs::new("Own", 3), Origin::current());
        model.expect("it is placed")
    };
    let args = || {
        CompileArgs::new()
            .optimizer(SGD::new(0.1))
            .loss(cross_entropy())
            .metrics([accuracy()])
            .strategy(stratoscope_models::none)
    };
    let runs = || {
        let own = own();
        own.compile(args()).expect("valid arguments");
        let late = Sequential([Dense(8).activation("relu").seed(1), Dense(3).seed(2)]);
        let late = late.expect("layers");
        late.compile(args()).expect("valid arguments");
        let bert: BertForSequenceClassification = compiled(None, "float32", args());
        let outcomes = [
            outcome(&own, &numbers, fit()),
            outcome(&late, &numbers, fit()),
            outcome(&bert, &contradicted(&sentences(8)), fit().batch_size(4)),
        ];
        for _ in 0..2 {
            let gradients = own.gradients(&numbers.take(8)).expect("a gradient");
            own.apply(gradients).expect("a step");
        }
        let names = [format!("{own:?}"), format!("{late:?}"), format!("{bert:?}")];
        (outcomes, weights(&own), names)
    };
    choice::choose("cpu").expect("a processor");
    let (expected, expected_by_hand, names) = runs();
    assert!(names.iter().all(|it| it.contains("on cpu:0")), "{names:?}");
    choice::choose(&gpu().to_string()).expect("it has started");
    let (found, by_hand, names) = runs();
    choice::reconsider();
    let there = format!("on {}", gpu());
    assert!(names.iter().all(|it| it.contains(&there)), "{names:?}");
    for ((found, expected), name) in found.iter().zip(&expected).zip(["own", "late", "BERT"]) {
        agree(name, found, expected, 4.0);
    }
    let off = largest_difference(&by_hand[0].1, &expected_by_hand[0].1);
    assert!(off <= WEIGHTS, "steps by hand are off by {off:e}");
}

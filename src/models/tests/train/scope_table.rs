//! docs/keras-semantics.md §3, row by row: where the model stands × whether it is built × where `compile` stands
//! × where `fit` stands. The product's column is the law.

use std::sync::{Arc, Mutex, PoisonError};

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};
use stratoscope_bert::Mode;
use stratoscope_data::{Batch, Dataset, make_classification, make_regression};
use stratoscope_diagnostics::{Diagnostic, Severity};
use stratoscope_models::{
    Adam, CompileArgs, CompileReceipt, Dense, Dropout, Embedding, EvaluateArgs, FitArgs, Flatten,
    GlobalAveragePooling1D, History, MeanSquaredError, Model, Network, Observer, Outputs, SGD,
    Sequential, SparseCategoricalCrossentropy, accuracy, events, features, none,
};
use stratoscope_strategy::scope::ScopeGuard;
use stratoscope_strategy::{
    AsStrategy, CentralStorageStrategy, MirroredStrategy, OneDeviceStrategy,
    ParameterServerStrategy, TpuStrategy, cpu, scope,
};

/// Where a statement stands.
#[derive(Clone, Copy, Debug, PartialEq)]
enum At {
    In,
    Out,
}
use At::{In, Out};

impl At {
    fn enter(self, strategy: Option<&MirroredStrategy>) -> Option<ScopeGuard> {
        match (self, strategy) {
            (In, Some(strategy)) => Some(scope::enter(strategy).expect("no scope is active")),
            _ => None,
        }
    }
}

/// Whether the model knows the shape of its input when it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Written {
    Built,
    Unbuilt,
}
use Written::{Built, Unbuilt};

/// The three ways to write a model in article S3.
#[derive(Clone, Copy, Debug)]
enum Way {
    Inline,
    Function,
    Custom,
}

fn model_of_function(written: Written) -> Result<Sequential, Box<Diagnostic>> {
    let first = Dense(10).activation("relu");
    Sequential([
        match written {
            Built => first.input_shape((5,)),
            Unbuilt => first,
        },
        Dense(1),
    ])
}

/// A user's own burn module with a `build`.
#[derive(Module, Debug)]
struct Custom {
    hidden: Option<Linear>,
    last: Option<Linear>,
}

impl Network for Custom {
    type Files = Outputs;

    fn is_built(&self) -> bool {
        self.hidden.is_some()
    }

    fn build(mut self, width: usize, device: &Device) -> Self {
        self.hidden = Some(LinearConfig::new(width, 10).init(device));
        self.last = Some(LinearConfig::new(10, 1).init(device));
        self
    }

    fn logits(&self, batch: &Batch, _: Mode, device: &Device) -> Tensor<2> {
        let (hidden, last) = self.hidden.as_ref().zip(self.last.as_ref()).expect("built");
        last.forward(relu(hidden.forward(features(batch, device))))
    }
}

fn args() -> CompileArgs {
    CompileArgs::new()
        .optimizer(Adam::new(0.01))
        .loss(MeanSquaredError)
}

fn quiet<'a>() -> FitArgs<'a> {
    FitArgs::new().batch_size(8).verbose(false)
}

fn data() -> Dataset {
    make_regression(16, 5, 3).expect("sizes above 0")
}

/// What came of model, compile and fit: replicas and all-reduces, or the code at the stage that failed.
#[derive(Debug, PartialEq)]
enum Outcome {
    Trained { replicas: usize, all_reduces: u64 },
    Compile(&'static str),
    Fit(&'static str),
}
use Outcome::{Compile, Fit, Trained};

const MIRRORED: Outcome = Trained {
    replicas: 2,
    all_reduces: 2,
};
const ALONE: Outcome = Trained {
    replicas: 1,
    all_reduces: 0,
};

fn code(finding: &Diagnostic) -> &'static str {
    ["SC0102", "SC0201", "SC0205"]
        .into_iter()
        .find(|code| *code == finding.code)
        .unwrap_or_else(|| panic!("{finding}"))
}

fn run(
    model: &Model,
    strategy: Option<&MirroredStrategy>,
    (compile, fit): (At, At),
    args: CompileArgs,
) -> Outcome {
    let scope = compile.enter(strategy);
    let compiled = model.compile(args);
    drop(scope);
    if let Err(finding) = compiled {
        return Compile(code(&finding));
    }
    let scope = fit.enter(strategy);
    let fitted = model.fit(&data(), quiet());
    drop(scope);
    match fitted {
        Ok(history) => Trained {
            replicas: model.placement().expect("readable").devices.len(),
            all_reduces: history.counters.all_reduces,
        },
        Err(finding) => Fit(code(&finding)),
    }
}

/// A row of the table, for every way to write the model.
#[track_caller]
fn check(model: At, written: Written, compile: At, fit: At, expected: Outcome) {
    for way in [Way::Inline, Way::Function, Way::Custom] {
        let strategy = MirroredStrategy::logical(2).expect("two logical devices");
        let scope = model.enter(Some(&strategy));
        let found = match way {
            Way::Inline => {
                let first = Dense(10).activation("relu");
                let layers = match written {
                    Built => [first.input_shape(5), Dense(1)],
                    Unbuilt => [first, Dense(1)],
                };
                let model = Sequential(layers).expect("a valid model");
                drop(scope);
                run(&model, Some(&strategy), (compile, fit), args())
            }
            Way::Function => {
                let model = model_of_function(written).expect("a valid model");
                drop(scope);
                run(&model, Some(&strategy), (compile, fit), args())
            }
            Way::Custom => {
                let network = Custom {
                    hidden: None,
                    last: None,
                };
                let model = Model::of(network, Outputs::new("Custom", 1)).expect("a model");
                if written == Built {
                    model.build((None, 5)).expect("a valid shape");
                }
                drop(scope);
                run(&model, Some(&strategy), (compile, fit), args())
            }
        };
        let row =
            format!("{way:?}: model {model:?}, {written:?}, compile {compile:?}, fit {fit:?}");
        assert_eq!(found, expected, "{row}");
    }
}

#[test]
fn in_in() {
    for written in [Built, Unbuilt] {
        check(In, written, In, In, MIRRORED);
        check(In, written, In, Out, MIRRORED);
    }
}

#[test]
fn in_out_compiles_since_the_model_is_bound() {
    for written in [Built, Unbuilt] {
        check(In, written, Out, In, MIRRORED);
        check(In, written, Out, Out, MIRRORED);
    }
    let strategy = MirroredStrategy::logical(2).expect("two logical devices");
    let scope = In.enter(Some(&strategy));
    let model = model_of_function(Built).expect("a valid model");
    let has_note = |receipt: &CompileReceipt| {
        let mut settings = receipt.settings.iter();
        settings.any(|(name, value)| name == "scope" && value.contains("Keras 3"))
    };
    let inside = model.compile(args()).expect("in, in");
    drop(scope);
    let outside = model.compile(args()).expect("in, out");
    assert!(!has_note(&inside) && has_note(&outside), "{outside}");
}

#[test]
fn out_built_is_refused_wherever_compile_stands() {
    for fit in [In, Out] {
        check(Out, Built, In, fit, Compile("SC0201"));
        check(Out, Built, Out, fit, Compile("SC0201"));
    }
}

#[test]
fn out_unbuilt_is_built_in_the_scope_of_compile() {
    check(Out, Unbuilt, In, In, MIRRORED);
    check(Out, Unbuilt, In, Out, MIRRORED);
}

#[test]
fn out_unbuilt_and_compile_out_is_refused() {
    check(Out, Unbuilt, Out, In, Compile("SC0201"));
    check(Out, Unbuilt, Out, Out, Compile("SC0201"));
    let _strategy = MirroredStrategy::logical(2).expect("two logical devices");
    let model = model_of_function(Unbuilt).expect("a valid model");
    let finding = model.compile(args()).expect_err("a strategy is alive");
    assert!(
        finding.message.contains("would not belong to it"),
        "{finding}"
    );
    assert!(finding.figure.is_none(), "there is no variable to show");
}

#[test]
fn without_a_strategy_everything_trains_on_one_device() {
    for written in [Built, Unbuilt] {
        let model = model_of_function(written).expect("a valid model");
        assert_eq!(run(&model, None, (Out, Out), args()), ALONE, "{written:?}");
        let model = model_of_function(written).expect("a valid model");
        let more = args().steps_per_execution(2);
        let found = run(&model, None, (Out, Out), more);
        assert_eq!(found, Compile("SC0102"), "{written:?}");
    }
}

#[test]
fn strategy_none_is_the_way_out() {
    let strategy = MirroredStrategy::logical(2).expect("two logical devices");
    for written in [Built, Unbuilt] {
        for fit in [In, Out] {
            let model = model_of_function(written).expect("a valid model");
            let alone = args().strategy(none);
            let found = run(&model, Some(&strategy), (Out, fit), alone);
            assert_eq!(found, ALONE, "{written:?}, fit {fit:?}");
        }
    }
    let model = model_of_function(Unbuilt).expect("a valid model");
    let named = args().strategy(&strategy);
    let found = run(&model, Some(&strategy), (Out, Out), named);
    assert_eq!(found, MIRRORED, "a strategy that is named binds");
}

#[test]
fn a_strategy_that_comes_after_compile_does_not_get_the_model() {
    for written in [Built, Unbuilt] {
        let model = model_of_function(written).expect("a valid model");
        model.compile(args()).expect("no strategy is alive");
        let strategy = MirroredStrategy::logical(2).expect("two logical devices");
        let scope = In.enter(Some(&strategy));
        let finding = model.fit(&data(), quiet()).expect_err("a foreign scope");
        assert_eq!(finding.code, "SC0205", "{written:?}");
        assert!(finding.message.contains("cpu:0 only"), "{finding}");
        drop(scope);
        model.fit(&data(), quiet()).expect("outside, on one device");
    }
}

#[test]
fn different_and_nested_scopes() {
    let (first, second) = (
        MirroredStrategy::logical(2).expect("two logical devices"),
        OneDeviceStrategy::new(cpu(0)).expect("a processor"),
    );
    let outer = scope::enter(&first).expect("no scope is active");
    let again = scope::enter(&first).expect("the same one may be entered again");
    let model = model_of_function(Unbuilt).expect("a valid model");
    drop(again);
    let finding = scope::enter(&second).expect_err("a different one");
    assert_eq!(finding.code, "SC0204");
    drop(outer);

    let other = scope::enter(&second).expect("no scope is active");
    let finding = model.compile(args()).expect_err("bound to the first");
    assert_eq!(finding.code, "SC0201");
    assert!(finding.message.contains("not in that of"), "{finding}");
    drop(other);
    model.compile(args()).expect("the model is bound");
    let other = scope::enter(&second).expect("no scope is active");
    let finding = model.fit(&data(), quiet()).expect_err("a foreign scope");
    assert_eq!(finding.code, "SC0205");
    let label = first.strategy().label();
    assert!(finding.message.contains(&label), "{finding}");
    drop(other);
    let history = model.fit(&data(), quiet()).expect("its own strategy");
    assert_eq!(history.counters.all_reduces, 2);
}

#[test]
fn a_default_strategy_is_a_scope_of_everything() {
    let strategy = MirroredStrategy::logical(2).expect("two logical devices");
    strategy.set_default();
    let model = model_of_function(Unbuilt).expect("a valid model");
    let found = run(&model, None, (Out, Out), args().steps_per_execution(2));
    assert_eq!(found, MIRRORED);
    scope::reset_to_default();
}

#[test]
fn a_model_outlives_its_strategy() {
    let strategy = MirroredStrategy::logical(2).expect("two logical devices");
    let scope = In.enter(Some(&strategy));
    let built = model_of_function(Built).expect("a valid model");
    let unbuilt = model_of_function(Unbuilt).expect("a valid model");
    drop((scope, strategy));
    for model in [built, unbuilt] {
        let found = run(&model, None, (Out, Out), args().steps_per_execution(2));
        assert_eq!(found, MIRRORED);
    }
}

#[test]
fn optimizers_of_other_scopes_and_models() {
    let fresh = Adam::new(0.01);
    let used = Adam::new(0.01);
    let outside = model_of_function(Built).expect("a valid model");
    let with = |optimizer| {
        CompileArgs::new()
            .optimizer(optimizer)
            .loss(MeanSquaredError)
    };
    outside
        .compile(with(used.clone()))
        .expect("no strategy yet");
    outside.fit(&data(), quiet()).expect("it trains");

    let strategy = MirroredStrategy::logical(2).expect("two logical devices");
    let _scope = In.enter(Some(&strategy));
    let model = model_of_function(Built).expect("a valid model");
    let finding = model.compile(with(used)).expect_err("another model's");
    assert_eq!(finding.code, "SC0202");
    model
        .compile(with(fresh))
        .expect("made outside, used nowhere");
    assert_eq!(
        model
            .fit(&data(), quiet())
            .expect("it trains")
            .counters
            .all_reduces,
        2
    );
}

#[test]
fn a_failure_leaves_nothing_half_placed() {
    let strategy = MirroredStrategy::logical(2).expect("two logical devices");
    let scope = In.enter(Some(&strategy));
    let model = Sequential([Dense(3), Dense(1)]).expect("a valid model");
    model.compile(args()).expect("in, in");
    model
        .fit(&Dataset::from_texts(["a"]), quiet())
        .expect_err("texts");
    assert!(!model.is_built(), "refused data builds nothing");
    drop(scope);

    let outside = model_of_function(Unbuilt).expect("a valid model");
    let scope = In.enter(Some(&strategy));
    let bad = args().gradient_accumulation_steps(0);
    outside.compile(bad).expect_err("a bad argument");
    drop(scope);
    assert_eq!(outside.strategy(), None, "a refused compile binds nothing");
    let work = || -> Result<(), Box<Diagnostic>> {
        let _scope = scope::enter(&strategy)?;
        Sequential([Dense(0)])?;
        Ok(())
    };
    assert_eq!(work().expect_err("no units").code, "SC0915");
    assert_eq!(scope::depth(), 0);
}

/// What a model, built by its first data, has learned under a strategy: the losses of its epochs.
fn learned_under(strategy: &impl AsStrategy) -> Vec<f64> {
    let label = strategy.strategy().label();
    let model = {
        let _scope = scope::enter(strategy).expect("no scope is active");
        let model = model_of_function(Unbuilt).expect("a valid model");
        model.compile(args()).expect("in, in");
        model
    };
    assert_eq!(model.num_parameters(), 0, "{label}: not before the data");
    let history = model.fit(&data(), quiet().epochs(4)).expect("it trains");
    let evaluation = model.evaluate(&data(), EvaluateArgs::new().verbose(false));
    let evaluation = evaluation.expect("it was compiled");
    assert!(evaluation.loss.is_finite(), "{label}: {evaluation:?}");
    assert_eq!(model.predict(data()).expect("rows").len(), 16, "{label}");
    let report = model.placement().expect("readable");
    assert!(report.copies_are_equal(), "{label}");
    assert_eq!(report.variables.len(), 4, "{label}");
    assert_eq!(report.strategy.map(|it| it.label), Some(label));
    history.epochs.iter().map(|epoch| epoch.loss).collect()
}

#[test]
fn every_strategy_builds_and_trains_a_model_that_waited() {
    let alone = learned_under(&OneDeviceStrategy::new(cpu(0)).expect("a processor"));
    let servers = || ParameterServerStrategy::logical(2, 2).expect("logical devices");
    let synchronous = [
        learned_under(&MirroredStrategy::logical(2).expect("logical devices")),
        learned_under(&MirroredStrategy::logical(3).expect("logical devices")),
        learned_under(&CentralStorageStrategy::logical(2).expect("logical devices")),
        learned_under(&servers().synchronous()),
        learned_under(&TpuStrategy::simulated().expect("a processor")),
    ];
    for losses in &synchronous {
        for (found, expected) in losses.iter().zip(&alone) {
            assert!(
                (found - expected).abs() < 1e-5 * expected,
                "{synchronous:?} {alone:?}"
            );
        }
    }
    let asynchronous = learned_under(&servers());
    assert!(asynchronous[3] < asynchronous[0], "{asynchronous:?}");
    assert_ne!(
        asynchronous, alone,
        "two steps a batch, from older variables"
    );
}

#[test]
fn building_later_changes_no_number() {
    let train = |model: &Sequential| -> History {
        model.compile(args()).expect("valid");
        model.fit(&data(), quiet().epochs(3)).expect("it trains")
    };
    let (early, late) = (
        model_of_function(Built).expect("a valid model"),
        model_of_function(Unbuilt).expect("a valid model"),
    );
    let (early, late) = (train(&early), train(&late));
    let losses =
        |history: &History| -> Vec<f64> { history.epochs.iter().map(|it| it.loss).collect() };
    assert_eq!(losses(&early), losses(&late), "bit for bit");
    let strategy = MirroredStrategy::logical(3).expect("three logical devices");
    let _scope = In.enter(Some(&strategy));
    let mirrored = train(&model_of_function(Unbuilt).expect("a valid model"));
    for (one, three) in losses(&early).iter().zip(losses(&mirrored)) {
        assert!((one - three).abs() < 1e-5 * one, "{one} {three}");
    }
}

#[test]
fn layers_are_checked_and_summed_up() {
    let refused = |layers: Vec<stratoscope_models::Layer>, code: &str| {
        let finding = Sequential(layers).expect_err("refused");
        assert_eq!(finding.code, code, "{finding}");
    };
    refused(vec![], "SC0915");
    refused(vec![Dense(-1)], "SC0915");
    refused(vec![Dense(1).activation("rellu")], "SC0105");
    refused(vec![Dense(1).input_shape([28, 28])], "SC0915");
    refused(vec![Dense(1), Dense(1).input_shape(5)], "SC0915");
    refused(vec![Dropout(1.0), Dense(1)], "SC0915");
    refused(vec![Dense(1), Embedding(5, 2)], "SC0915");
    refused(vec![GlobalAveragePooling1D(), Dense(1)], "SC0915");
    refused(vec![Embedding(5, 2), Dense(1)], "SC0915");

    let model = Sequential([Dense(10), Dropout(0.5), Dense(1)]).expect("a valid model");
    let before = model.summary();
    assert_eq!(before.parameters(), None);
    assert!(before.to_plain().contains("not built"), "{before}");
    model.build((None, 5)).expect("a valid shape");
    let expected = "Sequential\n\
                    layer              output shape  parameters  dtype  trainable\n\
                    dense (Dense)      (None, 10)            60  f32    yes\n\
                    dropout (Dropout)  (None, 10)             0\n\
                    dense_1 (Dense)    (None, 1)             11  f32    yes\n\
                    parameters: 71 (284 B), trainable: 71, frozen: 0";
    assert_eq!(model.summary().to_plain(), expected);
    model.build(5).expect("it is that wide");
    assert_eq!(model.build(6).expect_err("another width").code, "SC0411");
    let report = model.placement().expect("readable");
    let names: Vec<&str> = report.variables.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "dense.weight",
            "dense.bias",
            "dense_1.weight",
            "dense_1.bias"
        ]
    );
}

#[test]
fn data_must_fit_the_model() {
    let model = model_of_function(Built).expect("a valid model");
    model.compile(args()).expect("valid");
    let wide = make_regression(16, 8, 0).expect("sizes above 0");
    let finding = model.fit(&wide, quiet()).expect_err("8 columns");
    assert_eq!(finding.code, "SC0411");
    assert_eq!(
        finding.message,
        "`Sequential` takes rows of 5 numbers, got rows of 8 numbers"
    );
    let finding = model
        .fit(&data(), quiet().validation_data(&wide))
        .expect_err("8 columns");
    assert_eq!(finding.code, "SC0411");
    assert_eq!(
        model
            .evaluate(&wide, EvaluateArgs::new())
            .expect_err("8")
            .code,
        "SC0411"
    );
    let finding = model.predict("a text").expect_err("a text");
    assert!(finding.message.ends_with("got texts"), "{finding}");
    let rows = model.predict(data()).expect("5 columns").rows;
    assert_eq!(rows.len(), 16);

    let embedding = Sequential([Embedding(10, 4), Flatten(), Dense(2)]).expect("a valid model");
    let ids = |last: f32| Dataset::from_arrays([[1.0, 2.0], [3.0, last]], [0, 1]).expect("equal");
    let classes = CompileArgs::new()
        .optimizer(SGD::new(0.5))
        .loss(SparseCategoricalCrossentropy { from_logits: true });
    embedding.compile(classes).expect("valid");
    let code = |data: Dataset| embedding.fit(&data, quiet()).expect_err("refused").code;
    assert_eq!(code(ids(10.0)), "SC0402");
    assert_eq!(code(ids(0.5)), "SC0915");
    embedding.fit(&ids(9.0), quiet()).expect("ids below 10");
}

#[test]
fn every_layer_learns_on_every_replica() {
    let strategy = MirroredStrategy::logical(2).expect("two logical devices");
    let _scope = In.enter(Some(&strategy));
    let data = make_classification(60, 6, 3, 5).expect("sizes above 0");
    let rows = |data: &Dataset| -> (Vec<Vec<f32>>, Vec<usize>) {
        let id = |x: &f32| ((x + 2.0) * 5.0).floor().clamp(0.0, 19.0);
        let examples = data.examples.iter();
        let rows = examples.map(|it| {
            (
                it.features.iter().map(id).collect(),
                it.class().unwrap_or(0),
            )
        });
        rows.unzip()
    };
    let (ids, classes) = rows(&data);
    let ids = Dataset::from_arrays(ids, classes).expect("equal");
    let pooled = [
        Embedding(20, 8),
        GlobalAveragePooling1D(),
        Dropout(0.1),
        Dense(3),
    ];
    let flat = [
        Embedding(20, 8),
        Flatten(),
        Dense(8).activation("tanh"),
        Dense(3),
    ];
    let plain = [
        Dense(16).activation("relu").seed(4),
        Dropout(0.1),
        Dense(3).activation("softmax"),
        Dropout(0.0),
    ];
    let cases = [
        (pooled, &ids, true),
        (flat, &ids, true),
        (plain, &data, false),
    ];
    for (layers, data, from_logits) in cases {
        let model = Sequential(layers).expect("a valid model");
        let args = CompileArgs::new()
            .optimizer(Adam::new(0.03))
            .loss(SparseCategoricalCrossentropy { from_logits })
            .metrics([accuracy()]);
        model.compile(args).expect("valid");
        let history = model.fit(data, quiet().epochs(30)).expect("it trains");
        let losses: Vec<f64> = history.epochs.iter().map(|it| it.loss).collect();
        assert!(losses[29] < 0.6 * losses[0], "{losses:?}");
        assert!(model.placement().expect("readable").copies_are_equal());
    }
}

/// Collects what is reported beside the results.
#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl Observer for Heard {
    fn notice(&self, diagnostic: Diagnostic) {
        let worth = diagnostic.severity == Severity::Warning;
        let mut finding = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        finding.extend(worth.then_some(diagnostic.code));
    }
}

#[test]
fn a_softmax_at_the_end_is_no_missing_from_logits() {
    let finding = Arc::new(Heard::default());
    events::install(Arc::<Heard>::clone(&finding));
    let data = make_classification(20, 4, 2, 5).expect("sizes above 0");
    for (activation, from_logits, expected) in [
        ("softmax", false, vec![]),
        ("linear", true, vec![]),
        ("linear", false, vec!["SC0302"]),
        ("softmax", true, vec!["SC0303"]),
    ] {
        finding
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        let model = Sequential([Dense(2).activation(activation)]).expect("a valid model");
        let args = CompileArgs::new()
            .optimizer(Adam::new(0.01))
            .loss(SparseCategoricalCrossentropy { from_logits });
        model.compile(args).expect("valid");
        model.fit(&data, quiet()).expect("it trains");
        let found = finding
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        assert_eq!(found, expected, "{activation}, {from_logits}");
    }
    events::install(Arc::new(Heard::default()));
}

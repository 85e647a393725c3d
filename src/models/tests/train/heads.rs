//! What the last layer does against what the loss takes it for: every activation × loss × `from_logits` ×
//! number of outputs has one right answer.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use stratoscope_bert::Mode;
use stratoscope_data::{Batch, make_classification};
use stratoscope_diagnostics::{Diagnostic, Result};
use stratoscope_models::{
    Adam, BinaryCrossentropy, CategoricalCrossentropy, CompileArgs, Dense, Dropout, FitArgs,
    IntoLoss, Layer, Loss, MeanSquaredError, Model, ModelOf, Network, Outputs, Sequential,
    SparseCategoricalCrossentropy, features,
};
use stratoscope_strategy::{Origin, scope};

use crate::support;

/// The codes that are about outputs and losses.
const OURS: &[&str] = &["SC0302", "SC0303", "SC0304", "SC0315", "SC0501"];

const ACTIVATIONS: [Option<&str>; 7] = [
    None,
    Some("linear"),
    Some("relu"),
    Some("tanh"),
    Some("gelu"),
    Some("sigmoid"),
    Some("softmax"),
];

/// Loss, `from_logits`, outputs; then what `compile!` answers to each of [`ACTIVATIONS`], and to a network
/// that does not say what its last layer does. `-`: nothing.
const TABLE: &[(&str, bool, usize, [&str; 8])] = &[
    (
        "sparse",
        true,
        3,
        ["-", "-", "-", "-", "-", "SC0303", "SC0303", "-"],
    ),
    (
        "sparse",
        false,
        3,
        [
            "SC0302", "SC0302", "SC0302", "SC0302", "SC0302", "-", "-", "-",
        ],
    ),
    ("sparse", true, 1, ["SC0305"; 8]),
    ("sparse", false, 1, ["SC0305"; 8]),
    (
        "categorical",
        true,
        3,
        ["-", "-", "-", "-", "-", "SC0303", "SC0303", "-"],
    ),
    (
        "categorical",
        false,
        3,
        [
            "SC0302", "SC0302", "SC0302", "SC0302", "SC0302", "-", "-", "-",
        ],
    ),
    ("categorical", true, 1, ["SC0305"; 8]),
    ("categorical", false, 1, ["SC0305"; 8]),
    (
        "binary",
        true,
        1,
        ["-", "-", "SC0315", "-", "-", "SC0303", "SC0305", "-"],
    ),
    (
        "binary",
        false,
        1,
        [
            "SC0302", "SC0302", "SC0302", "SC0302", "SC0302", "-", "SC0305", "-",
        ],
    ),
    ("binary", true, 3, ["SC0306"; 8]),
    ("binary", false, 3, ["SC0306"; 8]),
    // A number has no logits.
    (
        "mse",
        false,
        1,
        ["-", "-", "-", "-", "-", "-", "SC0305", "-"],
    ),
    ("mse", false, 3, ["SC0309"; 8]),
];

fn loss(name: &str, from_logits: bool) -> Result<Loss> {
    match name {
        "sparse" => SparseCategoricalCrossentropy { from_logits }.into_loss(),
        // Smoothed: without, a note says that another loss does the same (SC0304).
        "categorical" => CategoricalCrossentropy { from_logits }
            .label_smoothing(0.1)
            .into_loss(),
        "binary" => BinaryCrossentropy { from_logits }.into_loss(),
        _ => MeanSquaredError.into_loss(),
    }
}

fn with(layer: Layer, activation: Option<&str>) -> Layer {
    match activation {
        Some(activation) => layer.activation(activation),
        None => layer,
    }
}

/// The head as it is mostly written, and with the activation on a layer of its own.
fn heads(outputs: usize, activation: Option<&str>) -> [Sequential; 2] {
    let hidden = || Dense(4).activation("relu").input_shape(2);
    let first = Sequential([hidden(), with(Dense(outputs), activation)]);
    let apart = Sequential([hidden(), Dense(outputs), with(Dropout(0.1), activation)]);
    [first, apart].map(|model| model.expect("layers that fit"))
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

fn own(outputs: usize, weight: f32) -> ModelOf<Own> {
    let device = scope::device().expect("a device");
    let rows: Vec<f32> = (0..2 * outputs)
        .map(|at| weight * (1.0 + at as f32) * if at % 2 == 0 { 1.0 } else { -1.0 })
        .collect();
    let weights = Tensor::<1>::from_floats(rows.as_slice(), &device).reshape([2, outputs]);
    let network = Own {
        weights: Param::from_tensor(weights),
    };
    Model::with_files(network, Outputs::new("Own", outputs), Origin::current())
        .expect("it is placed")
}

/// What `compile!` answers: the codes of its error, or of what it says on the way.
fn answers(model: &Model, loss: Result<Loss>) -> (String, Vec<Diagnostic>) {
    let args = CompileArgs::new()
        .optimizer(Adam::new(0.01))
        .loss(loss.expect("a loss"));
    let (outcome, heard) = support::heard(OURS, || model.compile(args));
    let found = match outcome {
        Ok(_) => heard,
        Err(refused) => {
            assert!(
                heard.is_empty(),
                "what is refused is not warned of: {heard:?}"
            );
            vec![*refused]
        }
    };
    let codes: Vec<&str> = found.iter().map(|finding| finding.code.as_str()).collect();
    let codes = match codes.is_empty() {
        true => "-".to_owned(),
        false => codes.join(", "),
    };
    (codes, found)
}

#[test]
fn every_activation_and_loss_has_one_answer() {
    for (name, from_logits, outputs, expected) in TABLE {
        let about = format!("{name} {{ from_logits: {from_logits} }}, {outputs} outputs");
        for (activation, expected) in ACTIVATIONS.into_iter().zip(expected) {
            for model in heads(*outputs, activation) {
                let (codes, found) = answers(&model, loss(name, *from_logits));
                assert_eq!(codes, *expected, "{about}, {activation:?}: {found:?}");
            }
        }
        let (codes, _) = answers(&own(*outputs, 1.0), loss(name, *from_logits));
        assert_eq!(codes, expected[7], "{about}, a network of one's own");
    }
}

/// Two activations on each other: what comes out is not known, and nothing is claimed.
#[test]
fn of_two_activations_nothing_is_said() {
    for from_logits in [true, false] {
        let layers = [
            Dense(3).activation("softmax").input_shape(2),
            Dropout(0.1).activation("relu"),
        ];
        let model = Sequential(layers).expect("layers that fit");
        assert_eq!(answers(&model, loss("sparse", from_logits)).0, "-");
    }
}

/// A combination that is right stays silent through `fit!`, and one that is wrong is not said twice.
#[test]
fn fit_adds_nothing_to_what_compile_knows() {
    let args = || FitArgs::new().epochs(2).batch_size(8).verbose(false);
    for (name, from_logits, outputs, expected) in TABLE {
        let data = match (*name, *outputs) {
            (_, 3) => make_classification(24, 2, 3, 0),
            _ => make_classification(24, 2, 2, 0),
        };
        let data = data.expect("numbers");
        for (activation, expected) in ACTIVATIONS.into_iter().zip(expected) {
            // Two that are right and two that are wrong are enough.
            let is_error = matches!(*expected, "SC0305" | "SC0306" | "SC0309");
            if is_error || !matches!(activation, None | Some("sigmoid")) || *name == "mse" {
                continue;
            }
            let [model, _] = heads(*outputs, activation);
            answers(&model, loss(name, *from_logits));
            let (_, heard) = support::heard(OURS, || model.fit(&data, args()).expect("it trains"));
            assert!(
                heard.is_empty(),
                "{name} {from_logits} {activation:?}: {heard:?}"
            );
        }
    }
}

/// The outputs of a network of one's own are looked at in the first batch.
#[test]
fn outputs_of_an_own_network_are_seen_in_the_first_batch() {
    let classes = make_classification(24, 2, 3, 0).expect("numbers");
    let two = make_classification(24, 2, 2, 0).expect("numbers");
    let check = |outputs: usize, weight: f32, name: &str, from_logits: bool, expected: &[&str]| {
        let model = own(outputs, weight);
        answers(&model, loss(name, from_logits));
        let data = if outputs == 1 { &two } else { &classes };
        let args = FitArgs::new().epochs(2).batch_size(8).verbose(false);
        let (_, heard) = support::heard(OURS, || model.fit(data, args).expect("it trains"));
        let codes: Vec<&str> = heard.iter().map(|finding| finding.code.as_str()).collect();
        assert_eq!(codes, expected, "{name} {from_logits} {weight}: {heard:?}");
    };
    check(3, 1.0, "sparse", true, &[]);
    check(3, 1.0, "sparse", false, &["SC0302"]);
    check(1, 1.0, "binary", true, &[]);
    check(1, 1.0, "binary", false, &["SC0302"]);
}

//! `run.why()` on planted faults: the first value that is not finite is named, with its cause.

use burn::module::{Module, Param};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::activation::softmax;
use burn::tensor::{Device, Tensor};
use stratoscope_bert::Mode;
use stratoscope_data::{Batch, Dataset, Label, make_classification, make_regression};
use stratoscope_models::{
    CompileArgs, Dense, FitArgs, MeanSquaredError, Model, Network, Outputs, Phase, SGD, Sequential,
    Why, features, set_global_policy, tap,
};
use stratoscope_strategy::{Origin, scope};

use super::support::{cross_entropy, load, plain_args, sentences, tiny_bert};

/// What a network of one's own does wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    Division,
    Logarithm,
    Root,
    Exponential,
    Growth,
    Square,
    /// Scores with a mask of −∞ on some of a line, which is no fault.
    Mask,
    /// On all of it.
    MaskOfAll,
    /// A finite root whose slope is infinite.
    Slope,
    Weight,
}

#[derive(Module, Debug)]
struct Faulty {
    hidden: Linear,
    #[module(skip)]
    fault: Fault,
}

impl Network for Faulty {
    type Files = Outputs;

    fn logits(&self, batch: &Batch, _: Mode, device: &Device) -> Tensor<2> {
        let x = tap("input", features(batch, device));
        let hidden = tap("hidden", self.hidden.forward(x));
        let zeros = || tap("zeros", hidden.clone() * 0.0);
        match self.fault {
            Fault::None | Fault::Weight => hidden,
            Fault::Division => hidden.clone() + tap("quotient", hidden.clone() / zeros()),
            Fault::Logarithm => tap("logarithm", zeros().log()),
            Fault::Root => tap(
                "root",
                tap("negative", hidden.clone().abs().neg() - 1.0).sqrt(),
            ),
            Fault::Exponential => {
                let large = tap("large", hidden.clone() * 0.0 + 100.0);
                tap("powers", large.exp()) + hidden
            }
            Fault::Growth => {
                let grown = tap("grown", hidden * 0.0 + 1e30);
                tap("product", grown.clone() * grown)
            }
            Fault::Mask | Fault::MaskOfAll => {
                let [rows, _] = hidden.dims();
                let second = if self.fault == Fault::Mask {
                    0.0
                } else {
                    f32::NEG_INFINITY
                };
                let mask = Tensor::<2>::from_floats([[f32::NEG_INFINITY, second]], device);
                let scores = tap("scores", hidden + mask.expand([rows, 2]));
                tap("probabilities", softmax(scores, 1))
            }
            Fault::Square => tap("square", hidden.clone() * hidden),
            Fault::Slope => tap("root", zeros().sqrt()),
        }
    }
}

fn why(fault: Fault) -> Why {
    let device = scope::device().expect("a device");
    let mut hidden = LinearConfig::new(4, 2).init(&device);
    if fault == Fault::Weight {
        hidden.weight = Param::from_tensor(Tensor::full([4, 2], f32::NAN, &device));
    }
    let network = Faulty { hidden, fault };
    let model =
        Model::with_files(network, Outputs::new("Faulty", 2), Origin::current()).expect("placed");
    let args = CompileArgs::new()
        .optimizer(SGD::new(0.1))
        .loss(cross_entropy());
    model.compile(args).expect("valid settings");
    let data = make_classification(20, 4, 2, 0).expect("rows");
    let args = FitArgs::new().batch_size(8).verbose(false);
    let run = model.start(&data, args).expect("good data");
    let why = run.why().expect("no device fails");
    // The run itself stops at it, and stands where it stood.
    let is_fine = matches!(fault, Fault::None | Fault::Mask);
    assert_eq!(run.step(1).is_ok(), is_fine, "{fault:?}");
    if !is_fine {
        assert_eq!(
            run.why().expect("no device fails").first.map(|it| it.name),
            why.first.clone().map(|it| it.name)
        );
    }
    why
}

#[track_caller]
fn check(why: &Why, phase: Phase, name: &str, cause: &str) {
    let first = why
        .first
        .as_ref()
        .unwrap_or_else(|| panic!("nothing found: {why}"));
    assert_eq!((first.phase, first.name.as_str()), (phase, name), "{why}");
    assert!(!first.value.is_finite());
    assert!(
        why.causes.iter().any(|it| it.contains(cause)),
        "{cause}: {why}"
    );
    assert!(!why.fixes.is_empty() && why.to_html().contains(name));
}

#[test]
fn faults_of_a_network_of_ones_own() {
    check(
        &why(Fault::Division),
        Phase::Forward,
        "quotient",
        "division by 0",
    );
    check(
        &why(Fault::Logarithm),
        Phase::Forward,
        "logarithm",
        "logarithm of 0",
    );
    check(&why(Fault::Root), Phase::Forward, "root", "negative number");
    check(
        &why(Fault::Exponential),
        Phase::Forward,
        "powers",
        "exponential of more than 88",
    );
    check(
        &why(Fault::Growth),
        Phase::Forward,
        "product",
        "numbers that have grown",
    );
    check(
        &why(Fault::MaskOfAll),
        Phase::Forward,
        "probabilities",
        "−∞ everywhere",
    );
    check(
        &why(Fault::Slope),
        Phase::Backward,
        "root",
        "slope that is infinite",
    );
    check(
        &why(Fault::Weight),
        Phase::Weights,
        "hidden.weight",
        "checkpoint",
    );
    for fine in [Fault::None, Fault::Mask] {
        let why = why(fine);
        assert!(
            why.first.is_none() && why.verdict.contains("every value"),
            "{fine:?}: {why}"
        );
        assert!(
            why.notes.iter().any(|note| note.contains(" contributes ")),
            "{why}"
        );
    }
}

#[test]
fn the_example_is_named() {
    let device = scope::device().expect("a device");
    let hidden = LinearConfig::new(4, 2).init(&device);
    let network = Faulty {
        hidden,
        fault: Fault::Square,
    };
    let model =
        Model::with_files(network, Outputs::new("Faulty", 2), Origin::current()).expect("placed");
    let args = CompileArgs::new()
        .optimizer(SGD::new(0.1))
        .loss(cross_entropy());
    model.compile(args).expect("valid settings");
    let data = make_classification(20, 4, 2, 0).expect("rows");
    let large = data.map(|mut example| {
        if example.row == 5 {
            example.features = [1e30; 4].into();
        }
        example
    });
    let args = FitArgs::new().batch_size(8).shuffle(false).verbose(false);
    let run = model.start(&large, args).expect("good data");
    let why = run.why().expect("no device fails");
    let first = why.first.as_ref().expect("it overflows");
    assert_eq!((first.phase, first.row), (Phase::Forward, Some(5)), "{why}");
    check(&why, Phase::Forward, "square", "numbers that have grown");
}

#[test]
fn losses_and_labels_that_are_not_finite() {
    let run = |label: f32| {
        let model = Sequential([Dense(1).input_shape(4)]).expect("valid");
        let args = CompileArgs::new()
            .optimizer(SGD::new(0.01))
            .loss(MeanSquaredError);
        model.compile(args).expect("valid settings");
        let data: Dataset =
            make_regression(16, 4, 0)
                .expect("rows")
                .map(|example| match example.row {
                    3 => example.with_label(Label::Value(label)),
                    _ => example,
                });
        let args = FitArgs::new().batch_size(8).shuffle(false).verbose(false);
        model.start(&data, args).and_then(|run| run.why())
    };
    let why = run(1e30).expect("good data");
    check(&why, Phase::Loss, "MeanSquaredError", "beyond float32");
    assert_eq!(why.first.and_then(|it| it.row), Some(3));
    // Data with such a label may be refused before a run begins.
    if let Ok(why) = run(f32::NAN) {
        check(&why, Phase::Data, "label", "source of the data");
    }
}

#[test]
fn a_scaled_loss_overflows_in_float16() {
    set_global_policy("mixed_float16").expect("a policy");
    let layers = [Dense(64).input_shape(4), Dense(1)];
    let model = Sequential(layers).expect("valid");
    set_global_policy("float32").expect("a policy");
    let args = CompileArgs::new()
        .optimizer(SGD::new(0.01))
        .loss(MeanSquaredError);
    model.compile(args).expect("valid settings");
    let data = make_regression(16, 4, 0).expect("rows").map(|mut example| {
        example.features = [60_000.0, -60_000.0, 60_000.0, 60_000.0].into();
        example
    });
    let args = FitArgs::new().batch_size(8).verbose(false);
    let run = model.start(&data, args).expect("good data");
    let why = run.why().expect("no device fails");
    check(
        &why,
        Phase::Backward,
        "dense_1",
        "under the scale of the loss",
    );
}

#[test]
fn a_bert_without_a_fault_has_none_and_over_is_over() {
    let model = load(&tiny_bert(0.1));
    model.compile(plain_args()).expect("valid settings");
    let args = FitArgs::new().batch_size(8).verbose(false);
    let run = model.start(&sentences(16), args).expect("good data");
    let why = run.why().expect("no device fails");
    assert!(
        why.first.is_none() && why.to_html().contains("every value"),
        "{why}"
    );
    run.finish().expect("it ends");
    assert!(run.why().expect("free").verdict.contains("the run is over"));
}

//! What tests of families have in common that compare layers and gradients with `case.safetensors` of a folder of
//! `tests/parity/families`.

use std::path::{Path, PathBuf};

use burn::optim::GradientsParams;
use burn::tensor::{Device, Int, Tensor, TensorData};
use stratoscope_bert::ops::Precision;
use stratoscope_bert::{
    BatchTensors, BertConfig, BertNetwork, LoadOptions, MaskedLm, Mode, SequenceClassifier,
    checkpoint, gradient, named_parameters,
};
use stratoscope_data::Tokenize;

use crate::fixtures::{Case, as_f64, difference, parity};
use crate::parity::{FORWARD, GRADIENT, GRADIENT_OF_PEAK, loss};
use crate::saving::read_by_transformers;

pub(crate) fn folder(name: &str) -> PathBuf {
    parity("families").join(name)
}

pub(crate) fn loaded<N: BertNetwork>(name: &str, device: &Device) -> checkpoint::LoadedNetwork<N> {
    let options = LoadOptions::new();
    checkpoint::load_network_as(&folder(name), &options, device).expect("the fixture loads")
}

pub(crate) fn batch(case: &Case, device: &Device) -> BatchTensors {
    let shape = case.shape("input.input_ids");
    let shape = [shape[0], shape[1]];
    let ids = case.values("input.input_ids").iter().map(|&id| id as i64);
    let mask = case
        .values("input.attention_mask")
        .iter()
        .map(|&it| it as f32);
    let types = vec![0; shape[0] * shape[1]];
    BatchTensors::from_values(ids.collect(), mask.collect(), types, shape, device)
}

/// Compares [B, S, H] at the tokens: at padding, where no token looks, transformers computes something else.
pub(crate) fn compare_tokens(name: &str, found: Tensor<3>, case: &Case) {
    let [_, _, width] = found.dims();
    assert_eq!(found.dims(), case.shape(name), "{name}");
    let mask = case.values("input.attention_mask");
    let at_tokens = |values: &[f64]| -> Vec<f64> {
        let rows = values.chunks(width).zip(mask);
        rows.filter(|(_, mask)| **mask == 1.0)
            .flat_map(|(row, _)| row.to_vec())
            .collect()
    };
    let (found, expected) = (as_f64(found.into_data()), case.values(name));
    let (largest, _) = difference(&at_tokens(&found), &at_tokens(expected));
    assert!(largest <= FORWARD, "{name}: {largest:e}");
}

/// Compares the gradient of every parameter by its name in the file.
pub(crate) fn compare_gradients<N: BertNetwork>(
    network: &N,
    gradients: &GradientsParams,
    case: &Case,
    in_file: impl Fn(&str) -> String,
) {
    let mut compared = 0;
    for parameter in named_parameters(network) {
        let name = format!("grad.{}", in_file(&parameter.name));
        let data = gradient(network, gradients, &parameter.name);
        let data = data.unwrap_or_else(|| panic!("{name}: no gradient"));
        // Without segments there is a table of one vector of zeros, which stays so.
        if !case.names().any(|it| it == name) && name.contains("token_type_embeddings") {
            assert!(as_f64(data).iter().all(|it| *it == 0.0), "{name}");
            continue;
        }
        // A table of positions in the file begins with rows that no position has, and their gradient is zero.
        let unused = case.values(&name).len() - data.num_elements();
        let (unused, expected) = case.values(&name).split_at(unused);
        assert_eq!(data.shape()[1..], case.shape(&name)[1..], "{name}");
        assert!(
            unused.is_empty() || name.contains("position_embeddings"),
            "{name}"
        );
        assert!(unused.iter().all(|it| *it == 0.0), "{name}");
        let (largest, peak) = difference(&as_f64(data), expected);
        assert!(
            largest <= GRADIENT.max(1e-5 * peak),
            "{name}: {largest:e} of {peak:e}"
        );
        // The bias of keys has no influence where scores are products of queries and keys: what is there is rounding.
        let is_zero = parameter.name.ends_with("key.bias") && peak < 1e-7;
        assert!(
            is_zero || largest <= GRADIENT_OF_PEAK * peak,
            "{name}: {largest:e} of {peak:e}"
        );
        compared += 1;
    }
    let all = case
        .names()
        .filter(|name| name.starts_with("grad."))
        .count();
    assert_eq!(
        compared, all,
        "as many parameters as gradients in the reference"
    );
}

/// Compares the values of a case with what was computed.
fn compare(case: &Case, found: [(&str, TensorData); 2]) {
    for (name, data) in found {
        let (largest, _) = difference(&as_f64(data), case.values(name));
        assert!(largest <= FORWARD, "{name}: {largest:e}");
    }
}

/// Every layer's output, the logits, the loss and every gradient of a classifier of so many layers. `in_file`: the name of a
/// parameter in the file.
pub(crate) fn check_classifier(
    name: &str,
    layers: usize,
    device: &Device,
    in_file: impl Fn(&str) -> String,
) {
    let case = Case::read(&folder(name).join("case.safetensors"));
    let device = device.clone().autodiff();
    let network = loaded::<SequenceClassifier>(name, &device).network;
    let output = network.forward_all(batch(&case, &device), Mode::Eval);
    let loss = loss(output.logits.clone(), case.values("input.labels"));
    let gradients = GradientsParams::from_grads(loss.backward(), &network);
    compare_tokens("embeddings", output.bert.embedded.clone(), &case);
    assert_eq!(output.bert.hidden_states.len(), layers);
    for (layer, hidden) in output.bert.hidden_states.into_iter().enumerate() {
        compare_tokens(&format!("hidden.{}", layer + 1), hidden, &case);
    }
    let (logits, loss) = (output.logits.into_data(), loss.into_data());
    compare(&case, [("logits", logits), ("loss", loss)]);
    compare_gradients(&network, &gradients, &case, in_file);
}

/// The logits, the loss and every gradient of a masked language model.
pub(crate) fn check_masked(name: &str, in_file: impl Fn(&str) -> String) {
    let case = Case::read(&folder(name).join("case.safetensors"));
    let device = Device::flex().autodiff();
    let network = loaded::<MaskedLm>(name, &device).network;
    let labels = case.values("input.labels").iter().enumerate();
    let chosen = labels.filter(|(_, label)| **label >= 0.0);
    let (places, labels): (Vec<i64>, Vec<f64>) =
        chosen.map(|(at, label)| (at as i64, *label)).unzip();
    let count = places.len();
    let places = Tensor::<1, Int>::from_data(TensorData::new(places, [count]), &device);
    let logits = network.forward(batch(&case, &device), places, Mode::Eval);
    let loss = loss(logits.clone(), &labels);
    let gradients = GradientsParams::from_grads(loss.backward(), &network);
    let (logits, loss) = (logits.into_data(), loss.into_data());
    compare(&case, [("logits", logits), ("loss", loss)]);
    compare_gradients(&network, &gradients, &case, in_file);
}

/// Under a mixed policy the logits of a classifier are those of float32 but for the rounding.
pub(crate) fn check_sixteen_bits(name: &str) {
    let case = Case::read(&folder(name).join("case.safetensors"));
    let device = Device::flex();
    let network = loaded::<SequenceClassifier>(name, &device).network;
    let logits = |precision: Precision| {
        let output = || network.forward_all(batch(&case, &device), Mode::Eval);
        as_f64(precision.during(output).logits.into_data())
    };
    let whole = logits(Precision::Float32);
    for precision in [Precision::Bfloat16, Precision::Float16] {
        let (largest, peak) = difference(&logits(precision), &whole);
        assert!(
            largest > 0.0 && largest < 0.05 * peak,
            "{name} {precision:?}: {largest:e} of {peak:e}"
        );
    }
}

/// A configuration by its text, or the code and the message of the refusal.
pub(crate) fn read(text: &str) -> Result<BertConfig, String> {
    let config = BertConfig::from_json(text, Path::new("config.json"));
    config.map_err(|problem| format!("{} {}", problem.code, problem.message))
}

/// A classifier on the body of `name`, as we write it, has in transformers this class, our ids and our logits. Runs where
/// `STRATOSCOPE_TORCH_PYTHON` names a Python that has transformers.
pub(crate) fn check_reading(name: &str, class: &str) {
    let Some(python) = std::env::var_os("STRATOSCOPE_TORCH_PYTHON") else {
        println!("not run here: STRATOSCOPE_TORCH_PYTHON names no Python with transformers");
        return;
    };
    let (options, device) = (LoadOptions::new().num_labels(3).seed(7), Device::flex());
    let loaded = checkpoint::load(&folder(name), &options, &device);
    let loaded = loaded.expect("the fixture loads");
    let copy = tempfile::tempdir().expect("a folder");
    let (network, tokenizer) = (&loaded.network, &loaded.tokenizer);
    checkpoint::save(copy.path(), network, &loaded.config, tokenizer).expect("it is saved");
    let texts = [
        "A text editor for naïve texts of several lines",
        "",
        "fonts",
    ];
    let reference = read_by_transformers(&python, copy.path(), &texts);
    assert_eq!(reference["class"], class);
    assert_eq!(reference["missing"], serde_json::json!([]));
    assert_eq!(reference["unexpected"], serde_json::json!([]));
    let rows = texts.map(|text| tokenizer.encode(text, None, 32).expect("it has tokens"));
    for (row, encoded) in rows.iter().enumerate() {
        let ids = serde_json::to_value(&encoded.ids).expect("numbers");
        let theirs = &reference["ids"][row].as_array().expect("ids")[..encoded.ids.len()];
        assert_eq!(ids.as_array().expect("ids"), theirs, "{row}");
    }
    let batch = BatchTensors::from_rows(&rows, tokenizer.pad_id(), &device);
    let logits = as_f64(network.forward(batch, Mode::Eval).into_data());
    let expected = reference["logits"].as_array().expect("rows").iter();
    let expected = expected.flat_map(|row| row.as_array().expect("a row"));
    let expected: Vec<f64> = expected.filter_map(serde_json::Value::as_f64).collect();
    let (largest, _) = difference(&logits, &expected);
    assert!(largest <= FORWARD, "{largest:e}");
}

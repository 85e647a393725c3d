//! The tiny model in bfloat16 against the float64 reference: outputs and every gradient.

use burn::optim::GradientsParams;
use burn::tensor::Device;
use stratoscope_bert::ops::{Precision, bfloat16_on_cpu};
use stratoscope_bert::{LoadOptions, Mode, checkpoint, gradient, named_parameters};

use crate::fixtures::{Case, as_f64, difference, parity};
use crate::parity::loss;

/// Each number that is multiplied is off by at most 2⁻⁹ of its size, and a product of two by 2⁻⁸. Through two layers the
/// errors add up, with both signs: of the largest element of a tensor 2⁻⁵ is allowed.
const LIMIT: f64 = 1.0 / 32.0;
/// The angle between a gradient and the reference is what training depends on. Its cosine is at least this.
const COSINE: f64 = 0.999;

fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let product = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    product(a, b) / (product(a, a) * product(b, b)).sqrt()
}

#[test]
fn outputs_and_gradients_are_near_those_of_the_reference() {
    let folder = parity("tiny-bert/sequence-classification");
    let case = Case::read(&folder.join("case.safetensors"));
    let device = Device::flex().autodiff();
    let loaded = checkpoint::load_network(&folder, &LoadOptions::new(), &device).unwrap();
    let network = loaded.network;
    let batch = case.batch(&device);
    let output = Precision::Bfloat16.during(|| network.forward_all(batch, Mode::Eval));
    let hidden = output.bert.hidden_states[1].clone().into_data();
    let mut worst = 0.0_f64;
    for (name, data) in [
        ("hidden.2", hidden),
        ("logits", output.logits.clone().into_data()),
    ] {
        let (largest, peak) = difference(&as_f64(data), case.values(name));
        assert!(largest <= LIMIT * peak, "{name}: {largest:e} of {peak:e}");
        worst = worst.max(largest / peak);
    }
    assert!(worst > 1e-4, "nothing was rounded");

    let loss = loss(output.logits, case.values("input.labels"));
    let gradients = GradientsParams::from_grads(loss.backward(), &network);
    let text = std::fs::read_to_string(folder.join("case.json")).unwrap();
    let facts: serde_json::Value = serde_json::from_str(&text).unwrap();
    let (mut of_gradients, mut least) = (0.0_f64, 1.0_f64);
    for parameter in named_parameters(&network) {
        let name = format!("grad.{}", parameter.name);
        if facts["zero_gradients"].get(&name).is_some() {
            continue;
        }
        let data = gradient(&network, &gradients, &parameter.name);
        let values = as_f64(data.unwrap_or_else(|| panic!("{name}: no gradient")));
        let expected = case.values(&name);
        let (largest, peak) = difference(&values, expected);
        assert!(largest <= LIMIT * peak, "{name}: {largest:e} of {peak:e}");
        let cosine = cosine(&values, expected);
        assert!(cosine >= COSINE, "{name}: cosine {cosine}");
        of_gradients = of_gradients.max(largest / peak);
        least = least.min(cosine);
    }
    println!(
        "{:?}: outputs {worst:.1e} of the peak, gradients {of_gradients:.1e}, least cosine {least:.6}",
        bfloat16_on_cpu()
    );
}

//! Activations, loss and every gradient of the tiny models, on the CPU and on wgpu.

use burn::optim::GradientsParams;
use burn::tensor::{Device, Int, Tensor, TensorData, activation};
use stratoscope_bert::{LoadOptions, Mode, checkpoint, gradient, named_parameters};

use crate::fixtures::{Case, as_f64, difference, parity};

/// Limits of `tests/parity/README.md`.
pub const FORWARD: f64 = 1e-5;
pub const GRADIENT: f64 = 1e-6;
pub const GRADIENT_OF_PEAK: f64 = 1e-4;

/// The loss as the reference computes it: cross entropy, or the squared error for one output; mean
/// over the batch.
pub fn loss(logits: Tensor<2>, labels: &[f64]) -> Tensor<1> {
    let device = logits.device();
    let [batch, outputs] = logits.dims();
    if outputs == 1 {
        let labels: Vec<f32> = labels.iter().map(|&label| label as f32).collect();
        let labels = Tensor::<2>::from_data(TensorData::new(labels, [batch, 1]), &device);
        return (logits - labels).square().mean();
    }
    let labels: Vec<i64> = labels.iter().map(|&label| label as i64).collect();
    let labels = Tensor::<2, Int>::from_data(TensorData::new(labels, [batch, 1]), &device);
    activation::log_softmax(logits, 1)
        .gather(1, labels)
        .mean()
        .neg()
}

/// Runs a case and compares everything in it, in the file's precision.
fn check(folder: &str, device: &Device) {
    let folder = parity(folder);
    let case = Case::read(&folder.join("case.safetensors"));
    let exact = folder.join("case-f64.safetensors");
    let exact = exact.exists().then(|| Case::read(&exact));
    let references = [Some(&case), exact.as_ref()];

    let device = device.clone().autodiff();
    let loaded = checkpoint::load_network(&folder, &LoadOptions::new(), &device).unwrap();
    let network = loaded.network;
    let output = network.forward_all(case.batch(&device), Mode::Eval);
    let loss = loss(output.logits.clone(), case.values("input.labels"));
    let gradients = GradientsParams::from_grads(loss.backward(), &network);

    let mut worst = 0.0_f64;
    let hidden = |layer: usize| output.bert.hidden_states[layer].clone().into_data();
    let forward = [
        ("embeddings", output.bert.embedded.clone().into_data()),
        ("hidden.1", hidden(0)),
        ("hidden.2", hidden(1)),
        ("pooled", output.bert.pooled.clone().into_data()),
        ("logits", output.logits.clone().into_data()),
        ("loss", loss.into_data()),
    ];
    for (name, data) in forward {
        assert_eq!(data.shape().as_slice(), case.shape(name), "{name}");
        let values = as_f64(data);
        for reference in references.into_iter().flatten() {
            let (largest, _) = difference(&values, reference.values(name));
            assert!(largest <= FORWARD, "{name}: {largest:e}");
            worst = worst.max(largest);
        }
    }
    println!("activations, logits and loss: largest difference {worst:.1e}");

    let text = std::fs::read_to_string(folder.join("case.json")).unwrap();
    let facts: serde_json::Value = serde_json::from_str(&text).unwrap();
    let (mut worst, mut worst_of_peak, mut compared) = (0.0_f64, 0.0_f64, 0);
    let mut failures = Vec::new();
    for parameter in named_parameters(&network) {
        let name = format!("grad.{}", parameter.name);
        let data = gradient(&network, &gradients, &parameter.name);
        let data = data.unwrap_or_else(|| panic!("{name}: no gradient"));
        assert_eq!(data.shape().as_slice(), case.shape(&name), "{name}");
        let values = as_f64(data);
        for reference in references.into_iter().flatten() {
            let (largest, peak) = difference(&values, reference.values(&name));
            if largest > GRADIENT {
                failures.push(format!("{name}: {largest:.1e}, peak {peak:.1e}"));
            }
            worst = worst.max(largest);
            if facts["zero_gradients"].get(&name).is_none() {
                assert!(
                    largest <= GRADIENT_OF_PEAK * peak,
                    "{name}: {largest:e} of {peak:e}"
                );
                worst_of_peak = worst_of_peak.max(largest / peak);
            }
        }
        compared += 1;
    }
    let expected = case
        .names()
        .filter(|name| name.starts_with("grad."))
        .count();
    assert_eq!(
        compared, expected,
        "as many parameters as gradients in the reference"
    );
    assert!(failures.is_empty(), "{failures:#?}");
    println!(
        "{compared} gradients: largest difference {worst:.1e}, {worst_of_peak:.1e} of the peak"
    );
}

#[test]
fn classification_on_flex() {
    check("tiny-bert/sequence-classification", &Device::flex());
}

#[test]
fn regression_on_flex() {
    check("tiny-bert/regression", &Device::flex());
}

/// One test, since the first step compiles every kernel anew.
#[test]
fn classification_on_gpu() {
    let Some(device) = stratoscope_gpu::testing::device() else {
        return;
    };
    check("tiny-bert/sequence-classification", &device);
}

/// The padding token's vector is not trained, whatever its gradient would be.
#[test]
fn the_padding_row_gets_no_gradient() {
    let device = Device::flex().autodiff();
    let folder = parity("tiny-bert/sequence-classification");
    let network = checkpoint::load_network(&folder, &LoadOptions::new(), &device)
        .unwrap()
        .network;
    let case = Case::read(&folder.join("case.safetensors"));
    // The sum over all positions, so that padding takes part in the loss.
    let hidden = network
        .bert
        .forward(case.batch(&device), Mode::Eval)
        .last_hidden_state();
    let weights = Tensor::<3>::from_data(
        TensorData::new(
            (0..4 * 16 * 32).map(|i| (i % 7) as f32).collect(),
            [4, 16, 32],
        ),
        &device,
    );
    let gradients = GradientsParams::from_grads((hidden * weights).sum().backward(), &network);
    let name = "bert.embeddings.word_embeddings.weight";
    let gradient = as_f64(gradient(&network, &gradients, name).unwrap());
    assert!(
        gradient[..32].iter().all(|&value| value == 0.0),
        "{:?}",
        &gradient[..32]
    );
    assert!(gradient[32..64].iter().any(|&value| value != 0.0));
}

/// Attention to nothing at all must stay a number, and so must its gradient.
#[test]
fn a_row_of_padding_alone_stays_finite() {
    let device = Device::flex().autodiff();
    let folder = parity("tiny-bert/sequence-classification");
    let network = checkpoint::load_network(&folder, &LoadOptions::new(), &device)
        .unwrap()
        .network;
    let mut batch = Case::read(&folder.join("case.safetensors")).batch(&device);
    batch.attention_mask = batch.attention_mask.zeros_like();
    let logits = network.forward(batch, Mode::Eval);
    let gradients = GradientsParams::from_grads(logits.clone().sum().backward(), &network);
    assert!(
        as_f64(logits.into_data())
            .iter()
            .all(|value| value.is_finite())
    );
    for parameter in named_parameters(&network) {
        let gradient = as_f64(gradient(&network, &gradients, &parameter.name).unwrap());
        assert!(
            gradient.iter().all(|value| value.is_finite()),
            "{}",
            parameter.name
        );
    }
}

/// Each rate acts where it should and nowhere else; the same key gives the same numbers.
#[test]
fn dropout_follows_its_rate_and_its_key() {
    let device = Device::flex();
    let folder = parity("tiny-bert/sequence-classification");
    let case = Case::read(&folder.join("case.safetensors"));
    let mut config = stratoscope_bert::BertConfig::from_folder(&folder).unwrap();
    let mode = |seed, step, replica| Mode::Train {
        seed,
        step,
        replica,
    };
    let run = |config: &stratoscope_bert::BertConfig, mode| {
        let network = stratoscope_bert::SequenceClassifier::init(config, 5, &device).unwrap();
        let output = network.forward_all(case.batch(&device), mode);
        let embedded = as_f64(output.bert.embedded.into_data());
        (embedded, as_f64(output.logits.into_data()))
    };

    let evaluated = run(&config, Mode::Eval);
    let trained = run(&config, mode(1, 2, 0));
    assert_eq!(
        trained,
        run(&config, mode(1, 2, 0)),
        "the same key, the same numbers"
    );
    assert_ne!(trained, evaluated);
    for other in [mode(2, 2, 0), mode(1, 3, 0), mode(1, 2, 1)] {
        assert_ne!(trained.0, run(&config, other).0, "{other:?}");
    }

    config.hidden_dropout_prob = 0.0;
    config.attention_probs_dropout_prob = 0.0;
    config.classifier_dropout = None;
    assert_eq!(
        run(&config, mode(1, 2, 0)),
        evaluated,
        "without a rate, training changes nothing"
    );
    for set in 0..2 {
        let mut config = config.clone();
        match set {
            0 => config.attention_probs_dropout_prob = 0.5,
            _ => config.classifier_dropout = Some(0.5),
        }
        let trained = run(&config, mode(1, 2, 0));
        assert_eq!(trained.0, evaluated.0, "the embeddings have no part in it");
        assert_ne!(trained.1, evaluated.1);
    }
}

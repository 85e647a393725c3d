//! Looking at what layers compute: the values are those of the pass, and the pass is the one without taps.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};
use stratoscope_bert::taps::Taps;
use stratoscope_bert::{LoadOptions, Mode, checkpoint, gradient, named_parameters};

use crate::fixtures::{Case, parity};

type Seen = Arc<Mutex<BTreeMap<String, (Vec<usize>, Vec<f32>)>>>;

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

#[test]
fn a_pass_with_taps_has_the_bits_of_one_without() {
    let folder = parity("tiny-bert/sequence-classification");
    let case = Case::read(&folder.join("case.safetensors"));
    let device = Device::flex().autodiff();
    let loaded = checkpoint::load_network(&folder, &LoadOptions::new(), &device);
    let network = loaded.expect("the fixture loads").network;
    let mode = Mode::Train {
        seed: 1,
        step: 2,
        replica: 0,
    };
    let pass = || network.forward_all(case.batch(&device), mode);
    let gradients = |logits: Tensor<2>| -> Vec<Vec<f32>> {
        let gradients = GradientsParams::from_grads(logits.square().sum().backward(), &network);
        let names = named_parameters(&network).into_iter();
        let own = names.filter_map(|known| gradient(&network, &gradients, &known.name));
        own.map(|data| data.iter::<f32>().collect()).collect()
    };
    let seen = Seen::default();
    let sink = Arc::clone(&seen);
    let taps = Taps::new(
        |_| true,
        move |name, shape, elements| {
            let all = (shape.to_vec(), numbers(elements));
            let before = sink.lock().expect("no panic").insert(name.to_owned(), all);
            assert!(before.is_none(), "{name} twice");
        },
    );
    let plain = pass();
    let tapped = taps.during(pass);
    assert_eq!(
        numbers(plain.logits.clone()),
        numbers(tapped.logits.clone())
    );
    assert_eq!(gradients(plain.logits.clone()), gradients(tapped.logits));

    let seen = seen.lock().expect("no panic");
    let mut expected = vec![
        ("bert.embeddings".to_owned(), numbers(plain.bert.embedded)),
        ("bert.pooler".to_owned(), numbers(plain.bert.pooled)),
        ("classifier".to_owned(), numbers(plain.logits)),
    ];
    for (layer, output) in plain.bert.hidden_states.into_iter().enumerate() {
        expected.push((
            format!("bert.encoder.layer.{layer}.output"),
            numbers(output),
        ));
    }
    for (name, values) in expected {
        assert_eq!(seen.get(&name).map(|it| &it.1), Some(&values), "{name}");
    }
    // Without its `.weight`, the name of a dense layer is that of its output, but where it is fused with what follows.
    for part in [
        "attention.self.query",
        "attention.output.dense",
        "output.dense",
    ] {
        assert!(
            seen.contains_key(&format!("bert.encoder.layer.0.{part}")),
            "{part}"
        );
    }
    let (shape, probabilities) = &seen["bert.encoder.layer.1.attention.self.probabilities"];
    for row in probabilities.chunks(shape[3]) {
        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{row:?}");
    }
}

//! What training takes of memory, by counting what the allocator gives out. One test: the count is the process's.

mod counted;

use burn::tensor::{Device, Tensor};
use stratoscope_bert::recompute::Recorded;
use stratoscope_bert::{
    BatchTensors, BertConfig, Mode, SequenceClassifier, gradient, named_parameters,
};

#[global_allocator]
static ALLOCATOR: counted::Counted = counted::Counted;

const LAYERS: usize = 6;
const EXAMPLES: usize = 8;
const LENGTH: usize = 64;
const HIDDEN: usize = 64;

fn network() -> SequenceClassifier {
    let text = format!(
        "{{\"vocab_size\": 99, \"hidden_size\": {HIDDEN}, \"num_hidden_layers\": {LAYERS}, \
         \"num_attention_heads\": 4, \"intermediate_size\": 256, \"max_position_embeddings\": 64}}"
    );
    let config = BertConfig::from_json(&text, "config.json".as_ref()).expect("valid");
    let config = config.with_num_labels(3).expect("three");
    SequenceClassifier::init(&config, 7, &Device::flex().autodiff()).expect("it fits")
}

/// The gradients of all parameters by name, and the most bytes that the step had above those before it.
fn step(network: &SequenceClassifier, recompute: bool) -> (Vec<(String, Vec<f32>)>, usize) {
    let device = Device::flex().autodiff();
    let count = EXAMPLES * LENGTH;
    let ids = (0..count).map(|index| (index * 7 % 99) as i64).collect();
    let mask = (0..count).map(|index| f32::from(u8::from(index % LENGTH < 50)));
    let shape = [EXAMPLES, LENGTH];
    let batch = BatchTensors::from_values(ids, mask.collect(), vec![0; count], shape, &device);
    let mode = Mode::Train {
        seed: 3,
        step: 5,
        replica: 0,
    };
    let before = counted::live();
    counted::peak();
    let forward = || network.forward(batch, mode);
    let (logits, recorded) = Recorded::during(recompute, forward);
    assert_eq!(recorded.parts(), if recompute { LAYERS } else { 0 });
    let loss: Tensor<1> = (logits.clone() * logits).sum();
    let gradients = recorded.backward(&loss, network);
    drop(loss);
    let most = counted::peak() - before;
    let values = named_parameters(network).into_iter().map(|known| {
        let found = gradient(network, &gradients, &known.name).expect("all are trained");
        (known.name, found.iter::<f32>().collect())
    });
    (values.collect(), most)
}

#[test]
fn recomputing_takes_less_memory_and_gives_the_same_bits() {
    let network = network();
    // The first step of a process makes what is kept for all.
    step(&network, false);
    let (kept, with) = step(&network, false);
    let (computed_again, without) = step(&network, true);
    assert!(
        kept.len() > 90
            && kept
                .iter()
                .all(|(_, values)| values.iter().any(|&x: &f32| x != 0.0))
    );
    assert_eq!(kept, computed_again, "bit for bit");
    // Kept: 16 times the input of each of 6 layers; computed again: that of one layer and 5 inputs.
    assert!(
        2 * without < with,
        "{with} bytes, {without} with recomputing"
    );
}

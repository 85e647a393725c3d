//! What an optimizer step under `ModelParallel` does, in words and in bytes.

use stratoscope_render::text;

use crate::strategy::Strategy;
use crate::strategy::explain::{EXAMPLE, EXAMPLE_ACTIVATIONS, Row};

/// The encoder layers of BERT-base, the example of the table.
const EXAMPLE_LAYERS: u32 = 12;
/// The share of its weights in the matrices that `ModelParallel` cuts, with the biases beside them: per layer 4 H² + 2 H F + 3 H + F
/// of 109.5 million.
const EXAMPLE_CUT: f64 = 12.0 * (12.0 * 768.0 * 768.0 + 3.0 * 768.0 + 3072.0) / 109.5e6;

pub(super) fn sentence(strategy: &Strategy) -> String {
    let (devices, replicas) = (strategy.devices_of_a_replica(), strategy.replicas().len());
    let in_slices = in_slices(devices);
    if replicas == 1 {
        return in_slices;
    }
    format!(
        "Each of {}, a row of the mesh, has all weights once and computes its share of the batch. {in_slices} \
         An all-reduce ({}) between these first devices gives each replica the mean of all gradients; each makes the same \
         update, every device that of its slices.",
        text::count(replicas, "replica"),
        strategy.cross_device_ops().title(),
    )
}

/// What the devices of a replica do.
fn in_slices(devices: usize) -> String {
    format!(
        "Each of {} has a slice of the weights of each encoder layer, with its gradients and moments: some of the attention heads, \
         and 1/{devices} of the numbers of the feed-forward part. All compute each layer together. Each half of a layer sends \
         its input to all devices and adds up their partial products on the first one; its backward pass does the same with the \
         gradients. Each of these four exchanges moves B × S × H numbers to or from each other device. The first device has all \
         that is not cut (embeddings, LayerNorm, head) and computes it alone.",
        text::count(devices, "device"),
    )
}

/// For the layers of BERT-base and a batch of 32 × 128 tokens, which the replicas divide.
pub(super) fn bytes(devices: usize, replicas: usize) -> Vec<Row> {
    let count = devices as f64;
    let around = count - 1.0;
    let layers = f64::from(EXAMPLE_LAYERS);
    let sent = 8.0 * layers * around * EXAMPLE_ACTIVATIONS / EXAMPLE;
    let (sent_between, all_other, share) = match replicas {
        1 => (
            "sent between the devices",
            "all other weights, on the first device",
            String::new(),
        ),
        _ => (
            "sent between the devices of a replica",
            "all other weights, on each first device",
            format!("/{replicas}"),
        ),
    };
    let parts = replicas as f64;
    let piece = |what, times: f64, symbol: &str| {
        let formula = format!("{symbol}C / {devices}");
        Row::new(what, formula, times * EXAMPLE_CUT / count)
    };
    let whole = 1.0 - EXAMPLE_CUT;
    let mut rows = vec![
        piece(
            "weights of the layers that are cut, C, on a device",
            1.0,
            "",
        ),
        piece("moments there", 2.0, "2 "),
        Row::new(all_other, "P − C", whole),
        Row::new("moments there", "2 (P − C)", 2.0 * whole),
        Row::new(
            sent_between,
            format!("8 · {} · L · B{share} · S · H · 4 bytes", devices - 1),
            sent / parts,
        ),
    ];
    if replicas > 1 {
        rows.push(Row::new(
            "gradients sent by a replica, on average",
            format!("2 · {}/{replicas} · P", replicas - 1),
            2.0 * (parts - 1.0) / parts,
        ));
    }
    rows
}

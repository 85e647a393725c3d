//! A step on a mesh of d · t · p devices: d copies of the model that divide the batch, each of t slices of each layer in p stages.
//!
//! Each copy has B / d sequences, in m micro-batches of b. All bytes are those that one device sends in a step, with A = b · S · H
//! numbers of 2 bytes between two layers, and P the parameters of a device:
//!
//! | what | bytes | source |
//! | --- | --- | --- |
//! | data, no ZeRO or ZeRO-2 | 2 · (d − 1)/d · 2 P: a ring, or a reduce-scatter and an all-gather | Rajbhandari et al. 2020, section 7.1 |
//! | data, ZeRO-1 as here | 3 · (d − 1)/d · 2 P | – |
//! | data, ZeRO-3 | (2 m + 1) · (d − 1)/d · 2 P: weights for the forward and the backward pass of each micro-batch | the same, section 7.2, for m = 1 |
//! | tensor | 4 · L/p · m · 2 · (t − 1)/t · 2 A, 6 in place of 4 with recomputation: all-reduces of each layer | Shoeybi et al. 2019, section 3; Narayanan et al. 2021, section 3.2 |
//! | pipeline | 2 · m · 2 A: one activation forward, one gradient back | Narayanan et al. 2021, section 3.2 |
//!
//! Stages wait for (p − 1)/(m + p − 1) of the time in which they could compute (Huang et al. 2019, "GPipe", section 2.3; the same for
//! 1F1B, Narayanan et al. 2021, section 2.2).
//!
//! A device stores 2 bytes of each weight, 2 of its gradient and 12 for Adam (a copy in float32 and two moments): Rajbhandari et
//! al. 2020, section 3.1. ZeRO divides 12, 14 or 16 of them by d. Activations are those of [`super::network`], of min(p, m)
//! micro-batches in the first stage of 1F1B (Korthikanti et al. 2022, section 4.2.3); with recomputation a layer stores its
//! input alone, 2 A, and one layer all.

use super::{MeshOptions, MeshShape, NetworkSize};
use crate::strategy::{Shard, bubble};

/// Bytes of a weight, a gradient, an activation.
const HALF: f64 = 2.0;
/// A float32 copy of a weight and two moments.
const OPTIMIZER: f64 = 12.0;

/// What a step on a mesh costs. Times are in seconds, sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeshCost {
    /// The mesh.
    pub shape: MeshShape,
    /// Micro-batches of a copy of the model.
    pub micro_batches: usize,
    /// Sequences of a micro-batch.
    pub micro_batch: usize,
    /// Layers are computed again in the backward pass.
    pub recompute: bool,
    /// Weights, gradients and moments of the fullest device.
    pub state_bytes: f64,
    /// Activations of the fullest device.
    pub activation_bytes: f64,
    /// Sent by a device for weights and gradients, to the other copies.
    pub data_bytes: f64,
    /// Sent by a device within the layers.
    pub tensor_bytes: f64,
    /// Sent by a device between stages.
    pub pipeline_bytes: f64,
    /// A step.
    pub seconds: f64,
    /// Of it, the time in which a device computes.
    pub computing: f64,
    /// The share of the time of the passes in which stages wait.
    pub bubble: f64,
    /// Sequences of all copies in a second.
    pub sequences_per_second: f64,
    /// The computing of one device for its share of the batch, without recomputation, over the step.
    pub efficiency: f64,
}

impl MeshCost {
    /// What the fullest device stores.
    pub fn bytes(&self) -> f64 {
        self.state_bytes + self.activation_bytes
    }
}

/// The cost of a step on a mesh. The micro-batches of a copy and the devices are at least 1.
pub(super) fn of(
    network: &NetworkSize,
    options: &MeshOptions,
    shape: MeshShape,
    (micro_batches, micro_batch): (usize, usize),
    recompute: bool,
) -> MeshCost {
    let MeshShape {
        data,
        tensor,
        pipeline,
        shard,
    } = shape;
    let [d, t, p, m, b] = [data, tensor, pipeline, micro_batches, micro_batch].map(|it| it as f64);
    let layers = network.layers() as f64 / p;
    let parameters = (layers * network.of_layer() + network.others()) / t;
    let around = |devices: f64| (devices - 1.0) / devices;

    let divided = |from: Shard, bytes: f64| match shard >= Some(from) {
        true => bytes / d,
        false => bytes,
    };
    let of_parameter = divided(Shard::Parameters, HALF)
        + divided(Shard::Gradients, HALF)
        + divided(Shard::Optimizer, OPTIMIZER);
    let under_way = p.min(m);
    let whole = b * network.activations(t);
    let input = HALF * b * network.between();
    let activation_bytes = match recompute {
        true => under_way * layers * input + whole,
        false => under_way * layers * whole,
    };

    let times = match shard {
        None | Some(Shard::Gradients) => 2.0,
        Some(Shard::Optimizer) => 3.0,
        Some(Shard::Parameters) => 2.0 * m + 1.0,
    };
    let data_bytes = times * around(d) * HALF * parameters;
    let sums = if recompute { 6.0 } else { 4.0 };
    let reduces = sums * layers * m;
    let tensor_bytes = reduces * 2.0 * around(t) * input;
    let borders = if pipeline > 1 { 2.0 * m } else { 0.0 };
    let pipeline_bytes = borders * input;

    // All copies together compute the batch; recomputation is a second forward pass.
    let again = if recompute { 4.0 / 3.0 } else { 1.0 };
    let ideal = m * b * network.operations() / (t * p) / options.operations_per_second;
    let computing = again * ideal;
    let waits = bubble(pipeline, micro_batches);
    let inside = tensor * pipeline * data <= options.devices_per_machine;
    let far = options.link(inside);
    let near = options.link(tensor <= options.devices_per_machine);
    let within = near.seconds(tensor_bytes)
        + reduces * 2.0 * (t - 1.0) * near.latency
        + far.seconds(pipeline_bytes)
        + borders * far.latency;
    let passes = (computing + within) / (1.0 - waits);
    let exchange = far.seconds(data_bytes) + times * (d - 1.0) * far.latency;
    let hidden = (options.overlap * exchange).min(computing);
    let seconds = passes + exchange - hidden;
    MeshCost {
        shape,
        micro_batches,
        micro_batch,
        recompute,
        state_bytes: parameters * of_parameter,
        activation_bytes,
        data_bytes,
        tensor_bytes,
        pipeline_bytes,
        seconds,
        computing,
        bubble: waits,
        sequences_per_second: d * m * b / seconds,
        efficiency: ideal / seconds,
    }
}

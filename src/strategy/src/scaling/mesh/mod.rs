//! How a transformer would train on a mesh of devices: data, tensor and pipeline parallelism with ZeRO, on paper. Nothing is run,
//! and no mesh with several axes of more than one device can be run here yet: see `cost` for the formulas and their sources.
//!
//! [`predict_meshes`] tries every mesh for 8, 16, … devices and keeps the fastest one that fits.

mod cost;
mod network;
mod show;
#[cfg(test)]
mod tests;

use std::fmt;

use stratoscope_diagnostics::Result;

pub use self::cost::MeshCost;
pub use self::network::NetworkSize;
use super::cost::Link;
use crate::problem::bad_size;
use crate::strategy::Shard;

/// More devices have no row.
const MAX_DEVICES: usize = 1 << 16;

/// The axes of a mesh: `data` copies of a model, each of `tensor` slices of each layer in `pipeline` stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeshShape {
    /// Copies, which divide the batch.
    pub data: usize,
    /// Devices that compute each layer together.
    pub tensor: usize,
    /// Stages.
    pub pipeline: usize,
    /// What the copies divide among them, with ZeRO.
    pub shard: Option<Shard>,
}

impl MeshShape {
    /// Copies only.
    pub fn data(copies: usize) -> Self {
        Self {
            data: copies,
            tensor: 1,
            pipeline: 1,
            shard: None,
        }
    }

    /// Its devices.
    pub fn devices(&self) -> usize {
        self.data * self.tensor * self.pipeline
    }
}

impl fmt::Display for MeshShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} × {} × {}", self.data, self.tensor, self.pipeline)?;
        match self.shard {
            None => Ok(()),
            Some(Shard::Optimizer) => f.write_str(", ZeRO-1"),
            Some(Shard::Gradients) => f.write_str(", ZeRO-2"),
            Some(Shard::Parameters) => f.write_str(", ZeRO-3"),
        }
    }
}

/// What a prediction of meshes begins with. The defaults are assumptions: GPUs of the kind A100 with 40 GB, half of whose 312 ·
/// 10¹² operations a second are reached, eight to a machine, 300 GB/s between those of a machine and 25 GB/s from each of them
/// to other machines; 16 sequences for each device; micro-batches of 2048 tokens or more, with which a device is as fast as with
/// larger ones; all of the exchange of gradients and weights goes on while devices compute, as far as they compute for so long.
///
/// ```
/// use stratoscope_strategy::MeshOptions;
///
/// let options = MeshOptions::new().memory(80e9).sequences_per_device(8);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct MeshOptions {
    operations_per_second: f64,
    memory: f64,
    devices_per_machine: usize,
    inside: Link,
    between: Link,
    sequences_per_device: usize,
    tokens_of_micro_batch: usize,
    overlap: f64,
}

impl Default for MeshOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl MeshOptions {
    /// The assumptions above.
    #[must_use]
    pub fn new() -> Self {
        Self {
            operations_per_second: 0.5 * 312e12,
            memory: 40e9,
            devices_per_machine: 8,
            inside: Link {
                bandwidth: 300e9,
                latency: 5e-6,
            },
            between: Link {
                bandwidth: 25e9,
                latency: 10e-6,
            },
            sequences_per_device: 16,
            tokens_of_micro_batch: 2048,
            overlap: 1.0,
        }
    }

    /// Floating-point operations of a device in a second, as they are reached, not the most that it could.
    #[must_use]
    pub fn operations_per_second(mut self, operations: f64) -> Self {
        self.operations_per_second = operations;
        self
    }

    /// Bytes of a device.
    #[must_use]
    pub fn memory(mut self, bytes: f64) -> Self {
        self.memory = bytes;
        self
    }

    /// Devices of a machine.
    #[must_use]
    pub fn devices_per_machine(mut self, devices: usize) -> Self {
        self.devices_per_machine = devices;
        self
    }

    /// Bytes in a second from a device to another of its machine.
    #[must_use]
    pub fn bandwidth_inside(mut self, bytes: f64) -> Self {
        self.inside.bandwidth = bytes;
        self
    }

    /// Bytes in a second from a device to one of another machine.
    #[must_use]
    pub fn bandwidth_between(mut self, bytes: f64) -> Self {
        self.between.bandwidth = bytes;
        self
    }

    /// The batch: so many sequences for each device of the mesh.
    #[must_use]
    pub fn sequences_per_device(mut self, sequences: usize) -> Self {
        self.sequences_per_device = sequences;
        self
    }

    /// Tokens that a micro-batch has at least, unless it is all that a copy of the model has.
    #[must_use]
    pub fn tokens_of_micro_batch(mut self, tokens: usize) -> Self {
        self.tokens_of_micro_batch = tokens;
        self
    }

    /// The share of the exchange of gradients and weights, from 0 to 1, that goes on while devices compute.
    #[must_use]
    pub fn overlap(mut self, share: f64) -> Self {
        self.overlap = share;
        self
    }

    fn link(&self, is_inside: bool) -> Link {
        match is_inside {
            true => self.inside,
            false => self.between,
        }
    }

    fn check(&self) -> Result<()> {
        let above = [
            ("operations_per_second", self.operations_per_second),
            ("memory", self.memory),
            ("bandwidth_inside", self.inside.bandwidth),
            ("bandwidth_between", self.between.bandwidth),
        ];
        for (name, value) in above {
            if !(value.is_finite() && value > 0.0) {
                return Err(bad_size(name, value, "a finite number above 0"));
            }
        }
        if !(0.0..=1.0).contains(&self.overlap) {
            return Err(bad_size("overlap", self.overlap, "from 0 to 1"));
        }
        for (name, count) in [
            ("devices_per_machine", self.devices_per_machine),
            ("sequences_per_device", self.sequences_per_device),
            ("tokens_of_micro_batch", self.tokens_of_micro_batch),
        ] {
            if !(1..=MAX_DEVICES).contains(&count) {
                return Err(bad_size(name, count, "from 1 to 65536"));
            }
        }
        Ok(())
    }
}

/// The fastest mesh that fits for each number of devices. It is a prediction: nothing of it was run.
#[derive(Clone, Debug, PartialEq)]
pub struct MeshPrediction {
    network: NetworkSize,
    options: MeshOptions,
    /// The number of devices, and the best mesh, if any fits.
    rows: Vec<(usize, Option<MeshCost>)>,
}

impl MeshPrediction {
    /// The best mesh of so many devices. `None` where there is no row, or nothing fits.
    pub fn at(&self, devices: usize) -> Option<&MeshCost> {
        let (_, best) = self.rows.iter().find(|(count, _)| *count == devices)?;
        best.as_ref()
    }

    /// The numbers of devices with their best meshes.
    pub fn rows(&self) -> &[(usize, Option<MeshCost>)] {
        &self.rows
    }
}

/// The fastest mesh that fits for 8, 16, … and 1024 devices.
///
/// # Errors
/// SC0915 for an option outside its range.
pub fn predict_meshes(network: &NetworkSize, options: &MeshOptions) -> Result<MeshPrediction> {
    options.check()?;
    let counts = (3..=10).map(|power| 1_usize << power);
    Ok(MeshPrediction {
        network: network.clone(),
        options: options.clone(),
        rows: counts
            .map(|count| (count, best(network, options, count)))
            .collect(),
    })
}

/// What a step on this mesh costs, with the micro-batches that are the fastest of those that fit; of those that do not fit, if
/// none does.
///
/// # Errors
/// SC0915 for an option outside its range, and for a mesh without devices, with more than 65536, with slices through a head, with
/// a number of stages that does not divide the layers, and for a batch that the copies cannot divide.
pub fn predict_mesh(
    network: &NetworkSize,
    options: &MeshOptions,
    shape: MeshShape,
) -> Result<MeshCost> {
    options.check()?;
    let sizes = [
        ("data", shape.data),
        ("tensor", shape.tensor),
        ("pipeline", shape.pipeline),
    ];
    for (name, size) in sizes {
        if !(1..=MAX_DEVICES).contains(&size) {
            return Err(bad_size(name, size, "from 1 to 65536"));
        }
    }
    let devices = sizes
        .iter()
        .try_fold(1_usize, |all, (_, size)| all.checked_mul(*size));
    if devices.is_none_or(|count| count > MAX_DEVICES) {
        return Err(bad_size("devices of the mesh", shape, "at most 65536"));
    }
    if !network.heads().is_multiple_of(shape.tensor) {
        let expects = format!("a divisor of the {} heads", network.heads());
        return Err(bad_size("tensor", shape.tensor, &expects));
    }
    if !network.layers().is_multiple_of(shape.pipeline) {
        let expects = format!("a divisor of the {} layers", network.layers());
        return Err(bad_size("pipeline", shape.pipeline, &expects));
    }
    let found = costs(network, options, shape);
    let fitting = found.iter().filter(|it| it.bytes() <= options.memory);
    let fastest = fitting.min_by(|one, other| one.seconds.total_cmp(&other.seconds));
    let smallest = || {
        found
            .iter()
            .min_by(|one, other| one.bytes().total_cmp(&other.bytes()))
    };
    let expects = "a divisor of the batch, the sequences of all devices";
    (fastest.or_else(smallest).copied()).ok_or_else(|| bad_size("data", shape.data, expects))
}

/// The costs of a mesh with each division of the batch in micro-batches, without and with recomputation.
fn costs(network: &NetworkSize, options: &MeshOptions, shape: MeshShape) -> Vec<MeshCost> {
    let all = options.sequences_per_device * shape.devices();
    if !all.is_multiple_of(shape.data) {
        return Vec::new();
    }
    let own = all / shape.data;
    // From the largest micro-batch on: of equal times, the first one is kept.
    let counts = (0..usize::BITS).map(|power| 1_usize << power);
    let counts = counts.take_while(|count| *count <= own);
    let is_large = |count: usize| own / count * network.length() >= options.tokens_of_micro_batch;
    let counts =
        counts.filter(|&count| own.is_multiple_of(count) && (count == 1 || is_large(count)));
    counts
        .flat_map(|count| {
            [false, true]
                .map(|recompute| cost::of(network, options, shape, (count, own / count), recompute))
        })
        .collect()
}

/// The fastest mesh of so many devices that fits.
fn best(network: &NetworkSize, options: &MeshOptions, devices: usize) -> Option<MeshCost> {
    let divides = |whole: usize| move |part: &usize| whole.is_multiple_of(*part);
    let mut best: Option<MeshCost> = None;
    for tensor in (1..=devices.min(options.devices_per_machine)).filter(divides(devices)) {
        if !network.heads().is_multiple_of(tensor) {
            continue;
        }
        let rest = devices / tensor;
        for pipeline in (1..=rest.min(network.layers())).filter(divides(rest)) {
            if !network.layers().is_multiple_of(pipeline) {
                continue;
            }
            let data = rest / pipeline;
            let shards: &[Option<Shard>] = match data {
                1 => &[None],
                _ => &[
                    None,
                    Some(Shard::Optimizer),
                    Some(Shard::Gradients),
                    Some(Shard::Parameters),
                ],
            };
            for &shard in shards {
                let shape = MeshShape {
                    data,
                    tensor,
                    pipeline,
                    shard,
                };
                for cost in costs(network, options, shape) {
                    let is_better = best.is_none_or(|best| cost.seconds < best.seconds);
                    if cost.bytes() <= options.memory && is_better {
                        best = Some(cost);
                    }
                }
            }
        }
    }
    best
}

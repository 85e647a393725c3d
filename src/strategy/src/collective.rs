//! Collectives: what replicas do together. Everything here is *centralized*: replica 0's device
//! gathers, adds in the order of the replicas and sends the result back, so that the sum is the same
//! bit for bit in every run. burn's own collectives, and rings and trees, can take this module's place.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};
use stratoscope_diagnostics::Result;

use crate::device::LogicalDevice;
use crate::{copy, problem, variable};

mod transfer;

pub use self::transfer::{Collective, CrossDeviceOps, Transfer};

/// What was done together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Every replica gives gradients, every replica gets their weighted mean.
    AllReduce,
    /// Replica 0 gives its variables, every other replica gets them.
    Broadcast,
}

impl Operation {
    /// The name on the report: `all-reduce`.
    pub fn title(self) -> &'static str {
        match self {
            Self::AllReduce => "all-reduce",
            Self::Broadcast => "broadcast",
        }
    }
}

/// How it was done.
pub type Algorithm = CrossDeviceOps;

/// One collective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CollectiveRecord {
    /// What was done.
    pub operation: Operation,
    /// How.
    pub algorithm: Algorithm,
    /// Its number, counted from 1.
    pub number: u64,
    /// How many replicas took part.
    pub replicas: usize,
    /// How many tensors.
    pub tensors: usize,
    /// The size of the tensors of one replica.
    pub bytes: u64,
    /// How many bytes went from one replica's device to another's.
    pub moved_bytes: u64,
    /// Time on the host; a GPU may still be at work when it ends.
    pub host_time: Duration,
}

/// How many records are kept; the counters go on.
const KEPT: usize = 256;

/// The collectives of one model. A clone is the same log.
#[derive(Clone, Debug, Default)]
pub struct Collectives(Arc<Mutex<Log>>);

#[derive(Debug, Default)]
struct Log {
    recent: VecDeque<CollectiveRecord>,
    /// Since the optimizer step that goes on began.
    going_on: Vec<Collective>,
    last_step: Vec<Collective>,
    total: u64,
    all_reduces: u64,
    bytes: u64,
    moved_bytes: u64,
}

/// What was done since the model was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectiveTotals {
    /// All-reduces of gradients.
    pub all_reduces: u64,
    /// The size of what all collectives worked on, one replica's side.
    pub bytes: u64,
    /// How many bytes went between devices.
    pub moved_bytes: u64,
}

impl Collectives {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, mut record: CollectiveRecord) {
        let mut log = self.log();
        log.total += 1;
        record.number = log.total;
        log.all_reduces += u64::from(record.operation == Operation::AllReduce);
        log.bytes += record.bytes;
        log.moved_bytes += record.moved_bytes;
        if log.recent.len() == KEPT {
            log.recent.pop_front();
        }
        log.recent.push_back(record);
    }

    /// The latest collectives, oldest first; at most 256.
    pub fn recent(&self) -> Vec<CollectiveRecord> {
        self.log().recent.iter().cloned().collect()
    }

    /// The collectives of the last optimizer step, in their order; none before the first step, and none
    /// with one replica.
    pub fn last_step(&self) -> Vec<Collective> {
        self.log().last_step.clone()
    }

    /// Counters since the model was made.
    pub fn totals(&self) -> CollectiveTotals {
        let log = self.log();
        let Log {
            all_reduces,
            bytes,
            moved_bytes,
            ..
        } = *log;
        CollectiveTotals {
            all_reduces,
            bytes,
            moved_bytes,
        }
    }

    pub(crate) fn broadcast(&self, replicas: usize, tensors: usize, bytes: u64, since: Instant) {
        let others = u64::try_from(replicas.saturating_sub(1)).unwrap_or(u64::MAX);
        self.add(CollectiveRecord {
            operation: Operation::Broadcast,
            algorithm: Algorithm::Centralized,
            number: 0,
            replicas,
            tensors,
            bytes,
            moved_bytes: bytes.saturating_mul(others),
            host_time: since.elapsed(),
        });
    }
}

/// The mean of the replicas' gradients, weighted by the number of samples each was computed from:
/// `Σ gradient_i · samples_i / Σ samples`. Where the shards are mean losses of uneven size, this is the gradient
/// of the mean loss of the whole batch. Every replica gets a copy on its own device; all copies are
/// equal bit for bit.
///
/// A replica with 0 samples takes no part, whatever its gradients are. A gradient that a replica
/// lacks counts as zeros. One replica gets its gradients back, and nothing is counted.
///
/// # Errors
/// SC0915 if there is not one set of gradients and one count per replica, or no samples at all.
pub fn all_reduce<M: Module>(
    module: &M,
    devices: &[LogicalDevice],
    gradients: Vec<GradientsParams>,
    samples: &[usize],
    log: &Collectives,
) -> Result<Vec<GradientsParams>> {
    let expects = format!("{}, one per replica", devices.len());
    if gradients.len() != devices.len() {
        return Err(problem::bad_size(
            "sets of gradients",
            gradients.len(),
            &expects,
        ));
    }
    if samples.len() != devices.len() {
        return Err(problem::bad_size(
            "numbers of samples",
            samples.len(),
            &expects,
        ));
    }
    let total: usize = samples.iter().sum();
    if total == 0 {
        return Err(problem::bad_size("number of samples", 0, "at least 1"));
    }
    if devices.len() < 2 {
        return Ok(gradients);
    }
    let start = Instant::now();
    let weights = samples
        .iter()
        .map(|&count| count as f64 / total as f64)
        .collect();
    let results = devices.iter().map(|_| GradientsParams::new()).collect();
    let mut reduce = Reduce {
        devices,
        weights,
        gradients,
        results,
        tensors: 0,
        bytes: 0,
    };
    module.visit(&mut reduce);
    let others = u64::try_from(devices.len() - 1).unwrap_or(u64::MAX);
    log.add(CollectiveRecord {
        operation: Operation::AllReduce,
        algorithm: Algorithm::Centralized,
        number: 0,
        replicas: devices.len(),
        tensors: reduce.tensors,
        bytes: reduce.bytes,
        // To the first device and back.
        moved_bytes: reduce.bytes.saturating_mul(2 * others),
        host_time: start.elapsed(),
    });
    Ok(reduce.results)
}

struct Reduce<'a> {
    devices: &'a [LogicalDevice],
    weights: Vec<f64>,
    gradients: Vec<GradientsParams>,
    results: Vec<GradientsParams>,
    tensors: usize,
    bytes: u64,
}

impl ModuleVisitor for Reduce<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let center = &self.devices[0].burn;
        let mut sum: Option<Tensor<D>> = None;
        for (gradients, &weight) in self.gradients.iter_mut().zip(&self.weights) {
            let Some(gradient) = gradients.remove::<D>(param.id) else {
                continue;
            };
            if weight == 0.0 {
                continue;
            }
            let share = gradient.to_device(center).mul_scalar(weight);
            sum = Some(match sum {
                Some(sum) => sum.add(share),
                None => share,
            });
        }
        let Some(sum) = sum else { return };
        self.tensors += 1;
        self.bytes += variable::bytes(&sum.shape(), sum.dtype());
        for (device, results) in self.devices.iter().zip(&mut self.results).skip(1) {
            results.register(param.id, copy::tensor(&sum, device));
        }
        self.results[0].register(param.id, sum);
    }
}

//! Collectives: what replicas do together, and what it moves between their devices.
//!
//! The sums are real: each pattern of [`CrossDeviceOps`] adds in its own order and sends its own
//! messages (`patterns`), and every message is counted. The order is fixed, so that the same
//! gradients give the same sum bit for bit in every run.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};
use stratoscope_diagnostics::Result;

use crate::device::LogicalDevice;
use crate::shards::Homes;
use crate::strategy::{Strategy, StrategyKind};
use crate::variable::{Part, VariableRecord};
use crate::{copy, problem, variable};

mod patterns;
mod transfer;

use self::patterns::{Flat, Payload, Size, Wire};
pub use self::transfer::{Collective, CrossDeviceOps, Transfer};

/// What was done together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Every replica gives gradients, every replica gets their weighted mean.
    AllReduce,
    /// Every replica gives its variables, every replica gets their weighted mean.
    Average,
    /// Every replica gives gradients, the device with the variables gets their weighted mean.
    Reduce,
    /// One replica gives its gradients to the device with the variables, and waits for nobody.
    Push,
    /// A replica gets the variables from the device that has them.
    Fetch,
    /// Replica 0 gives its variables, every other replica gets them.
    Broadcast,
}

impl Operation {
    /// The name on the report: `all-reduce`.
    pub fn title(self) -> &'static str {
        match self {
            Self::AllReduce => "all-reduce",
            Self::Average => "parameter average",
            Self::Reduce => "reduce",
            Self::Push => "push",
            Self::Fetch => "fetch",
            Self::Broadcast => "broadcast",
        }
    }

    /// What it moves.
    fn what(self) -> &'static str {
        match self {
            Self::AllReduce | Self::Reduce | Self::Push => "gradients",
            Self::Average | Self::Fetch | Self::Broadcast => "parameters",
        }
    }
}

/// One collective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CollectiveRecord {
    /// What was done.
    pub operation: Operation,
    /// In which pattern.
    pub ops: CrossDeviceOps,
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
    totals: CollectiveTotals,
}

/// What was done since the model was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectiveTotals {
    /// All-reduces of gradients, to every replica or to the device with the variables.
    pub all_reduces: u64,
    /// Averages of parameters.
    pub parameter_averages: u64,
    /// Gradients that one replica pushed alone.
    pub pushes: u64,
    /// The sum over all pushes of the updates that others had made since the replica had fetched its
    /// variables.
    pub staleness: u64,
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
        let totals = &mut log.totals;
        match record.operation {
            Operation::AllReduce | Operation::Reduce => totals.all_reduces += 1,
            Operation::Average => totals.parameter_averages += 1,
            Operation::Push => totals.pushes += 1,
            Operation::Fetch | Operation::Broadcast => {}
        }
        totals.bytes += record.bytes;
        totals.moved_bytes += record.moved_bytes;
        if log.recent.len() == KEPT {
            log.recent.pop_front();
        }
        log.recent.push_back(record);
    }

    /// Forgets what the step before did: what follows belongs to a new one.
    pub(crate) fn begin_step(&self) {
        self.log().going_on.clear();
    }

    /// A collective of the step that goes on.
    pub(crate) fn in_step(&self, collective: Collective) {
        let mut log = self.log();
        log.going_on.push(collective);
        log.last_step = log.going_on.clone();
    }

    /// A push found variables this many updates old.
    pub(crate) fn stale(&self, updates: u64) {
        self.log().totals.staleness += updates;
    }

    /// Counts a collective and keeps its transfers.
    pub(crate) fn done(&self, done: Done, since: Instant) {
        let Done {
            operation,
            collective,
            tensors,
        } = done;
        self.add(CollectiveRecord {
            operation,
            ops: collective.ops,
            number: 0,
            replicas: collective.replicas,
            tensors,
            bytes: collective.payload_bytes,
            moved_bytes: collective.moved_bytes(),
            host_time: since.elapsed(),
        });
        if operation != Operation::Broadcast {
            self.in_step(collective);
        }
    }

    /// The latest collectives, oldest first; at most 256.
    pub fn recent(&self) -> Vec<CollectiveRecord> {
        self.log().recent.iter().cloned().collect()
    }

    /// The collectives of the last optimizer step that had any, in their order; with one replica there
    /// are none.
    pub fn last_step(&self) -> Vec<Collective> {
        self.log().last_step.clone()
    }

    /// Counters since the model was made.
    pub fn totals(&self) -> CollectiveTotals {
        self.log().totals
    }
}

/// A collective that was done.
pub(crate) struct Done {
    pub(crate) operation: Operation,
    pub(crate) collective: Collective,
    pub(crate) tensors: usize,
}

impl Done {
    fn new(
        operation: Operation,
        ops: CrossDeviceOps,
        replicas: usize,
        bytes: u64,
        wire: Wire,
        tensors: usize,
    ) -> Self {
        let collective = Collective {
            name: operation.what().to_owned(),
            ops,
            replicas,
            payload_bytes: bytes,
            transfers: wire.transfers(),
        };
        Self {
            operation,
            collective,
            tensors,
        }
    }
}

/// The mean of the replicas' values, weighted by the number of samples each was computed from:
/// `Σ value_i · samples_i / Σ samples`. Where the shards are mean losses of uneven size, this is the gradient
/// of the mean loss of the whole batch. Every replica gets a copy on its own device; all copies are
/// equal bit for bit. Where the strategy keeps one copy of each variable, its device alone gets the mean.
///
/// A replica with 0 samples has no say, whatever its values are. A value that a replica lacks counts as
/// zeros. One replica gets its values back, and nothing is counted.
///
/// # Errors
/// SC0915 if there is not one set of values and one count per replica, or no samples at all.
pub(crate) fn reduce<M: Module>(
    operation: Operation,
    module: &M,
    across: &Across<'_>,
    values: Vec<GradientsParams>,
    samples: &[usize],
) -> Result<(Vec<GradientsParams>, Option<Done>)> {
    let replicas = across.devices.len();
    let expects = format!("{replicas}, one per replica");
    if values.len() != replicas {
        let what = "sets of gradients";
        return Err(problem::bad_size(what, values.len(), &expects));
    }
    if samples.len() != replicas {
        let what = "numbers of samples";
        return Err(problem::bad_size(what, samples.len(), &expects));
    }
    let total: usize = samples.iter().sum();
    if total == 0 {
        return Err(problem::bad_size("number of samples", 0, "at least 1"));
    }
    if replicas < 2 {
        return Ok((values, None));
    }
    let weights = samples.iter().map(|&n| n as f64 / total as f64).collect();
    let operation = match (operation, across.homes) {
        (Operation::AllReduce, Some(_)) => Operation::Reduce,
        _ => operation,
    };
    let copies = if across.homes.is_some() { 1 } else { replicas };
    let mut reduce = Reduce {
        across,
        weights,
        values,
        results: (0..copies).map(|_| GradientsParams::new()).collect(),
        wire: Wire::default(),
        tensors: 0,
        bytes: 0,
    };
    module.visit(&mut reduce);
    let Reduce {
        results,
        wire,
        tensors,
        bytes,
        ..
    } = reduce;
    let done = Done::new(operation, across.ops, replicas, bytes, wire, tensors);
    Ok((results, Some(done)))
}

/// Between which devices.
pub(crate) struct Across<'a> {
    pub(crate) ops: CrossDeviceOps,
    /// The replicas.
    pub(crate) devices: &'a [LogicalDevice],
    /// Where each variable is, for strategies that keep one copy.
    pub(crate) homes: Option<&'a Homes>,
    /// Every device that may be named.
    pub(crate) all: &'a [LogicalDevice],
}

impl Across<'_> {
    /// Where the rows of a variable are, where there is one copy of it.
    fn parts(&self, param: ParamId) -> Option<&[Part]> {
        Some(self.homes?.get(&param).map_or(&[][..], Vec::as_slice))
    }
}

struct Reduce<'a> {
    across: &'a Across<'a>,
    weights: Vec<f64>,
    values: Vec<GradientsParams>,
    results: Vec<GradientsParams>,
    wire: Wire,
    tensors: usize,
    bytes: u64,
}

impl ModuleVisitor for Reduce<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let given: Vec<Option<Tensor<D>>> = self
            .values
            .iter_mut()
            .zip(&self.weights)
            .map(|(values, &weight)| {
                let value = values.remove::<D>(param.id)?;
                (weight != 0.0).then(|| value.mul_scalar(weight))
            })
            .collect();
        let Some(like) = given.iter().flatten().next() else {
            return;
        };
        let (shape, dtype) = (like.shape(), like.dtype());
        self.tensors += 1;
        self.bytes += variable::bytes(&shape, dtype);
        let devices = self.across.all;
        let has: Vec<Flat<'_>> = given
            .into_iter()
            .zip(devices)
            .map(|(value, device)| {
                let zeros = || Tensor::zeros(shape.clone(), (&device.burn, dtype));
                let value = value.unwrap_or_else(zeros);
                Flat {
                    tensor: value.reshape([shape.num_elements()]),
                    devices,
                }
            })
            .collect();
        let sums = match self.across.parts(param.id) {
            None => patterns::all_reduce(self.across.ops, has, &mut self.wire),
            Some([Part { home, .. }]) => patterns::reduce_to(*home, has, &mut self.wire)
                .into_iter()
                .collect(),
            // Each replica sends every server the rows that are its own.
            Some(parts) => {
                let row = shape.num_elements() / shape.as_slice()[0].max(1);
                let sum = |part: &Part| {
                    let rows = part.rows.start * row..part.rows.end * row;
                    let cut = has.iter().map(|one| one.cut(&rows)).collect();
                    patterns::reduce_to(part.home, cut, &mut self.wire)
                };
                let sums = parts.iter().filter_map(sum).collect();
                vec![Flat::joined(sums)]
            }
        };
        for (sum, results) in sums.into_iter().zip(&mut self.results) {
            results.register::<D>(param.id, sum.tensor.reshape(shape.clone()));
        }
    }
}

/// The transfers of a fetch: every variable, or each of its shards, from its home to a replica.
pub(crate) fn fetch<'a>(
    records: &[VariableRecord],
    replicas: usize,
    to: impl Iterator<Item = usize> + Clone + 'a,
) -> Done {
    let mut wire = Wire::default();
    for record in records {
        for part in record.parts() {
            let bytes = record.bytes_of(&part.rows);
            for to in to.clone() {
                wire.count(0, part.home, to, bytes);
            }
        }
    }
    let bytes = records.iter().map(|record| record.bytes).sum();
    let ops = CrossDeviceOps::Centralized;
    Done::new(Operation::Fetch, ops, replicas, bytes, wire, records.len())
}

/// The transfers of a push: every gradient of a replica, or its rows, to the home of its variable.
pub(crate) fn push<M: Module>(
    module: &M,
    across: &Across<'_>,
    from: usize,
    gradients: GradientsParams,
) -> (GradientsParams, Done) {
    let mut push = Push {
        across,
        from,
        gradients,
        arrived: GradientsParams::new(),
        wire: Wire::default(),
        tensors: 0,
        bytes: 0,
    };
    module.visit(&mut push);
    let Push {
        arrived,
        wire,
        tensors,
        bytes,
        ..
    } = push;
    let (ops, replicas) = (CrossDeviceOps::Centralized, across.devices.len());
    let done = Done::new(Operation::Push, ops, replicas, bytes, wire, tensors);
    (arrived, done)
}

struct Push<'a> {
    across: &'a Across<'a>,
    from: usize,
    gradients: GradientsParams,
    arrived: GradientsParams,
    wire: Wire,
    tensors: usize,
    bytes: u64,
}

impl ModuleVisitor for Push<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(gradient) = self.gradients.remove::<D>(param.id) else {
            return;
        };
        let (shape, dtype) = (gradient.shape(), gradient.dtype());
        let parts = self.across.parts(param.id).unwrap_or_default();
        for Part { home, rows } in parts {
            let mut part = shape.clone();
            part.as_mut_slice()[0] = rows.len();
            let bytes = variable::bytes(&part, dtype);
            self.wire.count(0, self.from, *home, bytes);
        }
        self.tensors += 1;
        self.bytes += variable::bytes(&shape, dtype);
        // Servers are shares of one device.
        let home = parts.first().map_or(0, |part| part.home);
        let device = &self.across.all[home].burn;
        self.arrived
            .register::<D>(param.id, gradient.to_device(device));
    }
}

/// The transfers of a broadcast of replica 0's variables.
pub(crate) fn broadcast(records: &[VariableRecord], replicas: usize) -> Done {
    let mut wire = Wire::default();
    let bytes = records.iter().map(|record| record.bytes).sum();
    for to in 1..replicas {
        wire.count(0, 0, to, bytes);
    }
    let ops = CrossDeviceOps::Centralized;
    Done::new(
        Operation::Broadcast,
        ops,
        replicas,
        bytes,
        wire,
        records.len(),
    )
}

/// What a step under a strategy will move: computed from the sizes of its trainable variables, by the
/// same patterns that move them.
pub(crate) fn planned(strategy: &Strategy, records: &[VariableRecord]) -> Vec<Collective> {
    let replicas = strategy.replicas().len();
    if replicas < 2 {
        return Vec::new();
    }
    let ops = strategy.cross_device_ops();
    let trainable = || records.iter().filter(|record| record.trainable);
    let bytes = trainable().map(|record| record.bytes).sum();
    let mut wire = Wire::default();
    let central = match strategy.kind() {
        StrategyKind::OneDevice => return Vec::new(),
        StrategyKind::Mirrored | StrategyKind::Tpu => false,
        StrategyKind::CentralStorage | StrategyKind::ParameterServer => true,
    };
    for record in trainable() {
        let elements: usize = record.shape.iter().product();
        let size = Size {
            elements,
            bytes_each: record.bytes as usize / elements.max(1),
        };
        if central {
            let row = elements / record.num_rows().max(1);
            for part in record.parts() {
                let elements = part.rows.len() * row;
                let has = vec![Size { elements, ..size }; replicas];
                patterns::reduce_to(part.home, has, &mut wire);
            }
        } else {
            patterns::all_reduce(ops, vec![size; replicas], &mut wire);
        }
    }
    let count = trainable().count();
    let operation = Operation::AllReduce;
    let gradients = Done::new(operation, ops, replicas, bytes, wire, count).collective;
    match central {
        true => vec![fetch(records, replicas, 0..replicas).collective, gradients],
        false => vec![gradients],
    }
}

/// Adds up vectors of the replicas in a pattern; every replica gets the sum.
pub(crate) fn sum(
    name: &str,
    ops: CrossDeviceOps,
    values: Vec<Tensor<1>>,
    devices: &[LogicalDevice],
) -> (Vec<Tensor<1>>, Option<Collective>) {
    let replicas = values.len();
    let bytes = bytes_of(&values);
    let mut wire = Wire::default();
    let sums = patterns::all_reduce(ops, flat(values, devices), &mut wire);
    let sums = sums.into_iter().map(|sum| sum.tensor).collect();
    (sums, named(name, ops, replicas, bytes, wire))
}

/// Adds up vectors of the replicas on device `home`.
pub(crate) fn gather(
    name: &str,
    values: Vec<Tensor<1>>,
    home: usize,
    devices: &[LogicalDevice],
) -> (Tensor<1>, Option<Collective>) {
    let replicas = values.len();
    let bytes = bytes_of(&values);
    let mut wire = Wire::default();
    let empty = || Tensor::zeros([0], &devices[home].burn);
    let sum = patterns::reduce_to(home, flat(values, devices), &mut wire);
    let sum = sum.map_or_else(empty, |sum| sum.tensor);
    let ops = CrossDeviceOps::Centralized;
    (sum, named(name, ops, replicas, bytes, wire))
}

/// Gives every replica the first one's vector.
pub(crate) fn spread(
    name: &str,
    value: &Tensor<1>,
    devices: &[LogicalDevice],
) -> (Vec<Tensor<1>>, Option<Collective>) {
    let bytes = bytes_of(std::slice::from_ref(value));
    let mut wire = Wire::default();
    let copies = devices.iter().enumerate().map(|(to, device)| {
        wire.count(0, 0, to, bytes);
        copy::tensor(value, device)
    });
    let copies = copies.collect();
    let ops = CrossDeviceOps::Centralized;
    (copies, named(name, ops, devices.len(), bytes, wire))
}

/// Adds up vectors of the replicas in parts: part `i` on device `homes[i]`.
pub(crate) fn scatter(
    name: &str,
    values: Vec<Tensor<1>>,
    parts: &[Range<usize>],
    homes: &[usize],
    devices: &[LogicalDevice],
) -> (Vec<Tensor<1>>, Option<Collective>) {
    let replicas = values.len();
    let bytes = bytes_of(&values);
    let mut wire = Wire::default();
    let sum = |(part, &home): (&Range<usize>, &usize)| {
        let has = flat(values.clone(), devices);
        let has = has.iter().map(|one| one.cut(part)).collect();
        Some(patterns::reduce_to(home, has, &mut wire)?.tensor)
    };
    let sums = parts.iter().zip(homes).filter_map(sum).collect();
    let ops = CrossDeviceOps::Centralized;
    (sums, named(name, ops, replicas, bytes, wire))
}

fn flat(values: Vec<Tensor<1>>, devices: &[LogicalDevice]) -> Vec<Flat<'_>> {
    let flat = |tensor| Flat { tensor, devices };
    values.into_iter().map(flat).collect()
}

fn bytes_of(values: &[Tensor<1>]) -> u64 {
    let bytes = |value: &Tensor<1>| variable::bytes(&value.shape(), value.dtype());
    values.first().map_or(0, bytes)
}

/// The collective, if anything went anywhere.
fn named(
    name: &str,
    ops: CrossDeviceOps,
    replicas: usize,
    payload_bytes: u64,
    wire: Wire,
) -> Option<Collective> {
    let transfers = wire.transfers();
    (!transfers.is_empty()).then(|| Collective {
        name: name.to_owned(),
        ops,
        replicas,
        payload_bytes,
        transfers,
    })
}

//! Collectives: operations in which all replicas take part, such as the all-reduce of gradients, and the bytes they
//! move between devices.
//!
//! Each communication pattern of [`CrossDeviceOps`] is executed step by step as textbooks describe it (`patterns`), on
//! real tensors, and every transfer is counted. The order of additions is fixed, so the same gradients give
//! the same sum bit for bit in every run.

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::{DType, Tensor};
use serde::{Deserialize, Serialize};
use stratoscope_diagnostics::Result;

use crate::shards::Homes;
use crate::strategy::Shard;
use crate::variable::{Part, VariableRecord};
use crate::{problem, variable};

mod groups;
mod in_place;
mod log;
mod patterns;
mod planned;
mod transfer;
mod vectors;

use self::groups::GroupLogs;
pub(crate) use self::groups::Groups;
use self::in_place::Memory;
pub(crate) use self::log::Done;
pub use self::log::{CollectiveRecord, CollectiveTotals, Collectives};
use self::patterns::{Flat, Payload, Size, TransferLog};
pub use self::planned::plan;
pub(crate) use self::planned::planned;
pub use self::transfer::{Collective, CrossDeviceOps, Transfer};
pub(crate) use self::vectors::{gather, scatter, spread, sum};

/// The kind of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Every replica gives gradients, every replica gets their weighted mean.
    AllReduce,
    /// Every replica gives its variables, every replica gets their weighted mean.
    Average,
    /// Every replica gives gradients, the device that stores the variables gets their weighted mean.
    Reduce,
    /// One replica sends its gradients to the device that stores the variables, without waiting for the others.
    Push,
    /// A replica gets the variables from the device that stores them.
    Fetch,
    /// Replica 0 gives its variables, every other replica gets them.
    Broadcast,
    /// Every replica gives gradients, each gets the weighted mean of its rows ([`Shard`]).
    ReduceScatter,
    /// Every replica gives the rows of the variables that it has updated or stores, every replica gets all.
    AllGather,
}

/// The name of a [`Collective`] in which each replica gets the sum of its rows.
pub(crate) const REDUCE_SCATTER: &str = "gradients by reduce-scatter";
/// And of one in which each replica sends its rows to all others.
pub(crate) const ALL_GATHER: &str = "parameters by all-gather";

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
            Self::ReduceScatter => "reduce-scatter",
            Self::AllGather => "all-gather",
        }
    }

    /// What it moves, `gradients` or `parameters`, and how, where that is not all to all.
    fn payload_name(self) -> &'static str {
        match self {
            Self::AllReduce | Self::Reduce | Self::Push => "gradients",
            Self::Average | Self::Fetch | Self::Broadcast => "parameters",
            Self::ReduceScatter => REDUCE_SCATTER,
            Self::AllGather => ALL_GATHER,
        }
    }
}

/// The mean of the replicas' values, weighted by the number of samples each was computed from:
/// `Σ value_i · samples_i / Σ samples`. Since the loss of each replica is the mean over its part of the batch, this is
/// the gradient of the mean loss of the whole batch, also where the parts have different sizes. Every replica gets it
/// on its own device, equal bit for bit; gradients of logical devices of this processor are in one memory. Where the strategy stores one copy of each variable, only
/// the variable's device gets the mean.
///
/// The values of a replica with 0 samples are ignored. A value that a replica lacks counts as
/// zeros. A single replica gets its values back, and nothing is counted.
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
    let replicas = across.replicas;
    let expects = format!("{replicas}, one per replica");
    if values.len() != replicas {
        let what = "number of sets of gradients";
        return Err(problem::bad_size(what, values.len(), &expects));
    }
    if samples.len() != replicas {
        let what = "number of sample counts";
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
    let operation = match (operation, across.homes, across.shard) {
        (Operation::AllReduce, Some(_), None) => Operation::Reduce,
        (Operation::AllReduce, Some(_), Some(Shard::Gradients | Shard::Parameters)) => {
            Operation::ReduceScatter
        }
        _ => operation,
    };
    let copies = if across.homes.is_some() { 1 } else { replicas };
    let mut reduce = Reduce {
        across,
        memory: match operation {
            Operation::AllReduce | Operation::ReduceScatter => Memory::Shared,
            _ => Memory::OfEach,
        },
        weights,
        values,
        results: (0..copies).map(|_| GradientsParams::new()).collect(),
        logs: GroupLogs::default(),
        tensors: 0,
        bytes: 0,
    };
    module.visit(&mut reduce);
    let Reduce {
        results,
        logs,
        tensors,
        bytes,
        ..
    } = reduce;
    let log = logs.joined(across.each);
    let done = Done::new(operation, across.ops, replicas, bytes, log, tensors);
    Ok((results, Some(done)))
}

/// The devices that take part.
pub(crate) struct Across<'a> {
    pub(crate) ops: CrossDeviceOps,
    /// How many replicas there are.
    pub(crate) replicas: usize,
    /// How many devices each of them has.
    pub(crate) each: usize,
    /// Which of these devices exchange a variable.
    pub(crate) groups: Groups,
    /// The device of each variable's rows, for strategies that store one copy, or update one.
    pub(crate) homes: Option<&'a Homes>,
    /// What replicas divide among them, where they are the homes.
    pub(crate) shard: Option<Shard>,
}

impl Across<'_> {
    /// The device of each part of a variable's gradient; `None` if every replica gets all of it.
    fn parts(&self, param: ParamId) -> Option<&[Part]> {
        if self.shard == Some(Shard::Optimizer) {
            return None;
        }
        Some(self.homes?.get(&param).map_or(&[][..], Vec::as_slice))
    }
}

struct Reduce<'a> {
    across: &'a Across<'a>,
    /// Of the means on this processor.
    memory: Memory,
    weights: Vec<f64>,
    values: Vec<GradientsParams>,
    results: Vec<GradientsParams>,
    logs: GroupLogs,
    tensors: usize,
    bytes: u64,
}

impl ModuleVisitor for Reduce<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let given = self.values.iter_mut().zip(&self.weights);
        let given: Vec<Option<Tensor<D>>> = given
            .map(|(values, &weight)| values.remove::<D>(param.id).filter(|_| weight != 0.0))
            .collect();
        let Some(like) = given.iter().flatten().next() else {
            return;
        };
        let (shape, dtype) = (like.shape(), like.dtype());
        self.tensors += 1;
        self.bytes += variable::bytes(&shape, dtype);
        let given = match self.in_place(param.id, given) {
            Ok(means) => {
                for (mean, results) in means.into_iter().zip(&mut self.results) {
                    results.register::<D>(param.id, mean);
                }
                return;
            }
            Err(given) => given,
        };
        let group = self.across.groups.group(param.id);
        // The replicas, then the servers: what `homes` counts where there are homes.
        let devices = self.across.groups.devices(group);
        let log = self.logs.of(group);
        let has: Vec<Flat<'_>> = given
            .into_iter()
            .zip(&self.weights)
            .zip(devices)
            .map(|((value, &weight), device)| {
                let zeros = || Tensor::zeros(shape.clone(), (&device.burn, dtype));
                // A look at a pipeline has computed all gradients on the first device of each replica.
                let here = |value: Tensor<D>| value.to_device(&device.burn).mul_scalar(weight);
                let value = value.map_or_else(zeros, here);
                Flat {
                    tensor: value.reshape([shape.num_elements()]),
                    devices,
                }
            })
            .collect();
        let sums = match self.across.parts(param.id) {
            None => patterns::all_reduce(self.across.ops, has, log),
            Some([Part { home, .. }]) => patterns::reduce_to(*home, has, log).into_iter().collect(),
            // Each replica sends every device with shards the rows that are stored there.
            Some(parts) => {
                let row = shape.num_elements() / shape.as_slice()[0].max(1);
                let sum = |part: &Part| {
                    let rows = part.rows.start * row..part.rows.end * row;
                    let cut = has.iter().map(|one| one.cut(&rows)).collect();
                    patterns::reduce_to(part.home, cut, log)
                };
                let sums = parts.iter().filter_map(sum);
                // One set of gradients, whose norm is that of all devices; `Replicas::scatter` gives each its rows.
                let sums = sums.map(|sum| sum.moved(parts[0].home)).collect();
                vec![Flat::joined(sums)]
            }
        };
        for (sum, results) in sums.into_iter().zip(&mut self.results) {
            results.register::<D>(param.id, sum.tensor.reshape(shape.clone()));
        }
    }
}

impl Reduce<'_> {
    /// The means, where every replica has a value and keeps the mean, and all of them are in the memory of this
    /// processor; else the values as they are.
    fn in_place<const D: usize>(
        &mut self,
        param: ParamId,
        given: Vec<Option<Tensor<D>>>,
    ) -> std::result::Result<Vec<Tensor<D>>, Vec<Option<Tensor<D>>>> {
        let is_at_servers = self.across.homes.is_some() && self.across.shard.is_none();
        if is_at_servers || given.iter().any(Option::is_none) {
            return Err(given);
        }
        let values: Vec<Tensor<D>> = given.into_iter().flatten().collect();
        let (ops, weights) = (self.across.ops, &self.weights);
        let parts = self.across.parts(param);
        let shape = parts.and(values.first()).map(Tensor::shape);
        // The rows of all replicas are in one memory, with the sums in the order that mirrored replicas add them.
        let mut unused = TransferLog::default();
        let log = match parts {
            Some(_) => &mut unused,
            None => self.logs.of(self.across.groups.group(param)),
        };
        let means = in_place::all_reduce(ops, values, weights, self.memory, log);
        if let (Ok(_), Some(parts), Some(shape)) = (&means, parts, shape) {
            let replicas = self.across.replicas;
            let row = variable::bytes(&shape, DType::F32) / shape.as_slice()[0].max(1) as u64;
            let sizes = parts.iter().map(|it| (it.home, row * it.rows.len() as u64));
            patterns::reduce_scatter(ops, replicas, sizes, self.logs.of(0));
        }
        means.map_err(|values| values.into_iter().map(Some).collect())
    }
}

/// The transfers of a fetch: every variable, or each of its shards, from its home to a replica.
pub(crate) fn fetch<'a>(
    records: &[VariableRecord],
    replicas: usize,
    to: impl Iterator<Item = usize> + Clone + 'a,
) -> Done {
    let mut log = TransferLog::default();
    for record in records {
        for part in record.parts() {
            let bytes = record.bytes_of(&part.rows);
            for to in to.clone() {
                log.count(0, part.home, to, bytes);
            }
        }
    }
    let bytes = records.iter().map(|record| record.bytes).sum();
    let ops = CrossDeviceOps::Centralized;
    Done::new(Operation::Fetch, ops, replicas, bytes, log, records.len())
}

/// The transfers of an all-gather: each of the rows that these variables have on replicas to all other replicas.
pub(crate) fn all_gather<'a>(
    records: impl Iterator<Item = &'a VariableRecord>,
    ops: CrossDeviceOps,
    replicas: usize,
) -> Done {
    let mut log = TransferLog::default();
    let (mut bytes, mut count) = (0, 0);
    for record in records {
        let parts = record.parts();
        let sizes = parts.iter().map(|it| (it.home, record.bytes_of(&it.rows)));
        patterns::all_gather(ops, replicas, sizes, &mut log);
        bytes += record.bytes;
        count += 1;
    }
    Done::new(Operation::AllGather, ops, replicas, bytes, log, count)
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
        log: TransferLog::default(),
        tensors: 0,
        bytes: 0,
    };
    module.visit(&mut push);
    let Push {
        arrived,
        log,
        tensors,
        bytes,
        ..
    } = push;
    let (ops, replicas) = (CrossDeviceOps::Centralized, across.replicas);
    let done = Done::new(Operation::Push, ops, replicas, bytes, log, tensors);
    (arrived, done)
}

struct Push<'a> {
    across: &'a Across<'a>,
    from: usize,
    gradients: GradientsParams,
    arrived: GradientsParams,
    log: TransferLog,
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
        for Part { home, rows, .. } in parts {
            let mut part = shape.clone();
            part.as_mut_slice()[0] = rows.len();
            let bytes = variable::bytes(&part, dtype);
            self.log.count(0, self.from, *home, bytes);
        }
        self.tensors += 1;
        self.bytes += variable::bytes(&shape, dtype);
        // Servers are shares of one device.
        let home = parts.first().map_or(0, |part| part.home);
        let device = &self.across.groups.devices(0)[home].burn;
        self.arrived
            .register::<D>(param.id, gradient.to_device(device));
    }
}

/// The transfers of an all-reduce that was computed by worker processes: `elements` numbers of every replica, of so many
/// bytes each.
pub(crate) fn reduced_by_workers(
    operation: Operation,
    ops: CrossDeviceOps,
    replicas: usize,
    (elements, tensors, bytes_each): (usize, usize, usize),
) -> Done {
    let size = Size {
        elements,
        bytes_each,
    };
    let mut log = TransferLog::default();
    patterns::all_reduce(ops, vec![size; replicas], &mut log);
    Done::new(operation, ops, replicas, size.bytes(), log, tensors)
}

/// The transfers of a broadcast of replica 0's variables.
pub(crate) fn broadcast(records: &[VariableRecord], replicas: usize) -> Done {
    let mut log = TransferLog::default();
    let bytes = records.iter().map(|record| record.bytes).sum();
    for to in 1..replicas {
        log.count(0, 0, to, bytes);
    }
    let ops = CrossDeviceOps::Centralized;
    Done::new(
        Operation::Broadcast,
        ops,
        replicas,
        bytes,
        log,
        records.len(),
    )
}

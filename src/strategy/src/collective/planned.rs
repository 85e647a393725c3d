//! What collectives will move, computed from sizes by the code that moves them.

use super::groups::{GroupLogs, group_of};
use super::patterns::{self, Payload, Size, TransferLog};
use super::{Collective, CrossDeviceOps, Done, Operation, all_gather, fetch};
use crate::strategy::distribution::Storing;
use crate::strategy::{Shard, Strategy};
use crate::variable::VariableRecord;

/// What an all-reduce of a tensor with `elements` numbers of `bytes_each` bytes sends between some devices: computed by the code
/// that sends it, without a tensor.
pub fn plan(ops: CrossDeviceOps, devices: usize, elements: usize, bytes_each: usize) -> Collective {
    let size = Size {
        elements,
        bytes_each,
    };
    let mut log = TransferLog::default();
    patterns::all_reduce(ops, vec![size; devices], &mut log);
    let bytes = size.bytes();
    Done::new(Operation::AllReduce, ops, devices, bytes, log, 1).collective
}

/// What the gradients of a step will move, where replicas divide the state of training among them.
fn gradients_of_shards(
    shard: Shard,
    records: &[VariableRecord],
    (ops, replicas): (CrossDeviceOps, usize),
) -> Collective {
    let trainable = || records.iter().filter(|record| record.trainable);
    let mut log = TransferLog::default();
    for record in trainable() {
        if shard == Shard::Optimizer {
            let elements: usize = record.shape.iter().product();
            let size = Size {
                elements,
                bytes_each: record.bytes as usize / elements.max(1),
            };
            patterns::all_reduce(ops, vec![size; replicas], &mut log);
        } else {
            let parts = record.parts();
            let sizes = parts.iter().map(|it| (it.home, record.bytes_of(&it.rows)));
            patterns::reduce_scatter(ops, replicas, sizes, &mut log);
        }
    }
    let operation = match shard {
        Shard::Optimizer => Operation::AllReduce,
        Shard::Gradients | Shard::Parameters => Operation::ReduceScatter,
    };
    let bytes = trainable().map(|record| record.bytes).sum();
    Done::new(operation, ops, replicas, bytes, log, trainable().count()).collective
}

/// What a step under a strategy will move: computed from the sizes of its trainable variables, by the
/// code that moves them.
pub(crate) fn planned(strategy: &Strategy, records: &[VariableRecord]) -> Vec<Collective> {
    let replicas = strategy.replicas().len();
    if replicas < 2 {
        return Vec::new();
    }
    let ops = strategy.cross_device_ops();
    let trainable = || records.iter().filter(|record| record.trainable);
    if let Some(shard) = strategy.shard() {
        let gradients = gradients_of_shards(shard, records, (ops, replicas));
        // With divided weights, what a pass gathers is for its replicas to say.
        return match shard {
            Shard::Optimizer | Shard::Gradients => {
                vec![gradients, all_gather(trainable(), ops, replicas).collective]
            }
            Shard::Parameters => vec![gradients],
        };
    }
    // Workers may send numbers of 16 bits.
    let each = |record: &VariableRecord, elements: usize| match strategy.team() {
        Some(_) => strategy.gradient_bytes(),
        None => record.bytes as usize / elements.max(1),
    };
    let of = |record: &VariableRecord| {
        let elements = record.shape.iter().product();
        (elements * each(record, elements)) as u64
    };
    let bytes = trainable().map(of).sum();
    let (mut logs, each_has) = (GroupLogs::default(), strategy.devices_of_a_replica());
    let central = strategy.storing() == Storing::Once;
    for record in trainable() {
        let elements: usize = record.shape.iter().product();
        let size = Size {
            elements,
            bytes_each: each(record, elements),
        };
        let log = logs.of(group_of(record, each_has));
        if central {
            let row = elements / record.num_rows().max(1);
            for part in record.parts() {
                let elements = part.rows.len() * row;
                let has = vec![Size { elements, ..size }; replicas];
                patterns::reduce_to(part.home, has, log);
            }
        } else {
            patterns::all_reduce(ops, vec![size; replicas], log);
        }
    }
    let count = trainable().count();
    let (operation, log) = (Operation::AllReduce, logs.joined(each_has));
    let gradients = Done::new(operation, ops, replicas, bytes, log, count).collective;
    match central {
        true => vec![fetch(records, replicas, 0..replicas).collective, gradients],
        false => vec![gradients],
    }
}

//! Collectives of plain vectors, for [`crate::ReplicatedVariable`].

use std::ops::Range;

use burn::tensor::Tensor;

use super::patterns::{self, Flat, TransferLog};
use super::transfer::{Collective, CrossDeviceOps};
use crate::device::LogicalDevice;
use crate::{copy, variable};

/// All-reduce: every replica gets the sum of the replicas' vectors.
pub(crate) fn sum(
    name: &str,
    ops: CrossDeviceOps,
    values: Vec<Tensor<1>>,
    devices: &[LogicalDevice],
) -> (Vec<Tensor<1>>, Option<Collective>) {
    let replicas = values.len();
    let bytes = bytes_of(&values);
    let mut log = TransferLog::default();
    let sums = patterns::all_reduce(ops, flat(values, devices), &mut log);
    let sums = sums.into_iter().map(|sum| sum.tensor).collect();
    (sums, named(name, ops, replicas, bytes, log))
}

/// Reduce: device `home` gets the sum of the replicas' vectors.
pub(crate) fn gather(
    name: &str,
    values: Vec<Tensor<1>>,
    home: usize,
    devices: &[LogicalDevice],
) -> (Tensor<1>, Option<Collective>) {
    let replicas = values.len();
    let bytes = bytes_of(&values);
    let mut log = TransferLog::default();
    let empty = || Tensor::zeros([0], &devices[home].burn);
    let sum = patterns::reduce_to(home, flat(values, devices), &mut log);
    let sum = sum.map_or_else(empty, |sum| sum.tensor);
    let ops = CrossDeviceOps::Centralized;
    (sum, named(name, ops, replicas, bytes, log))
}

/// Broadcast: every device gets a copy of the first replica's vector.
pub(crate) fn spread(
    name: &str,
    value: &Tensor<1>,
    devices: &[LogicalDevice],
) -> (Vec<Tensor<1>>, Option<Collective>) {
    let bytes = bytes_of(std::slice::from_ref(value));
    let mut log = TransferLog::default();
    let copies = devices.iter().enumerate().map(|(to, device)| {
        log.count(0, 0, to, bytes);
        copy::tensor(value, device)
    });
    let copies = copies.collect();
    let ops = CrossDeviceOps::Centralized;
    (copies, named(name, ops, devices.len(), bytes, log))
}

/// Reduce-scatter: device `homes[i]` gets the sum of the replicas' elements `parts[i]`.
pub(crate) fn scatter(
    name: &str,
    values: Vec<Tensor<1>>,
    parts: &[Range<usize>],
    homes: &[usize],
    devices: &[LogicalDevice],
) -> (Vec<Tensor<1>>, Option<Collective>) {
    let replicas = values.len();
    let bytes = bytes_of(&values);
    let mut log = TransferLog::default();
    let sum = |(part, &home): (&Range<usize>, &usize)| {
        let has = flat(values.clone(), devices);
        let has = has.iter().map(|one| one.cut(part)).collect();
        Some(patterns::reduce_to(home, has, &mut log)?.tensor)
    };
    let sums = parts.iter().zip(homes).filter_map(sum).collect();
    let ops = CrossDeviceOps::Centralized;
    (sums, named(name, ops, replicas, bytes, log))
}

fn flat(values: Vec<Tensor<1>>, devices: &[LogicalDevice]) -> Vec<Flat<'_>> {
    let flat = |tensor| Flat { tensor, devices };
    values.into_iter().map(flat).collect()
}

fn bytes_of(values: &[Tensor<1>]) -> u64 {
    let bytes = |value: &Tensor<1>| variable::bytes(&value.shape(), value.dtype());
    values.first().map_or(0, bytes)
}

/// The collective, unless nothing was transferred.
fn named(
    name: &str,
    ops: CrossDeviceOps,
    replicas: usize,
    payload_bytes: u64,
    log: TransferLog,
) -> Option<Collective> {
    let transfers = log.transfers();
    (!transfers.is_empty()).then(|| Collective {
        name: name.to_owned(),
        ops,
        replicas,
        payload_bytes,
        transfers,
    })
}

//! The communication patterns of an all-reduce, as textbooks describe them. They are generic over a [`Payload`]: with
//! tensors the code performs the all-reduce of a training step, and with plain sizes it predicts the bytes that the step
//! will move.
//!
//! For R devices with P bytes each, every pattern moves `2 · (R − 1) · P` bytes in all. They differ in the number of hops
//! that come one after the other, and in the bytes that the busiest device sends and receives:
//!
//! | pattern | hops | busiest device |
//! | --- | --- | --- |
//! | ring | 2 · (R − 1) | 4 · P · (R − 1) / R |
//! | tree | 2 · ⌈log₂ R⌉ | grows with log₂ R |
//! | centralized | 2 | 2 · P · (R − 1) |
//! | chain | 2 · (R − 1) | 4 · P |
//!
//! Source of the ring: Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations".
//!
//! Additions have a fixed order, and the sum is computed once and then copied, so the results of all devices are
//! equal bit for bit, in every run. Two patterns add in different orders and so may differ in the last
//! bits.

use std::collections::BTreeMap;
use std::ops::Range;

use burn::tensor::Tensor;

use super::transfer::{CrossDeviceOps, Transfer};
use crate::copy;
use crate::device::LogicalDevice;

/// What devices send each other and add.
pub(super) trait Payload: Sized {
    /// Moves it to another device.
    fn moved(self, to: usize) -> Self;
    /// A copy on another device, with memory of its own.
    fn copied(&self, to: usize) -> Self;
    /// The sum, on the device of `self`.
    fn plus(self, other: Self) -> Self;
    /// `count` consecutive parts, whose lengths differ by at most one; empty ones are left out.
    fn parts(self, count: usize) -> Vec<Option<Self>>;
    /// Concatenates the parts.
    fn joined(parts: Vec<Self>) -> Self;
    /// Its size.
    fn bytes(&self) -> u64;
}

/// Records which bytes go from which device to which, and in which hop.
#[derive(Debug, Default)]
pub(super) struct TransferLog(BTreeMap<(usize, usize, usize), u64>);

impl TransferLog {
    /// Counts bytes of a hop. All bytes between the same two devices in the same hop are one transfer.
    pub(super) fn count(&mut self, hop: usize, from: usize, to: usize, bytes: u64) {
        if from != to && bytes > 0 {
            *self.0.entry((hop, from, to)).or_default() += bytes;
        }
    }

    fn moved<P: Payload>(&mut self, hop: usize, from: usize, to: usize, payload: P) -> P {
        self.count(hop, from, to, payload.bytes());
        payload.moved(to)
    }

    fn copied<P: Payload>(&mut self, hop: usize, from: usize, to: usize, payload: &P) -> P {
        self.count(hop, from, to, payload.bytes());
        payload.copied(to)
    }

    /// The transfers, hop by hop.
    pub(super) fn transfers(self) -> Vec<Transfer> {
        let transfer = |((hop, from, to), bytes)| Transfer {
            hop,
            from,
            to,
            bytes,
        };
        self.0.into_iter().map(transfer).collect()
    }
}

/// Every device gets the sum of what all devices have.
pub(super) fn all_reduce<P: Payload>(
    ops: CrossDeviceOps,
    has: Vec<P>,
    log: &mut TransferLog,
) -> Vec<P> {
    if has.len() < 2 {
        return has;
    }
    match ops {
        CrossDeviceOps::Ring => ring(has, log),
        CrossDeviceOps::Tree => tree(has, log),
        CrossDeviceOps::Centralized => centralized(has, log),
        CrossDeviceOps::Chain => chain(has, log),
    }
}

/// Device `to` gets the sum of what all devices have, added in the order of the devices.
pub(super) fn reduce_to<P: Payload>(to: usize, has: Vec<P>, log: &mut TransferLog) -> Option<P> {
    let arrived = has
        .into_iter()
        .enumerate()
        .map(|(from, payload)| log.moved(0, from, to, payload));
    arrived.reduce(P::plus)
}

/// Counts a reduce-scatter: of each part the replica in `parts` gets the sum. In a ring a part starts at the replica after
/// its own and goes around, and each replica adds its own; else every replica sends it there.
pub(super) fn reduce_scatter(
    ops: CrossDeviceOps,
    replicas: usize,
    parts: impl Iterator<Item = (usize, u64)>,
    log: &mut TransferLog,
) {
    for (home, bytes) in parts {
        match ops {
            CrossDeviceOps::Ring => around(home + 1, replicas, bytes, log),
            _ => (0..replicas).for_each(|from| log.count(0, from, home, bytes)),
        }
    }
}

/// Counts an all-gather: each part goes from the replica in `parts` to all others, in a ring from neighbor to neighbor.
pub(super) fn all_gather(
    ops: CrossDeviceOps,
    replicas: usize,
    parts: impl Iterator<Item = (usize, u64)>,
    log: &mut TransferLog,
) {
    for (home, bytes) in parts {
        match ops {
            CrossDeviceOps::Ring => around(home, replicas, bytes, log),
            _ => (0..replicas).for_each(|to| log.count(0, home, to, bytes)),
        }
    }
}

/// Counts a part that goes from a replica on to each next one, until it has been on all.
fn around(first: usize, replicas: usize, bytes: u64, log: &mut TransferLog) {
    for hop in 0..replicas.saturating_sub(1) {
        let from = (first + hop) % replicas;
        log.count(hop, from, (from + 1) % replicas, bytes);
    }
}

fn centralized<P: Payload>(has: Vec<P>, log: &mut TransferLog) -> Vec<P> {
    let devices = has.len();
    let Some(sum) = reduce_to(0, has, log) else {
        return Vec::new();
    };
    let others: Vec<P> = (1..devices).map(|to| log.copied(1, 0, to, &sum)).collect();
    std::iter::once(sum).chain(others).collect()
}

/// Each device adds its own to what comes from the one before; the sum goes on around until all have it. The order of the
/// additions is that of [`centralized`].
fn chain<P: Payload>(has: Vec<P>, log: &mut TransferLog) -> Vec<P> {
    let devices = has.len();
    let mut sum: Option<P> = None;
    for (to, own) in has.into_iter().enumerate() {
        sum = Some(match sum {
            None => own,
            Some(before) => own.plus(log.moved(to - 1, to - 1, to, before)),
        });
    }
    let Some(sum) = sum else { return Vec::new() };
    let mut others: Vec<P> = Vec::with_capacity(devices);
    for to in 0..devices - 1 {
        let (from, hop) = ((to + devices - 1) % devices, devices - 1 + to);
        let copy = log.copied(hop, from, to, others.last().unwrap_or(&sum));
        others.push(copy);
    }
    others.push(sum);
    others
}

/// A binary tree with device 0 as its root. With 4 devices: 1 → 0 and 3 → 2, then 2 → 0; then the sum goes back the same
/// way.
fn tree<P: Payload>(has: Vec<P>, log: &mut TransferLog) -> Vec<P> {
    let devices = has.len();
    let mut has: Vec<Option<P>> = has.into_iter().map(Some).collect();
    let levels = devices.next_power_of_two().ilog2() as usize;
    for level in 0..levels {
        let distance = 1 << level;
        for to in (0..devices - distance).step_by(2 * distance) {
            let from = to + distance;
            if let (Some(own), Some(other)) = (has[to].take(), has[from].take()) {
                has[to] = Some(own.plus(log.moved(level, from, to, other)));
            }
        }
    }
    for level in (0..levels).rev() {
        let distance = 1 << level;
        let hop = 2 * levels - 1 - level;
        for from in (0..devices - distance).step_by(2 * distance) {
            let to = from + distance;
            has[to] = has[from].as_ref().map(|sum| log.copied(hop, from, to, sum));
        }
    }
    has.into_iter().flatten().collect()
}

/// Each device splits its payload into R parts. In each hop every device sends one part to its right neighbor: first R − 1
/// hops in which the neighbor adds it to its own part (reduce-scatter), after which device i has the sum of part i + 1;
/// then R − 1 hops in which the neighbor stores it as it is (all-gather).
fn ring<P: Payload>(has: Vec<P>, log: &mut TransferLog) -> Vec<P> {
    let devices = has.len();
    let mut has: Vec<Vec<Option<P>>> = has.into_iter().map(|p| p.parts(devices)).collect();
    let right = |device: usize| (device + 1) % devices;
    for hop in 0..devices - 1 {
        for from in 0..devices {
            let part = (from + devices - hop) % devices;
            let to = right(from);
            if let (Some(sent), Some(own)) = (has[from][part].take(), has[to][part].take()) {
                has[to][part] = Some(own.plus(log.moved(hop, from, to, sent)));
            }
        }
    }
    for hop in 0..devices - 1 {
        for from in 0..devices {
            let part = (from + 1 + devices - hop) % devices;
            let to = right(from);
            has[to][part] = has[from][part]
                .as_ref()
                .map(|sum| log.copied(devices - 1 + hop, from, to, sum));
        }
    }
    has.into_iter()
        .map(|parts| P::joined(parts.into_iter().flatten().collect()))
        .collect()
}

/// A flattened tensor and the devices it may be sent to.
pub(super) struct Flat<'a> {
    pub(super) tensor: Tensor<1>,
    pub(super) devices: &'a [LogicalDevice],
}

impl Flat<'_> {
    /// A range of the elements.
    pub(super) fn cut(&self, elements: &Range<usize>) -> Self {
        Self {
            tensor: (self.tensor.clone()).narrow(0, elements.start, elements.len()),
            devices: self.devices,
        }
    }
}

impl Payload for Flat<'_> {
    fn moved(self, to: usize) -> Self {
        let tensor = self.tensor.to_device(&self.devices[to].burn);
        Self { tensor, ..self }
    }

    fn copied(&self, to: usize) -> Self {
        Self {
            tensor: copy::tensor(&self.tensor, &self.devices[to]),
            devices: self.devices,
        }
    }

    fn plus(self, other: Self) -> Self {
        let tensor = self.tensor.add(other.tensor);
        Self { tensor, ..self }
    }

    fn parts(self, count: usize) -> Vec<Option<Self>> {
        let elements = self.tensor.dims()[0];
        bounds(elements, count)
            .map(|(start, end)| {
                (start < end).then(|| Self {
                    tensor: self.tensor.clone().narrow(0, start, end - start),
                    devices: self.devices,
                })
            })
            .collect()
    }

    fn joined(parts: Vec<Self>) -> Self {
        let devices = parts.first().map_or(&[][..], |part| part.devices);
        let tensors = parts.into_iter().map(|part| part.tensor).collect();
        Self {
            tensor: Tensor::cat(tensors, 0),
            devices,
        }
    }

    fn bytes(&self) -> u64 {
        (self.tensor.dims()[0] * self.tensor.dtype().size()) as u64
    }
}

/// The size of a tensor, to predict transfers without data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) elements: usize,
    pub(super) bytes_each: usize,
}

impl Payload for Size {
    fn moved(self, _to: usize) -> Self {
        self
    }

    fn copied(&self, _to: usize) -> Self {
        *self
    }

    fn plus(self, _other: Self) -> Self {
        self
    }

    fn parts(self, count: usize) -> Vec<Option<Self>> {
        bounds(self.elements, count)
            .map(|(start, end)| {
                (start < end).then_some(Self {
                    elements: end - start,
                    ..self
                })
            })
            .collect()
    }

    fn joined(parts: Vec<Self>) -> Self {
        Self {
            elements: parts.iter().map(|part| part.elements).sum(),
            bytes_each: parts.first().map_or(0, |part| part.bytes_each),
        }
    }

    fn bytes(&self) -> u64 {
        (self.elements * self.bytes_each) as u64
    }
}

/// Where each of `count` consecutive parts of `elements` starts and ends.
pub(super) fn bounds(elements: usize, count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).map(move |part| (part * elements / count, (part + 1) * elements / count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::Collective;

    /// Numbers instead of tensors: what is added can be seen.
    #[derive(Clone, Debug, PartialEq)]
    struct Numbers(Vec<u64>);

    impl Payload for Numbers {
        fn moved(self, _to: usize) -> Self {
            self
        }
        fn copied(&self, _to: usize) -> Self {
            self.clone()
        }
        fn plus(self, other: Self) -> Self {
            assert_eq!(self.0.len(), other.0.len(), "parts of the same place");
            let sums = self.0.iter().zip(&other.0).map(|(a, b)| a + b);
            Self(sums.collect())
        }
        fn parts(self, count: usize) -> Vec<Option<Self>> {
            bounds(self.0.len(), count)
                .map(|(start, end)| (start < end).then(|| Self(self.0[start..end].to_vec())))
                .collect()
        }
        fn joined(parts: Vec<Self>) -> Self {
            Self(parts.into_iter().flat_map(|part| part.0).collect())
        }
        fn bytes(&self) -> u64 {
            4 * self.0.len() as u64
        }
    }

    fn collective(
        ops: CrossDeviceOps,
        replicas: usize,
        payload: u64,
        log: TransferLog,
    ) -> Collective {
        Collective {
            name: "gradients".to_owned(),
            ops,
            replicas,
            payload_bytes: payload,
            transfers: log.transfers(),
        }
    }

    /// Every pattern, 1 to 8 devices, lengths below, at and above the number of devices: the plain sum everywhere,
    /// and the closed formulas for bytes and hops.
    #[test]
    fn sums_bytes_and_hops() {
        for ops in CrossDeviceOps::ALL {
            for devices in 1..=8_usize {
                for length in [1, 2, 7, 8, 9, 100] {
                    let row = |device: usize| {
                        let number = |i: usize| (1 << (4 * device)) + (i * device) as u64;
                        Numbers((0..length).map(number).collect())
                    };
                    let has: Vec<Numbers> = (0..devices).map(row).collect();
                    let expected = has.clone().into_iter().reduce(Payload::plus);
                    let mut log = TransferLog::default();
                    let found = all_reduce(ops, has, &mut log);
                    assert_eq!(found.len(), devices);
                    for sum in &found {
                        assert_eq!(Some(sum), expected.as_ref(), "{ops:?} on {devices}");
                    }

                    let (payload, others) = (4 * length as u64, devices as u64 - 1);
                    let moved = collective(ops, devices, payload, log);
                    assert_eq!(
                        moved.moved_bytes(),
                        2 * others * payload,
                        "{ops:?} {devices}"
                    );
                    let levels = (devices as f64).log2().ceil() as usize;
                    let hops = match ops {
                        _ if devices == 1 => 0,
                        CrossDeviceOps::Ring | CrossDeviceOps::Chain => 2 * (devices - 1),
                        CrossDeviceOps::Tree => 2 * levels,
                        CrossDeviceOps::Centralized => 2,
                    };
                    // A ring with more devices than numbers has idle hops at both ends at most.
                    if length >= devices || ops != CrossDeviceOps::Ring {
                        assert_eq!(moved.hops(), hops, "{ops:?} {devices} {length}");
                    }

                    let size = Size {
                        elements: length,
                        bytes_each: 4,
                    };
                    let mut log = TransferLog::default();
                    all_reduce(ops, vec![size; devices], &mut log);
                    let planned = collective(ops, devices, payload, log);
                    assert_eq!(planned, moved, "the plan is what happens");
                }
            }
        }
    }

    /// The busiest device: with a ring nearly twice the payload in and out, whatever the number of devices.
    #[test]
    fn the_busiest_device() {
        let check = |ops, devices: usize, expected: u64| {
            let size = Size {
                elements: 840,
                bytes_each: 1,
            };
            let mut log = TransferLog::default();
            all_reduce(ops, vec![size; devices], &mut log);
            let moved = collective(ops, devices, 840, log);
            assert_eq!(moved.busiest_bytes(), expected, "{ops:?} on {devices}");
        };
        for devices in 2..=8 {
            let others = devices as u64 - 1;
            check(
                CrossDeviceOps::Ring,
                devices,
                4 * 840 * others / devices as u64,
            );
            check(CrossDeviceOps::Centralized, devices, 2 * 840 * others);
        }
        check(CrossDeviceOps::Tree, 8, 2 * 840 * 3);
        check(CrossDeviceOps::Chain, 8, 4 * 840);
    }

    #[test]
    fn who_talks_to_whom_in_a_tree() {
        let size = Size {
            elements: 1,
            bytes_each: 1,
        };
        let mut log = TransferLog::default();
        all_reduce(CrossDeviceOps::Tree, vec![size; 5], &mut log);
        let found: Vec<_> = log
            .transfers()
            .iter()
            .map(|t| (t.hop, t.from, t.to))
            .collect();
        let up = [(0, 1, 0), (0, 3, 2), (1, 2, 0), (2, 4, 0)];
        let down = [(3, 0, 4), (4, 0, 2), (5, 0, 1), (5, 2, 3)];
        assert_eq!(found, [up, down].concat());
    }
}

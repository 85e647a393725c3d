//! An all-reduce between logical devices of this processor: the mean is computed where the values are, block by block,
//! and no memory is allocated for it.
//!
//! The communication pattern is executed as for other devices, but on [`Formula`]s: for each part of the values, which
//! additions it makes in which order. So the mean has the same bits as the one that the pattern computes with tensors,
//! and every replica gets it: parameters in memory of its own, gradients, which are read and then dropped, in one memory.

use std::ops::Range;

use burn::backend::DispatchDevice;
use burn::tensor::{DType, Tensor};
use burn_flex::{Flex, FlexTensor};
use rayon::prelude::*;

use super::patterns::{self, Payload, Size, TransferLog};
use super::transfer::CrossDeviceOps;

/// Elements of a block: it is read once from memory and then stays in the first-level cache.
const BLOCK: usize = 2048;

/// Whose memory has the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    /// That of each replica.
    OfEach,
    /// That of the first one, which the others share.
    Shared,
}

/// Replaces the values of every replica by `Σ value_i · weight_i`, added in the order of the pattern. Gives the values
/// back unchanged if they are not float32 values of the CPU backend.
pub(super) fn all_reduce<const D: usize>(
    ops: CrossDeviceOps,
    values: Vec<Tensor<D>>,
    weights: &[f64],
    memory: Memory,
    log: &mut TransferLog,
) -> Result<Vec<Tensor<D>>, Vec<Tensor<D>>> {
    let is_known = |value: &Tensor<D>| {
        let device = value.device();
        value.dtype() == DType::F32 && matches!(device.as_dispatch(), DispatchDevice::Flex(_))
    };
    if values.len() < 2 || !values.iter().all(is_known) {
        return Err(values);
    }
    let elements = values[0].shape().num_elements();
    let inputs = (0..values.len()).map(|replica| Formulas::of_replica(replica, elements));
    let Some(sum) = patterns::all_reduce(ops, inputs.collect(), log)
        .into_iter()
        .next()
    else {
        return Err(values);
    };
    let mut primitives: Vec<FlexTensor> = Vec::with_capacity(values.len());
    for value in values {
        let Ok(primitive) = value.try_into_primitive::<Flex>() else {
            unreachable!("the device and the element type were checked");
        };
        // A view of a part is copied: `storage_mut` has all elements of the memory.
        primitives.push(primitive.to_contiguous());
    }
    let weights: Vec<f32> = weights.iter().map(|&weight| weight as f32).collect();
    let slices = primitives.iter_mut().map(|one| one.storage_mut::<f32>());
    replace(slices.collect(), &sum.0, &weights, memory);
    let replicas = primitives.len();
    let mut tensors = primitives.into_iter().map(Tensor::from_primitive::<Flex>);
    Ok(match (memory, tensors.next()) {
        (Memory::Shared, Some(first)) => vec![first; replicas],
        (_, first) => first.into_iter().chain(tensors).collect(),
    })
}

/// Evaluates the formulas block by block, in parallel; each block of every slice, or of the first one, gets the result.
fn replace(
    slices: Vec<&mut [f32]>,
    formulas: &[(Range<usize>, Formula)],
    weights: &[f32],
    memory: Memory,
) {
    let replicas = slices.len();
    let mut blocks: Vec<(&Formula, Vec<&mut [f32]>)> = Vec::new();
    for (range, formula) in formulas {
        let count = range.len().div_ceil(BLOCK);
        blocks.extend((0..count).map(|_| (formula, Vec::with_capacity(replicas))));
    }
    for slice in slices {
        let mut rest = slice;
        let mut each = blocks.iter_mut();
        for (range, _) in formulas {
            let (part, after) = rest.split_at_mut(range.len());
            rest = after;
            for block in part.chunks_mut(BLOCK) {
                if let Some((_, all)) = each.next() {
                    all.push(block);
                }
            }
        }
    }
    blocks.into_par_iter().for_each(|(formula, mut block)| {
        let mut sum = [0.0_f32; BLOCK];
        let sum = &mut sum[..block[0].len()];
        formula.evaluate(&block, weights, sum);
        let into = match memory {
            Memory::OfEach => &mut block[..],
            Memory::Shared => &mut block[..1],
        };
        into.iter_mut().for_each(|own| own.copy_from_slice(sum));
    });
}

/// A sum over replicas, in the order in which it is added.
#[derive(Clone, Debug, PartialEq)]
enum Formula {
    /// The value of a replica times its weight.
    Replica(usize),
    Sum(Box<Formula>, Box<Formula>),
}

impl Formula {
    /// Writes the value of the formula to `sum`.
    fn evaluate(&self, values: &[&mut [f32]], weights: &[f32], sum: &mut [f32]) {
        match self {
            Self::Replica(replica) => {
                let weight = weights[*replica];
                for (sum, &value) in sum.iter_mut().zip(&*values[*replica]) {
                    *sum = value * weight;
                }
            }
            Self::Sum(a, b) => match (&**a, &**b) {
                // Addition is commutative, to the bit.
                (Self::Replica(one), rest) | (rest, Self::Replica(one)) => {
                    rest.evaluate(values, weights, sum);
                    let weight = weights[*one];
                    for (sum, &value) in sum.iter_mut().zip(&*values[*one]) {
                        *sum += value * weight;
                    }
                }
                (a, b) => {
                    a.evaluate(values, weights, sum);
                    let mut other = [0.0_f32; BLOCK];
                    let other = &mut other[..sum.len()];
                    b.evaluate(values, weights, other);
                    for (sum, other) in sum.iter_mut().zip(other) {
                        *sum += *other;
                    }
                }
            },
        }
    }
}

/// Consecutive ranges of the elements, each with its formula.
#[derive(Clone, Debug)]
struct Formulas(Vec<(Range<usize>, Formula)>);

impl Formulas {
    fn of_replica(replica: usize, elements: usize) -> Self {
        Self(vec![(0..elements, Formula::Replica(replica))])
    }

    fn elements(&self) -> usize {
        self.0.iter().map(|(range, _)| range.len()).sum()
    }
}

impl Payload for Formulas {
    fn moved(self, _to: usize) -> Self {
        self
    }

    fn copied(&self, _to: usize) -> Self {
        self.clone()
    }

    fn plus(self, other: Self) -> Self {
        let pairs = self.0.into_iter().zip(other.0);
        let sum = |((range, a), (_, b)): ((Range<usize>, _), (_, _))| {
            (range, Formula::Sum(Box::new(a), Box::new(b)))
        };
        Self(pairs.map(sum).collect())
    }

    /// Only what [`Formulas::of_replica`] made is split: one formula for all elements.
    fn parts(self, count: usize) -> Vec<Option<Self>> {
        let part = |(start, end): (usize, usize)| {
            let whole = self.0.first().filter(|_| start < end);
            whole.map(|(_, formula)| Self(vec![(start..end, formula.clone())]))
        };
        patterns::bounds(self.elements(), count).map(part).collect()
    }

    fn joined(parts: Vec<Self>) -> Self {
        Self(parts.into_iter().flat_map(|part| part.0).collect())
    }

    fn bytes(&self) -> u64 {
        let elements = self.elements();
        Size {
            elements,
            bytes_each: size_of::<f32>(),
        }
        .bytes()
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};

    use super::super::patterns::Flat;
    use super::*;
    use crate::device::{LogicalDevice, cpu};

    fn devices(count: usize) -> Vec<LogicalDevice> {
        use crate::{AsStrategy, MirroredStrategy};
        let strategy = MirroredStrategy::logical_on(cpu(0), count).expect("devices");
        strategy.strategy().replicas().to_vec()
    }

    fn bits(tensor: &Tensor<1>) -> Vec<u32> {
        let data: TensorData = tensor.to_data();
        data.iter::<f32>().map(f32::to_bits).collect()
    }

    /// Every pattern, 2 to 7 replicas, lengths around the block and the number of replicas: the same bits and the same
    /// transfers as the pattern with tensors, wherever the result is.
    #[test]
    fn the_bits_are_those_of_the_pattern_with_tensors() {
        for ops in CrossDeviceOps::ALL {
            for count in 2..=7 {
                let devices = devices(count);
                for elements in [1, 3, count, 1000, 2 * BLOCK * count + 5] {
                    let value = |replica: usize| {
                        let numbers = (0..elements).map(|i| {
                            let x = ((i * 7919 + replica * 104_729) % 10_007) as f32;
                            (x - 5000.0) * 1.37e-3
                        });
                        let numbers: Vec<f32> = numbers.collect();
                        Tensor::<1>::from_data(
                            TensorData::new(numbers, [elements]),
                            &Device::flex(),
                        )
                    };
                    let weights: Vec<f64> = (0..count).map(|i| (i + 1) as f64 / 28.0).collect();
                    let mut expected_log = TransferLog::default();
                    let has = (0..count).map(|replica| Flat {
                        tensor: value(replica).mul_scalar(weights[replica]),
                        devices: &devices,
                    });
                    let expected = patterns::all_reduce(ops, has.collect(), &mut expected_log);
                    let transfers = expected_log.transfers();
                    for memory in [Memory::OfEach, Memory::Shared] {
                        let mut log = TransferLog::default();
                        let values = (0..count).map(value).collect();
                        let found = all_reduce(ops, values, &weights, memory, &mut log);
                        let found = found.expect("float32");
                        for (found, expected) in found.iter().zip(&expected) {
                            let context = format!("{ops:?} {count} {elements} {memory:?}");
                            assert_eq!(bits(found), bits(&expected.tensor), "{context}");
                        }
                        assert_eq!(found.len(), count);
                        assert_eq!(log.transfers(), transfers);
                    }
                }
            }
        }
    }

    #[test]
    fn shared_values_and_views_stay_what_they_were() {
        let whole = Tensor::<2>::from_data([[1.0_f32, 2.0], [3.0, 4.0]], &Device::flex());
        let turned = whole.clone().transpose();
        let values = vec![whole.clone(), turned];
        let mut log = TransferLog::default();
        let ring = CrossDeviceOps::Ring;
        let found = all_reduce(ring, values, &[0.5, 0.5], Memory::OfEach, &mut log);
        let found = found.expect("float32");
        let mean: Vec<f32> = found[1].to_data().iter::<f32>().collect();
        assert_eq!(mean, [1.0, 2.5, 2.5, 4.0]);
        let kept: Vec<f32> = whole.to_data().iter::<f32>().collect();
        assert_eq!(kept, [1.0, 2.0, 3.0, 4.0]);
    }

    /// The backward pass of `Tensor::cat` gives such parts: an offset in memory that has more.
    #[test]
    fn parts_of_a_tensor_are_reduced_where_they_are() {
        for memory in [Memory::OfEach, Memory::Shared] {
            let whole = Tensor::<1>::from_data([1.0_f32, 2.0, 3.0, 4.0, 5.0], &Device::flex());
            let values = vec![whole.clone().narrow(0, 2, 2), whole.clone().narrow(0, 3, 2)];
            let mut log = TransferLog::default();
            let ring = CrossDeviceOps::Ring;
            let found = all_reduce(ring, values, &[0.5, 0.5], memory, &mut log);
            for found in found.expect("float32") {
                let mean: Vec<f32> = found.to_data().iter::<f32>().collect();
                assert_eq!(mean, [3.5, 4.5], "{memory:?}");
            }
            let kept: Vec<f32> = whole.to_data().iter::<f32>().collect();
            assert_eq!(kept, [1.0, 2.0, 3.0, 4.0, 5.0]);
        }
    }

    #[test]
    fn other_elements_are_left_to_the_tensors() {
        let wide = || Tensor::<1>::from_data([1.0_f64, 2.0], (&Device::flex(), DType::F64));
        let mut log = TransferLog::default();
        let left = all_reduce(
            CrossDeviceOps::Tree,
            vec![wide(), wide()],
            &[0.5, 0.5],
            Memory::OfEach,
            &mut log,
        );
        assert_eq!(left.expect_err("float64").len(), 2);
        assert!(log.transfers().is_empty());
    }
}

//! How much an update changes each variable, measured in the pass that makes it.
//!
//! The pass over weights, moments and gradients waits for memory. It goes through them in pieces that fit the first-level
//! cache: the old values of a piece are kept, and compared with the new ones while both are there. So the sums cost no
//! access to memory of their own. Each is added up in f32 over a piece and in f64 over all pieces in their order: the
//! same bits on any number of threads.

use std::ops::Range;

use burn::module::ParamId;
use rayon::prelude::*;

use super::kernel::BLOCK;

/// Elements of a piece: 4 KB of each array.
pub(super) const PIECE: usize = 1024;
/// Sums that are added up side by side, whatever vectors the processor has.
const LANES: usize = 16;

/// Sums of squares over the elements of a variable.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Change {
    /// Of the weights before the update.
    pub weights: f64,
    /// Of what the update has added to them.
    pub change: f64,
}

/// The change of each variable that was measured, in the order of the module.
pub type Changes = Vec<(ParamId, Change)>;

impl Change {
    #[inline(always)]
    fn of(before: &[f32], after: &[f32]) -> Self {
        let (mut weights, mut change) = ([0.0_f32; LANES], [0.0_f32; LANES]);
        let (before, rest) = before.as_chunks::<LANES>();
        let (after, rest_after) = after.as_chunks::<LANES>();
        for (lane, before) in rest.iter().enumerate() {
            let moved = rest_after[lane] - before;
            weights[lane] = before * before;
            change[lane] = moved * moved;
        }
        // By number: the iterator over both would be called for each chunk, and the sums would lie in memory.
        for chunk in 0..before.len() {
            let (before, after) = (before[chunk], after[chunk]);
            for lane in 0..LANES {
                let moved = after[lane] - before[lane];
                weights[lane] += before[lane] * before[lane];
                change[lane] += moved * moved;
            }
        }
        let sum = |lanes: [f32; LANES]| lanes.into_iter().map(f64::from).sum();
        Self {
            weights: sum(weights),
            change: sum(change),
        }
    }

    /// Adds those of other elements.
    pub fn add(&mut self, other: Self) {
        self.weights += other.weights;
        self.change += other.change;
    }

    /// Whether both sums are finite, and so each weight before and after the update.
    pub fn is_finite(self) -> bool {
        self.weights.is_finite() && self.change.is_finite()
    }

    /// ‖Δw‖ / ‖w‖.
    pub fn ratio(self) -> f64 {
        (self.change / self.weights).sqrt()
    }
}

impl std::iter::Sum for Change {
    fn sum<I: Iterator<Item = Self>>(changes: I) -> Self {
        changes.fold(Self::default(), |mut sum, one| {
            sum.add(one);
            sum
        })
    }
}

/// Updates a block of weights piece by piece and measures the change; `update` gets a piece and its place in the block.
/// Where nothing is to be measured the block is one piece.
pub(super) fn updated(
    weights: &mut [f32],
    is_measured: bool,
    mut update: impl FnMut(&mut [f32], Range<usize>),
) -> Change {
    let count = weights.len();
    if !is_measured {
        update(weights, 0..count);
        return Change::default();
    }
    let mut before = [0.0_f32; PIECE];
    let mut sum = Change::default();
    for (index, piece) in weights.chunks_mut(PIECE).enumerate() {
        let (start, before) = (index * PIECE, &mut before[..piece.len()]);
        before.copy_from_slice(piece);
        update(piece, start..start + before.len());
        sum.add(compared(before, piece));
    }
    sum
}

/// [`Change::of`] for the widest vectors the processor has; the order of the sums is the same for all of them.
fn compared(before: &[f32], after: &[f32]) -> Change {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn avx2(before: &[f32], after: &[f32]) -> Change {
            Change::of(before, after)
        }
        if stratoscope_bert::ops::allows_avx2() {
            // SAFETY: the processor has what the function was compiled for.
            return unsafe { avx2(before, after) };
        }
    }
    Change::of(before, after)
}

/// The change that an update would make, without making it: it is applied to copies of pieces of the weights and of what
/// is kept beside them (up to three arrays; one that is not there yet is zeros). Nothing is written to memory but these pieces.
pub(super) fn rehearsed<const KEPT: usize>(
    weights: &[f32],
    kept: [Option<&[f32]>; KEPT],
    gradients: &[f32],
    update: impl Fn(&mut [f32], &mut [[f32; PIECE]; KEPT], &[f32]) + Sync,
) -> Change {
    let blocks: Vec<Change> = (weights.par_chunks(BLOCK).enumerate())
        .map(|(block, weights)| {
            let (mut after, mut beside) = ([0.0_f32; PIECE], [[0.0_f32; PIECE]; KEPT]);
            let pieces = weights.chunks(PIECE).enumerate();
            let changes = pieces.map(|(piece, before)| {
                let start = block * BLOCK + piece * PIECE;
                let place = start..start + before.len();
                let after = &mut after[..before.len()];
                after.copy_from_slice(before);
                for (copy, kept) in beside.iter_mut().zip(kept) {
                    match kept {
                        Some(kept) => copy[..before.len()].copy_from_slice(&kept[place.clone()]),
                        None => copy.fill(0.0),
                    }
                }
                update(after, &mut beside, &gradients[place]);
                compared(before, after)
            });
            changes.sum()
        })
        .collect();
    blocks.into_iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_that_is_not_finite_shows_in_the_change() {
        for count in [1, 16, 17, PIECE + 3] {
            for at in [0, count / 2, count - 1] {
                for (before, after) in [(f32::NAN, 1.0), (1.0, f32::NAN), (1.0, f32::INFINITY)] {
                    let mut weights = vec![0.5; count];
                    weights[at] = before;
                    let change = updated(&mut weights, true, |piece, place| {
                        if place.contains(&at) {
                            piece[at - place.start] = after;
                        }
                    });
                    assert!(!change.is_finite(), "{before} {after} at {at} of {count}");
                }
            }
            let change = updated(&mut vec![0.5; count], true, |piece, _| piece.fill(0.25));
            assert!(change.is_finite());
        }
    }

    #[test]
    fn sums_are_those_of_the_definition() {
        for count in [0, 1, 15, 16, 17, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 5] {
            let old: Vec<f32> = (0..count).map(|at| (at % 7) as f32 - 3.0).collect();
            let moved = |at: usize| (at % 3) as f32 * 0.5;
            let mut weights = old.clone();
            let found = updated(&mut weights, true, |piece, place| {
                for (weight, at) in piece.iter_mut().zip(place) {
                    *weight += moved(at);
                }
            });
            let squares = |values: &mut dyn Iterator<Item = f32>| -> f64 {
                values.map(|it| f64::from(it).powi(2)).sum()
            };
            let expected = Change {
                weights: squares(&mut old.iter().copied()),
                change: squares(&mut (0..count).map(moved)),
            };
            assert_eq!(found, expected, "{count}");
            let rehearsed = rehearsed(&old, [], &[0.0; 4096][..count], |piece, [], _| {
                piece.iter_mut().for_each(|it| *it += 1.0);
            });
            assert_eq!(rehearsed.weights, expected.weights);
            assert_eq!(rehearsed.change, count as f64);
        }
    }
}

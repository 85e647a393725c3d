//! What the replicas of a [`MirroredStrategy`](super::MirroredStrategy) divide among them: ZeRO, and what PyTorch calls FSDP.
//!
//! Mirrored training keeps everything once on each replica: weights, gradients, and what the optimizer keeps beside each
//! weight. All replicas make the same update, so each of them could make a part of it and send the result to the others.
//! For P bytes of weights, Adam and R replicas, a replica keeps between two steps
//!
//! | divided | weights | moments | what a step moves to and from a replica |
//! | --- | --- | --- | --- |
//! | nothing | P | 2 P | all-reduce: 2 P |
//! | [`Shard::Optimizer`], ZeRO-1 | P | 2 P / R | all-reduce, all-gather of weights: 3 P |
//! | [`Shard::Gradients`], ZeRO-2 | P | 2 P / R | reduce-scatter, all-gather of weights: 2 P |
//! | [`Shard::Parameters`], ZeRO-3 | P / R | 2 P / R | two all-gathers of weights, reduce-scatter: 3 P |
//!
//! (each P · (R − 1) / R, to be exact). Gradients are there from the backward pass to the update only.
//!
//! Source: Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models". As in PyTorch's
//! `fully_shard`, a variable is cut along its first axis.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

/// What the replicas of a strategy divide among them. Each level includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shard {
    /// What the optimizer keeps beside the weights: each replica updates its rows of every variable and sends them to the
    /// others. ZeRO-1; PyTorch: `ZeroRedundancyOptimizer`.
    Optimizer,
    /// Gradients too: a replica gets the sum of the gradients of its rows only. ZeRO-2.
    Gradients,
    /// Weights too: a replica stores its rows, and gathers the others when it computes. ZeRO-3; PyTorch: `fully_shard`.
    Parameters,
}

impl Shard {
    /// All levels, ZeRO-1 first.
    pub const ALL: [Self; 3] = [Self::Optimizer, Self::Gradients, Self::Parameters];

    /// The name of the paper: `ZeRO-1`.
    pub fn zero(self) -> &'static str {
        match self {
            Self::Optimizer => "ZeRO-1",
            Self::Gradients => "ZeRO-2",
            Self::Parameters => "ZeRO-3",
        }
    }
}

impl fmt::Display for Shard {
    /// As it is written: `Shard::Optimizer`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shard::{self:?}")
    }
}

/// The rows of each replica of a variable with so many, as even as possible; replicas without a row are left out. `taken`
/// is the number of variables that were cut before: the rows that are left over go to other replicas each time.
pub(crate) fn cut(rows: usize, replicas: usize, taken: usize) -> Vec<(usize, Range<usize>)> {
    let (each, left) = (rows / replicas, rows % replicas);
    let mut start = 0;
    let mut parts = Vec::with_capacity(replicas);
    for replica in 0..replicas {
        let gets_one_more = (replica + replicas - taken % replicas) % replicas < left;
        let end = start + each + usize::from(gets_one_more);
        if end > start {
            parts.push((replica, start..end));
        }
        start = end;
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::MirroredStrategy;

    #[test]
    fn rows_that_are_left_over_go_to_others_in_turn() {
        assert_eq!(cut(8, 2, 5), [(0, 0..4), (1, 4..8)]);
        assert_eq!(cut(3, 2, 0), [(0, 0..2), (1, 2..3)]);
        assert_eq!(cut(3, 2, 1), [(0, 0..1), (1, 1..3)]);
        assert_eq!(cut(1, 4, 2), [(2, 0..1)]);
        assert_eq!(cut(0, 4, 2), []);
    }

    #[test]
    fn one_replica_has_nothing_to_divide() {
        let alone = MirroredStrategy::logical(1).expect("one logical device");
        let refused = alone.shard(Shard::Optimizer).expect_err("one replica");
        assert_eq!(refused.code, "SC0915");
    }

    proptest! {
        #[test]
        fn every_row_is_in_one_part(rows in 0..300_usize, replicas in 1..65_usize, taken in 0..200_usize) {
            let parts = cut(rows, replicas, taken);
            let all: Vec<usize> = parts.iter().flat_map(|(_, rows)| rows.clone()).collect();
            prop_assert_eq!(all, (0..rows).collect::<Vec<_>>());
            let sizes: Vec<usize> = parts.iter().map(|(_, rows)| rows.len()).collect();
            let least = sizes.iter().min().copied().unwrap_or(0);
            prop_assert!(sizes.iter().all(|&size| size <= least + 1));
            prop_assert!(parts.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
    }
}

//! How parameter servers split large variables: by rows, along the first axis, one shard per server. Keras:
//! `variable_partitioner` of `tf.distribute.ParameterServerStrategy`, with its three partitioners.
//!
//! A shard has the same rows as in TensorFlow: as even as possible, the first ones one row longer. Here a
//! server stores at most one shard of a variable, so there are never more shards than servers
//! (TensorFlow allows several on one server, and advises against it).

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use stratoscope_diagnostics::Result;

use crate::problem;

/// The number of shards of a variable. With one shard, the variable is stored on one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Partitioner {
    /// This number of shards. TensorFlow: `FixedShardsPartitioner`.
    FixedShards(usize),
    /// As many shards as possible with at least this many bytes in each. TensorFlow: `MinSizePartitioner`, whose
    /// default is `256 << 10`.
    MinSize(u64),
    /// As few shards as possible with at most this many bytes in each. TensorFlow: `MaxSizePartitioner`.
    MaxSize(u64),
}

impl Partitioner {
    /// # Errors
    /// SC0915 for 0.
    pub(super) fn checked(self) -> Result<Self> {
        match self {
            Self::FixedShards(0) => Err(problem::bad_size("number of shards", 0, "at least 1")),
            Self::MinSize(0) | Self::MaxSize(0) => {
                Err(problem::bad_size("bytes of a shard", 0, "at least 1"))
            }
            _ => Ok(self),
        }
    }

    /// The rows of each shard of a variable of `rows` rows and `bytes` bytes over `servers`; at least
    /// one shard, and none without rows unless the variable has none.
    pub(crate) fn cut(self, rows: usize, bytes: u64, servers: usize) -> Vec<Range<usize>> {
        let upto = |shards: u64| usize::try_from(shards).unwrap_or(usize::MAX);
        let wanted = match self {
            Self::FixedShards(shards) => shards,
            Self::MinSize(least) => upto(bytes / least.max(1)),
            Self::MaxSize(most) => {
                let row = bytes / u64::try_from(rows.max(1)).unwrap_or(u64::MAX);
                rows.div_ceil(upto(most / row.max(1)).max(1))
            }
        };
        let shards = wanted.min(servers).min(rows).max(1);
        let (each, longer) = (rows / shards, rows % shards);
        let start = |shard: usize| shard * each + shard.min(longer);
        (0..shards).map(|s| start(s)..start(s + 1)).collect()
    }
}

impl fmt::Display for Partitioner {
    /// As it is written: `Partitioner::MinSize(262144)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Partitioner::{self:?}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lengths(partitioner: Partitioner, rows: usize, bytes: u64, servers: usize) -> Vec<usize> {
        let shards = partitioner.cut(rows, bytes, servers);
        shards.iter().map(ExactSizeIterator::len).collect()
    }

    /// The examples of TensorFlow's documentation, and those of its sources.
    #[test]
    fn as_tensorflow_cuts() {
        use Partitioner::{FixedShards, MaxSize, MinSize};
        assert_eq!(lengths(FixedShards(2), 10, 120, 8), [5, 5]);
        assert_eq!(lengths(FixedShards(4), 10, 40, 8), [3, 3, 2, 2]);
        assert_eq!(lengths(MinSize(4), 6, 24, 2), [3, 3]);
        assert_eq!(lengths(MinSize(4), 6, 24, 10), [1; 6]);
        assert_eq!(lengths(MinSize(13), 6, 24, 10), [6], "two would be smaller");
        assert_eq!(lengths(MaxSize(4), 6, 24, 8), [1; 6]);
        assert_eq!(lengths(MaxSize(4), 6, 24, 2), [3, 3]);
        assert_eq!(lengths(MaxSize(1024), 6, 24, 8), [6]);
        assert_eq!(lengths(MaxSize(1), 6, 24, 8), [1; 6], "a row is not cut");
    }

    #[test]
    fn nothing_is_no_size() {
        for partitioner in [
            Partitioner::FixedShards(0),
            Partitioner::MinSize(0),
            Partitioner::MaxSize(0),
        ] {
            let error = partitioner.checked().expect_err("0");
            assert_eq!(error.code, "SC0915");
        }
        let error = Partitioner::FixedShards(0).checked().expect_err("0");
        assert_eq!(
            error.message,
            "the number of shards is 0, but must be at least 1"
        );
    }

    fn partitioners() -> impl Strategy<Value = Partitioner> {
        prop_oneof![
            (1..200_usize).prop_map(Partitioner::FixedShards),
            (1..4000_u64).prop_map(Partitioner::MinSize),
            (1..4000_u64).prop_map(Partitioner::MaxSize),
        ]
    }

    proptest! {
        /// Any number of rows, any number of shards: every row is in one shard, in order, no shard is
        /// empty, lengths differ by at most one, and the sizes are what the partitioner promises.
        #[test]
        fn every_row_is_in_one_shard(
            partitioner in partitioners(),
            rows in 0..300_usize,
            row in 1..40_u64,
            servers in 1..=64_usize,
        ) {
            let bytes = rows as u64 * row;
            let shards = partitioner.cut(rows, bytes, servers);
            let all: Vec<usize> = shards.iter().cloned().flatten().collect();
            prop_assert_eq!(all, (0..rows).collect::<Vec<_>>());
            prop_assert!((1..=servers).contains(&shards.len()));
            let lengths: Vec<usize> = shards.iter().map(ExactSizeIterator::len).collect();
            prop_assert!(rows == 0 || !lengths.contains(&0));
            prop_assert!(lengths[0] - lengths[lengths.len() - 1] <= 1, "{:?}", lengths);
            let most = servers.min(rows.max(1));
            match partitioner {
                Partitioner::FixedShards(count) => prop_assert_eq!(shards.len(), count.min(most)),
                // On average: shards differ by a row.
                Partitioner::MinSize(least) => {
                    prop_assert!(shards.len() == 1 || bytes / shards.len() as u64 >= least);
                    let more = shards.len() as u64 + 1;
                    prop_assert!(more as usize > most || bytes / more < least);
                }
                Partitioner::MaxSize(size) => {
                    let fits = lengths.iter().all(|&rows| rows as u64 * row <= size);
                    prop_assert!(fits || shards.len() == most, "{:?}", lengths);
                }
            }
        }
    }
}

//! [`AutoShardPolicy`]: which examples each worker of a `MultiWorkerMirroredStrategy` sees. TensorFlow:
//! `tf.data.experimental.AutoShardPolicy`.

use crate::dataset::Dataset;
use crate::encoded::Encoded;
use crate::random::{GOLDEN_GAMMA, permutation};

/// How examples are divided over worker processes. Under other strategies, whose replicas are in one process, it means
/// nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AutoShardPolicy {
    /// [`Self::Data`], since workers read no files.
    #[default]
    Auto,
    /// Files are divided. Workers read none here, so that `fit!` refuses it (SC0803).
    File,
    /// Each example goes to one worker, once an epoch.
    Data,
    /// Each worker sees all examples: an epoch has as many times the examples as there are workers (SC0813).
    Off,
}

impl Dataset {
    /// The same data, divided over workers in this way.
    ///
    /// ```
    /// use stratoscope_data::{AutoShardPolicy, Dataset};
    ///
    /// let data = Dataset::from_texts(["a chess game", "a mail server"]).auto_shard(AutoShardPolicy::Off);
    /// assert_eq!(data.take(1).auto_shard, AutoShardPolicy::Off);
    /// ```
    #[must_use]
    pub fn auto_shard(mut self, policy: AutoShardPolicy) -> Self {
        self.auto_shard = policy;
        self
    }
}

/// The order of an epoch in which each of `passes` workers goes through all examples, in an order of its own: the examples
/// of worker `w` are at the positions `w`, `w + passes`, `w + 2 · passes`, …
pub(crate) fn interleaved(
    examples: usize,
    passes: usize,
    own: impl Fn(u64) -> Vec<usize>,
) -> Vec<usize> {
    let orders: Vec<Vec<usize>> = (0..passes as u64).map(own).collect();
    (0..examples)
        .flat_map(|at| orders.iter().map(move |order| order[at]))
        .collect()
}

/// The order of a worker in an epoch; that of worker 0 is the order of a single process.
pub(crate) fn order_of(worker: u64, examples: usize, seed: u64, epoch: u64) -> Vec<usize> {
    let seed = seed.wrapping_add(worker.wrapping_mul(GOLDEN_GAMMA));
    permutation(examples, seed, epoch)
}

/// The positions of a batch, worker by worker, as [`Batch::split`](crate::Batch::split) divides it.
pub(crate) fn by_worker(positions: std::ops::Range<usize>, passes: usize) -> Vec<usize> {
    let mut all: Vec<usize> = positions.collect();
    if passes > 1 {
        all.sort_by_key(|position| position % passes);
    }
    all
}

impl Encoded {
    /// The same examples, all of which each of so many workers sees in an epoch, in an order of its own. A batch whose size
    /// `workers` divides has as many examples of each of them, worker by worker.
    #[must_use]
    pub fn seen_by_each(self, workers: usize) -> Self {
        let (examples, passes) = (self.examples.len(), workers.max(1));
        let own = |_| (0..examples).collect();
        Self {
            order: interleaved(examples, passes, own).into(),
            passes,
            ..self
        }
    }

    /// How often an epoch has each example: once, or once for each worker that sees all of them.
    pub fn passes(&self) -> usize {
        self.passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenize::letters::Letters;

    fn rows(encoded: &Encoded) -> Vec<usize> {
        let each = (0..encoded.len()).filter_map(|at| encoded.get(at));
        each.map(|example| example.index).collect()
    }

    #[test]
    fn each_worker_sees_all_examples_in_an_order_of_its_own() {
        let data = Dataset::from_texts(["a", "b", "c", "d", "e", "f"]);
        let one = data.tokenize(&Letters, 8).expect("texts");
        let each = one.clone().seen_by_each(3);
        assert_eq!(each.len(), 18);
        assert_eq!(rows(&each)[..4], [0, 0, 0, 1]);
        let shuffled = rows(&each.shuffle(5, 1));
        let of = |worker: usize| -> Vec<usize> {
            shuffled.iter().skip(worker).step_by(3).copied().collect()
        };
        assert_eq!(of(0), rows(&one.shuffle(5, 1)), "as a process alone");
        assert_ne!(of(0), of(1));
        for worker in 0..3 {
            let mut sorted = of(worker);
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3, 4, 5]);
        }
    }

    #[test]
    fn workers_have_batches_of_one_length_at_a_time() {
        let texts: Vec<String> = (0..960).map(|row| "a".repeat(1 + row * 7 % 40)).collect();
        let one = Dataset::from_texts(texts).tokenize(&Letters, 64);
        let one = one.expect("texts");
        let each = one.clone().seen_by_each(2).by_length(16).shuffle(7, 0);
        let of = |worker: usize| -> Vec<usize> {
            rows(&each).into_iter().skip(worker).step_by(2).collect()
        };
        // Half of each batch is one worker's.
        assert_eq!(of(0), rows(&one.clone().by_length(8).shuffle(7, 0)));
        assert_ne!(of(0), of(1));
        let mut sorted = of(1);
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..960));
        let plain = one.seen_by_each(2).shuffle(7, 0);
        assert!(4 * plain.positions(16) > 5 * each.positions(16));
    }

    #[test]
    fn a_batch_has_the_examples_worker_by_worker() {
        let data = Dataset::from_texts(["a", "b", "c", "d", "e"]);
        let one = data.tokenize(&Letters, 8).expect("texts");
        let each = one.clone().seen_by_each(2).shuffle(7, 0);
        let parts = |encoded: &Encoded, size| -> Vec<Vec<usize>> {
            let batches = encoded.batch(size).expect("a size");
            batches.map(|batch| batch.rows).collect()
        };
        let alone = parts(&one.shuffle(7, 0), 2);
        for (batch, own) in each.batch(4).expect("a size").zip(&alone) {
            let split = batch.split(2);
            assert_eq!(&split[0].rows, own);
            assert_eq!(split[1].rows.len(), own.len());
        }
        let sizes: Vec<usize> = parts(&each, 4).iter().map(Vec::len).collect();
        assert_eq!(sizes, [4, 4, 2]);
    }
}

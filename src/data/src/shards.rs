//! [`AutoShardPolicy`]: which examples each worker of a `MultiWorkerMirroredStrategy` sees. TensorFlow:
//! `tf.data.experimental.AutoShardPolicy`.

use std::ops::Range;
use std::sync::Arc;

use crate::dataset::Dataset;
use crate::encoded::Encoded;
use crate::random::{GOLDEN_GAMMA, permutation};

/// How examples are divided over worker processes. Under other strategies, whose replicas are in one process, it means
/// nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AutoShardPolicy {
    /// [`Self::Data`], which gives workers equal shares whatever the files. TensorFlow's takes `File` where there are enough.
    #[default]
    Auto,
    /// Each file goes to one worker, in turn, in the order of their names: file `i` of `n` workers to worker `i mod n`. A
    /// worker sees the examples of its files alone, once an epoch. There must be at least as many files as workers
    /// (SC0803).
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

/// Which worker has each example of an epoch. The workers take turns; one that has no example left is passed over, so that
/// the others fill the batches.
#[derive(Clone, Debug)]
pub(crate) struct Division {
    /// The examples that each worker has.
    rows: Arc<[Vec<usize>]>,
    /// The worker of each position in the order of an epoch.
    turns: Arc<[usize]>,
    /// How often an epoch has each example.
    passes: usize,
}

impl Division {
    fn new(rows: Vec<Vec<usize>>, passes: usize) -> Self {
        let counts: Vec<usize> = rows.iter().map(Vec::len).collect();
        let rounds = counts.iter().max().copied().unwrap_or(0);
        let in_round = |round| {
            let workers = counts.iter().enumerate();
            workers.filter_map(move |(worker, &count)| (round < count).then_some(worker))
        };
        let turns = (0..rounds).flat_map(in_round).collect();
        Self {
            rows: rows.into(),
            turns,
            passes,
        }
    }

    pub(crate) fn workers(&self) -> usize {
        self.rows.len()
    }

    /// The worker that has the example at a position of the order.
    pub(crate) fn worker(&self, position: usize) -> usize {
        self.turns[position]
    }

    /// How many examples each worker has at these positions.
    pub(crate) fn shares(&self, positions: Range<usize>) -> Vec<usize> {
        let mut shares = vec![0; self.workers()];
        for &worker in &self.turns[positions] {
            shares[worker] += 1;
        }
        shares
    }

    /// Of these positions alone, in this order.
    pub(crate) fn at(&self, positions: &[usize]) -> Self {
        Self {
            turns: positions.iter().map(|&at| self.turns[at]).collect(),
            ..self.clone()
        }
    }

    /// The order of an epoch, for the order in which each worker has its examples.
    pub(crate) fn interleaved(&self, own: impl Fn(usize, &[usize]) -> Vec<usize>) -> Vec<usize> {
        let rows = self.rows.iter().enumerate();
        let mut orders: Vec<_> = rows
            .map(|(worker, rows)| own(worker, rows).into_iter())
            .collect();
        let turns = self.turns.iter();
        turns.filter_map(|&worker| orders[worker].next()).collect()
    }
}

/// The random order in which a worker has these examples in an epoch; for worker 0 with all examples it is the order of a
/// single process.
pub(crate) fn order_of(worker: usize, rows: &[usize], seed: u64, epoch: u64) -> Vec<usize> {
    let seed = seed.wrapping_add((worker as u64).wrapping_mul(GOLDEN_GAMMA));
    let places = permutation(rows.len(), seed, epoch).into_iter();
    places.map(|place| rows[place]).collect()
}

impl Encoded {
    /// The same examples, all of which each of so many workers sees in an epoch, in an order of its own. A batch whose size
    /// `workers` divides has as many examples of each of them, worker by worker.
    #[must_use]
    pub fn seen_by_each(self, workers: usize) -> Self {
        let all: Vec<usize> = (0..self.examples.len()).collect();
        let workers = workers.max(1);
        self.divided(Division::new(vec![all; workers], workers))
    }

    /// The same examples, each of which one of so many workers has: `owner` of its index in the data set. A batch has as
    /// many examples of each worker, worker by worker, while all of them have examples left; then the others fill it.
    ///
    /// # Panics
    /// If an owner is no worker.
    #[must_use]
    pub fn owned_by(self, workers: usize, owner: impl Fn(usize) -> usize) -> Self {
        let mut rows = vec![Vec::new(); workers];
        for (row, example) in self.examples.iter().enumerate() {
            rows[owner(example.index)].push(row);
        }
        self.divided(Division::new(rows, 1))
    }

    fn divided(self, division: Division) -> Self {
        Self {
            order: division.interleaved(|_, rows| rows.to_vec()).into(),
            division: Some(division),
            ..self
        }
    }

    /// How often an epoch has each example: once, or once for each worker that sees all of them.
    pub fn passes(&self) -> usize {
        self.division.as_ref().map_or(1, |it| it.passes)
    }

    /// How many examples each worker has at these positions of the order; `None` where they are divided evenly.
    pub fn shares_of(&self, positions: Range<usize>) -> Option<Vec<usize>> {
        let end = positions.end.min(self.len());
        let division = self.division.as_ref()?;
        Some(division.shares(positions.start.min(end)..end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batch;
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
            let split: Vec<Batch> = batch.split(2).into_iter().flatten().collect();
            assert_eq!(&split[0].rows, own);
            assert_eq!(split[1].rows.len(), own.len());
        }
        let sizes: Vec<usize> = parts(&each, 4).iter().map(Vec::len).collect();
        assert_eq!(sizes, [4, 4, 2]);
    }

    /// The rows of each worker in each batch.
    fn batches(encoded: &Encoded, size: usize) -> Vec<[Vec<usize>; 2]> {
        let rows = |part: &Option<Batch>| part.as_ref().map_or(Vec::new(), |it| it.rows.clone());
        let batches = encoded.batch(size).expect("a size");
        batches
            .map(|batch| {
                let parts = batch.split(2);
                [rows(&parts[0]), rows(&parts[1])]
            })
            .collect()
    }

    #[test]
    fn a_worker_has_its_own_examples_until_they_end() {
        let texts: Vec<String> = (0..14).map(|row| "a".repeat(1 + row)).collect();
        let one = Dataset::from_texts(texts).tokenize(&Letters, 64);
        let one = one.expect("texts");
        // Worker 1 has the last four.
        let owned = one.clone().owned_by(2, |row| usize::from(row >= 10));
        assert_eq!(owned.passes(), 1);
        let plain = batches(&owned, 4);
        assert_eq!(plain[0], [vec![0, 1], vec![10, 11]]);
        assert_eq!(plain[1], [vec![2, 3], vec![12, 13]]);
        assert_eq!(plain[2], [vec![4, 5, 6, 7], vec![]]);
        assert_eq!(plain[3], [vec![8, 9], vec![]]);
        assert_eq!(owned.shares_of(0..12), Some(vec![8, 4]));
        assert_eq!(owned.shares_of(12..99), Some(vec![2, 0]));
        assert_eq!(one.shares_of(0..4), None);
        for (seed, epoch) in [(3, 0), (3, 1), (4, 0)] {
            let shuffled = owned.shuffle(seed, epoch);
            let found = batches(&shuffled, 4);
            let sizes: Vec<[usize; 2]> =
                found.iter().map(|it| [it[0].len(), it[1].len()]).collect();
            assert_eq!(sizes, [[2, 2], [2, 2], [4, 0], [2, 0]]);
            assert!(found.iter().all(|it| it[0].iter().all(|&row| row < 10)));
            let mut all: Vec<usize> = found.into_iter().flatten().flatten().collect();
            assert!(!all.is_sorted());
            all.sort_unstable();
            assert!(all.into_iter().eq(0..14), "each once");
        }
        // A batch computed in parts gives each worker its own examples, and so does the rest of an epoch without some.
        let batch = owned.batch(4).expect("a size").next().expect("a batch");
        let parts = batch.in_parts_of(3);
        assert_eq!(parts[0].shares(2), [2, 1]);
        assert_eq!(
            parts[1].split(2)[1].as_ref().map(|it| &*it.rows),
            Some(&[11][..])
        );
        let left = owned.part(1, 5, &[2, 12].into());
        assert_eq!(batches(&left, 9), [[vec![1, 3], vec![10, 11, 13]]]);
    }

    #[test]
    fn the_parts_of_a_batch_that_each_worker_sees_are_its_own() {
        let data = Dataset::from_texts(["a", "b", "c", "d"]);
        let each = data.tokenize(&Letters, 8).expect("texts").seen_by_each(2);
        let batch = each.batch(6).expect("a size").next().expect("a batch");
        assert_eq!(batch.rows, [0, 1, 2, 0, 1, 2]);
        let first = &batch.in_parts_of(2)[0];
        assert_eq!((first.shares(2), &*first.rows), (vec![2, 0], &[0, 1][..]));
    }
}

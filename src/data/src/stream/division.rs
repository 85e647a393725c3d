//! Which rows of a stream each worker has, and whose turn each position of an epoch is, as [`crate::shards`] says it of a data
//! set, without a number for each position.

use std::ops::Range;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::encoded::EncodedStream;
use super::order::Order;

/// Which rows each worker has.
#[derive(Clone)]
pub(super) struct Division {
    /// Of each worker, piece by piece.
    pub(super) rows: Arc<[Arc<[Range<usize>]>]>,
    pub(super) turns: Turns,
    /// How often an epoch has each row.
    passes: usize,
}

impl EncodedStream {
    /// The same rows, all of which each of so many workers sees in an epoch, as
    /// [`Encoded::seen_by_each`](crate::Encoded::seen_by_each).
    #[must_use]
    pub fn seen_by_each(self, workers: usize) -> Self {
        let (all, workers) = (self.inputs.all_pieces(), workers.max(1));
        self.divided(vec![all; workers], workers)
    }

    /// The same rows, of which each of so many workers has those of its files, as
    /// [`Encoded::owned_by`](crate::Encoded::owned_by): file `i` of their names in order is that of worker `i mod workers`.
    #[must_use]
    pub fn by_files(self, workers: usize) -> Self {
        let mut rows = vec![Vec::new(); workers.max(1)];
        for (number, (_, own)) in self.stream.files().into_iter().enumerate() {
            rows[number % workers.max(1)].extend(self.inputs.pieces(own));
        }
        for own in &mut rows {
            own.sort_by_key(|piece| piece.start);
        }
        self.divided(rows.into_iter().map(Arc::from).collect(), 1)
    }

    fn divided(mut self, rows: Vec<Arc<[Range<usize>]>>, passes: usize) -> Self {
        let turns = Turns::new(rows.iter().map(|own| own.iter().map(Range::len).sum()));
        // A run that goes on must find the same rows at its position.
        let mut hash = Sha256::new_with_prefix(self.fingerprint);
        hash.update((passes as u64).to_le_bytes());
        for own in &rows {
            hash.update((own.len() as u64).to_le_bytes());
            for end in own.iter().flat_map(|piece| [piece.start, piece.end]) {
                hash.update((end as u64).to_le_bytes());
            }
        }
        self.fingerprint = hash.finalize().into();
        self.orders = rows.iter().cloned().map(Order::of_the_files).collect();
        self.positions = 0..turns.len();
        self.division = Some(Division {
            rows: rows.into(),
            turns,
            passes,
        });
        self
    }

    /// Whether workers have rows of their own.
    pub(super) fn is_divided(&self) -> bool {
        self.division.is_some()
    }

    /// The position in each of the [`orders`](Self::orders) for one in the epoch.
    pub(super) fn own_positions(&self, position: usize) -> Vec<usize> {
        match &self.division {
            Some(division) => division.turns.before(position),
            None => vec![position],
        }
    }

    /// How many of some positions of the epoch each of the [`orders`](Self::orders) has.
    pub(super) fn own_shares(&self, positions: Range<usize>) -> Vec<usize> {
        match &self.division {
            Some(division) => division.turns.shares(positions),
            None => vec![positions.len()],
        }
    }

    /// How often an epoch has each row: once, or once for each worker that sees all of them.
    pub fn passes(&self) -> usize {
        self.division.as_ref().map_or(1, |it| it.passes)
    }

    /// How many rows each worker has at these positions; `None` where they are divided evenly.
    pub fn shares_of(&self, positions: Range<usize>) -> Option<Vec<usize>> {
        let Range { start, end } = self.positions;
        let at = |position: usize| start.saturating_add(position).min(end);
        self.is_divided()
            .then(|| self.own_shares(at(positions.start)..at(positions.end)))
    }
}

/// How many rows each worker has. They take turns, and one that has no row left is passed over.
#[derive(Clone, Debug)]
pub(super) struct Turns(Arc<[usize]>);

impl Turns {
    pub(super) fn new(rows: impl IntoIterator<Item = usize>) -> Self {
        Self(rows.into_iter().collect())
    }

    /// The round that a position is in, and how many positions before it are of that round.
    fn round(&self, position: usize) -> (usize, usize) {
        let up_to = |round: usize| self.0.iter().map(|&rows| rows.min(round)).sum::<usize>();
        // The last round that begins at the position or before it.
        let (mut low, mut high) = (0, self.0.iter().max().copied().unwrap_or(0));
        while low < high {
            let middle = (low + high).div_ceil(2);
            match up_to(middle) <= position {
                true => low = middle,
                false => high = middle - 1,
            }
        }
        (low, position.saturating_sub(up_to(low)))
    }

    /// How many positions before this one each worker has.
    pub(super) fn before(&self, position: usize) -> Vec<usize> {
        let (round, mut left) = self.round(position);
        let own = self.0.iter().map(|&rows| {
            let has_turn = rows > round && left > 0;
            left -= usize::from(has_turn);
            rows.min(round) + usize::from(has_turn)
        });
        own.collect()
    }

    /// The workers of the positions from one on.
    pub(super) fn from(&self, position: usize) -> impl Iterator<Item = usize> + use<> {
        let (round, passed) = self.round(position);
        let rows = Arc::clone(&self.0);
        let rounds = round..rows.iter().max().copied().unwrap_or(0);
        let in_round = move |round: usize| {
            let rows = Arc::clone(&rows);
            (0..rows.len()).filter(move |&worker| rows[worker] > round)
        };
        rounds.flat_map(in_round).skip(passed)
    }

    /// How many of some positions each worker has.
    pub(super) fn shares(&self, positions: Range<usize>) -> Vec<usize> {
        let (begin, end) = (self.before(positions.start), self.before(positions.end));
        end.iter()
            .zip(begin)
            .map(|(end, begin)| end - begin)
            .collect()
    }

    /// All positions.
    pub(super) fn len(&self) -> usize {
        self.0.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_take_turns_until_their_rows_end() {
        let turns = Turns::new([3, 1, 2]);
        let workers: Vec<usize> = turns.from(0).collect();
        assert_eq!(workers, [0, 1, 2, 0, 2, 0]);
        for at in 0..=turns.len() {
            assert!(
                turns.from(at).eq(workers[at..].iter().copied()),
                "from {at}"
            );
            let counted = |worker| workers[..at].iter().filter(|&&it| it == worker).count();
            assert_eq!(turns.before(at), [0, 1, 2].map(counted), "before {at}");
        }
        assert_eq!(turns.shares(2..5), [1, 0, 2]);
        assert_eq!(Turns::new([0, 2]).before(1), [0, 1]);
    }
}

//! The order of the rows of a stream in an epoch: a function of seed and epoch, and of a position in it that is found without
//! what comes before.
//!
//! Rows are read in blocks of [`BLOCK`] that stand one after the other in the files. An epoch takes the blocks in a random
//! order, some of them together as a window, and the rows of a window in a random order. So a file that is sorted by class is
//! mixed over its whole length, as a buffer that moves along the file does not, and only one window is in memory. Where all
//! rows are one window, their order is that of a data set in memory.

use std::ops::Range;
use std::sync::Arc;

use crate::grouping;
use crate::random::{GOLDEN_GAMMA, mix, permutation};

/// The rows of a block.
pub(crate) const BLOCK: usize = 512;
/// Makes the order of blocks independent of that of rows.
const OF_BLOCKS: u64 = 0x5EED_B10C;

/// The order of an epoch.
#[derive(Clone)]
pub(super) struct Order {
    /// Rows that stand one after the other in a block, piece by piece in the order of the epoch.
    pieces: Arc<[Range<usize>]>,
    /// Pieces of a window.
    together: usize,
    /// Where each window begins, and where the last one ends.
    begins: Arc<[usize]>,
    /// The seed and the epoch of the order within a window; `None`: as in the files.
    within: Option<(u64, u64)>,
    /// Whether rows of similar length stand beside each other.
    grouped: Option<Grouped>,
}

/// What an order at random is a function of.
#[derive(Clone, Copy)]
pub(super) struct Random {
    pub(super) seed: u64,
    pub(super) epoch: u64,
    /// Rows that are mixed at a time.
    pub(super) buffer: usize,
}

/// These rows, block by block.
pub(super) fn pieces(rows: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let blocks = rows.start / BLOCK..rows.end.div_ceil(BLOCK);
    let own = blocks
        .map(move |block| (block * BLOCK).max(rows.start)..((block + 1) * BLOCK).min(rows.end));
    own.filter(|piece| !piece.is_empty())
}

/// How rows come beside rows of their length.
#[derive(Clone)]
pub(super) struct Grouped {
    /// The batches for which they do.
    pub(super) batch_size: usize,
    /// The seed by which batches come in an order at random.
    pub(super) seed: u64,
    /// With that of each row.
    pub(super) lengths: Arc<Lengths>,
}

/// Lengths in tokens.
#[derive(Clone, Debug, Default)]
pub(super) struct Lengths {
    /// How many rows have each.
    pub(super) counts: Vec<usize>,
    /// That of each row in the order of the files, where it was asked for.
    pub(super) of_rows: Option<Vec<u16>>,
}

impl Order {
    fn new(pieces: Arc<[Range<usize>]>, together: usize, within: Option<(u64, u64)>) -> Self {
        let mut begins = vec![0];
        for window in pieces.chunks(together) {
            let rows: usize = window.iter().map(Range::len).sum();
            begins.push(begins[begins.len() - 1] + rows);
        }
        Self {
            pieces,
            together,
            begins: begins.into(),
            within,
            grouped: None,
        }
    }

    /// As in the files.
    pub(super) fn of_the_files(pieces: &[Range<usize>]) -> Self {
        Self::new(pieces.into(), 1, None)
    }

    /// In windows of about as many rows as the buffer has: as many whole blocks, at least one.
    pub(super) fn shuffled(pieces: &[Range<usize>], random: Random) -> Self {
        let Random {
            seed,
            epoch,
            buffer,
        } = random;
        let rows: usize = pieces.iter().map(Range::len).sum();
        let together = match buffer >= rows {
            true => pieces.len().max(1),
            false => (buffer / BLOCK).max(1),
        };
        let ordered: Arc<[Range<usize>]> = match together < pieces.len() {
            true => permutation(pieces.len(), mix(seed ^ OF_BLOCKS), epoch)
                .into_iter()
                .map(|piece| pieces[piece].clone())
                .collect(),
            false => pieces.into(),
        };
        Self::new(ordered, together, Some((seed, epoch)))
    }

    /// The same windows, in each of which rows of similar length stand beside each other.
    pub(super) fn grouped(self, grouped: Option<Grouped>) -> Self {
        Self { grouped, ..self }
    }

    /// How many rows it has.
    pub(super) fn len(&self) -> usize {
        self.begins.last().copied().unwrap_or(0)
    }

    /// The window that a position is in.
    pub(super) fn window_at(&self, position: usize) -> usize {
        let begun = self.begins.partition_point(|&begin| begin <= position);
        begun
            .saturating_sub(1)
            .min(self.windows().saturating_sub(1))
    }

    fn windows(&self) -> usize {
        self.begins.len() - 1
    }

    /// The first position of a window.
    pub(super) fn begin(&self, window: usize) -> usize {
        self.begins[window]
    }

    /// The pieces of a window, in the order in which they are read.
    pub(super) fn pieces(&self, window: usize) -> &[Range<usize>] {
        let begin = (window * self.together).min(self.pieces.len());
        let end = (begin + self.together).min(self.pieces.len());
        &self.pieces[begin..end]
    }

    /// The rows of a window, in the order in which they are read.
    fn read(&self, window: usize) -> Vec<usize> {
        self.pieces(window).iter().cloned().flatten().collect()
    }

    /// Which of the rows that are read for a window comes first, second, and so on.
    pub(super) fn places(&self, window: usize) -> Vec<usize> {
        self.places_of(window, &self.read(window))
    }

    /// [`Self::places`] of the rows that are read.
    fn places_of(&self, window: usize, read: &[usize]) -> Vec<usize> {
        let Some((seed, epoch)) = self.within else {
            return (0..read.len()).collect();
        };
        // A single window has the order of a data set in memory.
        let own = seed.wrapping_add((window as u64).wrapping_mul(GOLDEN_GAMMA));
        let mut places = permutation(read.len(), own, epoch);
        if let Some(Grouped {
            batch_size,
            seed,
            lengths,
        }) = &self.grouped
        {
            let own = seed.wrapping_add((window as u64).wrapping_mul(GOLDEN_GAMMA));
            let lengths = lengths.of_rows.as_deref().unwrap_or_default();
            let length = |place: usize| lengths.get(read[place]).copied().unwrap_or(0);
            let begin = self.begin(window);
            grouping::grouped(&mut places, begin, *batch_size, length, (own, epoch));
        }
        places
    }

    /// The numbers of the rows at some positions.
    pub(super) fn rows(&self, positions: Range<usize>) -> impl Iterator<Item = usize> + '_ {
        let first = self.window_at(positions.start);
        let windows = (first..self.windows()).take_while(move |&it| self.begin(it) < positions.end);
        let rows = windows.flat_map(|window| {
            let read = self.read(window);
            let places = self.places_of(window, &read).into_iter();
            places.map(move |place| read[place]).collect::<Vec<_>>()
        });
        rows.skip(positions.start - self.begin(first))
            .take(positions.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(order: &Order) -> Vec<usize> {
        order.rows(0..order.len()).collect()
    }

    fn shuffled(rows: usize, buffer: usize, seed: u64, epoch: u64) -> Order {
        let pieces: Vec<Range<usize>> = pieces(0..rows).collect();
        let random = Random {
            seed,
            epoch,
            buffer,
        };
        Order::shuffled(&pieces, random)
    }

    /// The rows of a file begin and end within blocks.
    #[test]
    fn rows_of_some_files_are_mixed_like_others() {
        let own: Vec<Range<usize>> = [100..1400, 2000..2003, 5000..9000]
            .into_iter()
            .flat_map(pieces)
            .collect();
        assert_eq!(own[..3], [100..512, 512..1024, 1024..1400]);
        for buffer in [1, 1100, 1 << 20] {
            let random = Random {
                seed: 7,
                epoch: 1,
                buffer,
            };
            let order = Order::shuffled(&own, random);
            let whole = all(&order);
            for from in [0, 411, 412, 1300, 5302] {
                let rest: Vec<usize> = order.rows(from..order.len()).collect();
                assert_eq!(rest, whole[from..], "{buffer}, from {from}");
            }
            let mut sorted = whole;
            sorted.sort_unstable();
            assert!(
                sorted
                    .into_iter()
                    .eq((100..1400).chain(2000..2003).chain(5000..9000))
            );
        }
    }

    #[test]
    fn every_row_has_one_place_that_is_found_from_anywhere() {
        for rows in [1, 511, 512, 513, 5000, 10 * BLOCK] {
            for buffer in [1, 512, 1100, 1 << 20] {
                let order = shuffled(rows, buffer, 7, 3);
                let whole = all(&order);
                let mut sorted = whole.clone();
                sorted.sort_unstable();
                assert!(sorted.into_iter().eq(0..rows), "{rows} rows, {buffer}");
                for from in [0, 1, rows / 3, rows - 1] {
                    let rest: Vec<usize> = order.rows(from..rows).collect();
                    assert_eq!(rest, whole[from..], "{rows} rows, {buffer}, from {from}");
                }
            }
        }
        let in_files = Order::of_the_files(&pieces(0..1300).collect::<Vec<_>>());
        assert!(all(&in_files).into_iter().eq(0..1300));
        assert!(in_files.rows(1000..1100).eq(1000..1100));
    }

    #[test]
    fn one_window_has_the_order_of_a_data_set_in_memory() {
        let order = shuffled(3000, 3000, 5, 2);
        assert_eq!(all(&order), permutation(3000, 5, 2));
        assert_ne!(all(&shuffled(3000, 1024, 5, 2)), all(&order));
    }

    #[test]
    fn a_sorted_file_is_mixed_over_its_whole_length() {
        let rows = 100 * BLOCK;
        let order = shuffled(rows, 20 * BLOCK, 0, 0);
        let first: Vec<usize> = order.rows(0..20 * BLOCK).collect();
        for part in 0..5 {
            let own = part * rows / 5..(part + 1) * rows / 5;
            let share = first.iter().filter(|row| own.contains(row)).count();
            // 4 of the 20 blocks are expected, with a deviation of 1.6.
            assert!(share >= BLOCK, "part {part} of the file: {share} rows");
        }
        assert_ne!(first, order_of_epoch(rows, 1));
        assert_eq!(first, order_of_epoch(rows, 0));
    }

    #[test]
    fn batches_have_rows_of_similar_length_also_where_windows_meet() {
        let lengths = |rows: usize| (0..rows).map(|row| 1 + (mix(row as u64) % 90) as u16);
        for (rows, buffer) in [(3000, 1024), (5 * BLOCK + 7, 512), (700, 9000)] {
            let of_rows: Vec<u16> = lengths(rows).collect();
            let grouped = Grouped {
                batch_size: 48,
                seed: 7,
                lengths: Arc::new(Lengths {
                    of_rows: Some(of_rows.clone()),
                    ..Lengths::default()
                }),
            };
            let plain = shuffled(rows, buffer, 7, 3);
            let order = plain.clone().grouped(Some(grouped));
            let whole = all(&order);
            let mut sorted = whole.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..rows), "{rows} rows, {buffer}");
            for from in [1, rows / 3, rows - 1] {
                let rest: Vec<usize> = order.rows(from..rows).collect();
                assert_eq!(rest, whole[from..], "{rows} rows, {buffer}, from {from}");
            }
            let tokens: usize = of_rows.iter().map(|&it| usize::from(it)).sum();
            let positions = |order: &[usize]| -> usize {
                let longest = |batch: &[usize]| batch.iter().map(|&row| of_rows[row]).max();
                let batches = order.chunks(48);
                let each = batches
                    .map(|batch| batch.len() * usize::from(longest(batch).unwrap_or_default()));
                each.sum()
            };
            let (found, without) = (positions(&whole), positions(&all(&plain)));
            assert!(10 * without > 17 * tokens, "{without} for {tokens}");
            // Where windows meet, a batch has what both have left; small windows have more of them.
            assert!(
                10 * found < 14 * tokens,
                "{rows} rows: {found} for {tokens}"
            );
        }
    }

    fn order_of_epoch(rows: usize, epoch: u64) -> Vec<usize> {
        let order = shuffled(rows, 20 * BLOCK, 0, epoch);
        order.rows(0..20 * BLOCK).collect()
    }
}

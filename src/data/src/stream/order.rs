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
use crate::source::BLOCK;

/// Makes the order of blocks independent of that of rows.
const OF_BLOCKS: u64 = 0x5EED_B10C;

/// The order of an epoch.
#[derive(Clone)]
pub(super) struct Order {
    /// Rows that stand one after the other in a block, piece by piece in the order of the epoch.
    pieces: Arc<[Range<usize>]>,
    /// Of which piece and at which position each window begins, and where the last one ends.
    windows: Arc<[(usize, usize)]>,
    /// What the order within a window is a function of; `None`: as in the files.
    within: Option<Random>,
    /// Whether rows of similar length stand beside each other.
    grouped: Option<Grouped>,
}

/// What an order at random is a function of.
#[derive(Clone, Copy)]
pub(super) struct Random {
    /// Of the first window; it is the order of a data set in memory.
    pub(super) seed: u64,
    /// Of the other windows, which take numbers from it on.
    pub(super) of_windows: u64,
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
    /// In windows of at most so many rows, and of a piece at least.
    fn new(pieces: Arc<[Range<usize>]>, most: usize, within: Option<Random>) -> Self {
        let (mut windows, mut position) = (vec![(0, 0)], 0);
        for (number, piece) in pieces.iter().enumerate() {
            let begun = windows[windows.len() - 1];
            if number > begun.0 && position + piece.len() - begun.1 > most {
                windows.push((number, position));
            }
            position += piece.len();
        }
        windows.push((pieces.len(), position));
        Self {
            pieces,
            windows: windows.into(),
            within,
            grouped: None,
        }
    }

    /// As in the files.
    pub(super) fn of_the_files(pieces: Arc<[Range<usize>]>) -> Self {
        Self::new(pieces, BLOCK, None)
    }

    /// In windows of as many rows as the buffer has, in whole blocks, at least one.
    pub(super) fn shuffled(pieces: Arc<[Range<usize>]>, random: Random) -> Self {
        let rows: usize = pieces.iter().map(Range::len).sum();
        let most = match random.buffer >= rows {
            true => rows,
            false => (random.buffer / BLOCK).max(1) * BLOCK,
        };
        let ordered = match most < rows {
            true => permutation(pieces.len(), mix(random.seed ^ OF_BLOCKS), random.epoch)
                .into_iter()
                .map(|piece| pieces[piece].clone())
                .collect(),
            false => pieces,
        };
        Self::new(ordered, most, Some(random))
    }

    /// The same windows, in each of which rows of similar length stand beside each other.
    pub(super) fn grouped(self, grouped: Option<Grouped>) -> Self {
        Self { grouped, ..self }
    }

    /// How many rows it has.
    pub(super) fn len(&self) -> usize {
        self.windows.last().map_or(0, |end| end.1)
    }

    /// The window that a position is in.
    pub(super) fn window_at(&self, position: usize) -> usize {
        let begun = self
            .windows
            .partition_point(|&(_, begin)| begin <= position);
        begun.saturating_sub(1).min(self.windows() - 1)
    }

    fn windows(&self) -> usize {
        self.windows.len() - 1
    }

    /// The first position of a window.
    pub(super) fn begin(&self, window: usize) -> usize {
        self.windows[window].1
    }

    /// The pieces of a window, in the order in which they are read.
    pub(super) fn pieces(&self, window: usize) -> &[Range<usize>] {
        &self.pieces[self.windows[window].0..self.windows[window + 1].0]
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
        let Some(Random {
            seed,
            of_windows,
            epoch,
            ..
        }) = self.within
        else {
            return (0..read.len()).collect();
        };
        let own = match window {
            0 => seed,
            _ => of_windows.wrapping_add((window as u64).wrapping_mul(GOLDEN_GAMMA)),
        };
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
        let random = Random {
            seed,
            of_windows: seed,
            epoch,
            buffer,
        };
        Order::shuffled(pieces(0..rows).collect(), random)
    }

    /// The rows of a file begin and end within blocks.
    #[test]
    fn rows_of_some_files_are_mixed_like_others() {
        let own: Arc<[Range<usize>]> = [100..1400, 2000..2003, 5000..9000]
            .into_iter()
            .flat_map(pieces)
            .collect();
        assert_eq!(own[..3], [100..512, 512..1024, 1024..1400]);
        for buffer in [1, 1100, 1 << 20] {
            let random = Random {
                seed: 7,
                of_windows: 11,
                epoch: 1,
                buffer,
            };
            let order = Order::shuffled(own.clone(), random);
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
        let in_files = Order::of_the_files(pieces(0..1300).collect());
        assert!(all(&in_files).into_iter().eq(0..1300));
        assert!(in_files.rows(1000..1100).eq(1000..1100));
    }

    /// The rows of many small files.
    #[test]
    fn a_window_has_as_many_rows_as_the_buffer_whatever_its_pieces() {
        let random = Random {
            seed: 1,
            of_windows: 1,
            epoch: 0,
            buffer: 2000,
        };
        let small = (0..1000).map(|file| 20 * file..20 * file + 10);
        let order = Order::shuffled(small.flat_map(pieces).collect(), random);
        assert_eq!(order.len(), 10_000);
        assert!(
            (0..5).all(|window| order.begin(window + 1) - order.begin(window) > 3 * BLOCK - 10)
        );
        let whole = shuffled(10 * BLOCK + 7, 3 * BLOCK + 5, 4, 0);
        assert_eq!(whole.windows(), 4);
        assert!((0..4).all(|window| whole.pieces(window).len() <= 3));
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

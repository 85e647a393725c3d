//! Examples of similar length beside each other: the order of an epoch whose batches need little padding.
//!
//! A random order is cut into parts of several batches, the examples of a part are sorted by length, and the batches that
//! this makes come in a random order. So batches differ from epoch to epoch, as the parts do, and long and short ones
//! alternate. (transformers' `group_by_length` has the parts, and leaves the batches of a part sorted.) It remains an order
//! of examples: whatever counts positions in an epoch, counts them in this one too.

use std::cmp::Reverse;
use std::ops::Range;

use crate::random::{RandomStream, mix, permutation};

/// The most batches that are sorted together.
const MOST: usize = 50;
/// The batches that are sorted together where there are few: sorting one batch would change nothing.
const LEAST: usize = 8;
/// The parts that data has unless the two above forbid it, so that batches differ between epochs.
const PARTS: usize = 4;
/// Makes the order of batches independent of that of examples.
const OF_BATCHES: u64 = 0x5EED_BA7C;

/// A batch size with which positions can be counted.
pub(crate) fn batch_size(wanted: usize) -> usize {
    wanted.clamp(1, 1 << 40)
}

/// A length as it is compared: longer ones count as equal.
pub(crate) fn key(length: usize) -> u16 {
    u16::try_from(length).unwrap_or(u16::MAX)
}

/// What decides the order of batches: the seed and the epoch.
pub(crate) type Random = (u64, u64);

/// Groups examples that are in a random order. They stand in an epoch from position `begin` on, whose batches of
/// `batch_size` begin at its multiples: what ends a batch that was begun before stays at the front, and what begins one that
/// is not full stays at the end. The epoch begins with a batch that has its longest example.
pub(crate) fn grouped(
    order: &mut [usize],
    begin: usize,
    batch_size: usize,
    length: impl Fn(usize) -> u16,
    random: Random,
) {
    let head = begin.next_multiple_of(batch_size) - begin;
    let Some(order) = order.get_mut(head..) else {
        return;
    };
    sort_parts(order, batch_size, &length, random);
    let full = order.len() / batch_size;
    let mut batches = permutation(full, mix(random.0 ^ OF_BATCHES), random.1);
    if begin == 0 {
        let longest = |&at: &usize| length(order[batches[at] * batch_size]);
        // Of several the first.
        if let Some(at) = (0..full).rev().max_by_key(longest) {
            batches.swap(0, at);
        }
    }
    let sorted = order.to_vec();
    let places = order.chunks_exact_mut(batch_size);
    for (place, batch) in places.zip(batches) {
        place.copy_from_slice(&sorted[of_batch(batch, batch_size)]);
    }
}

fn of_batch(batch: usize, batch_size: usize) -> Range<usize> {
    batch * batch_size..(batch + 1) * batch_size
}

/// Sorts each part, the longest first. The batch that is not full is cut from a place that chance chooses, and put at the
/// end: examples of a short batch count more in its step, and those should not be the shortest of each epoch.
fn sort_parts(
    order: &mut [usize],
    batch_size: usize,
    length: &impl Fn(usize) -> u16,
    (seed, epoch): Random,
) {
    let together = order.len() / (PARTS * batch_size);
    // Parts of one size, so that none has too few batches to be sorted.
    let batches = order.len().div_ceil(batch_size);
    let parts = batches.div_ceil(together.clamp(LEAST, MOST)).max(1);
    let of_part = batches.div_ceil(parts).max(1) * batch_size;
    for part in order.chunks_mut(of_part) {
        part.sort_by_key(|&row| Reverse(length(row)));
        let (full, rest) = (part.len() / batch_size, part.len() % batch_size);
        if rest > 0 && full > 0 {
            // Not before the first one, which may have the longest example of all.
            let mut random = RandomStream::new(mix(seed ^ OF_BATCHES), !epoch);
            let before = 1 + random.below(full);
            part[before * batch_size..].rotate_left(rest);
        }
    }
}

/// The positions that batches of similar length are expected to have, where so many examples have each length: those of a
/// part that has the lengths of all in their shares.
pub(crate) fn expected_positions(lengths: &[usize], batch_size: usize) -> usize {
    let examples: usize = lengths.iter().sum();
    let wanted = examples / (PARTS * batch_size);
    let batches = wanted.clamp(LEAST, MOST).min(examples.div_ceil(batch_size));
    let mut ends = (1..=batches)
        .map(|batch| batch * examples / batches)
        .peekable();
    let (mut up_to, mut positions) = (0, 0);
    for (length, of_length) in lengths.iter().enumerate() {
        up_to += of_length;
        while ends.next_if(|&end| end <= up_to).is_some() {
            positions += length;
        }
    }
    positions * examples / batches.max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lengths from 1 to 100, many short and few long.
    fn length(row: usize) -> u16 {
        let number = mix(row as u64) % 10_000;
        1 + (number * number / 1_000_000) as u16
    }

    fn order(rows: usize, batch_size: usize, (seed, epoch): Random) -> Vec<usize> {
        let mut order = permutation(rows, seed, epoch);
        grouped(&mut order, 0, batch_size, length, (seed, epoch));
        order
    }

    fn positions(order: &[usize], batch_size: usize) -> usize {
        let longest = |batch: &[usize]| batch.iter().map(|&row| usize::from(length(row))).max();
        let batches = order.chunks(batch_size);
        let each = batches.map(|batch| batch.len() * longest(batch).unwrap_or(0));
        each.sum()
    }

    #[test]
    fn batches_are_of_similar_length_and_begin_with_the_longest() {
        let rows = 10_007;
        let tokens: usize = (0..rows).map(|row| usize::from(length(row))).sum();
        for epoch in 0..3 {
            let (found, plain) = (order(rows, 32, (7, epoch)), permutation(rows, 7, epoch));
            assert!(positions(&plain, 32) > 2 * tokens, "the data has padding");
            assert!(positions(&found, 32) < tokens + tokens / 12);
            let longest = found.iter().map(|&row| length(row)).max();
            assert!(found[..32].iter().any(|&row| Some(length(row)) == longest));
            // Neither sorted over the epoch, nor the batches of the epoch before.
            let firsts: Vec<u16> = found.chunks(32).map(|batch| length(batch[0])).collect();
            let falls = firsts.windows(2).filter(|two| two[0] >= two[1]).count();
            assert!((100..212).contains(&falls), "{falls} of 312");
            assert_ne!(found, order(rows, 32, (7, epoch + 1)));
            assert_eq!(found, order(rows, 32, (7, epoch)));
        }
    }

    #[test]
    fn positions_are_expected_by_lengths_alone() {
        let rows = 20_000;
        let mut lengths = vec![0; 101];
        (0..rows).for_each(|row| lengths[usize::from(length(row))] += 1);
        let (expected, found) = (
            expected_positions(&lengths, 32),
            positions(&order(rows, 32, (7, 0)), 32),
        );
        assert!(expected.abs_diff(found) < found / 20, "{expected}, {found}");
        assert_eq!(expected_positions(&[], 32), 0);
        assert_eq!(expected_positions(&[0, 0, 5], 32), 10);
    }

    #[test]
    fn the_batch_that_is_not_full_is_not_always_the_shortest() {
        let rows = 8 * 16 + 5;
        let mean = |epoch| {
            let last = &order(rows, 16, (3, epoch))[8 * 16..];
            assert_eq!(last.len(), 5);
            last.iter().map(|&row| f64::from(length(row))).sum::<f64>() / 5.0
        };
        let means: Vec<f64> = (0..12).map(mean).collect();
        let all = (0..rows).map(|row| f64::from(length(row))).sum::<f64>() / rows as f64;
        assert!(means.iter().any(|&mean| mean > all), "{means:?}");
        assert!(means.iter().any(|&mean| mean < all), "{means:?}");
    }

    proptest! {
        #[test]
        fn every_example_has_one_place(
            rows in 0_usize..700, batch_size in 1_usize..40, begin in 0_usize..90, seed in 0_u64..9,
        ) {
            let before = permutation(rows, seed, 1);
            let mut found = before.clone();
            grouped(&mut found, begin, batch_size, length, (seed, 1));
            let head = begin.next_multiple_of(batch_size) - begin;
            let kept = head.min(rows);
            prop_assert_eq!(&found[..kept], &before[..kept], "what ends a batch");
            let mut sorted = found;
            sorted.sort_unstable();
            prop_assert!(sorted.into_iter().eq(0..rows));
        }
    }
}

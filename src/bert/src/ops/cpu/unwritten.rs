//! Memory for results, which is not cleared before it is written.
//!
//! A training step writes hundreds of megabytes of results. Clearing them first costs 4% of the processor time of a step
//! (MiniLM, batches of 16 × 64 tokens), and that on one thread. So a result starts as [`Unwritten`] memory, whose
//! elements are `MaybeUninit` until an operation has written all of them. Element-wise operations go through
//! [`in_blocks`], which is safe: it clears each block right before it is filled, while the block is in the cache.

use std::mem::MaybeUninit;

use rayon::prelude::*;

use super::memory;

/// Elements up to which a result is computed by the calling thread alone: to wake others would take as long.
const ALONE: usize = 32 * 1024;

/// The memory of a result that is not written yet.
pub(in crate::ops) struct Unwritten<E = f32> {
    /// Empty, with room for `length` elements.
    data: Vec<E>,
    length: usize,
}

impl<E> Unwritten<E> {
    /// Memory for `length` elements.
    pub fn new(length: usize) -> Self {
        memory::keep_freed();
        Self {
            data: Vec::with_capacity(length),
            length,
        }
    }

    /// The elements.
    pub fn elements(&mut self) -> &mut [MaybeUninit<E>] {
        &mut self.data.spare_capacity_mut()[..self.length]
    }

    /// The result.
    ///
    /// # Safety
    /// Every one of [`Self::elements`] has been written.
    pub unsafe fn written(mut self) -> Vec<E> {
        // SAFETY: `new` reserved `length` elements, and the caller has written them.
        unsafe { self.data.set_len(self.length) };
        self.data
    }
}

/// `N` results of `length` elements, computed in blocks of `block` elements, in parallel where there are many. `write` is
/// called with the number of a block and the block's part of each result, which holds zeros. What it returns comes in
/// the order of the blocks.
pub(in crate::ops) fn in_blocks<const N: usize, T: Send>(
    length: usize,
    block: usize,
    write: impl Fn(usize, [&mut [f32]; N]) -> T + Sync,
) -> ([Vec<f32>; N], Vec<T>) {
    in_blocks_of(length, block, write)
}

/// [`in_blocks`] with elements of another type.
pub(in crate::ops) fn in_blocks_of<E: Copy + Default + Send, const N: usize, T: Send>(
    length: usize,
    block: usize,
    write: impl Fn(usize, [&mut [E]; N]) -> T + Sync,
) -> ([Vec<E>; N], Vec<T>) {
    let block = block.max(1);
    let mut results = [(); N].map(|()| Unwritten::new(length));
    let mut parts = results
        .each_mut()
        .map(|result| result.elements().chunks_mut(block));
    let mut next = || {
        parts
            .each_mut()
            .map(|parts| parts.next().unwrap_or_default())
    };
    let blocks: Vec<[&mut [MaybeUninit<E>]; N]> =
        (0..length.div_ceil(block)).map(|_| next()).collect();
    let work =
        |(index, parts): (usize, [&mut [MaybeUninit<E>]; N])| write(index, parts.map(cleared));
    let returned = match length <= ALONE {
        true => blocks.into_iter().enumerate().map(work).collect(),
        false => blocks.into_par_iter().enumerate().map(work).collect(),
    };
    // SAFETY: the blocks contain every element of every result, and `cleared` wrote each block.
    let results = results.map(|result| unsafe { result.written() });
    (results, returned)
}

/// Writes zeros.
pub(super) fn cleared<E: Copy + Default>(block: &mut [MaybeUninit<E>]) -> &mut [E] {
    block.fill(MaybeUninit::new(E::default()));
    // SAFETY: every element was written in the line above.
    unsafe { block.assume_init_mut() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_all_results() {
        let many = 3 * ALONE + 1;
        for (length, block) in [
            (0, 4),
            (1, 4),
            (7, 3),
            (9, 3),
            (100, 7),
            (5, 0),
            (many, 999),
        ] {
            let ([a, b], sizes) = in_blocks(length, block, |index, [a, b]| {
                assert!(a.iter().chain(&*b).all(|&value| value == 0.0));
                a.fill(index as f32);
                for (i, value) in b.iter_mut().enumerate() {
                    *value = (index * block.max(1) + i) as f32;
                }
                a.len()
            });
            let numbers: Vec<f32> = (0..length).map(|i| i as f32).collect();
            let blocks: Vec<f32> = (0..length).map(|i| (i / block.max(1)) as f32).collect();
            assert_eq!((a, b), (blocks, numbers), "{length} in blocks of {block}");
            assert_eq!(sizes.iter().sum::<usize>(), length);
        }
    }

    #[test]
    fn no_results_no_blocks() {
        let ([], nothing) = in_blocks(0, 1, |_, []| ());
        assert!(nothing.is_empty());
    }
}

//! The order in memory in which the kernel reads the factors of a product.
//!
//! The instruction multiplies two pairs of numbers and adds both products to a sum. So both factors are read in pairs
//! along the inner dimension K: elements 2p and 2p + 1 side by side, a zero after the last of an odd K.
//!
//! The right factor lies in [`Panels`]: up to 48 columns at a time, pair after pair, so that the kernel reads it from
//! front to back. The left factor ([`Left`]) is read pair by pair too, from rows as they are, or from panels.

use super::super::unwritten::in_blocks_of;
use super::super::vectorized::vectorized;
use super::kernel::{LANES, WIDTH};
use super::number::{Rows, encode, stride};

/// A matrix to pack.
pub(super) trait Source: Sync {
    /// [rows, columns]
    fn dims(&self) -> [usize; 2];

    /// Elements `first..first + into.len()` of a row.
    fn copy(&self, row: usize, first: usize, into: &mut [u16]);
}

impl Source for Rows {
    fn dims(&self) -> [usize; 2] {
        [self.rows(), self.columns()]
    }

    fn copy(&self, row: usize, first: usize, into: &mut [u16]) {
        into.copy_from_slice(&self.row(row)[first..first + into.len()]);
    }
}

/// Float32 matrices with equally many columns, one below the other; they are rounded on the way. Each has
/// `rows` rows, `stride` elements apart.
#[derive(Clone, Copy)]
pub(in crate::ops) struct Stacked<'a> {
    pub parts: &'a [&'a [f32]],
    pub rows: usize,
    pub columns: usize,
    pub stride: usize,
}

impl Source for Stacked<'_> {
    fn dims(&self) -> [usize; 2] {
        [self.parts.len() * self.rows, self.columns]
    }

    fn copy(&self, row: usize, first: usize, into: &mut [u16]) {
        let part = self.parts[row / self.rows];
        let start = row % self.rows * self.stride + first;
        encode(&part[start..start + into.len()], into);
    }
}

/// A part of a matrix of bfloat16 numbers: `rows` rows from `row` on, `columns` columns from `column` on.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub of: &'a Rows,
    pub row: usize,
    pub rows: usize,
    pub column: usize,
    pub columns: usize,
}

impl Source for Part<'_> {
    fn dims(&self) -> [usize; 2] {
        [self.rows, self.columns]
    }

    fn copy(&self, row: usize, first: usize, into: &mut [u16]) {
        let first = self.column + first;
        into.copy_from_slice(&self.of.row(self.row + row)[first..first + into.len()]);
    }
}

vectorized! {
    /// `into` = top[0], bottom[0], top[1], bottom[1], …
    fn interleave(top: &[u16], bottom: &[u16], into: &mut [u32]) {
        for ((into, top), bottom) in into.iter_mut().zip(top).zip(bottom) {
            *into = u32::from(*top) | u32::from(*bottom) << 16;
        }
    }
}

/// Pairs that are turned at a time.
const TURNED: usize = 32;

vectorized! {
    /// `into[pair][column]` = the pair of `columns[column]`; `into` has rows of `width`.
    fn turn(columns: &[[u16; 2 * TURNED]; WIDTH], width: usize, into: &mut [u32]) {
        for (pair, row) in into.chunks_exact_mut(width).enumerate() {
            for (into, column) in row.iter_mut().zip(columns) {
                *into = u32::from(column[2 * pair]) | u32::from(column[2 * pair + 1]) << 16;
            }
        }
    }
}

/// A matrix [K, N] in panels of 48 columns; the last is as wide as a multiple of 16 has to be. In a panel, pair p of
/// all its columns lies before pair p + 1. What is beyond the last column, or the last row, is 0.
#[derive(Clone, Debug, Default)]
pub(super) struct Panels {
    data: Vec<u32>,
    columns: usize,
    pairs: usize,
}

impl Panels {
    /// The matrix itself: pairs are of two of its rows.
    pub fn of(source: &impl Source) -> Self {
        let [rows, columns] = source.dims();
        Self::filled(rows, columns, |first, panel| fill(source, first, panel))
    }

    /// The matrix transposed: pairs are of two of its columns.
    pub fn of_transposed(source: &impl Source) -> Self {
        let [rows, columns] = source.dims();
        Self::filled(columns, rows, |first, panel| {
            fill_transposed(source, first, panel);
        })
    }

    /// [`Self::of`] into this memory, on the calling thread.
    pub fn set(&mut self, source: &impl Source) {
        let [rows, columns] = source.dims();
        self.resize(rows, columns);
        for (index, panel) in self.parts().enumerate() {
            fill(source, index * WIDTH, panel);
        }
    }

    /// [`Self::of_transposed`] into this memory, on the calling thread.
    pub fn set_transposed(&mut self, source: &impl Source) {
        let [rows, columns] = source.dims();
        self.resize(columns, rows);
        for (index, panel) in self.parts().enumerate() {
            fill_transposed(source, index * WIDTH, panel);
        }
    }

    /// Writes all panels in parallel; `write` has a panel's first column and its elements.
    fn filled(inner: usize, columns: usize, write: impl Fn(usize, &mut [u32]) + Sync) -> Self {
        let pairs = inner.div_ceil(2);
        let length = pairs * columns.next_multiple_of(LANES);
        let ([data], _) = in_blocks_of(length, pairs * WIDTH, |index, [panel]| {
            write(index * WIDTH, panel);
        });
        Self {
            data,
            columns,
            pairs,
        }
    }

    fn resize(&mut self, inner: usize, columns: usize) {
        (self.columns, self.pairs) = (columns, inner.div_ceil(2));
        self.data
            .resize(self.pairs * columns.next_multiple_of(LANES), 0);
    }

    fn parts(&mut self) -> impl Iterator<Item = &mut [u32]> {
        self.data.chunks_mut((self.pairs * WIDTH).max(1))
    }

    /// N
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// ⌈K / 2⌉
    pub fn pairs(&self) -> usize {
        self.pairs
    }

    /// The panel from column `first` on, a multiple of 48, and its width.
    pub fn panel(&self, first: usize) -> (&[u32], usize) {
        let width = WIDTH.min((self.columns - first).next_multiple_of(LANES));
        let start = first * self.pairs;
        (&self.data[start..start + width * self.pairs], width)
    }
}

/// Fills the panel of the columns from `first` on.
fn fill(source: &impl Source, first: usize, panel: &mut [u32]) {
    let [rows, columns] = source.dims();
    let wide = WIDTH.min(columns - first);
    let width = wide.next_multiple_of(LANES);
    let (mut top, mut bottom) = ([0; WIDTH], [0; WIDTH]);
    for (pair, into) in panel.chunks_exact_mut(width).enumerate() {
        source.copy(2 * pair, first, &mut top[..wide]);
        if 2 * pair + 1 < rows {
            source.copy(2 * pair + 1, first, &mut bottom[..wide]);
        } else {
            bottom = [0; WIDTH];
        }
        interleave(&top, &bottom, into);
    }
}

/// Fills the panel of the rows from `first` on, which are the columns of the transposed matrix.
fn fill_transposed(source: &impl Source, first: usize, panel: &mut [u32]) {
    let [rows, columns] = source.dims();
    let wide = WIDTH.min(rows - first);
    let width = wide.next_multiple_of(LANES);
    let mut lines = [[0; 2 * TURNED]; WIDTH];
    for (block, into) in panel.chunks_mut(TURNED * width).enumerate() {
        let start = block * 2 * TURNED;
        let length = (columns - start).min(2 * TURNED);
        for (row, line) in lines[..wide].iter_mut().enumerate() {
            source.copy(first + row, start, &mut line[..length]);
            if length < 2 * TURNED {
                line[length..].fill(0);
            }
        }
        turn(&lines, width, into);
    }
}

/// The left factor [M, K] of a product.
#[derive(Clone, Copy)]
pub(super) enum Left<'a> {
    /// Rows as they are in memory, an even number of elements apart, with a zero after the last element of an odd row.
    Rows {
        data: &'a [u16],
        rows: usize,
        pairs: usize,
        stride: usize,
    },
    /// The transposed matrix in panels: its columns are the rows of this factor.
    Panels(&'a Panels),
}

impl<'a> Left<'a> {
    pub fn rows(matrix: &'a Rows) -> Self {
        Self::strided(
            matrix.data(),
            matrix.rows(),
            matrix.columns(),
            matrix.stride(),
        )
    }

    /// `rows` rows of `columns` elements, `between` apart.
    pub fn strided(data: &'a [u16], rows: usize, columns: usize, between: usize) -> Self {
        let even = stride(columns);
        assert!(
            rows == 0 || (rows - 1) * between + even <= data.len(),
            "a matrix lies inside its slice"
        );
        Self::Rows {
            data,
            rows,
            pairs: even / 2,
            stride: between,
        }
    }

    /// M
    pub fn height(self) -> usize {
        match self {
            Self::Rows { rows, .. } => rows,
            Self::Panels(panels) => panels.columns(),
        }
    }

    /// ⌈K / 2⌉
    pub fn pairs(self) -> usize {
        match self {
            Self::Rows { pairs, .. } => pairs,
            Self::Panels(panels) => panels.pairs(),
        }
    }
}

//! Matrix products on parts of slices, written into buffers that are already there.

use std::marker::PhantomData;

use gemm::Parallelism;
use rayon::prelude::*;

use crate::ops::stop::Asker;

/// Rows of a block of a product, when there are more: enough that repacking the other factor per
/// block costs little, few enough that 1024 rows are four blocks.
const ROWS: usize = 256;
/// Columns of a block, where the rows alone make too few blocks.
const COLUMNS: usize = 384;
/// Blocks below which the columns are cut too.
const FEW: usize = 4;

/// A matrix to read, in a slice, at any strides.
#[derive(Clone, Copy)]
pub(in crate::ops) struct Matrix<'a> {
    data: &'a [f32],
    rows: usize,
    columns: usize,
    row: usize,
    column: usize,
}

impl<'a> Matrix<'a> {
    /// `rows` rows of `columns` neighbouring elements.
    pub fn new(data: &'a [f32], rows: usize, columns: usize) -> Self {
        Self::part(data, rows, columns, columns, 0)
    }

    /// Columns `first..first + columns` of a matrix whose rows are `row` elements apart.
    pub fn part(data: &'a [f32], rows: usize, columns: usize, row: usize, first: usize) -> Self {
        let data = data.get(first..).unwrap_or(&[]);
        assert!(
            fits(data.len(), rows, columns, row),
            "a matrix lies inside its slice"
        );
        Self {
            data,
            rows,
            columns,
            row,
            column: 1,
        }
    }

    /// The same elements, rows and columns exchanged.
    pub fn transposed(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row: self.column,
            column: self.row,
            ..self
        }
    }

    fn block(self, row: usize, rows: usize, column: usize, columns: usize) -> Self {
        let first = (row * self.row + column * self.column).min(self.data.len());
        Self {
            data: &self.data[first..],
            rows,
            columns,
            ..self
        }
    }
}

/// A matrix to write, its rows contiguous; several may lie in one slice, side by side.
#[derive(Clone, Copy)]
pub(in crate::ops) struct MatrixMut<'a> {
    data: *mut f32,
    rows: usize,
    columns: usize,
    row: usize,
    owner: PhantomData<&'a mut [f32]>,
}

// SAFETY: a `MatrixMut` is a unique view of its elements by the contract of `Target::part`.
unsafe impl Send for MatrixMut<'_> {}
// SAFETY: as above; shared references only copy the pointer.
unsafe impl Sync for MatrixMut<'_> {}

impl MatrixMut<'_> {
    fn block(self, row: usize, rows: usize, column: usize, columns: usize) -> Self {
        debug_assert!(row + rows <= self.rows && column + columns <= self.columns);
        let data = self.data.wrapping_add(row * self.row + column);
        Self {
            data,
            rows,
            columns,
            ..self
        }
    }

    /// Writes zeros, where a pass is given up.
    ///
    /// # Safety
    /// No other view of these elements is used.
    pub unsafe fn clear(self) {
        // SAFETY: by the caller's promise; each row is let go of before the next one.
        (0..self.rows).for_each(|index| unsafe { self.row(index) }.fill(0.0));
    }

    /// Row `index`.
    ///
    /// # Safety
    /// No other slice of this row is alive.
    unsafe fn row<'b>(self, index: usize) -> &'b mut [f32] {
        debug_assert!(index < self.rows);
        // SAFETY: the row lies inside the slice (checked by `Target::part`), and is not aliased.
        unsafe {
            std::slice::from_raw_parts_mut(self.data.wrapping_add(index * self.row), self.columns)
        }
    }
}

/// A buffer that many blocks write into at once.
#[derive(Clone, Copy)]
pub(in crate::ops) struct Target<'a> {
    data: *mut f32,
    length: usize,
    owner: PhantomData<&'a mut [f32]>,
}

// SAFETY: all access goes through `part` and `slice`, whose contracts forbid overlaps.
unsafe impl Send for Target<'_> {}
// SAFETY: as above.
unsafe impl Sync for Target<'_> {}

impl<'a> Target<'a> {
    pub fn new(data: &'a mut [f32]) -> Self {
        Self {
            data: data.as_mut_ptr(),
            length: data.len(),
            owner: PhantomData,
        }
    }

    /// Rows `row..row + rows`, columns `column..column + columns` of rows `stride` elements apart.
    ///
    /// # Safety
    /// While the part is used, no other part or slice with one of its elements is.
    pub unsafe fn part(
        self,
        (row, rows): (usize, usize),
        (column, columns): (usize, usize),
        stride: usize,
    ) -> MatrixMut<'a> {
        let first = row * stride + column;
        assert!(
            first <= self.length && fits(self.length - first, rows, columns, stride),
            "a matrix lies inside its buffer"
        );
        MatrixMut {
            data: self.data.wrapping_add(first),
            rows,
            columns,
            row: stride,
            owner: PhantomData,
        }
    }

    /// Elements `first..first + length`.
    ///
    /// # Safety
    /// While the slice is used, no other part or slice with one of its elements is.
    pub unsafe fn slice(self, first: usize, length: usize) -> &'a mut [f32] {
        assert!(
            first + length <= self.length,
            "a slice lies inside its buffer"
        );
        // SAFETY: inside the buffer, and not aliased by this function's contract.
        unsafe { std::slice::from_raw_parts_mut(self.data.wrapping_add(first), length) }
    }
}

/// Whether the last element of a matrix is among `length`.
fn fits(length: usize, rows: usize, columns: usize, row: usize) -> bool {
    rows == 0 || columns == 0 || (rows - 1) * row + columns <= length
}

/// What becomes of the numbers that were in the result's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ops) enum Before {
    /// They are overwritten.
    Ignored,
    /// The product is added to them.
    Added,
}

/// `into = scale · left · right`, on the calling thread.
pub(in crate::ops) fn product(
    scale: f32,
    left: Matrix,
    right: Matrix,
    into: MatrixMut,
    before: Before,
) {
    assert!(
        left.rows == into.rows && right.columns == into.columns && left.columns == right.rows,
        "the dimensions of a product agree"
    );
    // SAFETY: all three lie inside their slices, and nobody else has `into`.
    unsafe {
        gemm::gemm(
            into.rows,
            into.columns,
            left.columns,
            into.data,
            1,
            into.row as isize,
            before == Before::Added,
            left.data.as_ptr(),
            left.column as isize,
            left.row as isize,
            right.data.as_ptr(),
            right.column as isize,
            right.row as isize,
            1.0,
            scale,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

/// `into = left · right` in blocks on rayon's pool. `then` is given every row of a block when it is
/// finished, still in the cache: the row's number, its first column and its elements. Where the pass is
/// given up the product is zeros.
pub(in crate::ops) fn blocks(
    left: Matrix,
    right: Matrix,
    into: MatrixMut,
    before: Before,
    then: impl Fn(usize, usize, &mut [f32]) + Sync,
) {
    let (rows, columns) = (into.rows, into.columns);
    let row_blocks = rows.div_ceil(ROWS);
    let width = if row_blocks < FEW {
        COLUMNS
    } else {
        columns.max(1)
    };
    let column_blocks = columns.div_ceil(width);
    let asker = Asker::of_this_thread();
    (0..row_blocks * column_blocks)
        .into_par_iter()
        .with_max_len(1)
        .for_each(|block| {
            let (row, column) = (block / column_blocks * ROWS, block % column_blocks * width);
            let (height, width) = (ROWS.min(rows - row), width.min(columns - column));
            let part = into.block(row, height, column, width);
            match asker.stops() {
                // SAFETY: blocks do not overlap.
                true => unsafe { part.clear() },
                false => product(
                    1.0,
                    left.block(row, height, 0, left.columns),
                    right.block(0, right.rows, column, width),
                    part,
                    before,
                ),
            }
            for index in 0..height {
                // SAFETY: blocks do not overlap, and the product above is over.
                then(row + index, column, unsafe { part.row(index) });
            }
        });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize) -> Vec<f32> {
        (0..count)
            .map(|i| ((i * 37 + 11) % 101) as f32 / 50.0 - 1.0)
            .collect()
    }

    fn check(rows: usize, inner: usize, columns: usize) {
        let (left, right) = (numbers(rows * inner), numbers(inner * columns));
        let mut result = vec![1.0; rows * columns];
        let target = Target::new(&mut result);
        // SAFETY: the only view of `result`.
        let into = unsafe { target.part((0, rows), (0, columns), columns) };
        let (a, b) = (
            Matrix::new(&left, rows, inner),
            Matrix::new(&right, inner, columns),
        );
        blocks(a, b, into, Before::Added, |row, column, part| {
            for (i, value) in part.iter_mut().enumerate() {
                *value += (row * 1000 + column + i) as f32;
            }
        });
        for row in 0..rows {
            for column in 0..columns {
                let sum: f64 = (0..inner)
                    .map(|k| {
                        f64::from(left[row * inner + k]) * f64::from(right[k * columns + column])
                    })
                    .sum();
                let expected = 1.0 + sum + (row * 1000 + column) as f64;
                let found = f64::from(result[row * columns + column]);
                let allowed = 1e-4 + expected.abs() * 1e-6;
                assert!(
                    (found - expected).abs() < allowed,
                    "{found} is not {expected}"
                );
            }
        }
    }

    #[test]
    fn blocks_cover_every_element_once() {
        check(3, 5, 7);
        check(1, 1, 1);
        check(257, 3, 2);
        check(300, 33, 400);
        check(1025, 2, 3);
        check(2, 4, 769);
    }

    #[test]
    fn empty_products_do_nothing() {
        check(0, 3, 4);
        check(3, 4, 0);
        check(3, 0, 4);
    }
}

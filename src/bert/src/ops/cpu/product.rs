//! Matrix products on parts of slices, written into buffers of the caller.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use gemm::Parallelism;
use rayon::prelude::*;

use super::Unwritten;
use crate::ops::stop::Asker;

/// The most rows of a block of a product: enough that repacking the other factor per block costs
/// little, few enough that 1024 rows are four blocks.
pub(super) const ROWS: usize = 256;
/// The most columns of a block, where the rows alone make too few blocks.
const COLUMNS: usize = 384;
/// The fewest columns of a block.
const NARROW: usize = 96;
/// Blocks below which the columns are cut too.
const FEW: usize = 4;
/// The most rows of a block that are multiplied as columns of the transposed product.
const FEW_ROWS: usize = 64;
/// Blocks begin at multiples of this row and column: that of a cache line.
const LINE: usize = 16;

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
    /// `rows` rows of `columns` contiguous elements.
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

/// A matrix to write. Each row is contiguous, and rows are `stride` elements apart, so that several
/// matrices can lie side by side in one slice. Its elements need not be initialized.
///
/// A `MatrixMut` is a mutable borrow of its elements: it is neither `Copy` nor `Clone`, and only
/// [`Self::part`], which is unsafe, makes a second view of an element.
///
/// Invariant: for as long as `'a`, `data` points to a buffer that contains every row, and nothing
/// else reads or writes these elements. The constructors establish it.
pub(in crate::ops) struct MatrixMut<'a> {
    data: *mut f32,
    rows: usize,
    columns: usize,
    stride: usize,
    borrow: PhantomData<&'a mut [MaybeUninit<f32>]>,
}

// SAFETY: by the invariant the elements belong to this value alone, as those of a `&mut [f32]`, which is `Send`.
unsafe impl Send for MatrixMut<'_> {}
// SAFETY: safe methods of `&MatrixMut` read the sizes only, never the elements; the unsafe `part` leaves it to its
// caller that no two threads use one element.
unsafe impl Sync for MatrixMut<'_> {}

impl<'a> MatrixMut<'a> {
    /// `rows` rows of `columns` elements, one after the other, in the first elements of a slice.
    pub fn new(data: &'a mut [MaybeUninit<f32>], rows: usize, columns: usize) -> Self {
        let [matrix] = Self::side_by_side(data, rows, columns);
        matrix
    }

    /// [`Self::new`] over elements that have values. They keep having values: safe methods only write numbers.
    pub fn over(data: &'a mut [f32], rows: usize, columns: usize) -> Self {
        let [matrix] = Self::at(data.as_mut_ptr(), data.len(), rows, columns);
        matrix
    }

    /// `N` matrices whose rows lie beside each other: row i of the slice is row i of the first matrix, then row i
    /// of the second, and so on.
    pub fn side_by_side<const N: usize>(
        data: &'a mut [MaybeUninit<f32>],
        rows: usize,
        columns: usize,
    ) -> [Self; N] {
        Self::at(data.as_mut_ptr().cast(), data.len(), rows, columns)
    }

    /// The caller has borrowed the `length` elements at `data` for `'a`. The matrices have different columns of them.
    fn at<const N: usize>(data: *mut f32, length: usize, rows: usize, columns: usize) -> [Self; N] {
        let stride = N * columns;
        assert!(
            fits(length, rows, stride, stride),
            "a matrix lies inside its slice"
        );
        std::array::from_fn(|index| Self {
            data: data.wrapping_add(index * columns),
            rows,
            columns,
            stride,
            borrow: PhantomData,
        })
    }

    /// [rows, columns]
    pub fn dims(&self) -> [usize; 2] {
        [self.rows, self.columns]
    }

    /// Rows `row..row + rows` of columns `column..column + columns`, while this matrix is shared between threads.
    ///
    /// # Safety
    /// While the part is used, no other part of this matrix that has one of its elements is.
    pub unsafe fn part(
        &self,
        (row, rows): (usize, usize),
        (column, columns): (usize, usize),
    ) -> MatrixMut<'_> {
        assert!(
            row + rows <= self.rows && column + columns <= self.columns,
            "a part lies inside its matrix"
        );
        MatrixMut {
            data: self.data.wrapping_add(row * self.stride + column),
            rows,
            columns,
            stride: self.stride,
            borrow: PhantomData,
        }
    }

    /// The first element, and the distance from one row to the next.
    pub(super) fn raw(&mut self) -> (*mut f32, usize) {
        (self.data, self.stride)
    }

    /// Row `index`.
    ///
    /// # Safety
    /// Every element of the row has been written.
    pub unsafe fn row(&mut self, index: usize) -> &mut [f32] {
        // SAFETY: by the caller's promise.
        unsafe { self.elements(index).assume_init_mut() }
    }

    /// Writes a row; returns it.
    pub fn write_row(&mut self, index: usize, values: &[f32]) -> &mut [f32] {
        self.elements(index).write_copy_of_slice(values)
    }

    /// Writes zeros: the result of a pass that is given up.
    pub fn clear(&mut self) {
        (0..self.rows).for_each(|index| self.elements(index).fill(MaybeUninit::new(0.0)));
    }

    fn elements(&mut self, index: usize) -> &mut [MaybeUninit<f32>] {
        assert!(index < self.rows, "a row lies inside its matrix");
        let first = self.data.wrapping_add(index * self.stride);
        // SAFETY: the row lies inside the buffer and is not aliased, both by the invariant; the result borrows
        // `self` mutably, so there is one such slice at a time.
        unsafe { std::slice::from_raw_parts_mut(first.cast(), self.columns) }
    }
}

/// Whether the last element of a matrix is among `length`.
fn fits(length: usize, rows: usize, columns: usize, row: usize) -> bool {
    rows == 0 || columns == 0 || (rows - 1) * row + columns <= length
}

/// What happens to the values that the result's buffer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ops) enum Before {
    /// They are overwritten.
    Ignored,
    /// The product is added to them.
    Added,
}

/// `into = scale · left · right`, on the calling thread. Writes every element of `into`.
///
/// # Shapes
/// left [M, K]; right [K, N] → into [M, N]
pub(in crate::ops) fn product(scale: f32, left: Matrix, right: Matrix, into: &mut MatrixMut) {
    // SAFETY: nothing is added.
    unsafe { product_after(Before::Ignored, scale, left, right, into) }
}

/// [`product`], or with [`Before::Added`] `into += scale · left · right`.
///
/// # Safety
/// With [`Before::Added`], every element of `into` has been written.
pub(in crate::ops) unsafe fn product_after(
    before: Before,
    scale: f32,
    left: Matrix,
    right: Matrix,
    into: &mut MatrixMut,
) {
    assert!(
        left.rows == into.rows && right.columns == into.columns && left.columns == right.rows,
        "the dimensions of a product agree"
    );
    // SAFETY: every element of the three matrices lies inside its slice, which `Matrix` and `MatrixMut` check
    // when they are made. `into` is borrowed mutably, so nothing else reads or writes it. It is read only if
    // the product is added to it, and then it has values by this function's contract.
    unsafe {
        gemm::gemm(
            into.rows,
            into.columns,
            left.columns,
            into.data,
            1,
            into.stride as isize,
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

/// [`product`] for few rows and a right factor whose columns are contiguous, such as a weight [O, I] that is read as [I, O].
/// A product packs a factor that is not contiguous the other way, which for few rows takes as long as the product: the
/// transposed product, `rightᵀ · leftᵀ`, packs the few rows instead. `predict` of one text takes 0.96 of the time with 64
/// tokens and 0.78 with 8 (MiniLM). Each element is the same sum in the same order.
fn product_of_few_rows(left: Matrix, right: Matrix, into: &mut MatrixMut) {
    let [rows, columns] = into.dims();
    let mut turned = Unwritten::new(rows * columns);
    let mut result = MatrixMut::new(turned.elements(), columns, rows);
    product(1.0, right.transposed(), left.transposed(), &mut result);
    // SAFETY: `product` writes every element.
    let turned = unsafe { turned.written() };
    for row in 0..rows {
        let values = turned.iter().skip(row).step_by(rows);
        for (element, value) in into.elements(row).iter_mut().zip(values) {
            element.write(*value);
        }
    }
}

/// The rows and columns of the blocks of a product. Blocks are of nearly one size, and there are at least [`FEW`] where the
/// product is wide enough, so that no core waits for another. They depend on the product alone, not on the machine: sums
/// have the same bits on any number of threads.
fn block_size(rows: usize, columns: usize) -> (usize, usize) {
    let even = |length: usize, parts: usize| length.div_ceil(parts).next_multiple_of(LINE);
    let row_blocks = rows.div_ceil(ROWS).max(1);
    if row_blocks >= FEW {
        return (even(rows, row_blocks).max(1), columns.max(1));
    }
    let column_blocks = columns.div_ceil(COLUMNS).max(FEW.div_ceil(row_blocks));
    (
        even(rows, row_blocks).max(1),
        even(columns, column_blocks).max(NARROW),
    )
}

/// `into = left · right` in blocks on rayon's pool. Writes every element of `into`. When a block is finished, and still
/// in the cache, `then` is called for each of its rows with the row's number, its first column and its elements.
/// Every element of the product is passed to `then` exactly once. Where the pass is given up the product is zeros.
pub(in crate::ops) fn blocks(
    left: Matrix,
    right: Matrix,
    into: MatrixMut,
    then: impl Fn(usize, usize, &mut [f32]) + Sync,
) {
    // SAFETY: nothing is added.
    unsafe { blocks_after(Before::Ignored, left, right, into, then) }
}

/// [`blocks`], or with [`Before::Added`] `into += left · right`.
///
/// # Safety
/// With [`Before::Added`], every element of `into` has been written.
pub(in crate::ops) unsafe fn blocks_after(
    before: Before,
    left: Matrix,
    right: Matrix,
    into: MatrixMut,
    then: impl Fn(usize, usize, &mut [f32]) + Sync,
) {
    let (rows, columns) = (into.rows, into.columns);
    let (most_rows, most_columns) = block_size(rows, columns);
    let (row_blocks, column_blocks) = (rows.div_ceil(most_rows), columns.div_ceil(most_columns));
    let asker = Asker::of_this_thread();
    (0..row_blocks * column_blocks)
        .into_par_iter()
        .with_max_len(1)
        .for_each(|block| {
            let row = block / column_blocks * most_rows;
            let column = block % column_blocks * most_columns;
            let (height, width) = (
                most_rows.min(rows - row),
                most_columns.min(columns - column),
            );
            // SAFETY: the blocks tile the matrix without overlaps, and each is visited by one task.
            let mut part = unsafe { into.part((row, height), (column, width)) };
            if asker.stops() {
                part.clear();
            } else {
                let left = left.block(row, height, 0, left.columns);
                let right = right.block(0, right.rows, column, width);
                if before == Before::Ignored && right.row == 1 && height <= FEW_ROWS {
                    product_of_few_rows(left, right, &mut part);
                } else {
                    // SAFETY: by this function's contract.
                    unsafe { product_after(before, 1.0, left, right, &mut part) };
                }
            }
            for index in 0..height {
                // SAFETY: the product, or `clear`, has written every element of the block.
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
        let into = MatrixMut::over(&mut result, rows, columns);
        let (a, b) = (
            Matrix::new(&left, rows, inner),
            Matrix::new(&right, inner, columns),
        );
        let number = |row: usize, column: usize, part: &mut [f32]| {
            for (i, value) in part.iter_mut().enumerate() {
                *value += (row * 1000 + column + i) as f32;
            }
        };
        // SAFETY: `result` has values.
        unsafe { blocks_after(Before::Added, a, b, into, number) };
        let mut overwritten = Unwritten::new(rows * columns);
        let into = MatrixMut::new(overwritten.elements(), rows, columns);
        blocks(a, b, into, |_, _, _| {});
        // SAFETY: `blocks` wrote all elements.
        let overwritten = unsafe { overwritten.written() };
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
                let found = f64::from(overwritten[row * columns + column]);
                assert!((found - sum).abs() < allowed, "{found} is not {sum}");
            }
        }
    }

    #[test]
    fn blocks_are_of_nearly_one_size() {
        for (rows, columns, expected) in [
            (1, 1, (16, 96)),
            (64, 384, (64, 96)),
            (256, 384, (256, 96)),
            (384, 384, (192, 192)),
            (512, 384, (256, 192)),
            (256, 1536, (256, 384)),
            (1000, 384, (256, 384)),
            (1100, 1536, (224, 1536)),
        ] {
            assert_eq!(block_size(rows, columns), expected, "{rows} x {columns}");
        }
    }

    #[test]
    fn blocks_cover_every_element_once() {
        check(3, 5, 7);
        check(1, 1, 1);
        check(257, 3, 2);
        check(300, 33, 400);
        check(1025, 2, 3);
        check(384, 40, 385);
        check(2, 4, 769);
    }

    #[test]
    fn a_product_of_few_rows_has_the_bits_of_any_product() {
        for (rows, inner, columns) in [
            (1, 1, 1),
            (3, 40, 7),
            (8, 384, 96),
            (17, 1536, 100),
            (64, 384, 384),
            (64, 4100, 96),
        ] {
            let (left, right) = (numbers(rows * inner), numbers(columns * inner));
            let left = Matrix::new(&left, rows, inner);
            let right = Matrix::new(&right, columns, inner).transposed();
            let [mut one, mut other] = [(); 2].map(|()| vec![0.0; rows * columns]);
            product(
                1.0,
                left,
                right,
                &mut MatrixMut::over(&mut one, rows, columns),
            );
            product_of_few_rows(left, right, &mut MatrixMut::over(&mut other, rows, columns));
            let bits = |values: &[f32]| values.iter().map(|it| it.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&one), bits(&other), "{rows} x {inner} x {columns}");
        }
    }

    #[test]
    fn empty_products_do_nothing() {
        check(0, 3, 4);
        check(3, 4, 0);
        check(3, 0, 4);
    }

    #[test]
    fn matrices_side_by_side_share_no_element() {
        let data = vec![0.0; 2 * 3 * 4];
        let mut data = data.into_iter().map(MaybeUninit::new).collect::<Vec<_>>();
        let [mut first, mut second, mut third] = MatrixMut::side_by_side(&mut data, 2, 4);
        first.write_row(0, &[1.0; 4]);
        second.write_row(1, &[2.0; 4]);
        third.write_row(0, &[3.0; 4]);
        third.clear();
        // SAFETY: all elements had values from the beginning.
        let row = |row: &[MaybeUninit<f32>]| unsafe { row[0].assume_init() };
        let rows: Vec<f32> = data.chunks_exact(4).map(row).collect();
        assert_eq!(rows, [1.0, 0.0, 0.0, 0.0, 2.0, 0.0]);
    }

    #[test]
    #[should_panic(expected = "a part lies inside its matrix")]
    fn a_part_outside_of_its_matrix_is_refused() {
        let mut data = vec![0.0; 6];
        let matrix = MatrixMut::over(&mut data, 2, 3);
        // SAFETY: the only part.
        unsafe { matrix.part((1, 2), (0, 3)) };
    }
}

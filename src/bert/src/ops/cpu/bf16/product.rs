//! A whole product, in blocks on rayon's pool.
//!
//! A block is 128 rows of the left factor times 384 columns of the right one: 8 panels, each of which is read from the
//! second-level cache for 16 groups of rows. An inner dimension above 2048 is summed in parts. Neither changes the
//! order in which the terms of an element are added.

use std::ops::Range;

use rayon::prelude::*;

use super::super::Unwritten;
use super::super::product::{Before, MatrixMut};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use super::super::{Level, level};
use super::kernel::{Block, HEIGHT, Target, WIDTH, multiply};
use super::panels::{Left, Panels};
use crate::ops::stop::Asker;

/// Rows of a block.
const ROWS: usize = 128;
/// Columns of a block.
const COLUMNS: usize = 8 * WIDTH;
/// Pairs of the inner dimension that are summed at a time: a panel of them is 192 KiB.
const PAIRS: usize = 1024;

/// `into = left · right` on rayon's pool. Writes every element of `into`. Where the pass is given up, they are zeros.
///
/// # Shapes
/// left [M, K]; right [K, N] → into [M, N]
pub(super) fn product(left: Left, right: &Panels, into: MatrixMut) {
    let [rows, columns] = into.dims();
    let asker = Asker::of_this_thread();
    let across = columns.div_ceil(COLUMNS);
    (0..rows.div_ceil(ROWS) * across)
        .into_par_iter()
        .with_max_len(1)
        .for_each(|block| {
            let (row, column) = (block / across * ROWS, block % across * COLUMNS);
            let (height, width) = (ROWS.min(rows - row), COLUMNS.min(columns - column));
            // SAFETY: the blocks tile the matrix without overlaps, and each is visited by one task.
            let mut part = unsafe { into.part((row, height), (column, width)) };
            if asker.stops() {
                part.clear();
            } else {
                // SAFETY: nothing is added.
                unsafe {
                    part_of_product(1.0, left, (right, column), row, Before::Ignored, &mut part)
                };
            }
        });
}

/// [`product`] whose sums are not kept: `write` takes them, row by row, and puts what it makes of them into the band of
/// results that the row belongs to. The bands of `bands` are of `height` rows each, in order; `write` has the
/// band, the row's number in it, the first column and the sums.
pub(super) fn through<B: Send>(
    left: Left,
    right: &Panels,
    bands: Vec<B>,
    height: usize,
    write: impl Fn(&mut B, usize, usize, &mut [f32]) + Sync,
) {
    assert_eq!(
        bands.len(),
        left.height().div_ceil(height),
        "there is a band for every row"
    );
    let asker = Asker::of_this_thread();
    let scratch = || Unwritten::new(height * COLUMNS);
    bands
        .into_par_iter()
        .enumerate()
        .with_max_len(1)
        .for_each_init(scratch, |scratch, (index, mut band)| {
            let row = index * height;
            let height = height.min(left.height() - row);
            for column in (0..right.columns()).step_by(COLUMNS) {
                let width = COLUMNS.min(right.columns() - column);
                let mut into = MatrixMut::new(scratch.elements(), height, width);
                if asker.stops() {
                    into.clear();
                } else {
                    // SAFETY: nothing is added.
                    unsafe {
                        part_of_product(
                            1.0,
                            left,
                            (right, column),
                            row,
                            Before::Ignored,
                            &mut into,
                        );
                    }
                }
                for index in 0..height {
                    // SAFETY: the product, or `clear`, has written every element.
                    write(&mut band, index, column, unsafe { into.row(index) });
                }
            }
        });
}

/// Rows of a band for [`through`]: fewer where there are few rows, so that several threads have some, but those of a tile
/// of AMX, since each band reads all of the right factor.
pub(super) fn height(rows: usize) -> usize {
    rows.div_ceil(8)
        .next_multiple_of(2 * HEIGHT)
        .clamp(2 * HEIGHT, ROWS)
}

/// `into = scale · left · right` on the calling thread. Writes every element of `into`.
pub(super) fn product_here(scale: f32, left: Left, right: &Panels, into: &mut MatrixMut) {
    // SAFETY: nothing is added.
    unsafe { part_of_product(scale, left, (right, 0), 0, Before::Ignored, into) }
}

/// [`product_here`], or with [`Before::Added`] `into += scale · left · right`.
///
/// # Safety
/// With [`Before::Added`], every element of `into` has been written.
pub(super) unsafe fn product_here_after(
    before: Before,
    scale: f32,
    left: Left,
    right: &Panels,
    into: &mut MatrixMut,
) {
    // SAFETY: by this function's contract.
    unsafe { part_of_product(scale, left, (right, 0), 0, before, into) }
}

/// The rows of the product from `row` on and its columns from `column` on, a multiple of 48, as many as `into` has.
///
/// # Safety
/// With [`Before::Added`], every element of `into` has been written.
unsafe fn part_of_product(
    scale: f32,
    left: Left,
    (right, column): (&Panels, usize),
    row: usize,
    before: Before,
    into: &mut MatrixMut,
) {
    let [rows, columns] = into.dims();
    assert!(
        left.pairs() == right.pairs()
            && row + rows <= left.height()
            && column + columns <= right.columns()
            && column.is_multiple_of(WIDTH),
        "the dimensions of a product agree"
    );
    if left.pairs() == 0 && before == Before::Ignored {
        into.clear();
    }
    let (first, stride) = into.raw();
    let target = Target {
        first,
        stride,
        rows,
        columns,
        added: before == Before::Added,
        scale,
    };
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    if rows > 0 && left.pairs() > 0 && level() >= Level::Amx {
        // SAFETY: the level is set only if the unit is allowed, and the dimensions were compared above. What is written lies
        // inside `into`, which is borrowed mutably; it has values by the contract.
        unsafe { super::tiles::multiply(left, row, (right, column), target) };
        return;
    }
    for start in (0..left.pairs()).step_by(PAIRS) {
        let pairs = start..left.pairs().min(start + PAIRS);
        for first in (0..columns).step_by(WIDTH) {
            let (panel, width) = right.panel(column + first);
            for group in (0..rows).step_by(HEIGHT) {
                let height = HEIGHT.min(rows - group);
                let (left, left_row, left_pair) = group_of(left, row + group, height, &pairs);
                let block = Block {
                    left,
                    left_row,
                    left_pair,
                    right: panel[pairs.start * width..pairs.end * width].as_ptr(),
                    width,
                    pairs: pairs.len(),
                    into: Target {
                        first: target.first.wrapping_add(group * stride + first),
                        rows: height,
                        columns: WIDTH.min(columns - first),
                        added: target.added || start > 0,
                        ..target
                    },
                };
                // SAFETY: `group_of` and the slice of the panel have checked what is read. What is written lies inside
                // `into`, which is borrowed mutably; it has values by the contract, or since the first pairs were summed.
                unsafe { multiply(block) };
            }
        }
    }
}

/// Where `height` rows from `row` on begin, at pair `pairs.start`; the distance of rows; that of pairs. All of the
/// pairs lie inside the factor. With panels, `row` is a multiple of 8, so that a group lies in one panel.
fn group_of(
    left: Left,
    row: usize,
    height: usize,
    pairs: &Range<usize>,
) -> (*const u16, usize, usize) {
    match left {
        Left::Rows { data, stride, .. } => {
            let first = row * stride + 2 * pairs.start;
            let last = (row + height - 1) * stride + 2 * pairs.end;
            (data[first..last].as_ptr(), stride, 2)
        }
        Left::Panels(panels) => {
            let (panel, width) = panels.panel(row / WIDTH * WIDTH);
            let inside = row % WIDTH;
            assert!(inside + height <= width, "a group lies in one panel");
            let panel = &panel[pairs.start * width..pairs.end * width];
            (panel[inside..].as_ptr().cast(), 2, 2 * width)
        }
    }
}

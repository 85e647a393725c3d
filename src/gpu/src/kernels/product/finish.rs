//! The end of the kernel: what is added to a tile whose sum is complete, and where it is written.

// What is known when a kernel is compiled is asked for by an `if` of its own.
#![allow(clippy::collapsible_if)]

use cubecl::prelude::*;

use super::tiles::{SQUARE, Tiling, place_in_tile};

/// Where a product is written: steps in memory from one to the next of the two numbers of the batch, of the parts of its sums
/// and of its rows, whose elements lie without gaps; and where the sums of a part begin in it.
#[derive(Clone, Copy, CubeLaunch, CubeType)]
pub struct Places {
    pub outer: usize,
    pub inner: usize,
    pub part: usize,
    pub row: usize,
    pub sums: usize,
}

/// What a launch does beside the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extras {
    /// Adds a number to each column.
    pub bias: bool,
    /// Adds a tensor of the product's shape.
    pub added: bool,
    /// Adds up the rows of the left factor too.
    pub sums: bool,
}

/// Where a cube's tile is, and what is done with it.
#[derive(CubeType)]
pub struct Target {
    /// Where its product begins, in one part.
    pub start: usize,
    /// Where its part of the sum begins.
    pub part: usize,
    /// Where the sums of the rows begin in a part.
    pub sums: usize,
    /// From a row of the product to the next.
    pub row_step: usize,
    /// Its first row.
    pub row: usize,
    /// Its first column.
    pub column: usize,
    /// Rows of the product.
    pub m: usize,
    /// Columns of the product.
    pub n: usize,
    /// Whether it is of the first part, which has what is added.
    pub is_first: bool,
    /// Whether the unit has added up its rows of the left factor.
    pub adds_up: bool,
}

/// Adds to a unit's square what is to be added.
#[cube]
pub fn add_extras(
    square: &mut Array<f32>,
    bias: &Tensor<f32>,
    added: &Tensor<f32>,
    target: &Target,
    #[comptime] tiling: Tiling,
    #[comptime] extras: Extras,
) {
    if target.is_first {
        if comptime!(extras.bias) {
            add_bias(square, bias, target, tiling);
        }
        if comptime!(extras.added) {
            add_tensor(square, added, target, tiling);
        }
    }
}

/// Writes a unit's square, and the sums of its rows.
#[cube]
pub fn write_tile(
    square: &Array<f32>,
    row_sums: &Array<f32>,
    output: &mut Tensor<f32>,
    sums: &mut Tensor<f32>,
    target: &Target,
    #[comptime] tiling: Tiling,
    #[comptime] extras: Extras,
) {
    write_square(square, output, target, tiling);
    if comptime!(extras.sums) {
        if target.adds_up {
            write_sums(row_sums, sums, target, tiling);
        }
    }
}

/// Adds to each column its number.
#[cube]
fn add_bias(
    square: &mut Array<f32>,
    bias: &Tensor<f32>,
    target: &Target,
    #[comptime] tiling: Tiling,
) {
    let across = comptime!(tiling.across);
    let unit_across = UNIT_POS_X as usize % across;
    #[unroll]
    for j in 0..SQUARE {
        let column = target.column + place_in_tile(unit_across, j, across);
        if column < target.n {
            let own = bias[column];
            #[unroll]
            for i in 0..SQUARE {
                square[i * SQUARE + j] += own;
            }
        }
    }
}

/// Adds to each element that of a tensor in its place.
#[cube]
fn add_tensor(
    square: &mut Array<f32>,
    added: &Tensor<f32>,
    target: &Target,
    #[comptime] tiling: Tiling,
) {
    let (down, across) = comptime!((tiling.down, tiling.across));
    let (unit_down, unit_across) = (UNIT_POS_X as usize / across, UNIT_POS_X as usize % across);
    #[unroll]
    for i in 0..SQUARE {
        let row = target.row + place_in_tile(unit_down, i, down);
        #[unroll]
        for j in 0..SQUARE {
            let column = target.column + place_in_tile(unit_across, j, across);
            if row < target.m && column < target.n {
                square[i * SQUARE + j] += added[target.start + row * target.row_step + column];
            }
        }
    }
}

/// Writes a unit's square.
#[cube]
fn write_square(
    square: &Array<f32>,
    output: &mut Tensor<f32>,
    target: &Target,
    #[comptime] tiling: Tiling,
) {
    let (down, across) = comptime!((tiling.down, tiling.across));
    let (unit_down, unit_across) = (UNIT_POS_X as usize / across, UNIT_POS_X as usize % across);
    let start = target.start + target.part;
    #[unroll]
    for i in 0..SQUARE {
        let row = target.row + place_in_tile(unit_down, i, down);
        #[unroll]
        for j in 0..SQUARE {
            let column = target.column + place_in_tile(unit_across, j, across);
            if row < target.m && column < target.n {
                output[start + row * target.row_step + column] = square[i * SQUARE + j];
            }
        }
    }
}

/// Writes the sums of a unit's rows.
#[cube]
fn write_sums(
    row_sums: &Array<f32>,
    sums: &mut Tensor<f32>,
    target: &Target,
    #[comptime] tiling: Tiling,
) {
    let (down, across) = comptime!((tiling.down, tiling.across));
    let unit_down = UNIT_POS_X as usize / across;
    #[unroll]
    for i in 0..SQUARE {
        let row = target.row + place_in_tile(unit_down, i, down);
        if row < target.m {
            sums[target.part + target.sums + row] = row_sums[i];
        }
    }
}

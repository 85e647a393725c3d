//! The kernel: a cube computes a tile of the product, each of its units a square of it. The tile's share of both factors
//! passes through shared memory, some terms of the sum at a time, while the next ones are on their way.

// What is known when a kernel is compiled is asked for by an `if` of its own.
#![allow(clippy::collapsible_if)]

use cubecl::prelude::*;

use super::finish::{Extras, Places, Target, add_extras, write_tile};

/// Rows and columns of a unit's square.
pub const SQUARE: usize = 8;
/// Columns of the left factor, and rows of the right one, that are in shared memory.
pub const DEPTH: usize = 8;
/// Numbers that lie together and that a unit reads together.
const TOGETHER: usize = 4;
/// What keeps units that write a column from meeting in one bank; rows stay aligned.
const PAD: usize = TOGETHER;

/// Units of a cube: those below and those beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tiling {
    pub down: usize,
    pub across: usize,
}

impl Tiling {
    pub const LARGE: Self = Self::new(16, 16);
    pub const SMALL: Self = Self::new(8, 8);
    /// For products of few columns, such as those of an attention's heads.
    pub const NARROW: Self = Self::new(16, 4);

    const fn new(down: usize, across: usize) -> Self {
        Self { down, across }
    }

    /// How a factor is read whose part of a tile is that of so many units.
    const fn side(self, units: usize, along: bool) -> Side {
        Side {
            width: units * SQUARE,
            units: self.down * self.across,
            along,
        }
    }

    /// Tiles of a product.
    pub fn tiles(self, m: usize, n: usize) -> usize {
        m.div_ceil(self.down * SQUARE) * n.div_ceil(self.across * SQUARE)
    }
}

/// Where the elements of a factor lie: steps in memory from one to the next, of the two numbers of the batch, of rows (of
/// columns of the right factor) and of the terms of the sum.
#[derive(Clone, Copy, CubeLaunch, CubeType)]
pub struct Steps {
    outer: usize,
    inner: usize,
    own: usize,
    terms: usize,
}

/// What a cube needs of a factor: where it begins and how it lies, the first of its rows (of columns of the right one) and how
/// many there are, and where the terms end.
#[derive(CubeType)]
struct Share {
    start: usize,
    steps: Steps,
    first: usize,
    size: usize,
    last: usize,
}

#[cube]
fn share(
    steps: Steps,
    batch: usize,
    inner_batch: usize,
    first: usize,
    size: usize,
    last: usize,
) -> Share {
    Share {
        start: (batch / inner_batch) * steps.outer + (batch % inner_batch) * steps.inner,
        steps,
        first,
        size,
        last,
    }
}

/// How units read a factor's part of a tile: `width` rows (or columns), along the terms where those lie without gaps.
#[derive(Clone, Copy)]
struct Side {
    width: usize,
    units: usize,
    along: bool,
}

impl Side {
    /// Numbers of a part in shared memory.
    const fn room(self) -> usize {
        DEPTH * (self.width + PAD)
    }

    /// Numbers that each unit reads.
    const fn numbers(self) -> usize {
        self.width * DEPTH / self.units
    }
}

/// [`DEPTH`] terms of a factor from `term` on, on their way to shared memory: each unit reads its numbers, and writes them
/// later.
#[cube]
fn read(
    from: &Tensor<f32>,
    into: &mut Array<f32>,
    share: &Share,
    term: usize,
    #[comptime] side: Side,
) {
    #[unroll]
    for number in 0..comptime!(side.numbers()) {
        let (own, depth) = place_of(number, side);
        let (own, depth) = (share.first + own, term + depth);
        let mut value = 0.0f32;
        if own < share.size && depth < share.last {
            value = from[share.start + own * share.steps.own + depth * share.steps.terms];
        }
        into[number] = value;
    }
}

/// Writes what [`read`] has read.
#[cube]
fn write(from: &Array<f32>, room: &mut Shared<[f32]>, start: usize, #[comptime] side: Side) {
    #[unroll]
    for number in 0..comptime!(side.numbers()) {
        let (own, depth) = place_of(number, side);
        room[start + depth * comptime!(side.width + PAD) + own] = from[number];
    }
}

/// Which row (or column) and which term the `number`-th of a unit is, so that units beside each other read numbers beside
/// each other.
#[cube]
fn place_of(#[comptime] number: usize, #[comptime] side: Side) -> (usize, usize) {
    let place = UNIT_POS_X as usize + comptime!(number * side.units);
    let width = comptime!(side.width);
    if comptime!(side.along) {
        (place / DEPTH, place % DEPTH)
    } else {
        (place % width, place / width)
    }
}

/// The place in a tile of the `number`-th row (or column) of a unit's square: in groups, so that a unit reads numbers that lie
/// together and its neighbor the next ones.
#[cube]
pub fn place_in_tile(unit: usize, #[comptime] number: usize, #[comptime] units: usize) -> usize {
    let group = comptime!(number / TOGETHER * TOGETHER * units + number % TOGETHER);
    unit * TOGETHER + group
}

#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments)]
pub fn product_tiles(
    left: &Tensor<f32>,
    right: &Tensor<f32>,
    bias: &Tensor<f32>,
    added: &Tensor<f32>,
    output: &mut Tensor<f32>,
    sums: &mut Tensor<f32>,
    left_steps: Steps,
    right_steps: Steps,
    places: Places,
    m: usize,
    n: usize,
    k: usize,
    part: usize,
    parts: usize,
    inner_batch: usize,
    #[comptime] tiling: Tiling,
    #[comptime] left_along: bool,
    #[comptime] right_along: bool,
    #[comptime] extras: Extras,
) {
    let rows = comptime!(tiling.side(tiling.down, left_along));
    let columns = comptime!(tiling.side(tiling.across, right_along));
    let (row, column) = (
        CUBE_POS_Y as usize * comptime!(rows.width),
        CUBE_POS_X as usize * comptime!(columns.width),
    );
    let number = CUBE_POS_Z as usize;
    let (batch, of_sum) = (number / parts, number % parts);
    let first = of_sum * part;
    let mut last = first + part;
    if last > k {
        last = k;
    }
    let of_left = share(left_steps, batch, inner_batch, row, m, last);
    let of_right = share(right_steps, batch, inner_batch, column, n, last);

    let mut square = Array::<f32>::new(comptime!(SQUARE * SQUARE));
    #[unroll]
    for at in 0..comptime!(SQUARE * SQUARE) {
        square[at] = 0.0f32;
    }
    let mut row_sums = Array::<f32>::new(SQUARE);
    #[unroll]
    for at in 0..SQUARE {
        row_sums[at] = 0.0f32;
    }
    // One of the units that have a row.
    let unit_across = UNIT_POS_X as usize % comptime!(tiling.across);
    let adds_up = CUBE_POS_X == 0 && unit_across == 0;
    add_up(
        left,
        right,
        &of_left,
        &of_right,
        first,
        last,
        &mut square,
        &mut row_sums,
        adds_up,
        rows,
        columns,
        tiling,
        comptime!(extras.sums),
    );
    let target = Target {
        start: (batch / inner_batch) * places.outer + (batch % inner_batch) * places.inner,
        part: of_sum * places.part,
        sums: places.sums,
        row_step: places.row,
        row,
        column,
        m,
        n,
        is_first: of_sum == 0,
        adds_up,
    };
    add_extras(&mut square, bias, added, &target, tiling, extras);
    write_tile(&square, &row_sums, output, sums, &target, tiling, extras);
}

/// Adds the products of all terms from `first` to `last` to a unit's square.
#[cube]
#[allow(clippy::too_many_arguments)]
fn add_up(
    left: &Tensor<f32>,
    right: &Tensor<f32>,
    of_left: &Share,
    of_right: &Share,
    first: usize,
    last: usize,
    square: &mut Array<f32>,
    row_sums: &mut Array<f32>,
    adds_up: bool,
    #[comptime] rows: Side,
    #[comptime] columns: Side,
    #[comptime] tiling: Tiling,
    #[comptime] sums: bool,
) {
    // Two parts of each factor: one is multiplied while the other is written.
    let mut lefts = Shared::<[f32]>::new_aligned_slice(comptime!(2 * rows.room()), 16usize);
    let mut rights = Shared::<[f32]>::new_aligned_slice(comptime!(2 * columns.room()), 16usize);
    let mut next_left = Array::<f32>::new(comptime!(rows.numbers()));
    let mut next_right = Array::<f32>::new(comptime!(columns.numbers()));
    read(left, &mut next_left, of_left, first, rows);
    read(right, &mut next_right, of_right, first, columns);
    write(&next_left, &mut lefts, 0usize, rows);
    write(&next_right, &mut rights, 0usize, columns);
    sync_cube();
    for step in 0..(last - first).div_ceil(DEPTH) {
        let (now, next) = (step % 2, (step + 1) % 2);
        let term = first + (step + 1) * DEPTH;
        read(left, &mut next_left, of_left, term, rows);
        read(right, &mut next_right, of_right, term, columns);
        multiply(
            &lefts, &rights, square, row_sums, now, adds_up, tiling, sums,
        );
        write(&next_left, &mut lefts, next * comptime!(rows.room()), rows);
        write(
            &next_right,
            &mut rights,
            next * comptime!(columns.room()),
            columns,
        );
        sync_cube();
    }
}

/// Adds the products of the terms in one half of shared memory to a unit's square, and the terms of the left factor to the
/// sums of its rows.
#[cube]
#[allow(clippy::too_many_arguments)]
fn multiply(
    lefts: &Shared<[f32]>,
    rights: &Shared<[f32]>,
    square: &mut Array<f32>,
    row_sums: &mut Array<f32>,
    half: usize,
    adds_up: bool,
    #[comptime] tiling: Tiling,
    #[comptime] sums: bool,
) {
    let (down, across) = comptime!((tiling.down, tiling.across));
    let (unit_down, unit_across) = (UNIT_POS_X as usize / across, UNIT_POS_X as usize % across);
    let (left_row, right_row) = comptime!((down * SQUARE + PAD, across * SQUARE + PAD));
    let (left_start, right_start) = (half * DEPTH * left_row, half * DEPTH * right_row);
    let mut of_left = Array::<f32>::new(SQUARE);
    let mut of_right = Array::<f32>::new(SQUARE);
    for term in 0..DEPTH {
        let (left_start, right_start) =
            (left_start + term * left_row, right_start + term * right_row);
        #[unroll]
        for i in 0..SQUARE {
            of_left[i] = lefts[left_start + place_in_tile(unit_down, i, down)];
            of_right[i] = rights[right_start + place_in_tile(unit_across, i, across)];
        }
        if comptime!(sums) {
            if adds_up {
                #[unroll]
                for i in 0..SQUARE {
                    row_sums[i] += of_left[i];
                }
            }
        }
        #[unroll]
        for i in 0..SQUARE {
            #[unroll]
            for j in 0..SQUARE {
                square[i * SQUARE + j] += of_left[i] * of_right[j];
            }
        }
    }
}

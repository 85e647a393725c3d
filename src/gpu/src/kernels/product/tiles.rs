//! The kernel: a cube computes a tile of the product, each of its units a square of it. The tile's share of both factors
//! passes through shared memory, some terms of the sum at a time, while the next ones are on their way.

// What is known when a kernel is compiled is asked for by an `if` of its own.
#![allow(clippy::collapsible_if)]

use cubecl::prelude::*;

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

/// Where a product is written: steps in memory from one to the next of the two numbers of the batch, of the parts of its sums
/// and of its rows, whose elements lie without gaps; and where the sums of a part begin in it.
#[derive(Clone, Copy, CubeLaunch, CubeType)]
pub struct Places {
    outer: usize,
    inner: usize,
    part: usize,
    row: usize,
    sums: usize,
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
fn place_in_tile(unit: usize, #[comptime] number: usize, #[comptime] units: usize) -> usize {
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
    let (number, parts) = (CUBE_POS_Z as usize, k.div_ceil(part));
    let (batch, first) = (number / parts, (number % parts) * part);
    let mut last = first + part;
    if last > k {
        last = k;
    }
    let of_left = share(left_steps, batch, inner_batch, row, m, last);
    let of_right = share(right_steps, batch, inner_batch, column, n, last);

    // Two parts of each factor: one is multiplied while the other is written.
    let mut lefts = Shared::<[f32]>::new_aligned_slice(comptime!(2 * rows.room()), 16usize);
    let mut rights = Shared::<[f32]>::new_aligned_slice(comptime!(2 * columns.room()), 16usize);
    let mut next_left = Array::<f32>::new(comptime!(rows.numbers()));
    let mut next_right = Array::<f32>::new(comptime!(columns.numbers()));
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
    read(left, &mut next_left, &of_left, first, rows);
    read(right, &mut next_right, &of_right, first, columns);
    write(&next_left, &mut lefts, 0usize, rows);
    write(&next_right, &mut rights, 0usize, columns);
    sync_cube();
    for step in 0..(last - first).div_ceil(DEPTH) {
        let (now, next) = (step % 2, (step + 1) % 2);
        read(
            left,
            &mut next_left,
            &of_left,
            first + (step + 1) * DEPTH,
            rows,
        );
        read(
            right,
            &mut next_right,
            &of_right,
            first + (step + 1) * DEPTH,
            columns,
        );
        multiply(
            &lefts,
            &rights,
            &mut square,
            &mut row_sums,
            now,
            adds_up,
            tiling,
            comptime!(extras.sums),
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
    let start = (batch / inner_batch) * places.outer + (batch % inner_batch) * places.inner;
    // One part of a sum has what is added.
    if number % parts == 0 {
        if comptime!(extras.bias) {
            add_bias(&mut square, bias, column, n, tiling);
        }
        if comptime!(extras.added) {
            add_tensor(
                &mut square,
                added,
                start,
                places.row,
                row,
                column,
                m,
                n,
                tiling,
            );
        }
    }
    let part_start = (number % parts) * places.part;
    put(
        &square,
        output,
        start + part_start,
        places.row,
        row,
        column,
        m,
        n,
        tiling,
    );
    if comptime!(extras.sums) {
        if adds_up {
            put_sums(&row_sums, sums, part_start + places.sums, row, m, tiling);
        }
    }
}

/// Writes the sums of a unit's rows.
#[cube]
fn put_sums(
    row_sums: &Array<f32>,
    sums: &mut Tensor<f32>,
    start: usize,
    row: usize,
    m: usize,
    #[comptime] tiling: Tiling,
) {
    let (down, across) = comptime!((tiling.down, tiling.across));
    let unit_down = UNIT_POS_X as usize / across;
    #[unroll]
    for i in 0..SQUARE {
        let row = row + place_in_tile(unit_down, i, down);
        if row < m {
            sums[start + row] = row_sums[i];
        }
    }
}

/// Adds to each element of a unit's square that of a tensor in its place.
#[cube]
#[allow(clippy::too_many_arguments)]
fn add_tensor(
    square: &mut Array<f32>,
    added: &Tensor<f32>,
    start: usize,
    row_step: usize,
    row: usize,
    column: usize,
    m: usize,
    n: usize,
    #[comptime] tiling: Tiling,
) {
    let (down, across) = comptime!((tiling.down, tiling.across));
    let (unit_down, unit_across) = (UNIT_POS_X as usize / across, UNIT_POS_X as usize % across);
    #[unroll]
    for i in 0..SQUARE {
        let row = row + place_in_tile(unit_down, i, down);
        #[unroll]
        for j in 0..SQUARE {
            let column = column + place_in_tile(unit_across, j, across);
            if row < m && column < n {
                square[i * SQUARE + j] += added[start + row * row_step + column];
            }
        }
    }
}

/// Adds to each column of a unit's square its number.
#[cube]
fn add_bias(
    square: &mut Array<f32>,
    bias: &Tensor<f32>,
    column: usize,
    n: usize,
    #[comptime] tiling: Tiling,
) {
    let across = comptime!(tiling.across);
    let unit_across = UNIT_POS_X as usize % across;
    #[unroll]
    for j in 0..SQUARE {
        let column = column + place_in_tile(unit_across, j, across);
        if column < n {
            let own = bias[column];
            #[unroll]
            for i in 0..SQUARE {
                square[i * SQUARE + j] += own;
            }
        }
    }
}

/// Writes a unit's square.
#[cube]
#[allow(clippy::too_many_arguments)]
fn put(
    square: &Array<f32>,
    output: &mut Tensor<f32>,
    start: usize,
    row_step: usize,
    row: usize,
    column: usize,
    m: usize,
    n: usize,
    #[comptime] tiling: Tiling,
) {
    let (down, across) = comptime!((tiling.down, tiling.across));
    let (unit_down, unit_across) = (UNIT_POS_X as usize / across, UNIT_POS_X as usize % across);
    #[unroll]
    for i in 0..SQUARE {
        let row = row + place_in_tile(unit_down, i, down);
        #[unroll]
        for j in 0..SQUARE {
            let column = column + place_in_tile(unit_across, j, across);
            if row < m && column < n {
                output[start + row * row_step + column] = square[i * SQUARE + j];
            }
        }
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

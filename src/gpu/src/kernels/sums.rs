//! Sums of partial sums, the second of two launches. Kernels that pass over all rows leave one row of partial sums for
//! each group of rows, of which this adds up the columns; others leave one number for each cube.

use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::{UNITS, cube_number, cubes, matrix, sum_over_units, unit_number, units, unwritten};

/// Groups that the rows are divided into, at most; each leaves a row of partial sums.
const MOST_GROUPS: usize = 256;
/// Rows of a group, at least, so that partial sums are few beside the rows.
const FEWEST_ROWS: usize = 8;

/// Rows of one group, and how many groups there are.
pub fn groups(rows: usize) -> (usize, usize) {
    let rows_per_group = rows.div_ceil(MOST_GROUPS).max(FEWEST_ROWS);
    (rows_per_group, rows.div_ceil(rows_per_group).max(1))
}

/// [groups, a + b] → `[a]` and `[b]`; the second is the first where b is 0.
pub fn sum_groups(partial: CubeTensor, groups: usize, [a, b]: [usize; 2]) -> [CubeTensor; 2] {
    let first = unwritten(&partial, [a]);
    let last = match b {
        0 => first.clone(),
        _ => unwritten(&partial, [b]),
    };
    let client = partial.client.clone();
    sum_columns::launch(
        &client,
        cubes((a + b).div_ceil(UNITS)),
        units(UNITS),
        partial.into_tensor_arg(),
        first.clone().into_tensor_arg(),
        last.clone().into_tensor_arg(),
        groups,
        a,
        a + b,
        UNITS,
    );
    [first, last]
}

#[cube(launch)]
#[allow(clippy::too_many_arguments)]
fn sum_columns(
    partial: &Tensor<f32>,
    first: &mut Tensor<f32>,
    last: &mut Tensor<f32>,
    groups: usize,
    columns: usize,
    width: usize,
    #[comptime] units: usize,
) {
    let at = unit_number(units);
    if at >= width {
        terminate!();
    }
    let mut sum = 0.0f32;
    for group in 0..groups {
        sum += partial[group * width + at];
    }
    if at < columns {
        first[at] = sum;
    } else {
        last[at - columns] = sum;
    }
}

/// The sum of all rows: [.., columns] → `[columns]`
pub fn sum_over_rows(x: CubeTensor) -> CubeTensor {
    let (x, of_x) = matrix(x);
    let (rows_per_group, count) = groups(of_x.rows);
    let partial = unwritten(&x, [count, of_x.columns]);
    let strips = of_x.columns.div_ceil(UNITS);
    let client = x.client.clone();
    sum_each_group::launch(
        &client,
        cubes(strips * count),
        units(UNITS),
        x.into_tensor_arg(),
        partial.clone().into_tensor_arg(),
        of_x.rows,
        rows_per_group,
        count,
        of_x.columns,
        strips,
        UNITS,
    );
    let [sum, _] = sum_groups(partial, count, [of_x.columns, 0]);
    sum
}

/// A cube has a strip of `units` columns in a group of rows.
#[cube(launch)]
#[allow(clippy::too_many_arguments)]
fn sum_each_group(
    x: &Tensor<f32>,
    partial: &mut Tensor<f32>,
    rows: usize,
    rows_per_group: usize,
    groups: usize,
    columns: usize,
    strips: usize,
    #[comptime] units: usize,
) {
    let cube = cube_number();
    let group = cube / strips;
    let column = (cube % strips) * units + UNIT_POS_X as usize;
    if group >= groups || column >= columns {
        terminate!();
    }
    let from = group * rows_per_group;
    let mut sum = 0.0f32;
    for row in from..group_end(from, rows_per_group, rows) {
        sum += x[row * columns + column];
    }
    partial[group * columns + column] = sum;
}

/// The sum of each row, by one cube: [rows, columns] → `[rows]`
pub fn sum_rows(numbers: CubeTensor, rows: usize, columns: usize) -> CubeTensor {
    let totals = unwritten(&numbers, [rows]);
    let client = numbers.client.clone();
    sum_each_row::launch(
        &client,
        cubes(rows),
        units(UNITS),
        numbers.into_tensor_arg(),
        totals.clone().into_tensor_arg(),
        columns,
        UNITS,
    );
    totals
}

#[cube(launch)]
fn sum_each_row(
    rows: &Tensor<f32>,
    totals: &mut Tensor<f32>,
    columns: usize,
    #[comptime] units: usize,
) {
    let row = cube_number();
    if row >= totals.len() {
        terminate!();
    }
    let mut room = Shared::<[f32]>::new_slice(units);
    let mut sum = 0.0f32;
    let mut column = UNIT_POS_X as usize;
    while column < columns {
        sum += rows[row * columns + column];
        column += units;
    }
    let sum = sum_over_units(sum, &mut room, units);
    if UNIT_POS_X == 0 {
        totals[row] = sum;
    }
}

/// Where a group of rows that begins at `from` ends.
#[cube]
pub fn group_end(from: usize, rows_per_group: usize, rows: usize) -> usize {
    let mut until = from + rows_per_group;
    if until > rows {
        until = rows;
    }
    until
}

/// Adds the `columns` numbers from `start` on to the sums that the units of a cube hold, each its share.
#[cube]
pub fn add_to_sums(
    sums: &mut Array<f32>,
    numbers: &Tensor<f32>,
    start: usize,
    #[comptime] columns: usize,
    #[comptime] units: usize,
) {
    let unit = UNIT_POS_X as usize;
    let per_unit = comptime!(columns.div_ceil(units));
    #[unroll]
    for place in 0..per_unit {
        let column = place * units + unit;
        if column < columns {
            sums[place] += numbers[start + column];
        }
    }
}

/// Writes what the units of a cube have summed, a row of `columns` numbers from `start`.
#[cube]
pub fn write_sums(
    sums: &Array<f32>,
    partial: &mut Tensor<f32>,
    start: usize,
    #[comptime] columns: usize,
    #[comptime] units: usize,
) {
    let unit = UNIT_POS_X as usize;
    let per_unit = comptime!(columns.div_ceil(units));
    #[unroll]
    for place in 0..per_unit {
        let column = place * units + unit;
        if column < columns {
            partial[start + column] = sums[place];
        }
    }
}

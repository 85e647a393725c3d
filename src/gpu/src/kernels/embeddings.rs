//! The sum of word, segment and position vectors, normalized, in one launch; and the gradients of the three tables.
//!
//! A table's gradient adds up rows of the batch, several for one entry. Each entry has a cube of its own, which finds the
//! rows that took the entry and adds them in their order: nobody else writes there, so that no atomic sum is needed,
//! and a device gives the same bits in every run. Of segments, which are few and have many rows each, groups of rows are
//! added up first.

use burn::tensor::Shape;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::mask::Dropped;
use super::norm::{Normalized, normalize_values};
use super::sums::{add_to_sums, group_end, groups, sum_groups, write_sums};
use super::{UNITS, cube_number, cubes, matrix, max_over_units, units, unwritten};

/// The tables, [entries, columns] each.
pub struct Tables {
    pub words: CubeTensor,
    pub types: CubeTensor,
    pub positions: CubeTensor,
}

/// `dropout(LayerNorm(words[ids] + types[type_ids] + positions))`: ids and type ids [B, S] of 32 bits → [B, S, columns].
pub fn forward(
    tables: Tables,
    ids: CubeTensor,
    type_ids: CubeTensor,
    gamma: CubeTensor,
    beta: CubeTensor,
    eps: f32,
    dropped: Option<Dropped>,
) -> Normalized {
    let (words, of_words) = matrix(tables.words);
    let (types, positions) = (matrix(tables.types).0, matrix(tables.positions).0);
    let ((ids, of_ids), (type_ids, _)) = (matrix(ids), matrix(type_ids));
    let ((gamma, _), (beta, _)) = (matrix(gamma), matrix(beta));
    let (columns, sequence) = (of_words.columns, of_ids.columns);
    let rows = of_ids.rows * sequence;
    let shape = Shape::new([of_ids.rows, sequence, columns]);
    let output = unwritten(&words, shape.clone());
    let normalized = unwritten(&words, shape);
    let inverse = unwritten(&words, [rows]);
    let mask = Dropped::or_none(dropped);
    let client = words.client.clone();
    embed_rows::launch(
        &client,
        cubes(rows),
        units(UNITS),
        words.into_tensor_arg(),
        types.into_tensor_arg(),
        positions.into_tensor_arg(),
        ids.into_tensor_arg(),
        type_ids.into_tensor_arg(),
        gamma.into_tensor_arg(),
        beta.into_tensor_arg(),
        output.clone().into_tensor_arg(),
        normalized.clone().into_tensor_arg(),
        inverse.clone().into_tensor_arg(),
        rows,
        sequence,
        eps,
        mask.first,
        mask.second,
        mask.threshold,
        mask.scale,
        columns,
        UNITS,
        dropped.is_some(),
    );
    Normalized {
        output,
        normalized,
        inverse,
    }
}

#[cube(launch)]
#[allow(clippy::too_many_arguments)]
fn embed_rows(
    words: &Tensor<f32>,
    types: &Tensor<f32>,
    positions: &Tensor<f32>,
    ids: &Tensor<i32>,
    type_ids: &Tensor<i32>,
    gamma: &Tensor<f32>,
    beta: &Tensor<f32>,
    output: &mut Tensor<f32>,
    normalized: &mut Tensor<f32>,
    inverse: &mut Tensor<f32>,
    rows: usize,
    sequence: usize,
    eps: f32,
    first: u32,
    second: u32,
    threshold: u32,
    scale: f32,
    #[comptime] columns: usize,
    #[comptime] units: usize,
    #[comptime] drops: bool,
) {
    let row = cube_number();
    if row >= rows {
        terminate!();
    }
    let unit = UNIT_POS_X as usize;
    let per_unit = comptime!(columns.div_ceil(units));
    let mut values = Array::<f32>::new(per_unit);
    let of_word = usize::cast_from(ids[row]) * columns;
    let of_type = usize::cast_from(type_ids[row]) * columns;
    let of_position = (row % sequence) * columns;
    let mut sum = 0.0f32;
    #[unroll]
    for place in 0..per_unit {
        let column = place * units + unit;
        let mut value = 0.0f32;
        if column < columns {
            // The reference's order: words and types, then positions.
            value = words[of_word + column] + types[of_type + column];
            value += positions[of_position + column];
        }
        values[place] = value;
        sum += value;
    }
    normalize_values(
        &values, sum, gamma, beta, output, normalized, inverse, row, eps, first, second, threshold,
        scale, columns, units, drops,
    );
}

/// The gradients of the tables of words and positions, of so many `entries`, for that of the sum, [B, S, columns]. The word
/// `padding` gets none.
pub fn words_and_positions(
    gradient: CubeTensor,
    ids: CubeTensor,
    entries: [usize; 2],
    padding: Option<usize>,
) -> (CubeTensor, CubeTensor) {
    let ((gradient, of_sum), (ids, of_ids)) = (matrix(gradient), matrix(ids));
    let columns = of_sum.columns;
    let of_words = unwritten(&gradient, [entries[0], columns]);
    let of_positions = unwritten(&gradient, [entries[1], columns]);
    let client = gradient.client.clone();
    rows_of_entries::launch(
        &client,
        cubes(entries[0] + entries[1]),
        units(UNITS),
        gradient.into_tensor_arg(),
        ids.into_tensor_arg(),
        of_words.clone().into_tensor_arg(),
        of_positions.clone().into_tensor_arg(),
        of_sum.rows,
        of_ids.columns,
        entries[0],
        entries[1],
        // Beyond all entries where no word is left out.
        padding.unwrap_or(entries[0] + entries[1]),
        columns,
        UNITS,
    );
    (of_words, of_positions)
}

/// Whether a row of the batch took the entry: a word, or a position, which come after the words.
#[cube]
fn took(ids: &Tensor<i32>, row: usize, entry: usize, words: usize, sequence: usize) -> bool {
    let mut index = usize::cast_from(ids[row]);
    if entry >= words {
        index = words + row % sequence;
    }
    index == entry
}

#[cube(launch)]
#[allow(clippy::too_many_arguments)]
fn rows_of_entries(
    gradient: &Tensor<f32>,
    ids: &Tensor<i32>,
    of_words: &mut Tensor<f32>,
    of_positions: &mut Tensor<f32>,
    rows: usize,
    sequence: usize,
    words: usize,
    positions: usize,
    padding: usize,
    #[comptime] columns: usize,
    #[comptime] units: usize,
) {
    let entry = cube_number();
    if entry >= words + positions {
        terminate!();
    }
    let unit = UNIT_POS_X as usize;
    let per_unit = comptime!(columns.div_ceil(units));
    let mut room = Shared::<[f32]>::new_slice(units);
    let mut sums = Array::<f32>::new(per_unit);
    #[unroll]
    for place in 0..per_unit {
        sums[place] = 0.0f32;
    }

    // The first and the last row that took it: counted from the end and from the begin, from 1, exact in a float32
    // for up to 2²⁴ rows.
    let mut from_end = 0usize;
    let mut from_begin = 0usize;
    let mut row = unit;
    while row < rows {
        if took(ids, row, entry, words, sequence) {
            from_begin = row + 1;
            if from_end == 0usize {
                from_end = rows - row;
            }
        }
        row += units;
    }
    let from_end = max_over_units(f32::cast_from(from_end), &mut room, units);
    let from_begin = max_over_units(f32::cast_from(from_begin), &mut room, units);
    let mut row = rows - usize::cast_from(from_end);
    let mut until = usize::cast_from(from_begin);
    let mut stride = 1usize;
    if entry >= words {
        stride = sequence;
    }
    if entry == padding {
        until = 0usize;
    }

    while row < until {
        if took(ids, row, entry, words, sequence) {
            add_to_sums(&mut sums, gradient, row * columns, columns, units);
        }
        row += stride;
    }
    if entry < words {
        write_sums(&sums, of_words, entry * columns, columns, units);
    } else {
        write_sums(
            &sums,
            of_positions,
            (entry - words) * columns,
            columns,
            units,
        );
    }
}

/// The gradient of the table of segments, of so many `entries`, for that of the sum. The segment `untrained` gets none.
pub fn types(
    gradient: CubeTensor,
    type_ids: CubeTensor,
    entries: usize,
    untrained: Option<usize>,
) -> CubeTensor {
    let ((gradient, of_sum), (type_ids, _)) = (matrix(gradient), matrix(type_ids));
    let columns = of_sum.columns;
    let (rows_per_group, count) = groups(of_sum.rows);
    let partial = unwritten(&gradient, [count, entries * columns]);
    let client = gradient.client.clone();
    rows_of_types::launch(
        &client,
        cubes(count * entries),
        units(UNITS),
        gradient.into_tensor_arg(),
        type_ids.into_tensor_arg(),
        partial.clone().into_tensor_arg(),
        of_sum.rows,
        rows_per_group,
        entries,
        untrained.unwrap_or(entries),
        columns,
        UNITS,
    );
    let [sums, _] = sum_groups(partial, count, [entries * columns, 0]);
    let shape = Shape::new([entries, columns]);
    CubeTensor::new_contiguous(sums.client, sums.device, shape, sums.handle, sums.dtype)
}

/// A cube adds up the rows of one segment in a group of rows.
#[cube(launch)]
#[allow(clippy::too_many_arguments)]
fn rows_of_types(
    gradient: &Tensor<f32>,
    type_ids: &Tensor<i32>,
    partial: &mut Tensor<f32>,
    rows: usize,
    rows_per_group: usize,
    entries: usize,
    untrained: usize,
    #[comptime] columns: usize,
    #[comptime] units: usize,
) {
    let cube = cube_number();
    let group = cube / entries;
    let entry = cube % entries;
    let from = group * rows_per_group;
    if from >= rows {
        terminate!();
    }
    let mut until = group_end(from, rows_per_group, rows);
    if entry == untrained {
        until = from;
    }
    let per_unit = comptime!(columns.div_ceil(units));
    let mut sums = Array::<f32>::new(per_unit);
    #[unroll]
    for place in 0..per_unit {
        sums[place] = 0.0f32;
    }
    for row in from..until {
        if usize::cast_from(type_ids[row]) == entry {
            add_to_sums(&mut sums, gradient, row * columns, columns, units);
        }
    }
    write_sums(&sums, partial, cube * columns, columns, units);
}

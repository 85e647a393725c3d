//! The cross-entropy of classes from logits, added up over the rows: one cube for a row, or for all rows where they are
//! small; and its gradient, one unit for a logit.
//!
//! # Source
//! With wanted shares wⱼ that add up to 1, `−Σ wⱼ log pⱼ = log Σ exp(xⱼ − m) − Σ wⱼ (xⱼ − m)`, m being the largest logit;
//! its derivative by xⱼ is pⱼ − wⱼ. Smoothing by a share s as in Szegedy et al. 2016, section 7: the label's class gets
//! 1 − s, and each of the C classes s / C more.

use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::sums::{group_end, sum_rows};
use super::{
    UNITS, cube_number, cubes, matrix, max_over_units, sum_over_units, unit_number, units,
    unwritten,
};

/// So many logits are left to one cube, which saves the launch that adds up what cubes leave.
const FEW: usize = 4096;
/// From so many columns on a row has more units.
const WIDE: usize = 1024;
/// The units of a wide row: as many as WebGPU promises.
const MANY_UNITS: usize = 256;
/// Below any finite logit.
const LOWEST: f32 = -3.4e38;

/// What the label's class gets of a row, and what each class gets.
#[derive(Clone, Copy, Debug)]
struct Shares {
    own: f32,
    each: f32,
}

impl Shares {
    fn new(smoothing: f32, columns: usize) -> Self {
        Self {
            own: 1.0 - smoothing,
            each: smoothing / columns.max(1) as f32,
        }
    }
}

/// The weighted sum of the rows' losses, `[1]`, and what [`backward`] needs: each row's largest logit and the logarithm of
/// its sum. logits [rows, columns]; targets [rows, 2]: a row's class, below 0 where it has none, and its weight.
pub fn forward(
    logits: CubeTensor,
    targets: CubeTensor,
    smoothing: f32,
) -> (CubeTensor, CubeTensor) {
    let ((logits, of_logits), (targets, _)) = (matrix(logits), matrix(targets));
    let (rows, columns) = (of_logits.rows, of_logits.columns);
    let rows_per_group = match rows * columns <= FEW {
        true => rows.max(1),
        false => 1,
    };
    let groups = rows.div_ceil(rows_per_group).max(1);
    let width = match columns >= WIDE {
        true => MANY_UNITS,
        false => UNITS,
    };
    let partial = unwritten(&logits, [groups]);
    let kept = unwritten(&logits, [rows, 2]);
    let shares = Shares::new(smoothing, columns);
    let client = logits.client.clone();
    cross_entropy_rows::launch(
        &client,
        cubes(groups),
        units(width),
        logits.into_tensor_arg(),
        targets.into_tensor_arg(),
        partial.clone().into_tensor_arg(),
        kept.clone().into_tensor_arg(),
        rows,
        rows_per_group,
        columns,
        shares.own,
        shares.each,
        width,
        smoothing != 0.0,
    );
    let total = match groups {
        1 => partial,
        _ => sum_rows(partial, 1, groups),
    };
    (total, kept)
}

#[cube(launch)]
#[allow(clippy::too_many_arguments)]
fn cross_entropy_rows(
    logits: &Tensor<f32>,
    targets: &Tensor<f32>,
    partial: &mut Tensor<f32>,
    kept: &mut Tensor<f32>,
    rows: usize,
    rows_per_group: usize,
    columns: usize,
    own_share: f32,
    each_share: f32,
    #[comptime] units: usize,
    #[comptime] smooths: bool,
) {
    let group = cube_number();
    let from = group * rows_per_group;
    if from >= rows {
        terminate!();
    }
    let until = group_end(from, rows_per_group, rows);
    let unit = UNIT_POS_X as usize;
    let mut room = Shared::<[f32]>::new_slice(units);
    let mut total = 0.0f32;
    for row in from..until {
        let start = row * columns;
        let label = targets[row * 2];
        // A row without a class is not read. All units pass the same barriers.
        let mut length = columns;
        if label < 0.0f32 {
            length = 0usize;
        }
        let mut largest = f32::new(LOWEST);
        let mut column = unit;
        while column < length {
            let value = logits[start + column];
            if value > largest {
                largest = value;
            }
            column += units;
        }
        let largest = max_over_units(largest, &mut room, units);

        let mut sum = 0.0f32;
        let mut plain = 0.0f32;
        let mut column = unit;
        while column < length {
            let centered = logits[start + column] - largest;
            sum += centered.exp();
            if comptime!(smooths) {
                plain += centered;
            }
            column += units;
        }
        let sum = sum_over_units(sum, &mut room, units);
        let mut of_all = 0.0f32;
        if comptime!(smooths) {
            of_all = sum_over_units(plain, &mut room, units);
        }
        if unit == 0usize && label >= 0.0f32 {
            let logarithm = sum.ln();
            let own = logits[start + usize::cast_from(label)] - largest;
            let mut loss = logarithm - own * own_share;
            if comptime!(smooths) {
                loss -= of_all * each_share;
            }
            total += loss * targets[row * 2 + 1];
            kept[row * 2] = largest;
            kept[row * 2 + 1] = logarithm;
        }
    }
    if unit == 0usize {
        partial[group] = total;
    }
}

/// The gradient of the logits for that of the sum, `[1]`.
pub fn backward(
    gradient: CubeTensor,
    logits: CubeTensor,
    targets: CubeTensor,
    kept: CubeTensor,
    smoothing: f32,
) -> CubeTensor {
    let ((gradient, _), (logits, of_logits)) = (matrix(gradient), matrix(logits));
    let ((targets, _), (kept, _)) = (matrix(targets), matrix(kept));
    let result = unwritten(&logits, logits.meta.shape().clone());
    let count = of_logits.rows * of_logits.columns;
    let shares = Shares::new(smoothing, of_logits.columns);
    let client = logits.client.clone();
    cross_entropy_backward::launch(
        &client,
        cubes(count.div_ceil(UNITS)),
        units(UNITS),
        gradient.into_tensor_arg(),
        logits.into_tensor_arg(),
        targets.into_tensor_arg(),
        kept.into_tensor_arg(),
        result.clone().into_tensor_arg(),
        count,
        of_logits.columns,
        shares.own,
        shares.each,
        UNITS,
    );
    result
}

#[cube(launch)]
#[allow(clippy::too_many_arguments)]
fn cross_entropy_backward(
    gradient: &Tensor<f32>,
    logits: &Tensor<f32>,
    targets: &Tensor<f32>,
    kept: &Tensor<f32>,
    result: &mut Tensor<f32>,
    count: usize,
    columns: usize,
    own_share: f32,
    each_share: f32,
    #[comptime] units: usize,
) {
    let at = unit_number(units);
    if at >= count {
        terminate!();
    }
    let row = at / columns;
    let column = at - row * columns;
    let label = targets[row * 2];
    let mut value = 0.0f32;
    if label >= 0.0f32 {
        value = (logits[at] - kept[row * 2] - kept[row * 2 + 1]).exp() - each_share;
        if column == usize::cast_from(label) {
            value -= own_share;
        }
        value *= gradient[0] * targets[row * 2 + 1];
    }
    result[at] = value;
}

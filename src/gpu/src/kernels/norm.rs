//! LayerNorm of `dropout(x) + residual`, forward and backward, one cube for a row or for a group of rows.
//!
//! # Source
//! Ba, Kiros and Hinton 2016; the gradient with respect to the sum is
//! `(g·γ − mean(g·γ) − x̂ · mean(g·γ·x̂)) / σ`.

use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::mask::{Dropped, factor};
use super::sums::{group_end, groups, sum_groups, write_sums};
use super::{UNITS, cube_number, cubes, matrix, sum_over_units, units, unwritten};

/// What a forward pass leaves.
pub struct Normalized {
    /// The shape of x.
    pub output: CubeTensor,
    /// Before scale and shift; the shape of x.
    pub normalized: CubeTensor,
    /// 1 / √(variance + ε), one for each row.
    pub inverse: CubeTensor,
}

/// `residual` is added to x; both have rows of as many columns as gamma and beta have elements.
pub fn forward(
    x: CubeTensor,
    residual: Option<CubeTensor>,
    gamma: CubeTensor,
    beta: CubeTensor,
    eps: f32,
    dropped: Option<Dropped>,
) -> Normalized {
    let (x, of_x) = matrix(x);
    let ((gamma, _), (beta, _)) = (matrix(gamma), matrix(beta));
    let adds = residual.is_some();
    let residual = residual.map_or_else(|| x.clone(), |residual| matrix(residual).0);
    let shape = x.meta.shape().clone();
    let output = unwritten(&x, shape.clone());
    let normalized = unwritten(&x, shape);
    let inverse = unwritten(&x, [of_x.rows]);
    let mask = Dropped::or_none(dropped);
    let client = x.client.clone();
    normalize_rows::launch(
        &client,
        cubes(of_x.rows),
        units(UNITS),
        x.into_tensor_arg(),
        residual.into_tensor_arg(),
        gamma.into_tensor_arg(),
        beta.into_tensor_arg(),
        output.clone().into_tensor_arg(),
        normalized.clone().into_tensor_arg(),
        inverse.clone().into_tensor_arg(),
        of_x.rows,
        eps,
        mask.first,
        mask.second,
        mask.threshold,
        mask.scale,
        of_x.columns,
        UNITS,
        adds,
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
fn normalize_rows(
    x: &Tensor<f32>,
    residual: &Tensor<f32>,
    gamma: &Tensor<f32>,
    beta: &Tensor<f32>,
    output: &mut Tensor<f32>,
    normalized: &mut Tensor<f32>,
    inverse: &mut Tensor<f32>,
    rows: usize,
    eps: f32,
    first: u32,
    second: u32,
    threshold: u32,
    scale: f32,
    #[comptime] columns: usize,
    #[comptime] units: usize,
    #[comptime] adds: bool,
    #[comptime] drops: bool,
) {
    let row = cube_number();
    if row >= rows {
        terminate!();
    }
    let unit = UNIT_POS_X as usize;
    let start = row * columns;
    let per_unit = comptime!(columns.div_ceil(units));
    let mut values = Array::<f32>::new(per_unit);

    let mut sum = 0.0f32;
    #[unroll]
    for place in 0..per_unit {
        let column = place * units + unit;
        let mut value = 0.0f32;
        if column < columns {
            let at = start + column;
            value = x[at];
            if comptime!(drops) {
                value *= factor(at, first, second, threshold, scale);
            }
            if comptime!(adds) {
                value += residual[at];
            }
        }
        values[place] = value;
        sum += value;
    }
    normalize_values(
        &values, sum, gamma, beta, output, normalized, inverse, row, eps, first, second, threshold,
        scale, columns, units, false,
    );
}

/// Normalizes a row that the units of a cube hold, each its share of the values, `sum` being that of the share; and drops
/// elements of the result.
#[cube]
#[allow(clippy::too_many_arguments)]
pub(super) fn normalize_values(
    values: &Array<f32>,
    sum: f32,
    gamma: &Tensor<f32>,
    beta: &Tensor<f32>,
    output: &mut Tensor<f32>,
    normalized: &mut Tensor<f32>,
    inverse: &mut Tensor<f32>,
    row: usize,
    eps: f32,
    first: u32,
    second: u32,
    threshold: u32,
    scale: f32,
    #[comptime] columns: usize,
    #[comptime] units: usize,
    #[comptime] drops: bool,
) {
    let unit = UNIT_POS_X as usize;
    let start = row * columns;
    let per_unit = comptime!(columns.div_ceil(units));
    let mut room = Shared::<[f32]>::new_slice(units);
    let count = comptime!(columns as f32);
    let mean = sum_over_units(sum, &mut room, units) / count;

    let mut squares = 0.0f32;
    #[unroll]
    for place in 0..per_unit {
        let column = place * units + unit;
        if column < columns {
            let centered = values[place] - mean;
            squares += centered * centered;
        }
    }
    let variance = sum_over_units(squares, &mut room, units) / count;
    let inverse_deviation = 1.0f32 / (variance + eps).sqrt();

    #[unroll]
    for place in 0..per_unit {
        let column = place * units + unit;
        if column < columns {
            let value = (values[place] - mean) * inverse_deviation;
            normalized[start + column] = value;
            let mut result = value * gamma[column] + beta[column];
            if comptime!(drops) {
                result *= factor(start + column, first, second, threshold, scale);
            }
            output[start + column] = result;
        }
    }
    if unit == 0usize {
        inverse[row] = inverse_deviation;
    }
}

/// The gradients of a forward pass.
pub struct Gradients {
    /// Of x; the sum's, where nothing was dropped.
    pub x: CubeTensor,
    /// Of the sum of x and residual, and so of the residual.
    pub sum: CubeTensor,
    /// `[columns]`
    pub gamma: CubeTensor,
    /// `[columns]`
    pub beta: CubeTensor,
}

/// Where elements are dropped, if they are.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// Of x, before the sum.
    Input(Option<Dropped>),
    /// Of the output.
    Output(Option<Dropped>),
}

/// The gradients of a forward pass for the gradient of its output.
pub fn backward(
    gradient: CubeTensor,
    normalized: CubeTensor,
    inverse: CubeTensor,
    gamma: CubeTensor,
    dropped: Place,
) -> Gradients {
    let (of_input, of_output) = match dropped {
        Place::Input(dropped) => (dropped, None),
        Place::Output(dropped) => (None, dropped),
    };
    let (gradient, of_x) = matrix(gradient);
    let ((normalized, _), (inverse, _), (gamma, _)) =
        (matrix(normalized), matrix(inverse), matrix(gamma));
    let shape = gradient.meta.shape().clone();
    let sum = unwritten(&gradient, shape.clone());
    let x = match of_input {
        Some(_) => unwritten(&gradient, shape),
        None => sum.clone(),
    };
    let (rows_per_group, count) = groups(of_x.rows);
    let partial = unwritten(&gradient, [count, 2 * of_x.columns]);
    let mask = Dropped::or_none(of_input.or(of_output));
    let client = gradient.client.clone();
    normalize_rows_backward::launch(
        &client,
        cubes(count),
        units(UNITS),
        gradient.into_tensor_arg(),
        normalized.into_tensor_arg(),
        inverse.into_tensor_arg(),
        gamma.into_tensor_arg(),
        sum.clone().into_tensor_arg(),
        x.clone().into_tensor_arg(),
        partial.clone().into_tensor_arg(),
        of_x.rows,
        rows_per_group,
        mask.first,
        mask.second,
        mask.threshold,
        mask.scale,
        of_x.columns,
        UNITS,
        of_input.is_some(),
        of_output.is_some(),
    );
    let columns = [of_x.columns; 2];
    let [gamma, beta] = sum_groups(partial, count, columns);
    Gradients {
        x,
        sum,
        gamma,
        beta,
    }
}

#[cube(launch)]
#[allow(clippy::too_many_arguments)]
fn normalize_rows_backward(
    gradient: &Tensor<f32>,
    normalized: &Tensor<f32>,
    inverse: &Tensor<f32>,
    gamma: &Tensor<f32>,
    of_sum: &mut Tensor<f32>,
    of_x: &mut Tensor<f32>,
    partial: &mut Tensor<f32>,
    rows: usize,
    rows_per_group: usize,
    first: u32,
    second: u32,
    threshold: u32,
    scale: f32,
    #[comptime] columns: usize,
    #[comptime] units: usize,
    #[comptime] drops: bool,
    #[comptime] drops_output: bool,
) {
    let group = cube_number();
    let from = group * rows_per_group;
    if from >= rows {
        terminate!();
    }
    let until = group_end(from, rows_per_group, rows);
    let unit = UNIT_POS_X as usize;
    let per_unit = comptime!(columns.div_ceil(units));
    let count = comptime!(columns as f32);
    let mut room = Shared::<[f32]>::new_slice(units);
    let mut of_gamma = Array::<f32>::new(per_unit);
    let mut of_beta = Array::<f32>::new(per_unit);
    #[unroll]
    for place in 0..per_unit {
        of_gamma[place] = 0.0f32;
        of_beta[place] = 0.0f32;
    }

    for row in from..until {
        let start = row * columns;
        let mut plain = 0.0f32;
        let mut along = 0.0f32;
        #[unroll]
        for place in 0..per_unit {
            let column = place * units + unit;
            if column < columns {
                let at = start + column;
                let g = kept(gradient, at, first, second, threshold, scale, drops_output);
                let value = normalized[at];
                of_gamma[place] += g * value;
                of_beta[place] += g;
                let scaled = g * gamma[column];
                plain += scaled;
                along += scaled * value;
            }
        }
        let plain = sum_over_units(plain, &mut room, units) / count;
        let along = sum_over_units(along, &mut room, units) / count;
        let inverse = inverse[row];
        #[unroll]
        for place in 0..per_unit {
            let column = place * units + unit;
            if column < columns {
                let at = start + column;
                let g = kept(gradient, at, first, second, threshold, scale, drops_output);
                let result = (g * gamma[column] - plain - normalized[at] * along) * inverse;
                of_sum[at] = result;
                if comptime!(drops) {
                    of_x[at] = result * factor(at, first, second, threshold, scale);
                }
            }
        }
    }

    let at = group * (2usize * columns);
    write_sums(&of_gamma, partial, at, columns, units);
    write_sums(&of_beta, partial, at + columns, columns, units);
}

/// The gradient of an element before it was dropped or kept.
#[cube]
fn kept(
    gradient: &Tensor<f32>,
    at: usize,
    first: u32,
    second: u32,
    threshold: u32,
    scale: f32,
    #[comptime] drops: bool,
) -> f32 {
    let mut g = gradient[at];
    if comptime!(drops) {
        g *= factor(at, first, second, threshold, scale);
    }
    g
}

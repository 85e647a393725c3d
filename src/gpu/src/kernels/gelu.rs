//! The exact GELU of `x + bias`, forward and backward.
//!
//! # Source
//! Hendrycks and Gimpel 2016: `x · Φ(x)`; its derivative is `Φ(x) + x · φ(x)`.

// CubeCL's `erf`; one that Rust's own library may have one day takes no part in kernels.
#![allow(unstable_name_collisions)]

use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::sums::{group_end, groups, sum_groups};
use super::{UNITS, cube_number, cubes, matrix, unit_number, units, unwritten};

/// 1 / √2
const ROOT: f32 = std::f32::consts::FRAC_1_SQRT_2;
/// 1 / √(2π)
const DENSITY: f32 = 0.398_942_3;

/// `bias` has as many elements as x has columns.
pub fn forward(x: CubeTensor, bias: CubeTensor) -> CubeTensor {
    let ((x, of_x), (bias, _)) = (matrix(x), matrix(bias));
    let output = unwritten(&x, x.meta.shape().clone());
    let count = of_x.rows * of_x.columns;
    let client = x.client.clone();
    bias_gelu::launch(
        &client,
        cubes(count.div_ceil(UNITS)),
        units(UNITS),
        x.into_tensor_arg(),
        bias.into_tensor_arg(),
        output.clone().into_tensor_arg(),
        count,
        of_x.columns,
        UNITS,
    );
    output
}

#[cube(launch)]
fn bias_gelu(
    x: &Tensor<f32>,
    bias: &Tensor<f32>,
    output: &mut Tensor<f32>,
    count: usize,
    columns: usize,
    #[comptime] units: usize,
) {
    let at = unit_number(units);
    if at >= count {
        terminate!();
    }
    let value = x[at] + bias[at % columns];
    let twice_normal = (value * ROOT).erf() + 1.0f32;
    output[at] = value * twice_normal * 0.5f32;
}

/// The gradients of x and bias.
pub fn backward(gradient: CubeTensor, x: CubeTensor, bias: CubeTensor) -> (CubeTensor, CubeTensor) {
    let ((gradient, _), (x, of_x), (bias, _)) = (matrix(gradient), matrix(x), matrix(bias));
    let result = unwritten(&x, x.meta.shape().clone());
    let (rows_per_group, count) = groups(of_x.rows);
    let partial = unwritten(&x, [count, of_x.columns]);
    let strips = of_x.columns.div_ceil(UNITS);
    let client = x.client.clone();
    bias_gelu_backward::launch(
        &client,
        cubes(strips * count),
        units(UNITS),
        gradient.into_tensor_arg(),
        x.into_tensor_arg(),
        bias.into_tensor_arg(),
        result.clone().into_tensor_arg(),
        partial.clone().into_tensor_arg(),
        of_x.rows,
        rows_per_group,
        of_x.columns,
        strips,
        UNITS,
    );
    let [of_bias, _] = sum_groups(partial, count, [of_x.columns, 0]);
    (result, of_bias)
}

/// A cube has a strip of `units` columns in a group of rows.
#[cube(launch)]
#[allow(clippy::too_many_arguments)]
fn bias_gelu_backward(
    gradient: &Tensor<f32>,
    x: &Tensor<f32>,
    bias: &Tensor<f32>,
    result: &mut Tensor<f32>,
    partial: &mut Tensor<f32>,
    rows: usize,
    rows_per_group: usize,
    columns: usize,
    strips: usize,
    #[comptime] units: usize,
) {
    let cube = cube_number();
    let group = cube / strips;
    let column = (cube % strips) * units + UNIT_POS_X as usize;
    let from = group * rows_per_group;
    if from >= rows || column >= columns {
        terminate!();
    }
    let until = group_end(from, rows_per_group, rows);
    let of_bias = bias[column];
    let mut sum = 0.0f32;
    for row in from..until {
        let at = row * columns + column;
        let value = x[at] + of_bias;
        let normal = ((value * ROOT).erf() + 1.0f32) * 0.5f32;
        let density = (value * value * -0.5f32).exp() * DENSITY;
        let changed = gradient[at] * (normal + value * density);
        result[at] = changed;
        sum += changed;
    }
    partial[group * columns + column] = sum;
}

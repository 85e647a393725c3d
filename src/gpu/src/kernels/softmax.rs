//! The probabilities of an attention: scale, mask, softmax and dropout of a row of scores by one cube; and back.

use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::mask::{Dropped, factor};
use super::{UNITS, cube_number, cubes, matrix, max_over_units, sum_over_units, units, unwritten};

/// The score of padding: finite, so that a row of padding only has equal probabilities, and so low that its probability
/// is 0 beside any real score.
const MASKED_SCORE: f32 = -3.0e38;

/// Probabilities before dropout, and after it (the same tensor where nothing is dropped). scores [B, N, S, T], mask
/// [B, T] with 0 for padding.
pub fn forward(
    scores: CubeTensor,
    mask: CubeTensor,
    scale: f32,
    dropped: Option<Dropped>,
) -> (CubeTensor, CubeTensor) {
    let ((scores, of_scores), (mask, of_mask)) = (matrix(scores), matrix(mask));
    let shape = scores.meta.shape().clone();
    let probabilities = unwritten(&scores, shape.clone());
    let kept = match dropped {
        Some(_) => unwritten(&scores, shape),
        None => probabilities.clone(),
    };
    let numbers = Dropped::or_none(dropped);
    let client = scores.client.clone();
    softmax_rows::launch(
        &client,
        cubes(of_scores.rows),
        units(UNITS),
        scores.into_tensor_arg(),
        mask.into_tensor_arg(),
        probabilities.clone().into_tensor_arg(),
        kept.clone().into_tensor_arg(),
        of_scores.rows,
        of_scores.columns,
        of_scores.rows / of_mask.rows.max(1),
        scale,
        numbers.first,
        numbers.second,
        numbers.threshold,
        numbers.scale,
        UNITS,
        dropped.is_some(),
    );
    (probabilities, kept)
}

#[cube]
fn score(
    scores: &Tensor<f32>,
    mask: &Tensor<f32>,
    start: usize,
    of_mask: usize,
    column: usize,
    scale: f32,
) -> f32 {
    let mut value = scores[start + column] * scale;
    if mask[of_mask + column] == 0.0f32 {
        value = f32::new(MASKED_SCORE);
    }
    value
}

#[cube(launch)]
#[allow(clippy::too_many_arguments)]
fn softmax_rows(
    scores: &Tensor<f32>,
    mask: &Tensor<f32>,
    probabilities: &mut Tensor<f32>,
    kept: &mut Tensor<f32>,
    rows: usize,
    columns: usize,
    rows_per_sequence: usize,
    scale: f32,
    first: u32,
    second: u32,
    threshold: u32,
    kept_scale: f32,
    #[comptime] units: usize,
    #[comptime] drops: bool,
) {
    let row = cube_number();
    if row >= rows {
        terminate!();
    }
    let unit = UNIT_POS_X as usize;
    let start = row * columns;
    let of_mask = (row / rows_per_sequence) * columns;
    let mut room = Shared::<[f32]>::new_slice(units);

    let mut largest = f32::new(MASKED_SCORE);
    let mut column = unit;
    while column < columns {
        let value = score(scores, mask, start, of_mask, column, scale);
        if value > largest {
            largest = value;
        }
        column += units;
    }
    let largest = max_over_units(largest, &mut room, units);

    let mut sum = 0.0f32;
    let mut column = unit;
    while column < columns {
        sum += (score(scores, mask, start, of_mask, column, scale) - largest).exp();
        column += units;
    }
    let sum = sum_over_units(sum, &mut room, units);

    let mut column = unit;
    while column < columns {
        let value = score(scores, mask, start, of_mask, column, scale);
        let probability = (value - largest).exp() / sum;
        let at = start + column;
        probabilities[at] = probability;
        if comptime!(drops) {
            kept[at] = probability * factor(at, first, second, threshold, kept_scale);
        }
        column += units;
    }
}

/// The gradient of the scores for the gradient of the probabilities after dropout.
pub fn backward(
    gradient: CubeTensor,
    probabilities: CubeTensor,
    mask: CubeTensor,
    scale: f32,
    dropped: Option<Dropped>,
) -> CubeTensor {
    let ((gradient, of_scores), (probabilities, _)) = (matrix(gradient), matrix(probabilities));
    let (mask, of_mask) = matrix(mask);
    let result = unwritten(&gradient, gradient.meta.shape().clone());
    let numbers = Dropped::or_none(dropped);
    let client = gradient.client.clone();
    softmax_rows_backward::launch(
        &client,
        cubes(of_scores.rows),
        units(UNITS),
        gradient.into_tensor_arg(),
        probabilities.into_tensor_arg(),
        mask.into_tensor_arg(),
        result.clone().into_tensor_arg(),
        of_scores.rows,
        of_scores.columns,
        of_scores.rows / of_mask.rows.max(1),
        scale,
        numbers.first,
        numbers.second,
        numbers.threshold,
        numbers.scale,
        UNITS,
        dropped.is_some(),
    );
    result
}

#[cube(launch)]
#[allow(clippy::too_many_arguments)]
fn softmax_rows_backward(
    gradient: &Tensor<f32>,
    probabilities: &Tensor<f32>,
    mask: &Tensor<f32>,
    result: &mut Tensor<f32>,
    rows: usize,
    columns: usize,
    rows_per_sequence: usize,
    scale: f32,
    first: u32,
    second: u32,
    threshold: u32,
    kept_scale: f32,
    #[comptime] units: usize,
    #[comptime] drops: bool,
) {
    let row = cube_number();
    if row >= rows {
        terminate!();
    }
    let unit = UNIT_POS_X as usize;
    let start = row * columns;
    let of_mask = (row / rows_per_sequence) * columns;
    let mut room = Shared::<[f32]>::new_slice(units);

    let mut sum = 0.0f32;
    let mut column = unit;
    while column < columns {
        let at = start + column;
        let mut of_probability = gradient[at];
        if comptime!(drops) {
            of_probability *= factor(at, first, second, threshold, kept_scale);
        }
        sum += of_probability * probabilities[at];
        column += units;
    }
    let sum = sum_over_units(sum, &mut room, units);

    let mut column = unit;
    while column < columns {
        let at = start + column;
        let mut of_probability = gradient[at];
        if comptime!(drops) {
            of_probability *= factor(at, first, second, threshold, kept_scale);
        }
        let mut value = (of_probability - sum) * probabilities[at] * scale;
        // The score of padding is a constant.
        if mask[of_mask + column] == 0.0f32 {
            value = 0.0f32;
        }
        result[at] = value;
        column += units;
    }
}

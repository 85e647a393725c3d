//! Layer normalization of `x · mask + residual`, forward and backward. T rows, H columns.

use super::vectorized::{LANES, multiply_add, total, vectorized};
use super::{in_blocks, sums};
use crate::ops::key::Mask;

/// What is normalized: `x`, with optional dropout and residual. Slices of equal length.
#[derive(Clone, Copy)]
pub(in crate::ops) struct Input<'a> {
    pub x: &'a [f32],
    pub mask: Option<Mask>,
    pub residual: Option<&'a [f32]>,
}

/// What the backward pass needs: the normalized rows [T, H] and 1/√(variance + eps) of each row [T].
#[derive(Clone, Debug)]
pub(in crate::ops) struct Kept {
    pub normalized: Vec<f32>,
    pub inverse_deviation: Vec<f32>,
}

vectorized! {
    fn multiply_masked(x: &[f32], first: u32, mask: Mask, sum: &mut [f32]) {
        for (i, (sum, x)) in sum.iter_mut().zip(x).enumerate() {
            *sum = x * mask.factor(first.wrapping_add(i as u32));
        }
    }
}

vectorized! {
    fn add(x: &[f32], sum: &mut [f32]) {
        for (sum, x) in sum.iter_mut().zip(x) {
            *sum += x;
        }
    }
}

vectorized! {
    /// Normalizes `row` in place, writes `row · gamma + beta`, returns 1/√(variance + eps).
    fn normalize(row: &mut [f32], gamma: &[f32], beta: &[f32], eps: f32, y: &mut [f32]) -> f32 {
        let count = row.len() as f32;
        let (chunks, rest) = row.as_chunks::<LANES>();
        let mut sum = [0.0; LANES];
        for chunk in chunks {
            for (sum, value) in sum.iter_mut().zip(chunk) {
                *sum += value;
            }
        }
        let mean = (total(sum) + rest.iter().sum::<f32>()) / count;
        let mut squares = [0.0; LANES];
        for chunk in chunks {
            for (sum, value) in squares.iter_mut().zip(chunk) {
                let centered = value - mean;
                *sum = multiply_add::<FMA>(centered, centered, *sum);
            }
        }
        let rest: f32 = rest.iter().map(|value| (value - mean) * (value - mean)).sum();
        let inverse = 1.0 / ((total(squares) + rest) / count + eps).sqrt();
        for (((y, value), gamma), beta) in y.iter_mut().zip(row).zip(gamma).zip(beta) {
            *value = (*value - mean) * inverse;
            *y = multiply_add::<FMA>(*value, *gamma, *beta);
        }
        inverse
    }
}

vectorized! {
    /// The gradient of one row before normalization; adds to the gradients of gamma and beta.
    fn row_backward(
        gradient: &[f32],
        normalized: &[f32],
        inverse: f32,
        gamma: &[f32],
        gamma_gradient: &mut [f32],
        beta_gradient: &mut [f32],
        result: &mut [f32],
    ) {
        let columns = result.len();
        let (gradient, normalized, gamma) =
            (&gradient[..columns], &normalized[..columns], &gamma[..columns]);
        let (gamma_gradient, beta_gradient) =
            (&mut gamma_gradient[..columns], &mut beta_gradient[..columns]);
        let (mut sum, mut along) = ([0.0; LANES], [0.0; LANES]);
        let whole = columns - columns % LANES;
        for start in (0..whole).step_by(LANES) {
            for lane in 0..LANES {
                let i = start + lane;
                gamma_gradient[i] =
                    multiply_add::<FMA>(gradient[i], normalized[i], gamma_gradient[i]);
                beta_gradient[i] += gradient[i];
                result[i] = gradient[i] * gamma[i];
                sum[lane] += result[i];
                along[lane] = multiply_add::<FMA>(result[i], normalized[i], along[lane]);
            }
        }
        let (mut sum, mut along) = (total(sum), total(along));
        for i in whole..columns {
            gamma_gradient[i] = multiply_add::<FMA>(gradient[i], normalized[i], gamma_gradient[i]);
            beta_gradient[i] += gradient[i];
            result[i] = gradient[i] * gamma[i];
            sum += result[i];
            along = multiply_add::<FMA>(result[i], normalized[i], along);
        }
        let (mean, along) = (sum / columns as f32, along / columns as f32);
        for (result, normalized) in result.iter_mut().zip(normalized) {
            *result = inverse * (*result - multiply_add::<FMA>(*normalized, along, mean));
        }
    }
}

impl Input<'_> {
    /// Elements `first..first + sum.len()` of `x · mask + residual`.
    fn sum(self, first: usize, sum: &mut [f32]) {
        let range = first..first + sum.len();
        let x = &self.x[range.clone()];
        match self.mask {
            Some(mask) => multiply_masked(x, first as u32, mask, sum),
            None => sum.copy_from_slice(x),
        }
        if let Some(residual) = self.residual {
            add(&residual[range], sum);
        }
    }
}

/// The normalized, scaled and shifted rows [T, H].
pub(in crate::ops) fn forward(input: Input, gamma: &[f32], beta: &[f32], eps: f64) -> Vec<f32> {
    let columns = gamma.len();
    let block = sums::ROWS * columns.max(1);
    let ([y], _) = in_blocks(input.x.len(), block, |index, [y]: [&mut [f32]; 1]| {
        let mut sum = vec![0.0; columns];
        for (row, y) in y.chunks_exact_mut(columns).enumerate() {
            input.sum(index * block + row * columns, &mut sum);
            normalize(&mut sum, gamma, beta, eps as f32, y);
        }
    });
    y
}

/// [`forward`], and what the backward pass needs.
pub(in crate::ops) fn forward_keeping(
    input: Input,
    gamma: &[f32],
    beta: &[f32],
    eps: f64,
) -> (Vec<f32>, Kept) {
    let columns = gamma.len();
    let block = sums::ROWS * columns.max(1);
    let ([y, normalized], inverse_deviations) =
        in_blocks(input.x.len(), block, |index, [y, sum]: [&mut [f32]; 2]| {
            input.sum(index * block, sum);
            let rows = sum
                .chunks_exact_mut(columns)
                .zip(y.chunks_exact_mut(columns));
            rows.map(|(sum, y)| normalize(sum, gamma, beta, eps as f32, y))
                .collect::<Vec<f32>>()
        });
    (
        y,
        Kept {
            normalized,
            inverse_deviation: inverse_deviations.concat(),
        },
    )
}

/// The gradients of a normalization.
pub(in crate::ops) struct Gradients {
    /// Of the residual, and of x where nothing was dropped, [T, H].
    pub sum: Vec<f32>,
    /// Of x where something was dropped, [T, H].
    pub x: Option<Vec<f32>>,
    pub gamma: Vec<f32>,
    pub beta: Vec<f32>,
}

/// All gradients, from the output's gradient [T, H].
pub(in crate::ops) fn backward(
    gradient: &[f32],
    normalized: &[f32],
    inverse_deviation: &[f32],
    gamma: &[f32],
    mask: Option<Mask>,
) -> Gradients {
    let columns = gamma.len();
    let block = sums::ROWS * columns.max(1);
    // Writes a block of the gradient of the sum; returns the block's gradient of gamma, then that of beta.
    let of_block = |index: usize, sum: &mut [f32]| {
        let first = index * block;
        let mut partial = vec![0.0; 2 * columns];
        let (gamma_gradient, beta_gradient) = partial.split_at_mut(columns);
        for (row, result) in sum.chunks_exact_mut(columns).enumerate() {
            let range = first + row * columns..first + (row + 1) * columns;
            row_backward(
                &gradient[range.clone()],
                &normalized[range],
                inverse_deviation[index * sums::ROWS + row],
                gamma,
                gamma_gradient,
                beta_gradient,
                result,
            );
        }
        partial
    };
    let (sum, x, partial) = match mask {
        None => {
            let ([sum], partial) =
                in_blocks(gradient.len(), block, |index, [sum]| of_block(index, sum));
            (sum, None, partial)
        }
        Some(mask) => {
            let ([sum, x], partial) = in_blocks(gradient.len(), block, |index, [sum, x]| {
                let partial = of_block(index, sum);
                multiply_masked(sum, (index * block) as u32, mask, x);
                partial
            });
            (sum, Some(x), partial)
        }
    };
    let mut gamma = sums::in_order(partial, 2 * columns);
    let beta = gamma.split_off(columns);
    Gradients {
        sum,
        x,
        gamma,
        beta,
    }
}

//! The exact GELU, `y = x · Φ(x)`, and its derivative `Φ(x) + x · φ(x)`.
//!
//! In training both are computed at once, since they share an exponential; the derivative takes the
//! input's place, and the backward pass is one multiplication.

use super::vectorized::{multiply_add, normal, vectorized};
use super::{ELEMENTS, in_blocks};

vectorized! {
    /// `y = gelu(x)`
    fn forward(x: &[f32], y: &mut [f32]) {
        for (y, &x) in y.iter_mut().zip(x) {
            *y = x * normal::<FMA>(x).0;
        }
    }
}

vectorized! {
    /// `y = gelu(x)`, and `x` becomes the derivative there.
    fn forward_with_derivative(x: &mut [f32], y: &mut [f32]) {
        for (y, x) in y.iter_mut().zip(x) {
            let (cdf, pdf) = normal::<FMA>(*x);
            *y = *x * cdf;
            *x = multiply_add::<FMA>(*x, pdf, cdf);
        }
    }
}

vectorized! {
    /// A row becomes `gelu(row + bias)`.
    fn biased(row: &mut [f32], bias: &[f32]) {
        for (value, bias) in row.iter_mut().zip(bias) {
            let x = *value + bias;
            *value = x * normal::<FMA>(x).0;
        }
    }
}

vectorized! {
    /// `y = gelu(x + bias)`, and `x` becomes the derivative; for one row.
    fn biased_with_derivative(x: &mut [f32], bias: &[f32], y: &mut [f32]) {
        for ((y, x), bias) in y.iter_mut().zip(x).zip(bias) {
            let sum = *x + bias;
            let (cdf, pdf) = normal::<FMA>(sum);
            *y = sum * cdf;
            *x = multiply_add::<FMA>(sum, pdf, cdf);
        }
    }
}

vectorized! {
    fn multiply(a: &[f32], b: &[f32], y: &mut [f32]) {
        for ((y, a), b) in y.iter_mut().zip(a).zip(b) {
            *y = a * b;
        }
    }
}

/// `gelu(x)`.
pub(in crate::ops) fn gelu(x: &[f32]) -> Vec<f32> {
    let ([y], _) = in_blocks(x.len(), ELEMENTS, |block, [y]| {
        forward(part(x, block, y.len()), y);
    });
    y
}

/// `gelu(x)` and its derivative.
pub(in crate::ops) fn with_derivative(x: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let ([y, derivative], _) = in_blocks(
        x.len(),
        ELEMENTS,
        |block, [y, derivative]: [&mut [f32]; 2]| {
            derivative.copy_from_slice(part(x, block, y.len()));
            forward_with_derivative(derivative, y);
        },
    );
    (y, derivative)
}

/// The gradient of the input: the output's times the derivative.
pub(in crate::ops) fn backward(gradient: &[f32], derivative: &[f32]) -> Vec<f32> {
    let ([result], _) = in_blocks(gradient.len(), ELEMENTS, |block, [result]| {
        let length = result.len();
        multiply(
            part(gradient, block, length),
            part(derivative, block, length),
            result,
        );
    });
    result
}

/// Block `block` of a slice.
fn part(x: &[f32], block: usize, length: usize) -> &[f32] {
    &x[block * ELEMENTS..block * ELEMENTS + length]
}

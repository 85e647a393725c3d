//! The exact GELU, `y = x · Φ(x)`, and its derivative `Φ(x) + x · φ(x)`.
//!
//! In training both are computed at once, since they share an exponential; the derivative takes the
//! input's place, and the backward pass is one multiplication.

use rayon::prelude::*;

use super::vectorized::{multiply_add, normal, vectorized};
use super::{ELEMENTS, buffer};

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
    /// The same with `bias` added to `x` first; for one row.
    fn biased(x: &[f32], bias: &[f32], y: &mut [f32]) {
        for ((y, x), bias) in y.iter_mut().zip(x).zip(bias) {
            let x = x + bias;
            *y = x * normal::<FMA>(x).0;
        }
    }
}

vectorized! {
    /// [`biased`], and `x` becomes the derivative.
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
    let mut y = buffer(x.len());
    y.par_chunks_mut(ELEMENTS)
        .zip(x.par_chunks(ELEMENTS))
        .for_each(|(y, x)| forward(x, y));
    y
}

/// `gelu(x)` and its derivative.
pub(in crate::ops) fn with_derivative(x: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let (mut y, mut derivative) = (buffer(x.len()), buffer(x.len()));
    let outputs = y
        .par_chunks_mut(ELEMENTS)
        .zip(derivative.par_chunks_mut(ELEMENTS));
    outputs
        .zip(x.par_chunks(ELEMENTS))
        .for_each(|((y, derivative), x)| {
            derivative.copy_from_slice(x);
            forward_with_derivative(derivative, y);
        });
    (y, derivative)
}

/// The gradient of the input: the output's times the derivative.
pub(in crate::ops) fn backward(gradient: &[f32], derivative: &[f32]) -> Vec<f32> {
    let mut result = buffer(gradient.len());
    let inputs = gradient
        .par_chunks(ELEMENTS)
        .zip(derivative.par_chunks(ELEMENTS));
    result
        .par_chunks_mut(ELEMENTS)
        .zip(inputs)
        .for_each(|(result, (gradient, derivative))| {
            multiply(gradient, derivative, result);
        });
    result
}

//! Dense layers with products of bfloat16 numbers, forward and backward. Weights, biases and gradients that leave an
//! operation are float32; shapes and formulas are those of the float32 form (`cpu::linear`). The weight is rounded and
//! packed once for a forward pass and once for a backward pass, where it is read in the other direction.

use std::mem::MaybeUninit;

use super::super::product::MatrixMut;
use super::super::unwritten::cleared;
use super::super::vectorized::vectorized;
use super::super::{Unwritten, gelu};
use super::number::{Rows, encode, stride};
use super::panels::{Left, Panels, Stacked};
use super::product::{height, product, through};

vectorized! {
    fn add(row: &mut [f32], bias: &[f32]) {
        for (value, bias) in row.iter_mut().zip(bias) {
            *value += bias;
        }
    }
}

/// The weights [O, I] of one or several layers that read the same input: their outputs lie side by side.
#[derive(Clone, Copy)]
pub(in crate::ops) struct Weights<'a> {
    pub parts: &'a [&'a [f32]],
    pub inputs: usize,
    /// Of each part.
    pub outputs: usize,
}

impl Weights<'_> {
    fn stacked(&self) -> Stacked<'_> {
        Stacked {
            parts: self.parts,
            rows: self.outputs,
            columns: self.inputs,
            stride: self.inputs,
        }
    }

    /// The outputs of all parts.
    fn all(&self) -> usize {
        self.parts.len() * self.outputs
    }
}

/// `x · weightᵀ + bias`, [T, O].
pub(in crate::ops) fn forward(x: &Rows, weights: Weights, bias: &[f32]) -> Vec<f32> {
    let (rows, outputs) = (x.rows(), weights.all());
    let mut y = Unwritten::new(rows * outputs);
    let height = height(rows);
    let bands = y.elements().chunks_mut((height * outputs).max(1)).collect();
    let panels = Panels::of_transposed(&weights.stacked());
    let write =
        |band: &mut &mut [MaybeUninit<f32>], row: usize, column: usize, sums: &mut [f32]| {
            let start = row * outputs + column;
            let into = band[start..start + sums.len()].write_copy_of_slice(sums);
            add(into, &bias[column..]);
        };
    if outputs > 0 {
        through(Left::rows(x), &panels, bands, height, write);
    }
    // SAFETY: `through` has every element of the product written.
    unsafe { y.written() }
}

/// [`forward`], rounded.
pub(in crate::ops) fn forward_rounded(x: &Rows, weights: Weights, bias: &[f32]) -> Rows {
    let (rows, outputs) = (x.rows(), weights.all());
    let between = stride(outputs);
    let mut y = Unwritten::new(rows * between);
    let height = height(rows);
    let bands = y.elements().chunks_mut((height * between).max(1)).collect();
    let panels = Panels::of_transposed(&weights.stacked());
    let write =
        |band: &mut &mut [MaybeUninit<u16>], row: usize, column: usize, sums: &mut [f32]| {
            add(sums, &bias[column..]);
            encode(sums, part_of_row(band, row, column, sums.len(), outputs));
        };
    if outputs > 0 {
        through(Left::rows(x), &panels, bands, height, write);
    }
    // SAFETY: `through` has every element of the product written, and `part_of_row` writes the padding.
    Rows::new(unsafe { y.written() }, rows, outputs)
}

/// Elements of a row of `columns`, cleared; the padding after the last column is cleared with it.
fn part_of_row(
    band: &mut [MaybeUninit<u16>],
    row: usize,
    column: usize,
    length: usize,
    columns: usize,
) -> &mut [u16] {
    let between = stride(columns);
    let end = if column + length == columns {
        between
    } else {
        column + length
    };
    cleared(&mut band[row * between + column..row * between + end])
}

/// `gelu(x · weightᵀ + bias)`, and the GELU's derivative if it is asked for.
pub(in crate::ops) fn forward_gelu(
    x: &Rows,
    weights: Weights,
    bias: &[f32],
    keep_derivative: bool,
) -> (Vec<f32>, Option<Rows>) {
    type Band<'a> = (
        &'a mut [MaybeUninit<f32>],
        Option<&'a mut [MaybeUninit<u16>]>,
    );
    let (rows, outputs) = (x.rows(), weights.all());
    let between = stride(outputs);
    let mut y = Unwritten::new(rows * outputs);
    let mut derivative = keep_derivative.then(|| Unwritten::new(rows * between));
    let height = height(rows);
    let mut of_derivative = derivative
        .as_mut()
        .map(|derivative| derivative.elements().chunks_mut((height * between).max(1)));
    let bands = y.elements().chunks_mut((height * outputs).max(1));
    let bands: Vec<Band> = bands
        .map(|y| (y, of_derivative.as_mut().and_then(Iterator::next)))
        .collect();
    let panels = Panels::of_transposed(&weights.stacked());
    let write = |(y, derivative): &mut Band, row: usize, column: usize, sums: &mut [f32]| {
        let start = row * outputs + column;
        let y = y[start..start + sums.len()].write_copy_of_slice(sums);
        let bias = &bias[column..];
        match derivative {
            None => gelu::biased(y, bias),
            Some(derivative) => {
                gelu::biased_with_derivative(sums, bias, y);
                encode(
                    sums,
                    part_of_row(derivative, row, column, sums.len(), outputs),
                );
            }
        }
    };
    if outputs > 0 {
        through(Left::rows(x), &panels, bands, height, write);
    }
    // SAFETY: `through` has every element of the product written, and `part_of_row` writes the padding.
    let derivative = derivative.map(|it| Rows::new(unsafe { it.written() }, rows, outputs));
    // SAFETY: as above.
    (unsafe { y.written() }, derivative)
}

/// The gradient of x, [T, I].
pub(in crate::ops) fn backward_x(gradient: &Rows, weights: Weights) -> Vec<f32> {
    let panels = Panels::of(&weights.stacked());
    let rows = gradient.rows();
    matrix(Left::rows(gradient), &panels, rows, weights.inputs)
}

/// The gradient of the weight, [O, I].
pub(in crate::ops) fn backward_weight(gradient: &Rows, x: &Rows) -> Vec<f32> {
    let (of_gradient, of_x) = (Panels::of(gradient), Panels::of(x));
    let left = Left::Panels(&of_gradient);
    matrix(left, &of_x, gradient.columns(), x.columns())
}

fn matrix(left: Left, right: &Panels, rows: usize, columns: usize) -> Vec<f32> {
    let mut result = Unwritten::new(rows * columns);
    let into = MatrixMut::new(result.elements(), rows, columns);
    product(left, right, into);
    // SAFETY: `product` writes every element.
    unsafe { result.written() }
}

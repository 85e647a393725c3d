//! Dense layers, alone and followed by the GELU, forward and backward.
//!
//! For `y = x · Wᵀ + b` and the gradient g of the loss with respect to y, the gradients are `g · W` for x, `gᵀ · x` for W
//! and the sum of the rows of g for b. Shapes: T rows (tokens), I inputs, O outputs; x [T, I], W [O, I], b `[O]`, y and
//! g [T, O].

use super::product::{Before, Matrix, MatrixMut, blocks, blocks_after};
use super::transpose::transpose;
use super::vectorized::vectorized;
use super::{Unwritten, gelu, sums};

vectorized! {
    fn add(row: &mut [f32], bias: &[f32]) {
        for (value, bias) in row.iter_mut().zip(bias) {
            *value += bias;
        }
    }
}

/// A layer's parameters: weight [O, I] and bias `[O]`.
#[derive(Clone, Copy)]
pub(in crate::ops) struct Layer<'a> {
    pub weight: &'a [f32],
    pub bias: &'a [f32],
    pub inputs: usize,
    pub outputs: usize,
}

/// The number of rows from which transposing the weight saves time: that of three blocks of a product, each of which packs
/// the weight anew.
const MANY: usize = 2 * super::product::ROWS + 1;

impl Layer<'_> {
    fn matrix(&self) -> Matrix<'_> {
        Matrix::new(self.weight, self.outputs, self.inputs)
    }

    /// The weight transposed in memory, if there are enough rows to multiply with it.
    fn turned(&self, rows: usize) -> Option<Vec<f32>> {
        (rows >= MANY).then(|| transpose(self.weight, self.inputs))
    }

    /// [I, O]
    fn transposed<'a>(&'a self, turned: &'a Option<Vec<f32>>) -> Matrix<'a> {
        match turned {
            Some(turned) => Matrix::new(turned, self.inputs, self.outputs),
            None => self.matrix().transposed(),
        }
    }
}

/// `x · weightᵀ + bias`, [T, O].
pub(in crate::ops) fn forward(x: &[f32], rows: usize, layer: Layer) -> Vec<f32> {
    let mut y = Unwritten::new(rows * layer.outputs);
    let into = MatrixMut::new(y.elements(), rows, layer.outputs);
    forward_into(x, rows, layer, into);
    // SAFETY: `forward_into` writes every element.
    unsafe { y.written() }
}

/// [`forward`] into a matrix [T, O] of the caller. Writes every element of it.
pub(in crate::ops) fn forward_into(x: &[f32], rows: usize, layer: Layer, into: MatrixMut) {
    let x = Matrix::new(x, rows, layer.inputs);
    let turned = layer.turned(rows);
    let add_bias = |_: usize, column: usize, row: &mut [f32]| add(row, &layer.bias[column..]);
    blocks(x, layer.transposed(&turned), into, add_bias);
}

/// `gelu(x · weightᵀ + bias)`.
pub(in crate::ops) fn forward_gelu(x: &[f32], rows: usize, layer: Layer) -> Vec<f32> {
    let mut y = Unwritten::new(rows * layer.outputs);
    let into = MatrixMut::new(y.elements(), rows, layer.outputs);
    let x = Matrix::new(x, rows, layer.inputs);
    let turned = layer.turned(rows);
    let activate =
        |_: usize, column: usize, row: &mut [f32]| gelu::biased(row, &layer.bias[column..]);
    blocks(x, layer.transposed(&turned), into, activate);
    // SAFETY: `blocks` writes every element.
    unsafe { y.written() }
}

/// [`forward_gelu`], and the GELU's derivative.
pub(in crate::ops) fn forward_gelu_with_derivative(
    x: &[f32],
    rows: usize,
    layer: Layer,
) -> (Vec<f32>, Vec<f32>) {
    let outputs = layer.outputs;
    let (mut y, mut sums) = (
        Unwritten::new(rows * outputs),
        Unwritten::new(rows * outputs),
    );
    let result = MatrixMut::new(y.elements(), rows, outputs);
    let into = MatrixMut::new(sums.elements(), rows, outputs);
    let x = Matrix::new(x, rows, layer.inputs);
    let turned = layer.turned(rows);
    let activate = |index: usize, column: usize, row: &mut [f32]| {
        // SAFETY: `blocks` passes every element once, so no two of these parts share one.
        let mut part = unsafe { result.part((index, 1), (column, row.len())) };
        let y = part.write_row(0, row);
        gelu::biased_with_derivative(row, &layer.bias[column..], y);
    };
    blocks(x, layer.transposed(&turned), into, activate);
    // SAFETY: `blocks` writes every element of `sums`, and passes each to `activate`, which writes `y` there.
    unsafe { (y.written(), sums.written()) }
}

/// The gradient of x, [T, I], from columns `first..first + O` of rows `stride` apart.
pub(in crate::ops) fn backward_x(
    gradient: &[f32],
    rows: usize,
    layer: Layer,
    first: usize,
    stride: usize,
) -> Vec<f32> {
    let mut result = Unwritten::new(rows * layer.inputs);
    let into = MatrixMut::new(result.elements(), rows, layer.inputs);
    let gradient = Matrix::part(gradient, rows, layer.outputs, stride, first);
    blocks(gradient, layer.matrix(), into, |_, _, _| {});
    // SAFETY: `blocks` writes every element.
    unsafe { result.written() }
}

/// Adds [`backward_x`] to `result`.
pub(in crate::ops) fn add_backward_x(
    gradient: &[f32],
    rows: usize,
    layer: Layer,
    first: usize,
    stride: usize,
    result: &mut [f32],
) {
    let into = MatrixMut::over(result, rows, layer.inputs);
    let gradient = Matrix::part(gradient, rows, layer.outputs, stride, first);
    // SAFETY: `result` is a slice of numbers.
    unsafe { blocks_after(Before::Added, gradient, layer.matrix(), into, |_, _, _| {}) }
}

/// The gradient of the weight, [O, I], from columns `first..first + outputs` of rows `stride` apart.
pub(in crate::ops) fn backward_weight(
    gradient: &[f32],
    x: &[f32],
    rows: usize,
    (inputs, outputs): (usize, usize),
    first: usize,
    stride: usize,
) -> Vec<f32> {
    let mut result = Unwritten::new(outputs * inputs);
    let into = MatrixMut::new(result.elements(), outputs, inputs);
    let gradient = Matrix::part(gradient, rows, outputs, stride, first);
    let x = Matrix::new(x, rows, inputs);
    blocks(gradient.transposed(), x, into, |_, _, _| {});
    // SAFETY: `blocks` writes every element.
    unsafe { result.written() }
}

/// The gradient of the bias, `[O]`.
pub(in crate::ops) fn backward_bias(gradient: &[f32], outputs: usize) -> Vec<f32> {
    sums::over_rows(gradient, outputs)
}

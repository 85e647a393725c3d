//! Dense layers, alone and followed by the GELU. T rows (tokens), I inputs, O outputs.

use super::product::{Before, Matrix, MatrixMut, blocks};
use super::transpose::transpose;
use super::vectorized::vectorized;
use super::{buffer, gelu, sums};

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

/// Rows from which turning the weight around pays.
const MANY: usize = 64;

impl Layer<'_> {
    fn matrix(&self) -> Matrix<'_> {
        Matrix::new(self.weight, self.outputs, self.inputs)
    }

    /// The weight turned around, where there are enough rows to multiply with it.
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
    let mut y = buffer(rows * layer.outputs);
    let into = MatrixMut::new(&mut y, rows, layer.outputs);
    forward_into(x, rows, layer, into);
    y
}

/// The same, into a matrix [T, O] that is there already.
pub(in crate::ops) fn forward_into(x: &[f32], rows: usize, layer: Layer, into: MatrixMut) {
    let x = Matrix::new(x, rows, layer.inputs);
    let turned = layer.turned(rows);
    blocks(
        x,
        layer.transposed(&turned),
        into,
        Before::Ignored,
        |_, column, row| {
            add(row, &layer.bias[column..]);
        },
    );
}

/// `gelu(x · weightᵀ + bias)`, and the GELU's derivative if it is asked for.
pub(in crate::ops) fn forward_gelu(
    x: &[f32],
    rows: usize,
    layer: Layer,
    keep_derivative: bool,
) -> (Vec<f32>, Vec<f32>) {
    let outputs = layer.outputs;
    let (mut y, mut sums) = (buffer(rows * outputs), buffer(rows * outputs));
    let result = MatrixMut::new(&mut y, rows, outputs);
    let into = MatrixMut::new(&mut sums, rows, outputs);
    let x = Matrix::new(x, rows, layer.inputs);
    let turned = layer.turned(rows);
    blocks(
        x,
        layer.transposed(&turned),
        into,
        Before::Ignored,
        |index, column, row| {
            // SAFETY: `blocks` passes every element once, so no two of these parts share one.
            let mut part = unsafe { result.part((index, 1), (column, row.len())) };
            let y = part.row(0);
            if keep_derivative {
                gelu::biased_with_derivative(row, &layer.bias[column..], y);
            } else {
                gelu::biased(row, &layer.bias[column..], y);
            }
        },
    );
    (y, sums)
}

/// The gradient of x, [T, I].
pub(in crate::ops) fn backward_x(gradient: &[f32], rows: usize, layer: Layer) -> Vec<f32> {
    let mut result = buffer(rows * layer.inputs);
    add_backward_x(
        gradient,
        rows,
        layer,
        0,
        layer.outputs,
        &mut result,
        Before::Ignored,
    );
    result
}

/// The same from columns `first..first + O` of rows `stride` apart, into a buffer that is there.
pub(in crate::ops) fn add_backward_x(
    gradient: &[f32],
    rows: usize,
    layer: Layer,
    first: usize,
    stride: usize,
    result: &mut [f32],
    before: Before,
) {
    let gradient = Matrix::part(gradient, rows, layer.outputs, stride, first);
    let into = MatrixMut::new(result, rows, layer.inputs);
    blocks(gradient, layer.matrix(), into, before, |_, _, _| {});
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
    let mut result = buffer(outputs * inputs);
    let into = MatrixMut::new(&mut result, outputs, inputs);
    let gradient = Matrix::part(gradient, rows, outputs, stride, first);
    let x = Matrix::new(x, rows, inputs);
    blocks(
        gradient.transposed(),
        x,
        into,
        Before::Ignored,
        |_, _, _| {},
    );
    result
}

/// The gradient of the bias, `[O]`.
pub(in crate::ops) fn backward_bias(gradient: &[f32], outputs: usize) -> Vec<f32> {
    sums::over_rows(gradient, outputs)
}

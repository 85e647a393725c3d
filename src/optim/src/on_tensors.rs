//! An update as tensor operations, for backends on which no kernel makes it: the formulas of the slices.

use burn::tensor::{Shape, Tensor};

use super::kernel::Prepare;
use super::step::{Moments, VariableUpdate};

/// Changes the weights of a variable and what is kept beside them.
pub(super) fn on_tensors<const D: usize>(
    weights: &mut Tensor<D>,
    gradient: Tensor<D>,
    moments: &mut Moments,
    update: &VariableUpdate,
) {
    let Prepare { factor, limit } = update.prepare;
    let gradient = match factor {
        1.0 => gradient,
        factor => gradient.mul_scalar(factor),
    };
    let gradient = match limit {
        f32::INFINITY => gradient,
        limit => gradient.clamp(-limit, limit),
    };
    (update.rule).on_tensors(weights, gradient, moments, update);
}

/// What is kept, in the shape of the gradient; zeros at the first step.
pub(super) fn kept<const D: usize>(
    moment: &mut Option<Tensor<1>>,
    gradient: &Tensor<D>,
) -> Tensor<D> {
    match moment.take() {
        Some(moment) => moment.reshape(gradient.shape()),
        None => Tensor::zeros(gradient.shape(), &gradient.device()),
    }
}

pub(super) fn flat<const D: usize>(tensor: Tensor<D>) -> Tensor<1> {
    let count = tensor.shape().num_elements();
    tensor.reshape(Shape::new([count]))
}

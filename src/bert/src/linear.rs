//! A dense layer with bias. Checkpoint keys `….weight` and `….bias`.
//! Dimensions: I inputs, O outputs.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use crate::ops;
use crate::parameters::{Initial, Parameters};

/// `y = x · weightᵀ + bias`.
#[derive(Module, Debug)]
pub struct Linear {
    /// [O, I], as the checkpoint stores it; the gradient has that shape too.
    pub weight: Param<Tensor<2>>,
    /// `[O]`.
    pub bias: Param<Tensor<1>>,
}

impl Linear {
    /// Takes the layer's two parameters; new weights are normally distributed, new biases 0.
    pub fn new(parameters: &mut Parameters, inputs: usize, outputs: usize) -> Self {
        Self {
            weight: parameters.take("weight", [outputs, inputs], Initial::Normal),
            bias: parameters.take("bias", [outputs], Initial::Zeros),
        }
    }

    /// # Shapes
    /// [B, S, I] → [B, S, O]
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        ops::linear(x, self.weight.val(), self.bias.val())
    }

    /// The layer, then the exact GELU (with erf, not the tanh approximation).
    ///
    /// # Shapes
    /// [B, S, I] → [B, S, O]
    pub fn forward_gelu(&self, x: Tensor<3>) -> Tensor<3> {
        ops::linear_gelu(x, self.weight.val(), self.bias.val())
    }
}

//! Layer normalization. Checkpoint keys `….LayerNorm.weight` and `….LayerNorm.bias`.
//! Source: Ba, Kiros and Hinton 2016; transformers v4.57.1 `modeling_bert.py` takes PyTorch's, with
//! `layer_norm_eps` inside the square root.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use crate::ops::{self, DropoutKey, Lookup};
use crate::parameters::{Initial, Parameters};

/// Normalizes the last dimension to mean 0 and variance 1, then scales and shifts it.
#[derive(Module, Debug)]
pub struct LayerNorm {
    /// The scale, `[H]`.
    pub weight: Param<Tensor<1>>,
    /// The shift, `[H]`.
    pub bias: Param<Tensor<1>>,
    #[module(skip)]
    eps: f64,
}

impl LayerNorm {
    /// Takes the layer's two parameters; a new one changes nothing but the normalization.
    pub fn new(parameters: &mut Parameters, hidden_size: usize, eps: f64) -> Self {
        Self {
            weight: parameters.take("weight", [hidden_size], Initial::Ones),
            bias: parameters.take("bias", [hidden_size], Initial::Zeros),
            eps,
        }
    }

    /// # Shapes
    /// [B, S, H] → [B, S, H]
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        ops::layer_norm(x, self.weight.val(), self.bias.val(), self.eps)
    }

    /// Normalizes what is looked up and added up, then drops elements; of what `ops::embeds` takes.
    pub(crate) fn forward_embedded(
        &self,
        lookup: Lookup,
        dropout: Option<(f64, DropoutKey)>,
    ) -> Tensor<3> {
        ops::embed(
            lookup,
            self.weight.val(),
            self.bias.val(),
            self.eps,
            dropout,
        )
    }

    /// Normalizes `dropout(x) + residual`, both [B, S, H].
    pub fn forward_sum(
        &self,
        x: Tensor<3>,
        residual: Tensor<3>,
        dropout: Option<(f64, DropoutKey)>,
    ) -> Tensor<3> {
        let (gamma, beta) = (self.weight.val(), self.bias.val());
        ops::dropout_add_layer_norm(x, residual, gamma, beta, self.eps, dropout)
    }
}

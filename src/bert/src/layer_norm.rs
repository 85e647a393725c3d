//! Layer normalization. Checkpoint keys `….LayerNorm.weight` and, where it has one, `….LayerNorm.bias`.
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
    /// The shift, `[H]`; ModernBERT has none.
    pub bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    eps: f64,
}

impl LayerNorm {
    /// Takes the layer's two parameters; a new one changes nothing but the normalization.
    pub fn new(parameters: &mut Parameters, hidden_size: usize, eps: f64) -> Self {
        Self {
            weight: parameters.take("weight", [hidden_size], Initial::Ones),
            bias: Some(parameters.take("bias", [hidden_size], Initial::Zeros)),
            eps,
        }
    }

    /// A normalization that scales and does not shift.
    pub fn without_bias(parameters: &mut Parameters, hidden_size: usize, eps: f64) -> Self {
        Self {
            weight: parameters.take("weight", [hidden_size], Initial::Ones),
            bias: None,
            eps,
        }
    }

    /// The scale and the shift: zeros without gradient, where there is none.
    fn scale_and_shift(&self) -> (Tensor<1>, Tensor<1>) {
        let weight = self.weight.val();
        let bias = match &self.bias {
            Some(bias) => bias.val(),
            None => Tensor::zeros(weight.dims(), &weight.device()),
        };
        (weight, bias)
    }

    /// # Shapes
    /// [B, S, H] → [B, S, H]
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let (gamma, beta) = self.scale_and_shift();
        ops::layer_norm(x, gamma, beta, self.eps)
    }

    /// Normalizes what is looked up and added up, then drops elements; of what `ops::embeds` takes.
    pub(crate) fn forward_embedded(
        &self,
        lookup: Lookup,
        dropout: Option<(f64, DropoutKey)>,
    ) -> Tensor<3> {
        let (gamma, beta) = self.scale_and_shift();
        ops::embed(lookup, gamma, beta, self.eps, dropout)
    }

    /// Normalizes `dropout(x) + residual`, both [B, S, H].
    pub fn forward_sum(
        &self,
        x: Tensor<3>,
        residual: Tensor<3>,
        dropout: Option<(f64, DropoutKey)>,
    ) -> Tensor<3> {
        let (gamma, beta) = self.scale_and_shift();
        ops::dropout_add_layer_norm(x, residual, gamma, beta, self.eps, dropout)
    }
}

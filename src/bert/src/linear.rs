//! A dense layer. Checkpoint keys `….weight` and, where it has one, `….bias`.
//! Dimensions: I inputs, O outputs.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use crate::config::{BertConfig, Gelu};
use crate::lora::LowRank;
use crate::mode::Mode;
use crate::ops;
use crate::parameters::{Initial, Parameters};

/// `y = x · weightᵀ + bias`, and what an adapter adds.
#[derive(Module, Debug)]
pub struct Linear {
    /// [O, I], as the checkpoint stores it; the gradient has that shape too.
    pub weight: Param<Tensor<2>>,
    /// `[O]`; ModernBERT's layers have none.
    pub bias: Option<Param<Tensor<1>>>,
    /// The layer's adapter, where it has one. The field is no part of the keys below it.
    pub lora: Option<LowRank>,
}

impl Linear {
    /// Takes the layer's two parameters; new weights are normally distributed, new biases 0.
    pub fn new(parameters: &mut Parameters, inputs: usize, outputs: usize) -> Self {
        Self {
            weight: parameters.take("weight", [outputs, inputs], Initial::Normal),
            bias: Some(parameters.take("bias", [outputs], Initial::Zeros)),
            lora: parameters.take_adapter([outputs, inputs]),
        }
    }

    /// A layer without bias: `y = x · weightᵀ`, and what an adapter adds.
    pub fn without_bias(
        parameters: &mut Parameters,
        [inputs, outputs]: [usize; 2],
        initial: Initial,
    ) -> Self {
        Self {
            weight: parameters.take("weight", [outputs, inputs], initial),
            bias: None,
            lora: parameters.take_adapter([outputs, inputs]),
        }
    }

    /// The last layer of a head, H → outputs. ModernBERT's new weights are drawn as large as keeps the size of the numbers.
    pub(crate) fn of_head(
        parameters: &mut Parameters,
        config: &BertConfig,
        outputs: usize,
    ) -> Self {
        let inputs = config.hidden_size;
        let initial = match &config.modern {
            Some(modern) => modern.initial(1.0 / (inputs as f64).sqrt()),
            None => Initial::Normal,
        };
        Self {
            weight: parameters.take("weight", [outputs, inputs], initial),
            bias: Some(parameters.take("bias", [outputs], Initial::Zeros)),
            lora: parameters.take_adapter([outputs, inputs]),
        }
    }

    /// The weight and what is added to each output: zeros without gradient, where the layer has no bias.
    pub(crate) fn weight_and_bias(&self) -> (Tensor<2>, Tensor<1>) {
        let weight = self.weight.val();
        let bias = match &self.bias {
            Some(bias) => bias.val(),
            None => Tensor::zeros([weight.dims()[0]], &weight.device()),
        };
        (weight, bias)
    }

    /// # Shapes
    /// [B, S, I] → [B, S, O]
    pub fn forward(&self, x: Tensor<3>, mode: Mode) -> Tensor<3> {
        let layer = |x| {
            let (weight, bias) = self.weight_and_bias();
            ops::linear(x, weight, bias)
        };
        match &self.lora {
            Some(lora) => lora.add_to(layer(x.clone()), x, mode),
            None => layer(x),
        }
    }

    /// Makes it part of another encoder layer, counted from 0: its adapter has the dropout masks of that place.
    pub(crate) fn move_to(&mut self, layer: usize) {
        if let Some(lora) = &mut self.lora {
            lora.move_to(layer);
        }
    }

    /// The layer, then a GELU.
    ///
    /// # Shapes
    /// [B, S, I] → [B, S, O]
    pub(crate) fn forward_then(&self, x: Tensor<3>, gelu: Gelu, mode: Mode) -> Tensor<3> {
        match gelu {
            Gelu::Exact => self.forward_gelu(x, mode),
            Gelu::Tanh => ops::gelu_tanh(self.forward(x, mode)),
        }
    }

    /// The layer, then the exact GELU (with erf, not the tanh approximation).
    ///
    /// # Shapes
    /// [B, S, I] → [B, S, O]
    pub fn forward_gelu(&self, x: Tensor<3>, mode: Mode) -> Tensor<3> {
        match &self.lora {
            Some(_) => ops::gelu(self.forward(x, mode)),
            None => {
                let (weight, bias) = self.weight_and_bias();
                ops::linear_gelu(x, weight, bias)
            }
        }
    }
}

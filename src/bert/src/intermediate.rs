//! The widening half of the feed-forward part of encoder layer i. Checkpoint keys
//! `bert.encoder.layer.{i}.intermediate.dense`.
//! Source: Vaswani et al. 2017, section 3.3, with Hendrycks and Gimpel's GELU for the ReLU;
//! google-research/bert@eedf571 `modeling.py`, scope `intermediate`.
//! Dimensions: B sequences, S positions, H = hidden_size, F = intermediate_size.

use burn::module::Module;
use burn::tensor::Tensor;

use crate::config::{BertConfig, Gelu};
use crate::linear::Linear;
use crate::mode::Mode;
use crate::parameters::Parameters;
use crate::taps;

/// H → F, then GELU: the exact one (with erf), but in ALBERT the tanh approximation.
#[derive(Module, Debug)]
pub struct Intermediate {
    /// H → F.
    pub dense: Linear,
    #[module(skip)]
    gelu: Gelu,
}

impl Intermediate {
    /// Takes the parameters under `intermediate` of an encoder layer.
    pub fn new(parameters: &mut Parameters, config: &BertConfig) -> Self {
        let mut inside = parameters.enter("dense");
        Self {
            dense: Linear::new(&mut inside, config.hidden_size, config.intermediate_size),
            gelu: config.gelu,
        }
    }

    /// What follows the dense layer.
    pub(crate) fn gelu(&self) -> Gelu {
        self.gelu
    }

    /// # Shapes
    /// [B, S, H] → [B, S, F]
    pub fn forward(&self, hidden_states: Tensor<3>, mode: Mode) -> Tensor<3> {
        taps::output(self.dense.forward_then(hidden_states, self.gelu, mode))
    }
}

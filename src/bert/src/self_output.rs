//! The projection after the attention heads of encoder layer i. Checkpoint keys
//! `bert.encoder.layer.{i}.attention.output.{dense,LayerNorm}`.
//! Source: google-research/bert@eedf571 `modeling.py`, `transformer_model`, scope `output` of the
//! attention. Dimensions: B sequences, S positions, H = hidden_size.

use burn::module::Module;
use burn::tensor::Tensor;

use crate::config::BertConfig;
use crate::layer_norm::LayerNorm;
use crate::linear::Linear;
use crate::mode::{DropoutSite, Mode};
use crate::parameters::Parameters;
use crate::taps;

/// Mixes the outputs of the heads by a linear layer, then adds the layer's input and normalizes.
#[derive(Module, Debug)]
pub struct SelfOutput {
    /// H → H.
    pub dense: Linear,
    /// Over H; key `LayerNorm`.
    pub layer_norm: LayerNorm,
    #[module(skip)]
    hidden_dropout_prob: f64,
    #[module(skip)]
    layer: usize,
}

impl SelfOutput {
    /// Takes the parameters under `attention.output` of an encoder layer.
    pub fn new(parameters: &mut Parameters, config: &BertConfig, layer: usize) -> Self {
        let hidden_size = config.hidden_size;
        let dense = Linear::new(&mut parameters.enter("dense"), hidden_size, hidden_size);
        let mut inside = parameters.enter("LayerNorm");
        Self {
            dense,
            layer_norm: LayerNorm::new(&mut inside, hidden_size, config.layer_norm_eps),
            hidden_dropout_prob: config.hidden_dropout_prob,
            layer,
        }
    }

    /// Makes it that of another layer, counted from 0.
    pub(crate) fn move_to(&mut self, layer: usize) {
        self.layer = layer;
        self.dense.move_to(layer);
    }

    /// # Shapes
    /// attended and input, both [B, S, H] → [B, S, H]
    pub fn forward(&self, attended: Tensor<3>, input: Tensor<3>, mode: Mode) -> Tensor<3> {
        let mixed = taps::within("dense", || taps::output(self.dense.forward(attended, mode)));
        self.added(mixed, input, mode)
    }

    /// What comes after the linear layer: dropout, the layer's input, normalization.
    ///
    /// # Shapes
    /// mixed and input, both [B, S, H] → [B, S, H]
    pub(crate) fn added(&self, mixed: Tensor<3>, input: Tensor<3>, mode: Mode) -> Tensor<3> {
        let site = DropoutSite::AttentionOutput(self.layer);
        let dropout = mode.dropout(self.hidden_dropout_prob, site);
        taps::output(self.layer_norm.forward_sum(mixed, input, dropout))
    }
}

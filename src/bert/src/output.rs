//! The narrowing half of the feed-forward part of encoder layer i. Checkpoint keys
//! `bert.encoder.layer.{i}.output.{dense,LayerNorm}`.
//! Source: Vaswani et al. 2017, section 3.3; google-research/bert@eedf571 `modeling.py`,
//! `transformer_model`, scope `output`.
//! Dimensions: B sequences, S positions, H = hidden_size, F = intermediate_size.

use burn::module::Module;
use burn::tensor::Tensor;

use crate::config::BertConfig;
use crate::layer_norm::LayerNorm;
use crate::linear::Linear;
use crate::mode::{DropoutSite, Mode};
use crate::parameters::Parameters;
use crate::taps;

/// F → H, then adds the feed-forward's input and normalizes.
#[derive(Module, Debug)]
pub struct Output {
    /// F → H.
    pub dense: Linear,
    /// Over H; key `LayerNorm`.
    pub layer_norm: LayerNorm,
    /// `None` in ALBERT, whatever rate a run asks for.
    #[module(skip)]
    dropout_prob: Option<f64>,
    #[module(skip)]
    layer: usize,
}

impl Output {
    /// Takes the parameters under `output` of an encoder layer.
    pub fn new(parameters: &mut Parameters, config: &BertConfig, layer: usize) -> Self {
        let (hidden_size, intermediate_size) = (config.hidden_size, config.intermediate_size);
        let dense = Linear::new(
            &mut parameters.enter("dense"),
            intermediate_size,
            hidden_size,
        );
        let mut inside = parameters.enter("LayerNorm");
        Self {
            dense,
            layer_norm: LayerNorm::new(&mut inside, hidden_size, config.layer_norm_eps),
            dropout_prob: config.feed_forward_dropout(),
            layer,
        }
    }

    /// Makes it that of another layer, counted from 0.
    pub(crate) fn move_to(&mut self, layer: usize) {
        self.layer = layer;
        self.dense.move_to(layer);
    }

    /// # Shapes
    /// widened [B, S, F], input [B, S, H] → [B, S, H]
    pub fn forward(&self, widened: Tensor<3>, input: Tensor<3>, mode: Mode) -> Tensor<3> {
        let narrowed = taps::within("dense", || taps::output(self.dense.forward(widened, mode)));
        self.added(narrowed, input, mode)
    }

    /// What comes after the linear layer: dropout, the feed-forward's input, normalization.
    ///
    /// # Shapes
    /// narrowed and input, both [B, S, H] → [B, S, H]
    pub(crate) fn added(&self, narrowed: Tensor<3>, input: Tensor<3>, mode: Mode) -> Tensor<3> {
        let site = DropoutSite::FeedForward(self.layer);
        let dropout = self.dropout_prob.and_then(|rate| mode.dropout(rate, site));
        taps::output(self.layer_norm.forward_sum(narrowed, input, dropout))
    }
}

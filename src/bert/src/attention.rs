//! The attention half of encoder layer i. Checkpoint keys `bert.encoder.layer.{i}.attention.*`.
//! Source: Vaswani et al. 2017, figure 1, the lower box; google-research/bert@eedf571 `modeling.py`,
//! `transformer_model`, scope `attention`. Dimensions: B sequences, S positions, H = hidden_size.

use burn::module::Module;
use burn::tensor::Tensor;

use crate::config::BertConfig;
use crate::mode::Mode;
use crate::parallel;
use crate::parameters::Parameters;
use crate::relative::RelativePositions;
use crate::self_attention::SelfAttention;
use crate::self_output::SelfOutput;
use crate::taps;

/// Self-attention with its residual connection.
#[derive(Module, Debug)]
pub struct Attention {
    /// The heads; key `self`, which is a keyword in Rust.
    pub self_attention: SelfAttention,
    /// The projection, residual connection and normalization after the heads.
    pub output: SelfOutput,
}

impl Attention {
    /// Takes the parameters under `attention` of an encoder layer.
    pub fn new(parameters: &mut Parameters, config: &BertConfig, layer: usize) -> Self {
        Self {
            self_attention: SelfAttention::new(&mut parameters.enter("self"), config, layer),
            output: SelfOutput::new(&mut parameters.enter("output"), config, layer),
        }
    }

    /// # Shapes
    /// hidden_states [B, S, H], attention_mask [B, S] with 1 = token → [B, S, H]
    pub fn forward(
        &self,
        hidden_states: Tensor<3>,
        attention_mask: Tensor<2>,
        relative: Option<&RelativePositions>,
        mode: Mode,
    ) -> Tensor<3> {
        if let Some(mixed) = parallel::attention(self, &hidden_states, &attention_mask, mode) {
            return taps::within("output", || self.output.added(mixed, hidden_states, mode));
        }
        let attended = taps::within("self", || {
            (self.self_attention).forward(hidden_states.clone(), attention_mask, relative, mode)
        });
        taps::within("output", || {
            self.output.forward(attended, hidden_states, mode)
        })
    }
}

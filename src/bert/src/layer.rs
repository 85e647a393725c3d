//! Encoder layer i. Checkpoint keys `bert.encoder.layer.{i}.*`.
//! Source: Vaswani et al. 2017, figure 1, left; google-research/bert@eedf571 `modeling.py`,
//! `transformer_model`. Dimensions: B sequences, S positions, H = hidden_size.

use burn::module::Module;
use burn::tensor::Tensor;

use crate::attention::Attention;
use crate::config::BertConfig;
use crate::intermediate::Intermediate;
use crate::mode::Mode;
use crate::output::Output;
use crate::parallel;
use crate::parameters::Parameters;
use crate::relative::RelativePositions;
use crate::taps;

/// Attention, then the feed-forward part. Each adds its input (a residual connection) and normalizes the sum.
#[derive(Module, Debug)]
pub struct Layer {
    /// The positions of a sequence exchange information.
    pub attention: Attention,
    /// The feed-forward part of each position: H → F …
    pub intermediate: Intermediate,
    /// … and F → H.
    pub output: Output,
}

impl Layer {
    /// Takes the parameters of encoder layer `layer`, counted from 0.
    pub fn new(parameters: &mut Parameters, config: &BertConfig, layer: usize) -> Self {
        Self {
            attention: Attention::new(&mut parameters.enter("attention"), config, layer),
            intermediate: Intermediate::new(&mut parameters.enter("intermediate"), config),
            output: Output::new(&mut parameters.enter("output"), config, layer),
        }
    }

    /// Makes it the layer at another place of the encoder: its dropout masks are those of that place.
    pub(crate) fn move_to(&mut self, place: usize) {
        self.attention.self_attention.move_to(place);
        self.attention.output.move_to(place);
        self.intermediate.dense.move_to(place);
        self.output.move_to(place);
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
        let attended = taps::within("attention", || {
            (self.attention).forward(hidden_states, attention_mask, relative, mode)
        });
        if let Some(narrowed) = parallel::feed_forward(self, &attended) {
            return taps::within("output", || self.output.added(narrowed, attended, mode));
        }
        let widened = taps::within("intermediate", || {
            self.intermediate.forward(attended.clone(), mode)
        });
        taps::within("output", || self.output.forward(widened, attended, mode))
    }

    /// The output of the first `positions` alone, without dropout and without taps. All positions are attended to.
    ///
    /// # Shapes
    /// hidden_states [B, S, H], attention_mask [B, S] with 1 = token → [B, P, H]
    pub(crate) fn first(
        &self,
        hidden_states: Tensor<3>,
        attention_mask: Tensor<2>,
        relative: Option<&RelativePositions>,
        positions: usize,
    ) -> Tensor<3> {
        let first = |x: Tensor<3>| x.narrow(1, 0, positions);
        let Attention {
            self_attention,
            output,
        } = &self.attention;
        let input = hidden_states.clone();
        let attended = self_attention.forward(input, attention_mask, relative, Mode::Eval);
        let attended = output.forward(first(attended), first(hidden_states), Mode::Eval);
        let widened = self.intermediate.forward(attended.clone(), Mode::Eval);
        self.output.forward(widened, attended, Mode::Eval)
    }
}

//! The stack of encoder layers. Checkpoint keys `bert.encoder.layer.*`.
//! Source: google-research/bert@eedf571 `modeling.py`, `transformer_model`.
//! Dimensions: B sequences, S positions, H = hidden_size.

use std::ops::Range;

use burn::module::Module;
use burn::tensor::Tensor;

use crate::config::BertConfig;
use crate::layer::Layer;
use crate::mode::Mode;
use crate::parameters::Parameters;
use crate::pre_norm::PreNormLayer;
use crate::recompute;
use crate::taps;

/// Rows that [`Encoder::first`] computes at least: a product of fewer would take another kernel of the processor, which adds
/// in another order.
const FEWEST_ROWS: usize = 32;

/// `num_hidden_layers` layers of the same kind, one after the other.
#[derive(Module, Debug)]
pub struct Encoder {
    /// The layers, from the embeddings upwards.
    pub layer: Vec<EncoderLayer>,
}

/// A layer by where it normalizes. The variant is no part of the keys below it.
// Layers are few, and each has its variables elsewhere.
#[allow(clippy::large_enum_variant)]
#[derive(Module, Debug)]
pub enum EncoderLayer {
    /// BERT's: after each residual connection.
    PostNorm(Layer),
    /// ModernBERT's: before each half.
    PreNorm(PreNormLayer),
}

impl EncoderLayer {
    fn new(parameters: &mut Parameters, config: &BertConfig, layer: usize) -> Self {
        match &config.modern {
            Some(modern) => Self::PreNorm(PreNormLayer::new(parameters, (config, modern), layer)),
            None => Self::PostNorm(Layer::new(parameters, config, layer)),
        }
    }

    /// How many attention heads it has.
    pub fn heads(&self) -> usize {
        match self {
            Self::PostNorm(layer) => layer.attention.self_attention.heads(),
            Self::PreNorm(layer) => layer.attention.self_attention.heads(),
        }
    }

    /// How many attention heads it has, where several devices can compute them in slices: ModernBERT's cannot be.
    pub fn heads_in_slices(&self) -> Option<usize> {
        match self {
            Self::PostNorm(layer) => Some(layer.attention.self_attention.heads()),
            Self::PreNorm(_) => None,
        }
    }

    /// # Shapes
    /// hidden_states [B, S, H], attention_mask [B, S] with 1 = token → [B, S, H]
    pub fn forward(&self, hidden_states: Tensor<3>, mask: Tensor<2>, mode: Mode) -> Tensor<3> {
        match self {
            Self::PostNorm(layer) => layer.forward(hidden_states, mask, mode),
            Self::PreNorm(layer) => layer.forward(hidden_states, mask, mode),
        }
    }

    /// The output of the first `positions` alone, without dropout and without taps. All positions are attended to.
    ///
    /// # Shapes
    /// hidden_states [B, S, H], mask [B, S] with 1 = token → [B, P, H]
    fn first(&self, hidden_states: Tensor<3>, mask: Tensor<2>, positions: usize) -> Tensor<3> {
        match self {
            Self::PostNorm(layer) => layer.first(hidden_states, mask, positions),
            Self::PreNorm(layer) => layer.first(hidden_states, mask, positions),
        }
    }
}

impl Encoder {
    /// Takes the parameters under `encoder`.
    pub fn new(parameters: &mut Parameters, config: &BertConfig) -> Self {
        let mut layers = parameters.enter("layer");
        let layer = (0..config.num_hidden_layers)
            .map(|index| EncoderLayer::new(&mut layers.enter(&index.to_string()), config, index))
            .collect();
        Self { layer }
    }

    /// The output of every layer, the last one last. Keeping them costs no copy: a tensor is a
    /// handle.
    ///
    /// # Shapes
    /// embedded [B, S, H], attention_mask [B, S] with 1 = token → `num_hidden_layers` × [B, S, H]
    pub fn forward(
        &self,
        embedded: Tensor<3>,
        attention_mask: Tensor<2>,
        mode: Mode,
    ) -> Vec<Tensor<3>> {
        self.through(0..self.layer.len(), embedded, attention_mask, mode)
    }

    /// The outputs of some consecutive layers, from the output of the layer before them.
    ///
    /// # Shapes
    /// hidden_states [B, S, H], attention_mask [B, S] with 1 = token → as many [B, S, H]
    pub(crate) fn through(
        &self,
        layers: Range<usize>,
        hidden_states: Tensor<3>,
        attention_mask: Tensor<2>,
        mode: Mode,
    ) -> Vec<Tensor<3>> {
        let mut hidden_states = hidden_states;
        let mut outputs = Vec::with_capacity(layers.len());
        // The mask has no gradient.
        let mask = attention_mask.inner();
        for index in layers {
            let mask = mask.clone();
            hidden_states = recompute::part(
                &self.layer[index],
                hidden_states,
                move |layer: &EncoderLayer, x| {
                    let forward = || layer.forward(x, mask.clone(), mode);
                    taps::within("layer", || taps::within_layer(index, forward))
                },
            );
            outputs.push(hidden_states.clone());
        }
        outputs
    }

    /// The last layer's output at the first positions, at least one, without dropout, taps or gradients: what a head needs
    /// that reads the first token. The last layer computes the others only as far as the first attend to them, which for
    /// six layers saves an eighth of a pass. On the CPU it has the bits of [`Self::forward`].
    ///
    /// # Shapes
    /// embedded [B, S, H], attention_mask [B, S] with 1 = token → [B, P, H]
    pub(crate) fn first(&self, embedded: Tensor<3>, attention_mask: Tensor<2>) -> Tensor<3> {
        let [batch, sequence, _] = embedded.dims();
        let positions = FEWEST_ROWS.div_ceil(batch.max(1)).min(sequence);
        let mut hidden_states = embedded;
        if let Some((last, before)) = self.layer.split_last() {
            for layer in before {
                hidden_states = layer.forward(hidden_states, attention_mask.clone(), Mode::Eval);
            }
            hidden_states = last.first(hidden_states, attention_mask, positions);
        }
        hidden_states
    }
}

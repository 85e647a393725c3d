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
use crate::relative::RelativePositions;
use crate::taps;

/// Rows that [`Encoder::first`] computes at least: a product of fewer would take another kernel of the processor, which adds
/// in another order.
const FEWEST_ROWS: usize = 32;

/// `num_hidden_layers` layers of the same kind, one after the other.
#[derive(Module, Debug)]
pub struct Encoder {
    /// The layers that have parameters, from the embeddings upwards. ALBERT has one, which is computed `num_hidden_layers` times.
    pub layer: Vec<EncoderLayer>,
    /// What all layers look distances up in: MPNet's and DeBERTa's.
    pub relative: Option<RelativePositions>,
    #[module(skip)]
    depth: usize,
}

/// A layer by where it normalizes. The variant is no part of the keys below it.
// Layers are few, and each has its variables elsewhere.
#[allow(clippy::large_enum_variant)]
#[derive(Module, Debug)]
pub enum EncoderLayer {
    /// BERT's, MPNet's and DeBERTa's: after each residual connection.
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

    /// The layer with the same parameters, as it is computed at another place, counted from 0: its dropout masks are others.
    fn at(&self, place: usize) -> Self {
        let mut layer = self.clone();
        match &mut layer {
            Self::PostNorm(layer) => layer.move_to(place),
            // Each of its layers has parameters.
            Self::PreNorm(_) => {}
        }
        layer
    }

    /// How many attention heads it has.
    pub fn heads(&self) -> usize {
        match self {
            Self::PostNorm(layer) => layer.attention.self_attention.heads(),
            Self::PreNorm(layer) => layer.attention.self_attention.heads(),
        }
    }

    /// # Shapes
    /// hidden_states [B, S, H], attention_mask [B, S] with 1 = token → [B, S, H]
    pub fn forward(
        &self,
        hidden_states: Tensor<3>,
        mask: Tensor<2>,
        relative: Option<&RelativePositions>,
        mode: Mode,
    ) -> Tensor<3> {
        match self {
            Self::PostNorm(layer) => layer.forward(hidden_states, mask, relative, mode),
            Self::PreNorm(layer) => layer.forward(hidden_states, mask, mode),
        }
    }

    /// The output of the first `positions` alone, without dropout and without taps. All positions are attended to.
    ///
    /// # Shapes
    /// hidden_states [B, S, H], mask [B, S] with 1 = token → [B, P, H]
    fn first(
        &self,
        hidden_states: Tensor<3>,
        mask: Tensor<2>,
        relative: Option<&RelativePositions>,
        positions: usize,
    ) -> Tensor<3> {
        match self {
            Self::PostNorm(layer) => layer.first(hidden_states, mask, relative, positions),
            Self::PreNorm(layer) => layer.first(hidden_states, mask, positions),
        }
    }
}

impl Encoder {
    /// How many attention heads a layer has, where several devices can compute them in slices: those of ModernBERT cannot be, and
    /// those that look distances up in a table.
    pub fn heads_in_slices(&self) -> Option<usize> {
        match self.layer.first()? {
            EncoderLayer::PostNorm(layer) if self.relative.is_none() => {
                Some(layer.attention.self_attention.heads())
            }
            _ => None,
        }
    }

    /// Takes the parameters under `encoder`.
    pub fn new(parameters: &mut Parameters, config: &BertConfig) -> Self {
        let mut layers = parameters.enter("layer");
        let depth = config.num_hidden_layers;
        let own = if config.family.shares_layers() {
            depth.min(1)
        } else {
            depth
        };
        let layer = (0..own)
            .map(|index| EncoderLayer::new(&mut layers.enter(&index.to_string()), config, index))
            .collect();
        let relative = RelativePositions::new(parameters, config);
        Self {
            layer,
            relative,
            depth,
        }
    }

    /// How many layers are computed one after the other.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The layer that is computed at a place, counted from 0.
    fn at(&self, place: usize) -> EncoderLayer {
        match self.layer.get(place) {
            Some(layer) => layer.clone(),
            None => self.layer[0].at(place),
        }
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
        self.through(0..self.depth, embedded, attention_mask, mode)
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
            // What several layers have in common gets the sum of their gradients: the table, and ALBERT's layer.
            let part = (self.at(index), self.relative.clone());
            let forward = move |part: &(EncoderLayer, Option<RelativePositions>), x| {
                let (layer, relative) = part;
                let forward = || layer.forward(x, mask.clone(), relative.as_ref(), mode);
                taps::within("layer", || taps::within_layer(index, forward))
            };
            hidden_states = recompute::part(part, hidden_states, forward);
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
        let relative = self.relative.as_ref();
        if let Some(last) = self.depth.checked_sub(1) {
            for index in 0..last {
                let (layer, mask) = (self.at(index), attention_mask.clone());
                hidden_states = layer.forward(hidden_states, mask, relative, Mode::Eval);
            }
            let last = self.at(last);
            hidden_states = last.first(hidden_states, attention_mask, relative, positions);
        }
        hidden_states
    }
}

//! The stack of encoder layers. Checkpoint keys `bert.encoder.layer.*`.
//! Source: google-research/bert@eedf571 `modeling.py`, `transformer_model`.
//! Dimensions: B sequences, S positions, H = hidden_size.

use burn::module::Module;
use burn::tensor::Tensor;

use crate::config::BertConfig;
use crate::layer::Layer;
use crate::mode::Mode;
use crate::parameters::Parameters;
use crate::recompute;
use crate::taps;

/// `num_hidden_layers` layers of the same shape, one after the other.
#[derive(Module, Debug)]
pub struct Encoder {
    /// The layers, from the embeddings upwards.
    pub layer: Vec<Layer>,
}

impl Encoder {
    /// Takes the parameters under `encoder`.
    pub fn new(parameters: &mut Parameters, config: &BertConfig) -> Self {
        let mut layers = parameters.enter("layer");
        let layer = (0..config.num_hidden_layers)
            .map(|index| Layer::new(&mut layers.enter(&index.to_string()), config, index))
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
        let mut hidden_states = embedded;
        let mut outputs = Vec::with_capacity(self.layer.len());
        // The mask has no gradient.
        let mask = attention_mask.inner();
        for (index, layer) in self.layer.iter().enumerate() {
            let mask = mask.clone();
            hidden_states = recompute::part(layer, hidden_states, move |layer: &Layer, x| {
                let forward = || layer.forward(x, mask.clone(), mode);
                taps::within("layer", || taps::within_layer(index, forward))
            });
            outputs.push(hidden_states.clone());
        }
        outputs
    }
}

//! One vector for a whole sequence. Checkpoint keys `bert.pooler.dense`.
//! Source: Devlin et al. 2019, section 3 (the vector C); google-research/bert@eedf571 `modeling.py`,
//! scope `pooler`. Dimensions: B sequences, S positions, H = hidden_size.

use burn::module::Module;
use burn::tensor::Tensor;

use crate::config::{BertConfig, Pooling};
use crate::family::Family;
use crate::layer_norm::LayerNorm;
use crate::linear::Linear;
use crate::mode::Mode;
use crate::operation;
use crate::ops;
use crate::parameters::Parameters;
use crate::taps;

/// The first token's vector through a dense layer and tanh (DistilBERT: ReLU; ELECTRA: GELU; ModernBERT: GELU and LayerNorm,
/// of the first token's vector or of the mean over all tokens, as its `classifier_pooling` names).
#[derive(Module, Debug)]
pub struct Pooler {
    /// H → H.
    pub dense: Linear,
    /// Of the activation; ModernBERT's.
    pub layer_norm: Option<LayerNorm>,
    #[module(skip)]
    family: Family,
    #[module(skip)]
    pooling: Pooling,
}

impl Pooler {
    /// Takes the parameters under `pooler`.
    pub fn new(parameters: &mut Parameters, config: &BertConfig) -> Self {
        let (hidden_size, family) = (config.hidden_size, config.family);
        let mut inside = parameters.enter("dense");
        let Some(modern) = &config.modern else {
            return Self {
                dense: Linear::new(&mut inside, hidden_size, hidden_size),
                layer_norm: None,
                family,
                pooling: Pooling::First,
            };
        };
        let initial = modern.initial(config.deviation_of_sums());
        let dense = Linear::without_bias(&mut inside, [hidden_size; 2], initial);
        let mut inside = parameters.enter("LayerNorm");
        let layer_norm = LayerNorm::without_bias(&mut inside, hidden_size, config.layer_norm_eps);
        Self {
            dense,
            layer_norm: Some(layer_norm),
            family,
            pooling: modern.pooling,
        }
    }

    /// Whether it reads the first token alone.
    pub(crate) fn reads_first(&self) -> bool {
        self.pooling == Pooling::First
    }

    /// # Shapes
    /// hidden_states [B, S, H], attention_mask [B, S] with 1 = token → [B, H]
    pub fn forward(
        &self,
        hidden_states: Tensor<3>,
        attention_mask: Tensor<2>,
        mode: Mode,
    ) -> Tensor<2> {
        let [batch, _, hidden_size] = hidden_states.dims();
        let token = match self.pooling {
            Pooling::First => hidden_states.slice([0..batch, 0..1]),
            Pooling::Mean => mean(hidden_states, attention_mask),
        }; // [B, 1, H]
        if let Some(layer_norm) = &self.layer_norm {
            let dense = taps::within("dense", || self.dense.forward_gelu(token, mode));
            let pooled = layer_norm.forward(dense);
            return taps::output(pooled.reshape([batch, hidden_size]));
        }
        let dense = taps::within("dense", || self.dense.forward(token, mode));
        let pooled = operation!("activation", [dense], self.family.pooled(dense));
        let pooled = ops::rounded(pooled);
        taps::output(pooled.reshape([batch, hidden_size]))
    }
}

/// The mean over the tokens of each sequence.
///
/// # Shapes
/// hidden_states [B, S, H], mask [B, S] with 1 = token → [B, 1, H]
fn mean(hidden_states: Tensor<3>, mask: Tensor<2>) -> Tensor<3> {
    // Every sequence has a token; of one of padding only the sum is zero.
    let tokens = mask.clone().sum_dim(1).clamp_min(1.0);
    operation!("mean over tokens", [hidden_states], {
        let sum = (hidden_states * mask.unsqueeze_dim::<3>(2)).sum_dim(1);
        sum / tokens.unsqueeze_dim::<3>(2)
    })
}

//! Multi-head self-attention of encoder layer i. Checkpoint keys
//! `bert.encoder.layer.{i}.attention.self.{query,key,value}`.
//! Source: Vaswani et al. 2017, section 3.2; google-research/bert@eedf571 `modeling.py`,
//! `attention_layer`.
//! Dimensions: B sequences, S positions, N heads, D = hidden_size / N (checked when the
//! configuration is read), H = N·D.

use burn::module::Module;
use burn::tensor::Tensor;

use crate::config::BertConfig;
use crate::linear::Linear;
use crate::mode::{DropoutSite, Mode};
use crate::ops;
use crate::parameters::Parameters;
use crate::relative::{Projected, RelativePositions};
use crate::taps;

/// Every position attends to every token of its sequence.
///
/// With queries Q, keys K and values V, three linear projections of the input, each head computes
/// `softmax(Q·Kᵀ/√D) · V`: the output at a position is a mean of all values, weighted by how well the position's
/// query matches the keys. The scale 1/√D keeps the scores in the range where the softmax has useful gradients.
#[derive(Module, Debug)]
pub struct SelfAttention {
    /// H → H.
    pub query: Linear,
    /// H → H. Its bias has no effect: it adds the same number to all scores of a query, which a softmax ignores.
    pub key: Linear,
    /// H → H.
    pub value: Linear,
    #[module(skip)]
    num_attention_heads: usize,
    #[module(skip)]
    attention_probs_dropout_prob: f64,
    #[module(skip)]
    layer: usize,
}

impl SelfAttention {
    /// Takes the parameters under `attention.self` of an encoder layer.
    pub fn new(parameters: &mut Parameters, config: &BertConfig, layer: usize) -> Self {
        let hidden_size = config.hidden_size;
        let mut linear =
            |name: &str| Linear::new(&mut parameters.enter(name), hidden_size, hidden_size);
        let (query, key, value) = (linear("query"), linear("key"), linear("value"));
        Self {
            query,
            key,
            value,
            num_attention_heads: config.num_attention_heads,
            attention_probs_dropout_prob: config.attention_probs_dropout_prob,
            layer,
        }
    }

    /// Makes it the attention of another layer, counted from 0.
    pub(crate) fn move_to(&mut self, layer: usize) {
        self.layer = layer;
        for dense in [&mut self.query, &mut self.key, &mut self.value] {
            dense.move_to(layer);
        }
    }

    /// How many heads there are.
    pub fn heads(&self) -> usize {
        self.num_attention_heads
    }

    /// The rate and the key of the dropout of its probabilities.
    pub(crate) fn dropout(&self, mode: Mode) -> Option<(f64, ops::DropoutKey)> {
        let site = DropoutSite::AttentionProbabilities(self.layer);
        mode.dropout(self.attention_probs_dropout_prob, site)
    }

    /// # Shapes
    /// hidden_states [B, S, H]; attention_mask [B, S], 1 = token, 0 = padding → [B, S, H]
    pub fn forward(
        &self,
        hidden_states: Tensor<3>,
        attention_mask: Tensor<2>,
        relative: Option<&RelativePositions>,
        mode: Mode,
    ) -> Tensor<3> {
        if let Some(relative) = relative {
            return self.by_distance(hidden_states, attention_mask, relative, mode);
        }
        // `ops::self_attention` projects, splits the heads, scales by 1/√D, masks with a large negative number
        // (with −∞, a sequence of padding only would become NaN), and applies dropout to the probabilities after
        // the softmax.
        let layers = [&self.query, &self.key, &self.value];
        let heads = self.num_attention_heads;
        let dropout = self.dropout(mode);
        self.hand_out(&hidden_states, &attention_mask, mode);
        // What adapters add comes between the projections and the heads. The separate operations compute as the fused
        // one does; what they cost is a tensor for each projection.
        if layers.iter().any(|layer| layer.lora.is_some()) {
            let project = |name: &str, layer: &Linear| {
                taps::within(name, || layer.forward(hidden_states.clone(), mode))
            };
            let (query, key) = (project("query", &self.query), project("key", &self.key));
            let value = project("value", &self.value);
            let attended = ops::attention(query, key, value, heads, attention_mask, dropout);
            return taps::output_of_heads(heads, attended);
        }
        let layers = layers.map(Linear::weight_and_bias);
        let attended = ops::self_attention(hidden_states, layers, heads, attention_mask, dropout);
        taps::output_of_heads(heads, attended)
    }

    /// Attention whose scores depend on the distance of query and key, too.
    fn by_distance(
        &self,
        hidden_states: Tensor<3>,
        mask: Tensor<2>,
        relative: &RelativePositions,
        mode: Mode,
    ) -> Tensor<3> {
        let heads = self.num_attention_heads;
        let project = |name: &str, layer: &Linear| {
            let projected = || layer.forward(hidden_states.clone(), mode);
            let projected = taps::within(name, projected);
            taps::inside(name, || projected.clone());
            projected
        };
        let (query, key) = (project("query", &self.query), project("key", &self.key));
        let value = project("value", &self.value);
        let of = |layer, values| Projected { layer, values };
        let both = [of(&self.query, &query), of(&self.key, &key)];
        let scores = ops::Scores {
            scale: relative.scale(query.dims()[2] / heads),
            added: taps::within("relative", || {
                relative.scores(both, heads, self.layer, mode)
            }),
        };
        taps::inside("probabilities", || {
            let (query, key) = (query.clone(), key.clone());
            ops::probabilities_of(query, key, heads, mask.clone(), scores.clone())
        });
        let tensors = [query, key, value];
        let attended = ops::biased_attention(tensors, heads, mask, scores, self.dropout(mode));
        taps::output_of_heads(heads, attended)
    }

    /// What the fused operation does not keep: `query`, `key`, `value`, each [B, S, H], and the `probabilities` before
    /// dropout, [B, N, S, S]. Computed once more, where somebody looks.
    fn hand_out(&self, hidden_states: &Tensor<3>, attention_mask: &Tensor<2>, mode: Mode) {
        let project = |layer: &Linear| layer.forward(hidden_states.clone(), mode);
        taps::inside("query", || project(&self.query));
        taps::inside("key", || project(&self.key));
        taps::inside("value", || project(&self.value));
        taps::inside("probabilities", || {
            let heads = self.num_attention_heads;
            let (query, key) = (project(&self.query), project(&self.key));
            ops::attention_probabilities(query, key, heads, attention_mask.clone(), None)
        });
    }
}

//! Encoder layer i of ModernBERT. Checkpoint keys `model.layers.{i}.*`; here BERT's, as far as BERT has such a layer.
//! Source: Warner et al. 2024, "Smarter, Better, Faster, Longer", section 2.1; transformers v4.57.1 `modeling_modernbert.py`,
//! `ModernBertEncoderLayer`. Dimensions: B sequences, S positions, N heads of size D, H = N·D, F = intermediate_size.
//!
//! What differs from BERT's [`Layer`](crate::layer::Layer):
//!
//! - each half normalizes its input and not its output, so that the sum of inputs passes the layer as it is;
//! - positions are no vectors that are added to the words, but angles by which queries and keys are rotated
//!   ([`ops::rotary`]);
//! - most layers attend to the positions within a window, every third one to all ([`LayerAttention`]);
//! - the feed-forward part has a gate: of 2·F numbers F go through GELU and are multiplied with the other F;
//! - no layer has a bias.

use burn::module::Module;
use burn::tensor::Tensor;

use crate::config::{BertConfig, LayerAttention, ModernConfig};
use crate::layer_norm::LayerNorm;
use crate::linear::Linear;
use crate::mode::{DropoutSite, Mode};
use crate::parameters::Parameters;
use crate::{operation, ops, taps};

/// Attention, then the feed-forward part. Each takes its normalized input and is added to the input.
#[derive(Module, Debug)]
pub struct PreNormLayer {
    /// The positions of a sequence exchange information.
    pub attention: PreNormAttention,
    /// The feed-forward part of each position: H → F …
    pub intermediate: GatedIntermediate,
    /// … and F → H.
    pub output: PreNormOutput,
}

/// Attention with its residual connection.
#[derive(Module, Debug)]
pub struct PreNormAttention {
    /// Of the input, over H. The first layer has none: embeddings are normalized.
    pub layer_norm: Option<LayerNorm>,
    /// The heads.
    pub self_attention: RotarySelfAttention,
    /// The projection after the heads.
    pub output: AttentionProjection,
}

/// Multi-head self-attention whose queries and keys are rotated by their positions.
#[derive(Module, Debug)]
pub struct RotarySelfAttention {
    /// H → 3·H: queries, keys and values side by side.
    pub qkv: Linear,
    #[module(skip)]
    num_attention_heads: usize,
    #[module(skip)]
    attention_probs_dropout_prob: f64,
    #[module(skip)]
    attention: LayerAttention,
    #[module(skip)]
    layer: usize,
}

/// Mixes the outputs of the heads and adds the layer's input.
#[derive(Module, Debug)]
pub struct AttentionProjection {
    /// H → H.
    pub dense: Linear,
    #[module(skip)]
    dropout_prob: f64,
    #[module(skip)]
    layer: usize,
}

/// The widening half of the feed-forward part, with a gate. Source: Shazeer 2020, "GLU variants improve transformer", GEGLU.
#[derive(Module, Debug)]
pub struct GatedIntermediate {
    /// Of the input, over H.
    pub layer_norm: LayerNorm,
    /// H → 2·F: what goes through GELU, then the gate.
    pub dense: Linear,
    #[module(skip)]
    dropout_prob: f64,
    #[module(skip)]
    layer: usize,
}

/// The narrowing half of the feed-forward part, which adds its input.
#[derive(Module, Debug)]
pub struct PreNormOutput {
    /// F → H.
    pub dense: Linear,
    /// Of the sum, over H: only the last layer has it. In transformers it is the model's `final_norm`.
    pub layer_norm: Option<LayerNorm>,
}

impl PreNormLayer {
    /// Takes the parameters of encoder layer `layer`, counted from 0.
    pub fn new(
        parameters: &mut Parameters,
        (config, modern): (&BertConfig, &ModernConfig),
        layer: usize,
    ) -> Self {
        let hidden_size = config.hidden_size;
        let attention =
            PreNormAttention::new(&mut parameters.enter("attention"), (config, modern), layer);
        let mut inside = parameters.enter("intermediate");
        let initial = modern.initial(config.initializer_range);
        let sizes = [hidden_size, 2 * config.intermediate_size];
        let intermediate = GatedIntermediate {
            layer_norm: norm(&mut inside, config),
            dense: Linear::without_bias(&mut inside.enter("dense"), sizes, initial),
            dropout_prob: modern.mlp_dropout_prob,
            layer,
        };
        let mut inside = parameters.enter("output");
        let is_last = layer + 1 == config.num_hidden_layers;
        let initial = modern.initial(config.deviation_of_sums());
        let sizes = [config.intermediate_size, hidden_size];
        let output = PreNormOutput {
            dense: Linear::without_bias(&mut inside.enter("dense"), sizes, initial),
            layer_norm: is_last.then(|| norm(&mut inside, config)),
        };
        Self {
            attention,
            intermediate,
            output,
        }
    }

    /// # Shapes
    /// hidden_states [B, S, H], attention_mask [B, S] with 1 = token → [B, S, H]
    pub fn forward(
        &self,
        hidden_states: Tensor<3>,
        attention_mask: Tensor<2>,
        mode: Mode,
    ) -> Tensor<3> {
        let attended = taps::within("attention", || {
            let attended = self
                .attention
                .heads(hidden_states.clone(), attention_mask, mode);
            taps::within("output", || {
                self.attention.output.forward(attended, hidden_states, mode)
            })
        });
        self.feed_forward(attended, mode)
    }

    /// The output of the first `positions` alone, without dropout and without taps. All positions are attended to.
    ///
    /// # Shapes
    /// hidden_states [B, S, H], attention_mask [B, S] with 1 = token → [B, P, H]
    pub(crate) fn first(
        &self,
        hidden_states: Tensor<3>,
        attention_mask: Tensor<2>,
        positions: usize,
    ) -> Tensor<3> {
        let first = |x: Tensor<3>| x.narrow(1, 0, positions);
        let attended = (self.attention).heads(hidden_states.clone(), attention_mask, Mode::Eval);
        let (attended, input) = (first(attended), first(hidden_states));
        let attended = self.attention.output.forward(attended, input, Mode::Eval);
        self.feed_forward(attended, Mode::Eval)
    }

    fn feed_forward(&self, attended: Tensor<3>, mode: Mode) -> Tensor<3> {
        let widened = taps::within("intermediate", || {
            self.intermediate.forward(attended.clone(), mode)
        });
        taps::within("output", || self.output.forward(widened, attended, mode))
    }
}

impl PreNormAttention {
    fn new(
        parameters: &mut Parameters,
        (config, modern): (&BertConfig, &ModernConfig),
        layer: usize,
    ) -> Self {
        let hidden_size = config.hidden_size;
        let layer_norm = (layer > 0).then(|| norm(parameters, config));
        let mut inside = parameters.enter("self");
        let initial = modern.initial(config.initializer_range);
        let sizes = [hidden_size, 3 * hidden_size];
        let qkv = Linear::without_bias(&mut inside.enter("qkv"), sizes, initial);
        let mut inside = parameters.enter("output");
        let initial = modern.initial(config.deviation_of_sums());
        Self {
            layer_norm,
            self_attention: RotarySelfAttention {
                qkv,
                num_attention_heads: config.num_attention_heads,
                attention_probs_dropout_prob: config.attention_probs_dropout_prob,
                attention: modern.layers[layer],
                layer,
            },
            output: AttentionProjection {
                dense: Linear::without_bias(&mut inside.enter("dense"), [hidden_size; 2], initial),
                dropout_prob: config.attention_probs_dropout_prob,
                layer,
            },
        }
    }

    /// The outputs of the heads on the normalized input, side by side.
    fn heads(&self, hidden_states: Tensor<3>, mask: Tensor<2>, mode: Mode) -> Tensor<3> {
        let normalized = match &self.layer_norm {
            Some(layer_norm) => layer_norm.forward(hidden_states),
            None => hidden_states,
        };
        taps::within("self", || {
            self.self_attention.forward(normalized, mask, mode)
        })
    }
}

impl RotarySelfAttention {
    /// How many heads there are.
    pub fn heads(&self) -> usize {
        self.num_attention_heads
    }

    /// # Shapes
    /// normalized [B, S, H]; attention_mask [B, S], 1 = token, 0 = padding → [B, S, H]
    pub fn forward(
        &self,
        normalized: Tensor<3>,
        attention_mask: Tensor<2>,
        mode: Mode,
    ) -> Tensor<3> {
        let LayerAttention { base, window } = self.attention;
        let heads = self.num_attention_heads;
        let hidden = normalized.dims()[2];
        let projected = taps::within("qkv", || self.qkv.forward(normalized, mode));
        let part = |index: usize| projected.clone().narrow(2, index * hidden, hidden);
        let query = taps::within("query", || ops::rotary(part(0), heads, base));
        let key = taps::within("key", || ops::rotary(part(1), heads, base));
        let value = part(2);
        taps::inside("query", || query.clone());
        taps::inside("key", || key.clone());
        taps::inside("value", || value.clone());
        taps::inside("probabilities", || {
            let (query, key, mask) = (query.clone(), key.clone(), attention_mask.clone());
            ops::attention_probabilities(query, key, heads, mask, window)
        });
        let site = DropoutSite::AttentionProbabilities(self.layer);
        let dropout = mode.dropout(self.attention_probs_dropout_prob, site);
        let tensors = [query, key, value];
        let attended = ops::local_attention(tensors, heads, attention_mask, window, dropout);
        taps::output_of_heads(heads, attended)
    }
}

impl AttentionProjection {
    /// # Shapes
    /// attended and input, both [B, S, H] → [B, S, H]
    fn forward(&self, attended: Tensor<3>, input: Tensor<3>, mode: Mode) -> Tensor<3> {
        let mixed = taps::within("dense", || taps::output(self.dense.forward(attended, mode)));
        let site = DropoutSite::AttentionOutput(self.layer);
        let mixed = match mode.dropout(self.dropout_prob, site) {
            Some((rate, key)) => ops::dropout(mixed, rate, key),
            None => mixed,
        };
        taps::output(added(mixed, input))
    }
}

impl GatedIntermediate {
    /// # Shapes
    /// [B, S, H] → [B, S, F]
    pub fn forward(&self, input: Tensor<3>, mode: Mode) -> Tensor<3> {
        let normalized = self.layer_norm.forward(input);
        let wide = taps::within("dense", || {
            taps::output(self.dense.forward(normalized, mode))
        });
        let width = wide.dims()[2] / 2;
        let gated = ops::gelu(wide.clone().narrow(2, 0, width));
        let gate = wide.narrow(2, width, width);
        let product = operation!("gate", [gated, gate], gated * gate);
        let site = DropoutSite::FeedForward(self.layer);
        taps::output(match mode.dropout(self.dropout_prob, site) {
            Some((rate, key)) => ops::dropout(product, rate, key),
            None => product,
        })
    }
}

impl PreNormOutput {
    /// # Shapes
    /// widened [B, S, F], input [B, S, H] → [B, S, H]
    pub fn forward(&self, widened: Tensor<3>, input: Tensor<3>, mode: Mode) -> Tensor<3> {
        let narrowed = taps::within("dense", || taps::output(self.dense.forward(widened, mode)));
        let sum = added(narrowed, input);
        taps::output(match &self.layer_norm {
            Some(layer_norm) => layer_norm.forward(sum),
            None => sum,
        })
    }
}

/// The residual connection. The sum stays float32 under a mixed policy: all layers add to it, and each adds little.
fn added(x: Tensor<3>, input: Tensor<3>) -> Tensor<3> {
    operation!("add input", [x, input], x + input)
}

fn norm(parameters: &mut Parameters, config: &BertConfig) -> LayerNorm {
    let mut inside = parameters.enter("LayerNorm");
    LayerNorm::without_bias(&mut inside, config.hidden_size, config.layer_norm_eps)
}

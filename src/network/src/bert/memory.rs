//! What a training step of BERT takes beside weights and moments, from what the operations keep for the backward pass.
//!
//! Numbers of float32, for T = B·S tokens, H = hidden_size, F = intermediate_size, N heads. Of each encoder layer is kept:
//!
//! | operation | on the CPU (`ops::fused`) | on GPUs (`ops::gpu`) |
//! | --- | --- | --- |
//! | `self_attention` | its input T·H, the projections 3·T·H, 2·T·N for the softmax | the same input and projections, the probabilities before dropout T·N·S |
//! | `linear` after the heads | its input T·H | T·H |
//! | `add_layer_norm` | the normalized rows T·H | T·H, and the deviation of each row, T |
//! | `linear_gelu` | its input T·H and the derivative T·F | T·H and the product T·F |
//! | `linear` back to H | its input T·F | T·F |
//! | `add_layer_norm` | T·H | T·H and T |
//!
//! While the backward pass goes down, it frees what is kept and makes gradients. So the most is needed at one of three
//! times: when it begins in the uppermost layer, when it has reached the lowest one, or at its end, when all gradients are
//! there. In the middle of a layer it also needs the gradients of the widened rows, T·F + T·H, and the two large weights'.
//! A masked language model also has logits, their softmax and their gradients for every token that it predicts, and the
//! gradients of the word embeddings from the begin on, which are its decoder too.
//!
//! A layer of ModernBERT keeps on the CPU: the normalized rows and their products with the scale, twice, 4·T·H; queries, keys and
//! values, 3·T·H, and 2·T·N for the softmax; the outputs of the heads, T·H; of the gate the derivative, the two factors, the
//! wide rows and the product, 6·T·F. On GPUs its attention is made of burn's operations, which keep about three tensors of scores.
//!
//! A layer of ALBERT keeps of its activation, which is made of burn's operations, the input, its square, the tanh, the sum with 1 and the
//! product, 5·T·F. It is computed several times and keeps that each time, but it has one gradient.
//!
//! Under a mixed policy the rounded weights are kept too. In bfloat16 on the CPU (`ops::cpu::bf16`) they are not; what is
//! kept, but for the softmax, takes half, and the gradients of the widened rows are there in float32, rounded and packed.
//! In float16 on GPUs what products read takes half, normalized rows and probabilities do not.

use stratoscope_bert::BertConfig;
use stratoscope_bert::config::{Gelu, Relative};

use crate::StepShape;
use stratoscope_report::memory_plan::StepMemory;

/// A float32.
const ELEMENT: u64 = 4;
/// Ids, segments and the mask of a token, as tensors and as places in the tables.
const OF_A_TOKEN: u64 = 36;

/// Sizes of a network and of a step.
struct Sizes {
    tokens: u64,
    length: u64,
    hidden: u64,
    intermediate: u64,
    heads: u64,
    on_cpu: bool,
    in_bfloat16: bool,
    half_on_gpu: bool,
    /// Whether probabilities have dropout; on GPUs it is computed again, for a layer at a time.
    drops: bool,
    /// Numbers that the adapters of a layer keep for a token.
    adapters: u64,
    /// Whether it is a ModernBERT.
    is_modern: bool,
    /// Numbers that an activation keeps for each of the wide rows, beside what the products keep of them.
    of_activation: u64,
    /// Numbers that each head keeps of a score, where scores depend on distances and are computed by burn's operations.
    of_a_score: u64,
}

impl Sizes {
    fn of(config: &BertConfig, step: &StepShape<'_>) -> Self {
        Self {
            tokens: (step.examples as u64).saturating_mul(step.length as u64),
            length: step.length as u64,
            hidden: config.hidden_size as u64,
            intermediate: config.intermediate_size as u64,
            heads: config.num_attention_heads as u64,
            on_cpu: step.on_cpu,
            in_bfloat16: step.in_bfloat16,
            half_on_gpu: step.half_on_gpu,
            drops: config.attention_probs_dropout_prob > 0.0,
            adapters: of_adapters(config),
            is_modern: config.modern.is_some(),
            of_activation: match config.gelu {
                Gelu::Exact => 0,
                Gelu::Tanh => 3,
            },
            of_a_score: match config.relative {
                None => 0,
                Some(Relative::Scores) => 4,
                Some(Relative::Vectors(_)) => 8,
            },
        }
    }

    /// What is kept of a layer for a token, its input included.
    fn of_a_layer(&self) -> u64 {
        let (hidden, wide) = (self.hidden, self.intermediate);
        let adapters = self.kept(self.adapters) + self.of_a_score * self.heads * self.length;
        if self.is_modern {
            let of_heads = match self.on_cpu {
                true => 2 * self.heads,
                false => 3 * self.heads * self.length,
            };
            return adapters + self.kept(8 * hidden + 6 * wide) + of_heads;
        }
        let of_activation = self.of_activation * wide;
        adapters
            + of_activation
            + match self.on_cpu {
                true => self.kept(8 * hidden + 2 * wide) + 2 * self.heads,
                false => {
                    let scores = self.heads * self.length;
                    match self.half_on_gpu {
                        true => 5 * hidden + wide + scores + 2,
                        false => 8 * hidden + 2 * wide + scores + 2,
                    }
                }
            }
    }

    /// So many numbers that are kept on the CPU, in numbers of float32.
    fn kept(&self, numbers: u64) -> u64 {
        match self.in_bfloat16 {
            true => numbers / 2,
            false => numbers,
        }
    }

    /// What the backward pass of a layer needs beside that, for a token.
    fn beside(&self) -> u64 {
        match self.on_cpu {
            true if self.in_bfloat16 => self.hidden + 2 * self.intermediate,
            true => self.hidden + self.intermediate,
            // What an operation has read is freed when the queue of the device has come so far.
            false => {
                let dropped = u64::from(self.drops) * self.heads * self.length;
                self.hidden + 2 * self.intermediate + dropped
            }
        }
    }

    /// The bytes of what a masked language model needs for the tokens that it predicts.
    fn of_logits(&self, vocabulary: usize, share: f64) -> u64 {
        let tokens = (self.tokens as f64 * share).ceil() as u64;
        tokens.saturating_mul(3 * vocabulary as u64 * ELEMENT)
    }

    /// The weights of a layer that are rounded under a mixed policy.
    fn weights(&self) -> u64 {
        let wide = if self.is_modern { 3 } else { 2 };
        4 * self.hidden * self.hidden + wide * self.hidden * self.intermediate
    }
}

/// What the adapters of the layer with the most keep for a token: what lies between the two matrices, and with dropout
/// their inputs. Without it they keep what their layers keep.
fn of_adapters(config: &BertConfig) -> u64 {
    let Some(lora) = &config.lora else {
        return 0;
    };
    let of_layer = |index: usize| {
        let prefix = format!("bert.encoder.layer.{index}.");
        let paths = lora
            .modules
            .iter()
            .filter_map(|module| module.strip_prefix(&prefix));
        let numbers = paths.map(|path| {
            let inputs = match path {
                "output.dense" => config.intermediate_size,
                _ => config.hidden_size,
            };
            lora.rank + if lora.dropout > 0.0 { inputs } else { 0 }
        });
        numbers.sum::<usize>() as u64
    };
    (0..config.num_hidden_layers)
        .map(of_layer)
        .max()
        .unwrap_or(0)
}

/// The bytes of the gradients of the two large weights of a layer, as far as any layer trains them: frozen ones have none.
fn wide_gradients(sizes: &Sizes, config: &BertConfig, step: &StepShape<'_>) -> u64 {
    let of_layer = |index: usize| {
        let of_part =
            |part: &str| (step.trained)(&format!("bert.encoder.layer.{index}.{part}.dense."));
        of_part("intermediate") + of_part("output")
    };
    let most = (0..config.num_hidden_layers).map(of_layer).max();
    let matrices = if sizes.is_modern { 3 } else { 2 };
    let whole = matrices * sizes.hidden * sizes.intermediate * ELEMENT;
    whole.min(most.unwrap_or(0))
}

/// The bytes that some layers keep for their backward pass, with the embeddings where they are among them, as if all were trained.
pub(super) fn of_a_segment(
    config: &BertConfig,
    step: &StepShape<'_>,
    layers: usize,
    has_embeddings: bool,
) -> u64 {
    let sizes = Sizes::of(config, step);
    let of_layers = match step.recompute {
        true => layers as u64 * sizes.hidden,
        false => layers as u64 * sizes.of_a_layer(),
    };
    let of_embeddings = u64::from(has_embeddings) * sizes.kept(sizes.hidden);
    let numbers = (of_embeddings + of_layers).saturating_mul(ELEMENT) + OF_A_TOKEN;
    sizes.tokens.saturating_mul(numbers)
}

/// The three times of a backward pass. `predicted`: the share of the tokens that a masked language model predicts.
pub(super) fn of_a_step(
    config: &BertConfig,
    step: &StepShape<'_>,
    predicted: Option<f64>,
) -> Vec<StepMemory> {
    let sizes = Sizes::of(config, step);
    let layer = |index: usize| format!("bert.encoder.layer.{index}.");
    let trained = |prefix: &str| (step.trained)(prefix);
    // With the projection after them.
    let embeddings = trained("bert.embeddings");
    // A layer keeps something if it or anything below is trained.
    let all = config.num_hidden_layers;
    let first = match embeddings {
        0 => (0..all)
            .find(|&index| trained(&layer(index)) > 0)
            .unwrap_or(all),
        _ => 0,
    };
    let kept = (all - first) as u64;
    let of_layers = match (step.recompute, kept) {
        (_, 0) => 0,
        (true, kept) => kept * sizes.hidden + sizes.of_a_layer() - sizes.hidden,
        (false, kept) => kept * sizes.of_a_layer(),
    };
    let of_embeddings = u64::from(embeddings > 0) * sizes.kept(sizes.hidden);
    let bytes = |of_a_token: u64| {
        let numbers = of_a_token.saturating_mul(ELEMENT) + OF_A_TOKEN;
        sizes.tokens.saturating_mul(numbers)
    };
    let (beside, some) = match kept {
        0 => (0, 0),
        _ => (sizes.beside(), 1),
    };
    let rounded_size = if step.half_on_gpu {
        ELEMENT / 2
    } else {
        ELEMENT
    };
    // A layer that is computed again has its rounded weights for itself.
    let rounded = match (step.rounds, step.recompute) {
        (false, _) => 0,
        (true, true) => some * sizes.weights() * rounded_size,
        (true, false) => kept * sizes.weights() * rounded_size,
    };
    let of_the_head = trained("") - embeddings - trained("bert.encoder.");
    // The gradient of a layer that is computed several times is there from the first time on.
    let lowest = if config.family.shares_layers() {
        0
    } else {
        trained(&format!("{}attention.", layer(first)))
    };
    let wide = some * wide_gradients(&sizes, config, step);
    let of_logits = predicted.map_or(0, |share| sizes.of_logits(config.vocab_size, share));
    let of_decoder = predicted.map_or(0, |_| trained("bert.embeddings.word_embeddings."));
    vec![
        StepMemory {
            when: "when the backward pass begins",
            activations: bytes(of_embeddings + of_layers + beside).saturating_add(of_logits),
            gradients: of_the_head + of_decoder + wide + rounded,
        },
        StepMemory {
            when: "when the backward pass is in the lowest layer",
            activations: bytes(of_embeddings + some * sizes.of_a_layer() + beside),
            gradients: trained("") - embeddings + of_decoder - lowest
                + some * rounded / kept.max(1),
        },
        StepMemory {
            when: "when all gradients are there",
            activations: bytes(3 * of_embeddings),
            gradients: trained(""),
        },
    ]
}

//! The body of the model without a pooler, for heads that look at every token. Checkpoint keys `bert.*`.
//! Dimensions: B sequences, S positions, H = hidden_size.

use burn::module::Module;
use burn::tensor::Tensor;

use crate::batch::BatchTensors;
use crate::config::BertConfig;
use crate::embeddings::{self, Embeddings};
use crate::encoder::Encoder;
use crate::linear::Linear;
use crate::mode::Mode;
use crate::parameters::Parameters;
use crate::taps;

/// Embeddings and encoder.
#[derive(Module, Debug)]
pub struct Body {
    /// Tokens → vectors.
    pub embeddings: Embeddings,
    /// E → H, where the tables hold vectors of another length than the layers take.
    pub embeddings_project: Option<Linear>,
    /// Vectors → vectors in context.
    pub encoder: Encoder,
}

/// The outputs of the body.
#[derive(Clone, Debug)]
pub struct BodyOutput {
    /// What the encoder takes: after the embeddings' LayerNorm, dropout and projection, [B, S, H].
    pub embedded: Tensor<3>,
    /// After each encoder layer, [B, S, H].
    pub hidden_states: Vec<Tensor<3>>,
}

impl BodyOutput {
    /// The output of the last encoder layer, [B, S, H].
    pub fn last_hidden_state(&self) -> Tensor<3> {
        self.hidden_states.last().unwrap_or(&self.embedded).clone()
    }
}

impl Body {
    /// Takes the parameters under `bert`.
    pub fn new(parameters: &mut Parameters, config: &BertConfig) -> Self {
        Self {
            embeddings: Embeddings::new(&mut parameters.enter("embeddings"), config),
            embeddings_project: embeddings::projection(parameters, config),
            encoder: Encoder::new(&mut parameters.enter("encoder"), config),
        }
    }

    /// Runs the body, as [`Bert::forward`](crate::Bert::forward) does.
    pub fn forward(&self, batch: BatchTensors, mode: Mode) -> BodyOutput {
        taps::within("bert", || {
            let embedded = taps::within("embeddings", || self.embeddings.forward(&batch, mode));
            let embedded = embeddings::projected(self.embeddings_project.as_ref(), embedded, mode);
            let hidden_states = taps::within("encoder", || {
                (self.encoder).forward(embedded.clone(), batch.attention_mask, mode)
            });
            BodyOutput {
                embedded,
                hidden_states,
            }
        })
    }
}

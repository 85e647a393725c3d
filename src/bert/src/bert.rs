//! The body of the model, which is the same for all tasks. Checkpoint keys `bert.*`.
//! Source: Devlin et al. 2019; google-research/bert@eedf571 `modeling.py`, `BertModel`.
//! Dimensions: B sequences, S positions, H = hidden_size.

use burn::module::Module;
use burn::tensor::Tensor;

use crate::batch::BatchTensors;
use crate::config::BertConfig;
use crate::embeddings::{self, Embeddings};
use crate::encoder::Encoder;
use crate::linear::Linear;
use crate::mode::Mode;
use crate::parallel;
use crate::parameters::Parameters;
use crate::pooler::Pooler;
use crate::taps;

/// Embeddings, encoder, pooler.
#[derive(Module, Debug)]
pub struct Bert {
    /// Tokens → vectors.
    pub embeddings: Embeddings,
    /// E → H, where the tables hold vectors of another length than the layers take.
    pub embeddings_project: Option<Linear>,
    /// Vectors → vectors in context.
    pub encoder: Encoder,
    /// One vector for the whole sequence.
    pub pooler: Pooler,
}

/// The outputs of the body.
#[derive(Clone, Debug)]
pub struct BertOutput {
    /// What the encoder takes: after the embeddings' LayerNorm, dropout and projection, [B, S, H].
    pub embedded: Tensor<3>,
    /// After each encoder layer, [B, S, H].
    pub hidden_states: Vec<Tensor<3>>,
    /// One vector for the sequence, [B, H]: the pooled first token, or what else the pooler reads.
    pub pooled: Tensor<2>,
}

impl BertOutput {
    /// The output of the last encoder layer, [B, S, H].
    pub fn last_hidden_state(&self) -> Tensor<3> {
        self.hidden_states.last().unwrap_or(&self.embedded).clone()
    }
}

impl Bert {
    /// Takes the parameters under `bert`.
    pub fn new(parameters: &mut Parameters, config: &BertConfig) -> Self {
        Self {
            embeddings: Embeddings::new(&mut parameters.enter("embeddings"), config),
            embeddings_project: embeddings::projection(parameters, config),
            encoder: Encoder::new(&mut parameters.enter("encoder"), config),
            pooler: Pooler::new(&mut parameters.enter("pooler"), config),
        }
    }

    /// Runs the body. The sequence may be at most `max_position_embeddings` long and every id below
    /// `vocab_size`; the data pipeline checks both.
    pub fn forward(&self, batch: BatchTensors, mode: Mode) -> BertOutput {
        let embedded = self.embedded(&batch, mode);
        self.forward_embedded(embedded, batch.attention_mask, mode)
    }

    /// The pooled vector alone, [B, H]: that of [`Self::forward`]. Where nothing else can be asked for, because there are
    /// neither gradients nor taps nor slices of layers, the last layer computes only what the first token needs.
    pub fn pooled(&self, batch: BatchTensors, mode: Mode) -> Tensor<2> {
        let embedded = self.embedded(&batch, mode);
        let reads_first = self.pooler.reads_first();
        let is_whole = !taps::is_active() && !parallel::is_active();
        if !reads_first || mode != Mode::Eval || !is_whole || embedded.device().is_autodiff() {
            return self
                .forward_embedded(embedded, batch.attention_mask, mode)
                .pooled;
        }
        let mask = batch.attention_mask;
        let first = self.encoder.first(embedded, mask.clone());
        self.pooler.forward(first, mask, mode)
    }

    fn embedded(&self, batch: &BatchTensors, mode: Mode) -> Tensor<3> {
        let embedded = taps::within("embeddings", || self.embeddings.forward(batch, mode));
        embeddings::projected(self.embeddings_project.as_ref(), embedded, mode)
    }

    fn forward_embedded(
        &self,
        embedded: Tensor<3>,
        attention_mask: Tensor<2>,
        mode: Mode,
    ) -> BertOutput {
        let hidden_states = taps::within("encoder", || {
            (self.encoder).forward(embedded.clone(), attention_mask.clone(), mode)
        });
        let last = hidden_states.last().unwrap_or(&embedded).clone();
        let pooled = taps::within("pooler", || self.pooler.forward(last, attention_mask, mode));
        BertOutput {
            embedded,
            hidden_states,
            pooled,
        }
    }
}

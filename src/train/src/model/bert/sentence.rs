//! BERT that gives each text a vector, as a model: similarity and search, and training by pairs of texts with the
//! similarity that they are to have.

use burn::tensor::{Device, Tensor};
use stratoscope_bert::{BatchTensors, Computed, LoadOptions, Mode, Segment, SentenceEncoder};
use stratoscope_data::{Batch, Labels};
use stratoscope_diagnostics::Result;
use stratoscope_strategy::Origin;

use super::{BertFiles, load};
use crate::model::ModelOf;
use crate::network::{InStages, Network};

/// BERT that gives each text a vector.
pub type BertForSentenceEmbedding = ModelOf<SentenceEncoder>;

impl Network for SentenceEncoder {
    type Files = BertFiles;

    /// A vector of length 1 for each text, [B, H]; of pairs with a label the cosine of their two vectors, [B, 1].
    fn logits(&self, batch: &Batch, mode: Mode, device: &Device) -> Tensor<2> {
        match batch.labels {
            Labels::Absent => self.forward(BatchTensors::from_batch(batch, device), mode),
            _ => self.similarity(BatchTensors::of_pairs(batch, device), mode),
        }
    }

    fn in_stages() -> InStages {
        InStages::Chain
    }

    fn segment(
        &self,
        segment: &Segment,
        before: Option<Tensor<3>>,
        batch: &Batch,
        mode: Mode,
        device: &Device,
    ) -> Option<Computed> {
        let is_alone = matches!(batch.labels, Labels::Absent);
        let texts = match is_alone {
            true => BatchTensors::from_batch(batch, device),
            false => BatchTensors::of_pairs(batch, device),
        };
        let mask = texts.attention_mask.clone();
        let hidden = segment.hidden(&self.bert, before, texts, mode);
        Some(segment.computed(hidden, |hidden| {
            let vectors = Self::of_hidden(hidden, mask);
            match is_alone {
                true => vectors,
                false => Self::cosines(vectors),
            }
        }))
    }

    of_a_checkpoint!();
}

impl ModelOf<SentenceEncoder> {
    /// Loads the body of a checkpoint, whatever head it has.
    ///
    /// # Errors
    /// The checkpoint's own diagnostics; SC0907 if a device does not take its copy.
    #[track_caller]
    pub fn from_pretrained(name: &str) -> Result<Self> {
        load(name, &LoadOptions::new(), Origin::current())
    }
}

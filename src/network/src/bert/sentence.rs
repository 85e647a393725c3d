//! BERT that gives each text a vector: what training needs of it.

use burn::tensor::{Device, Tensor};
use stratoscope_bert::{BatchTensors, Computed, Mode, Segment, SentenceEncoder};
use stratoscope_data::{Batch, Labels};

use super::BertFiles;
use crate::{InStages, Network};

impl Network for SentenceEncoder {
    type Files = BertFiles;

    /// A vector of length 1 for each text, [B, H]; of pairs with a label the cosine of their two vectors, [B, 1]; of T texts
    /// that are compared with those of other examples their vectors, [B, T·H].
    fn logits(&self, batch: &Batch, mode: Mode, device: &Device) -> Tensor<2> {
        match batch.labels {
            Labels::Absent => self.forward(BatchTensors::from_batch(batch, device), mode),
            Labels::Apart { texts, .. } => {
                let vectors = self.forward(BatchTensors::from_batch(batch, device), mode);
                side_by_side(vectors, texts)
            }
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
        let count = match batch.labels {
            Labels::Absent => Some(1),
            Labels::Apart { texts, .. } => Some(texts),
            _ => None,
        };
        let texts = match count {
            Some(_) => BatchTensors::from_batch(batch, device),
            None => BatchTensors::of_pairs(batch, device),
        };
        let mask = texts.attention_mask.clone();
        let hidden = segment.hidden(&self.bert, before, texts, mode);
        Some(segment.computed(hidden, |hidden| {
            let vectors = Self::of_hidden(hidden, mask);
            match count {
                Some(texts) => side_by_side(vectors, texts),
                None => Self::cosines(vectors),
            }
        }))
    }

    of_a_checkpoint!();
}

/// The vectors of each example in one row.
///
/// # Shapes
/// [B·T, H] → [B, T·H]
fn side_by_side(vectors: Tensor<2>, texts: usize) -> Tensor<2> {
    let [rows, width] = vectors.dims();
    vectors.reshape([rows / texts, texts * width])
}

//! A vector for each text: the mean over its tokens, of length 1. Checkpoint keys `bert.*`, or none before a layer's, as in
//! transformers' `BertModel`. Source: Reimers and Gurevych 2019, section 3, "MEAN-strategy".
//! Dimensions: B sequences, S positions, H = hidden_size.

use burn::module::Module;
use burn::tensor::Tensor;

use crate::batch::BatchTensors;
use crate::body::Body;
use crate::config::BertConfig;
use crate::heads::BertNetwork;
use crate::mode::Mode;
use crate::parameters::Parameters;
use crate::taps;

/// The body.
#[derive(Module, Debug)]
pub struct SentenceEncoder {
    /// The body.
    pub bert: Body,
}

impl SentenceEncoder {
    /// # Shapes
    /// ids, mask and types [B, S] → vectors of length 1, [B, H]
    pub fn forward(&self, batch: BatchTensors, mode: Mode) -> Tensor<2> {
        let mask = batch.attention_mask.clone();
        Self::of_hidden(self.bert.forward(batch, mode).last_hidden_state(), mask)
    }

    /// What follows the last encoder layer.
    ///
    /// # Shapes
    /// hidden [B, S, H], mask [B, S] with 1 = token → vectors of length 1, [B, H]
    pub fn of_hidden(hidden: Tensor<3>, mask: Tensor<2>) -> Tensor<2> {
        taps::within("embedding", || {
            let sum = (hidden * mask.clone().unsqueeze_dim::<3>(2)).sum_dim(1);
            let sum = sum.squeeze_dim::<2>(1);
            // Every text has a token; of vectors of zeros the length is not divided by.
            let mean = sum / mask.sum_dim(1).clamp_min(1.0);
            let length = mean.clone().square().sum_dim(1).sqrt().clamp_min(1e-12);
            taps::output(mean / length)
        })
    }

    /// The cosines of the vectors of pairs of texts, as [`BatchTensors::of_pairs`] lays them out. Source: as above, figure 2.
    ///
    /// # Shapes
    /// ids, mask and types [2·B, S] → [B, 1]
    pub fn similarity(&self, texts: BatchTensors, mode: Mode) -> Tensor<2> {
        Self::cosines(self.forward(texts, mode))
    }

    /// The cosines of pairs of vectors of length 1: all first ones, then all second ones.
    ///
    /// # Shapes
    /// [2·B, H] → [B, 1]
    pub fn cosines(vectors: Tensor<2>) -> Tensor<2> {
        let pairs = vectors.dims()[0] / 2;
        let (first, second) = (
            vectors.clone().narrow(0, 0, pairs),
            vectors.narrow(0, pairs, pairs),
        );
        taps::within("similarity", || taps::output((first * second).sum_dim(1)))
    }
}

impl BertNetwork for SentenceEncoder {
    const ARCHITECTURE: &'static str = "BertModel";

    fn new(parameters: &mut Parameters, config: &BertConfig) -> Self {
        Self {
            bert: Body::new(&mut parameters.enter("bert"), config),
        }
    }
}

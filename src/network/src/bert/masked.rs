//! BERT that predicts hidden tokens: what training needs of it.

use burn::tensor::{Device, Int, Tensor, TensorData};
use stratoscope_bert::{BatchTensors, MaskedLm, Mode};
use stratoscope_data::{Batch, Labels};

use super::BertFiles;
use crate::{InStages, Network};

impl Network for MaskedLm {
    type Files = BertFiles;

    /// K rows of V numbers, in one row for each example: a row for each token that is to be predicted. Where the batch does
    /// not say which, for each token.
    fn logits(&self, batch: &Batch, mode: Mode, device: &Device) -> Tensor<2> {
        let width = batch.seq;
        let all = 0..(batch.size() * width) as i32;
        let places: Vec<i32> = match &batch.labels {
            Labels::Tokens(labels) => match &labels.places {
                Some(places) => {
                    let rows = places.chunks(labels.seq.max(1)).enumerate();
                    let in_batch = |(row, own): (usize, &[i32])| {
                        let first = (row * width) as i32;
                        own.iter().map(|at| first + at).collect::<Vec<_>>()
                    };
                    rows.flat_map(in_batch).collect()
                }
                None => all.collect(),
            },
            _ => all.collect(),
        };
        let count = places.len();
        let places = TensorData::new(places, [count]);
        let places = Tensor::<1, Int>::from_data(places, &device.clone().inner());
        let logits = self.forward(BatchTensors::from_batch(batch, device), places, mode);
        let [count, vocabulary] = logits.dims();
        let rows = batch.size().max(1);
        logits.reshape([rows, count / rows * vocabulary])
    }

    fn in_stages() -> InStages {
        InStages::TiedDecoder
    }

    of_a_checkpoint!();
}

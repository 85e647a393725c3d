//! BERT with a class for each token: what training needs of it.

use burn::tensor::{Device, Tensor};
use stratoscope_bert::{BatchTensors, Mode, TokenClassifier};
use stratoscope_data::Batch;

use super::{BertFiles, flat};
use crate::Network;

impl Network for TokenClassifier {
    type Files = BertFiles;

    /// S rows of C numbers, in one row for each example.
    fn logits(&self, batch: &Batch, mode: Mode, device: &Device) -> Tensor<2> {
        flat(self.forward(BatchTensors::from_batch(batch, device), mode))
    }

    in_stages!(|network, hidden, _, _, mode| flat(network.of_hidden(hidden, mode)));

    of_a_checkpoint!();
}

//! BERT that marks the answer to a question in a text: what training needs of it.

use burn::tensor::{Device, Tensor};
use stratoscope_bert::{BatchTensors, Mode, QuestionAnswerer};
use stratoscope_data::Batch;

use super::{BertFiles, flat};
use crate::Network;

impl Network for QuestionAnswerer {
    type Files = BertFiles;

    /// S numbers for where the answer begins, then S for where it ends.
    fn logits(&self, batch: &Batch, mode: Mode, device: &Device) -> Tensor<2> {
        flat(self.forward(BatchTensors::from_batch(batch, device), mode))
    }

    in_stages!(|network, hidden, _, _, mode| flat(network.of_hidden(hidden, mode)));

    of_a_checkpoint!();
}

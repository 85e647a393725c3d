//! BERT that chooses one of several texts for a prompt: what training needs of it.

use burn::tensor::{Device, Tensor};
use stratoscope_bert::{BatchTensors, Mode, MultipleChoice};
use stratoscope_data::Batch;

use super::BertFiles;
use crate::Network;

impl Network for MultipleChoice {
    type Files = BertFiles;

    /// A number for each choice of a prompt, [B, N].
    fn logits(&self, batch: &Batch, mode: Mode, device: &Device) -> Tensor<2> {
        let choices = batch.choices.max(1);
        self.forward(BatchTensors::from_batch(batch, device), choices, mode)
    }

    in_stages!(|network, hidden, texts, batch, mode| {
        let mask = texts.attention_mask.clone();
        network.of_hidden(hidden, mask, batch.choices.max(1), mode)
    });

    of_a_checkpoint!();
}

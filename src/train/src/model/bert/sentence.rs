//! BERT that gives each text a vector, as a model: similarity and search.

use std::path::{Path, PathBuf};

use burn::tensor::{Device, Tensor};
use stratoscope_bert::{
    BatchTensors, LoadOptions, Mode, NamedParameter, SentenceEncoder, checkpoint, named_parameters,
};
use stratoscope_data::Batch;
use stratoscope_diagnostics::Result;
use stratoscope_strategy::Origin;

use super::{BertFiles, load};
use crate::model::Model;
use crate::model::calls::Calls;
use crate::network::{Activation, Network};

/// BERT that gives each text a vector.
pub type BertForSentenceEmbedding = Model<SentenceEncoder>;

impl Network for SentenceEncoder {
    type Files = BertFiles;

    /// A vector of length 1 for each example.
    fn logits(&self, batch: &Batch, mode: Mode, device: &Device) -> Tensor<2> {
        self.forward(BatchTensors::from_batch(batch, device), mode)
    }

    fn parameters(&self) -> Vec<NamedParameter> {
        named_parameters(self)
    }

    fn can_be_saved(&self) -> bool {
        true
    }

    fn save(&self, files: &BertFiles, folder: &Path) -> Result<Vec<PathBuf>> {
        checkpoint::save(folder, self, &files.config, &files.tokenizer)
    }

    fn output_activation(&self) -> Option<Activation> {
        Some(Activation::Linear)
    }

    fn follows_policy() -> bool {
        true
    }

    #[inline(never)]
    fn calls() -> Calls<Self> {
        Calls::compiled_here()
    }
}

impl Model<SentenceEncoder> {
    /// Loads the body of a checkpoint, whatever head it has.
    ///
    /// # Errors
    /// The checkpoint's own diagnostics; SC0907 if a device does not take its copy.
    #[track_caller]
    pub fn from_pretrained(name: &str) -> Result<Self> {
        load(name, &LoadOptions::new(), Origin::current())
    }
}

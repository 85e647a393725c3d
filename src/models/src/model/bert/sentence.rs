//! BERT that gives each text a vector, as a model: similarity and search, and training by pairs of texts with the
//! similarity that they are to have, or by texts that belong together.

use stratoscope_bert::{LoadOptions, SentenceEncoder};
use stratoscope_diagnostics::Result;
use stratoscope_strategy::Origin;

use super::load;
use crate::model::ModelOf;

/// BERT that gives each text a vector.
pub type BertForSentenceEmbedding = ModelOf<SentenceEncoder>;

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

//! BERT that predicts hidden tokens, as a model: pretraining on the texts of a domain, and filling in.

use stratoscope_bert::{LoadOptions, MaskedLm};
use stratoscope_data::Masking;
use stratoscope_diagnostics::Result;
use stratoscope_strategy::Origin;

use super::{BertFiles, load};
use crate::model::ModelOf;
use crate::predict::{IntoExamples, Predictions};
use crate::problem;

/// BERT that predicts hidden tokens.
pub type BertForMaskedLM = ModelOf<MaskedLm>;

impl ModelOf<MaskedLm> {
    /// Loads a checkpoint. A head that it lacks is new; its decoder is the word embeddings in any case.
    ///
    /// # Errors
    /// The checkpoint's own diagnostics; SC0907 if a device does not take its copy.
    #[track_caller]
    pub fn from_pretrained(name: &str) -> Result<Self> {
        load(name, &LoadOptions::new(), Origin::current())
    }

    /// The same with every choice that there is, such as the seed of a new head.
    ///
    /// # Errors
    /// As [`Self::from_pretrained`].
    #[track_caller]
    pub fn from_pretrained_with(name: &str, options: &LoadOptions) -> Result<Self> {
        load(name, options, Origin::current())
    }

    /// Which tokens are hidden in training and evaluation: `Masking { share: 0.15, whole_words: true }`.
    ///
    /// # Errors
    /// SC0103 for a share that is not above 0 and at most 1; SC0121 in a callback of the model's own run.
    pub fn set_masking(&self, masking: Masking) -> Result<()> {
        // This form of the condition also refuses NaN.
        if !(masking.share > 0.0 && masking.share <= 1.0) {
            let expects = "a share above 0 and at most 1";
            let problem = problem::bad_value("set_masking", "share", masking.share, expects);
            return Err(Box::new(problem));
        }
        self.free_state("set_masking")?
            .files
            .of_mut::<BertFiles>()
            .masking = masking;
        Ok(())
    }

    /// Fills in the masks of texts: `model.fill("a [MASK] server")?`. The same as `predict`.
    ///
    /// # Errors
    /// As [`predict`](crate::Model::predict); SC0103 for a text without a mask.
    #[track_caller]
    pub fn fill(&self, texts: impl IntoExamples) -> Result<Predictions> {
        self.predict(texts)
    }
}

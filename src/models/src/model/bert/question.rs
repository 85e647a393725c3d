//! BERT that marks the answer to a question in a text, as a model.

use stratoscope_bert::{LoadOptions, QuestionAnswerer};
use stratoscope_data::Dataset;
use stratoscope_diagnostics::Result;
use stratoscope_strategy::Origin;

use super::{BertFiles, load};
use crate::model::ModelOf;
use crate::predict::Predictions;
use stratoscope_arguments::IntoCount;

/// BERT that marks an answer in a text.
pub type BertForQuestionAnswering = ModelOf<QuestionAnswerer>;

impl ModelOf<QuestionAnswerer> {
    /// Loads a checkpoint. A head that it lacks is new.
    ///
    /// # Errors
    /// The checkpoint's own diagnostics; SC0907 if a device does not take its copy.
    #[track_caller]
    pub fn from_pretrained(name: &str) -> Result<Self> {
        load(name, &LoadOptions::new().num_labels(2), Origin::current())
    }

    /// The same with every choice that there is, such as the seed of a new head.
    ///
    /// # Errors
    /// As [`Self::from_pretrained`].
    #[track_caller]
    pub fn from_pretrained_with(name: &str, options: &LoadOptions) -> Result<Self> {
        load(name, &options.clone().num_labels(2), Origin::current())
    }

    /// How many tokens two windows of a text share that is longer than `max_length`. Default: a third of `max_length`, at
    /// most 128.
    ///
    /// # Errors
    /// SC0121 in a callback of the model's own run; SC0103 for a count below 0.
    pub fn set_stride(&self, tokens: impl IntoCount) -> Result<()> {
        let tokens = tokens.into_count();
        let Some(stride) = tokens.value().and_then(|it| usize::try_from(it).ok()) else {
            let given = tokens.to_string();
            let problem = crate::problem::bad_value(
                "set_stride",
                "tokens",
                given,
                "an integer ≥ 0".to_owned(),
            );
            return Err(Box::new(problem));
        };
        self.free_state("set_stride")?
            .files
            .of_mut::<BertFiles>()
            .stride = Some(stride);
        Ok(())
    }

    /// The answer to a question in a text. Several at once: `predict(Dataset::from_pairs([(question, text), …]))`.
    ///
    /// # Errors
    /// As [`predict`](crate::Model::predict).
    #[track_caller]
    pub fn answer(&self, question: &str, context: &str) -> Result<Predictions> {
        self.predict(Dataset::from_pairs([(question, context)]))
    }
}

//! BERT that chooses one of several texts for a prompt, as a model: SWAG, questions with answers to choose from.

use stratoscope_bert::{LoadOptions, MultipleChoice};
use stratoscope_data::{Dataset, Example};
use stratoscope_diagnostics::rules::InvalidSize;
use stratoscope_diagnostics::{Place, Result, Rule};
use stratoscope_strategy::Origin;

use super::load;
use crate::model::ModelOf;
use crate::predict::Predictions;
use stratoscope_arguments::IntoCount;

/// BERT that chooses one of several texts for a prompt.
pub type BertForMultipleChoice = ModelOf<MultipleChoice>;

impl ModelOf<MultipleChoice> {
    /// Loads a checkpoint, to be trained on prompts with so many choices. The weights are the same for any number of them; a
    /// head that the checkpoint lacks is new.
    ///
    /// # Errors
    /// SC0915 for fewer than two choices; the checkpoint's own diagnostics; SC0907 if a device does not take its copy.
    #[track_caller]
    pub fn from_pretrained(name: &str, num_choices: impl IntoCount) -> Result<Self> {
        Self::from_pretrained_with(name, num_choices, &LoadOptions::new())
    }

    /// The same with every choice that there is for loading, such as the seed of a new head.
    ///
    /// # Errors
    /// As [`Self::from_pretrained`].
    #[track_caller]
    pub fn from_pretrained_with(
        name: &str,
        num_choices: impl IntoCount,
        options: &LoadOptions,
    ) -> Result<Self> {
        let origin = Origin::current();
        let given = num_choices.into_count();
        let found = given.value().and_then(|count| usize::try_from(count).ok());
        let Some(choices) = found.filter(|&count| count > 1) else {
            let rule = InvalidSize {
                what: "num_choices".to_owned(),
                given: given.to_string(),
                expects: "an integer ≥ 2".to_owned(),
                place: Some(Place::call("from_pretrained")),
            };
            return Err(rule.error());
        };
        load(name, &options.clone().num_labels(choices), origin)
    }

    /// Which of some texts goes with a prompt; any number of them, at least two. Several prompts at once:
    /// `predict(Dataset::from_choices([…])?)`.
    ///
    /// # Errors
    /// As [`predict`](crate::Model::predict).
    #[track_caller]
    pub fn choose<C: Into<String>>(
        &self,
        prompt: &str,
        choices: impl IntoIterator<Item = C>,
    ) -> Result<Predictions> {
        let example = Example::new(prompt).with_choices(choices);
        let source = "choices in memory";
        self.predict(Dataset::from_examples([example], Vec::new(), source))
    }
}

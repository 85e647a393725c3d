//! BERT with a class for each token, as a model: named entities, parts of speech.

use stratoscope_bert::{LoadOptions, TokenClassifier};
use stratoscope_diagnostics::Result;
use stratoscope_strategy::Origin;

use super::{labels_of_a_head, load, load_labels};
use crate::model::ModelOf;
use stratoscope_arguments::IntoCount;

/// BERT with a class for each token.
pub type BertForTokenClassification = ModelOf<TokenClassifier>;

impl ModelOf<TokenClassifier> {
    /// Loads a checkpoint, with a head of `num_labels` outputs for each token. The tags get their names from the first
    /// data that it is trained on. A head that the checkpoint has for another number of tags is an error; one it lacks is
    /// new.
    ///
    /// # Errors
    /// SC0915 for a number of labels that is not at least 1; the checkpoint's own diagnostics; SC0907 if a device does not
    /// take its copy.
    #[track_caller]
    pub fn from_pretrained(name: &str, num_labels: impl IntoCount) -> Result<Self> {
        let origin = Origin::current();
        let num_labels = labels_of_a_head(num_labels)?;
        load(name, &LoadOptions::new().num_labels(num_labels), origin)
    }

    /// The same with the names of the tags, in the order of the outputs: `train.label_names`.
    ///
    /// # Errors
    /// As [`Self::from_pretrained`].
    #[track_caller]
    pub fn from_pretrained_labels<L: Into<String>>(
        name: &str,
        labels: impl IntoIterator<Item = L>,
    ) -> Result<Self> {
        let origin = Origin::current();
        load_labels(name, labels.into_iter().map(Into::into).collect(), origin)
    }

    /// The same with every choice that there is, such as the seed of a new head.
    ///
    /// # Errors
    /// The checkpoint's own diagnostics; SC0907 if a device does not take its copy.
    #[track_caller]
    pub fn from_pretrained_with(name: &str, options: &LoadOptions) -> Result<Self> {
        load(name, options, Origin::current())
    }
}

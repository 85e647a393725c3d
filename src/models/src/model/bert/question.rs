//! BERT that marks the answer to a question in a text, as a model.

use burn::tensor::{Device, Tensor};
use stratoscope_bert::{BatchTensors, LoadOptions, Mode, QuestionAnswerer};
use stratoscope_data::{Batch, Dataset};
use stratoscope_diagnostics::Result;
use stratoscope_strategy::Origin;

use super::{BertFiles, load};
use crate::model::ModelOf;
use crate::predict::Predictions;
use stratoscope_arguments::IntoCount;
use stratoscope_network::Network;

/// BERT that marks an answer in a text.
pub type BertForQuestionAnswering = ModelOf<QuestionAnswerer>;

impl Network for QuestionAnswerer {
    type Files = BertFiles;

    /// S numbers for where the answer begins, then S for where it ends.
    fn logits(&self, batch: &Batch, mode: Mode, device: &Device) -> Tensor<2> {
        flat(self.forward(BatchTensors::from_batch(batch, device), mode))
    }

    in_stages!(|network, hidden, _, _, mode| flat(network.of_hidden(hidden, mode)));

    of_a_checkpoint!();
}

/// [B, 2, S] → [B, 2·S]
fn flat(logits: Tensor<3>) -> Tensor<2> {
    let [rows, two, length] = logits.dims();
    logits.reshape([rows, two * length])
}

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

//! What training needs of a network. `bert` implements it for its networks (in `crate::bert`); a user's
//! own burn module can too.

use std::fmt;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use stratoscope_bert::{Mode, NamedParameter};
use stratoscope_data::{Batch, Tokenize};

/// A network whose last layer has one output per label, or one output for a regression.
pub trait Network: Module + 'static {
    /// What came with the weights.
    type Files: Files;

    /// The outputs for a batch, before any softmax, computed on `device`, where the network is.
    /// Whether dropout is active, and with which masks, is `mode`'s to say.
    ///
    /// # Shapes
    /// B rows of S tokens → [B, C]
    fn logits(&self, batch: &Batch, mode: Mode, device: &Device) -> Tensor<2>;

    /// The parameters with their checkpoint's names.
    fn parameters(&self) -> Vec<NamedParameter>;
}

/// What belongs to a network's weights: tokenizer, labels, limits.
pub trait Files: Clone + fmt::Debug + Send + Sync + 'static {
    /// What users call the model: `BertForSequenceClassification`.
    fn model_name(&self) -> &'static str;

    /// Where the weights came from, in words.
    fn source(&self) -> Option<String> {
        None
    }

    /// Turns texts into ids.
    fn tokenizer(&self) -> &dyn Tokenize;

    /// The name of each label, as many as the network has outputs.
    fn label_names(&self) -> &[String];

    /// The same with other names, as many as before.
    fn with_label_names(self, names: Vec<String>) -> Self;

    /// Tokens of the longest text that the network takes.
    fn max_positions(&self) -> usize;

    /// How many classes; `None` where the one output is a number.
    fn classes(&self) -> Option<usize> {
        Some(self.label_names().len()).filter(|&labels| labels > 1)
    }
}

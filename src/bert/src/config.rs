//! `config.json`: the sizes and dropout rates of a BERT model, and which values are valid. Source: transformers v4.57.1,
//! `configuration_bert.py`, whose defaults hold for absent fields.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use stratoscope_diagnostics::Result;

use crate::family::Family;
use crate::lora::LoraConfig;
use crate::problem;

mod modern;
mod read;
mod relative;
mod write;

pub use modern::{LayerAttention, ModernConfig, Pooling};
pub use relative::{DistanceVectors, Relative};

/// The activation of the feed-forward part and of the head that predicts tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Gelu {
    /// By erf: `gelu`.
    #[default]
    Exact,
    /// The approximation by tanh: `gelu_new`.
    Tanh,
}

impl Gelu {
    /// What a file calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Exact => "gelu",
            Self::Tanh => "gelu_new",
        }
    }
}

/// A configuration that describes a BERT this crate can compute.
///
/// Fields this crate does not know are kept and written back by [`BertConfig::to_json`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BertConfig {
    /// V, the number of tokens; every token id is below it. At least 1.
    pub vocab_size: usize,
    /// E, the length of the vectors in the tables of embeddings where a dense layer makes H numbers of them: in ELECTRA's small
    /// models, and in ALBERT.
    #[serde(default)]
    pub embedding_size: Option<usize>,
    /// H, the length of a token's vector; a multiple of `num_attention_heads`.
    pub hidden_size: usize,
    /// Encoder layers, at least 1.
    pub num_hidden_layers: usize,
    /// N, the attention heads per layer, at least 1.
    pub num_attention_heads: usize,
    /// The width of the feed-forward part, at least 1.
    pub intermediate_size: usize,
    /// What follows the product that widens.
    #[serde(default)]
    pub gelu: Gelu,
    /// Dropout of embeddings, attention outputs and feed-forward outputs; 0 up to, not including, 1.
    pub hidden_dropout_prob: f64,
    /// Dropout of the attention probabilities; 0 up to, not including, 1.
    pub attention_probs_dropout_prob: f64,
    /// The longest sequence the model has positions for: of RoBERTa two fewer than its file says.
    pub max_position_embeddings: usize,
    /// The number of segment types, at least 1: a BERT for sentence pairs has 2.
    pub type_vocab_size: usize,
    /// Standard deviation of the normal distribution that new weights are drawn from.
    pub initializer_range: f64,
    /// Added to the variance inside LayerNorm's square root.
    pub layer_norm_eps: f64,
    /// The token that pads short rows; its vector is not trained. Below `vocab_size`.
    pub pad_token_id: Option<usize>,
    /// Dropout before the classifier; `None` means `hidden_dropout_prob`.
    pub classifier_dropout: Option<f64>,
    /// The name of each class, by index; one name for a regression.
    pub labels: Vec<String>,
    /// The names of the negative and the positive class, if the model has one output that decides between two
    /// classes. The file then has the `problem_type` `multi_label_classification`, for which transformers computes the
    /// same loss, and the names are in a field of our own, `binary_labels`.
    pub binary_labels: Option<[String; 2]>,
    /// Whether each of several labels is decided by itself: `problem_type` is `multi_label_classification`.
    #[serde(default)]
    pub multi_label: bool,
    /// The `max_length` of the latest training, in a field of our own: predictions read as many tokens of a text. At most
    /// `max_position_embeddings`.
    #[serde(default)]
    pub trained_length: Option<usize>,
    /// The names of the architectures in the file, such as `BertForSequenceClassification`.
    pub architectures: Vec<String>,
    /// What the file describes: BERT, or a model whose weights BERT's layers can hold.
    #[serde(default)]
    pub family: Family,
    /// What the model has beside these fields, where it is a ModernBERT.
    #[serde(default)]
    pub modern: Option<ModernConfig>,
    /// How its attention depends on the distance of two tokens, where it is an MPNet or a DeBERTa.
    #[serde(default)]
    pub relative: Option<Relative>,
    /// The adapters of the network. `config.json` has nothing of them; the file of the adapters has.
    #[serde(default)]
    pub lora: Option<LoraConfig>,
    /// The file as it was read.
    #[serde(skip)]
    file: Map<String, Value>,
    /// The rows of RoBERTa's table of positions before the first position, as they were read: no model uses them, and a
    /// saved file has them again.
    #[serde(skip)]
    pub(crate) unused_positions: Arc<[f32]>,
}

/// More than any BERT has: a damaged file must not make us reserve terabytes.
const LARGEST_SIZE: usize = 1 << 24;
/// Each label has a name and a row of weights.
const MOST_LABELS: usize = 1 << 20;
/// Layers and heads are far fewer.
const LARGEST_COUNT: usize = 4096;
/// A configuration is a few kilobytes.
const LARGEST_FILE: u64 = 16 << 20;

impl BertConfig {
    /// Reads `config.json` in `folder`.
    ///
    /// # Errors
    /// A diagnostic if there is no such file, it cannot be read, is no JSON, describes another
    /// architecture or an option that is not built, or sizes that make no network.
    pub fn from_folder(folder: &Path) -> Result<Self> {
        let path = folder.join("config.json");
        let text = crate::checkpoint::read_text(&path, LARGEST_FILE)?;
        Self::from_json(&text, &path)
    }

    /// Checks that the values describe a network.
    ///
    /// # Errors
    /// A diagnostic that names the first field out of its range.
    pub fn check(&self) -> Result<()> {
        self.check_in(Path::new("config.json"))
    }

    fn check_in(&self, path: &Path) -> Result<()> {
        let refuse = |field: &str, value: String, expected: &str| {
            Err(problem::invalid_configuration(path, field, value, expected))
        };
        let sizes = [
            ("vocab_size", self.vocab_size, LARGEST_SIZE),
            ("hidden_size", self.hidden_size, LARGEST_SIZE),
            ("embedding_size", self.embedding_width(), LARGEST_SIZE),
            ("num_hidden_layers", self.num_hidden_layers, LARGEST_COUNT),
            (
                "num_attention_heads",
                self.num_attention_heads,
                LARGEST_COUNT,
            ),
            ("intermediate_size", self.intermediate_size, LARGEST_SIZE),
            (
                "max_position_embeddings",
                self.max_position_embeddings,
                LARGEST_SIZE,
            ),
            ("type_vocab_size", self.type_vocab_size, LARGEST_COUNT),
            ("num_labels", self.labels.len(), MOST_LABELS),
        ];
        for (field, value, largest) in sizes {
            if value == 0 || value > largest {
                return refuse(
                    field,
                    value.to_string(),
                    &format!("an integer from 1 to {largest}"),
                );
            }
        }
        if !self.hidden_size.is_multiple_of(self.num_attention_heads) {
            let expected = format!(
                "a multiple of `num_attention_heads`, which is {}",
                self.num_attention_heads
            );
            return refuse("hidden_size", self.hidden_size.to_string(), &expected);
        }
        self.check_modern(path)?;
        let rates = [
            ("hidden_dropout_prob", Some(self.hidden_dropout_prob)),
            (
                "attention_probs_dropout_prob",
                Some(self.attention_probs_dropout_prob),
            ),
            ("classifier_dropout", self.classifier_dropout),
            (
                "mlp_dropout",
                self.modern.as_ref().map(|it| it.mlp_dropout_prob),
            ),
        ];
        for (field, rate) in rates {
            if rate.is_some_and(|rate| !(0.0..1.0).contains(&rate)) {
                let rate = rate.unwrap_or_default().to_string();
                return refuse(field, rate, "a rate from 0 up to, not including, 1");
            }
        }
        for (field, value) in [
            ("initializer_range", self.initializer_range),
            ("layer_norm_eps", self.layer_norm_eps),
        ] {
            if !(value.is_finite() && value >= 0.0) {
                return refuse(field, value.to_string(), "a finite number ≥ 0");
            }
        }
        match self.pad_token_id {
            Some(id) if id >= self.vocab_size => {
                let expected = format!("an id below `vocab_size`, which is {}", self.vocab_size);
                refuse("pad_token_id", id.to_string(), &expected)
            }
            _ => Ok(()),
        }
    }

    /// What a ModernBERT's sizes have to agree with.
    fn check_modern(&self, path: &Path) -> Result<()> {
        let refuse = |field: &str, value: usize, expected: &str| {
            let value = value.to_string();
            Err(problem::invalid_configuration(path, field, value, expected))
        };
        let Some(modern) = &self.modern else {
            return Ok(());
        };
        let size = self.hidden_size / self.num_attention_heads;
        if !size.is_multiple_of(2) {
            // Numbers of a head are rotated in pairs.
            let expected = "an even number for each of `num_attention_heads`";
            return refuse("hidden_size", self.hidden_size, expected);
        }
        if modern.layers.len() != self.num_hidden_layers {
            let expected = format!("{} layers, as `layer_types` has", modern.layers.len());
            return refuse("num_hidden_layers", self.num_hidden_layers, &expected);
        }
        Ok(())
    }

    /// Whether a decoder of tokens has the word embeddings as weights. transformers' default.
    pub(crate) fn ties_word_embeddings(&self) -> bool {
        let field = self.file.get("tie_word_embeddings");
        field.and_then(Value::as_bool).unwrap_or(true)
    }

    /// What ELECTRA's head for multiple choice makes of a sequence, where it is not the dense layer with GELU on the first
    /// token: the field, its value and the one that is computed.
    pub(crate) fn other_summary(&self) -> Option<(&'static str, String, &'static str)> {
        let differs = |(field, computed): (&'static str, &'static str)| {
            let found = self.file.get(field).filter(|value| !value.is_null())?;
            let found = found
                .as_str()
                .map_or_else(|| found.to_string(), str::to_owned);
            (found != computed).then_some((field, found, computed))
        };
        let fields = [
            ("summary_type", "first"),
            ("summary_use_proj", "true"),
            ("summary_activation", "gelu"),
        ];
        let mut fields = fields.into_iter();
        (self.family == Family::Electra).then(|| fields.find_map(differs))?
    }

    /// The standard deviation of new weights of ModernBERT whose products are added to the input of a layer: all L layers add two of
    /// them. Source: Radford et al. 2019, section 2.3.
    pub(crate) fn deviation_of_sums(&self) -> f64 {
        self.initializer_range / (2.0 * self.num_hidden_layers as f64).sqrt()
    }

    /// Whether the embeddings add vectors for positions and segments to those of the words.
    pub(crate) fn has_positions(&self) -> bool {
        !matches!(self.family, Family::ModernBert | Family::Deberta)
    }

    /// The dropout of what the feed-forward part adds to its input, where it has one.
    pub(crate) fn feed_forward_dropout(&self) -> Option<f64> {
        let has_one = self.family.drops_feed_forward();
        has_one.then_some(self.hidden_dropout_prob)
    }

    /// E, the length of the vectors in the tables of embeddings.
    pub fn embedding_width(&self) -> usize {
        self.embedding_size.unwrap_or(self.hidden_size)
    }

    /// How many outputs the head has; 1 makes it a regression, unless there are `binary_labels`.
    pub fn num_labels(&self) -> usize {
        self.labels.len()
    }

    /// Whether the head predicts one number instead of a class.
    pub fn is_regression(&self) -> bool {
        self.num_labels() == 1
    }

    /// The dropout before the head.
    pub fn classifier_dropout(&self) -> f64 {
        self.classifier_dropout.unwrap_or(self.hidden_dropout_prob)
    }

    /// The largest of the rates of dropout.
    pub fn largest_dropout(&self) -> f64 {
        let rates = [
            self.hidden_dropout_prob,
            self.attention_probs_dropout_prob,
            self.classifier_dropout(),
            self.modern.as_ref().map_or(0.0, |it| it.mlp_dropout_prob),
        ];
        rates.into_iter().fold(0.0, f64::max)
    }

    /// The same with another number of labels, named as transformers names unnamed ones. Names in
    /// force are kept if their number is right.
    ///
    /// # Errors
    /// SC0915 for 0 labels, or more than any task has.
    pub fn with_num_labels(mut self, num_labels: usize) -> Result<Self> {
        if num_labels == 0 || num_labels > MOST_LABELS {
            return Err(problem::bad_num_labels(num_labels, MOST_LABELS));
        }
        if self.labels.len() != num_labels {
            self.labels = (0..num_labels)
                .map(|index| format!("LABEL_{index}"))
                .collect();
            self.binary_labels = None;
        }
        Ok(self)
    }

    /// The same with these names of the classes.
    pub fn with_labels<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.labels = names.into_iter().map(Into::into).collect();
        self
    }

    /// The same without any dropout, for instance to compare two runs.
    pub fn without_dropout(mut self) -> Self {
        self.hidden_dropout_prob = 0.0;
        self.attention_probs_dropout_prob = 0.0;
        self.classifier_dropout = None;
        if let Some(modern) = &mut self.modern {
            modern.mlp_dropout_prob = 0.0;
        }
        self
    }
}

#[cfg(test)]
mod tests;

//! What a name is that becomes a part of `compile!` or `fit!`: settings, collators, metrics, optimizers of PyTorch.

use stratoscope_diagnostics::CellSpan;

use super::super::thing::Pipeline;
use super::super::torch::optimizer::{TorchOptimizer, TorchSchedule};
use super::metrics::Measure;
use super::settings::Settings;
use crate::model::Value;

/// What a model predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadKind {
    /// A class or a number for a text.
    Sequence,
    /// Any of several labels for a text.
    Labels,
    /// A tag for each word.
    Tokens,
    /// A part of a text.
    Answer,
    /// One of several texts.
    Choice,
    /// Hidden tokens.
    Masked,
}

/// A `Trainer`.
#[derive(Clone, Debug)]
pub(crate) struct Trainer {
    /// The model, as Rust.
    pub model: String,
    /// The data of `fit!`.
    pub train: Option<Pipeline>,
    /// The data of `evaluate!`.
    pub eval: Option<Pipeline>,
    /// The other arguments of `fit!`.
    pub fit: Vec<String>,
    /// `batch_size` of `evaluate!`.
    pub eval_batch: String,
    /// The folder that the run writes to, as Rust.
    pub folder: String,
    /// Where it is made.
    pub span: CellSpan,
}

/// A part of `compile!` or `fit!`.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// `TrainingArguments`.
    Settings(Settings),
    /// A `Trainer`.
    Trainer(Box<Trainer>),
    /// A collator: its class, and where it is made.
    Collator(String, CellSpan),
    /// Metrics that were loaded, or that a function computes.
    Measures(Vec<Measure>),
    /// A callback of the `Trainer` that stops early: patience and threshold.
    Stopping(Option<Value>, Option<Value>),
    /// A loss of `sentence_transformers`, as Rust.
    SentenceLoss(String),
    /// `LoraConfig`, as Rust.
    Lora(String),
    /// `pipeline(…)`: its model, as Rust.
    Pipe(String),
    /// An optimizer of PyTorch.
    Optimizer(Box<TorchOptimizer>),
    /// A scheduler of PyTorch or transformers.
    Schedule(Box<TorchSchedule>),
    /// The groups of variables of an optimizer: the weight decay of those that decay.
    Groups(Value),
    /// The steps of the run, or the share of them that is written.
    Steps(Option<Value>),
    /// A class of tokenized texts with labels: the names of its parameters.
    Encoded(Vec<String>),
    /// A device, a scaler, a list of names: `fit!` needs none.
    Nothing(&'static str),
}

impl Part {
    /// What it is in words.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Settings(_) => "a list of settings",
            Self::Trainer(_) => "a trainer",
            Self::Collator(..) => "a collator",
            Self::Measures(_) => "a metric",
            Self::Stopping(..) => "a callback",
            Self::SentenceLoss(_) => "a loss",
            Self::Lora(_) => "a configuration",
            Self::Pipe(_) => "a pipeline",
            Self::Optimizer(_) => "an optimizer",
            Self::Schedule(_) => "a schedule",
            Self::Groups(_) => "a list of variables",
            Self::Steps(_) => "a number of steps",
            Self::Encoded(_) => "a class",
            Self::Nothing(what) => what,
        }
    }
}

//! The kinds of values that arguments take.

/// What a value of the DSL is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `AdamW::new(5e-5)`.
    Optimizer,
    /// `MeanSquaredError`.
    Loss,
    /// `accuracy()`.
    Metric,
    /// `warmup_linear(5e-5, 0.1)`.
    Schedule,
    /// `MirroredStrategy::logical(2)?`.
    Strategy,
    /// `Dataset::tsv("train.tsv")?`.
    Dataset,
    /// `Sequential([…])?`.
    Model,
}

impl Kind {
    /// The word that a message uses.
    pub fn word(self) -> &'static str {
        match self {
            Self::Optimizer => "optimizer",
            Self::Loss => "loss",
            Self::Metric => "metric",
            Self::Schedule => "schedule",
            Self::Strategy => "strategy",
            Self::Dataset => "dataset",
            Self::Model => "model",
        }
    }

    /// The kind that a message names by its word.
    pub fn of_word(word: &str) -> Option<Self> {
        const ALL: [Kind; 7] = [
            Kind::Optimizer,
            Kind::Loss,
            Kind::Metric,
            Kind::Schedule,
            Kind::Strategy,
            Kind::Dataset,
            Kind::Model,
        ];
        ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// Whether a string can name one.
    pub fn has_names(self) -> bool {
        matches!(self, Self::Optimizer | Self::Loss | Self::Metric)
    }

    /// The argument that such a value is for, where a call has it.
    pub fn argument(self) -> Option<&'static str> {
        match self {
            Self::Optimizer => Some("optimizer"),
            Self::Loss => Some("loss"),
            Self::Metric => Some("metrics"),
            Self::Strategy => Some("strategy"),
            Self::Dataset => Some("validation_data"),
            Self::Schedule | Self::Model => None,
        }
    }

    /// How one is written.
    pub fn example(self) -> &'static str {
        match self {
            Self::Optimizer => "AdamW::new(5e-5)",
            Self::Loss => "SparseCategoricalCrossentropy { from_logits: true }",
            Self::Metric => "[accuracy()]",
            Self::Schedule => "warmup_linear(5e-5, 0.1)",
            Self::Strategy => "none",
            Self::Dataset => "Dataset::tsv(\"dev.tsv\")?",
            Self::Model => "model",
        }
    }
}

//! The texts that Keras users write for losses, metrics and optimizers.

/// What a text names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentifierKind {
    /// A loss.
    Loss,
    /// A metric.
    Metric,
    /// An optimizer.
    Optimizer,
}

impl IdentifierKind {
    /// The kind in words.
    pub fn word(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Metric => "metric",
            Self::Optimizer => "optimizer",
        }
    }

    /// All texts of this kind, the preferred one of several for the same thing first.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Self::Loss => LOSSES,
            Self::Metric => METRICS,
            Self::Optimizer => OPTIMIZER_NAMES,
        }
    }

    /// Whether a text names one. Keras takes optimizers in any case, losses and metrics in lower.
    pub fn knows(self, text: &str) -> bool {
        match self {
            Self::Optimizer => self
                .names()
                .iter()
                .any(|name| name.eq_ignore_ascii_case(text)),
            _ => self.names().contains(&text),
        }
    }
}

/// Texts for `loss`.
pub const LOSSES: &[&str] = &[
    "sparse_categorical_crossentropy",
    "categorical_crossentropy",
    "binary_crossentropy",
    "bce",
    "mean_squared_error",
    "mse",
];

/// Texts in `metrics`; those after `spearman` are Keras's other names for `accuracy`.
pub const METRICS: &[&str] = &[
    "accuracy",
    "f1",
    "macro_f1",
    "mcc",
    "pearson",
    "spearman",
    "acc",
    "sparse_categorical_accuracy",
    "categorical_accuracy",
    "binary_accuracy",
];

/// Texts for `optimizer`.
pub const OPTIMIZER_NAMES: &[&str] = &["adamw", "adam", "sgd"];

/// What stands in for a name of another library: the text to write and a sentence.
pub fn foreign_identifier(
    kind: IdentifierKind,
    text: &str,
) -> Option<(&'static str, &'static str)> {
    let text = text.to_ascii_lowercase();
    Some(match (kind, text.as_str()) {
        (IdentifierKind::Loss, "crossentropy" | "cross_entropy" | "ce") => (
            "sparse_categorical_crossentropy",
            "labels are class numbers here, so the cross-entropy is the sparse one",
        ),
        (IdentifierKind::Loss, "l2" | "mean_square_error") => {
            ("mse", "the mean of the squared errors is `mse`")
        }
        (IdentifierKind::Loss, "binary" | "log_loss" | "bcewithlogits") => (
            "binary_crossentropy",
            "two classes by one logit are `binary_crossentropy`, with `num_labels = 1`",
        ),
        (IdentifierKind::Metric, "f1_score" | "f1score" | "f1_binary") => (
            "f1",
            "`f1` is the positive class of two; `macro_f1` the mean over classes",
        ),
        (IdentifierKind::Metric, "f1_macro") => ("macro_f1", "the mean over classes is `macro_f1`"),
        (IdentifierKind::Metric, "matthews_corrcoef" | "matthews_correlation" | "matthews") => {
            ("mcc", "Matthews's correlation is `mcc`")
        }
        (IdentifierKind::Metric, "pearsonr" | "pearson_correlation") => (
            "pearson",
            "it is computed over the whole split, not per batch",
        ),
        (IdentifierKind::Metric, "spearmanr") => (
            "spearman",
            "it is computed over the whole split, not per batch",
        ),
        (
            IdentifierKind::Optimizer,
            "rmsprop" | "adagrad" | "adamax" | "nadam" | "lamb" | "lion",
        ) => (
            "adamw",
            "BERT is fine-tuned with AdamW; others than Adam, AdamW and SGD are not built",
        ),
        _ => return None,
    })
}

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

    /// Whether a text names one. Keras takes optimizers in any case, losses and metrics in lower, and its
    /// classes by their names.
    pub fn knows(self, text: &str) -> bool {
        match self {
            Self::Optimizer => self
                .names()
                .iter()
                .any(|name| name.eq_ignore_ascii_case(text)),
            _ => self.canonical(text).is_some(),
        }
    }

    /// The name that stands for all of the same meaning: `mae` for `mean_absolute_error`.
    pub fn canonical(self, text: &str) -> Option<&'static str> {
        let also = match self {
            Self::Loss => LOSSES_TOO,
            Self::Metric => METRICS_TOO,
            Self::Optimizer => &[],
        };
        let meant = also.iter().find(|(_, others)| others.contains(&text));
        match meant {
            Some((name, _)) => Some(name),
            None => self.names().iter().copied().find(|name| *name == text),
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
    "mean_absolute_error",
    "mae",
    "huber",
    "log_cosh",
    "kl_divergence",
    "kld",
    "hinge",
    "squared_hinge",
    "multiple_negatives_ranking",
    "multiple_negatives_symmetric_ranking",
    "triplet_margin",
];

/// The types of the losses, as they are written without a text.
pub const LOSS_TYPES: &[&str] = &[
    "SparseCategoricalCrossentropy",
    "CategoricalCrossentropy",
    "BinaryCrossentropy",
    "MeanSquaredError",
    "MeanAbsoluteError",
    "Huber",
    "LogCosh",
    "KlDivergence",
    "Hinge",
    "SquaredHinge",
    "MultipleNegativesRanking",
    "MultipleNegativesSymmetricRanking",
    "TripletMargin",
];

/// Losses by other names of Keras: of the same function, of its class, of older versions; and by those of sentence-transformers.
const LOSSES_TOO: &[(&str, &[&str])] = &[
    (
        "sparse_categorical_crossentropy",
        &["SparseCategoricalCrossentropy"],
    ),
    ("categorical_crossentropy", &["CategoricalCrossentropy"]),
    ("binary_crossentropy", &["bce", "BCE", "BinaryCrossentropy"]),
    ("mean_squared_error", &["mse", "MSE", "MeanSquaredError"]),
    ("mean_absolute_error", &["mae", "MAE", "MeanAbsoluteError"]),
    ("huber", &["Huber", "huber_loss"]),
    ("log_cosh", &["LogCosh", "logcosh"]),
    (
        "kl_divergence",
        &["kld", "KLD", "KLDivergence", "kullback_leibler_divergence"],
    ),
    ("hinge", &["Hinge"]),
    ("squared_hinge", &["SquaredHinge"]),
    (
        "multiple_negatives_ranking",
        &["MultipleNegativesRanking", "MultipleNegativesRankingLoss"],
    ),
    (
        "multiple_negatives_symmetric_ranking",
        &[
            "MultipleNegativesSymmetricRanking",
            "MultipleNegativesSymmetricRankingLoss",
        ],
    ),
    ("triplet_margin", &["TripletMargin", "TripletLoss"]),
];

/// Texts in `metrics`; those after `top_k_accuracy` are Keras's other names for some of them.
pub const METRICS: &[&str] = &[
    "accuracy",
    "f1",
    "macro_f1",
    "mcc",
    "pearson",
    "spearman",
    "mae",
    "mse",
    "rmse",
    "precision",
    "recall",
    "auc",
    "top_k_accuracy",
    "entity_f1",
    "entity_precision",
    "entity_recall",
    "exact_match",
    "answer_f1",
    "perplexity",
    "micro_f1",
    "keras_auc",
    "acc",
    "sparse_categorical_accuracy",
    "categorical_accuracy",
    "binary_accuracy",
    "mean_absolute_error",
    "mean_squared_error",
    "root_mean_squared_error",
    "top_k_categorical_accuracy",
    "sparse_top_k_categorical_accuracy",
];

/// Metrics by other names of Keras. Its class `Accuracy` is not among them: it compares numbers.
const METRICS_TOO: &[(&str, &[&str])] = &[
    (
        "accuracy",
        &[
            "acc",
            "sparse_categorical_accuracy",
            "categorical_accuracy",
            "binary_accuracy",
            "SparseCategoricalAccuracy",
            "CategoricalAccuracy",
            "BinaryAccuracy",
        ],
    ),
    ("mae", &["mean_absolute_error", "MAE", "MeanAbsoluteError"]),
    ("mse", &["mean_squared_error", "MSE", "MeanSquaredError"]),
    ("rmse", &["root_mean_squared_error", "RootMeanSquaredError"]),
    ("precision", &["Precision"]),
    ("recall", &["Recall"]),
    ("auc", &["AUC"]),
    (
        "top_k_accuracy",
        &[
            "top_k_categorical_accuracy",
            "sparse_top_k_categorical_accuracy",
            "TopKCategoricalAccuracy",
            "SparseTopKCategoricalAccuracy",
        ],
    ),
];

/// Texts for `optimizer`.
pub const OPTIMIZER_NAMES: &[&str] = &["adamw", "adam", "sgd", "rmsprop", "lion"];

/// What stands in for a name of another library: the text to write and a sentence.
pub fn foreign_identifier(
    kind: IdentifierKind,
    text: &str,
) -> Option<(&'static str, &'static str)> {
    let text = text.to_ascii_lowercase();
    Some(match (kind, text.as_str()) {
        (IdentifierKind::Loss, "crossentropy" | "cross_entropy" | "ce") => (
            "sparse_categorical_crossentropy",
            "labels are class indices here, so the cross-entropy is the sparse one",
        ),
        (IdentifierKind::Loss, "l2" | "mean_square_error") => {
            ("mse", "the mean of the squared errors is `mse`")
        }
        (IdentifierKind::Loss, "l1") => ("mae", "the mean of the absolute errors is `mae`"),
        (IdentifierKind::Loss, "smooth_l1" | "smooth_l1_loss" | "smoothl1") => (
            "huber",
            "with the same threshold of 1 it is Keras's `huber`",
        ),
        (IdentifierKind::Loss, "kl" | "kl_div" | "kldiv") => (
            "kl_divergence",
            "labels are class indices here, which are converted to distributions",
        ),
        (IdentifierKind::Loss, "binary" | "log_loss" | "bcewithlogits") => (
            "binary_crossentropy",
            "two classes with one logit are `binary_crossentropy`, with `num_labels = 1`",
        ),
        (IdentifierKind::Metric, "f1_score" | "f1score" | "f1_binary") => (
            "f1",
            "`f1` is the positive class of two; `macro_f1` the mean over classes",
        ),
        (IdentifierKind::Metric, "roc_auc" | "roc_auc_score" | "auroc") => (
            "auc",
            "it is the exact area under the ROC curve; `keras_auc` has Keras's 200 thresholds",
        ),
        (IdentifierKind::Metric, "top_5_accuracy" | "top5" | "top_5") => (
            "top_k_accuracy",
            "given as a string it uses the 5 largest outputs; `top_k_accuracy(3)` uses 3",
        ),
        (IdentifierKind::Metric, "squad" | "squad_f1" | "squad_v2") => (
            "answer_f1",
            "of the words of answers it is `answer_f1`; `exact_match` is beside it",
        ),
        (IdentifierKind::Metric, "ppl") => (
            "perplexity",
            "of the hidden tokens of a masked language model it is `perplexity`",
        ),
        (IdentifierKind::Metric, "em") => {
            ("exact_match", "of answers in texts it is `exact_match`")
        }
        (IdentifierKind::Metric, "seqeval" | "seqeval_f1" | "ner_f1" | "overall_f1") => (
            "entity_f1",
            "of entities, words and type right, it is `entity_f1`",
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
        (IdentifierKind::Optimizer, "adagrad" | "adamax" | "nadam") => (
            "adamw",
            "BERT is fine-tuned with AdamW; the optimizers here are Adam, AdamW, SGD, RMSprop, Lion, Lamb and Adafactor",
        ),
        _ => return None,
    })
}

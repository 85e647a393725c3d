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

/// Losses: the text and the type of each, texts that are offered as well, and other names of Keras: of the class, of older versions;
/// and those of sentence-transformers. The type is a text too.
macro_rules! losses {
    ($($text:literal $type:ident $([$($short:literal),*])? $(, $other:literal)*;)*) => {
        /// Texts for `loss`.
        pub const LOSSES: &[&str] = &[$($text, $($($short,)*)?)*];

        /// The types of the losses, as they are written without a text.
        pub const LOSS_TYPES: &[&str] = &[$(stringify!($type)),*];

        const LOSSES_TOO: &[(&str, &[&str])] = &[
            $(($text, &[stringify!($type), $($($short,)*)? $($other,)*])),*
        ];
    };
}

losses! {
    "sparse_categorical_crossentropy" SparseCategoricalCrossentropy;
    "categorical_crossentropy" CategoricalCrossentropy;
    "binary_crossentropy" BinaryCrossentropy ["bce"], "BCE";
    "mean_squared_error" MeanSquaredError ["mse"], "MSE";
    "mean_absolute_error" MeanAbsoluteError ["mae"], "MAE";
    "huber" Huber, "huber_loss";
    "log_cosh" LogCosh, "logcosh";
    "kl_divergence" KlDivergence ["kld"], "KLD", "KLDivergence", "kullback_leibler_divergence";
    "hinge" Hinge;
    "squared_hinge" SquaredHinge;
    "multiple_negatives_ranking" MultipleNegativesRanking, "MultipleNegativesRankingLoss";
    "multiple_negatives_symmetric_ranking" MultipleNegativesSymmetricRanking, "MultipleNegativesSymmetricRankingLoss";
    "triplet_margin" TripletMargin, "TripletLoss";
}

/// Metrics: the text of each, which is the function's name, texts that are offered behind all of these, and other names of Keras.
macro_rules! metrics {
    ($($text:literal $([$($short:literal),*])? $(, $other:literal)*;)*) => {
        /// Texts in `metrics`: those of all metrics, then Keras's other names for some of them.
        pub const METRICS: &[&str] = &[$($text,)* $($($($short,)*)?)*];

        const METRICS_TOO: &[(&str, &[&str])] = &[$(($text, &[$($($short,)*)? $($other,)*])),*];
    };
}

// In the order of the list in `stratoscope_metrics`. Keras's class `Accuracy` is no name of one: it compares numbers.
metrics! {
    "accuracy" ["acc", "sparse_categorical_accuracy", "categorical_accuracy", "binary_accuracy"],
        "SparseCategoricalAccuracy", "CategoricalAccuracy", "BinaryAccuracy";
    "f1";
    "macro_f1";
    "mcc";
    "pearson";
    "spearman";
    "mae" ["mean_absolute_error"], "MAE", "MeanAbsoluteError";
    "mse" ["mean_squared_error"], "MSE", "MeanSquaredError";
    "rmse" ["root_mean_squared_error"], "RootMeanSquaredError";
    "precision", "Precision";
    "recall", "Recall";
    "auc", "AUC";
    "top_k_accuracy" ["top_k_categorical_accuracy", "sparse_top_k_categorical_accuracy"],
        "TopKCategoricalAccuracy", "SparseTopKCategoricalAccuracy";
    "entity_f1";
    "entity_precision";
    "entity_recall";
    "exact_match";
    "answer_f1";
    "perplexity";
    "micro_f1";
    "keras_auc";
}

/// Texts for `optimizer`: the types of [`OPTIMIZERS`](super::OPTIMIZERS) in lower case.
pub const OPTIMIZER_NAMES: &[&str] = &[
    "adamw",
    "adam",
    "sgd",
    "rmsprop",
    "lion",
    "lamb",
    "adafactor",
];

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
        (IdentifierKind::Metric, "f1_binary") => (
            "f1",
            "`f1` is the positive class of two; `macro_f1` the mean over classes",
        ),
        (IdentifierKind::Metric, "f1_score" | "f1score" | "f1-score") => (
            "macro_f1",
            "`macro_f1` is the mean over all classes; `f1` is the positive class of two",
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::OPTIMIZERS;

    #[test]
    fn every_optimizer_has_a_text() {
        let types = OPTIMIZERS.iter().map(|it| it.name.to_ascii_lowercase());
        assert_eq!(types.collect::<Vec<_>>(), OPTIMIZER_NAMES);
        assert!(
            IdentifierKind::Optimizer.knows("Lamb") && !IdentifierKind::Optimizer.knows("lambda")
        );
    }

    #[test]
    fn other_names_stand_for_one_text() {
        for (text, meant) in [
            ("bce", "binary_crossentropy"),
            ("LogCosh", "log_cosh"),
            ("KLDivergence", "kl_divergence"),
            ("TripletLoss", "triplet_margin"),
        ] {
            assert_eq!(IdentifierKind::Loss.canonical(text), Some(meant));
        }
        for (text, meant) in [("acc", "accuracy"), ("AUC", "auc"), ("MSE", "mse")] {
            assert_eq!(IdentifierKind::Metric.canonical(text), Some(meant));
        }
        assert_eq!(IdentifierKind::Metric.canonical("Accuracy"), None);
        // A text is given once, and what is offered is known.
        for (kind, too) in [
            (IdentifierKind::Loss, LOSSES_TOO),
            (IdentifierKind::Metric, METRICS_TOO),
        ] {
            let mut all: Vec<&str> = too
                .iter()
                .flat_map(|(text, others)| [&[*text], *others].concat())
                .collect();
            let count = all.len();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), count, "{kind:?}");
            assert!(
                kind.names().iter().all(|name| all.contains(name)),
                "{kind:?}"
            );
        }
    }
}

//! The metrics. A row documents a function that users call, and names the variant of [`Metric`] that it makes and what measures
//! it: a type with a file and an implementation of `Measure` there.

use super::OwnMetric;
use super::measure::Measure;

macro_rules! metrics {
    ($(
        $(#[$doc:meta])*
        $function:ident => $metric:ident
            $({ $(#[$about:meta])* $field:ident: $type:ty = $usual:expr })?, $measure:expr;
    )*) => {
        $(
            $(#[$doc])*
            pub fn $function($($field: $type)?) -> Metric {
                Metric::$metric $({ $field })?
            }
        )*

        /// What is measured. Each variant is documented at the function that makes it: what it measures, the range of its
        /// values, and which direction is better.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Metric {
            $(
                #[doc = concat!("See [`", stringify!($function), "()`].")]
                $metric $({ $(#[$about])* $field: $type })?,
            )*
            /// The mean of what a function returns: see [`Metric::mean_of`] and [`Metric::lower_is_better`].
            Own(OwnMetric),
        }

        impl Metric {
            /// Every metric; the one that has a `k`, with Keras's.
            pub const ALL: [Self; [$(stringify!($metric)),*].len()] =
                [$(Self::$metric $({ $field: $usual })?),*];

            /// The texts that name them, in the same order.
            const TEXTS: [&'static str; Self::ALL.len()] = [$(stringify!($function)),*];

            /// Asks what measures it.
            pub(super) fn ask<T>(self, question: impl FnOnce(&dyn Measure) -> T) -> T {
                match self {
                    $(Self::$metric $({ $field })? => question(&$measure),)*
                    Self::Own(metric) => question(&metric),
                }
            }
        }
    };
}

metrics! {
    /// The share of examples whose largest output is the label's, from 0 to 1; higher is better. One output that decides
    /// between two classes must be on the label's side of the threshold. With tagged words each word counts, with hidden
    /// tokens each token, and with several labels a text each decision about a label (Keras's `BinaryAccuracy`).
    accuracy => Accuracy, super::correct::Accuracy;
    /// F1 of the positive class, class 1 of two: 2·TP / (2·TP + FP + FN), from 0 to 1; higher is better. Undefined if class
    /// 1 is neither a label nor predicted. For more classes take [`macro_f1`].
    f1 => F1, super::f1::F1;
    /// The mean F1 over the classes, or over the labels of texts with several, from 0 to 1; higher is better. A class that
    /// is neither a label nor predicted counts as 0, as in the reference script and scikit-learn.
    macro_f1 => MacroF1, super::f1::MacroF1;
    /// Matthews's correlation coefficient, for any number of classes (Gorodkin 2004, formula 8): CoLA's metric. From −1 to
    /// 1, higher is better; undefined if all labels, or all predictions, are of one class.
    mcc => Mcc, super::mcc::Mcc;
    /// Pearson's correlation of outputs and labels over the whole split, for a regression. From −1 to 1, higher is better;
    /// undefined if all outputs, or all labels, are equal.
    pearson => Pearson, super::correlation::Pearson;
    /// Spearman's rank correlation of outputs and labels: [`pearson`] of the ranks, with the same range.
    spearman => Spearman, super::correlation::Spearman;
    /// The mean of |output − label|: Keras's `MeanAbsoluteError`. At least 0, in the unit of the labels; lower is better.
    /// Where one logit decides between two classes, its probability takes the place of the output; not under a hinge loss.
    mae => Mae, super::distance::MAE;
    /// The mean of (output − label)²: Keras's `MeanSquaredError`, in the square of the labels' unit; otherwise as [`mae`].
    mse => Mse, super::distance::MSE;
    /// The square root of [`mse`] over the whole split: Keras's `RootMeanSquaredError`, in the labels' unit; lower is
    /// better.
    rmse => Rmse, super::distance::RMSE;
    /// The share of the examples predicted as class 1 that are of class 1, for two classes: Keras's `Precision`. From 0 to
    /// 1, higher is better; undefined if class 1 is never predicted, where Keras says 0.
    precision => Precision, super::precision_recall::Precision;
    /// The share of the examples of class 1 that are predicted as class 1, for two classes: Keras's `Recall`. From 0 to 1,
    /// higher is better; undefined without examples of class 1, where Keras says 0.
    recall => Recall, super::precision_recall::Recall;
    /// The area under the ROC curve, for two classes: exact, as scikit-learn's `roc_auc_score`. It is the share of pairs of an
    /// example of class 1 and one of class 0 in which class 1 is more probable for the former; equal probabilities count half.
    /// From 0 to 1, higher is better; undefined if a class has no examples. The probabilities of a split are kept, 16 bytes for
    /// each example. [`keras_auc`] is Keras's approximation.
    auc => Auc, super::auc::Auc;
    /// The share of examples whose label is among the `k` largest outputs, equal ones included, from 0 to 1; higher is
    /// better: Keras's `SparseTopKCategoricalAccuracy`. By the name `"top_k_accuracy"`, `k` is 5.
    top_k_accuracy => TopKAccuracy {
        /// How many of the largest outputs count, at least 1.
        k: usize = super::top_k::K
    }, super::top_k::TopK { k };
    /// F1 of entities (micro average over their types, as seqeval computes it), for token classification: the harmonic mean
    /// of [`entity_precision`] and [`entity_recall`]. From 0 to 1, higher is better; undefined without any entity.
    entity_f1 => EntityF1, super::entities::F1;
    /// The share of the predicted entities whose words and type are right, for token classification. From 0 to 1, higher is
    /// better; 0 where none is predicted and there are some, as in seqeval.
    entity_precision => EntityPrecision, super::entities::PRECISION;
    /// The share of the entities that are predicted with the right words and type, for token classification. From 0 to 1,
    /// higher is better; 0 where there is none and some are predicted, as in seqeval.
    entity_recall => EntityRecall, super::entities::RECALL;
    /// The share of the questions whose answer is exactly one of the right ones, as SQuAD's script counts it, or of the
    /// texts with several labels whose labels are all right. From 0 to 1, higher is better.
    exact_match => ExactMatch, super::spans::ExactMatch;
    /// The mean over the questions of the F1 of the answer's words, as SQuAD's script computes it, for question answering.
    /// From 0 to 1, higher is better.
    answer_f1 => AnswerF1, super::spans::AnswerF1;
    /// e to the mean of −log p over the hidden tokens, for masked language models, where p is the probability of the right
    /// token. At least 1, lower is better; V if all V tokens are equally probable. Undefined if an output is not finite.
    perplexity => Perplexity, super::pieces::Perplexity;
    /// F1 of all decisions about labels together, whatever the label, for texts with several labels. From 0 to 1, higher is
    /// better; undefined if no text has a label and none is predicted. [`macro_f1`] is the mean over the labels.
    micro_f1 => MicroF1, super::sets::MicroF1;
    /// The area under the ROC curve as Keras's `AUC` approximates it, with 200 thresholds: probabilities between two neighboring
    /// thresholds count as equal. It keeps 400 counts, however many examples there are; otherwise as [`auc`]. Undefined if a
    /// class has no examples, where Keras says 0.
    keras_auc => KerasAuc, super::auc::KerasAuc;
}

impl Metric {
    /// The metric of a text of the table.
    pub(super) fn of_text(text: &str) -> Option<Self> {
        let place = Self::TEXTS.iter().position(|known| *known == text)?;
        Some(Self::ALL[place])
    }
}

//! Metrics: numbers that are measured beside the loss. Keras argument: `metrics`.
//!
//! A metric is a pure function of a [`Tally`] of the *whole* split. Averages of batches would be
//! wrong for most of them, and for accuracy too when the last batch is short. `None` means undefined
//! (an empty denominator): it is shown as such, never as NaN or as 0.

mod applicability;
mod auc;
mod correct;
mod correlation;
mod distance;
mod entities;
mod exact_sum;
mod f1;
mod into_metric;
mod mcc;
pub mod own;
mod pieces;
mod precision_recall;
mod saved;
mod sets;
pub mod spans;
mod tallies;
mod tally;
mod top_k;

use std::fmt;

use stratoscope_diagnostics::arguments::IdentifierKind;

use correct::accuracy_of;

pub use applicability::Answers;
pub use correct::{correct, largest};
pub use into_metric::{IntoMetric, IntoMetrics};
pub use own::OwnMetric;
pub use tallies::Tallies;
pub use tally::{Predicted, Tally};

/// What is measured. Each variant is documented at the function that makes it: what it measures, the range of its
/// values, and which direction is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Metric {
    /// See [`accuracy()`].
    Accuracy,
    /// See [`f1()`].
    F1,
    /// See [`macro_f1()`].
    MacroF1,
    /// See [`mcc()`].
    Mcc,
    /// See [`pearson()`].
    Pearson,
    /// See [`spearman()`].
    Spearman,
    /// See [`mae()`].
    Mae,
    /// See [`mse()`].
    Mse,
    /// See [`rmse()`].
    Rmse,
    /// See [`precision()`].
    Precision,
    /// See [`recall()`].
    Recall,
    /// See [`auc()`].
    Auc,
    /// See [`top_k_accuracy()`].
    TopKAccuracy {
        /// How many of the largest outputs count, at least 1.
        k: usize,
    },
    /// See [`entity_f1()`].
    EntityF1,
    /// See [`entity_precision()`].
    EntityPrecision,
    /// See [`entity_recall()`].
    EntityRecall,
    /// See [`exact_match()`].
    ExactMatch,
    /// See [`answer_f1()`].
    AnswerF1,
    /// See [`perplexity()`].
    Perplexity,
    /// See [`micro_f1()`].
    MicroF1,
    /// See [`keras_auc()`].
    KerasAuc,
    /// The mean of what a function returns: see [`Metric::mean_of`] and [`Metric::lower_is_better`].
    Own(OwnMetric),
}

/// The share of examples whose largest output is the label's, from 0 to 1; higher is better. One output that decides
/// between two classes must be on the label's side of the threshold. With tagged words each word counts, with hidden
/// tokens each token, and with several labels a text each decision about a label (Keras's `BinaryAccuracy`).
pub fn accuracy() -> Metric {
    Metric::Accuracy
}

/// F1 of the positive class, class 1 of two: 2·TP / (2·TP + FP + FN), from 0 to 1; higher is better. Undefined if class
/// 1 is neither a label nor predicted. For more classes take [`macro_f1`].
pub fn f1() -> Metric {
    Metric::F1
}

/// The mean F1 over the classes, or over the labels of texts with several, from 0 to 1; higher is better. A class that
/// is neither a label nor predicted counts as 0, as in the reference script and scikit-learn.
pub fn macro_f1() -> Metric {
    Metric::MacroF1
}

/// Matthews's correlation coefficient, for any number of classes (Gorodkin 2004, formula 8): CoLA's metric. From −1 to
/// 1, higher is better; undefined if all labels, or all predictions, are of one class.
pub fn mcc() -> Metric {
    Metric::Mcc
}

/// Pearson's correlation of outputs and labels over the whole split, for a regression. From −1 to 1, higher is better;
/// undefined if all outputs, or all labels, are equal.
pub fn pearson() -> Metric {
    Metric::Pearson
}

/// Spearman's rank correlation of outputs and labels: [`pearson`] of the ranks, with the same range.
pub fn spearman() -> Metric {
    Metric::Spearman
}

/// The mean of |output − label|: Keras's `MeanAbsoluteError`. At least 0, in the unit of the labels; lower is better.
/// Where one logit decides between two classes, its probability takes the place of the output; not under a hinge loss.
pub fn mae() -> Metric {
    Metric::Mae
}

/// The mean of (output − label)²: Keras's `MeanSquaredError`, in the square of the labels' unit; otherwise as [`mae`].
pub fn mse() -> Metric {
    Metric::Mse
}

/// The square root of [`mse`] over the whole split: Keras's `RootMeanSquaredError`, in the labels' unit; lower is
/// better.
pub fn rmse() -> Metric {
    Metric::Rmse
}

/// The share of the examples predicted as class 1 that are of class 1, for two classes: Keras's `Precision`. From 0 to
/// 1, higher is better; undefined if class 1 is never predicted, where Keras says 0.
pub fn precision() -> Metric {
    Metric::Precision
}

/// The share of the examples of class 1 that are predicted as class 1, for two classes: Keras's `Recall`. From 0 to 1,
/// higher is better; undefined without examples of class 1, where Keras says 0.
pub fn recall() -> Metric {
    Metric::Recall
}

/// The area under the ROC curve, for two classes: exact, as scikit-learn's `roc_auc_score`. It is the share of pairs of an
/// example of class 1 and one of class 0 in which class 1 is more probable for the former; equal probabilities count half.
/// From 0 to 1, higher is better; undefined if a class has no examples. The probabilities of a split are kept, 16 bytes for
/// each example. [`keras_auc`] is Keras's approximation.
pub fn auc() -> Metric {
    Metric::Auc
}

/// The area under the ROC curve as Keras's `AUC` approximates it, with 200 thresholds: probabilities between two neighboring
/// thresholds count as equal. It keeps 400 counts, however many examples there are; otherwise as [`auc`]. Undefined if a
/// class has no examples, where Keras says 0.
pub fn keras_auc() -> Metric {
    Metric::KerasAuc
}

/// The share of examples whose label is among the `k` largest outputs, equal ones included, from 0 to 1; higher is
/// better: Keras's `SparseTopKCategoricalAccuracy`. By the name `"top_k_accuracy"`, `k` is 5.
pub fn top_k_accuracy(k: usize) -> Metric {
    Metric::TopKAccuracy { k }
}

/// F1 of entities (micro average over their types, as seqeval computes it), for token classification: the harmonic mean
/// of [`entity_precision`] and [`entity_recall`]. From 0 to 1, higher is better; undefined without any entity.
pub fn entity_f1() -> Metric {
    Metric::EntityF1
}

/// The share of the predicted entities whose words and type are right, for token classification. From 0 to 1, higher is
/// better; 0 where none is predicted and there are some, as in seqeval.
pub fn entity_precision() -> Metric {
    Metric::EntityPrecision
}

/// The share of the entities that are predicted with the right words and type, for token classification. From 0 to 1,
/// higher is better; 0 where there is none and some are predicted, as in seqeval.
pub fn entity_recall() -> Metric {
    Metric::EntityRecall
}

/// The share of the questions whose answer is exactly one of the right ones, as SQuAD's script counts it, or of the
/// texts with several labels whose labels are all right. From 0 to 1, higher is better.
pub fn exact_match() -> Metric {
    Metric::ExactMatch
}

/// The mean over the questions of the F1 of the answer's words, as SQuAD's script computes it, for question answering.
/// From 0 to 1, higher is better.
pub fn answer_f1() -> Metric {
    Metric::AnswerF1
}

/// e to the mean of −log p over the hidden tokens, for masked language models, where p is the probability of the right
/// token. At least 1, lower is better; V if all V tokens are equally probable. Undefined if an output is not finite.
pub fn perplexity() -> Metric {
    Metric::Perplexity
}

/// F1 of all decisions about labels together, whatever the label, for texts with several labels. From 0 to 1, higher is
/// better; undefined if no text has a label and none is predicted. [`macro_f1`] is the mean over the labels.
pub fn micro_f1() -> Metric {
    Metric::MicroF1
}

impl Metric {
    /// Every metric; the one that has a `k`, with Keras's.
    pub const ALL: [Self; 21] = [
        Self::Accuracy,
        Self::F1,
        Self::MacroF1,
        Self::Mcc,
        Self::Pearson,
        Self::Spearman,
        Self::Mae,
        Self::Mse,
        Self::Rmse,
        Self::Precision,
        Self::Recall,
        Self::Auc,
        Self::TopKAccuracy { k: top_k::K },
        Self::EntityF1,
        Self::EntityPrecision,
        Self::EntityRecall,
        Self::ExactMatch,
        Self::AnswerF1,
        Self::Perplexity,
        Self::MicroF1,
        Self::KerasAuc,
    ];

    /// Its name in tables and as text: `macro_f1`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::F1 => "f1",
            Self::MacroF1 => "macro_f1",
            Self::Mcc => "mcc",
            Self::Pearson => "pearson",
            Self::Spearman => "spearman",
            Self::Mae => "mae",
            Self::Mse => "mse",
            Self::Rmse => "rmse",
            Self::Precision => "precision",
            Self::Recall => "recall",
            Self::Auc => "auc",
            Self::TopKAccuracy { k } => top_k::name(k),
            Self::EntityF1 => "entity_f1",
            Self::EntityPrecision => "entity_precision",
            Self::EntityRecall => "entity_recall",
            Self::ExactMatch => "exact_match",
            Self::AnswerF1 => "answer_f1",
            Self::Perplexity => "perplexity",
            Self::MicroF1 => "micro_f1",
            Self::KerasAuc => "keras_auc",
            Self::Own(metric) => metric.name(),
        }
    }

    /// The metric of a name, as Keras users write it. Keras's names for the kinds of accuracy are
    /// one here: whether labels are class numbers, or one output decides, is known from the model.
    pub fn by_name(name: &str) -> Option<Self> {
        let name = IdentifierKind::Metric.canonical(name)?;
        Some(match name {
            "top_k_accuracy" => Self::TopKAccuracy { k: top_k::K },
            _ => Self::ALL.into_iter().find(|metric| metric.name() == name)?,
        })
    }

    /// Whether the mean of the batches' values would be another number (SC0311). What is a mean over
    /// examples is only wrong where the last batch is short.
    pub fn needs_the_split(self) -> bool {
        !matches!(
            self,
            Self::Accuracy | Self::Mae | Self::Mse | Self::TopKAccuracy { .. } | Self::Own(_)
        )
    }

    /// Whether it counts classes.
    pub fn is_of_classes(self) -> bool {
        !matches!(self, Self::Pearson | Self::Spearman | Self::Own(_)) && !self.is_distance()
    }

    /// Whether it is a distance of outputs and labels: the lower the better.
    fn is_distance(self) -> bool {
        matches!(self, Self::Mae | Self::Mse | Self::Rmse)
    }

    /// Whether low values are good.
    pub fn is_low_good(self) -> bool {
        match self {
            Self::Own(metric) => metric.is_low_good(),
            Self::Perplexity => true,
            other => other.is_distance(),
        }
    }

    /// Its value for a split; `None` where it is undefined.
    pub fn value(self, tally: &Tally) -> Option<f64> {
        match self {
            Self::Accuracy => accuracy_of(tally),
            Self::F1 => f1::of_class(tally, 1),
            Self::MacroF1 => match &tally.sets {
                Some(sets) => sets.macro_f1(),
                None => f1::of_all_classes(tally),
            },
            Self::Mcc => mcc::of(tally),
            Self::Pearson => correlation::pearson(tally.pairs()),
            Self::Spearman => correlation::spearman(tally.pairs()),
            Self::Mae => distance::absolute(tally.pairs()),
            Self::Mse => distance::squared(tally.pairs()),
            Self::Rmse => distance::root(tally.pairs()),
            Self::Precision => precision_recall::precision(tally),
            Self::Recall => precision_recall::recall(tally),
            Self::Auc => auc::exact(tally.pairs()),
            Self::KerasAuc => tally.scores().and_then(auc::of),
            Self::TopKAccuracy { k } => top_k::of(k, tally.ranks()),
            Self::EntityF1 => entities::f1(tally),
            Self::EntityPrecision => entities::precision(tally),
            Self::EntityRecall => entities::recall(tally),
            Self::ExactMatch => match &tally.sets {
                Some(sets) => sets.exact(),
                None => tally.answers.as_ref()?.exact_match(),
            },
            Self::MicroF1 => tally.sets.as_ref()?.micro_f1(),
            Self::AnswerF1 => tally.answers.as_ref()?.f1(),
            Self::Perplexity => tally.pieces.as_ref()?.perplexity(),
            Self::Own(metric) => tally.own.iter().find_map(|own| own.mean(metric)),
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The names of metrics.
pub fn names(metrics: &[Metric]) -> Vec<&'static str> {
    metrics.iter().map(|metric| metric.name()).collect()
}

/// The names of those of which low values are good.
pub fn low_is_good(metrics: &[Metric]) -> Vec<&'static str> {
    let low = metrics.iter().filter(|metric| metric.is_low_good());
    low.map(|metric| metric.name()).collect()
}

/// A share; `None` of nothing.
fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole != 0.0).then(|| part / whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(classes: usize, answers: &[(usize, usize)]) -> Tally {
        let mut tally = Tally::of_classes(classes);
        for &(label, predicted) in answers {
            tally.add_class(label, predicted);
        }
        tally
    }

    #[track_caller]
    fn check(metric: Metric, tally: &Tally, expected: Option<f64>) {
        match (metric.value(tally), expected) {
            (Some(found), Some(expected)) => {
                assert!(
                    (found - expected).abs() < 1e-12,
                    "{metric}: {found}, not {expected}"
                );
            }
            (found, expected) => assert_eq!(found, expected, "{metric}"),
        }
    }

    #[test]
    fn two_classes_worked_out_by_hand() {
        // true/false positives 3/1, negatives 4/2
        let answers = [
            vec![(1, 1); 3],
            vec![(0, 1); 1],
            vec![(0, 0); 4],
            vec![(1, 0); 2],
        ]
        .concat();
        let tally = tally(2, &answers);
        check(Metric::Accuracy, &tally, Some(0.7));
        check(
            Metric::F1,
            &tally,
            Some(2.0 * 3.0 / (2.0 * 3.0 + 1.0 + 2.0)),
        );
        check(
            Metric::MacroF1,
            &tally,
            Some((6.0 / 9.0 + 8.0 / 11.0) / 2.0),
        );
        check(
            Metric::Mcc,
            &tally,
            Some((3.0 * 4.0 - 2.0) / (4.0_f64 * 5.0 * 5.0 * 6.0).sqrt()),
        );
    }

    #[test]
    fn more_classes() {
        let answers = [(0, 0), (1, 1), (2, 1), (2, 2), (0, 2)];
        let tally = tally(4, &answers);
        check(Metric::Accuracy, &tally, Some(0.6));
        // Class 3 is nowhere: it counts as 0 in the mean over four.
        check(
            Metric::MacroF1,
            &tally,
            Some((2.0 / 3.0 + 2.0 / 3.0 + 0.5) / 4.0),
        );
        // Gorodkin 2004: (c·s − Σ p·t) / √((s² − Σp²)(s² − Σt²)), s = 5, c = 3
        let expected = (15.0 - 8.0) / (25.0_f64 - 9.0).sqrt() / (25.0_f64 - 9.0).sqrt();
        check(Metric::Mcc, &tally, Some(expected));
    }

    #[test]
    fn an_empty_denominator_is_undefined() {
        check(Metric::Accuracy, &tally(2, &[]), None);
        check(Metric::F1, &tally(2, &[(0, 0)]), None);
        check(Metric::Mcc, &tally(2, &[(0, 0), (1, 0)]), None);
        let mut numbers = Tally::of_numbers();
        numbers.add_number(1.0, 2.0);
        numbers.add_number(1.0, 3.0);
        check(Metric::Pearson, &numbers, None);
        check(Metric::Spearman, &numbers, None);
    }

    #[test]
    fn correlations_over_the_whole_split() {
        let mut tally = Tally::of_numbers();
        for (label, output) in [(1.0, 1.0), (2.0, 4.0), (3.0, 9.0), (4.0, 16.0)] {
            tally.add_number(label, output);
        }
        check(Metric::Spearman, &tally, Some(1.0));
        // Σ(x−x̄)(y−ȳ) = 25, Σ(x−x̄)² = 5, Σ(y−ȳ)² = 129
        check(
            Metric::Pearson,
            &tally,
            Some(25.0 / (5.0_f64 * 129.0).sqrt()),
        );
        // Equal outputs share the mean of their ranks.
        let mut ties = Tally::of_numbers();
        for (label, output) in [(1.0, 5.0), (2.0, 5.0), (3.0, 7.0)] {
            ties.add_number(label, output);
        }
        check(Metric::Spearman, &ties, Some(1.5 / (2.0_f64 * 1.5).sqrt()));
    }

    #[test]
    fn one_output_decides_by_its_threshold() {
        use stratoscope_data::Labels;
        // Keras takes ½ for logits too, and would call 0.3 and 0.4 class 0.
        let labels = Labels::Values(vec![1.0, 1.0, 0.0, 0.0]);
        let accuracy = |threshold| {
            let mut tally = Tally::of_two_classes_by_one_output(threshold);
            tally.add(&labels, &[0.3, 0.9, -0.1, 0.4]);
            tally
        };
        check(Metric::Accuracy, &accuracy(0.0), Some(0.75));
        check(Metric::Accuracy, &accuracy(0.5), Some(0.75));
        check(Metric::F1, &accuracy(0.0), Some(0.8));
        check(Metric::F1, &accuracy(0.5), Some(2.0 / 3.0));
        let mut classes = Tally::of_two_classes_by_one_output(0.0);
        classes.add(&Labels::Classes(vec![1, 1, 0, 0]), &[0.3, 0.9, -0.1, 0.4]);
        assert_eq!(classes, accuracy(0.0));
    }

    /// Values of scikit-learn 1.7 (`mean_absolute_error`, `mean_squared_error`, `root_mean_squared_error`) for
    /// the example of their documentation, and of Keras's for the same numbers.
    #[test]
    fn distances() {
        let mut tally = Tally::of_numbers();
        for (label, output) in [(3.0, 2.5), (-0.5, 0.0), (2.0, 2.0), (7.0, 8.0)] {
            tally.add_number(label, output);
        }
        check(Metric::Mae, &tally, Some(0.5));
        check(Metric::Mse, &tally, Some(0.375));
        check(Metric::Rmse, &tally, Some(0.612_372_435_695_794_5));
        check(Metric::Mae, &Tally::of_numbers(), None);
    }

    /// The examples in the documentation of Keras's `Precision`, `Recall` and `AUC`.
    #[test]
    fn keras_own_examples() {
        use stratoscope_data::Labels;
        let all = [
            Metric::Precision,
            Metric::Recall,
            Metric::KerasAuc,
            Metric::Mae,
        ];
        let labels = Labels::Classes(vec![0, 1, 1, 1]);
        let mut tally = Tally::of_two_classes_by_one_output(0.5).measuring(&all, false);
        tally.add(&labels, &[1.0, 0.0, 1.0, 1.0]);
        check(Metric::Precision, &tally, Some(2.0 / 3.0));
        check(Metric::Recall, &tally, Some(2.0 / 3.0));
        check(Metric::Mae, &tally, Some(0.5));
        assert_eq!(tally.examples(), 4, "pairs are beside the classes");
        let mut tally = Tally::of_two_classes_by_one_output(0.5).measuring(&all, false);
        tally.add(&Labels::Classes(vec![0, 0, 1, 1]), &[0.0, 0.5, 0.3, 0.9]);
        check(Metric::KerasAuc, &tally, Some(0.75));
        check(
            Metric::Precision,
            &Tally::of_two_classes_by_one_output(0.5),
            None,
        );
    }

    /// One logit, the two logits of two classes and their probabilities are one answer.
    #[test]
    fn logits_and_probabilities_have_the_same_area() {
        use stratoscope_data::Labels;
        let metrics = [Metric::Auc, Metric::KerasAuc, Metric::Mse];
        let labels = Labels::Classes(vec![0, 1, 0, 1, 1]);
        let logits = [-1.5_f32, 0.25, 0.5, 2.0, -0.75];
        let pairs = logits.map(|logit| [0.5, 0.5 + logit]).concat();
        let shares = logits.map(|logit| 1.0 / (1.0 + (-logit).exp()));
        let counted = |tally: Tally, of_logits, outputs: &[f32]| {
            let mut tally = tally.measuring(&metrics, of_logits);
            tally.add(&labels, outputs);
            tally
        };
        let logit = counted(Tally::of_two_classes_by_one_output(0.0), true, &logits);
        let share = counted(Tally::of_two_classes_by_one_output(0.5), false, &shares);
        let two = counted(Tally::of_classes(2), true, &pairs);
        // 6 pairs of a 0 and a 1, of which 4 are in order.
        for tally in [&logit, &share, &two] {
            check(Metric::Auc, tally, Some(4.0 / 6.0));
            check(Metric::KerasAuc, tally, Some(4.0 / 6.0));
        }
        let squares: f64 = std::iter::zip([0.0, 1.0, 0.0, 1.0, 1.0], shares)
            .map(|(label, share)| (label - f64::from(share)).powi(2))
            .sum();
        let found = Metric::Mse.value(&logit).expect("five examples");
        assert!((found - squares / 5.0).abs() < 1e-6 * squares, "{found}");
    }

    /// Under a hinge loss labels and outputs are on one scale.
    #[test]
    fn margins_are_compared_as_they_are() {
        use stratoscope_data::Labels;
        let margins = Tally::of_two_classes_by_one_output(0.0).of_margins();
        let mut tally = margins.measuring(&[Metric::Mae, Metric::Accuracy], true);
        tally.add(&Labels::Values(vec![-1.0, 1.0]), &[-1.5, 0.5]);
        check(Metric::Mae, &tally, Some(0.5));
        check(Metric::Accuracy, &tally, Some(1.0));
    }

    #[test]
    fn the_label_among_the_best() {
        use stratoscope_data::Labels;
        let metric = top_k_accuracy(2);
        let mut tally = Tally::of_classes(3).measuring(&[metric], true);
        let outputs = [0.1, 0.9, 0.8, 0.05, 0.95, 0.0, 0.3, 0.2, 0.1];
        tally.add(&Labels::Classes(vec![2, 1, 2]), &outputs);
        check(metric, &tally, Some(2.0 / 3.0));
        check(top_k_accuracy(1), &tally, Some(1.0 / 3.0));
        check(top_k_accuracy(3), &tally, Some(1.0));
    }

    #[test]
    fn what_a_metric_cannot_measure() {
        let refused = |answers: Answers| -> Vec<&str> {
            let refused = Metric::ALL.into_iter();
            let refused = refused.filter(|metric| metric.objection(answers).is_some());
            refused.map(Metric::name).collect()
        };
        let numbers = ["pearson", "spearman", "mae", "mse", "rmse"];
        let entities = [
            "entity_f1",
            "entity_precision",
            "entity_recall",
            "exact_match",
            "answer_f1",
            "perplexity",
            "micro_f1",
        ];
        assert_eq!(
            refused(Answers::Classes(2)),
            [&numbers[..], &entities].concat()
        );
        let two = ["precision", "recall", "auc"];
        let keras = ["keras_auc"];
        assert_eq!(
            refused(Answers::Classes(3)),
            [&["f1"][..], &numbers, &two, &entities, &keras].concat()
        );
        assert_eq!(
            refused(Answers::TwoClasses),
            [&["pearson", "spearman", "top_5_accuracy"][..], &entities].concat()
        );
        assert_eq!(
            refused(Answers::Words),
            [&["f1"][..], &numbers, &two, &entities[3..], &keras].concat()
        );
        assert_eq!(
            refused(Answers::Number),
            [
                &["accuracy", "f1", "macro_f1", "mcc"][..],
                &two,
                &["top_5_accuracy"],
                &entities,
                &keras
            ]
            .concat()
        );
        let taken = |answers: Answers| -> Vec<&str> {
            let refused = refused(answers);
            let names = Metric::ALL.map(Metric::name).into_iter();
            names.filter(|name| !refused.contains(name)).collect()
        };
        assert_eq!(taken(Answers::Tokens), ["accuracy", "perplexity"]);
        let of_sets = ["accuracy", "macro_f1", "exact_match", "micro_f1"];
        assert_eq!(taken(Answers::Set), of_sets);
        assert!(top_k_accuracy(0).objection(Answers::Classes(3)).is_some());
    }

    #[test]
    fn every_name_of_the_table_is_a_metric() {
        use stratoscope_diagnostics::arguments::METRICS;
        let name = |metric: Metric| match metric {
            Metric::TopKAccuracy { .. } => "top_k_accuracy",
            _ => metric.name(),
        };
        let names = Metric::ALL.map(name);
        assert_eq!(names, METRICS[..names.len()]);
        // What follows are other names of these.
        assert!(METRICS.iter().all(|name| Metric::by_name(name).is_some()));
        for metric in Metric::ALL {
            assert_eq!(Metric::by_name(name(metric)), Some(metric));
        }
        for (keras, ours) in [
            ("mean_absolute_error", Metric::Mae),
            ("MSE", Metric::Mse),
            ("RootMeanSquaredError", Metric::Rmse),
            ("AUC", Metric::Auc),
            ("sparse_top_k_categorical_accuracy", top_k_accuracy(5)),
            ("BinaryAccuracy", Metric::Accuracy),
        ] {
            assert_eq!(Metric::by_name(keras), Some(ours), "{keras}");
        }
        // Keras's class of this name compares numbers for equality.
        assert_eq!(Metric::by_name("Accuracy"), None);
    }
}

//! Metrics: numbers that are measured beside the loss. Keras argument: `metrics`.
//!
//! A metric is a pure function of a [`Tally`] of the *whole* split. Averages of batches would be
//! wrong for most of them, and for accuracy too when the last batch is short. `None` means undefined
//! (an empty denominator): it is shown as such, never as NaN or as 0.
//!
//! A metric is a file with an implementation of `Measure`, and a row in [`list`].

mod applicability;
mod auc;
mod correct;
mod correlation;
mod distance;
mod entities;
mod exact_sum;
mod f1;
mod into_metric;
pub mod list;
mod mcc;
mod measure;
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

pub use applicability::Answers;
pub use correct::{correct, largest};
pub use correlation::rank_correlation;
pub use into_metric::{IntoMetric, IntoMetrics};
pub use list::*;
pub use own::OwnMetric;
pub use tallies::Tallies;
pub use tally::{Predicted, Tally};

impl Metric {
    /// Its name in tables and as text: `macro_f1`.
    pub fn name(self) -> &'static str {
        self.ask(|metric| metric.name())
    }

    /// The metric of a name, as Keras users write it. Keras's names for the kinds of accuracy are
    /// one here: whether labels are class numbers, or one output decides, is known from the model.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::of_text(IdentifierKind::Metric.canonical(name)?)
    }

    /// Whether the mean of the batches' values would be another number (SC0311). What is a mean over
    /// examples is only wrong where the last batch is short.
    pub fn needs_the_split(self) -> bool {
        self.ask(|metric| metric.needs_the_split())
    }

    /// Whether it counts classes.
    pub fn is_of_classes(self) -> bool {
        self.ask(|metric| metric.is_of_classes())
    }

    /// Whether low values are good.
    pub fn is_low_good(self) -> bool {
        self.ask(|metric| metric.is_low_good())
    }

    /// Its value for a split; `None` where it is undefined.
    pub fn value(self, tally: &Tally) -> Option<f64> {
        self.ask(|metric| metric.value(tally))
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

    /// The metrics of the table below. A metric that is added to the end of the list is tested in its file.
    fn tabled() -> &'static [Metric] {
        const ALL: &[Metric] = &Metric::ALL;
        let last = ALL.iter().position(|metric| *metric == Metric::KerasAuc);
        &ALL[..=last.expect("it is in the list")]
    }

    #[test]
    fn what_a_metric_cannot_measure() {
        let refused = |answers: Answers| -> Vec<&str> {
            let refused = tabled().iter().copied();
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
            let names = tabled().iter().map(|metric| metric.name());
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

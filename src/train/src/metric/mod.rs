//! Metrics: numbers that are measured beside the loss. Keras argument: `metrics`.
//!
//! A metric is a pure function of a [`Tally`] of the *whole* split. Averages of batches would be
//! wrong for all of them but accuracy, and even for that one when the last batch is short. `None`
//! means undefined (an empty denominator): it is shown as such, never as NaN or as 0.

mod correlation;
mod f1;
mod mcc;
mod tallies;
mod tally;

use std::fmt;

pub(crate) use tallies::Tallies;
pub use tally::{Predicted, Tally};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Metric {
    /// The share of examples whose largest output is the label's.
    Accuracy,
    /// F1 of class 1, for two classes.
    F1,
    /// The mean of the classes' F1.
    MacroF1,
    /// Matthews's correlation coefficient, for any number of classes.
    Mcc,
    /// Pearson's correlation of outputs and labels, for a regression.
    Pearson,
    /// Spearman's rank correlation of outputs and labels, for a regression.
    Spearman,
}

/// The share of examples whose largest output is the label's.
pub fn accuracy() -> Metric {
    Metric::Accuracy
}

/// F1 of the positive class, class 1 of two. For more classes take [`macro_f1`].
pub fn f1() -> Metric {
    Metric::F1
}

/// The mean over the classes of each class's F1. A class that is neither there nor predicted counts
/// as 0, as in the reference script and scikit-learn.
pub fn macro_f1() -> Metric {
    Metric::MacroF1
}

/// Matthews's correlation coefficient, CoLA's metric.
pub fn mcc() -> Metric {
    Metric::Mcc
}

/// Pearson's correlation of outputs and labels, over the whole split.
pub fn pearson() -> Metric {
    Metric::Pearson
}

/// Spearman's rank correlation of outputs and labels, over the whole split.
pub fn spearman() -> Metric {
    Metric::Spearman
}

impl Metric {
    /// Every metric.
    pub const ALL: [Self; 6] = [
        Self::Accuracy,
        Self::F1,
        Self::MacroF1,
        Self::Mcc,
        Self::Pearson,
        Self::Spearman,
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
        }
    }

    /// The metric of a name, as Keras users write it. Keras's names for the kinds of accuracy are
    /// one here: whether labels are class numbers, or one output decides, is known from the model.
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "acc" | "sparse_categorical_accuracy" | "categorical_accuracy" | "binary_accuracy" => {
                Some(Self::Accuracy)
            }
            _ => Self::ALL.into_iter().find(|metric| metric.name() == name),
        }
    }

    /// Whether the mean of the batches' values would be another number (SC0311).
    pub(crate) fn needs_the_split(self) -> bool {
        self != Self::Accuracy
    }

    /// Whether it counts classes.
    pub(crate) fn is_of_classes(self) -> bool {
        !matches!(self, Self::Pearson | Self::Spearman)
    }

    /// Its value for a split; `None` where it is undefined.
    pub fn value(self, tally: &Tally) -> Option<f64> {
        match self {
            Self::Accuracy => accuracy_of(tally),
            Self::F1 => f1::of_class(tally, 1),
            Self::MacroF1 => f1::of_all_classes(tally),
            Self::Mcc => mcc::of(tally),
            Self::Pearson => correlation::pearson(tally.pairs()),
            Self::Spearman => correlation::spearman(tally.pairs()),
        }
    }

    /// What it needs the labels to be, if these are not it: classes, exactly two, or numbers.
    pub(crate) fn objection(self, classes: Option<usize>) -> Option<&'static str> {
        match (self, classes) {
            (Self::Pearson | Self::Spearman, None) => None,
            (Self::Pearson | Self::Spearman, Some(_)) => Some("a metric of classes"),
            (_, None) => Some("a metric of numbers: `pearson()` or `spearman()`"),
            (Self::F1, Some(2)) => None,
            (Self::F1, Some(_)) => Some("`macro_f1()`, as the labels are more than two"),
            (_, Some(_)) => None,
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn accuracy_of(tally: &Tally) -> Option<f64> {
    let right: u64 = (0..tally.classes())
        .map(|class| tally.count(class, class))
        .sum();
    ratio(right as f64, tally.examples() as f64)
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

    #[test]
    fn every_name_of_the_table_is_a_metric() {
        use stratoscope_diagnostics::arguments::METRICS;
        let names: Vec<&str> = Metric::ALL.iter().map(|metric| metric.name()).collect();
        assert_eq!(names, METRICS[..names.len()]);
        // What follows are other names of these.
        assert!(METRICS.iter().all(|name| Metric::by_name(name).is_some()));
        for metric in Metric::ALL {
            assert_eq!(Metric::by_name(metric.name()), Some(metric));
        }
    }
}

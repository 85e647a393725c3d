//! Precision and recall of class 1 of two. Keras's `Precision` and `Recall`, whose threshold is ½ for
//! probabilities; here a logit is compared with 0.

use super::applicability::{Answers, Fit};
use super::measure::Measure;
use super::{Tally, ratio};

/// The share of the examples taken for class 1 that are of it; undefined if there are none. (Keras says 0.)
fn precision(tally: &Tally) -> Option<f64> {
    ratio(tally.count(1, 1) as f64, tally.predicted(1) as f64)
}

/// The share of the examples of class 1 that are taken for it; undefined if there are none. (Keras says 0.)
fn recall(tally: &Tally) -> Option<f64> {
    ratio(tally.count(1, 1) as f64, tally.labelled(1) as f64)
}

/// What a metric of two classes offers where there are more.
pub(super) const INSTEAD: &str =
    "`macro_f1()` or `accuracy()`: it is of two classes, and there are more";

/// [`precision`](super::precision()).
#[derive(Clone, Copy, Debug)]
pub(super) struct Precision;

impl Measure for Precision {
    fn name(&self) -> &'static str {
        "precision"
    }

    fn value(&self, tally: &Tally) -> Option<f64> {
        precision(tally)
    }

    fn fit(&self, answers: Answers) -> Fit {
        Fit::of_two_classes(answers, INSTEAD)
    }
}

/// [`recall`](super::recall()).
#[derive(Clone, Copy, Debug)]
pub(super) struct Recall;

impl Measure for Recall {
    fn name(&self) -> &'static str {
        "recall"
    }

    fn value(&self, tally: &Tally) -> Option<f64> {
        recall(tally)
    }

    fn fit(&self, answers: Answers) -> Fit {
        Fit::of_two_classes(answers, INSTEAD)
    }
}

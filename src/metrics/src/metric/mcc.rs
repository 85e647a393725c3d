//! Matthews's correlation coefficient, in the form for any number of classes.
//! Source: Gorodkin 2004, "Comparing two K-category assignments by a K-category correlation
//! coefficient", formula 8.

use super::applicability::{Answers, Fit};
use super::measure::Measure;
use super::{Tally, ratio};

/// Undefined if all labels, or all predictions, are of one class.
fn of(tally: &Tally) -> Option<f64> {
    let examples = tally.examples() as f64;
    let (mut right, mut product, mut predicted, mut labelled) = (0.0, 0.0, 0.0, 0.0);
    for class in 0..tally.classes() {
        let (p, t) = (tally.predicted(class) as f64, tally.labelled(class) as f64);
        right += tally.count(class, class) as f64;
        product += p * t;
        predicted += p * p;
        labelled += t * t;
    }
    let square = examples * examples;
    ratio(
        right * examples - product,
        ((square - predicted) * (square - labelled)).sqrt(),
    )
}

/// [`mcc`](super::mcc()).
#[derive(Clone, Copy, Debug)]
pub(super) struct Mcc;

impl Measure for Mcc {
    fn name(&self) -> &'static str {
        "mcc"
    }

    fn value(&self, tally: &Tally) -> Option<f64> {
        of(tally)
    }

    fn fit(&self, answers: Answers) -> Fit {
        Fit::when(answers.are_classes() || answers == Answers::Words)
    }
}

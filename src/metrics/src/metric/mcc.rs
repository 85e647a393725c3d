//! Matthews's correlation coefficient, in the form for any number of classes.
//! Source: Gorodkin 2004, "Comparing two K-category assignments by a K-category correlation
//! coefficient", formula 8.

use super::{Tally, ratio};

/// Undefined if all labels, or all predictions, are of one class.
pub(super) fn of(tally: &Tally) -> Option<f64> {
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

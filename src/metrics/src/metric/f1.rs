//! F1, the harmonic mean of precision and recall: 2·TP / (2·TP + FP + FN).

use super::{Tally, ratio};

/// F1 of one class; undefined if it is neither there nor predicted.
pub(super) fn of_class(tally: &Tally, class: usize) -> Option<f64> {
    let right = tally.count(class, class);
    ratio(
        2.0 * right as f64,
        (tally.labelled(class) + tally.predicted(class)) as f64,
    )
}

/// The mean over all classes, an undefined one counting as 0.
pub(super) fn of_all_classes(tally: &Tally) -> Option<f64> {
    if tally.examples() == 0 {
        return None;
    }
    let sum: f64 = (0..tally.classes())
        .map(|class| of_class(tally, class).unwrap_or(0.0))
        .sum();
    ratio(sum, tally.classes() as f64)
}

//! Precision and recall of class 1 of two. Keras's `Precision` and `Recall`, whose threshold is ½ for
//! probabilities; here a logit is compared with 0.

use super::{Tally, ratio};

/// The share of the examples taken for class 1 that are of it; undefined if there are none. (Keras says 0.)
pub(super) fn precision(tally: &Tally) -> Option<f64> {
    ratio(tally.count(1, 1) as f64, tally.predicted(1) as f64)
}

/// The share of the examples of class 1 that are taken for it; undefined if there are none. (Keras says 0.)
pub(super) fn recall(tally: &Tally) -> Option<f64> {
    ratio(tally.count(1, 1) as f64, tally.labelled(1) as f64)
}

//! Distances of labels and outputs, as means over the examples. Keras's `MeanAbsoluteError`,
//! `MeanSquaredError` and `RootMeanSquaredError`.

use super::ratio;

/// Undefined without an example, as the other two are.
pub(super) fn absolute(pairs: &[(f64, f64)]) -> Option<f64> {
    mean(pairs, f64::abs)
}

pub(super) fn squared(pairs: &[(f64, f64)]) -> Option<f64> {
    mean(pairs, |error| error * error)
}

pub(super) fn root(pairs: &[(f64, f64)]) -> Option<f64> {
    squared(pairs).map(f64::sqrt)
}

fn mean(pairs: &[(f64, f64)], of: impl Fn(f64) -> f64) -> Option<f64> {
    let sum: f64 = pairs.iter().map(|(label, output)| of(output - label)).sum();
    ratio(sum, pairs.len() as f64)
}

//! Distances of labels and outputs, as means over the examples. Keras's `MeanAbsoluteError`,
//! `MeanSquaredError` and `RootMeanSquaredError`.

use super::applicability::{Answers, Fit};
use super::measure::Measure;
use super::{Tally, ratio};

/// Undefined without an example, as the other two are.
fn absolute(pairs: &[(f64, f64)]) -> Option<f64> {
    mean(pairs, f64::abs)
}

fn squared(pairs: &[(f64, f64)]) -> Option<f64> {
    mean(pairs, |error| error * error)
}

fn root(pairs: &[(f64, f64)]) -> Option<f64> {
    squared(pairs).map(f64::sqrt)
}

fn mean(pairs: &[(f64, f64)], of: impl Fn(f64) -> f64) -> Option<f64> {
    let sum: f64 = pairs.iter().map(|(label, output)| of(output - label)).sum();
    ratio(sum, pairs.len() as f64)
}

/// One of the distances.
#[derive(Clone, Copy, Debug)]
pub(super) struct Distance {
    name: &'static str,
    of: fn(&[(f64, f64)]) -> Option<f64>,
    /// Whether it is no mean over the examples.
    needs_the_split: bool,
}

/// [`mae`](super::mae()).
pub(super) const MAE: Distance = Distance {
    name: "mae",
    of: absolute,
    needs_the_split: false,
};

/// [`mse`](super::mse()).
pub(super) const MSE: Distance = Distance {
    name: "mse",
    of: squared,
    needs_the_split: false,
};

/// [`rmse`](super::rmse()).
pub(super) const RMSE: Distance = Distance {
    name: "rmse",
    of: root,
    needs_the_split: true,
};

impl Measure for Distance {
    fn name(&self) -> &'static str {
        self.name
    }

    fn value(&self, tally: &Tally) -> Option<f64> {
        (self.of)(tally.pairs())
    }

    fn fit(&self, answers: Answers) -> Fit {
        Fit::when(matches!(answers, Answers::Number | Answers::TwoClasses))
    }

    fn prepare(&self, tally: &mut Tally) {
        // Where one output decides between two classes, labels and probabilities are kept beside the counts.
        tally.keeps_pairs |= tally.threshold.is_some();
    }

    fn needs_the_split(&self) -> bool {
        self.needs_the_split
    }

    fn is_of_classes(&self) -> bool {
        false
    }

    fn is_low_good(&self) -> bool {
        true
    }
}

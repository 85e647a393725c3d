//! `max(0, 1 − y · output)` for labels y of −1 and 1, and its square. Keras's `Hinge` and `SquaredHinge`.

use burn::tensor::Tensor;
use burn::tensor::activation::relu;
use serde::{Deserialize, Serialize};
use stratoscope_bert::operation;
use stratoscope_data::Labels;

use super::criterion::{Criterion, Named};
use super::labels::column;

/// A margin between two classes, by one output of any size: class 1 above 0. Labels are 0 and 1, of which 0
/// becomes −1 as in Keras, or −1 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hinge;

/// The square of the missing margin, so that far misses pull more. See [`Hinge`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SquaredHinge;

impl Named for Hinge {
    const TEXT: &'static str = "hinge";

    fn named() -> Self {
        Self
    }
}

impl Criterion for Hinge {
    fn name(&self) -> &'static str {
        "Hinge"
    }

    fn takes_signs(&self) -> bool {
        true
    }

    fn threshold(&self) -> Option<f64> {
        Some(0.0)
    }

    fn rows(&self, outputs: Tensor<2>, labels: &Labels) -> Option<Tensor<2>> {
        Some(missing(outputs, labels))
    }
}

impl Named for SquaredHinge {
    const TEXT: &'static str = "squared_hinge";

    fn named() -> Self {
        Self
    }
}

impl Criterion for SquaredHinge {
    fn name(&self) -> &'static str {
        "SquaredHinge"
    }

    fn takes_signs(&self) -> bool {
        true
    }

    fn threshold(&self) -> Option<f64> {
        Some(0.0)
    }

    fn rows(&self, outputs: Tensor<2>, labels: &Labels) -> Option<Tensor<2>> {
        let missing = missing(outputs, labels);
        Some(operation!("square", [missing], missing.powi_scalar(2)))
    }
}

/// What is missing of a margin of 1.
fn missing(outputs: Tensor<2>, labels: &Labels) -> Tensor<2> {
    let sign = |label: f32| if label == 0.0 { -1.0 } else { label };
    match column(labels, &outputs.device(), sign) {
        Some(signs) => relu((outputs * signs).neg().add_scalar(1.0)),
        None => outputs.zeros_like(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::Loss;
    use crate::loss::labels::{check_one_output, sum_of};

    const CASES: [(f32, f32); 6] = [
        (0.25, 1.0),
        (0.25, 0.0),
        (0.25, -1.0),
        (2.0, 1.0),
        (-2.0, 1.0),
        (-3.0, 0.0),
    ];

    fn missing(output: f64, label: f64) -> f64 {
        let sign = if label == 0.0 { -1.0 } else { label };
        (1.0 - sign * output).max(0.0)
    }

    #[test]
    fn values_and_gradients() {
        check_one_output(&Loss::Hinge(Hinge), missing, &CASES);
        let square = |output: f64, label: f64| missing(output, label).powi(2);
        check_one_output(&Loss::SquaredHinge(SquaredHinge), square, &CASES);
    }

    /// The example in the documentation of Keras's `Hinge`: two rows of two outputs with the means 1.1 and 1.5;
    /// here an output a row, so that the sum is that of all four.
    #[test]
    fn the_example_of_keras() {
        let outputs =
            Tensor::<2>::from_floats([[0.6], [0.4], [0.4], [0.6]], &burn::tensor::Device::flex());
        let labels = Labels::Classes(vec![0, 1, 0, 0]);
        let sum = sum_of(Loss::Hinge(Hinge), outputs, &labels);
        let expected = 2.0 * (1.1 + 1.5);
        assert!((sum - expected).abs() < 1e-6 * expected, "{sum}");
    }
}

//! `(output − label)²`. Keras's `MeanSquaredError`, HF's loss for `num_labels = 1`.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};
use stratoscope_bert::operation;
use stratoscope_data::Labels;

use super::criterion::{Criterion, Named};
use super::labels::errors;

/// Squared distance between one output and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeanSquaredError;

impl Named for MeanSquaredError {
    const TEXT: &'static str = "mean_squared_error";

    fn named() -> Self {
        Self
    }
}

impl Criterion for MeanSquaredError {
    fn name(&self) -> &'static str {
        "MeanSquaredError"
    }

    fn is_regression(&self) -> bool {
        true
    }

    fn rows(&self, outputs: Tensor<2>, labels: &Labels) -> Option<Tensor<2>> {
        let errors = errors(outputs, labels);
        Some(operation!("square", [errors], errors.powi_scalar(2)))
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::loss::Loss;
    use crate::loss::labels::sum_of;

    #[test]
    fn a_sum_of_squares() {
        let outputs = Tensor::<2>::from_floats([[1.0], [4.0]], &Device::flex());
        let labels = Labels::Values(vec![3.0, 1.0]);
        assert_eq!(
            sum_of(Loss::MeanSquaredError(MeanSquaredError), outputs, &labels),
            13.0
        );
    }
}

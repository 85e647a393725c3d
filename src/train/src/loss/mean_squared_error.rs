//! `(output − label)²`. Keras's `MeanSquaredError`, HF's loss for `num_labels = 1`.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};
use stratoscope_bert::operation;
use stratoscope_data::Labels;
use stratoscope_gpu::sum;

use super::labels::errors;

/// Squared distance between one output and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeanSquaredError;

impl MeanSquaredError {
    pub(super) fn sum(&self, outputs: Tensor<2>, labels: &Labels) -> Tensor<1> {
        let errors = errors(outputs, labels);
        let squares = operation!("square", [errors], errors.powi_scalar(2));
        operation!("sum", [squares], sum(squares))
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    #[test]
    fn a_sum_of_squares() {
        let outputs = Tensor::<2>::from_floats([[1.0], [4.0]], &Device::flex());
        let found = MeanSquaredError.sum(outputs, &Labels::Values(vec![3.0, 1.0]));
        assert_eq!(found.into_scalar::<f32>(), 13.0);
    }
}

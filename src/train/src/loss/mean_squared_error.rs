//! `(output − label)²`. Keras's `MeanSquaredError`, HF's loss for `num_labels = 1`.

use burn::tensor::Tensor;
use stratoscope_data::Labels;

use super::labels::errors;

/// Squared distance between one output and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeanSquaredError;

impl MeanSquaredError {
    pub(super) fn sum(&self, outputs: Tensor<2>, labels: &Labels) -> Tensor<1> {
        errors(outputs, labels).powi_scalar(2).sum()
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

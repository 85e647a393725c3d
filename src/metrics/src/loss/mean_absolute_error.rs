//! `|output − label|`. Keras's `MeanAbsoluteError`; in PyTorch `L1Loss`.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};
use stratoscope_bert::operation;
use stratoscope_data::Labels;

use super::criterion::{Criterion, Named};
use super::labels::errors;

/// Distance between one output and a number. Far errors pull no more than near ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeanAbsoluteError;

impl Named for MeanAbsoluteError {
    const TEXT: &'static str = "mean_absolute_error";

    fn named() -> Self {
        Self
    }
}

impl Criterion for MeanAbsoluteError {
    fn name(&self) -> &'static str {
        "MeanAbsoluteError"
    }

    fn is_regression(&self) -> bool {
        true
    }

    fn rows(&self, outputs: Tensor<2>, labels: &Labels) -> Option<Tensor<2>> {
        let errors = errors(outputs, labels);
        Some(operation!("absolute value", [errors], errors.abs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::Loss;
    use crate::loss::labels::check_one_output;

    #[test]
    fn values_and_gradients() {
        let definition = |output: f64, label: f64| (output - label).abs();
        let cases = [(1.0, 3.0), (4.0, 1.0), (-2.5, 0.25)];
        let loss = Loss::MeanAbsoluteError(MeanAbsoluteError);
        check_one_output(&loss, definition, &cases);
    }
}

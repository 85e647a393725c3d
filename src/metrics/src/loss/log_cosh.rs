//! `log cosh(output − label)`. Keras's `LogCosh`.

use burn::tensor::Tensor;
use burn::tensor::activation::log_sigmoid;
use serde::{Deserialize, Serialize};
use stratoscope_bert::operation;
use stratoscope_data::Labels;

use super::criterion::{Criterion, Named};
use super::labels::errors;

/// About `½ e²` for small errors and `|e| − ln 2` for large ones, smooth in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogCosh;

impl Named for LogCosh {
    const TEXT: &'static str = "log_cosh";

    fn named() -> Self {
        Self
    }
}

impl Criterion for LogCosh {
    fn name(&self) -> &'static str {
        "LogCosh"
    }

    fn is_regression(&self) -> bool {
        true
    }

    fn rows(&self, outputs: Tensor<2>, labels: &Labels) -> Option<Tensor<2>> {
        let errors = errors(outputs, labels);
        // Keras's e + softplus(−2e) − ln 2, where softplus(−2e) is −log sigmoid(2e).
        let softplus = operation!("softplus", [errors = errors.clone()], {
            log_sigmoid(errors.mul_scalar(2.0)).neg()
        });
        Some(operation!("logarithm of cosh", [errors, softplus], {
            (errors + softplus).sub_scalar(std::f64::consts::LN_2)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::Loss;
    use crate::loss::labels::check_one_output;

    #[test]
    fn values_and_gradients() {
        let definition = |output: f64, label: f64| (output - label).cosh().ln();
        let cases = [(0.5, 0.0), (1.0, 1.25), (-3.0, 1.0), (30.0, -30.0)];
        check_one_output(&Loss::LogCosh(LogCosh), definition, &cases);
    }
}

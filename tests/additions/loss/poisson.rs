//! `output − label · log(output + ε)`, for a label that is a count and an output that is its mean. Keras's `Poisson`.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};
use stratoscope_bert::operation;
use stratoscope_data::Labels;

use super::EPSILON;
use super::criterion::{Criterion, Named};
use super::labels::column;

/// The negative log-likelihood of a count under a Poisson distribution with the output as its mean, without the term that depends on
/// the label alone. Outputs must be above 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Poisson;

impl Named for Poisson {
    const TEXT: &'static str = "poisson";

    fn named() -> Self {
        Self
    }
}

impl Criterion for Poisson {
    fn name(&self) -> &'static str {
        "Poisson"
    }

    fn is_regression(&self) -> bool {
        true
    }

    fn rows(&self, outputs: Tensor<2>, labels: &Labels) -> Option<Tensor<2>> {
        let counts = column(labels, &outputs.device(), |label| label)?;
        Some(operation!("log-likelihood", [outputs], {
            outputs.clone() - counts * outputs.add_scalar(EPSILON).log()
        }))
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::loss::labels::{check_one_output, sum_of};
    use crate::loss::{IntoLoss, Loss};

    /// The formula in the documentation of Keras's `Poisson`, with its ε.
    #[test]
    fn values_and_gradients() {
        let definition = |output: f64, label: f64| output - label * (output + 1e-7).ln();
        let cases = [(1.5, 2.0), (0.25, 0.0), (4.0, 3.0), (1.0, 5.0)];
        check_one_output(&Loss::Poisson(Poisson), definition, &cases);
    }

    /// The example there: labels [[0, 1], [0, 0]] and outputs [[1, 1], [0, 0]] have the mean 0.5, and so the sum 2.
    #[test]
    fn the_example_of_keras() {
        let outputs = Tensor::<2>::from_floats([[1.0], [1.0], [0.0], [0.0]], &Device::flex());
        let labels = Labels::Values(vec![0.0, 1.0, 0.0, 0.0]);
        let sum = sum_of(Loss::Poisson(Poisson), outputs, &labels);
        assert!((sum - 2.0).abs() < 1e-6, "{sum}");
    }

    #[test]
    fn its_text_names_it() {
        let loss = "poisson".into_loss().expect("a loss");
        assert_eq!((loss, loss.name()), (Loss::Poisson(Poisson), "Poisson"));
        assert!(loss.is_regression());
    }
}

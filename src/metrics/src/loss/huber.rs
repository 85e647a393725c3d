//! `½ e²` for errors up to `delta`, `delta (|e| − ½ delta)` beyond. Keras's `Huber`.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};
use stratoscope_bert::operation;
use stratoscope_data::Labels;
use stratoscope_diagnostics::arguments::Interval;
use stratoscope_diagnostics::{Result, problem};

use super::criterion::{Criterion, Named};
use super::labels::errors;

/// Squared for small errors, linear for large ones. Keras's `delta` is 1, as it is by the name `"huber"`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Huber {
    /// The size of error where the parabola becomes a line, above 0.
    pub delta: f64,
}

impl Default for Huber {
    fn default() -> Self {
        Self { delta: 1.0 }
    }
}

impl Named for Huber {
    const TEXT: &'static str = "huber";

    fn named() -> Self {
        Self::default()
    }
}

impl Criterion for Huber {
    fn name(&self) -> &'static str {
        "Huber"
    }

    fn written(&self) -> String {
        format!(" {{ delta: {:?} }}", self.delta)
    }

    fn check(&self) -> Result<()> {
        if Interval::Positive.holds(self.delta) {
            return Ok(());
        }
        let given = format!("{}{}", self.name(), self.written());
        let expects = "a finite `delta` above 0";
        Err(Box::new(problem::bad_value(
            "compile", "loss", given, expects,
        )))
    }

    fn is_regression(&self) -> bool {
        true
    }

    fn rows(&self, outputs: Tensor<2>, labels: &Labels) -> Option<Tensor<2>> {
        let size = errors(outputs, labels).abs();
        // The part of the error up to the border, and the rest.
        let near = size.clone().clamp_max(self.delta);
        let far = size - near.clone();
        Some(operation!("square near, size far", [near, far], {
            near.powi_scalar(2).mul_scalar(0.5) + far.mul_scalar(self.delta)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::Loss;
    use crate::loss::labels::check_one_output;

    #[test]
    fn a_parabola_and_two_lines() {
        for delta in [1.0, 0.5, 2.0] {
            let definition = |output: f64, label: f64| {
                let size = (output - label).abs();
                match size <= delta {
                    true => 0.5 * size * size,
                    false => delta * size - 0.5 * delta * delta,
                }
            };
            let cases = [
                (0.25, 0.0),
                (1.0, 1.0),
                (-1.75, 1.0),
                (4.0, 1.0),
                (9.0, -9.0),
            ];
            check_one_output(&Loss::Huber(Huber { delta }), definition, &cases);
        }
    }
}

//! `−y log p − (1 − y) log (1 − p)`: two classes by one output. Keras's `BinaryCrossentropy`; in PyTorch
//! `BCEWithLogitsLoss`.

use burn::tensor::Tensor;
use burn::tensor::activation::log_sigmoid;
use serde::{Deserialize, Serialize};
use stratoscope_bert::operation;
use stratoscope_data::Labels;
use stratoscope_diagnostics::Result;

use super::criterion::{Criterion, Named, written};
use super::labels::column;
use super::{EPSILON, IntoLoss, LabelSmoothing, Loss};

/// Cross-entropy between labels of 0 and 1 and one output, for models with `num_labels = 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BinaryCrossentropy {
    /// Whether the output is a logit, as BERT's heads put out. Keras's default is `false`; here it has
    /// to be written, and `false` draws a warning (SC0302).
    pub from_logits: bool,
}

impl BinaryCrossentropy {
    /// Labels are moved towards ½: `y (1 − share) + share / 2`. Default: 0.
    pub fn label_smoothing(self, share: f64) -> LabelSmoothing<Self> {
        LabelSmoothing { loss: self, share }
    }

    /// The output above which the answer is class 1: 0 for a logit, ½ for a probability. (Keras's
    /// `accuracy` takes ½ for both.)
    pub fn threshold(&self) -> f64 {
        if self.from_logits { 0.0 } else { 0.5 }
    }
}

impl IntoLoss for BinaryCrossentropy {
    fn into_loss(self) -> Result<Loss> {
        LabelSmoothing::from(self).into_loss()
    }
}

impl Named for LabelSmoothing<BinaryCrossentropy> {
    const TEXT: &'static str = "binary_crossentropy";

    fn named() -> Self {
        BinaryCrossentropy { from_logits: true }.into()
    }
}

impl Criterion for LabelSmoothing<BinaryCrossentropy> {
    fn name(&self) -> &'static str {
        "BinaryCrossentropy"
    }

    fn check(&self) -> Result<()> {
        self.check_share()
    }

    fn written(&self) -> String {
        written(self.loss.from_logits) + &self.suffix()
    }

    fn takes_logits(&self) -> Option<bool> {
        Some(self.loss.from_logits)
    }

    fn threshold(&self) -> Option<f64> {
        Some(self.loss.threshold())
    }

    fn rows(&self, outputs: Tensor<2>, labels: &Labels) -> Option<Tensor<2>> {
        let share = self.share as f32;
        let smooth = |label: f32| label * (1.0 - share) + 0.5 * share;
        let labels = column(labels, &outputs.device(), smooth)?;
        let others = labels.clone().neg().add_scalar(1.0);
        let (one, zero) = if self.loss.from_logits {
            let (one, zero) = (outputs.clone(), outputs.neg());
            (
                operation!("log-sigmoid", [outputs = one], log_sigmoid(outputs)),
                operation!("log-sigmoid", [outputs = zero], log_sigmoid(outputs)),
            )
        } else {
            let share = outputs.clamp(EPSILON, 1.0 - EPSILON);
            let rest = share.clone().neg().add_scalar(1.0);
            (
                operation!("logarithm", [share], share.log()),
                operation!("logarithm", [rest], rest.log()),
            )
        };
        Some(operation!("weigh by label", [one, zero], {
            (labels * one + others * zero).neg()
        }))
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::loss::Loss;
    use crate::loss::labels::sum_of;

    #[track_caller]
    fn check(loss: LabelSmoothing<BinaryCrossentropy>, cases: [(f32, f32); 2], expected: f64) {
        let outputs = cases.map(|(output, _)| [output]);
        let labels = cases.map(|(_, label)| label).to_vec();
        let outputs = Tensor::<2>::from_floats(outputs, &Device::flex());
        let found = sum_of(
            Loss::BinaryCrossentropy(loss),
            outputs,
            &Labels::Values(labels),
        );
        assert!((found - expected).abs() < 1e-5, "{found}, not {expected}");
    }

    #[test]
    fn logits_and_probabilities() {
        let logits = BinaryCrossentropy { from_logits: true };
        // ln(1 + e⁻ˣ) for the label 1, ln(1 + eˣ) for the label 0.
        let expected = (-2_f64).exp().ln_1p() + 3_f64.exp().ln_1p();
        check(
            logits.label_smoothing(0.0),
            [(2.0, 1.0), (3.0, 0.0)],
            expected,
        );
        // Large logits stay finite: 200 taken for 0 costs 200.
        check(
            logits.label_smoothing(0.0),
            [(200.0, 0.0), (-200.0, 0.0)],
            200.0,
        );
        let shares = BinaryCrossentropy { from_logits: false };
        let expected = -(0.75_f64.ln()) - 0.9_f64.ln();
        check(
            shares.label_smoothing(0.0),
            [(0.75, 1.0), (0.1, 0.0)],
            expected,
        );
    }

    #[test]
    fn smoothing_is_keras_formula() {
        let logits = BinaryCrossentropy { from_logits: true };
        let (one, zero) = ((-2_f64).exp().ln_1p(), 2_f64.exp().ln_1p());
        // α = 0.2: labels 0.9 and 0.1.
        let expected = (0.9 * one + 0.1 * zero) + (0.1 * one + 0.9 * zero);
        check(
            logits.label_smoothing(0.2),
            [(2.0, 1.0), (2.0, 0.0)],
            expected,
        );
    }

    #[test]
    fn a_label_may_be_a_class_or_a_number() {
        let loss = BinaryCrossentropy { from_logits: true }.label_smoothing(0.0);
        let sum = |labels: Labels| {
            let outputs = Tensor::<2>::from_floats([[1.0], [-0.5]], &Device::flex());
            sum_of(Loss::BinaryCrossentropy(loss), outputs, &labels)
        };
        let numbers = sum(Labels::Values(vec![1.0, 0.0]));
        assert_eq!(sum(Labels::Classes(vec![1, 0])), numbers);
    }
}

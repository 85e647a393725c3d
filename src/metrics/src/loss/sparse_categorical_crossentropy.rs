//! `−log p(label)`. Keras's `SparseCategoricalCrossentropy`; in PyTorch `CrossEntropyLoss`.

use burn::tensor::activation::log_softmax;
use burn::tensor::{Tensor, TensorData};
use serde::{Deserialize, Serialize};
use stratoscope_bert::operation;
use stratoscope_data::Labels;

use super::EPSILON;
use super::criterion::{Criterion, Named, written};

/// Cross-entropy between classes given by index and one output per class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SparseCategoricalCrossentropy {
    /// Whether the outputs are logits, as BERT's heads put out. Keras's default is `false`; here it
    /// has to be written, and `false` draws a warning (SC0302).
    pub from_logits: bool,
}

impl Named for SparseCategoricalCrossentropy {
    const TEXT: &'static str = "sparse_categorical_crossentropy";

    fn named() -> Self {
        Self { from_logits: true }
    }
}

impl Criterion for SparseCategoricalCrossentropy {
    fn name(&self) -> &'static str {
        "SparseCategoricalCrossentropy"
    }

    fn written(&self) -> String {
        written(self.from_logits)
    }

    fn takes_logits(&self) -> Option<bool> {
        Some(self.from_logits)
    }

    fn launched(&self) -> Option<f64> {
        self.from_logits.then_some(0.0)
    }

    fn rows(&self, outputs: Tensor<2>, labels: &Labels) -> Option<Tensor<2>> {
        let [rows, classes] = outputs.dims();
        let Labels::Classes(labels) = labels else {
            // `fit` has checked the labels; a value is the index of its class.
            return None;
        };
        let log_probabilities = log_probabilities(outputs, self.from_logits);
        // A row of zeros with a 1 at its label picks one element, in the same order on every device.
        let mut picked = vec![0.0_f32; rows * classes];
        for (row, &label) in labels.iter().enumerate() {
            picked[row * classes + label as usize] = 1.0;
        }
        let device = log_probabilities.device();
        let picked = Tensor::from_data(TensorData::new(picked, [rows, classes]), &device);
        Some(operation!("pick by label", [log_probabilities], {
            (log_probabilities * picked).neg()
        }))
    }
}

/// The logarithms of the classes' probabilities, [B, C] → [B, C].
pub(super) fn log_probabilities(outputs: Tensor<2>, from_logits: bool) -> Tensor<2> {
    if from_logits {
        return operation!("log-softmax", [outputs], log_softmax(outputs, 1));
    }
    let shares = operation!("clamp", [outputs], outputs.clamp(EPSILON, 1.0 - EPSILON));
    let logarithms = operation!("logarithm", [shares], shares.log());
    // As Keras does: the clamped values are normalized, since they need not add up to 1.
    operation!("log-softmax", [logarithms], log_softmax(logarithms, 1))
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::loss::Loss;
    use crate::loss::labels::sum_of;

    fn loss(from_logits: bool, outputs: [[f32; 3]; 2], labels: [i32; 2]) -> f32 {
        let outputs = Tensor::<2>::from_floats(outputs, &Device::flex());
        let loss =
            Loss::SparseCategoricalCrossentropy(SparseCategoricalCrossentropy { from_logits });
        sum_of(loss, outputs, &Labels::Classes(labels.to_vec())) as f32
    }

    #[test]
    fn a_sum_over_examples() {
        // −log softmax, worked out by hand: uniform logits cost ln 3 each.
        let uniform = loss(true, [[1.0; 3], [0.0; 3]], [0, 2]);
        assert!((uniform - 2.0 * 3_f32.ln()).abs() < 1e-6, "{uniform}");
        let one_sided = loss(true, [[2.0, 0.0, 0.0], [0.0; 3]], [0, 0]);
        let expected = ((2_f32.exp() + 2.0) / 2_f32.exp()).ln() + 3_f32.ln();
        assert!(
            (one_sided - expected).abs() < 1e-6,
            "{one_sided} {expected}"
        );
    }

    #[test]
    fn probabilities_are_clamped_and_normalized() {
        let found = loss(false, [[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]], [0, 1]);
        assert!((found - 2_f32.ln()).abs() < 1e-5, "{found}");
        // A logit of 3 taken for a probability counts as 1.
        let logits = loss(false, [[3.0, -1.0, -1.0], [0.0, 1.0, 0.0]], [1, 1]);
        assert!((logits - 1e7_f32.ln()).abs() < 1e-2, "{logits}");
    }
}

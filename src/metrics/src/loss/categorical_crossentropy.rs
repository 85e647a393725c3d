//! `−Σ y log p` over the classes. Keras's `CategoricalCrossentropy`. Data sets carry class numbers, so
//! the one-hot rows are made here (SC0304); the loss is then that of the sparse one, and label
//! smoothing is what it is for.

use burn::tensor::{Tensor, TensorData};
use serde::{Deserialize, Serialize};
use stratoscope_bert::operation;
use stratoscope_data::Labels;
use stratoscope_diagnostics::Result;

use super::criterion::{Criterion, Named, written};
use super::sparse_categorical_crossentropy::log_probabilities;
use super::{IntoLoss, LabelSmoothing, Loss};

/// Cross-entropy between one-hot classes and one output per class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CategoricalCrossentropy {
    /// Whether the outputs are logits, as BERT's heads put out. Keras's default is `false`; here it
    /// has to be written, and `false` draws a warning (SC0302).
    pub from_logits: bool,
}

impl CategoricalCrossentropy {
    /// The label's class gets `1 − share`, and all classes alike get `share / C` more. Default: 0.
    pub fn label_smoothing(self, share: f64) -> LabelSmoothing<Self> {
        LabelSmoothing { loss: self, share }
    }
}

impl IntoLoss for CategoricalCrossentropy {
    fn into_loss(self) -> Result<Loss> {
        LabelSmoothing::from(self).into_loss()
    }
}

impl Named for LabelSmoothing<CategoricalCrossentropy> {
    const TEXT: &'static str = "categorical_crossentropy";

    fn named() -> Self {
        CategoricalCrossentropy { from_logits: true }.into()
    }
}

impl Criterion for LabelSmoothing<CategoricalCrossentropy> {
    fn name(&self) -> &'static str {
        "CategoricalCrossentropy"
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

    fn launched(&self) -> Option<f64> {
        self.loss.from_logits.then_some(self.share)
    }

    fn rows(&self, outputs: Tensor<2>, labels: &Labels) -> Option<Tensor<2>> {
        let [rows, classes] = outputs.dims();
        let Labels::Classes(labels) = labels else {
            // `fit` has checked the labels; a value is the index of its class.
            return None;
        };
        let rest = (self.share / classes as f64) as f32;
        let mut wanted = vec![rest; rows * classes];
        for (row, &label) in labels.iter().enumerate() {
            wanted[row * classes + label as usize] = (1.0 - self.share) as f32 + rest;
        }
        let log_probabilities = log_probabilities(outputs, self.loss.from_logits);
        let device = log_probabilities.device();
        let wanted = Tensor::from_data(TensorData::new(wanted, [rows, classes]), &device);
        Some(operation!("weigh by label", [log_probabilities], {
            (log_probabilities * wanted).neg()
        }))
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::loss::labels::sum_of;
    use crate::loss::{Loss, SparseCategoricalCrossentropy};

    const OUTPUTS: [[f32; 3]; 2] = [[2.0, 0.0, -1.0], [0.5, 0.5, 0.0]];

    fn outputs() -> Tensor<2> {
        Tensor::from_floats(OUTPUTS, &Device::flex())
    }

    #[test]
    fn without_smoothing_it_is_the_sparse_one() {
        let labels = Labels::Classes(vec![0, 2]);
        for from_logits in [true, false] {
            let dense = CategoricalCrossentropy { from_logits }.label_smoothing(0.0);
            let sparse = SparseCategoricalCrossentropy { from_logits };
            let (dense, sparse) = (
                sum_of(Loss::CategoricalCrossentropy(dense), outputs(), &labels),
                sum_of(
                    Loss::SparseCategoricalCrossentropy(sparse),
                    outputs(),
                    &labels,
                ),
            );
            assert!((dense - sparse).abs() < 1e-6, "{dense} {sparse}");
        }
    }

    #[test]
    fn smoothing_is_keras_formula() {
        // y (1 − α) + α / C, α = 0.3, C = 3: 0.8 for the label's class, 0.1 for the others.
        let loss = CategoricalCrossentropy { from_logits: true }.label_smoothing(0.3);
        let found = sum_of(
            Loss::CategoricalCrossentropy(loss),
            outputs(),
            &Labels::Classes(vec![0, 1]),
        );
        let log_softmax = |row: [f32; 3]| {
            let sum: f64 = row.iter().map(|&x| f64::from(x).exp()).sum();
            row.map(|x| f64::from(x) - sum.ln())
        };
        let [first, second] = OUTPUTS.map(log_softmax);
        let expected = -(0.8 * first[0] + 0.1 * (first[1] + first[2]))
            - (0.8 * second[1] + 0.1 * (second[0] + second[2]));
        assert!((found - expected).abs() < 1e-5, "{found} {expected}");
    }
}

//! `Σ y log (y / p)` over the classes. Keras's `KLDivergence`. Data sets carry class numbers, so the one-hot
//! rows are made here, and clamped as Keras clamps them.

use burn::tensor::activation::softmax;
use burn::tensor::{Tensor, TensorData};
use serde::{Deserialize, Serialize};
use stratoscope_bert::operation;
use stratoscope_data::Labels;

use super::EPSILON;
use super::criterion::{Criterion, Named, written};

/// Kullback and Leibler's divergence of the label's distribution from that of the outputs. For class numbers
/// it is the cross-entropy but for rounding; it is here for programs that name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KlDivergence {
    /// Whether the outputs are logits, as BERT's heads put out. Keras's takes probabilities alone.
    pub from_logits: bool,
}

impl Named for KlDivergence {
    const TEXT: &'static str = "kl_divergence";

    fn named() -> Self {
        Self { from_logits: true }
    }
}

impl Criterion for KlDivergence {
    fn name(&self) -> &'static str {
        "KlDivergence"
    }

    fn written(&self) -> String {
        written(self.from_logits)
    }

    fn takes_logits(&self) -> Option<bool> {
        Some(self.from_logits)
    }

    fn rows(&self, outputs: Tensor<2>, labels: &Labels) -> Option<Tensor<2>> {
        let [rows, classes] = outputs.dims();
        let Labels::Classes(labels) = labels else {
            // `fit` has checked the labels; a value is the index of its class.
            return None;
        };
        let mut wanted = vec![EPSILON; rows * classes];
        for (row, &label) in labels.iter().enumerate() {
            wanted[row * classes + label as usize] = 1.0;
        }
        let shares = match self.from_logits {
            true => operation!("softmax", [outputs], softmax(outputs, 1)),
            false => outputs,
        };
        let device = shares.device();
        let logarithms: Vec<f32> = wanted.iter().map(|share| share.ln()).collect();
        let tensor =
            |values| Tensor::<2>::from_data(TensorData::new(values, [rows, classes]), &device);
        let found = operation!("logarithm", [shares], shares.clamp(EPSILON, 1.0).log());
        Some(operation!("weigh by label", [found], {
            tensor(wanted) * (tensor(logarithms) - found)
        }))
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::loss::Loss;
    use crate::loss::labels::sum_of;

    fn definition(label: usize, shares: [f64; 3]) -> f64 {
        let wanted = |class: usize| if class == label { 1.0 } else { 1e-7 };
        (0..3)
            .map(|class| {
                let share = shares[class].clamp(1e-7, 1.0);
                wanted(class) * (wanted(class) / share).ln()
            })
            .sum()
    }

    fn of_logits(logits: [f64; 3]) -> [f64; 3] {
        let sum: f64 = logits.iter().map(|logit| logit.exp()).sum();
        logits.map(|logit| logit.exp() / sum)
    }

    #[test]
    fn values_by_the_definition() {
        let rows = [(0, [0.7_f32, 0.2, 0.1]), (2, [0.25, 0.75, 0.0])];
        for from_logits in [false, true] {
            for (label, outputs) in rows {
                let tensor = Tensor::<2>::from_floats([outputs], &Device::flex());
                let labels = Labels::Classes(vec![label]);
                let found = sum_of(
                    Loss::KlDivergence(KlDivergence { from_logits }),
                    tensor,
                    &labels,
                );
                let shares = outputs.map(f64::from);
                let shares = if from_logits {
                    of_logits(shares)
                } else {
                    shares
                };
                let expected = definition(label as usize, shares);
                assert!(
                    (found - expected).abs() < 2e-6 * expected.max(1.0),
                    "{found} {expected}"
                );
            }
        }
    }

    #[test]
    fn gradients_are_those_of_differences() {
        let at = [0.5_f64, -0.25, 1.0];
        let device = Device::flex().autodiff();
        let outputs = Tensor::<2>::from_floats([at.map(|it| it as f32)], &device).require_grad();
        let loss = Loss::KlDivergence(KlDivergence { from_logits: true });
        let sum = loss.sum(outputs.clone(), &Labels::Classes(vec![1]));
        let gradients = sum.backward();
        let found = outputs.grad(&gradients).expect("it was required");
        let found: Vec<f32> = found.into_data().iter::<f32>().collect();
        for (index, found) in found.into_iter().enumerate() {
            let of = |step: f64| {
                let mut at = at;
                at[index] += step;
                definition(1, of_logits(at))
            };
            let slope = (of(1e-6) - of(-1e-6)) / 2e-6;
            assert!(
                (f64::from(found) - slope).abs() < 1e-5,
                "{index}: {found} {slope}"
            );
        }
    }
}

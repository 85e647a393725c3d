//! Losses whose examples count by their classes, and by weights of their own. Keras's `class_weight` and `sample_weight`.

use std::sync::Arc;

use burn::tensor::{Int, Tensor, TensorData};
use serde::{Deserialize, Serialize};
use stratoscope_data::Labels;

use super::{Loss, on_gpu, tokens};

/// A weight for each class, checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassWeights(Arc<[f32]>);

impl ClassWeights {
    /// One for each class, in the order of their numbers.
    pub fn new(weights: Vec<f32>) -> Self {
        Self(weights.into())
    }

    /// The weights in the order of the classes.
    pub fn each(&self) -> &[f32] {
        &self.0
    }

    /// That of a class; 0 for one that does not exist.
    fn of(&self, class: usize) -> f32 {
        self.0.get(class).copied().unwrap_or(0.0)
    }

    /// The losses of the examples, each times the weight of its class, added up. Classes are summed
    /// in their order, so that the result is the same on every run.
    ///
    /// # Shapes
    /// outputs [B, C], B labels → `[1]`
    fn sum(&self, loss: Loss, outputs: Tensor<2>, labels: &Labels) -> Tensor<1> {
        let weight = |_: usize, class: usize| self.of(class);
        // Spans have no class that could weigh.
        let classes = matches!(labels, Labels::Classes(_) | Labels::Tokens(_));
        let launched = || on_gpu::sum(&loss, &outputs, labels, weight);
        if let Some(sum) = classes.then(launched).flatten() {
            return sum;
        }
        if let Labels::Tokens(own) = labels {
            return match tokens::labeled(&outputs, own) {
                Some((outputs, labels, _)) => {
                    self.sum(loss, outputs, &labels).mul_scalar(own.weight)
                }
                None => tokens::nothing(&outputs),
            };
        }
        let classes: Vec<usize> = match labels {
            Labels::Classes(classes) => classes.iter().map(|&class| class as usize).collect(),
            // A binary loss also takes 0.0 and 1.0.
            Labels::Values(values) => values.iter().map(|value| value.round() as usize).collect(),
            Labels::Absent
            | Labels::Tokens(_)
            | Labels::Spans(_)
            | Labels::Sets(_)
            | Labels::Apart { .. } => Vec::new(),
        };
        let device = outputs.device();
        let mut sum: Option<Tensor<1>> = None;
        for (class, &weight) in self.0.iter().enumerate() {
            let rows = (0..classes.len()).filter(|&row| classes[row] == class);
            let rows: Vec<i32> = rows.map(|row| row as i32).collect();
            if rows.is_empty() {
                continue;
            }
            let of_class = match labels {
                Labels::Values(values) => {
                    Labels::Values(rows.iter().map(|&row| values[row as usize]).collect())
                }
                _ => Labels::Classes(vec![class as i32; rows.len()]),
            };
            let count = rows.len();
            let rows = Tensor::<1, Int>::from_data(TensorData::new(rows, [count]), &device);
            let part = loss
                .sum(outputs.clone().select(0, rows), &of_class)
                .mul_scalar(weight);
            sum = Some(match sum {
                Some(sum) => sum + part,
                None => part,
            });
        }
        sum.unwrap_or_else(|| Tensor::zeros([1], &device))
    }
}

/// The loss of each example, times the weight of its class and its own, where there are such, added up.
///
/// # Shapes
/// As [`Loss::sum`]
pub fn weighted_sum(
    (loss, classes): (Loss, Option<&ClassWeights>),
    outputs: Tensor<2>,
    labels: &Labels,
    of_examples: Option<&[f32]>,
) -> Tensor<1> {
    match (classes, of_examples) {
        (None, None) => loss.sum(outputs, labels),
        // A function sees all examples at once.
        (Some(classes), None) if !matches!(loss, Loss::Own(_)) => {
            classes.sum(loss, outputs, labels)
        }
        (classes, weights) => {
            let weights = weights.unwrap_or_default();
            let of_class = |class: Option<usize>| match (classes, class) {
                (Some(classes), Some(class)) => classes.of(class),
                _ => 1.0,
            };
            let weight = |example: usize, class: Option<usize>| {
                weights.get(example).copied().unwrap_or(1.0) * of_class(class)
            };
            loss.weighted(outputs, labels, Some(&weight))
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::{BinaryCrossentropy, IntoLoss, SparseCategoricalCrossentropy};

    #[test]
    fn a_weighted_sum_is_the_sum_of_weighted_examples() {
        let outputs = [[2.0, 0.0, -1.0], [0.5, 0.5, 0.0], [1.0, -1.0, 3.0]];
        let all = Tensor::<2>::from_floats(outputs, &Device::flex());
        let loss = SparseCategoricalCrossentropy { from_logits: true };
        let loss = loss.into_loss().expect("a loss");
        let labels = [2, 0, 2];
        let of_one = |row: usize| {
            let output = Tensor::<2>::from_floats([outputs[row]], &Device::flex());
            loss.sum(output, &Labels::Classes(vec![labels[row]]))
                .into_scalar::<f32>()
        };
        let weights = ClassWeights(vec![0.5, 7.0, 3.0].into());
        let found = weights.sum(loss, all, &Labels::Classes(labels.to_vec()));
        let expected = 3.0 * of_one(0) + 0.5 * of_one(1) + 3.0 * of_one(2);
        assert!((found.into_scalar::<f32>() - expected).abs() < 1e-5);
        let binary = BinaryCrossentropy { from_logits: true };
        let binary = binary.into_loss().expect("a loss");
        let outputs = || Tensor::<2>::from_floats([[1.0], [-0.5]], &Device::flex());
        let weights = ClassWeights(vec![2.0, 2.0].into());
        let labels = Labels::Values(vec![1.0, 0.0]);
        let found = weights.sum(binary, outputs(), &labels).into_scalar::<f32>();
        let twice = 2.0 * binary.sum(outputs(), &labels).into_scalar::<f32>();
        assert!((found - twice).abs() < 1e-6);
    }

    /// On a GPU all classes are one launch; the CPU has one loss for each class.
    #[test]
    fn weights_of_classes_on_gpu_agree() {
        let Some(device) = on_gpu::tests::adapter() else {
            return;
        };
        let loss = SparseCategoricalCrossentropy { from_logits: true };
        let loss = loss.into_loss().expect("a loss");
        let weights = ClassWeights(vec![0.5, 7.0, 3.0].into());
        let labels = Labels::Classes(vec![2, 0, 2]);
        let sum = |outputs: Tensor<2>| weights.sum(loss, outputs, &labels);
        let values = |device: &Device| on_gpu::tests::values(device, [3, 3], sum);
        let (found, expected) = (values(&device), values(&Device::flex().autodiff()));
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-5, "{found}, not {expected}");
        }
    }
}

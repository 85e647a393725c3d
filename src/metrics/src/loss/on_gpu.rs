//! Losses that are one launch each way on a GPU: the cross-entropies of classes from logits.

use burn::tensor::Tensor;
use stratoscope_bert::taps;
use stratoscope_data::{Labels, TokenLabels};
use stratoscope_gpu::{Targets, cross_entropy, takes};

use super::Loss;

/// The loss of each example times its weight, by the number of the example and its class, added up. `None` where the loss is another one or somebody
/// looks at single operations, off GPUs, and where there is no class or one without an output: the losses composed of
/// burn's operations take those.
///
/// # Shapes
/// As [`Loss::sum`]
pub(super) fn sum(
    loss: &Loss,
    outputs: &Tensor<2>,
    labels: &Labels,
    weight: impl Fn(usize, usize) -> f32,
) -> Option<Tensor<1>> {
    let smoothing = loss.criterion().launched()?;
    if taps::is_by_operation() || !takes(outputs) {
        return None;
    }
    let [batch, width] = outputs.dims();
    let (classes, factor) = match labels {
        Labels::Classes(classes) if classes.len() == batch => (classes.as_slice(), 1.0),
        Labels::Tokens(tokens) => (tokens.classes.as_slice(), tokens.weight),
        // The mean of where it begins and where it ends.
        Labels::Spans(spans) => (spans.spans.as_flattened(), 0.5),
        _ => return None,
    };
    let rows = classes.len();
    if rows == 0 || !(batch * width).is_multiple_of(rows) {
        return None;
    }
    let columns = batch * width / rows;
    let is_ignored =
        |class: i32| matches!(labels, Labels::Tokens(_)) && class == TokenLabels::IGNORED;
    let mut targets = Vec::with_capacity(rows);
    for (row, &class) in classes.iter().enumerate() {
        // A row is an example, or a part of one.
        let example = row * batch / rows;
        targets.push(match usize::try_from(class) {
            Ok(class) if class < columns => (Some(class), weight(example, class) * factor),
            _ if is_ignored(class) => (None, 0.0),
            _ => return None,
        });
    }
    if targets.iter().all(|(class, _)| class.is_none()) {
        return None;
    }
    let outputs = outputs.clone().reshape([rows, columns]);
    Some(cross_entropy(outputs, Targets::new(targets), smoothing))
}

#[cfg(test)]
pub(super) mod tests {
    use burn::tensor::{Device, TensorData};
    use stratoscope_data::SpanLabels;

    use super::*;
    use crate::{CategoricalCrossentropy, IntoLoss, SparseCategoricalCrossentropy};

    pub fn adapter() -> Option<Device> {
        stratoscope_gpu::testing::device().map(|device| device.autodiff())
    }

    fn outputs(shape: [usize; 2], device: &Device) -> Tensor<2> {
        let numbers = (0..shape[0] * shape[1]).map(|at| 0.3 * (at * at % 11) as f32 - 1.0);
        let numbers = TensorData::new(numbers.collect::<Vec<_>>(), shape);
        Tensor::from_data(numbers, device).require_grad()
    }

    /// The sum and the gradient by the outputs.
    pub fn values(
        device: &Device,
        shape: [usize; 2],
        sum: impl Fn(Tensor<2>) -> Tensor<1>,
    ) -> Vec<f32> {
        let outputs = outputs(shape, device);
        let sum = sum(outputs.clone());
        let gradients = sum.backward();
        let gradient = outputs.grad(&gradients).expect("it is tracked");
        let sum = sum.into_data();
        let (sum, gradient) = (sum.iter::<f32>(), gradient.into_data());
        sum.chain(gradient.iter::<f32>()).collect()
    }

    fn labels() -> [([usize; 2], Labels); 3] {
        let tokens = TokenLabels {
            classes: vec![TokenLabels::IGNORED, 1, 0, 2, TokenLabels::IGNORED, 2],
            seq: 3,
            places: None,
            weight: 0.5,
            scheme: None,
        };
        let spans = SpanLabels {
            spans: vec![[0, 2], [1, 1]],
            windows: Vec::new(),
            has_unanswerable: false,
        };
        [
            ([4, 3], Labels::Classes(vec![2, 0, 1, 1])),
            ([2, 9], Labels::Tokens(tokens)),
            ([2, 6], Labels::Spans(spans)),
        ]
    }

    fn losses() -> [Loss; 2] {
        let sparse = SparseCategoricalCrossentropy { from_logits: true };
        let smoothed = CategoricalCrossentropy { from_logits: true }.label_smoothing(0.2);
        [sparse.into_loss(), smoothed.into_loss()].map(|loss| loss.expect("a loss"))
    }

    /// One launch on a GPU, burn's operations on the CPU: the same loss and the same gradient.
    #[test]
    fn losses_of_one_launch_on_gpu_agree() {
        let Some(device) = adapter() else { return };
        for loss in losses() {
            for (shape, labels) in labels() {
                let by_class = |class: usize| 1.0 / (1 + class) as f32;
                let weight = |example: usize, class: usize| 0.5 + example as f32 * by_class(class);
                let launched = |x| sum(&loss, &x, &labels, weight).expect("it is one launch");
                let found = values(&device, shape, launched);
                let cpu = Device::flex().autodiff();
                let weight = |example: usize, class: Option<usize>| {
                    weight(example, class.expect("it has one"))
                };
                let expected = values(&cpu, shape, |x| loss.weighted(x, &labels, Some(&weight)));
                for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
                    let near = (found - expected).abs() < 1e-5;
                    assert!(near, "{loss} {labels:?} {at}: {found}, not {expected}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_single_launch_on_gpu() {
        let Some(device) = adapter() else { return };
        let [sparse, _] = losses();
        let labels = Labels::Classes(vec![2, 0]);
        let launches = |loss: &Loss, labels: &Labels| {
            sum(loss, &outputs([2, 3], &device), labels, |_, _| 1.0).is_some()
        };
        assert!(launches(&sparse, &labels));
        let on_cpu = outputs([2, 3], &Device::flex().autodiff());
        assert!(sum(&sparse, &on_cpu, &labels, |_, _| 1.0).is_none());
        let of_shares = SparseCategoricalCrossentropy { from_logits: false };
        let of_shares = of_shares.into_loss().expect("a loss");
        assert!(!launches(&of_shares, &labels));
        // A class without an output, and labels that are no classes.
        assert!(!launches(&sparse, &Labels::Classes(vec![3, 0])));
        assert!(!launches(&sparse, &Labels::Classes(vec![-1, 0])));
        assert!(!launches(&sparse, &Labels::Values(vec![0.0, 1.0])));
        let seen = stratoscope_bert::taps::Taps::of_operations(|_| {});
        assert!(!seen.during(|| launches(&sparse, &labels)));
    }
}

//! Labels of tokens, for losses of classes: the tokens that have a class are examples, each counted with the weight of the
//! batch.

use std::sync::Arc;

use burn::tensor::{Int, Tensor, TensorData};
use stratoscope_bert::operation;
use stratoscope_data::{Labels, SpanLabels, TokenLabels};

/// The outputs of the tokens that have a class, their classes, and their places in the batch; `None` where there is none.
///
/// # Shapes
/// outputs [B, S·C], labels [B, S] → [N, C] and N classes
pub(super) fn labeled(
    outputs: &Tensor<2>,
    labels: &TokenLabels,
) -> Option<(Tensor<2>, Labels, Vec<usize>)> {
    let [rows, width] = outputs.dims();
    let outputs = outputs.clone();
    let classes = width / labels.seq.max(1);
    let has_class = |at: &usize| labels.classes[*at] != TokenLabels::IGNORED;
    let places: Vec<usize> = (0..labels.classes.len()).filter(has_class).collect();
    if places.is_empty() {
        return None;
    }
    let picked = places.iter().map(|&at| labels.classes[at]).collect();
    let chosen: Vec<i32> = places.iter().map(|&at| at as i32).collect();
    let chosen = TensorData::new(chosen, [places.len()]);
    let chosen = Tensor::<1, Int>::from_data(chosen, &outputs.device().inner());
    let shape = [rows * labels.seq, classes];
    let outputs = operation!("tokens with a class", [outputs], {
        outputs.reshape(shape).select(0, chosen)
    });
    Some((outputs, Labels::Classes(picked), places))
}

/// Begin and end of an answer, each a class among the positions. Padding takes part, as in the reference.
///
/// # Shapes
/// outputs [B, 2·S] → [2·B, S] and 2·B classes
pub(super) fn of_spans(outputs: &Tensor<2>, labels: &SpanLabels) -> (Tensor<2>, Labels) {
    let [rows, width] = outputs.dims();
    let outputs = outputs.clone().reshape([2 * rows, width / 2]);
    (
        outputs,
        Labels::Classes(labels.spans.as_flattened().to_vec()),
    )
}

/// Each label of each example as a decision by one output, 1 where the example has it; and how many labels there are.
///
/// # Shapes
/// outputs [B, C], B sets → [B·C, 1], B·C numbers, C
pub(super) fn of_sets(outputs: &Tensor<2>, sets: &[Arc<[usize]>]) -> (Tensor<2>, Labels, usize) {
    let [rows, width] = outputs.dims();
    let mut truths = vec![0.0; rows * width];
    for (row, set) in sets.iter().enumerate() {
        for class in set.iter().filter(|&&class| class < width) {
            truths[row * width + class] = 1.0;
        }
    }
    let decisions = outputs.clone().reshape([rows * width, 1]);
    (decisions, Labels::Values(truths), width.max(1))
}

/// The loss of a batch without any token that has a class: 0, with a gradient of 0.
pub(super) fn nothing(outputs: &Tensor<2>) -> Tensor<1> {
    outputs.clone().sum().mul_scalar(0.0)
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use crate::{IntoLoss, SparseCategoricalCrossentropy};

    use super::*;

    #[test]
    fn the_mean_over_the_labels_of_a_set() {
        let loss = crate::BinaryCrossentropy { from_logits: true };
        let loss = loss.into_loss().expect("a loss");
        let outputs =
            Tensor::<2>::from_floats([[1.0, -2.0, 0.5], [0.0, 3.0, -1.0]], &Device::flex());
        let sets: Vec<Arc<[usize]>> = vec![[0, 2].into(), [].into()];
        let found = loss.sum(outputs, &Labels::Sets(sets));
        let found = f64::from(found.into_scalar::<f32>());
        // ln(1 + e⁻ˣ) for a label that is there, ln(1 + eˣ) for one that is not: `BCEWithLogitsLoss`.
        let there = |x: f64| (-x).exp().ln_1p();
        let absent = |x: f64| x.exp().ln_1p();
        let first = there(1.0) + absent(-2.0) + there(0.5);
        let second = absent(0.0) + absent(3.0) + absent(-1.0);
        let expected = (first + second) / 3.0;
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
    }

    #[test]
    fn the_mean_over_tokens_on_any_number_of_replicas() {
        let loss = SparseCategoricalCrossentropy { from_logits: true };
        let loss = loss.into_loss().expect("a loss");
        // Two rows of three tokens and two classes; three tokens count.
        let outputs: Vec<f32> = (0..12).map(|i| 0.3 * (i * i % 7) as f32).collect();
        let classes = vec![-100, 1, 0, -100, 0, -100];
        let sum = |outputs: &[f32], classes: Vec<i32>, rows: usize| {
            let labels = Labels::Tokens(TokenLabels {
                classes,
                seq: 3,
                places: None,
                weight: 2.0 / 3.0,
                scheme: None,
            });
            let outputs = TensorData::new(outputs.to_vec(), [rows, 6]);
            let outputs = Tensor::<2>::from_data(outputs, &Device::flex());
            f64::from(loss.sum(outputs, &labels).into_scalar::<f32>())
        };
        let whole = sum(&outputs, classes.clone(), 2);
        let parts = sum(&outputs[..6], classes[..3].to_vec(), 1)
            + sum(&outputs[6..], classes[3..].to_vec(), 1);
        assert!((whole - parts).abs() < 1e-6, "{whole} {parts}");
        // −log softmax of two numbers, by hand.
        let cost = |token: usize, class: usize| {
            let pair = [
                f64::from(outputs[2 * token]),
                f64::from(outputs[2 * token + 1]),
            ];
            (pair[0].exp() + pair[1].exp()).ln() - pair[class]
        };
        let mean = (cost(1, 1) + cost(2, 0) + cost(4, 0)) / 3.0;
        assert!((whole / 2.0 - mean).abs() < 1e-6, "{whole} {mean}");
        assert_eq!(sum(&outputs[..6], vec![-100; 3], 1), 0.0);
    }
}

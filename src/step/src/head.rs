//! What the outputs of a model mean: probabilities of classes, or a number; and the loss of a single example.

use burn::tensor::{Device, Tensor, TensorData};
use stratoscope_data::Labels;

use stratoscope_arguments::class_weight::{ClassWeights, weighted_sum};
use stratoscope_metrics::loss::Loss;
use stratoscope_network::{AnyNetwork, Files, Task};

/// What the outputs of a model mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// One output a class.
    Classes {
        /// Whether probabilities are to be made of them by softmax.
        are_logits: bool,
    },
    /// One output, by which two classes are distinguished.
    Binary {
        /// Whether a probability is to be made of it by sigmoid.
        is_logit: bool,
    },
    /// A regression.
    Number,
    /// One output a class, for each token.
    Words,
    /// Where an answer begins and ends.
    Span,
    /// One output for each token of the vocabulary, for each hidden token.
    Masked,
    /// One output a label, each decided by itself.
    Set {
        /// Whether probabilities are to be made of them by sigmoid.
        are_logits: bool,
    },
}

impl Head {
    /// By the loss of `compile!`; a model that was only loaded, by what it was trained as.
    pub fn of(files: &dyn Files, network: &AnyNetwork, loss: Option<Loss>) -> Self {
        let logits = !network.puts_out_probabilities();
        match files.task() {
            Task::Words => return Self::Words,
            Task::Span => return Self::Span,
            Task::Masked => return Self::Masked,
            Task::Set => {
                let from_logits = loss.and_then(|loss| loss.from_logits()) != Some(false);
                return Self::Set {
                    are_logits: logits && from_logits,
                };
            }
            // Of pairs with a label it puts out their cosine.
            Task::Embedding => return Self::Number,
            // Of choices there is one output for each, whatever their number.
            Task::Example | Task::Choice => {}
        }
        if files.classes().is_some() {
            return Self::Classes { are_logits: logits };
        }
        match loss {
            Some(Loss::BinaryCrossentropy(loss)) => Self::Binary {
                is_logit: loss.loss.from_logits && logits,
            },
            // A margin of 0 is a half; the further from it, the surer.
            Some(Loss::Hinge(_) | Loss::SquaredHinge(_)) => Self::Binary { is_logit: true },
            Some(_) => Self::Number,
            None if files.binary_labels().is_some() => Self::Binary { is_logit: logits },
            None => Self::Number,
        }
    }

    /// The probability of every class, by the outputs of an example; empty for a number.
    pub fn probabilities(self, outputs: &[f32]) -> Vec<f64> {
        match self {
            Self::Classes { are_logits: true } => softmax(outputs),
            Self::Classes { are_logits: false } => outputs.iter().copied().map(f64::from).collect(),
            Self::Binary { is_logit } => of_two(outputs, is_logit),
            Self::Set { are_logits } => {
                let yes = |output: &f32| of_two(&[*output], are_logits)[1];
                outputs.iter().map(yes).collect()
            }
            Self::Number | Self::Words | Self::Span | Self::Masked => Vec::new(),
        }
    }

    /// The class of a label; `None` for a number.
    pub fn class(self, labels: &Labels, row: usize) -> Option<usize> {
        match (self, labels) {
            (Self::Number | Self::Words | Self::Span | Self::Masked | Self::Set { .. }, _)
            | (
                _,
                Labels::Absent
                | Labels::Tokens(_)
                | Labels::Spans(_)
                | Labels::Sets(_)
                | Labels::Apart { .. },
            ) => None,
            (_, Labels::Classes(classes)) => {
                classes.get(row).and_then(|&it| usize::try_from(it).ok())
            }
            // 0 and 1, or −1 and 1.
            (_, Labels::Values(values)) => values.get(row).map(|&value| usize::from(value > 0.5)),
        }
    }

    /// The names of the classes, in the order of their probabilities; empty for a number.
    pub fn label_names(self, files: &dyn Files) -> Vec<String> {
        match self {
            Self::Classes { .. } | Self::Words | Self::Set { .. } => files.label_names().to_vec(),
            Self::Binary { .. } => match files.binary_labels() {
                Some(names) => names.to_vec(),
                None => ["0", "1"].map(str::to_owned).to_vec(),
            },
            Self::Number | Self::Span | Self::Masked => Vec::new(),
        }
    }
}

/// The most probable class, the first of equals: at a probability of exactly ½ the answer is no, as the metrics count
/// it. `None` where there is none.
pub fn most_probable(probabilities: &[f64]) -> Option<usize> {
    let better = |best: usize, index: usize| match probabilities[index] > probabilities[best] {
        true => index,
        false => best,
    };
    (!probabilities.is_empty()).then(|| (0..probabilities.len()).fold(0, better))
}

/// The probabilities of no and of yes, by one output.
pub(crate) fn of_two(outputs: &[f32], is_logit: bool) -> Vec<f64> {
    let output = outputs.first().copied().map_or(f64::NAN, f64::from);
    let yes = match is_logit {
        true => 1.0 / (1.0 + (-output).exp()),
        // The loss takes it for a probability, whatever it is.
        false => output.clamp(0.0, 1.0),
    };
    vec![1.0 - yes, yes]
}

/// eˣ over its sum; the largest is taken away first, so that nothing overflows.
pub fn softmax(outputs: &[f32]) -> Vec<f64> {
    let most = outputs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f64> = outputs
        .iter()
        .map(|&output| f64::from(output - most).exp())
        .collect();
    let sum: f64 = powers.iter().sum();
    powers.into_iter().map(|power| power / sum).collect()
}

/// The loss of each example, as training adds them up: `outputs` are the rows of a batch, [B, C], row-major. 0 for
/// examples without a label.
pub fn losses(
    loss: Loss,
    weights: (Option<&ClassWeights>, Option<&[f32]>),
    outputs: &[f32],
    labels: &Labels,
) -> Vec<f64> {
    let examples = labels.len();
    let width = (outputs.len() / examples.max(1)).max(1);
    let of_one = |row: usize| {
        let own = outputs.get(row * width..(row + 1) * width)?;
        let own = TensorData::new(own.to_vec(), [1, width]);
        let own = Tensor::<2>::from_data(own, &Device::flex());
        let label = labels.slice(row..row + 1);
        let (classes, weights) = weights;
        let weights = weights.and_then(|weights| weights.get(row..row + 1));
        let sum = weighted_sum((loss, classes), own, &label, weights);
        Some(f64::from(sum.into_scalar::<f32>()))
    };
    (0..examples)
        .map(|row| of_one(row).unwrap_or(f64::NAN))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stratoscope_metrics::IntoLoss;
    use stratoscope_metrics::loss::SparseCategoricalCrossentropy;

    #[test]
    fn the_losses_of_examples_add_up_to_the_loss_of_the_batch() {
        let loss = SparseCategoricalCrossentropy { from_logits: true };
        let loss = loss.into_loss().expect("a loss");
        let outputs = [2.0, 0.0, -1.0, 0.5, 0.5, 0.0];
        let labels = Labels::Classes(vec![2, 0]);
        let found = losses(loss, (None, None), &outputs, &labels);
        // −log softmax, worked out by hand.
        let by_hand = |row: &[f32], class: usize| -softmax(row)[class].ln();
        let expected = [by_hand(&outputs[..3], 2), by_hand(&outputs[3..], 0)];
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
        let batch = Tensor::<1>::from_floats(outputs, &Device::flex()).reshape([2, 3]);
        let sum = f64::from(loss.sum(batch, &labels).into_scalar::<f32>());
        assert!((found.iter().sum::<f64>() - sum).abs() < 1e-6);
        assert!(losses(loss, (None, None), &[], &Labels::Absent).is_empty());
        assert!(losses(loss, (None, None), &[], &Labels::Classes(vec![0]))[0].is_nan());
    }

    #[test]
    fn one_output_decides_between_two_at_one_half() {
        let yes = |output: f32, is_logit: bool| {
            let head = Head::Binary { is_logit };
            let probabilities = head.probabilities(&[output]);
            let class = most_probable(&probabilities).expect("two classes");
            (class, (probabilities[class] * 1e4).round() / 1e4)
        };
        // σ(1) = 0.7311
        assert_eq!(yes(1.0, true), (1, 0.7311));
        assert_eq!(yes(-1.0, true), (0, 0.7311));
        assert_eq!(yes(0.0, true), (0, 0.5));
        assert_eq!(yes(0.3, false), (0, 0.7));
        assert_eq!(yes(1000.0, true), (1, 1.0));
    }

    #[test]
    fn softmax_does_not_overflow() {
        assert_eq!(softmax(&[1e4, 0.0]), [1.0, 0.0]);
        assert!(Head::Number.probabilities(&[1.0]).is_empty());
        assert_eq!(most_probable(&[]), None);
    }

    #[test]
    fn labels_of_a_hinge_loss_may_be_signs() {
        let head = Head::Binary { is_logit: true };
        let labels = Labels::Values(vec![-1.0, 1.0, 0.0]);
        let classes = (0..4).map(|row| head.class(&labels, row));
        assert_eq!(
            classes.collect::<Vec<_>>(),
            [Some(0), Some(1), Some(0), None]
        );
        assert_eq!(Head::Number.class(&labels, 0), None);
    }
}

//! Losses. Every loss here is a **sum** over examples; `fit` divides by the number of examples of
//! the whole optimizer step, so that replicas, micro-batches and short batches add up to the same
//! mean, example by example. Keras argument: `loss`.
//!
//! A loss is a file with an implementation of `Criterion`, and a row in `list.rs`.

mod binary_crossentropy;
mod categorical_crossentropy;
mod class_weights;
mod criterion;
mod hinge;
mod huber;
mod in_batch;
mod into_loss;
mod kl_divergence;
mod label_smoothing;
mod labels;
mod list;
mod log_cosh;
mod mean_absolute_error;
mod mean_squared_error;
mod on_gpu;
pub mod own;
mod sparse_categorical_crossentropy;
mod tokens;

use std::borrow::Cow;
use std::fmt;

use burn::tensor::{Tensor, TensorData};
use stratoscope_bert::operation;
use stratoscope_data::Labels;
use stratoscope_gpu::sum;

pub use binary_crossentropy::BinaryCrossentropy;
pub use categorical_crossentropy::CategoricalCrossentropy;
pub use class_weights::{ClassWeights, weighted_sum};
pub use hinge::{Hinge, SquaredHinge};
pub use huber::Huber;
pub use in_batch::{MultipleNegativesRanking, MultipleNegativesSymmetricRanking, TripletMargin};
pub use into_loss::IntoLoss;
pub use kl_divergence::KlDivergence;
pub use label_smoothing::LabelSmoothing;
pub use list::Loss;
pub use log_cosh::LogCosh;
pub use mean_absolute_error::MeanAbsoluteError;
pub use mean_squared_error::MeanSquaredError;
pub use own::OwnLoss;
pub use sparse_categorical_crossentropy::SparseCategoricalCrossentropy;

/// Keras's `epsilon()`: probabilities are kept this far from 0 and 1.
const EPSILON: f32 = 1e-7;

/// Rows that are parts of examples, such as the words of a text.
struct Part {
    /// The example of a row.
    example: Box<dyn Fn(usize) -> usize>,
    /// What the losses of rows make of that of an example.
    scale: Scale,
}

enum Scale {
    Times(f64),
    Over(f64),
}

/// The class of a row: a number of 0 or 1 is one, too.
fn class_of(labels: &Labels, row: usize) -> Option<usize> {
    match labels {
        Labels::Classes(classes) => usize::try_from(*classes.get(row)?).ok(),
        Labels::Values(values) => values.get(row).map(|value| value.round() as usize),
        Labels::Absent
        | Labels::Tokens(_)
        | Labels::Spans(_)
        | Labels::Sets(_)
        | Labels::Apart { .. } => None,
    }
}

impl Loss {
    /// The loss of each example, added up.
    ///
    /// # Shapes
    /// logits [B, C], B labels → `[1]`; logits [B, S·C], labels of the tokens → `[1]`
    pub fn sum(&self, logits: Tensor<2>, labels: &Labels) -> Tensor<1> {
        self.weighted(logits, labels, None)
    }

    /// The same with each loss times what it counts: `weight` of an example and, where its label is one, of its class.
    ///
    /// # Shapes
    /// As [`sum`](Self::sum)
    fn weighted(
        &self,
        logits: Tensor<2>,
        labels: &Labels,
        weight: Option<&dyn Fn(usize, Option<usize>) -> f32>,
    ) -> Tensor<1> {
        let of_row = |row: usize, class: usize| weight.map_or(1.0, |of| of(row, Some(class)));
        if let Some(sum) = on_gpu::sum(self, &logits, labels, of_row) {
            return sum;
        }
        let (outputs, labels, part) = match labels {
            Labels::Tokens(tokens) => match tokens::labeled(&logits, tokens) {
                Some((outputs, labels, places)) => {
                    let seq = tokens.seq;
                    let part = Part {
                        example: Box::new(move |row| places[row] / seq),
                        scale: Scale::Times(f64::from(tokens.weight)),
                    };
                    (outputs, Cow::Owned(labels), Some(part))
                }
                None => return tokens::nothing(&logits),
            },
            // The mean over the labels, as in Keras.
            Labels::Sets(sets) => {
                let (decisions, truths, outputs) = tokens::of_sets(&logits, sets);
                let part = Part {
                    example: Box::new(move |row| row / outputs),
                    scale: Scale::Over(outputs as f64),
                };
                (decisions, Cow::Owned(truths), Some(part))
            }
            // The mean of where it begins and where it ends.
            Labels::Spans(spans) => {
                let (outputs, labels) = tokens::of_spans(&logits, spans);
                let part = Part {
                    example: Box::new(|row| row / 2),
                    scale: Scale::Times(0.5),
                };
                (outputs, Cow::Owned(labels), Some(part))
            }
            _ => (logits, Cow::Borrowed(labels), None),
        };
        let device = outputs.device();
        let Some(rows) = self.criterion().rows(outputs, &labels) else {
            return Tensor::zeros([1], &device);
        };
        let rows = match weight {
            None => rows,
            Some(weight) => {
                let example = |row: usize| part.as_ref().map_or(row, |part| (part.example)(row));
                let count = rows.dims()[0];
                let weights = (0..count).map(|row| weight(example(row), class_of(&labels, row)));
                let weights = TensorData::new(weights.collect::<Vec<f32>>(), [count, 1]);
                let weights = Tensor::<2>::from_data(weights, &rows.device());
                operation!("weigh", [rows], rows * weights)
            }
        };
        let sum = operation!("sum", [rows], sum(rows));
        match part.map(|part| part.scale) {
            Some(Scale::Times(factor)) => sum.mul_scalar(factor),
            Some(Scale::Over(number)) => sum.div_scalar(number),
            None => sum,
        }
    }

    /// Whether it wants numbers instead of classes.
    pub fn is_regression(&self) -> bool {
        self.criterion().is_regression()
    }

    /// Whether it wants one output that decides between two classes.
    pub fn is_binary(&self) -> bool {
        self.threshold().is_some()
    }

    /// Whether the labels of its two classes may be −1 and 1 too.
    pub fn takes_signs(&self) -> bool {
        self.criterion().takes_signs()
    }

    /// Whether the outputs are logits; `None` where there is no such choice.
    pub fn from_logits(&self) -> Option<bool> {
        self.criterion().takes_logits()
    }

    /// Where one output decides between two classes: the value above which it is class 1.
    pub fn threshold(&self) -> Option<f64> {
        self.criterion().threshold()
    }

    /// What the user calls it: `SparseCategoricalCrossentropy`.
    pub fn name(&self) -> &'static str {
        self.criterion().name()
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let loss = self.criterion();
        write!(f, "{}{}", loss.name(), loss.written())
    }
}

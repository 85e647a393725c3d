//! Losses. Every loss here is a **sum** over examples; `fit` divides by the number of examples of
//! the whole optimizer step, so that replicas, micro-batches and short batches add up to the same
//! mean, example by example. Keras argument: `loss`.

mod binary_crossentropy;
mod categorical_crossentropy;
mod class_weights;
mod hinge;
mod huber;
mod into_loss;
mod kl_divergence;
mod label_smoothing;
mod labels;
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
use serde::{Deserialize, Serialize};
use stratoscope_bert::operation;
use stratoscope_data::Labels;
use stratoscope_gpu::sum;

pub use binary_crossentropy::BinaryCrossentropy;
pub use categorical_crossentropy::CategoricalCrossentropy;
pub use class_weights::{ClassWeights, weighted_sum};
pub use hinge::{Hinge, SquaredHinge};
pub use huber::Huber;
pub use into_loss::IntoLoss;
pub use kl_divergence::KlDivergence;
pub use label_smoothing::LabelSmoothing;
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
        Labels::Absent | Labels::Tokens(_) | Labels::Spans(_) | Labels::Sets(_) => None,
    }
}

/// What is minimized.
///
/// The variants give the loss of one row: an example, a word or token that has a class, the begin or the end of an
/// answer, or one of several labels. p is a probability that the model gives, y the label and e the error, output −
/// label. Logarithms are natural, so that cross-entropies and divergences are in nats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Loss {
    /// −log p(y), for a class y given by its index. See [`SparseCategoricalCrossentropy`].
    SparseCategoricalCrossentropy(SparseCategoricalCrossentropy),
    /// −Σ y log p over the C classes, for a class as a one-hot row y. Smoothing by s replaces y by y (1 − s) + s / C
    /// (Szegedy et al. 2016, section 7). See [`CategoricalCrossentropy`].
    CategoricalCrossentropy(LabelSmoothing<CategoricalCrossentropy>),
    /// −y log p − (1 − y) log (1 − p), for y of 0 or 1 and the probability p of class 1 by one output. Smoothing by s
    /// replaces y by y (1 − s) + s / 2. See [`BinaryCrossentropy`].
    BinaryCrossentropy(LabelSmoothing<BinaryCrossentropy>),
    /// e², in the square of the label's unit. See [`MeanSquaredError`].
    MeanSquaredError(MeanSquaredError),
    /// |e|, in the label's unit. See [`MeanAbsoluteError`].
    MeanAbsoluteError(MeanAbsoluteError),
    /// ½ e² where |e| ≤ `delta`, `delta` (|e| − ½ `delta`) beyond; in the square of the label's unit, as `delta` has
    /// the label's unit. See [`Huber`].
    Huber(Huber),
    /// log cosh e. It has no unit and depends on that of the label: about ½ e² for small errors, |e| − log 2 for large
    /// ones. See [`LogCosh`].
    LogCosh(LogCosh),
    /// Σ y log (y / p) over the classes, for a class as a one-hot row y whose zeros are replaced by 1e-7, as in Keras.
    /// See [`KlDivergence`].
    KlDivergence(KlDivergence),
    /// max(0, 1 − y · output), for y of −1 or 1; without a unit. See [`Hinge`].
    Hinge(Hinge),
    /// max(0, 1 − y · output)², for y of −1 or 1; without a unit. See [`SquaredHinge`].
    SquaredHinge(SquaredHinge),
    /// What a function returns, made by [`Loss::of_classes`] or [`Loss::of_numbers`]. The function cannot be sent to
    /// another process.
    #[serde(skip)]
    Own(OwnLoss),
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
        let Some(rows) = self.rows(outputs, &labels) else {
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

    /// The loss of each example, as numbers that add up to it; `None` without labels of its kind.
    ///
    /// # Shapes
    /// outputs [B, C], B labels → [B, C] or [B, 1]
    fn rows(&self, outputs: Tensor<2>, labels: &Labels) -> Option<Tensor<2>> {
        match self {
            Self::SparseCategoricalCrossentropy(loss) => loss.rows(outputs, labels),
            Self::CategoricalCrossentropy(loss) => loss.rows(outputs, labels),
            Self::BinaryCrossentropy(loss) => loss.rows(outputs, labels),
            Self::MeanSquaredError(loss) => loss.rows(outputs, labels),
            Self::MeanAbsoluteError(loss) => loss.rows(outputs, labels),
            Self::Huber(loss) => loss.rows(outputs, labels),
            Self::LogCosh(loss) => loss.rows(outputs, labels),
            Self::KlDivergence(loss) => loss.rows(outputs, labels),
            Self::Hinge(loss) => loss.rows(outputs, labels),
            Self::SquaredHinge(loss) => loss.rows(outputs, labels),
            Self::Own(loss) => loss.rows(outputs, labels),
        }
    }

    /// Whether it wants numbers instead of classes.
    pub fn is_regression(&self) -> bool {
        match self {
            Self::MeanSquaredError(_)
            | Self::MeanAbsoluteError(_)
            | Self::Huber(_)
            | Self::LogCosh(_) => true,
            Self::Own(loss) => loss.is_regression(),
            _ => false,
        }
    }

    /// Whether it wants one output that decides between two classes.
    pub fn is_binary(&self) -> bool {
        self.threshold().is_some()
    }

    /// Whether the labels of its two classes may be −1 and 1 too.
    pub fn takes_signs(&self) -> bool {
        matches!(self, Self::Hinge(_) | Self::SquaredHinge(_))
    }

    /// Whether the outputs are logits; `None` where there is no such choice.
    pub fn from_logits(&self) -> Option<bool> {
        match self {
            Self::SparseCategoricalCrossentropy(loss) => Some(loss.from_logits),
            Self::CategoricalCrossentropy(smoothed) => Some(smoothed.loss.from_logits),
            Self::BinaryCrossentropy(smoothed) => Some(smoothed.loss.from_logits),
            Self::KlDivergence(loss) => Some(loss.from_logits),
            _ => None,
        }
    }

    /// Where one output decides between two classes: the value above which it is class 1.
    pub fn threshold(&self) -> Option<f64> {
        match self {
            Self::BinaryCrossentropy(smoothed) => Some(smoothed.loss.threshold()),
            Self::Hinge(_) | Self::SquaredHinge(_) => Some(0.0),
            _ => None,
        }
    }

    /// What the user calls it: `SparseCategoricalCrossentropy`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SparseCategoricalCrossentropy(_) => "SparseCategoricalCrossentropy",
            Self::CategoricalCrossentropy(_) => "CategoricalCrossentropy",
            Self::BinaryCrossentropy(_) => "BinaryCrossentropy",
            Self::MeanSquaredError(_) => "MeanSquaredError",
            Self::MeanAbsoluteError(_) => "MeanAbsoluteError",
            Self::Huber(_) => "Huber",
            Self::LogCosh(_) => "LogCosh",
            Self::KlDivergence(_) => "KlDivergence",
            Self::Hinge(_) => "Hinge",
            Self::SquaredHinge(_) => "SquaredHinge",
            Self::Own(loss) => loss.name(),
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if let Some(from_logits) = self.from_logits() {
            write!(f, " {{ from_logits: {from_logits} }}")?;
        }
        if let Self::Huber(Huber { delta }) = self {
            write!(f, " {{ delta: {delta:?} }}")?;
        }
        f.write_str(&match self {
            Self::CategoricalCrossentropy(smoothed) => smoothed.suffix(),
            Self::BinaryCrossentropy(smoothed) => smoothed.suffix(),
            _ => String::new(),
        })
    }
}

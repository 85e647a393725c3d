//! Losses. Every loss here is a **sum** over examples; `fit` divides by the number of examples of
//! the whole optimizer step, so that replicas, micro-batches and short batches add up to the same
//! mean, example by example. Keras argument: `loss`.

mod binary_crossentropy;
mod categorical_crossentropy;
mod hinge;
mod huber;
mod kl_divergence;
mod label_smoothing;
mod labels;
mod log_cosh;
mod mean_absolute_error;
mod mean_squared_error;
pub(crate) mod on_gpu;
mod own;
mod sparse_categorical_crossentropy;
pub(crate) mod tokens;

use std::fmt;

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};
use stratoscope_data::Labels;

pub use binary_crossentropy::BinaryCrossentropy;
pub use categorical_crossentropy::CategoricalCrossentropy;
pub use hinge::{Hinge, SquaredHinge};
pub use huber::Huber;
pub use kl_divergence::KlDivergence;
pub use label_smoothing::LabelSmoothing;
pub use log_cosh::LogCosh;
pub use mean_absolute_error::MeanAbsoluteError;
pub use mean_squared_error::MeanSquaredError;
pub use own::OwnLoss;
pub use sparse_categorical_crossentropy::SparseCategoricalCrossentropy;

/// Keras's `epsilon()`: probabilities are kept this far from 0 and 1.
const EPSILON: f32 = 1e-7;

/// What is minimized.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Loss {
    /// Classes by index.
    SparseCategoricalCrossentropy(SparseCategoricalCrossentropy),
    /// Classes as one-hot rows, smoothed if asked for.
    CategoricalCrossentropy(LabelSmoothing<CategoricalCrossentropy>),
    /// Two classes by one output.
    BinaryCrossentropy(LabelSmoothing<BinaryCrossentropy>),
    /// A number.
    MeanSquaredError(MeanSquaredError),
    /// A number.
    MeanAbsoluteError(MeanAbsoluteError),
    /// A number.
    Huber(Huber),
    /// A number.
    LogCosh(LogCosh),
    /// Classes as one-hot distributions.
    KlDivergence(KlDivergence),
    /// Two classes by the sign of one output.
    Hinge(Hinge),
    /// Two classes by the sign of one output.
    SquaredHinge(SquaredHinge),
    /// A function, which does not leave its process.
    #[serde(skip)]
    Own(OwnLoss),
}

impl Loss {
    /// The loss of each example, added up.
    ///
    /// # Shapes
    /// logits [B, C], B labels → `[1]`; logits [B, S·C], labels of the tokens → `[1]`
    pub fn sum(&self, logits: Tensor<2>, labels: &Labels) -> Tensor<1> {
        if let Some(sum) = on_gpu::sum(self, &logits, labels, |_| 1.0) {
            return sum;
        }
        if let Labels::Tokens(tokens) = labels {
            return match tokens::labeled(&logits, tokens) {
                Some((logits, labels)) => self.sum(logits, &labels).mul_scalar(tokens.weight),
                None => tokens::nothing(&logits),
            };
        }
        if let Labels::Sets(sets) = labels {
            // The mean over the labels, as in Keras.
            let (decisions, truths, outputs) = tokens::of_sets(&logits, sets);
            return self.sum(decisions, &truths).div_scalar(outputs as f64);
        }
        if let Labels::Spans(spans) = labels {
            // The mean of where it begins and where it ends.
            let (logits, labels) = tokens::of_spans(&logits, spans);
            return self.sum(logits, &labels).mul_scalar(0.5);
        }
        match self {
            Self::SparseCategoricalCrossentropy(loss) => loss.sum(logits, labels),
            Self::CategoricalCrossentropy(loss) => loss.sum(logits, labels),
            Self::BinaryCrossentropy(loss) => loss.sum(logits, labels),
            Self::MeanSquaredError(loss) => loss.sum(logits, labels),
            Self::MeanAbsoluteError(loss) => loss.sum(logits, labels),
            Self::Huber(loss) => loss.sum(logits, labels),
            Self::LogCosh(loss) => loss.sum(logits, labels),
            Self::KlDivergence(loss) => loss.sum(logits, labels),
            Self::Hinge(loss) => loss.sum(logits, labels),
            Self::SquaredHinge(loss) => loss.sum(logits, labels),
            Self::Own(loss) => loss.sum(logits, labels),
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
    pub(crate) fn takes_signs(&self) -> bool {
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

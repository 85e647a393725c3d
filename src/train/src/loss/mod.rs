//! Losses. Every loss here is a **sum** over examples; `fit` divides by the number of examples of
//! the whole optimizer step, so that replicas, micro-batches and short batches add up to the same
//! mean, example by example. Keras argument: `loss`.

mod binary_crossentropy;
mod categorical_crossentropy;
mod label_smoothing;
mod mean_squared_error;
mod sparse_categorical_crossentropy;

use std::fmt;

use burn::tensor::Tensor;
use stratoscope_data::Labels;

pub use binary_crossentropy::BinaryCrossentropy;
pub use categorical_crossentropy::CategoricalCrossentropy;
pub use label_smoothing::LabelSmoothing;
pub use mean_squared_error::MeanSquaredError;
pub use sparse_categorical_crossentropy::SparseCategoricalCrossentropy;

/// Keras's `epsilon()`: probabilities are kept this far from 0 and 1.
const EPSILON: f32 = 1e-7;

/// What is minimised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// Classes by index.
    SparseCategoricalCrossentropy(SparseCategoricalCrossentropy),
    /// Classes as one-hot rows, smoothed if asked for.
    CategoricalCrossentropy(LabelSmoothing<CategoricalCrossentropy>),
    /// Two classes by one output.
    BinaryCrossentropy(LabelSmoothing<BinaryCrossentropy>),
    /// A number.
    MeanSquaredError(MeanSquaredError),
}

impl Loss {
    /// The loss of each example, added up.
    ///
    /// # Shapes
    /// logits [B, C], B labels → `[1]`
    pub fn sum(&self, logits: Tensor<2>, labels: &Labels) -> Tensor<1> {
        match self {
            Self::SparseCategoricalCrossentropy(loss) => loss.sum(logits, labels),
            Self::CategoricalCrossentropy(loss) => loss.sum(logits, labels),
            Self::BinaryCrossentropy(loss) => loss.sum(logits, labels),
            Self::MeanSquaredError(loss) => loss.sum(logits, labels),
        }
    }

    /// Whether it wants numbers instead of classes.
    pub fn is_regression(&self) -> bool {
        matches!(self, Self::MeanSquaredError(_))
    }

    /// Whether the outputs are logits; `None` where there is no such choice.
    pub fn from_logits(&self) -> Option<bool> {
        match self {
            Self::SparseCategoricalCrossentropy(loss) => Some(loss.from_logits),
            Self::CategoricalCrossentropy(smoothed) => Some(smoothed.loss.from_logits),
            Self::BinaryCrossentropy(smoothed) => Some(smoothed.loss.from_logits),
            Self::MeanSquaredError(_) => None,
        }
    }

    /// Where one output decides between two classes: the value above which it is class 1.
    pub fn threshold(&self) -> Option<f64> {
        match self {
            Self::BinaryCrossentropy(smoothed) => Some(smoothed.loss.threshold()),
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
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if let Some(from_logits) = self.from_logits() {
            write!(f, " {{ from_logits: {from_logits} }}")?;
        }
        f.write_str(&match self {
            Self::CategoricalCrossentropy(smoothed) => smoothed.suffix(),
            Self::BinaryCrossentropy(smoothed) => smoothed.suffix(),
            _ => String::new(),
        })
    }
}

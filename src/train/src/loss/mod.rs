//! Losses. Every loss here is a **sum** over examples; `fit` divides by the number of examples of
//! the whole optimizer step, so that replicas, micro-batches and short batches add up to the same
//! mean, example by example. Keras argument: `loss`.

mod mean_squared_error;
mod sparse_categorical_crossentropy;

use std::fmt;

use burn::tensor::Tensor;
use stratoscope_data::Labels;

pub use mean_squared_error::MeanSquaredError;
pub use sparse_categorical_crossentropy::SparseCategoricalCrossentropy;

/// What is minimised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Classes by index.
    SparseCategoricalCrossentropy(SparseCategoricalCrossentropy),
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
            Self::MeanSquaredError(loss) => loss.sum(logits, labels),
        }
    }

    /// Whether it wants numbers instead of classes.
    pub fn is_regression(&self) -> bool {
        matches!(self, Self::MeanSquaredError(_))
    }

    /// What the user calls it: `SparseCategoricalCrossentropy`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SparseCategoricalCrossentropy(_) => "SparseCategoricalCrossentropy",
            Self::MeanSquaredError(_) => "MeanSquaredError",
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SparseCategoricalCrossentropy(loss) => {
                write!(
                    f,
                    "SparseCategoricalCrossentropy {{ from_logits: {} }}",
                    loss.from_logits
                )
            }
            Self::MeanSquaredError(_) => f.write_str("MeanSquaredError"),
        }
    }
}

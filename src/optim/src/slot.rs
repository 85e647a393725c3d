//! [`Slot`]: the tensors that an optimizer keeps beside a weight.

use super::StoredTensor;

/// The tensors. A row is a variant of [`Slot`], its name on a placement, and the tensor of a checkpoint in which it is stored. No
/// optimizer has two that are stored in the same one.
macro_rules! slots {
    ($($(#[$doc:meta])* $slot:ident, $name:literal, $stored:ident;)*) => {
        /// A tensor that an optimizer keeps beside each trained weight.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Slot {
            $($(#[$doc])* $slot,)*
        }

        impl Slot {
            /// Its name on a placement: `Adam m`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$slot => $name,)*
                }
            }

            /// The tensor that it is kept in.
            pub(super) fn stored(self) -> StoredTensor {
                match self {
                    $(Self::$slot => StoredTensor::$stored,)*
                }
            }
        }
    };
}

slots! {
    /// The momentum of SGD and RMSprop.
    Velocity, "velocity", First;
    /// Lion's momentum.
    Momentum, "momentum", First;
    /// RMSprop's mean of the squared gradients.
    MeanSquare, "mean square", Second;
    /// RMSprop's mean of the gradients, where it is centered.
    MeanGradient, "mean gradient", Largest;
    /// Adam's mean of the gradients.
    M, "Adam m", First;
    /// Adam's mean of the squared gradients.
    V, "Adam v", Second;
    /// The largest second moment so far, for AMSGrad.
    LargestV, "largest v", Largest;
    /// The moving average of the weight.
    Average, "average", Average;
    /// Adafactor's mean of the squared gradients of each row of a matrix.
    RowMeans, "row means", Rows;
    /// And of each column.
    ColumnMeans, "column means", Columns;
    /// Adafactor's mean of the squared gradients of a vector.
    VectorMeanSquare, "mean square of vectors", Second;
}

impl Slot {
    /// How many numbers it has beside a variable of this shape.
    pub fn numbers(self, shape: &[usize]) -> usize {
        let sizes = matrices(shape);
        match (self, sizes) {
            (Self::RowMeans, Some([count, rows, _])) => count * rows,
            (Self::ColumnMeans, Some([count, _, columns])) => count * columns,
            (Self::RowMeans | Self::ColumnMeans, None) => 0,
            (Self::VectorMeanSquare, Some(_)) => 0,
            _ => shape.iter().product(),
        }
    }

    /// Whether it has fewer numbers than the variable.
    pub fn is_factored(self) -> bool {
        matches!(
            self,
            Self::RowMeans | Self::ColumnMeans | Self::VectorMeanSquare
        )
    }
}

/// The matrices that the last two axes of a variable make: how many, their rows, their columns. None for vectors.
pub(super) fn matrices(shape: &[usize]) -> Option<[usize; 3]> {
    let (&columns, rest) = shape.split_last()?;
    let (&rows, rest) = rest.split_last()?;
    Some([rest.iter().product(), rows, columns])
}

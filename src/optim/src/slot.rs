//! [`Slot`]: the tensors that an optimizer keeps beside a weight.

/// A tensor that an optimizer keeps beside each trained weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The momentum of SGD and RMSprop.
    Velocity,
    /// Lion's momentum.
    Momentum,
    /// RMSprop's mean of the squared gradients.
    MeanSquare,
    /// RMSprop's mean of the gradients, where it is centered.
    MeanGradient,
    /// Adam's mean of the gradients.
    M,
    /// Adam's mean of the squared gradients.
    V,
    /// The largest second moment so far, for AMSGrad.
    LargestV,
    /// The moving average of the weight.
    Average,
    /// Adafactor's mean of the squared gradients of each row of a matrix.
    RowMeans,
    /// And of each column.
    ColumnMeans,
    /// Adafactor's mean of the squared gradients of a vector.
    VectorMeanSquare,
}

impl Slot {
    /// Its name on a placement: `Adam m`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Velocity => "velocity",
            Self::Momentum => "momentum",
            Self::MeanSquare => "mean square",
            Self::MeanGradient => "mean gradient",
            Self::M => "Adam m",
            Self::V => "Adam v",
            Self::LargestV => "largest v",
            Self::Average => "average",
            Self::RowMeans => "row means",
            Self::ColumnMeans => "column means",
            Self::VectorMeanSquare => "mean square of vectors",
        }
    }

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

//! The moments of a replica tensor by tensor, for a checkpoint, and back.

use burn::module::ParamId;
use burn::tensor::Tensor;

use super::{OptimizerState, Slot};

/// Which of the tensors that are kept beside a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Adam's mean of the gradients, Lion's momentum, or a velocity.
    First,
    /// The mean of the squared gradients.
    Second,
    /// The largest second moment so far (AMSGrad), or RMSprop's mean of the gradients.
    Largest,
    /// The moving average of the parameter.
    Average,
    /// Adafactor's means of the rows.
    Rows,
    /// And of the columns.
    Columns,
}

impl Kept {
    /// All of them.
    pub(crate) const ALL: [Self; 6] = [
        Self::First,
        Self::Second,
        Self::Largest,
        Self::Average,
        Self::Rows,
        Self::Columns,
    ];

    /// The name in files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::First => "first_moment",
            Self::Second => "second_moment",
            Self::Largest => "largest_second_moment",
            Self::Average => "average",
            Self::Rows => "row_means",
            Self::Columns => "column_means",
        }
    }

    /// How many numbers it has beside a parameter of this shape.
    pub(crate) fn numbers(self, shape: &[usize]) -> usize {
        match self {
            Self::Rows => Slot::RowMeans.numbers(shape),
            Self::Columns => Slot::ColumnMeans.numbers(shape),
            Self::First | Self::Second | Self::Largest | Self::Average => shape.iter().product(),
        }
    }
}

impl OptimizerState {
    /// A tensor that is kept beside a parameter, flat.
    pub(crate) fn kept(&self, id: ParamId, kept: Kept) -> Option<&Tensor<1>> {
        let moments = self.moments.get(&id)?;
        match kept {
            Kept::First => moments.first.as_ref(),
            Kept::Second => moments.second.as_ref(),
            Kept::Largest => moments.largest.as_ref(),
            Kept::Average => moments.average.as_ref(),
            Kept::Rows => moments.rows.as_ref(),
            Kept::Columns => moments.columns.as_ref(),
        }
    }

    /// Keeps a tensor beside a parameter.
    pub(crate) fn keep(&mut self, id: ParamId, kept: Kept, value: Tensor<1>) {
        let moments = self.moments.entry(id).or_default();
        moments.touched = None;
        let place = match kept {
            Kept::First => &mut moments.first,
            Kept::Second => &mut moments.second,
            Kept::Largest => &mut moments.largest,
            Kept::Average => &mut moments.average,
            Kept::Rows => &mut moments.rows,
            Kept::Columns => &mut moments.columns,
        };
        *place = Some(value);
    }

    /// Nothing kept yet, after so many steps.
    pub(crate) fn after(steps: u64) -> Self {
        Self {
            steps,
            ..Self::default()
        }
    }

    /// The size of all that is kept, in bytes.
    pub(crate) fn all_bytes(&self) -> u64 {
        let kept = |id: &ParamId| Kept::ALL.map(|kept| self.kept(*id, kept));
        let tensors = self.moments.keys().flat_map(kept).flatten();
        let bytes = tensors.map(|tensor| tensor.dims()[0] * tensor.dtype().size());
        bytes.sum::<usize>() as u64
    }
}

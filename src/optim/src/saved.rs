//! The moments of a replica tensor by tensor, for a checkpoint, and back.

use burn::module::ParamId;
use burn::tensor::Tensor;

use super::step::Moments;
use super::{OptimizerState, Slot};

/// Which of the tensors that are kept beside a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredTensor {
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

impl StoredTensor {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::First,
        Self::Second,
        Self::Largest,
        Self::Average,
        Self::Rows,
        Self::Columns,
    ];

    /// The name in files.
    pub fn name(self) -> &'static str {
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
    pub fn numbers(self, shape: &[usize]) -> usize {
        match self {
            Self::Rows => Slot::RowMeans.numbers(shape),
            Self::Columns => Slot::ColumnMeans.numbers(shape),
            Self::First | Self::Second | Self::Largest | Self::Average => shape.iter().product(),
        }
    }
}

impl Moments {
    /// A tensor, if it is kept.
    pub(super) fn tensor(&self, stored: StoredTensor) -> Option<&Tensor<1>> {
        let tensor = match stored {
            StoredTensor::First => &self.first,
            StoredTensor::Second => &self.second,
            StoredTensor::Largest => &self.largest,
            StoredTensor::Average => &self.average,
            StoredTensor::Rows => &self.rows,
            StoredTensor::Columns => &self.columns,
        };
        tensor.as_ref()
    }

    fn tensor_mut(&mut self, stored: StoredTensor) -> &mut Option<Tensor<1>> {
        match stored {
            StoredTensor::First => &mut self.first,
            StoredTensor::Second => &mut self.second,
            StoredTensor::Largest => &mut self.largest,
            StoredTensor::Average => &mut self.average,
            StoredTensor::Rows => &mut self.rows,
            StoredTensor::Columns => &mut self.columns,
        }
    }
}

impl OptimizerState {
    /// A tensor that is kept beside a parameter, flat.
    pub fn kept(&self, id: ParamId, stored: StoredTensor) -> Option<&Tensor<1>> {
        self.moments.get(&id)?.tensor(stored)
    }

    /// Keeps a tensor beside a parameter.
    pub fn keep(&mut self, id: ParamId, stored: StoredTensor, value: Tensor<1>) {
        let moments = self.moments.entry(id).or_default();
        moments.touched = None;
        *moments.tensor_mut(stored) = Some(value);
    }

    /// Nothing kept yet, after so many steps.
    pub fn after(steps: u64) -> Self {
        Self {
            steps,
            ..Self::default()
        }
    }

    /// The size of all that is kept, in bytes.
    pub fn all_bytes(&self) -> u64 {
        let kept = |id: &ParamId| StoredTensor::ALL.map(|stored| self.kept(*id, stored));
        let tensors = self.moments.keys().flat_map(kept).flatten();
        let bytes = tensors.map(|tensor| tensor.dims()[0] * tensor.dtype().size());
        bytes.sum::<usize>() as u64
    }
}

//! `validation_freq` of `fit!`: every so many epochs, or a list of them.

use stratoscope_diagnostics::Result;

use super::{Count, IntoCount};

/// After which epochs is validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValidationFreq {
    /// After every so many.
    Every(u64),
    /// After these, counted from 1.
    After(Vec<u64>),
}

impl ValidationFreq {
    /// Whether it is validated after an epoch, counted from 0.
    pub fn includes(&self, epoch: u64) -> bool {
        match self {
            Self::Every(epochs) => (epoch + 1).is_multiple_of(*epochs),
            Self::After(epochs) => epochs.contains(&(epoch + 1)),
        }
    }
}

/// A frequency as written.
#[derive(Clone, Debug)]
pub enum Frequency {
    /// Every so many epochs.
    Every(Count),
    /// These epochs, counted from 1.
    After(Vec<Count>),
}

/// What `validation_freq` takes: a number of epochs, or a list of them.
#[diagnostic::on_unimplemented(
    message = "expected a number of epochs or a list of them, got `{Self}`",
    label = "`2` for every second one, `[1, 3]` for the first and the third"
)]
pub trait IntoFrequency {
    /// The frequency as written.
    fn into_frequency(self) -> Frequency;
}

impl<T: IntoCount> IntoFrequency for T {
    fn into_frequency(self) -> Frequency {
        Frequency::Every(self.into_count())
    }
}

impl<T: IntoCount, const N: usize> IntoFrequency for [T; N] {
    fn into_frequency(self) -> Frequency {
        Frequency::After(self.into_iter().map(IntoCount::into_count).collect())
    }
}

impl<T: IntoCount> IntoFrequency for Vec<T> {
    fn into_frequency(self) -> Frequency {
        Frequency::After(self.into_iter().map(IntoCount::into_count).collect())
    }
}

impl Frequency {
    /// # Errors
    /// SC0103 for a number below 1.
    pub(super) fn resolve(self) -> Result<ValidationFreq> {
        let checked = |count: Count| count.at_least(1, "fit", "validation_freq");
        Ok(match self {
            Self::Every(epochs) => ValidationFreq::Every(checked(epochs)?),
            Self::After(epochs) => {
                let epochs: Result<Vec<u64>> = epochs.into_iter().map(checked).collect();
                ValidationFreq::After(epochs?)
            }
        })
    }
}

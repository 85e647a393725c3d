//! Training from the head downwards. Source: Howard and Ruder 2018, "Universal Language Model Fine-tuning for Text
//! Classification", section 3.3.

use stratoscope_diagnostics::Result;

use super::Callback;
use crate::count::{Count, IntoCount};

/// Trains the head alone at first, then from time to time one encoder layer more, from the top down, and the embeddings last.
/// So the head learns before what is pretrained changes. Variables that were frozen before the run stay frozen.
///
/// ```
/// use stratoscope_arguments::callbacks::GradualUnfreezing;
///
/// let unfreezing = GradualUnfreezing::new().every(2);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct GradualUnfreezing {
    every: Count,
}

impl GradualUnfreezing {
    /// A layer more after each epoch.
    pub fn new() -> Self {
        Self {
            every: 1.into_count(),
        }
    }

    /// Epochs from one layer to the next, 1 or more. Default: 1.
    pub fn every(mut self, epochs: impl IntoCount) -> Self {
        self.every = epochs.into_count();
        self
    }

    /// The epochs, checked.
    pub fn resolve(&self) -> Result<u64> {
        self.every.at_least(1, "fit", "callbacks")
    }
}

impl Default for GradualUnfreezing {
    fn default() -> Self {
        Self::new()
    }
}

impl Callback for GradualUnfreezing {
    /// The run changes which variables are trained; nothing is left to do here.
    fn gradual_unfreezing(&self) -> Option<GradualUnfreezing> {
        Some(self.clone())
    }
}

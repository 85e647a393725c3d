//! Labels that are less sure of themselves than 0 and 1. Source: Szegedy et al. 2016, section 7; Keras
//! argument `label_smoothing`.

use serde::{Deserialize, Serialize};
use stratoscope_diagnostics::{Result, problem};

/// A loss with smoothed labels, made by its `label_smoothing(share)`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelSmoothing<L> {
    /// The loss.
    pub loss: L,
    /// What is taken from the label, from 0, below 1; 0 leaves it as it is.
    pub share: f64,
}

impl<L> From<L> for LabelSmoothing<L> {
    /// Nothing is smoothed.
    fn from(loss: L) -> Self {
        Self { loss, share: 0.0 }
    }
}

impl<L> LabelSmoothing<L> {
    /// SC0103 for a share that is none.
    pub(super) fn check_share(&self) -> Result<()> {
        if (0.0..1.0).contains(&self.share) {
            return Ok(());
        }
        let given = format!("….label_smoothing({})", self.share);
        Err(Box::new(problem::bad_value(
            "compile",
            "loss",
            given,
            "a share from 0, below 1",
        )))
    }

    /// As it is written after the loss; nothing where nothing is smoothed.
    pub(super) fn suffix(&self) -> String {
        match self.share {
            0.0 => String::new(),
            share => format!(".label_smoothing({share})"),
        }
    }
}

//! Labels that are less sure of themselves than 0 and 1. Source: Szegedy et al. 2016, section 7; Keras
//! argument `label_smoothing`.

use super::{BinaryCrossentropy, CategoricalCrossentropy};
use serde::{Deserialize, Serialize};

/// A loss with smoothed labels, made by its `label_smoothing(share)`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelSmoothing<L> {
    /// The loss.
    pub loss: L,
    /// What is taken from the label, from 0, below 1; 0 leaves it as it is.
    pub share: f64,
}

impl<L> LabelSmoothing<L> {
    /// Whether the share is one.
    pub(super) fn is_valid(&self) -> bool {
        (0.0..1.0).contains(&self.share)
    }

    /// As it is written after the loss; nothing where nothing is smoothed.
    pub(super) fn suffix(&self) -> String {
        match self.share {
            0.0 => String::new(),
            share => format!(".label_smoothing({share})"),
        }
    }
}

impl From<CategoricalCrossentropy> for LabelSmoothing<CategoricalCrossentropy> {
    fn from(loss: CategoricalCrossentropy) -> Self {
        loss.label_smoothing(0.0)
    }
}

impl From<BinaryCrossentropy> for LabelSmoothing<BinaryCrossentropy> {
    fn from(loss: BinaryCrossentropy) -> Self {
        loss.label_smoothing(0.0)
    }
}

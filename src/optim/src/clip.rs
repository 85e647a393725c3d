//! Clipping of gradients, after the all-reduce: what is clipped is the gradient of the whole global
//! batch, so the number of replicas does not change it. Keras arguments of optimizers.

use std::fmt;

use serde::{Deserialize, Serialize};
use stratoscope_diagnostics::Result;

use super::checks::{check_number, conflict};

/// PyTorch's `clip_grad_norm_` adds it to the norm, so that nothing is divided by 0.
const CLIP_EPSILON: f64 = 1e-6;

/// As written: up to three values, of which one may be there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clip {
    pub clipnorm: Option<f64>,
    pub global_clipnorm: Option<f64>,
    pub clipvalue: Option<f64>,
}

/// What is done to the gradients before the step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Clipping {
    /// Nothing.
    #[default]
    None,
    /// Each tensor's norm is at most this (`clipnorm`).
    PerTensor(f64),
    /// The norm over all tensors is at most this (`global_clipnorm`).
    Global(f64),
    /// Each element is at most this, and at least its negative (`clipvalue`).
    Value(f64),
}

impl Clip {
    pub(super) fn resolve(self, optimizer: &str) -> Result<Clipping> {
        type Kind = fn(f64) -> Clipping;
        let kinds: [(&str, Option<f64>, Kind); 3] = [
            ("clipnorm", self.clipnorm, Clipping::PerTensor),
            ("global_clipnorm", self.global_clipnorm, Clipping::Global),
            ("clipvalue", self.clipvalue, Clipping::Value),
        ];
        let mut given = kinds
            .iter()
            .filter_map(|(name, value, kind)| Some((*name, (*value)?, kind)));
        let Some((name, value, kind)) = given.next() else {
            return Ok(Clipping::None);
        };
        if let Some((second, ..)) = given.next() {
            return Err(conflict(optimizer, name, second));
        }
        check_number(optimizer, name, value)?;
        Ok(kind(value))
    }
}

impl Clipping {
    /// What all gradients are multiplied with, given their global norm: `max / (norm + 1e-6)`, at
    /// most 1; 1 where the clipping is of another kind.
    pub fn global_factor(self, norm: f64) -> f64 {
        match self {
            Self::Global(max) => (max / (norm + CLIP_EPSILON)).min(1.0),
            _ => 1.0,
        }
    }

    /// What one tensor's gradient is multiplied with, given its own norm. Keras's formula: nothing
    /// is added to the norm.
    pub(super) fn tensor_factor(self, norm: f64) -> f64 {
        match self {
            Self::PerTensor(max) if norm > max => max / norm,
            _ => 1.0,
        }
    }

    /// The largest magnitude an element may keep.
    pub(super) fn limit(self) -> Option<f64> {
        match self {
            Self::Value(limit) => Some(limit),
            _ => None,
        }
    }
}

impl fmt::Display for Clipping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::PerTensor(value) => write!(f, ".clipnorm({value:?})"),
            Self::Global(value) => write!(f, ".global_clipnorm({value:?})"),
            Self::Value(value) => write!(f, ".clipvalue({value:?})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_factor_is_at_most_one() {
        let clipping = Clipping::Global(1.0);
        assert_eq!(clipping.global_factor(0.0), 1.0);
        assert_eq!(clipping.global_factor(0.5), 1.0);
        assert_eq!(clipping.global_factor(2.0), 1.0 / 2.000_001);
        assert_eq!(Clipping::None.global_factor(9.0), 1.0);
        assert_eq!(Clipping::PerTensor(1.0).tensor_factor(4.0), 0.25);
        assert_eq!(Clipping::PerTensor(1.0).tensor_factor(0.5), 1.0);
    }
}

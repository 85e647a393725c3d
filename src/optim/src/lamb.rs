//! LAMB: Adam's direction, of each variable as long as its weights. Source: You et al. 2020, "Large Batch Optimization for
//! Deep Learning: Training BERT in 76 minutes", algorithm 2, in Keras's form: with the moments `m̂` and `v̂` of Adam, corrected
//! for their bias, `u = m̂ / (√v̂ + ε)` and `w -= rate · ‖w‖/‖u‖ · u`, where the ratio is 1 if one of the norms is 0.

use stratoscope_diagnostics::Result;

use super::builder::Common;
use super::{IntoOptimizer, LambRule, Optimizer, UpdateRule};
use crate::schedule::IntoSchedule;

/// LAMB, for batches of thousands of examples. It keeps what Adam keeps.
#[derive(Clone, Debug)]
pub struct Lamb {
    common: Common,
    rule: LambRule,
}

impl Lamb {
    /// With a rate or a schedule: `Lamb::new(1e-3)`.
    pub fn new(learning_rate: impl IntoSchedule) -> Self {
        Self {
            common: Common::new(learning_rate),
            rule: LambRule {
                beta_1: 0.9,
                beta_2: 0.999,
                epsilon: 1e-7,
                weight_decay: 0.0,
            },
        }
    }

    /// The share of the old mean of the gradients in the new one, from 0, below 1. Default: 0.9.
    pub fn beta_1(self, beta_1: f64) -> Self {
        self.with(|own| own.rule.beta_1 = beta_1)
    }

    /// The same of the mean of their squares. Default: 0.999.
    pub fn beta_2(self, beta_2: f64) -> Self {
        self.with(|own| own.rule.beta_2 = beta_2)
    }

    /// Added outside the square root, above 0. Default: 1e-7.
    pub fn epsilon(self, epsilon: f64) -> Self {
        self.with(|own| own.rule.epsilon = epsilon)
    }

    /// `w -= rate · decay · w` before each step, as in Keras; the paper adds `decay · w` to the direction. Default: 0.
    pub fn weight_decay(self, weight_decay: f64) -> Self {
        self.with(|own| own.rule.weight_decay = weight_decay)
    }

    offered_with_weight_decay!();

    offered_by_every_optimizer!();
}

impl IntoOptimizer for Lamb {
    fn into_optimizer(self) -> Result<Optimizer> {
        self.common.resolve("Lamb", UpdateRule::Lamb(self.rule))
    }
}

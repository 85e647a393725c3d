//! Lion: steps by the sign of a momentum. Source: Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms",
//! program 1: `c = β₁ m + (1 − β₁) g`, `w -= rate · (sign(c) + decay · w)`, `m = β₂ m + (1 − β₂) g`; Keras's formula.

use stratoscope_diagnostics::Result;

use super::builder::Common;
use super::{IntoOptimizer, LionRule, Optimizer, UpdateRule};
use crate::schedule::IntoSchedule;

/// Lion, which keeps half as much as Adam. Each weight moves by the rate, so rates are 3 to 10 times smaller.
#[derive(Clone, Debug)]
pub struct Lion {
    common: Common,
    rule: LionRule,
}

impl Lion {
    /// With a rate or a schedule: `Lion::new(1e-5)`.
    pub fn new(learning_rate: impl IntoSchedule) -> Self {
        Self {
            common: Common::new(learning_rate),
            rule: LionRule {
                beta_1: 0.9,
                beta_2: 0.99,
                weight_decay: 0.0,
            },
        }
    }

    /// The share of the momentum in the direction of a step, from 0, below 1. Default: 0.9.
    pub fn beta_1(self, beta_1: f64) -> Self {
        self.with(|own| own.rule.beta_1 = beta_1)
    }

    /// How slowly the momentum moves, from 0, below 1. Default: 0.99.
    pub fn beta_2(self, beta_2: f64) -> Self {
        self.with(|own| own.rule.beta_2 = beta_2)
    }

    /// `w -= rate · decay · w` before each step. Default: 0, as in Keras; the paper's is 3 to 10 times AdamW's.
    pub fn weight_decay(self, weight_decay: f64) -> Self {
        self.with(|own| own.rule.weight_decay = weight_decay)
    }

    offered_with_weight_decay!();

    offered_by_every_optimizer!();
}

impl IntoOptimizer for Lion {
    fn into_optimizer(self) -> Result<Optimizer> {
        self.common.resolve("Lion", UpdateRule::Lion(self.rule))
    }
}

//! Stochastic gradient descent. Keras's formula: `v = momentum · v − rate · g`, `w += v`; with
//! `nesterov` `w += momentum · v − rate · g`. (PyTorch keeps the rate out of v, so that a change of
//! the rate acts on old gradients too; with a constant rate both are the same.)

use stratoscope_diagnostics::Result;

use super::builder::Common;
use super::{IntoOptimizer, Optimizer, SgdRule, UpdateRule};
use crate::schedule::IntoSchedule;

/// Gradient descent, with momentum if asked for.
#[derive(Clone, Debug)]
pub struct SGD {
    common: Common,
    rule: SgdRule,
}

impl SGD {
    /// With a rate or a schedule: `SGD::new(0.01)`.
    pub fn new(learning_rate: impl IntoSchedule) -> Self {
        Self {
            common: Common::new(learning_rate),
            rule: SgdRule {
                momentum: 0.0,
                nesterov: false,
            },
        }
    }

    /// The share of the last step that is taken again, from 0, below 1. Default: 0.
    pub fn momentum(self, momentum: f64) -> Self {
        self.with(|own| own.rule.momentum = momentum)
    }

    /// Looks ahead along the momentum. Without momentum it changes nothing. Default: false.
    pub fn nesterov(self, nesterov: bool) -> Self {
        self.with(|own| own.rule.nesterov = nesterov)
    }

    offered_by_every_optimizer!();
}

impl IntoOptimizer for SGD {
    fn into_optimizer(self) -> Result<Optimizer> {
        self.common.resolve("SGD", UpdateRule::Sgd(self.rule))
    }
}

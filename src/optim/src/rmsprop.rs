//! RMSprop. Keras's formula: `v = ρ v + (1 − ρ) g²`, `s = rate · g / √(v + ε)`, `w -= s`; with `centered` the mean of the
//! gradients is kept too, and its square taken from v; with `momentum` `u = momentum · u + s`, `w -= u`. (PyTorch adds ε
//! after the root.)

use stratoscope_diagnostics::Result;

use super::builder::Common;
use super::{IntoOptimizer, Optimizer, RmspropRule, UpdateRule};
use crate::schedule::IntoSchedule;

/// Steps by the gradient over the root of its mean square.
#[derive(Clone, Debug)]
pub struct RMSprop {
    common: Common,
    rule: RmspropRule,
}

impl RMSprop {
    /// With a rate or a schedule: `RMSprop::new(1e-3)`.
    pub fn new(learning_rate: impl IntoSchedule) -> Self {
        Self {
            common: Common::new(learning_rate),
            rule: RmspropRule {
                rho: 0.9,
                momentum: 0.0,
                epsilon: 1e-7,
                centered: false,
            },
        }
    }

    /// How slowly the mean of the squared gradients moves, from 0, below 1. Default: 0.9.
    pub fn rho(self, rho: f64) -> Self {
        self.with(|own| own.rule.rho = rho)
    }

    /// The share of the last step that is taken again, from 0, below 1. Default: 0.
    pub fn momentum(self, momentum: f64) -> Self {
        self.with(|own| own.rule.momentum = momentum)
    }

    /// Added inside the square root. Default: 1e-7.
    pub fn epsilon(self, epsilon: f64) -> Self {
        self.with(|own| own.rule.epsilon = epsilon)
    }

    /// Divides by the root of the variance of the gradients in place of their mean square. Default: false.
    pub fn centered(self, centered: bool) -> Self {
        self.with(|own| own.rule.centered = centered)
    }

    offered_by_every_optimizer!();
}

impl IntoOptimizer for RMSprop {
    fn into_optimizer(self) -> Result<Optimizer> {
        self.common
            .resolve("RMSprop", UpdateRule::Rmsprop(self.rule))
    }
}

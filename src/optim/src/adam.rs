//! Adam with bias correction. Source: Kingma and Ba 2015, algorithm 1; the arithmetic is that of
//! `torch.optim.Adam`. (Google's BERT has no bias correction; Keras, PyTorch and HF have it.)

use stratoscope_diagnostics::Result;

use super::builder::Common;
use super::{AdamRule, IntoOptimizer, Optimizer, UpdateRule};
use crate::schedule::IntoSchedule;

/// Adam, without weight decay.
#[derive(Clone, Debug)]
pub struct Adam {
    common: Common,
    rule: AdamRule,
}

impl Adam {
    /// With a rate or a schedule: `Adam::new(5e-5)`.
    pub fn new(learning_rate: impl IntoSchedule) -> Self {
        Self {
            common: Common::new(learning_rate),
            rule: AdamRule {
                beta_1: 0.9,
                beta_2: 0.999,
                epsilon: 1e-8,
                weight_decay: 0.0,
                amsgrad: false,
            },
        }
    }

    /// How slowly the mean of the gradients moves, from 0, below 1. Default: 0.9.
    pub fn beta_1(self, beta_1: f64) -> Self {
        self.with(|own| own.rule.beta_1 = beta_1)
    }

    /// How slowly the mean of the squared gradients moves, from 0, below 1. Default: 0.999.
    pub fn beta_2(self, beta_2: f64) -> Self {
        self.with(|own| own.rule.beta_2 = beta_2)
    }

    /// Added outside the square root. Default: 1e-8, as in PyTorch; Keras has 1e-7.
    pub fn epsilon(self, epsilon: f64) -> Self {
        self.with(|own| own.rule.epsilon = epsilon)
    }

    /// Divides by the root of the largest second moment so far in place of the present one (Reddi, Kale and
    /// Kumar 2018), so that steps do not grow when gradients fade. Default: false.
    pub fn amsgrad(self, amsgrad: bool) -> Self {
        self.with(|own| own.rule.amsgrad = amsgrad)
    }

    offered_by_every_optimizer!();
}

impl IntoOptimizer for Adam {
    fn into_optimizer(self) -> Result<Optimizer> {
        self.common.resolve("Adam", UpdateRule::Adam(self.rule))
    }
}

//! Stochastic gradient descent. Keras's formula: `v = momentum · v − rate · g`, `w += v`; with
//! `nesterov` `w += momentum · v − rate · g`. (PyTorch keeps the rate out of v, so that a change of
//! the rate acts on old gradients too; with a constant rate both are the same.)

use stratoscope_diagnostics::Result;

use super::average::Ema;
use super::clip::Clip;
use super::groups::{check_layer_decay, check_rates};
use super::{
    Identity, IntoOptimizer, Optimizer, SgdRule, UpdateRule, check_number, check_schedule,
};
use crate::schedule::{IntoSchedule, Schedule};

/// Gradient descent, with momentum if asked for.
#[derive(Clone, Debug)]
pub struct SGD {
    schedule: Schedule,
    rule: SgdRule,
    clip: Clip,
    ema: Ema,
    layer_decay: Option<f64>,
    rates: Vec<(String, f64)>,
    identity: Identity,
}

impl SGD {
    /// With a rate or a schedule: `SGD::new(0.01)`.
    pub fn new(learning_rate: impl IntoSchedule) -> Self {
        Self {
            schedule: learning_rate.into_schedule(),
            rule: SgdRule {
                momentum: 0.0,
                nesterov: false,
            },
            clip: Clip::default(),
            ema: Ema::default(),
            layer_decay: None,
            rates: Vec::new(),
            identity: Identity::new(),
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
        check_schedule("SGD", &self.schedule)?;
        check_number("SGD", "momentum", self.rule.momentum)?;
        Ok(Optimizer {
            name: "SGD",
            rule: UpdateRule::Sgd(self.rule),
            schedule: self.schedule,
            clipping: self.clip.resolve("SGD")?,
            averaging: self.ema.resolve("SGD")?,
            layer_decay: check_layer_decay("SGD", self.layer_decay)?,
            rates: check_rates("SGD", self.rates)?,
            excluded: None,
            by_name: false,
            identity: self.identity,
        })
    }
}

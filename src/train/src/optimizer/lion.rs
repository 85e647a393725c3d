//! Lion: steps by the sign of a momentum. Source: Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms",
//! program 1: `c = β₁ m + (1 − β₁) g`, `w -= rate · (sign(c) + decay · w)`, `m = β₂ m + (1 − β₂) g`; Keras's formula.

use stratoscope_diagnostics::Result;

use super::average::Ema;
use super::clip::Clip;
use super::groups::{check_layer_decay, check_rates};
use super::{
    Identity, IntoOptimizer, LionRule, Optimizer, UpdateRule, check_number, check_schedule,
};
use crate::schedule::{IntoSchedule, Schedule};

/// Lion, which keeps half as much as Adam. Each weight moves by the rate, so rates are 3 to 10 times smaller.
#[derive(Clone, Debug)]
pub struct Lion {
    schedule: Schedule,
    rule: LionRule,
    clip: Clip,
    ema: Ema,
    layer_decay: Option<f64>,
    rates: Vec<(String, f64)>,
    excluded: Option<Vec<String>>,
    identity: Identity,
}

impl Lion {
    /// With a rate or a schedule: `Lion::new(1e-5)`.
    pub fn new(learning_rate: impl IntoSchedule) -> Self {
        Self {
            schedule: learning_rate.into_schedule(),
            rule: LionRule {
                beta_1: 0.9,
                beta_2: 0.99,
                weight_decay: 0.0,
                decay_all: false,
            },
            clip: Clip::default(),
            ema: Ema::default(),
            layer_decay: None,
            rates: Vec::new(),
            excluded: None,
            identity: Identity::new(),
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
        check_schedule("Lion", &self.schedule)?;
        check_number("Lion", "beta_1", self.rule.beta_1)?;
        check_number("Lion", "beta_2", self.rule.beta_2)?;
        check_number("Lion", "weight_decay", self.rule.weight_decay)?;
        Ok(Optimizer {
            name: "Lion",
            rule: UpdateRule::Lion(self.rule),
            schedule: self.schedule,
            clipping: self.clip.resolve("Lion")?,
            averaging: self.ema.resolve("Lion")?,
            layer_decay: check_layer_decay("Lion", self.layer_decay)?,
            rates: check_rates("Lion", self.rates)?,
            excluded: self.excluded,
            by_name: false,
            identity: self.identity,
        })
    }
}

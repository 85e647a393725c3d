//! Adam with bias correction. Source: Kingma and Ba 2015, algorithm 1; the arithmetic is that of
//! `torch.optim.Adam`. (Google's BERT has no bias correction; Keras, PyTorch and HF have it.)

use stratoscope_diagnostics::Result;

use super::average::Ema;
use super::clip::Clip;
use super::groups::{check_layer_decay, check_rates};
use super::{AdamRule, Identity, IntoOptimizer, Optimizer, UpdateRule, check_adam, check_schedule};
use crate::schedule::{IntoSchedule, Schedule};

/// Adam, without weight decay.
#[derive(Clone, Debug)]
pub struct Adam {
    schedule: Schedule,
    rule: AdamRule,
    clip: Clip,
    ema: Ema,
    layer_decay: Option<f64>,
    rates: Vec<(String, f64)>,
    identity: Identity,
}

impl Adam {
    /// With a rate or a schedule: `Adam::new(5e-5)`.
    pub fn new(learning_rate: impl IntoSchedule) -> Self {
        Self {
            schedule: learning_rate.into_schedule(),
            rule: AdamRule {
                beta_1: 0.9,
                beta_2: 0.999,
                epsilon: 1e-8,
                weight_decay: 0.0,
                decay_all: false,
                amsgrad: false,
            },
            clip: Clip::default(),
            ema: Ema::default(),
            layer_decay: None,
            rates: Vec::new(),
            identity: Identity::new(),
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
        check_schedule("Adam", &self.schedule)?;
        check_adam("Adam", &self.rule)?;
        Ok(Optimizer {
            name: "Adam",
            rule: UpdateRule::Adam(self.rule),
            schedule: self.schedule,
            clipping: self.clip.resolve("Adam")?,
            averaging: self.ema.resolve("Adam")?,
            layer_decay: check_layer_decay("Adam", self.layer_decay)?,
            rates: check_rates("Adam", self.rates)?,
            excluded: None,
            by_name: false,
            identity: self.identity,
        })
    }
}

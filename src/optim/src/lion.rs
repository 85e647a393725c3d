//! Lion: steps by the sign of a momentum. Source: Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms",
//! program 1: `c = β₁ m + (1 − β₁) g`, `w -= rate · (sign(c) + decay · w)`, `m = β₂ m + (1 − β₂) g`; Keras's formula.

mod kernel;

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};
use stratoscope_diagnostics::Result;

use super::builder::Common;
use super::change::Change;
use super::kernel::rehearsal;
use super::on_slices::{in_place, zeros};
use super::on_tensors::{flat, kept};
use super::rule::{OnTensors, Planned, Rule, Variable};
use super::step::{Moments, VariableUpdate};
use super::{IntoOptimizer, Optimizer, Slot, UpdateRule};
use crate::schedule::IntoSchedule;
use kernel::LionStep;

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

/// The numbers of Lion.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LionRule {
    /// The share of the momentum in the direction of a step.
    pub beta_1: f64,
    /// How slowly the momentum moves.
    pub beta_2: f64,
    /// Decoupled: `w -= rate · decay · w`, before the step.
    pub weight_decay: f64,
}

impl LionRule {
    /// The numbers of the step of a variable.
    fn step(&self, update: &VariableUpdate) -> LionStep {
        LionStep::new(self, update.rate, update.decay(self.weight_decay))
    }
}

impl Rule for LionRule {
    fn numbers(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("beta_1", self.beta_1),
            ("beta_2", self.beta_2),
            ("weight_decay", self.weight_decay),
        ]
    }

    fn slots(&self) -> Vec<Slot> {
        vec![Slot::Momentum]
    }

    fn weight_decay(&self) -> f64 {
        self.weight_decay
    }

    fn offers_weight_decay(&self) -> bool {
        true
    }

    fn set_weight_decay(&mut self, decay: f64) {
        self.weight_decay = decay;
    }

    fn on_slices(&self, variable: Variable<'_>) -> Change {
        let (pass, step) = (variable.pass(), self.step(variable.update));
        let Variable {
            weights,
            gradient,
            moments,
            ..
        } = variable;
        let mut change = Change::default();
        let momentum = (moments.first).get_or_insert_with(|| zeros(gradient.len()));
        in_place(momentum, |momentum| {
            change = kernel::lion(weights, momentum, gradient, pass, step);
        });
        change
    }

    fn rehearse(&self, planned: &Planned<'_>) -> Change {
        let (prepare, step) = (planned.update.prepare, self.step(planned.update));
        let update = |weights: &mut [f32], kept: [&mut [f32]; 3], gradients: &[f32]| {
            let [momentum, ..] = kept;
            kernel::block(weights, momentum, gradients, prepare, step);
        };
        rehearsal(planned.weights, planned.kept, planned.gradient, update)
    }
}

impl OnTensors for LionRule {
    fn on_tensors<const D: usize>(
        &self,
        weights: &mut Tensor<D>,
        gradient: Tensor<D>,
        moments: &mut Moments,
        update: &VariableUpdate,
    ) {
        let step = self.step(update);
        let momentum = kept(&mut moments.first, &gradient);
        let direction = momentum.clone().mul_scalar(step.beta_1)
            + gradient.clone().mul_scalar(1.0 - step.beta_1);
        let remaining = weights.clone().mul_scalar(step.keep);
        *weights = remaining - direction.sign().mul_scalar(step.rate);
        let momentum = momentum.mul_scalar(step.beta_2) + gradient.mul_scalar(1.0 - step.beta_2);
        moments.first = Some(flat(momentum));
    }
}

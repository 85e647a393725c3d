//! LAMB: Adam's direction, of each variable as long as its weights. Source: You et al. 2020, "Large Batch Optimization for
//! Deep Learning: Training BERT in 76 minutes", algorithm 2, in Keras's form: with the moments `m̂` and `v̂` of Adam, corrected
//! for their bias, `u = m̂ / (√v̂ + ε)` and `w -= rate · ‖w‖/‖u‖ · u`, where the ratio is 1 if one of the norms is 0.

mod kernel;

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};
use stratoscope_diagnostics::Result;
use stratoscope_gpu as kernels;

use super::adam;
use super::builder::Common;
use super::change::Change;
use super::rule::{OnTensors, Planned, Rule, Variable};
use super::step::{Moments, VariableUpdate};
use super::{AdamRule, IntoOptimizer, Optimizer, Slot, UpdateRule};
use crate::schedule::IntoSchedule;
use kernel::LambStep;

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

/// The numbers of LAMB.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LambRule {
    /// How slowly the mean of the gradients moves.
    pub beta_1: f64,
    /// How slowly the mean of the squared gradients moves.
    pub beta_2: f64,
    /// Added outside the square root.
    pub epsilon: f64,
    /// Decoupled: `w -= rate · decay · w`, before the step.
    pub weight_decay: f64,
}

impl LambRule {
    /// The rule whose moments it keeps and whose direction it takes.
    pub(crate) fn adam(&self) -> AdamRule {
        AdamRule {
            beta_1: self.beta_1,
            beta_2: self.beta_2,
            epsilon: self.epsilon,
            weight_decay: self.weight_decay,
            amsgrad: false,
        }
    }

    /// The numbers of the step of a variable, before its norms are known.
    fn step(&self, update: &VariableUpdate) -> LambStep {
        let decay = update.decay(self.weight_decay);
        LambStep::new(self, update.rate, decay, update.time)
    }
}

impl Rule for LambRule {
    fn numbers(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("beta_1", self.beta_1),
            ("beta_2", self.beta_2),
            ("epsilon", self.epsilon),
            ("weight_decay", self.weight_decay),
        ]
    }

    fn slots(&self) -> Vec<Slot> {
        vec![Slot::M, Slot::V]
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

    fn needs_whole_variables(&self) -> bool {
        true
    }

    fn tracks_pieces(&self) -> bool {
        true
    }

    fn on_slices(&self, variable: Variable<'_>) -> Change {
        let (step, prepare) = (self.step(variable.update), variable.update.prepare);
        let gradient = variable.gradient;
        adam::on_slices(variable, false, |weights, first, second| {
            step.for_variable(weights, [Some(first), Some(second)], gradient, prepare)
        })
    }

    fn rehearse(&self, planned: &Planned<'_>) -> Change {
        let [first, second, _] = planned.kept;
        let (weights, gradient) = (planned.weights, planned.gradient);
        let step = self.step(planned.update);
        let step = step.for_variable(weights, [first, second], gradient, planned.update.prepare);
        adam::rehearse(planned, false, step)
    }
}

impl OnTensors for LambRule {
    /// The norms stay on the device: nothing waits for them.
    fn on_tensors<const D: usize>(
        &self,
        weights: &mut Tensor<D>,
        gradient: Tensor<D>,
        moments: &mut Moments,
        update: &VariableUpdate,
    ) {
        let step = self.step(update);
        let direction = adam::direction(gradient, moments, step.adam, false);
        let remaining = weights.clone().mul_scalar(step.adam.keep);
        let norm = |values: &Tensor<D>| kernels::sum(values.clone() * values.clone()).sqrt();
        let (of_weights, of_direction) = (norm(&remaining), norm(&direction));
        let is_one = (of_weights.clone().min_pair(of_direction.clone())).lower_equal_elem(0.0);
        let ratio = (of_weights / of_direction).mul_scalar(step.correction as f32);
        let size = ratio.mask_fill(is_one, 1.0).mul_scalar(step.adam.size);
        *weights = remaining - direction * size.reshape([1; D]);
    }
}

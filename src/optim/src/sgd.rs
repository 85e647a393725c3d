//! Stochastic gradient descent. Keras's formula: `v = momentum · v − rate · g`, `w += v`; with
//! `nesterov` `w += momentum · v − rate · g`. (PyTorch keeps the rate out of v, so that a change of
//! the rate acts on old gradients too; with a constant rate both are the same.)

mod kernel;

use std::fmt;

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
use kernel::SgdStep;

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

/// The numbers of gradient descent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SgdRule {
    /// The share of the last step that is taken again.
    pub momentum: f64,
    /// Whether to look ahead along the momentum.
    pub nesterov: bool,
}

impl SgdRule {
    /// The numbers of the step of a variable.
    fn step(&self, update: &VariableUpdate) -> SgdStep {
        SgdStep {
            rate: update.rate as f32,
            momentum: self.momentum as f32,
            nesterov: self.nesterov,
        }
    }
}

impl Rule for SgdRule {
    fn numbers(&self) -> Vec<(&'static str, f64)> {
        vec![("momentum", self.momentum)]
    }

    fn slots(&self) -> Vec<Slot> {
        let velocity = (self.momentum != 0.0).then_some(Slot::Velocity);
        velocity.into_iter().collect()
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.momentum != 0.0 {
            write!(f, ".momentum({})", self.momentum)?;
            if self.nesterov {
                f.write_str(".nesterov(true)")?;
            }
        }
        Ok(())
    }

    fn on_slices(&self, variable: Variable<'_>) -> Change {
        let (pass, step) = (variable.pass(), self.step(variable.update));
        let Variable {
            weights,
            gradient,
            moments,
            ..
        } = variable;
        if self.momentum == 0.0 {
            return kernel::sgd(weights, gradient, pass, step);
        }
        let mut change = Change::default();
        let velocity = (moments.first).get_or_insert_with(|| zeros(gradient.len()));
        in_place(velocity, |velocity| {
            change = kernel::sgd_with_momentum(weights, velocity, gradient, pass, step);
        });
        change
    }

    fn rehearse(&self, planned: &Planned<'_>) -> Change {
        let (prepare, step) = (planned.update.prepare, self.step(planned.update));
        let update = |weights: &mut [f32], kept: [&mut [f32]; 3], gradients: &[f32]| {
            let [velocity, ..] = kept;
            match self.momentum == 0.0 {
                true => kernel::sgd_block(weights, gradients, prepare, step),
                false => kernel::momentum_block(weights, velocity, gradients, prepare, step),
            }
        };
        rehearsal(planned.weights, planned.kept, planned.gradient, update)
    }
}

impl OnTensors for SgdRule {
    fn on_tensors<const D: usize>(
        &self,
        weights: &mut Tensor<D>,
        gradient: Tensor<D>,
        moments: &mut Moments,
        update: &VariableUpdate,
    ) {
        let move_by = gradient.clone().mul_scalar(self.step(update).rate);
        if self.momentum == 0.0 {
            *weights = weights.clone() - move_by;
            return;
        }
        let momentum = self.momentum as f32;
        let velocity = kept(&mut moments.first, &gradient).mul_scalar(momentum) - move_by.clone();
        let moved = match self.nesterov {
            true => velocity.clone().mul_scalar(momentum) - move_by,
            false => velocity.clone(),
        };
        *weights = weights.clone() + moved;
        moments.first = Some(flat(velocity));
    }
}

//! RMSprop. Keras's formula: `v = ρ v + (1 − ρ) g²`, `s = rate · g / √(v + ε)`, `w -= s`; with `centered` the mean of the
//! gradients is kept too, and its square taken from v; with `momentum` `u = momentum · u + s`, `w -= u`. (PyTorch adds ε
//! after the root.)

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
use kernel::RmspropStep;

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

/// The numbers of RMSprop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RmspropRule {
    /// How slowly the mean of the squared gradients moves.
    pub rho: f64,
    /// The share of the last step that is taken again.
    pub momentum: f64,
    /// Added inside the square root.
    pub epsilon: f64,
    /// Whether the square of the mean gradient is taken from the mean square.
    pub centered: bool,
}

impl RmspropRule {
    /// The numbers of the step of a variable.
    fn step(&self, update: &VariableUpdate) -> RmspropStep {
        RmspropStep::new(self, update.rate)
    }
}

impl Rule for RmspropRule {
    fn numbers(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("rho", self.rho),
            ("momentum", self.momentum),
            ("epsilon", self.epsilon),
        ]
    }

    fn slots(&self) -> Vec<Slot> {
        let velocity = (self.momentum != 0.0).then_some(Slot::Velocity);
        let mean = self.centered.then_some(Slot::MeanGradient);
        let slots = [velocity, Some(Slot::MeanSquare), mean];
        slots.into_iter().flatten().collect()
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ".rho({})", self.rho)?;
        if self.momentum != 0.0 {
            write!(f, ".momentum({})", self.momentum)?;
        }
        if self.centered {
            f.write_str(".centered(true)")?;
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
        let count = gradient.len();
        let squares = moments.second.get_or_insert_with(|| zeros(count));
        // What is not kept has no elements.
        let (mut no_velocity, mut no_mean) = (zeros(0), zeros(0));
        let velocity = match self.momentum == 0.0 {
            true => &mut no_velocity,
            false => moments.first.get_or_insert_with(|| zeros(count)),
        };
        let means = match self.centered {
            false => &mut no_mean,
            true => moments.largest.get_or_insert_with(|| zeros(count)),
        };
        let mut change = Change::default();
        in_place(velocity, |velocity| {
            in_place(squares, |squares| {
                in_place(means, |means| {
                    change =
                        kernel::rmsprop(weights, velocity, squares, means, gradient, pass, step);
                });
            });
        });
        change
    }

    fn rehearse(&self, planned: &Planned<'_>) -> Change {
        let (prepare, step) = (planned.update.prepare, self.step(planned.update));
        let update = |weights: &mut [f32], kept: [&mut [f32]; 3], gradients: &[f32]| {
            let [velocity, squares, means] = kept;
            let velocity = if self.momentum != 0.0 {
                velocity
            } else {
                &mut []
            };
            let means = if self.centered { means } else { &mut [] };
            kernel::block(weights, velocity, squares, means, gradients, prepare, step);
        };
        rehearsal(planned.weights, planned.kept, planned.gradient, update)
    }
}

impl OnTensors for RmspropRule {
    fn on_tensors<const D: usize>(
        &self,
        weights: &mut Tensor<D>,
        gradient: Tensor<D>,
        moments: &mut Moments,
        update: &VariableUpdate,
    ) {
        let step = self.step(update);
        let others = 1.0 - step.rho;
        let square = kept(&mut moments.second, &gradient).mul_scalar(step.rho)
            + (gradient.clone() * gradient.clone()).mul_scalar(others);
        let spread = match self.centered {
            false => square.clone(),
            true => {
                let mean = kept(&mut moments.largest, &gradient).mul_scalar(step.rho)
                    + gradient.clone().mul_scalar(others);
                let spread = square.clone() - mean.clone() * mean.clone();
                moments.largest = Some(flat(mean));
                spread
            }
        };
        let root = spread.add_scalar(step.epsilon).sqrt();
        let mut move_by = gradient.clone().mul_scalar(step.rate) / root;
        if self.momentum != 0.0 {
            move_by = kept(&mut moments.first, &gradient).mul_scalar(step.momentum) + move_by;
            moments.first = Some(flat(move_by.clone()));
        }
        *weights = weights.clone() - move_by;
        moments.second = Some(flat(square));
    }
}

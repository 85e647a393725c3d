//! Adam with bias correction. Source: Kingma and Ba 2015, algorithm 1; the arithmetic is that of
//! `torch.optim.Adam`. (Google's BERT has no bias correction; Keras, PyTorch and HF have it.)

pub(crate) mod kernel;

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
use kernel::{AdamState, AdamStep, Touched};

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

/// The numbers of Adam, and of AdamW where there is a decay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdamRule {
    /// How slowly the mean of the gradients moves.
    pub beta_1: f64,
    /// How slowly the mean of the squared gradients moves.
    pub beta_2: f64,
    /// Added outside the square root.
    pub epsilon: f64,
    /// Decoupled: `w -= rate · decay · w`, before the step.
    pub weight_decay: f64,
    /// Whether the largest second moment so far stands in for the present one.
    pub amsgrad: bool,
}

impl AdamRule {
    /// The numbers of the step of a variable.
    pub(crate) fn step(&self, update: &VariableUpdate) -> AdamStep {
        let decay = update.decay(self.weight_decay);
        AdamStep::new(self, update.rate, decay, update.time)
    }
}

impl Rule for AdamRule {
    fn numbers(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("beta_1", self.beta_1),
            ("beta_2", self.beta_2),
            ("epsilon", self.epsilon),
            ("weight_decay", self.weight_decay),
        ]
    }

    fn slots(&self) -> Vec<Slot> {
        let mut slots = vec![Slot::M, Slot::V];
        slots.extend(self.amsgrad.then_some(Slot::LargestV));
        slots
    }

    fn weight_decay(&self) -> f64 {
        self.weight_decay
    }

    fn set_weight_decay(&mut self, decay: f64) {
        self.weight_decay = decay;
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.amsgrad {
            f.write_str(".amsgrad(true)")?;
        }
        Ok(())
    }

    fn on_gpu(&self) -> Option<AdamRule> {
        (!self.amsgrad).then_some(*self)
    }

    fn tracks_pieces(&self) -> bool {
        true
    }

    fn on_slices(&self, variable: Variable<'_>) -> Change {
        let step = self.step(variable.update);
        on_slices(variable, self.amsgrad, |_, _, _| step)
    }

    fn rehearse(&self, planned: &Planned<'_>) -> Change {
        rehearse(planned, self.amsgrad, self.step(planned.update))
    }
}

/// Adam with the numbers that `numbers` makes of the weights and both moments before the step.
pub(crate) fn on_slices(
    variable: Variable<'_>,
    amsgrad: bool,
    numbers: impl FnOnce(&[f32], &[f32], &[f32]) -> AdamStep,
) -> Change {
    let pass = variable.pass();
    let Variable {
        weights,
        gradient,
        moments,
        ..
    } = variable;
    let count = gradient.len();
    let first = moments.first.get_or_insert_with(|| zeros(count));
    let second = moments.second.get_or_insert_with(|| zeros(count));
    // What is not kept has no elements.
    let mut none = zeros(0);
    let largest = match amsgrad {
        false => &mut none,
        true => moments.largest.get_or_insert_with(|| zeros(count)),
    };
    let mut change = Change::default();
    in_place(first, |first| {
        in_place(second, |second| {
            in_place(largest, |largest| {
                let step = numbers(weights, first, second);
                let touched = (moments.touched)
                    .get_or_insert_with(|| Touched::of([&*first, &*second, &*largest]));
                let state = AdamState {
                    first,
                    second,
                    largest: amsgrad.then_some(largest),
                    touched,
                };
                change = kernel::adam(weights, state, gradient, pass, step);
            });
        });
    });
    change
}

/// The change that [`on_slices`] would make.
pub(crate) fn rehearse(planned: &Planned<'_>, amsgrad: bool, step: AdamStep) -> Change {
    let prepare = planned.update.prepare;
    let update = |weights: &mut [f32], kept: [&mut [f32]; 3], gradients: &[f32]| {
        let [first, second, largest] = kept;
        match amsgrad {
            true => {
                kernel::amsgrad_block(weights, first, second, largest, gradients, prepare, step);
            }
            false => kernel::block(weights, first, second, gradients, prepare, step),
        }
    };
    rehearsal(planned.weights, planned.kept, planned.gradient, update)
}

impl OnTensors for AdamRule {
    fn on_tensors<const D: usize>(
        &self,
        weights: &mut Tensor<D>,
        gradient: Tensor<D>,
        moments: &mut Moments,
        update: &VariableUpdate,
    ) {
        let step = self.step(update);
        let direction = direction(gradient, moments, step, self.amsgrad);
        let remaining = weights.clone().mul_scalar(step.keep);
        *weights = remaining - direction.mul_scalar(step.size);
    }
}

/// Moves Adam's moments: the first over the root of the second, the latter corrected for its bias.
pub(crate) fn direction<const D: usize>(
    gradient: Tensor<D>,
    moments: &mut Moments,
    step: AdamStep,
    amsgrad: bool,
) -> Tensor<D> {
    let first = kept(&mut moments.first, &gradient);
    let second = kept(&mut moments.second, &gradient);
    let first = first.clone() + (gradient.clone() - first).mul_scalar(step.first);
    let second = second.mul_scalar(step.beta_2)
        + (gradient.clone() * gradient.clone()).mul_scalar(step.second);
    let largest = amsgrad.then(|| kept(&mut moments.largest, &gradient).max_pair(second.clone()));
    let denominator = largest
        .as_ref()
        .unwrap_or(&second)
        .clone()
        .sqrt()
        .div_scalar(step.root)
        .add_scalar(step.epsilon);
    let direction = first.clone() / denominator;
    moments.first = Some(flat(first));
    moments.second = Some(flat(second));
    moments.largest = largest.map(flat);
    direction
}

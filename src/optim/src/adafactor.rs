//! Adafactor: squared gradients by row and column, steps in proportion to the weights. Source: Shazeer and Stern 2018,
//! "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost", algorithms 4 to 6, in Keras's form. At step `t`, with
//! `β = 1 − tᵇ` and `ρ` the rate, at most 1/√t:
//!
//! - of a matrix `r = β r + (1 − β) mean(g² + ε₁)` over each row, `c` over each column, and `v = r c / mean(r)`; of a vector
//!   `v = β v + (1 − β) (g² + ε₁)`;
//! - `u = g / √v`, divided by `max(1, rms(u) / threshold)`;
//! - `w -= max(ε₂, rms(w)) · ρ · u`.
//!
//! Keras holds the rate at 1/√t also with `relative_step=False`; here it is then the rate as given.

mod kernel;

use std::fmt;

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};
use stratoscope_diagnostics::Result;
use stratoscope_gpu as kernels;

use super::builder::Common;
use super::change::Change;
use super::kernel::Pass;
use super::norm::floats;
use super::on_slices::{in_place, zeros};
use super::on_tensors::{flat, kept};
use super::rehearse::contiguous;
use super::rule::{OnTensors, Planned, Rule, Variable};
use super::slot::matrices;
use super::step::{Moments, VariableUpdate};
use super::{IntoOptimizer, Optimizer, Slot, StoredTensor, UpdateRule};
use crate::schedule::IntoSchedule;
use kernel::{AdafactorState, AdafactorStep};

/// Adafactor, which keeps two numbers beside each row and column of a matrix in place of two beside each weight.
#[derive(Clone, Debug)]
pub struct Adafactor {
    common: Common,
    rule: AdafactorRule,
}

impl Adafactor {
    /// With a rate or a schedule: `Adafactor::new(1e-3)`.
    pub fn new(learning_rate: impl IntoSchedule) -> Self {
        Self {
            common: Common::new(learning_rate),
            rule: AdafactorRule {
                beta_2_decay: -0.8,
                epsilon_1: 1e-30,
                epsilon_2: 1e-3,
                clip_threshold: 1.0,
                relative_step: true,
                weight_decay: 0.0,
            },
        }
    }

    /// The old means of the squared gradients have the share `1 − stepᵇ` in the new ones, with this as `b`, from −1, below 0.
    /// Default: −0.8.
    pub fn beta_2_decay(self, beta_2_decay: f64) -> Self {
        self.with(|own| own.rule.beta_2_decay = beta_2_decay)
    }

    /// Added to every squared gradient, above 0. Default: 1e-30.
    pub fn epsilon_1(self, epsilon_1: f64) -> Self {
        self.with(|own| own.rule.epsilon_1 = epsilon_1)
    }

    /// A step of a variable is the rate times its root mean square, or times this where that is larger. Default: 1e-3.
    pub fn epsilon_2(self, epsilon_2: f64) -> Self {
        self.with(|own| own.rule.epsilon_2 = epsilon_2)
    }

    /// A direction of a larger root mean square is shortened to it; 1 or more. Default: 1.
    pub fn clip_threshold(self, clip_threshold: f64) -> Self {
        self.with(|own| own.rule.clip_threshold = clip_threshold)
    }

    /// Holds the rate at 1/√step or below. Default: true.
    pub fn relative_step(self, relative_step: bool) -> Self {
        self.with(|own| own.rule.relative_step = relative_step)
    }

    /// `w -= rate · decay · w` before each step, as in Keras. Default: 0.
    pub fn weight_decay(self, weight_decay: f64) -> Self {
        self.with(|own| own.rule.weight_decay = weight_decay)
    }

    offered_with_weight_decay!();

    offered_by_every_optimizer!();
}

impl IntoOptimizer for Adafactor {
    fn into_optimizer(self) -> Result<Optimizer> {
        self.common
            .resolve("Adafactor", UpdateRule::Adafactor(self.rule))
    }
}

/// The numbers of Adafactor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdafactorRule {
    /// The old means have the share `1 − stepᵇ` in the new ones, with this as `b`.
    pub beta_2_decay: f64,
    /// Added to every squared gradient.
    pub epsilon_1: f64,
    /// The least size of a variable that its steps are measured by.
    pub epsilon_2: f64,
    /// The root mean square that the direction of a variable is cut to.
    pub clip_threshold: f64,
    /// Whether the rate is at most 1/√step.
    pub relative_step: bool,
    /// Decoupled: `w -= rate · decay · w`, before the step.
    pub weight_decay: f64,
}

impl AdafactorRule {
    /// The numbers of the step of a variable.
    fn step(&self, update: &VariableUpdate) -> AdafactorStep {
        let decay = update.decay(self.weight_decay);
        AdafactorStep::new(self, update.rate, decay, update.time)
    }
}

impl Rule for AdafactorRule {
    fn numbers(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("beta_2_decay", self.beta_2_decay),
            ("epsilon_1", self.epsilon_1),
            ("epsilon_2", self.epsilon_2),
            ("clip_threshold", self.clip_threshold),
            ("weight_decay", self.weight_decay),
        ]
    }

    fn slots(&self) -> Vec<Slot> {
        vec![Slot::RowMeans, Slot::ColumnMeans, Slot::VectorMeanSquare]
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

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.relative_step {
            f.write_str(".relative_step(false)")?;
        }
        Ok(())
    }

    fn on_slices(&self, variable: Variable<'_>) -> Change {
        let (pass, step) = (variable.pass(), self.step(variable.update));
        let Variable {
            weights,
            gradient,
            shape,
            moments,
            ..
        } = variable;
        let mut change = Change::default();
        let mut made = |state: AdafactorState<'_>| {
            change = kernel::adafactor(weights, state, gradient, pass, step);
        };
        match matrices(shape) {
            None => {
                let means = moments.second.get_or_insert_with(|| zeros(gradient.len()));
                in_place(means, |means| made(AdafactorState::Vector(means)));
            }
            Some([count, height, width]) => {
                let rows = moments.rows.get_or_insert_with(|| zeros(count * height));
                let columns = (moments.columns).get_or_insert_with(|| zeros(count * width));
                in_place(rows, |rows| {
                    in_place(columns, |columns| {
                        made(AdafactorState::Matrices {
                            rows,
                            columns,
                            sizes: [height, width],
                        });
                    });
                });
            }
        }
        change
    }

    fn rehearse(&self, planned: &Planned<'_>) -> Change {
        // It needs all elements at once: it is made on copies of the whole variable.
        let step = self.step(planned.update);
        let copy = |stored: StoredTensor, count: usize| {
            let kept = planned.moments.and_then(|moments| moments.tensor(stored));
            let kept = kept.cloned().and_then(contiguous);
            kept.map_or_else(|| vec![0.0; count], |kept| floats(&kept).into_owned())
        };
        let pass = Pass {
            prepare: planned.update.prepare,
            is_measured: true,
        };
        let mut weights = planned.weights.to_vec();
        let mut made = |state| kernel::adafactor(&mut weights, state, planned.gradient, pass, step);
        match matrices(planned.shape) {
            None => {
                let mut means = copy(StoredTensor::Second, planned.gradient.len());
                made(AdafactorState::Vector(&mut means))
            }
            Some([count, height, width]) => {
                let mut rows = copy(StoredTensor::Rows, count * height);
                let mut columns = copy(StoredTensor::Columns, count * width);
                made(AdafactorState::Matrices {
                    rows: &mut rows,
                    columns: &mut columns,
                    sizes: [height, width],
                })
            }
        }
    }
}

impl OnTensors for AdafactorRule {
    /// As for LAMB nothing waits for the norms.
    fn on_tensors<const D: usize>(
        &self,
        weights: &mut Tensor<D>,
        gradient: Tensor<D>,
        moments: &mut Moments,
        update: &VariableUpdate,
    ) {
        let step = self.step(update);
        let count = gradient.shape().num_elements();
        let squares = (gradient.clone() * gradient.clone()).add_scalar(step.epsilon_1);
        // Moves what is kept, which has the shape of the new value.
        let moved = |moment: &mut Option<Tensor<1>>, new: Tensor<D>| {
            let old = kept(moment, &new).mul_scalar(step.beta);
            let new = old + new.mul_scalar(step.others);
            *moment = Some(flat(new.clone()));
            new
        };
        let direction = match matrices(&gradient.dims()) {
            None => gradient / moved(&mut moments.second, squares).sqrt(),
            Some(_) => {
                let rows = moved(&mut moments.rows, squares.clone().mean_dim(D - 1));
                let columns = moved(&mut moments.columns, squares.mean_dim(D - 2));
                let share = rows.clone() / rows.mean_dim(D - 2);
                gradient / share.sqrt() / columns.sqrt()
            }
        };
        let size = |values: &Tensor<D>| {
            let sum = kernels::sum(values.clone() * values.clone());
            sum.div_scalar(count as f32).sqrt()
        };
        let remaining = weights.clone().mul_scalar(step.keep);
        let shortened = size(&direction).div_scalar(step.clip_threshold as f32);
        let length = size(&remaining)
            .clamp_min(step.epsilon_2 as f32)
            .mul_scalar(step.rate as f32)
            / shortened.clamp_min(1.0);
        *weights = remaining - direction * length.reshape([1; D]);
    }
}

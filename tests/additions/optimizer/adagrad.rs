//! AdaGrad: a rate for each weight, which falls with the sum of its squared gradients. Source: Duchi et al. 2011, "Adaptive Subgradient
//! Methods for Online Learning and Stochastic Optimization", with diagonal matrices; PyTorch's formula and defaults: `s += g²`,
//! `w -= rate · g / (√s + epsilon)`.

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
use kernel::AdagradStep;

/// AdaGrad. Weights with rare gradients keep a high rate.
#[derive(Clone, Debug)]
pub struct Adagrad {
    common: Common,
    rule: AdagradRule,
}

impl Adagrad {
    /// With a rate or a schedule: `Adagrad::new(0.01)`.
    pub fn new(learning_rate: impl IntoSchedule) -> Self {
        Self {
            common: Common::new(learning_rate),
            rule: AdagradRule { epsilon: 1e-10 },
        }
    }

    /// Added to the root, above 0. Default: 1e-10.
    pub fn epsilon(self, epsilon: f64) -> Self {
        self.with(|own| own.rule.epsilon = epsilon)
    }

    offered_by_every_optimizer!();
}

impl IntoOptimizer for Adagrad {
    fn into_optimizer(self) -> Result<Optimizer> {
        self.common
            .resolve("Adagrad", UpdateRule::Adagrad(self.rule))
    }
}

/// The numbers of AdaGrad.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdagradRule {
    /// Added to the root.
    pub epsilon: f64,
}

impl AdagradRule {
    /// The numbers of the step of a variable.
    fn step(&self, update: &VariableUpdate) -> AdagradStep {
        AdagradStep {
            rate: update.rate as f32,
            epsilon: self.epsilon as f32,
        }
    }
}

impl Rule for AdagradRule {
    fn numbers(&self) -> Vec<(&'static str, f64)> {
        vec![("epsilon", self.epsilon)]
    }

    fn slots(&self) -> Vec<Slot> {
        vec![Slot::SquareSum]
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
        let sums = (moments.second).get_or_insert_with(|| zeros(gradient.len()));
        in_place(sums, |sums| {
            change = kernel::adagrad(weights, sums, gradient, pass, step);
        });
        change
    }

    fn rehearse(&self, planned: &Planned<'_>) -> Change {
        let (prepare, step) = (planned.update.prepare, self.step(planned.update));
        let update = |weights: &mut [f32], kept: [&mut [f32]; 3], gradients: &[f32]| {
            let [_, sums, _] = kept;
            kernel::block(weights, sums, gradients, prepare, step);
        };
        rehearsal(planned.weights, planned.kept, planned.gradient, update)
    }
}

impl OnTensors for AdagradRule {
    fn on_tensors<const D: usize>(
        &self,
        weights: &mut Tensor<D>,
        gradient: Tensor<D>,
        moments: &mut Moments,
        update: &VariableUpdate,
    ) {
        let step = self.step(update);
        let sum = kept(&mut moments.second, &gradient) + gradient.clone() * gradient.clone();
        let root = sum.clone().sqrt().add_scalar(step.epsilon);
        *weights = weights.clone() - gradient.mul_scalar(step.rate) / root;
        moments.second = Some(flat(sum));
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::kernel::Pass;

    const GRADIENTS: [f32; 3] = [0.3, -0.4, 1.2];
    /// The roots of the sums are 0.3, 0.5 and 1.3; with a rate of 0.1 the weight moves by −0.1, +0.08 and −0.12 / 1.3.
    const WEIGHTS: [f64; 3] = [0.4, 0.48, 0.48 - 0.12 / 1.3];

    fn update(rule: AdagradRule) -> VariableUpdate {
        VariableUpdate {
            rule: UpdateRule::Adagrad(rule),
            rate: 0.1,
            prepare: Pass::PLAIN.prepare,
            decays: true,
            is_measured: true,
            time: 1,
        }
    }

    fn rule() -> AdagradRule {
        AdagradRule { epsilon: 1e-10 }
    }

    /// On slices, as a rehearsal, and as tensor operations.
    #[test]
    fn three_steps_worked_out_by_hand() {
        let (mut weights, mut moments) = ([0.5_f32], Moments::default());
        let device = Device::flex();
        let mut tensor = Tensor::<1>::from_floats([0.5], &device);
        let mut tensor_moments = Moments::default();
        let update = update(rule());
        for (gradient, expected) in GRADIENTS.into_iter().zip(WEIGHTS) {
            let known = moments.second.as_ref().map(|sums| sums.to_data());
            let known: Option<Vec<f32>> = known.map(|sums| sums.iter::<f32>().collect());
            let foretold = rule().rehearse(&Planned {
                weights: &weights,
                gradient: &[gradient],
                shape: &[1],
                kept: [None, known.as_deref(), None],
                moments: Some(&moments),
                update: &update,
            });
            let change = rule().on_slices(Variable {
                weights: &mut weights,
                gradient: &[gradient],
                shape: &[1],
                moments: &mut moments,
                update: &update,
            });
            assert_eq!(foretold, change);
            assert!(
                (f64::from(weights[0]) - expected).abs() < 1e-6,
                "{weights:?}"
            );
            let gradient = Tensor::<1>::from_floats([gradient], &device);
            rule().on_tensors(&mut tensor, gradient, &mut tensor_moments, &update);
            let found = f64::from(tensor.clone().into_scalar::<f32>());
            assert!((found - expected).abs() < 1e-6, "{found}");
        }
    }

    #[test]
    fn it_is_an_optimizer_with_a_text() {
        let optimizer = "adagrad".into_optimizer().expect("valid");
        assert_eq!(optimizer.to_string(), "Adagrad::new(1e-2)");
        assert_eq!(optimizer.slots(), [Slot::SquareSum]);
        assert_eq!(Slot::SquareSum.name(), "sum of squares");
        assert_eq!(optimizer.kept_bytes(&[2, 3]), 24);
        assert!(!optimizer.offers_weight_decay());
    }
}

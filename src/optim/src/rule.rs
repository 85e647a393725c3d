//! [`Rule`]: what each update rule says of itself, and how it changes a variable.

use std::fmt;

use burn::tensor::Tensor;

use super::change::Change;
use super::kernel::Pass;
use super::step::{Moments, VariableUpdate};
use super::{AdamRule, Slot};

/// The numbers of an optimizer, and what they make of weights and gradients. The default of a method holds for most.
pub(crate) trait Rule {
    /// Its numbers with the names that they are written by, to be checked.
    fn numbers(&self) -> Vec<(&'static str, f64)>;

    /// What is kept beside each trained weight.
    fn slots(&self) -> Vec<Slot>;

    /// The decay of the variables that are not excluded; 0 for rules without.
    fn weight_decay(&self) -> f64 {
        0.0
    }

    /// Whether an optimizer with this rule has a weight decay, which may be 0.
    fn offers_weight_decay(&self) -> bool {
        self.weight_decay() != 0.0
    }

    /// Sets the decay of the variables that are not excluded; of a rule without decay nothing changes.
    fn set_weight_decay(&mut self, _decay: f64) {}

    /// Whether an update needs all elements of a variable at once, so that servers cannot have its rows.
    fn needs_whole_variables(&self) -> bool {
        false
    }

    /// The methods of what is in force, as they are written: `.momentum(0.9)`. The rate and the decay are written before.
    fn show(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }

    /// The rule if a GPU has a kernel for it.
    fn on_gpu(&self) -> Option<AdamRule> {
        None
    }

    /// Whether it records which pieces of a variable have had a gradient ([`Moments::touched`]).
    fn tracks_pieces(&self) -> bool {
        false
    }

    /// Changes a variable of the CPU where it lies, and what is kept beside it. Returns the change, if it is measured.
    fn on_slices(&self, variable: Variable<'_>) -> Change;

    /// The change that [`on_slices`](Self::on_slices) would make, to the bit; nothing is written.
    fn rehearse(&self, planned: &Planned<'_>) -> Change;
}

/// The same update as tensor operations, for backends on which no kernel makes it.
pub(crate) trait OnTensors {
    /// Changes the weights of a variable and what is kept beside them.
    fn on_tensors<const D: usize>(
        &self,
        weights: &mut Tensor<D>,
        gradient: Tensor<D>,
        moments: &mut Moments,
        update: &VariableUpdate,
    );
}

/// A variable of the CPU, its gradient, and what is kept beside it.
pub(crate) struct Variable<'a> {
    pub weights: &'a mut [f32],
    pub gradient: &'a [f32],
    pub shape: &'a [usize],
    pub moments: &'a mut Moments,
    pub update: &'a VariableUpdate,
}

impl Variable<'_> {
    /// What the pass over it does.
    pub fn pass(&self) -> Pass {
        Pass {
            prepare: self.update.prepare,
            is_measured: self.update.is_measured,
        }
    }
}

/// The same of an update that is rehearsed.
pub(crate) struct Planned<'a> {
    pub weights: &'a [f32],
    pub gradient: &'a [f32],
    pub shape: &'a [usize],
    /// Both moments and the largest second one, where they are there already.
    pub kept: [Option<&'a [f32]>; 3],
    pub moments: Option<&'a Moments>,
    pub update: &'a VariableUpdate,
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};

    use super::*;
    use crate::kernel::BLOCK;
    use crate::{
        Adafactor, Adam, AdamW, IntoOptimizer, Lamb, Lion, RMSprop, SGD, StoredTensor, UpdateRule,
    };

    fn numbers(count: usize, factor: usize, scale: f32) -> Vec<f32> {
        let one = |at: usize| ((at * factor) % 1013) as f32 * scale - 1.0;
        (0..count).map(one).collect()
    }

    /// An update of weights with moments of earlier steps: the weights after it, and the change.
    fn updated(rule: UpdateRule, is_measured: bool) -> (Vec<f32>, Change) {
        let (mut weights, gradient) = variable();
        let mut moments = moments();
        let shape = [weights.len()];
        let update = update(rule, is_measured);
        let change = rule.as_rule().on_slices(Variable {
            weights: &mut weights,
            gradient: &gradient,
            shape: &shape,
            moments: &mut moments,
            update: &update,
        });
        (weights, change)
    }

    fn update(rule: UpdateRule, is_measured: bool) -> VariableUpdate {
        VariableUpdate {
            rule,
            rate: 1e-2,
            prepare: Pass::PLAIN.prepare,
            decays: true,
            is_measured,
            time: 3,
        }
    }

    fn variable() -> (Vec<f32>, Vec<f32>) {
        let count = BLOCK + 1500;
        (numbers(count, 7, 2e-3), numbers(count, 13, 3e-3))
    }

    /// What every rule may have kept; the mean gradient of RMSprop so small that the spread is not below zero.
    fn moments() -> Moments {
        let count = BLOCK + 1500;
        let tensor = |values: Vec<f32>| {
            Some(Tensor::from_data(
                TensorData::new(values, [count]),
                &Device::flex(),
            ))
        };
        let squares = numbers(count, 17, 1e-3).into_iter().map(|it| it * it);
        let squares: Vec<f32> = squares.collect();
        Moments {
            first: tensor(numbers(count, 11, 1e-3)),
            largest: tensor(squares.iter().map(|it| it * 0.1).collect()),
            second: tensor(squares),
            ..Moments::default()
        }
    }

    /// For every rule: an update that is measured has the bits of one that is not, and a rehearsal its change.
    #[test]
    fn a_change_is_measured_and_foretold() {
        let optimizers = [
            Adam::new(1e-2).into_optimizer(),
            AdamW::new(1e-2).into_optimizer(),
            Adam::new(1e-2).amsgrad(true).into_optimizer(),
            SGD::new(0.1).into_optimizer(),
            SGD::new(0.1).momentum(0.9).nesterov(true).into_optimizer(),
            RMSprop::new(1e-3).into_optimizer(),
            RMSprop::new(1e-3).momentum(0.5).into_optimizer(),
            RMSprop::new(1e-3)
                .momentum(0.5)
                .centered(true)
                .into_optimizer(),
            Lion::new(1e-2).weight_decay(0.1).into_optimizer(),
            Lamb::new(1e-2).weight_decay(0.1).into_optimizer(),
            Adafactor::new(1e-2).into_optimizer(),
        ];
        for optimizer in optimizers {
            let optimizer = optimizer.expect("valid");
            let rule = optimizer.rule;
            let ((weights, change), (plain, none)) = (updated(rule, true), updated(rule, false));
            assert_eq!(weights, plain, "{optimizer}");
            assert_eq!(none, Change::default(), "{optimizer}");
            let (old, gradient) = variable();
            let sum = |values: &mut dyn Iterator<Item = f32>| -> f64 {
                values.map(|it| f64::from(it).powi(2)).sum()
            };
            let mut moved = weights.iter().zip(&old).map(|(new, old)| new - old);
            for (found, expected) in [
                (change.weights, sum(&mut old.iter().copied())),
                (change.change, sum(&mut moved)),
            ] {
                let near = (found - expected).abs() < 1e-6 * expected;
                assert!(near, "{optimizer}: {found} {expected}");
            }
            let (moments, shape) = (moments(), [old.len()]);
            let kept = [
                StoredTensor::First,
                StoredTensor::Second,
                StoredTensor::Largest,
            ];
            let kept = kept.map(|kept| {
                let data = moments.tensor(kept)?.to_data();
                Some(data.iter::<f32>().collect::<Vec<f32>>())
            });
            let foretold = rule.as_rule().rehearse(&Planned {
                weights: &old,
                gradient: &gradient,
                shape: &shape,
                kept: kept.each_ref().map(Option::as_deref),
                moments: Some(&moments),
                update: &update(rule, true),
            });
            assert_eq!(foretold, change, "{optimizer}");
        }
    }
}

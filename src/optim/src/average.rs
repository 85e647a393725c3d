//! The moving average of the weights (`use_ema`), as in Keras: after every step `average = momentum · average + (1 −
//! momentum) · weight` for each trained variable; after the first step the average is the weight. Training goes on with
//! the variables themselves. They are overwritten by their averages every `ema_overwrite_frequency` steps, and at the end
//! of `fit!`. (tf_keras 2 begins with the variables before the first step.)

use std::collections::HashMap;
use std::fmt;

use burn::module::{ModuleMapper, Param, ParamId};
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};
use stratoscope_diagnostics::{Result, arguments};

use super::checks::{bad_text, check_number};
use super::kernel;
use super::norm::is_flex;
use super::on_slices::{in_place, zeros};
use super::on_tensors::flat;
use super::step::Moments;
use stratoscope_diagnostics::count::Count;

/// As written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ema {
    pub is_used: bool,
    pub momentum: f64,
    pub overwrite_frequency: Option<Count>,
}

impl Default for Ema {
    fn default() -> Self {
        Self {
            is_used: false,
            momentum: 0.99,
            overwrite_frequency: None,
        }
    }
}

/// How the average of the weights is kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Averaging {
    /// The share of the old average in the new one.
    pub momentum: f64,
    /// After how many steps the weights are overwritten by their averages; `None`: when a run ends.
    pub overwrite_frequency: Option<u64>,
}

impl Ema {
    /// Checked also where it is not used: a number out of range was not meant.
    pub(super) fn resolve(self, optimizer: &str) -> Result<Option<Averaging>> {
        const FREQUENCY: &str = "ema_overwrite_frequency";
        let Self {
            is_used,
            momentum,
            overwrite_frequency,
        } = self;
        check_number(optimizer, "ema_momentum", momentum)?;
        let least = arguments::least_integer(optimizer, FREQUENCY).unwrap_or(0);
        let count = |count: Count| {
            let steps = count.value().filter(|&steps| steps >= least);
            steps.ok_or_else(|| {
                let expects = format!("an integer ≥ {least}");
                bad_text(optimizer, FREQUENCY, count.to_string(), &expects)
            })
        };
        let overwrite_frequency = overwrite_frequency.map(count).transpose()?;
        Ok(is_used.then_some(Averaging {
            momentum,
            overwrite_frequency,
        }))
    }
}

impl Averaging {
    /// The momentum of the step with this number, counted from 1: the first step's weights are the average.
    pub(super) fn momentum_at(self, time: u64) -> f32 {
        match time {
            1 => 0.0,
            _ => self.momentum as f32,
        }
    }

    /// Whether the weights are overwritten after the step with this number, counted from 1.
    pub(super) fn overwrites_at(self, time: u64) -> bool {
        let every = self.overwrite_frequency;
        every.is_some_and(|every| time.is_multiple_of(every))
    }
}

impl fmt::Display for Averaging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ".use_ema(true).ema_momentum({:?})", self.momentum)?;
        match self.overwrite_frequency {
            Some(every) => write!(f, ".ema_overwrite_frequency({every})"),
            None => Ok(()),
        }
    }
}

/// Moves the average towards the weights, and the weights to the average where it is time to.
pub(super) fn average<const D: usize>(
    weights: &mut Tensor<D>,
    average: &mut Option<Tensor<1>>,
    averaging: Averaging,
    time: u64,
) {
    let overwrites = averaging.overwrites_at(time);
    if is_flex(weights) {
        // A variable that is trained only from a later step on has no average yet: it begins with the weights, too.
        let momentum = match average {
            Some(_) => averaging.momentum_at(time),
            None => 0.0,
        };
        let count = weights.shape().num_elements();
        in_place(average.get_or_insert_with(|| zeros(count)), |average| {
            in_place(weights, |weights| {
                kernel::average(average, weights, momentum);
                if overwrites {
                    weights.copy_from_slice(average);
                }
            });
        });
        return;
    }
    average_on_tensors(weights, average, averaging, time);
}

/// Any other backend: the same as tensor operations.
fn average_on_tensors<const D: usize>(
    weights: &mut Tensor<D>,
    average: &mut Option<Tensor<1>>,
    averaging: Averaging,
    time: u64,
) {
    let momentum = averaging.momentum_at(time);
    let shape = weights.shape();
    let moved = match average.take() {
        Some(average) => {
            average.reshape(shape).mul_scalar(momentum) + weights.clone().mul_scalar(1.0 - momentum)
        }
        None => weights.clone(),
    };
    if averaging.overwrites_at(time) {
        *weights = moved.clone();
    }
    *average = Some(flat(moved));
}

/// Replaces every weight that has an average by it.
pub(super) struct Overwrite<'a>(pub &'a HashMap<ParamId, Moments>);

impl ModuleMapper for Overwrite<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let kept = self.0.get(&param.id);
        let Some(average) = kept.and_then(|kept| kept.average.clone()) else {
            return param;
        };
        let (id, tensor, mapper) = param.consume();
        let trained = tensor.is_require_grad();
        // Not the same memory: the next step changes the one and the other.
        let average = average.reshape(tensor.shape()).mul_scalar(1.0);
        let tensor = Tensor::from_inner(average);
        let tensor = if trained {
            tensor.require_grad()
        } else {
            tensor
        };
        Param::from_mapped_value(id, tensor, mapper)
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};

    use super::*;

    /// A layer that is unfrozen later has its first average at a later step.
    #[test]
    fn a_later_first_step_begins_with_the_weights() {
        let averaging = Averaging {
            momentum: 0.75,
            overwrite_frequency: None,
        };
        let mut weights = Tensor::<1>::from_data([0.5, -2.0], &Device::flex());
        let mut kept = None;
        for (time, expected) in [(3, [0.5_f32, -2.0]), (4, [0.625, -2.5])] {
            average(&mut weights, &mut kept, averaging, time);
            let found = kept.clone().expect("it was averaged").into_data();
            found.assert_eq(&TensorData::from(expected), true);
            weights = weights.mul_scalar(2.0);
        }
    }

    /// On a GPU the average is moved by tensor operations; here run on the CPU.
    #[test]
    fn both_ways_average_alike() {
        let averaging = Averaging {
            momentum: 0.75,
            overwrite_frequency: Some(3),
        };
        let device = Device::flex();
        let start = || Tensor::<2>::from_data([[0.5, -0.25], [1.0, 2.0]], &device);
        let (mut flex, mut kept) = (start(), None);
        let (mut other, mut other_kept) = (start(), None);
        for time in 1..=4 {
            flex = flex.mul_scalar(1.5);
            other = other.mul_scalar(1.5);
            average(&mut flex, &mut kept, averaging, time);
            average_on_tensors(&mut other, &mut other_kept, averaging, time);
            flex.clone()
                .into_data()
                .assert_eq(&other.clone().into_data(), true);
        }
    }
}

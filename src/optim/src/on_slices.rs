//! An update on the float32 slices of the CPU backend, with the arithmetic of `kernel`.

use std::panic::{self, AssertUnwindSafe};

use burn::tensor::{Device, Tensor};
use burn_flex::{Flex, FlexTensor};

use super::change::Change;
use super::kernel::{
    self, AdafactorState, AdafactorStep, AdamState, AdamStep, Pass, RmspropStep, Touched,
};
use super::norm::{floats, is_flex};
use super::rule::matrices;
use super::step::{Moments, VariableUpdate};
use super::{RmspropRule, UpdateRule};

/// Changes the weights of a variable where they lie, and what is kept beside them. Returns the change.
pub(super) fn on_slices<const D: usize>(
    weights: &mut Tensor<D>,
    gradient: Tensor<D>,
    moments: &mut Moments,
    update: &VariableUpdate,
) -> Option<Change> {
    let Ok(gradient) = gradient.try_into_primitive::<Flex>() else {
        return None;
    };
    let gradient = gradient.to_contiguous();
    let gradient = floats(&gradient);
    let count = gradient.len();
    let prepare = update.prepare;
    let pass = Pass {
        prepare,
        is_measured: update.is_measured,
    };
    let mut change = None;
    let shape = weights.dims();
    if !matches!(update.rule, UpdateRule::Adam(_) | UpdateRule::Lamb(_)) {
        moments.touched = None;
    }
    in_place(weights, |weights| match update.rule {
        UpdateRule::Adam(rule) => {
            let step = update.adam(&rule);
            let numbers = |_: &[f32], _: &[f32], _: &[f32]| step;
            change = adam_on_slices(weights, &gradient, moments, pass, rule.amsgrad, numbers);
        }
        UpdateRule::Adafactor(rule) => {
            let step = update.adafactor(&rule);
            change = adafactor_on_slices(weights, &shape, &gradient, moments, pass, step);
        }
        UpdateRule::Lamb(rule) => {
            let step = update.lamb(&rule);
            let numbers = |weights: &[f32], first: &[f32], second: &[f32]| {
                step.for_variable(weights, [Some(first), Some(second)], &gradient, prepare)
            };
            change = adam_on_slices(weights, &gradient, moments, pass, false, numbers);
        }
        UpdateRule::Sgd(rule) => {
            let step = update.sgd(&rule);
            if rule.momentum == 0.0 {
                change = Some(kernel::sgd(weights, &gradient, pass, step));
                return;
            }
            in_place(
                moments.first.get_or_insert_with(|| zeros(count)),
                |velocity| {
                    let made = kernel::sgd_with_momentum(weights, velocity, &gradient, pass, step);
                    change = Some(made);
                },
            );
        }
        UpdateRule::Rmsprop(rule) => {
            let step = update.rmsprop(&rule);
            change = rmsprop_on_slices(weights, &gradient, moments, pass, &rule, step);
        }
        UpdateRule::Lion(rule) => {
            let step = update.lion(&rule);
            let momentum = moments.first.get_or_insert_with(|| zeros(count));
            in_place(momentum, |momentum| {
                change = Some(kernel::lion(weights, momentum, &gradient, pass, step));
            });
        }
    });
    change
}

/// Adafactor on a variable of this shape.
fn adafactor_on_slices(
    weights: &mut [f32],
    shape: &[usize],
    gradient: &[f32],
    moments: &mut Moments,
    pass: Pass,
    step: AdafactorStep,
) -> Option<Change> {
    let mut change = None;
    let mut made = |state: AdafactorState<'_>| {
        change = Some(kernel::adafactor(weights, state, gradient, pass, step))
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

/// Adam with the numbers that `numbers` makes of the weights and both moments before the step.
fn adam_on_slices(
    weights: &mut [f32],
    gradient: &[f32],
    moments: &mut Moments,
    pass: Pass,
    amsgrad: bool,
    numbers: impl FnOnce(&[f32], &[f32], &[f32]) -> AdamStep,
) -> Option<Change> {
    let count = gradient.len();
    let first = moments.first.get_or_insert_with(|| zeros(count));
    let second = moments.second.get_or_insert_with(|| zeros(count));
    // What is not kept has no elements.
    let mut none = zeros(0);
    let largest = match amsgrad {
        false => &mut none,
        true => moments.largest.get_or_insert_with(|| zeros(count)),
    };
    let mut change = None;
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
                change = Some(kernel::adam(weights, state, gradient, pass, step));
            });
        });
    });
    change
}

fn rmsprop_on_slices(
    weights: &mut [f32],
    gradient: &[f32],
    moments: &mut Moments,
    pass: Pass,
    rule: &RmspropRule,
    step: RmspropStep,
) -> Option<Change> {
    let count = gradient.len();
    let squares = moments.second.get_or_insert_with(|| zeros(count));
    // What is not kept has no elements.
    let (mut no_velocity, mut no_mean) = (zeros(0), zeros(0));
    let velocity = match rule.momentum == 0.0 {
        true => &mut no_velocity,
        false => moments.first.get_or_insert_with(|| zeros(count)),
    };
    let means = match rule.centered {
        false => &mut no_mean,
        true => moments.largest.get_or_insert_with(|| zeros(count)),
    };
    let mut change = None;
    in_place(velocity, |velocity| {
        in_place(squares, |squares| {
            in_place(means, |means| {
                let made = kernel::rmsprop(weights, velocity, squares, means, gradient, pass, step);
                change = Some(made);
            });
        });
    });
    change
}

/// Hands out the elements of a float32 tensor of the CPU backend and puts it back, also when the work
/// panics. Memory that somebody else shares is copied first.
pub(super) fn in_place<const D: usize>(tensor: &mut Tensor<D>, work: impl FnOnce(&mut [f32])) {
    let placeholder = Tensor::from_data(
        burn::tensor::TensorData::zeros::<f32, _>([0; D]),
        &Device::flex(),
    );
    let taken = std::mem::replace(tensor, placeholder);
    let Ok(taken) = taken.try_into_primitive::<Flex>() else {
        return;
    };
    // A view of a part is copied: `storage_mut` has all elements of the memory.
    let mut primitive: FlexTensor = taken.to_contiguous();
    drop(taken);
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| work(primitive.storage_mut::<f32>())));
    *tensor = Tensor::from_primitive::<Flex>(primitive);
    if let Err(panic) = outcome {
        panic::resume_unwind(panic);
    }
}

/// The sum of two tensors; on the CPU in the memory of the first, in parallel.
pub fn add_to<const D: usize>(mut sum: Tensor<D>, added: Tensor<D>) -> Tensor<D> {
    if !(is_flex(&sum) && is_flex(&added) && sum.dims() == added.dims()) {
        return sum + added;
    }
    let Ok(added) = added.try_into_primitive::<Flex>() else {
        unreachable!("the device and the element type were checked");
    };
    let added = added.to_contiguous();
    in_place(&mut sum, |sum| kernel::add(sum, &floats(&added)));
    sum
}

pub(super) fn zeros(count: usize) -> Tensor<1> {
    Tensor::zeros([count], &Device::flex())
}

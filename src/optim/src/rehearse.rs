//! The change that an update would make of each variable, before it is made: the very arithmetic of [`apply`](super::apply)
//! on small pieces of copies. It reads what the update reads and writes nothing, so that it costs less than the update.

use std::borrow::Cow;

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use burn_flex::{Flex, FlexTensor};

use super::change::{Change, Changes};
use super::kernel::{self, AdafactorState, AdafactorStep, Elementwise, Pass, Prepare};
use super::norm::{floats, is_flex};
use super::rule::matrices;
use super::step::{Moments, OptimizerState, Update};
use super::{StoredTensor, UpdateRule};

/// The change of each variable that has a gradient, in the order of the module; `None` where one of them is not float32 on
/// the CPU.
pub fn rehearse<M: Module>(
    module: &M,
    gradients: &GradientsParams,
    state: &OptimizerState,
    update: &Update,
) -> Option<Changes> {
    let mut rehearsal = Rehearsal {
        gradients,
        state,
        update,
        changes: Some(Vec::new()),
    };
    module.visit(&mut rehearsal);
    rehearsal.changes
}

struct Rehearsal<'a> {
    gradients: &'a GradientsParams,
    state: &'a OptimizerState,
    update: &'a Update,
    changes: Option<Changes>,
}

impl ModuleVisitor for Rehearsal<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(gradient) = self.gradients.get::<D>(param.id) else {
            return;
        };
        let Some(changes) = &mut self.changes else {
            return;
        };
        let weights = param.val();
        let weights = match weights.device().is_autodiff() {
            true => weights.inner(),
            false => weights,
        };
        let time = self.state.steps + 1;
        let update = self.update.for_variable(param.id, &gradient, time);
        let prepare = update.prepare;
        let shape = weights.dims();
        let (Some(weights), Some(gradient)) = (contiguous(weights), contiguous(gradient)) else {
            self.changes = None;
            return;
        };
        let kept = [
            StoredTensor::First,
            StoredTensor::Second,
            StoredTensor::Largest,
        ];
        let kept = kept.map(|kept| contiguous(self.state.kept(param.id, kept)?.clone()));
        let slices = kept.each_ref().map(|it| it.as_ref().map(floats));
        let slices = slices.each_ref().map(Option::<Cow<'_, [f32]>>::as_deref);
        let (weights, gradient) = (floats(&weights), floats(&gradient));
        let rule = match update.rule {
            UpdateRule::Adam(rule) => {
                let step = update.adam(&rule);
                match rule.amsgrad {
                    true => Elementwise::AmsGrad(step),
                    false => Elementwise::Adam(step),
                }
            }
            UpdateRule::Sgd(rule) => match rule.momentum == 0.0 {
                true => Elementwise::Sgd(update.sgd(&rule)),
                false => Elementwise::Momentum(update.sgd(&rule)),
            },
            UpdateRule::Rmsprop(rule) => Elementwise::Rmsprop {
                step: update.rmsprop(&rule),
                has_momentum: rule.momentum != 0.0,
                is_centered: rule.centered,
            },
            UpdateRule::Lion(rule) => Elementwise::Lion(update.lion(&rule)),
            UpdateRule::Adafactor(rule) => {
                let step = update.adafactor(&rule);
                let kept = self.state.moments.get(&param.id);
                let change = adafactor(&weights, &shape, kept, &gradient, prepare, step);
                return changes.push((param.id, change));
            }
            UpdateRule::Lamb(rule) => {
                let step = update.lamb(&rule);
                let [first, second, _] = slices;
                Elementwise::Adam(step.for_variable(&weights, [first, second], &gradient, prepare))
            }
        };
        let change = kernel::rehearsal(&weights, slices, &gradient, prepare, rule);
        changes.push((param.id, change));
    }
}

/// Adafactor's update needs all elements at once: it is made on copies of the whole variable.
fn adafactor(
    weights: &[f32],
    shape: &[usize],
    moments: Option<&Moments>,
    gradient: &[f32],
    prepare: Prepare,
    step: AdafactorStep,
) -> Change {
    let copy = |stored: StoredTensor, count: usize| {
        let kept = moments.and_then(|moments| moments.tensor(stored));
        let kept = kept.cloned().and_then(contiguous);
        kept.map_or_else(|| vec![0.0; count], |kept| floats(&kept).into_owned())
    };
    let pass = Pass {
        prepare,
        is_measured: true,
    };
    let mut weights = weights.to_vec();
    let mut made = |state| kernel::adafactor(&mut weights, state, gradient, pass, step);
    match matrices(shape) {
        None => {
            let mut means = copy(StoredTensor::Second, gradient.len());
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

/// A float32 tensor of the CPU with its elements in order.
fn contiguous<const D: usize>(tensor: Tensor<D>) -> Option<FlexTensor> {
    if !is_flex(&tensor) {
        return None;
    }
    Some(tensor.try_into_primitive::<Flex>().ok()?.to_contiguous())
}

//! The change that an update would make of each variable, before it is made: the very arithmetic of [`apply`](super::apply)
//! on small pieces of copies. It reads what the update reads and writes nothing, so that it costs less than the update.

use std::borrow::Cow;

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use burn_flex::{Flex, FlexTensor};

use super::UpdateRule;
use super::change::{Change, Changes};
use super::kernel::{self, AdafactorState, AdafactorStep, Elementwise, Pass, Prepare, RmspropStep};
use super::norm::{floats, is_flex};
use super::rule::matrices;
use super::step::{
    Moments, OptimizerState, Update, adafactor_step, adam_step, lamb_step, lion_step, prepare,
    sgd_step,
};

/// The change of each variable that has a gradient, in the order of the module; `None` where one of them is not float32 on
/// the CPU.
pub(crate) fn rehearse<M: Module>(
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
        let update = &self.update.of(param.id);
        let prepare = prepare(update, &gradient);
        let shape = weights.dims();
        let (Some(weights), Some(gradient)) = (contiguous(weights), contiguous(gradient)) else {
            self.changes = None;
            return;
        };
        let kept = self.state.moments.get(&param.id);
        let kept = |of: fn(&Moments) -> Option<&Tensor<1>>| {
            let tensor = of(kept?)?.clone();
            contiguous(tensor)
        };
        let kept = [
            kept(|kept| kept.first.as_ref()),
            kept(|kept| kept.second.as_ref()),
            kept(|kept| kept.largest.as_ref()),
        ];
        let slices = kept.each_ref().map(|it| it.as_ref().map(floats));
        let slices = slices.each_ref().map(Option::<Cow<'_, [f32]>>::as_deref);
        let decay = !update.undecayed.contains(&param.id);
        let (weights, gradient) = (floats(&weights), floats(&gradient));
        let rule = match update.rule {
            UpdateRule::Adam(rule) => {
                let step = adam_step(update, &rule, decay, self.state.steps + 1);
                match rule.amsgrad {
                    true => Elementwise::AmsGrad(step),
                    false => Elementwise::Adam(step),
                }
            }
            UpdateRule::Sgd(rule) => match rule.momentum == 0.0 {
                true => Elementwise::Sgd(sgd_step(update, &rule)),
                false => Elementwise::Momentum(sgd_step(update, &rule)),
            },
            UpdateRule::Rmsprop(rule) => Elementwise::Rmsprop {
                step: RmspropStep::new(&rule, update.rate),
                has_momentum: rule.momentum != 0.0,
                is_centered: rule.centered,
            },
            UpdateRule::Lion(rule) => Elementwise::Lion(lion_step(update, &rule, decay)),
            UpdateRule::Adafactor(rule) => {
                let step = adafactor_step(update, &rule, decay, self.state.steps + 1);
                let kept = self.state.moments.get(&param.id);
                let change = adafactor(&weights, &shape, kept, &gradient, prepare, step);
                return changes.push((param.id, change));
            }
            UpdateRule::Lamb(rule) => {
                let step = lamb_step(update, &rule, decay, self.state.steps + 1);
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
    let copy = |of: fn(&Moments) -> Option<&Tensor<1>>, count: usize| {
        let kept = moments.and_then(of).cloned().and_then(contiguous);
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
            let mut means = copy(|kept| kept.second.as_ref(), gradient.len());
            made(AdafactorState::Vector(&mut means))
        }
        Some([count, height, width]) => {
            let mut rows = copy(|kept| kept.rows.as_ref(), count * height);
            let mut columns = copy(|kept| kept.columns.as_ref(), count * width);
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

//! The change that an update would make of each variable, before it is made: the very arithmetic of [`apply`](super::apply)
//! on small pieces of copies. It reads what the update reads and writes nothing, so that it costs less than the update.

use std::borrow::Cow;

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use burn_flex::{Flex, FlexTensor};

use super::StoredTensor;
use super::change::Changes;
use super::norm::{floats, is_flex};
use super::rule::Planned;
use super::step::{OptimizerState, Update};

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
        let change = update.rule.as_rule().rehearse(&Planned {
            weights: &weights,
            gradient: &gradient,
            shape: &shape,
            kept: slices,
            moments: self.state.moments.get(&param.id),
            update: &update,
        });
        changes.push((param.id, change));
    }
}

/// A float32 tensor of the CPU with its elements in order.
pub(super) fn contiguous<const D: usize>(tensor: Tensor<D>) -> Option<FlexTensor> {
    if !is_flex(&tensor) {
        return None;
    }
    Some(tensor.try_into_primitive::<Flex>().ok()?.to_contiguous())
}

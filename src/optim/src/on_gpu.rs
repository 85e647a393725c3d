//! Adam's update on a GPU: the variables are taken out of the module, updated by one kernel for as many of them as the
//! device binds at once, and put back. Nothing is read. Other rules, AMSGrad, and clipping of each tensor by its own norm
//! run as tensor operations (`step`).

use std::collections::{BTreeMap, HashMap};

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};
use stratoscope_gpu::{self as kernels, AdamStep, Flat, Slots};

use super::step::{Moments, Update, VariableUpdate};
use super::{AdamRule, Clipping, UpdateRule};

/// Whether variables on a GPU are changed where they lie under such an optimizer.
pub fn changes_in_place(rule: &UpdateRule, clipping: Clipping) -> bool {
    rule.as_rule().on_gpu().is_some() && !matches!(clipping, Clipping::PerTensor(_))
}

/// Updates what can be updated so, and removes its gradients. `module` must be the only owner of its weights, so that they
/// are changed where they lie.
pub(super) fn apply<M: Module>(
    module: M,
    gradients: &mut GradientsParams,
    moments: &mut HashMap<ParamId, Moments>,
    update: &Update,
    time: u64,
) -> M {
    let Some(rule) = update.rule.as_rule().on_gpu() else {
        return module;
    };
    let changes = changes_in_place(&update.rule, update.clipping);
    if !changes || !has_a_gradient_there(&module, gradients) {
        return module;
    }
    let mut take = Take {
        gradients,
        moments,
        update,
        taken: BTreeMap::new(),
    };
    let module = module.map(&mut take);
    let taken = take.taken;
    let mut updated = HashMap::new();
    for ((decays, rate), group) in taken {
        let own = VariableUpdate {
            rule: update.rule,
            rate: f64::from_bits(rate),
            prepare: update.prepare(update.factor),
            decays,
            is_measured: update.is_measured,
            time,
        };
        let step = numbers(&own, &rule);
        let (ids, slots): (Vec<ParamId>, Vec<Slots>) = group.into_iter().unzip();
        updated.extend(ids.into_iter().zip(kernels::adam(slots, step)));
    }
    module.map(&mut Put { updated, moments })
}

/// The step's numbers as the kernel takes them.
fn numbers(update: &VariableUpdate, rule: &AdamRule) -> AdamStep {
    let step = rule.step(update);
    AdamStep {
        factor: update.prepare.factor,
        limit: update.prepare.limit,
        keep: step.keep,
        first: step.first,
        beta_2: step.beta_2,
        second: step.second,
        root: step.root,
        epsilon: step.epsilon,
        size: step.size,
    }
}

/// Whether a variable has a gradient on a GPU.
fn has_a_gradient_there<M: Module>(module: &M, gradients: &GradientsParams) -> bool {
    struct Search<'a>(&'a GradientsParams, bool);
    impl ModuleVisitor for Search<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let Self(gradients, found) = self;
            let gradient = || gradients.get::<D>(param.id);
            *found = *found || gradient().is_some_and(|it| kernels::takes(&it));
        }
    }
    let mut search = Search(gradients, false);
    module.visit(&mut search);
    search.1
}

/// Takes variables with a gradient on a GPU out of their places.
struct Take<'a> {
    gradients: &'a mut GradientsParams,
    moments: &'a mut HashMap<ParamId, Moments>,
    update: &'a Update,
    /// By whether they decay, and by the bits of their rate: a kernel has one of each.
    taken: BTreeMap<(bool, u64), Vec<(ParamId, Slots)>>,
}

impl ModuleMapper for Take<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let is_there = |it: &Tensor<D>| kernels::takes(it);
        if !(self.gradients.get::<D>(param.id)).is_some_and(|it| is_there(&it)) {
            return param;
        }
        let Some(gradient) = self.gradients.remove::<D>(param.id).and_then(Flat::new) else {
            return param;
        };
        let (id, tensor, mapper) = param.consume();
        let trained = tensor.is_require_grad();
        let weights = tensor.inner();
        let (device, count) = (weights.device(), weights.shape().num_elements());
        let kept = self.moments.entry(id).or_default();
        let moment = |kept: Option<Tensor<1>>| {
            Flat::new(kept.unwrap_or_else(|| Tensor::zeros([count], &device)))
        };
        let (first, second) = (moment(kept.first.take()), moment(kept.second.take()));
        let place = Tensor::from_data(TensorData::zeros::<f32, _>([0; D]), &Device::flex());
        if let (Some(weights), Some(first), Some(second)) = (Flat::new(weights), first, second) {
            let slots = Slots {
                weights,
                first,
                second,
                gradient: Some(gradient),
            };
            let rate = self.update.parameter_rate(id);
            let group = (self.update.decays(id), rate.to_bits());
            self.taken.entry(group).or_default().push((id, slots));
        }
        // Only a tensor of the autodiff device remembers that it is trained.
        let place = match trained {
            true => Tensor::from_inner(place).require_grad(),
            false => place,
        };
        Param::from_mapped_value(id, place, mapper)
    }
}

/// Puts variables back.
struct Put<'a> {
    updated: HashMap<ParamId, Slots>,
    moments: &'a mut HashMap<ParamId, Moments>,
}

impl ModuleMapper for Put<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(slots) = self.updated.remove(&param.id) else {
            return param;
        };
        let (id, place, mapper) = param.consume();
        let kept = self.moments.entry(id).or_default();
        kept.first = Some(slots.first.into_tensor());
        kept.second = Some(slots.second.into_tensor());
        kept.touched = None;
        let tensor = Tensor::from_inner(slots.weights.into_tensor::<D>());
        let tensor = match place.is_require_grad() {
            true => tensor.require_grad(),
            false => tensor,
        };
        Param::from_mapped_value(id, tensor, mapper)
    }
}

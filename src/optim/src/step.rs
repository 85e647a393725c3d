//! One optimizer step of one replica: every parameter that has a gradient is updated, its moments
//! with it. On the CPU backend weights and moments are changed in place (`on_slices`); on a GPU a kernel does the same for
//! Adam (`on_gpu`); the rest are the same formulas as tensor operations.

use std::collections::{HashMap, HashSet};
use std::panic::{self, AssertUnwindSafe};

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};

use super::adam::kernel::Touched;
use super::average::{Overwrite, average};
use super::change::Changes;
use super::kernel::Prepare;
use super::norm::{is_flex, tensor_norm};
use super::on_gpu;
use super::on_slices::on_slices;
use super::on_tensors::on_tensors;
use super::{Averaging, Clipping, Slot, UpdateRule};

/// The moments of one replica, made at the first step, beside the weights. A clone shares the tensors until one of
/// the two makes a step.
#[derive(Clone, Debug, Default)]
pub struct OptimizerState {
    /// Steps made; Adam's t.
    pub(super) steps: u64,
    pub(super) moments: HashMap<ParamId, Moments>,
}

/// What is kept beside one parameter, flat. The first is SGD's and RMSprop's velocity and Lion's momentum, too; the
/// second RMSprop's mean square and Adafactor's of vectors, the largest its mean gradient.
#[derive(Clone, Debug, Default)]
pub(super) struct Moments {
    pub first: Option<Tensor<1>>,
    pub second: Option<Tensor<1>>,
    pub largest: Option<Tensor<1>>,
    /// Where Adam's moments are known to be 0; `None` where nothing is known, as after any other change of theirs.
    pub touched: Option<Touched>,
    pub average: Option<Tensor<1>>,
    /// Adafactor's means of the rows of a matrix.
    pub rows: Option<Tensor<1>>,
    /// And of its columns.
    pub columns: Option<Tensor<1>>,
}

impl OptimizerState {
    /// Optimizer steps made so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The bytes that are kept for a parameter in a slot; 0 before the first step.
    pub fn bytes(&self, id: ParamId, slot: Slot) -> u64 {
        let kept = self.kept(id, slot.stored());
        kept.map_or(0, |tensor| tensor.dims()[0] * tensor.dtype().size()) as u64
    }

    /// What is kept for a parameter in a slot, flat; `None` before the first step, and for a slot that the parameter has not.
    pub fn tensor(&self, id: ParamId, slot: Slot) -> Option<&Tensor<1>> {
        self.kept(id, slot.stored())
    }

    /// Gives the weights the values of their averages; whether there were any.
    pub fn overwrite<M: Module>(&self, module: &mut M) -> bool {
        let has_averages = self.moments.values().any(|kept| kept.average.is_some());
        if has_averages {
            *module = module.clone().map(&mut Overwrite(&self.moments));
        }
        has_averages
    }
}

/// An update as all replicas make it.
#[derive(Clone, Debug)]
pub struct Update {
    /// How one element moves.
    pub rule: UpdateRule,
    /// What is done to the gradients first.
    pub clipping: Clipping,
    /// The moving average of the weights, if one is kept.
    pub averaging: Option<Averaging>,
    /// What global clipping multiplies every gradient with.
    pub factor: f64,
    /// The learning rate of this step.
    pub rate: f64,
    /// Parameters that weight decay leaves alone.
    pub undecayed: std::sync::Arc<HashSet<ParamId>>,
    /// What the rate of a parameter is multiplied with, where it is not 1.
    pub layer_factors: std::sync::Arc<HashMap<ParamId, f64>>,
    /// Whether the change of each variable is measured, on the CPU.
    pub is_measured: bool,
}

impl Update {
    /// The learning rate of a parameter.
    pub(super) fn parameter_rate(&self, id: ParamId) -> f64 {
        self.rate * self.layer_factors.get(&id).copied().unwrap_or(1.0)
    }

    /// Whether weight decay applies to a parameter.
    pub(super) fn decays(&self, id: ParamId) -> bool {
        !self.undecayed.contains(&id)
    }

    /// What happens to the gradients that are multiplied with this factor.
    pub(super) fn prepare(&self, factor: f64) -> Prepare {
        let limit = self.clipping.limit().unwrap_or(f64::INFINITY);
        Prepare {
            factor: factor as f32,
            limit: limit as f32,
        }
    }

    /// The update of a parameter with this gradient at the step `time`, counted from 1.
    pub(super) fn for_variable<const D: usize>(
        &self,
        id: ParamId,
        gradient: &Tensor<D>,
        time: u64,
    ) -> VariableUpdate {
        let factor = match self.clipping {
            clipping @ Clipping::PerTensor(_) => {
                clipping.tensor_factor(tensor_norm(gradient.clone()))
            }
            _ => self.factor,
        };
        VariableUpdate {
            rule: self.rule,
            rate: self.parameter_rate(id),
            prepare: self.prepare(factor),
            decays: self.decays(id),
            is_measured: self.is_measured,
            time,
        }
    }
}

/// The update of one variable.
#[derive(Clone, Copy, Debug)]
pub(super) struct VariableUpdate {
    pub rule: UpdateRule,
    /// Its learning rate.
    pub rate: f64,
    /// What happens to its gradient first.
    pub prepare: Prepare,
    /// Whether weight decay applies to it.
    pub decays: bool,
    /// Whether its change is measured, on the CPU.
    pub is_measured: bool,
    /// The step, counted from 1.
    pub time: u64,
}

impl VariableUpdate {
    /// The decay of the variable under a rule with this one.
    pub fn decay(&self, weight_decay: f64) -> f64 {
        if self.decays { weight_decay } else { 0.0 }
    }
}

/// Updates the module, and returns the change of each variable where it is measured. Should the arithmetic panic, the parameter where it happened is as it was or
/// partly updated, the module is whole, and the panic is raised again at the end.
pub fn apply<M: Module>(
    module: &mut M,
    gradients: GradientsParams,
    state: &mut OptimizerState,
    update: &Update,
) -> Changes {
    state.steps += 1;
    let time = state.steps;
    let mut gradients = gradients;
    // Taken out of its place, so that each weight has one owner and is changed where it lies.
    let skeleton = module.clone().map(&mut Skeleton);
    let owned = std::mem::replace(module, skeleton);
    let owned = on_gpu::apply(owned, &mut gradients, &mut state.moments, update, time);
    let moments = &mut state.moments;
    let mut mapper = Step {
        gradients,
        moments,
        update,
        time,
        changes: Vec::new(),
        panicked: None,
    };
    *module = owned.map(&mut mapper);
    if let Some(panic) = mapper.panicked {
        panic::resume_unwind(panic);
    }
    mapper.changes
}

/// Replaces every weight by one that has no memory.
struct Skeleton;

impl ModuleMapper for Skeleton {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let shape = param.lazy_shape();
        let init_shape = shape.clone();
        let init = move |device: &Device, _| Tensor::zeros(init_shape.clone(), device);
        Param::uninitialized(param.id, init, param.lazy_device(), false, shape)
    }
}

struct Step<'a> {
    gradients: GradientsParams,
    moments: &'a mut HashMap<ParamId, Moments>,
    update: &'a Update,
    time: u64,
    changes: Changes,
    panicked: Option<Box<dyn std::any::Any + Send>>,
}

impl ModuleMapper for Step<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if self.panicked.is_some() {
            return param;
        }
        let gradient = self.gradients.remove::<D>(param.id);
        let averaging = self.update.averaging.filter(|_| param.is_require_grad());
        if gradient.is_none() && averaging.is_none() {
            return param;
        }
        let (id, tensor, mapper) = param.consume();
        let trained = tensor.is_require_grad();
        let mut weights = tensor.inner();
        let moments = self.moments.entry(id).or_default();
        let (update, time) = (self.update, self.time);
        let mut change = None;
        let work = AssertUnwindSafe(|| {
            let Some(gradient) = gradient else {
                return;
            };
            let update = update.for_variable(id, &gradient, time);
            if is_flex(&weights) && is_flex(&gradient) {
                let measured = on_slices(&mut weights, gradient, moments, &update);
                change = measured.filter(|_| update.is_measured);
            } else {
                moments.touched = None;
                on_tensors(&mut weights, gradient, moments, &update);
            }
        });
        self.panicked = panic::catch_unwind(work).err();
        self.changes.extend(change.map(|change| (id, change)));
        if let (Some(averaging), None) = (averaging, &self.panicked) {
            average(&mut weights, &mut moments.average, averaging, time);
        }
        let tensor = Tensor::from_inner(weights);
        let tensor = if trained {
            tensor.require_grad()
        } else {
            tensor
        };
        Param::from_mapped_value(id, tensor, mapper)
    }
}

/// The gradients after `clipnorm`, as [`apply`] would use them: for who applies parts of a tensor.
pub fn clip_each<M: Module>(
    module: &M,
    gradients: GradientsParams,
    clipping: Clipping,
) -> GradientsParams {
    struct Clip(Clipping, GradientsParams, GradientsParams);
    impl ModuleVisitor for Clip {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let Self(clipping, given, clipped) = self;
            if let Some(gradient) = given.remove::<D>(param.id) {
                let factor = clipping.tensor_factor(tensor_norm(gradient.clone()));
                clipped.register::<D>(param.id, gradient.mul_scalar(factor as f32));
            }
        }
    }
    if !matches!(clipping, Clipping::PerTensor(_)) {
        return gradients;
    }
    let mut clip = Clip(clipping, gradients, GradientsParams::new());
    module.visit(&mut clip);
    clip.2
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use burn::nn::{Linear, LinearConfig};
    use burn::tensor::TensorData;
    use burn_flex::Flex;

    use super::super::{
        Adafactor, Adam, AdamW, IntoOptimizer, Lamb, Lion, Optimizer, RMSprop, SGD, global_norm,
        rehearse,
    };
    use super::*;

    fn layer(device: &Device) -> Linear {
        let mut layer = LinearConfig::new(2, 2).init(device);
        let weight = Tensor::from_data([[0.5, -0.25], [1.0, 2.0]], device);
        layer.weight = Param::from_tensor(weight);
        layer.bias = layer
            .bias
            .map(|_| Param::from_tensor(Tensor::from_data([0.1, 0.2], device)));
        layer
    }

    fn gradients(layer: &Linear, device: &Device) -> GradientsParams {
        let mut gradients = GradientsParams::new();
        let weight = Tensor::<2>::from_data([[3.0, 0.0], [0.0, 4.0]], &device.clone().inner());
        gradients.register(layer.weight.id, weight);
        gradients
    }

    fn values(layer: &Linear) -> Vec<f32> {
        let data = layer.weight.val().into_data();
        data.iter::<f32>().collect()
    }

    fn update(optimizer: impl IntoOptimizer, rate: f64, norm: f64) -> Update {
        let optimizer = optimizer.into_optimizer().expect("valid");
        Update {
            rule: optimizer.rule,
            clipping: optimizer.clipping,
            averaging: optimizer.averaging,
            factor: optimizer.clipping.global_factor(norm),
            rate,
            undecayed: Arc::default(),
            layer_factors: Arc::default(),
            is_measured: true,
        }
    }

    #[test]
    fn a_parameter_without_gradient_stays_and_weights_are_changed_where_they_lie() {
        let device = Device::flex().autodiff();
        let mut layer = layer(&device);
        let mut state = OptimizerState::default();
        let bias = layer.bias.as_ref().map(|bias| bias.val().into_data());
        let address = |layer: &Linear| {
            let flex = layer
                .weight
                .val()
                .inner()
                .try_into_primitive::<Flex>()
                .expect("flex");
            flex.bytes().as_ptr()
        };
        let before = address(&layer);
        let gradients = gradients(&layer, &device);
        assert!((global_norm(&layer, &gradients) - 5.0).abs() < 1e-12);
        apply(
            &mut layer,
            gradients,
            &mut state,
            &update(SGD::new(0.1), 0.1, 5.0),
        );
        assert_eq!(address(&layer), before, "no copy was made");
        for (found, expected) in values(&layer).into_iter().zip([0.2, -0.25, 1.0, 1.6]) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
        assert_eq!(layer.bias.as_ref().map(|bias| bias.val().into_data()), bias);
        assert!(layer.weight.val().is_require_grad(), "it goes on training");
    }

    #[test]
    fn clipping_by_tensor_by_all_and_by_value() {
        let device = Device::flex().autodiff();
        let check = |optimizer: SGD, expected: [f32; 4]| {
            let mut layer = layer(&device);
            let gradients = gradients(&layer, &device);
            let norm = global_norm(&layer, &gradients);
            let update = update(optimizer, 1.0, norm);
            apply(
                &mut layer,
                gradients,
                &mut OptimizerState::default(),
                &update,
            );
            for (found, expected) in values(&layer).into_iter().zip(expected) {
                assert!((found - expected).abs() < 1e-5, "{found} {expected}");
            }
        };
        check(
            SGD::new(1.0).clipnorm(1.0),
            [0.5 - 0.6, -0.25, 1.0, 2.0 - 0.8],
        );
        check(
            SGD::new(1.0).global_clipnorm(2.5),
            [0.5 - 1.5, -0.25, 1.0, 0.0],
        );
        check(SGD::new(1.0).clipvalue(1.0), [-0.5, -0.25, 1.0, 1.0]);
        check(
            SGD::new(1.0).global_clipnorm(50.0),
            [-2.5, -0.25, 1.0, -2.0],
        );
    }

    /// The slices and the tensor operations are two ways of one update.
    #[test]
    fn both_ways_agree() {
        let cases = [
            update(AdamW::new(0.01).clipvalue(2.0), 0.01, 0.0),
            update(Adam::new(0.01).global_clipnorm(1.0), 0.01, 5.0),
            update(AdamW::new(0.01).amsgrad(true), 0.01, 0.0),
            update(Lamb::new(0.01), 0.01, 0.0),
            update(Adafactor::new(0.01), 0.01, 0.0),
            update(
                Adafactor::new(0.01).weight_decay(0.1).clipnorm(0.5),
                0.01,
                0.0,
            ),
            update(Lamb::new(0.01).weight_decay(0.1).clipnorm(0.5), 0.01, 0.0),
            update(SGD::new(0.1).momentum(0.9), 0.1, 0.0),
            update(SGD::new(0.1).momentum(0.9).nesterov(true), 0.1, 0.0),
            update(SGD::new(0.1), 0.1, 0.0),
        ];
        for case in cases {
            both_ways(&case, [4]);
            both_ways(&case, [2, 2]);
            both_ways(&case, [2, 1, 2]);
        }
    }

    fn both_ways<const D: usize>(case: &Update, shape: [usize; D]) {
        let device = Device::flex();
        let made = |values: [f32; 4]| Tensor::<1>::from_data(values, &device).reshape(shape);
        let start = || made([0.5, -0.25, 1.0, 2.0]);
        let (mut left, mut right): (Tensor<D>, Tensor<D>) = (start(), start());
        let (mut left_moments, mut right_moments) = (Moments::default(), Moments::default());
        for time in 1..=4 {
            let gradient = made([3.0, -1.0, 0.0, time as f32]);
            let update = case.for_variable(ParamId::new(), &gradient, time);
            on_slices(&mut left, gradient.clone(), &mut left_moments, &update);
            on_tensors(&mut right, gradient, &mut right_moments, &update);
        }
        let values = |tensor: Tensor<D>| tensor.into_data().iter::<f32>().collect::<Vec<_>>();
        for (left, right) in values(left).into_iter().zip(values(right)) {
            assert!((left - right).abs() < 1e-6, "{case:?}: {left} {right}");
        }
    }

    #[test]
    fn moments_are_measured() {
        let device = Device::flex().autodiff();
        let mut layer = layer(&device);
        let mut state = OptimizerState::default();
        assert_eq!(state.bytes(layer.weight.id, Slot::V), 0);
        let gradients = gradients(&layer, &device);
        apply(
            &mut layer,
            gradients,
            &mut state,
            &update(AdamW::new(0.1).amsgrad(true).use_ema(true), 0.1, 1.0),
        );
        assert_eq!(state.steps(), 1);
        for slot in [Slot::M, Slot::V, Slot::LargestV, Slot::Average] {
            assert_eq!(state.bytes(layer.weight.id, slot), 16, "{slot:?}");
        }
    }

    #[test]
    fn moments_of_adafactor_are_as_many_as_planned() {
        let device = Device::flex().autodiff();
        let (mut layer, mut state) = (layer(&device), OptimizerState::default());
        let optimizer = Adafactor::new(0.1).into_optimizer().expect("valid");
        let mut gradients = gradients(&layer, &device);
        let bias = layer.bias.as_ref().expect("a bias").id;
        let of_bias = Tensor::<1>::from_data([1.0, 2.0], &device.clone().inner());
        gradients.register(bias, of_bias);
        apply(
            &mut layer,
            gradients,
            &mut state,
            &update(optimizer.clone(), 0.1, 1.0),
        );
        let mut total = 0;
        for (id, shape, expected) in [
            (layer.weight.id, vec![2, 2], [8, 8, 0]),
            (bias, vec![2], [0, 0, 8]),
        ] {
            let slots = optimizer.slots();
            let found = slots.iter().map(|&slot| state.bytes(id, slot));
            assert_eq!(found.collect::<Vec<_>>(), expected);
            let planned = slots.iter().map(|slot| 4 * slot.numbers(&shape) as u64);
            assert_eq!(planned.collect::<Vec<_>>(), expected);
            total += optimizer.kept_bytes(&shape);
        }
        assert_eq!(state.all_bytes(), total);
        let shape = [5, 7, 3];
        let found = optimizer.slots().into_iter().map(|it| it.numbers(&shape));
        assert_eq!(found.collect::<Vec<_>>(), [35, 15, 0]);
    }

    #[test]
    fn undecayed_parameters_keep_their_size() {
        let device = Device::flex().autodiff();
        let decayed = |optimizer: Optimizer, is_listed: bool| {
            let mut layer = layer(&device);
            let mut update = update(optimizer, 0.1, 1.0);
            if is_listed {
                update.undecayed = Arc::new([layer.weight.id].into());
            }
            let zero = Tensor::<2>::from_data(
                TensorData::zeros::<f32, _>([2, 2]),
                &device.clone().inner(),
            );
            let mut gradients = GradientsParams::new();
            gradients.register(layer.weight.id, zero);
            apply(
                &mut layer,
                gradients,
                &mut OptimizerState::default(),
                &update,
            );
            values(&layer)[3]
        };
        let optimizers = [
            AdamW::new(0.1).weight_decay(0.5).into_optimizer(),
            // Which variables decay is said by the update alone.
            AdamW::new(0.1)
                .weight_decay(0.5)
                .decay_all_parameters(true)
                .into_optimizer(),
            Lion::new(0.1).weight_decay(0.5).into_optimizer(),
            Lamb::new(0.1).weight_decay(0.5).into_optimizer(),
            Adafactor::new(0.1).weight_decay(0.5).into_optimizer(),
        ];
        for optimizer in optimizers {
            let optimizer = optimizer.expect("valid");
            let found = decayed(optimizer.clone(), false);
            assert!((found - 1.9).abs() < 1e-6, "{optimizer}: {found}");
            assert_eq!(decayed(optimizer.clone(), true), 2.0, "{optimizer}");
        }
    }

    #[test]
    fn a_parameter_moves_by_its_own_rate() {
        let device = Device::flex().autodiff();
        let moved = |optimizer: Optimizer, factor: f64| {
            let (mut layer, mut state) = (layer(&device), OptimizerState::default());
            let gradients = gradients(&layer, &device);
            let mut update = update(optimizer, 0.1, 5.0);
            update.layer_factors = Arc::new([(layer.weight.id, factor)].into());
            let expected = rehearse(&layer, &gradients, &state, &update);
            let made = apply(&mut layer, gradients, &mut state, &update);
            assert_eq!(expected.expect("on the CPU")[0].1, made[0].1);
            values(&layer)
        };
        let optimizers = [
            SGD::new(0.1).into_optimizer(),
            SGD::new(0.1).momentum(0.9).into_optimizer(),
            Adam::new(0.1).into_optimizer(),
            AdamW::new(0.1).weight_decay(0.5).into_optimizer(),
            RMSprop::new(0.1).into_optimizer(),
            Lion::new(0.1).weight_decay(0.5).into_optimizer(),
            Lamb::new(0.1).into_optimizer(),
            Adafactor::new(0.1).into_optimizer(),
        ];
        let start = values(&layer(&device));
        for optimizer in optimizers {
            let optimizer = optimizer.expect("valid");
            let whole = moved(optimizer.clone(), 1.0);
            let half = moved(optimizer.clone(), 0.5);
            for ((start, whole), half) in start.iter().zip(whole).zip(half) {
                let (whole, half) = (whole - start, half - start);
                assert!(
                    (half - 0.5 * whole).abs() < 1e-6,
                    "{optimizer}: {half} {whole}"
                );
            }
            assert_eq!(moved(optimizer, 0.0), start);
        }
    }

    /// The weights of `layer` under SGD of rate 1 with the gradient [[3, 0], [0, 4]], over and over:
    /// the first one is 0.5 − 3t.
    fn averaged(optimizer: SGD, steps: u64) -> (Linear, OptimizerState) {
        let device = Device::flex().autodiff();
        let (mut layer, mut state) = (layer(&device), OptimizerState::default());
        let update = update(optimizer, 1.0, 5.0);
        for _ in 0..steps {
            let gradients = gradients(&layer, &device);
            apply(&mut layer, gradients, &mut state, &update);
        }
        (layer, state)
    }

    #[test]
    fn the_average_begins_with_the_first_step_and_overwrites_on_request() {
        let ema = || SGD::new(1.0).use_ema(true).ema_momentum(0.5);
        // Weights −2.5, −5.5, −8.5; averages −2.5, −4, −6.25.
        let (mut layer, state) = averaged(ema(), 3);
        assert_eq!(values(&layer)[0], -8.5, "training goes on with the weights");
        let bias = layer.bias.as_ref().map(|bias| bias.val().into_data());
        assert!(state.overwrite(&mut layer));
        assert_eq!(values(&layer), [-6.25, -0.25, 1.0, 2.0 - 4.0 * 2.25]);
        assert_eq!(layer.bias.as_ref().map(|bias| bias.val().into_data()), bias);
        assert!(layer.weight.val().is_require_grad(), "it goes on training");
        // Every 2 steps: −2.5; −5.5 → −4; −7, of which the average is −5.5.
        let (mut layer, state) = averaged(ema().ema_overwrite_frequency(2), 3);
        assert_eq!(values(&layer)[0], -7.0);
        state.overwrite(&mut layer);
        assert_eq!(values(&layer)[0], -5.5);
        let (mut layer, state) = averaged(SGD::new(1.0), 3);
        assert!(!state.overwrite(&mut layer), "there is none");
        assert_eq!(values(&layer)[0], -8.5);
    }
}

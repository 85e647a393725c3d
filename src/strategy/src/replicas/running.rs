//! Running state: what a module changes in its own forward pass in training, as `BatchNorm` changes its running mean and
//! variance. burn keeps each (`burn::module::RunningState`) behind a lock that all clones of a module share, so that a clone
//! does not keep the value of its moment: it is read and written here. All replicas of a model share it, and it is the mean
//! of what they have seen.

use std::any::Any;
use std::collections::{HashMap, HashSet};

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{Bool, Int, Tensor, TensorData};
use stratoscope_diagnostics::Result;

use super::Replicas;

/// The values of all running states of a module, on the host.
pub type RunningValues = Vec<(ParamId, TensorData)>;

/// The running states of a module: what changes in it when it is changed in a clone.
pub(super) fn find<M: Module>(module: &M) -> HashSet<ParamId> {
    let mut candidates = Constant(HashSet::new());
    module.visit(&mut candidates);
    if candidates.0.is_empty() {
        return HashSet::new();
    }
    let mut probe = Probe {
        candidates: &candidates.0,
        held: HashMap::new(),
    };
    drop(module.clone().map(&mut probe));
    let mut held = probe.held;
    let mut changed = Changed {
        held: &held,
        found: HashSet::new(),
    };
    module.visit(&mut changed);
    let found = changed.found;
    held.retain(|id, _| found.contains(id));
    drop(module.clone().map(&mut Restore(held)));
    found
}

/// Parameters without gradients.
struct Constant(HashSet<ParamId>);

impl ModuleVisitor for Constant {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if !param.val().is_require_grad() {
            self.0.insert(param.id);
        }
    }
}

/// Gives the candidates values of another shape, and keeps their own.
struct Probe<'a> {
    candidates: &'a HashSet<ParamId>,
    held: HashMap<ParamId, Box<dyn Any>>,
}

impl ModuleMapper for Probe<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if !self.candidates.contains(&param.id) || self.held.contains_key(&param.id) {
            return param;
        }
        let (id, value, mapper) = param.consume();
        let other = match value.dims() == [1; D] {
            true => [2; D],
            false => [1; D],
        };
        let other = Tensor::<D>::zeros(other, &value.device());
        self.held.insert(id, Box::new(value));
        Param::from_mapped_value(id, other, mapper)
    }
}

/// The probed values that have another shape now, although it was a clone that was changed.
struct Changed<'a> {
    held: &'a HashMap<ParamId, Box<dyn Any>>,
    found: HashSet<ParamId>,
}

impl ModuleVisitor for Changed<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let held = self.held.get(&param.id);
        let held = held.and_then(|value| value.downcast_ref::<Tensor<D>>());
        if held.is_some_and(|held| held.dims() != param.val().dims()) {
            self.found.insert(param.id);
        }
    }
}

/// Gives values back.
struct Restore(HashMap<ParamId, Box<dyn Any>>);

impl ModuleMapper for Restore {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let held = self.0.get(&param.id);
        let Some(held) = held.and_then(|value| value.downcast_ref::<Tensor<D>>()) else {
            return param;
        };
        let (id, _, mapper) = param.consume();
        Param::from_mapped_value(id, held.clone(), mapper)
    }
}

/// What has been computed last belongs to the value from now on, whatever thread it was computed on.
fn settle<M: Module>(module: &M) {
    drop(module.valid());
}

/// The values of these running states.
pub(super) fn values<M: Module>(module: &M, of: &HashSet<ParamId>) -> RunningValues {
    struct Read<'a>(&'a HashSet<ParamId>, RunningValues);
    impl ModuleVisitor for Read<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if self.0.contains(&param.id) {
                self.1.push((param.id, param.val().into_data()));
            }
        }
    }
    if of.is_empty() {
        return Vec::new();
    }
    settle(module);
    let mut read = Read(of, Vec::new());
    module.visit(&mut read);
    read.1
}

/// Gives running states these values, in all clones of the module.
pub(super) fn set<M: Module>(module: &M, values: &RunningValues) {
    struct Write<'a>(&'a RunningValues);
    impl ModuleMapper for Write<'_> {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let Some((_, data)) = self.0.iter().find(|(id, _)| *id == param.id) else {
                return param;
            };
            let (id, held, mapper) = param.consume();
            let value = Tensor::from_data(data.clone(), (&held.device(), held.dtype()));
            Param::from_mapped_value(id, value, mapper)
        }
    }
    if !values.is_empty() {
        settle(module);
        drop(module.clone().map(&mut Write(values)));
    }
}

/// The module with the parameters of another clone of it, but with its own running states.
pub(super) fn with_parameters<M: Module>(module: M, other: &M, running: &HashSet<ParamId>) -> M {
    let mut taken = Taken {
        running,
        params: HashMap::new(),
    };
    other.visit(&mut taken);
    module.map(&mut taken)
}

/// Parameters by identity.
struct Taken<'a> {
    running: &'a HashSet<ParamId>,
    params: HashMap<ParamId, Box<dyn Any>>,
}

impl Taken<'_> {
    fn of<P: Clone + 'static>(&self, id: ParamId, own: P) -> P {
        let taken = self.params.get(&id).filter(|_| !self.running.contains(&id));
        let taken = taken.and_then(|param| param.downcast_ref::<P>());
        taken.cloned().unwrap_or(own)
    }
}

impl ModuleVisitor for Taken<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.params.insert(param.id, Box::new(param.clone()));
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.params.insert(param.id, Box::new(param.clone()));
    }

    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.params.insert(param.id, Box::new(param.clone()));
    }
}

impl ModuleMapper for Taken<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        self.of(param.id, param)
    }

    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        self.of(param.id, param)
    }

    fn map_bool<const D: usize>(
        &mut self,
        param: Param<Tensor<D, Bool>>,
    ) -> Param<Tensor<D, Bool>> {
        self.of(param.id, param)
    }
}

impl<M: Module + 'static> Replicas<M> {
    /// The values of the running states at this moment; none for a module that has none.
    pub fn running_values(&self) -> RunningValues {
        match self.modules.first() {
            Some(module) => values(module, &self.running),
            None => Vec::new(),
        }
    }

    /// Whether the module has running states: values that a forward pass changes.
    pub fn has_running_values(&self) -> bool {
        !self.running.is_empty()
    }

    /// Gives the running states these values.
    pub fn set_running_values(&self, values: &RunningValues) {
        if let Some(module) = self.modules.first() {
            set(module, values);
        }
    }

    /// Calls what runs forward passes that are no training, and puts the running states back.
    pub fn undisturbed<T>(&self, work: impl FnOnce() -> T) -> T {
        let values = self.running_values();
        let done = work();
        self.set_running_values(&values);
        done
    }

    /// A module of this model that does not change when the model goes on: with running states of its own. Tensors
    /// are shared until one of the two is updated.
    pub fn independent_copy(&self, module: &M) -> M {
        match self.running.is_empty() {
            true => module.clone(),
            false => module.valid().train(),
        }
    }

    /// A separate model, placed alike, with the values of this moment. Tensors are shared until one of the two is
    /// updated; running states are not.
    ///
    /// # Errors
    /// SC0907 if a copy cannot be made.
    pub fn forked(&self) -> Result<Self> {
        let values = self.saved_values();
        let modules = match self.running.is_empty() {
            true => self.modules.clone(),
            false => self.copies_of(&self.independent_copy(self.first()))?,
        };
        let mut fork = self.with_modules(modules);
        fork.fetch_all()?;
        fork.restore_values(&values)?;
        Ok(fork)
    }
}

#[cfg(test)]
mod tests {
    use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig};
    use burn::tensor::Device;

    use super::*;
    use crate::device::cpu;
    use crate::origin::Origin;

    #[derive(Module, Debug)]
    struct Normed {
        layer: Linear,
        norm: BatchNorm,
    }

    fn normed(device: &Device) -> Normed {
        Normed {
            layer: LinearConfig::new(2, 3).init(device),
            norm: BatchNormConfig::new(3).init(device),
        }
    }

    fn forward(module: &Normed, device: &Device, shift: f32) {
        let batch = Tensor::<2>::from_floats([[1.0 + shift, 2.0], [-1.0, 4.0 * shift]], device);
        drop(module.norm.forward(module.layer.forward(batch)));
    }

    #[test]
    fn running_states_are_found_and_frozen_variables_are_none() {
        let device = cpu(0).resolve().expect("the processor").training();
        let module = normed(&device);
        forward(&module, &device, 1.0);
        let before = module.norm.running_mean.value_sync().into_data();
        let found = find(&module);
        assert_eq!(found.len(), 2, "mean and variance");
        let after = module.norm.running_mean.value().into_data();
        assert_eq!(before, after, "looking changes nothing");
        let frozen = LinearConfig::new(2, 3)
            .init(&device)
            .set_require_grad(false);
        assert!(find(&frozen).is_empty());
        assert!(find(&LinearConfig::new(2, 3).init(&device)).is_empty());
    }

    #[test]
    fn saved_values_and_forks_have_running_states_of_their_own() {
        let device = cpu(0).resolve().expect("the processor").training();
        let mut replicas =
            Replicas::place(normed(&device), &[], Origin::default()).expect("there is room");
        forward(replicas.first(), &device, 1.0);
        let saved = replicas.saved_values();
        let fork = replicas.forked().expect("there is room");
        forward(replicas.first(), &device, 7.0);
        let later = replicas.running_values();
        assert_ne!(later, saved.running);
        assert_eq!(fork.running_values(), saved.running);
        replicas.undisturbed(|| forward(replicas.first(), &device, 3.0));
        assert_eq!(replicas.running_values(), later);
        replicas.restore_values(&saved).expect("of this model");
        assert_eq!(replicas.running_values(), saved.running);
        forward(replicas.first(), &device, 7.0);
        assert_eq!(
            replicas.running_values(),
            later,
            "and goes on to the same bits"
        );
        assert_eq!(fork.running_values(), saved.running);
    }
}

//! `state.safetensors`: the tensors that training changes, by name.
//!
//! | name | what |
//! | --- | --- |
//! | `weights.0.classifier.bias` | a variable of copy 0: of a replica, of the one copy, or the rows of a server |
//! | `fetched.1.classifier.bias` | the variable as worker 1 of an asynchronous strategy fetched it last |
//! | `second_moment.0.classifier.bias` | what the optimizer keeps beside it ([`StoredTensor`]), flat |
//! | `best.classifier.bias` | the variable after the best epoch, which early stopping returns to |
//! | `metrics.0.confusion_matrix` | what copy 0 of the metrics' state has counted |
//! | `examples.2` | what the training passes of epoch 2 have said of each example ([`ExampleLog`]) |
//!
//! Copies that are equal, because all of them make every update, are written once. A tensor is read from its device when
//! it is written, one after the other.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{DType, Device, Tensor, TensorData};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, View, serialize_to_file};
use stratoscope_strategy::VariableRecord;

use super::convert::Refused;
use super::moments::moments_from;
use crate::snapshot::Snapshot;
use stratoscope_inspect::{ExampleLog, SAVED_BYTES};
use stratoscope_network::AnyNetwork;
use stratoscope_optim::{OptimizerState, StoredTensor};
use stratoscope_step::SavedStep;

/// Copies of the variables, and how many of them are written.
pub(super) struct Layout<'a> {
    pub records: &'a [VariableRecord],
    /// The modules of one copy where all copies are always equal, else all modules.
    pub copies: usize,
}

impl Layout<'_> {
    fn name(&self, id: ParamId) -> Option<&str> {
        let record = self.records.iter().find(|record| record.param == id)?;
        Some(&record.name)
    }
}

/// The type of a tensor in the file, for types that variables have.
fn dtype(of: DType) -> Option<Dtype> {
    match of {
        DType::F64 => Some(Dtype::F64),
        DType::F32 => Some(Dtype::F32),
        DType::F16 => Some(Dtype::F16),
        DType::BF16 => Some(Dtype::BF16),
        _ => None,
    }
}

/// A tensor that is to be written.
struct Entry<'a> {
    dtype: Dtype,
    shape: Vec<usize>,
    length: usize,
    read: Box<dyn Fn() -> Result<Vec<u8>, String> + 'a>,
    problem: &'a RefCell<Option<String>>,
}

impl View for &Entry<'_> {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        let bytes = match (self.read)() {
            Ok(bytes) if bytes.len() == self.length => bytes,
            Ok(bytes) => {
                let problem = format!("{} bytes in place of {}", bytes.len(), self.length);
                self.problem.borrow_mut().get_or_insert(problem);
                vec![0; self.length]
            }
            Err(problem) => {
                self.problem.borrow_mut().get_or_insert(problem);
                vec![0; self.length]
            }
        };
        Cow::Owned(bytes)
    }

    fn data_len(&self) -> usize {
        self.length
    }
}

/// Collects tensors under names.
struct Collect<'a> {
    layout: &'a Layout<'a>,
    problem: &'a RefCell<Option<String>>,
    /// What stands before the name of a variable: `weights.0`.
    prefix: String,
    found: BTreeMap<String, Entry<'a>>,
}

impl Collect<'_> {
    fn tensor<const D: usize>(&mut self, name: String, value: Tensor<D>) {
        let shape = value.shape().to_vec();
        let length = shape.iter().product::<usize>() * value.dtype().size();
        let Some(dtype) = dtype(value.dtype()) else {
            let problem = format!("`{name}` is of type {}", value.dtype().name());
            self.problem.borrow_mut().get_or_insert(problem);
            return;
        };
        // A server has no row of a variable of others.
        if length == 0 {
            return;
        }
        let read = move || {
            let data = value.clone().try_into_data();
            let data = data.map_err(|error| error.to_string())?;
            Ok(data.as_bytes().to_vec())
        };
        let entry = Entry {
            dtype,
            shape,
            length,
            read: Box::new(read),
            problem: self.problem,
        };
        self.found.insert(name, entry);
    }

    fn module<M: Module>(&mut self, prefix: String, module: &M) {
        self.prefix = prefix;
        module.visit(self);
    }

    /// What is on the host anyway.
    fn counted(&mut self, name: String, (dtype, shape): (Dtype, Vec<usize>), bytes: Vec<u8>) {
        let entry = Entry {
            dtype,
            shape,
            length: bytes.len(),
            read: Box::new(move || Ok(bytes.clone())),
            problem: self.problem,
        };
        self.found.insert(name, entry);
    }

    fn moments(&mut self, copy: usize, state: &OptimizerState) {
        for record in self.layout.records {
            for kept in StoredTensor::ALL {
                if let Some(value) = state.kept(record.param, kept) {
                    let name = format!("{}.{copy}.{}", kept.name(), record.name);
                    self.tensor(name, value.clone());
                }
            }
        }
    }
}

impl ModuleVisitor for Collect<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(name) = self.layout.name(param.id) else {
            return;
        };
        self.tensor(format!("{}.{name}", self.prefix), param.val());
    }
}

/// Writes the tensors of a snapshot.
///
/// # Errors
/// What the system or a device said.
pub(super) fn write(path: &Path, snapshot: &Snapshot, layout: &Layout<'_>) -> Result<(), String> {
    let problem = RefCell::new(None);
    let mut collect = Collect {
        layout,
        problem: &problem,
        prefix: String::new(),
        found: BTreeMap::new(),
    };
    let state = &snapshot.state;
    for (copy, module) in state.values.modules.iter().take(layout.copies).enumerate() {
        collect.module(format!("weights.{copy}"), module);
    }
    for (worker, (module, _)) in state.values.fetched.iter().enumerate() {
        collect.module(format!("fetched.{worker}"), module);
    }
    for (copy, moments) in state.moments.iter().take(layout.copies).enumerate() {
        collect.moments(copy, moments);
    }
    if let Some(best) = &snapshot.progress.best.weights {
        collect.module("best".to_owned(), best);
    }
    let counted = state.tallies.as_ref().map(|tallies| tallies.states());
    for (copy, counted) in counted.into_iter().flatten().enumerate() {
        for (name, shape, bytes) in counted.into_iter().filter(|(.., bytes)| !bytes.is_empty()) {
            collect.counted(of_metrics(copy, name), (Dtype::U64, shape), bytes);
        }
    }
    for (epoch, bytes) in snapshot.progress.examples.saved() {
        let shape = vec![bytes.len() / SAVED_BYTES, SAVED_BYTES];
        collect.counted(of_examples(epoch), (Dtype::U8, shape), bytes);
    }
    let written = serialize_to_file(&collect.found, None, path);
    drop(collect);
    match problem.into_inner() {
        Some(problem) => Err(problem),
        None => written.map_err(|error| error.to_string()),
    }
}

/// The name of a variable of the state of metrics, which is called `metrics.confusion_matrix`.
fn of_metrics(copy: usize, name: &str) -> String {
    format!("metrics.{copy}.{}", name.trim_start_matches("metrics."))
}

fn of_examples(epoch: u64) -> String {
    format!("examples.{epoch}")
}

/// What the training passes of these epochs have said of each example of the run.
///
/// # Errors
/// Why the file is not believed.
pub(super) fn examples(
    bytes: &[u8],
    (epochs, is_full): (&[u64], bool),
    examples: usize,
) -> Result<ExampleLog, Refused> {
    let file = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
    let of_epoch = |&epoch: &u64| {
        let name = of_examples(epoch);
        let found = file.tensor(&name).map_err(|error| error.to_string())?;
        match found.data().len() == examples * SAVED_BYTES {
            true => Ok((epoch, found.data())),
            false => Err(format!("`{name}` is of another size")),
        }
    };
    let each: Vec<(u64, &[u8])> = epochs
        .iter()
        .map(of_epoch)
        .collect::<Result<_, Refused>>()?;
    Ok(ExampleLog::from_saved(each, is_full))
}

/// The tensors of a file that were not taken yet.
pub(super) struct Tensors<'b> {
    left: HashMap<String, safetensors::tensor::TensorView<'b>>,
}

impl<'b> Tensors<'b> {
    /// The bytes of a tensor of this type and shape.
    pub(super) fn take(
        &mut self,
        name: &str,
        of: DType,
        shape: &[usize],
    ) -> Result<&'b [u8], Refused> {
        let found = self.left.remove(name);
        let found = found.ok_or_else(|| format!("`{name}` is missing"))?;
        if Some(found.dtype()) != dtype(of) || found.shape() != shape {
            return Err(format!(
                "`{name}` is {:?} {:?} and should be {} {shape:?}",
                found.dtype(),
                found.shape(),
                of.name()
            ));
        }
        Ok(found.data())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.left.contains_key(name)
    }
}

/// Puts the tensors of a file in place of those of a module.
struct Fill<'a, 'b> {
    layout: &'a Layout<'a>,
    tensors: &'a mut Tensors<'b>,
    prefix: String,
    /// A parameter of two fields is met twice.
    taken: HashMap<ParamId, &'b [u8]>,
    problem: Option<Refused>,
}

impl ModuleMapper for Fill<'_, '_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(name) = self.layout.name(param.id) else {
            return param;
        };
        let held = param.val();
        let shape = held.shape().to_vec();
        if self.problem.is_some() || shape.contains(&0) {
            return param;
        }
        let bytes = match self.taken.get(&param.id) {
            Some(bytes) => *bytes,
            None => {
                let name = format!("{}.{name}", self.prefix);
                match self.tensors.take(&name, held.dtype(), &shape) {
                    Ok(bytes) => bytes,
                    Err(problem) => {
                        self.problem = Some(problem);
                        return param;
                    }
                }
            }
        };
        self.taken.insert(param.id, bytes);
        let (id, _, mapper) = param.consume();
        let value = tensor::<D>(bytes, shape, held.dtype(), &held.device());
        let value = match held.is_require_grad() {
            true => value.require_grad(),
            false => value,
        };
        Param::from_mapped_value(id, value, mapper)
    }
}

pub(super) fn tensor<const D: usize>(
    bytes: &[u8],
    shape: Vec<usize>,
    dtype: DType,
    device: &Device,
) -> Tensor<D> {
    let data = TensorData::from_bytes_vec(bytes.to_vec(), shape, dtype);
    Tensor::from_data(data, (device, dtype))
}

/// Replaces the tensors of a state, which is of the run that is to go on, by those of a file. Returns the weights of the
/// best epoch in the place of `best_like`, a whole module. `moments`: the optimizer's steps on each copy.
///
/// # Errors
/// Why the file is not believed: a tensor is missing, of another type or shape, or one too many.
pub(super) fn read(
    bytes: &[u8],
    state: &mut SavedStep,
    best_like: Option<AnyNetwork>,
    layout: &Layout<'_>,
    moments: &[u64],
) -> Result<Option<AnyNetwork>, Refused> {
    let file = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
    let mut tensors = Tensors {
        left: file
            .iter()
            .map(|(name, view)| (name.to_owned(), view))
            .collect(),
    };
    let best = best_like.map(|like| filled(like, "best".to_owned(), layout, &mut tensors));
    let best = best.transpose()?;
    for copy in 0..state.values.modules.len() {
        let module = state.values.modules[copy].clone();
        // Copies that are equal are written once; each is filled from its own read of the file.
        state.values.modules[copy] = match copy < layout.copies {
            true => filled(module, format!("weights.{copy}"), layout, &mut tensors)?,
            false => {
                let mut again = Tensors {
                    left: file
                        .iter()
                        .map(|(name, view)| (name.to_owned(), view))
                        .collect(),
                };
                let written = format!("weights.{}", copy % layout.copies);
                filled(module, written, layout, &mut again)?
            }
        };
    }
    for worker in 0..state.values.fetched.len() {
        let module = state.values.fetched[worker].0.clone();
        let prefix = format!("fetched.{worker}");
        state.values.fetched[worker].0 = filled(module, prefix, layout, &mut tensors)?;
    }
    state.moments = moments_from(state, moments, layout, &mut tensors, &file)?;
    if let Some(tallies) = &state.tallies {
        let asked = RefCell::new(BTreeSet::new());
        let counts = |copy: usize, name: &str| {
            let name = of_metrics(copy, name);
            let found = file.tensor(&name);
            asked.borrow_mut().insert(name);
            // Nothing was written of what is empty.
            Some(found.map_or(&[][..], |view| view.data()))
        };
        let counted = tallies.with_states(counts);
        state.tallies = Some(counted.ok_or("the counts of the metrics are of another kind")?);
        let asked = asked.into_inner();
        tensors.left.retain(|name, _| !asked.contains(name));
        if tensors.left.keys().any(|name| name.starts_with("metrics.")) {
            return Err("it has counts of metrics that are kept in another way now".to_owned());
        }
    }
    tensors
        .left
        .retain(|name, _| !name.starts_with("examples."));
    match tensors.left.keys().next() {
        Some(name) => Err(format!("`{name}` belongs to no variable of the model")),
        None => Ok(best),
    }
}

fn filled(
    module: AnyNetwork,
    prefix: String,
    layout: &Layout<'_>,
    tensors: &mut Tensors<'_>,
) -> Result<AnyNetwork, Refused> {
    let mut fill = Fill {
        layout,
        tensors,
        prefix,
        taken: HashMap::new(),
        problem: None,
    };
    let module = module.map(&mut fill);
    match fill.problem {
        Some(problem) => Err(problem),
        None => Ok(module),
    }
}

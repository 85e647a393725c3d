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
//! it is written, one after the other. The metadata of the file says which rows of each variable a copy has ([`LaidOut`]).

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::tensor::{DType, Tensor};
use safetensors::tensor::{Dtype, View, serialize_to_file};
use stratoscope_strategy::VariableRecord;

use super::laid_out::LaidOut;
use crate::snapshot::Snapshot;
use stratoscope_inspect::SAVED_BYTES;
use stratoscope_optim::{OptimizerState, StoredTensor};

/// Copies of the variables, and how many of them are written.
pub(super) struct Layout<'a> {
    pub records: &'a [VariableRecord],
    /// The modules of one copy where all copies are always equal, else all modules.
    pub copies: usize,
}

impl Layout<'_> {
    pub(super) fn name(&self, id: ParamId) -> Option<&str> {
        let record = self.records.iter().find(|record| record.param == id)?;
        Some(&record.name)
    }
}

/// The type of a tensor in the file, for types that variables have.
pub(super) fn dtype(of: DType) -> Option<Dtype> {
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
pub(super) fn write(
    path: &Path,
    snapshot: &Snapshot,
    layout: &Layout<'_>,
    laid_out: &LaidOut,
) -> Result<(), String> {
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
    let written = serialize_to_file(&collect.found, Some(laid_out.metadata()), path);
    drop(collect);
    match problem.into_inner() {
        Some(problem) => Err(problem),
        None => written.map_err(|error| error.to_string()),
    }
}

/// The name of a variable of the state of metrics, which is called `metrics.confusion_matrix`.
pub(super) fn of_metrics(copy: usize, name: &str) -> String {
    format!("metrics.{copy}.{}", name.trim_start_matches("metrics."))
}

pub(super) fn of_examples(epoch: u64) -> String {
    format!("examples.{epoch}")
}

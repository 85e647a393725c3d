//! Fills a network's parameters from a file of tensors and records where each value came from.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use stratoscope_diagnostics::work::{Unit, Work};
use stratoscope_diagnostics::{Diagnostic, Result};

use super::report::{LoadReport, LoadedTensor, Origin};
use super::tensor_file::TensorFile;
use crate::layout::Layout;
use crate::problem::{self, Missing};

/// Tensors that some checkpoints contain and that are computed, not trained, or that another name has too: the decoder of
/// a masked language model is its word embeddings, and its bias that of the head.
const COMPUTED: [&str; 8] = [
    "position_ids",
    "predictions.decoder.weight",
    "predictions.decoder.bias",
    "lm_head.decoder.weight",
    "lm_head.decoder.bias",
    "vocab_projector.weight",
    "generator_lm_head.weight",
    "decoder.weight",
];

/// The values of a parameter.
#[derive(Debug)]
pub(crate) enum Filled {
    /// These values, from the checkpoint.
    Values(Vec<f32>),
    /// New ones: the checkpoint lacks the parameter, which is allowed.
    New,
    /// None: the checkpoint's tensor cannot be used. The loader has recorded why.
    Refused,
}

/// The state of one reading.
#[derive(Debug)]
pub(crate) struct Loader {
    file: TensorFile,
    new_head: bool,
    layout: Layout,
    has_prefix: bool,
    used: BTreeSet<String>,
    rows: Vec<LoadedTensor>,
    missing: Vec<Missing>,
    wrong_shapes: Vec<(String, Vec<usize>, Vec<usize>)>,
    refusal: Option<Box<Diagnostic>>,
    /// Rows of the table of positions that the network has not.
    unused_positions: Vec<f32>,
    work: Work,
    interruption: Option<Box<Diagnostic>>,
}

impl Loader {
    /// Reads from `file`; with `new_head` the file's head is ignored.
    pub fn new(file: TensorFile, new_head: bool, layout: Layout) -> Self {
        let tensors = file.names().count();
        let work = Work::begin(("loading", "loaded"), tensors, Unit::Things("tensor"));
        let has_prefix = file
            .names()
            .any(|name| name.starts_with(layout.family.prefix()));
        Self {
            file,
            new_head,
            layout,
            has_prefix,
            used: BTreeSet::new(),
            rows: Vec::new(),
            missing: Vec::new(),
            wrong_shapes: Vec::new(),
            refusal: None,
            unused_positions: Vec::new(),
            work,
            interruption: None,
        }
    }

    /// The values of a parameter. Problems are recorded for [`Loader::finish`].
    pub fn fill(&mut self, name: &str, shape: &[usize]) -> Filled {
        if self.interruption.is_some() {
            return Filled::Refused;
        }
        if let Err(interruption) = self.work.reached(self.used.len()) {
            self.interruption = Some(interruption);
            return Filled::Refused;
        }
        let Some(in_file) = self.layout.name(name) else {
            // A tensor that this kind of model has not: zeros, in the tables that have one.
            return Filled::New;
        };
        let is_head = !name.starts_with("bert.");
        let is_of_task = is_head && !self.layout.family.is_of_all_heads(&in_file);
        let candidate = match is_of_task && self.new_head {
            true => None,
            false => self
                .candidates(&in_file)
                .into_iter()
                .find(|name| self.file.shape(name).is_some()),
        };
        let Some(found) = candidate else {
            // The pooler is absent from checkpoints of heads that do not use it.
            if is_head || name.starts_with("bert.pooler.") {
                // The network will be dropped; its sizes are not checked, so no memory is allocated.
                if !(self.missing.is_empty() && self.wrong_shapes.is_empty()) {
                    return Filled::Refused;
                }
                self.record(name, shape, Origin::New);
                return Filled::New;
            }
            self.missing.push(Missing {
                name: name.to_owned(),
                shape: shape.to_vec(),
            });
            return Filled::Refused;
        };
        let found_shape = self.file.shape(&found).unwrap_or_default().to_vec();
        self.used.insert(found.clone());
        let unused = self.layout.unused_rows(name);
        let mut expected = shape.to_vec();
        if let Some(rows) = expected.first_mut() {
            *rows += unused;
        }
        if found_shape != expected {
            self.wrong_shapes
                .push((name.to_owned(), expected, found_shape));
            return Filled::Refused;
        }
        match self.file.values(&found) {
            Ok(Some(mut values)) => {
                let width: usize = shape[1..].iter().product();
                self.unused_positions.extend(values.drain(..unused * width));
                self.record(name, shape, Origin::Loaded);
                Filled::Values(values)
            }
            Ok(None) => Filled::Refused,
            Err(refusal) => {
                self.refusal.get_or_insert(refusal);
                Filled::Refused
            }
        }
    }

    /// The rows of the table of positions that the file has and the network has not.
    pub fn unused_positions(&self) -> Arc<[f32]> {
        self.unused_positions.as_slice().into()
    }

    /// The report, if every parameter could be filled.
    ///
    /// # Errors
    /// SC0904 for missing tensors, else for tensors of another shape; else SC0902 for
    /// the first tensor with an invalid element type or value; SC0520 after an interrupt.
    pub fn finish(mut self, folder: &Path) -> Result<LoadReport> {
        if let Some(interruption) = self.interruption {
            return Err(interruption);
        }
        let path = self.file.path();
        if !self.missing.is_empty() {
            let names: Vec<String> = self.file.names().map(str::to_owned).collect();
            return Err(problem::missing(path, &self.missing, &names));
        }
        if let Some((name, expected, found)) = self.wrong_shapes.first() {
            let others = self.wrong_shapes.len() - 1;
            return Err(problem::wrong_shape(path, name, expected, found, others));
        }
        if let Some(refusal) = self.refusal {
            return Err(refusal);
        }
        for name in self.file.names().filter(|name| !self.used.contains(*name)) {
            if COMPUTED.iter().any(|computed| name.ends_with(computed)) {
                continue;
            }
            let shape = self.file.shape(name).unwrap_or_default().to_vec();
            self.rows.push(LoadedTensor {
                name: name.to_owned(),
                shape,
                origin: Origin::Unused,
            });
        }
        self.work.finished();
        Ok(LoadReport {
            source: folder.display().to_string(),
            tensors: self.rows,
        })
    }

    /// The names a parameter may have in the file: with and without `bert.`, and with the names
    /// that TensorFlow gave to LayerNorm's parameters. `name`: the family's.
    fn candidates(&self, name: &str) -> Vec<String> {
        let name = match self.has_prefix {
            true => name,
            false => name
                .strip_prefix(self.layout.family.prefix())
                .unwrap_or(name),
        };
        let in_tensorflow = name
            .strip_suffix("LayerNorm.weight")
            .map(|path| format!("{path}LayerNorm.gamma"))
            .or_else(|| {
                name.strip_suffix("LayerNorm.bias")
                    .map(|path| format!("{path}LayerNorm.beta"))
            });
        [Some(name.to_owned()), in_tensorflow]
            .into_iter()
            .flatten()
            .collect()
    }

    fn record(&mut self, name: &str, shape: &[usize], origin: Origin) {
        self.rows.push(LoadedTensor {
            name: name.to_owned(),
            shape: shape.to_vec(),
            origin,
        });
    }
}

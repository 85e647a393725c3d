//! The checksums of all copies of variables, to compare them.

use std::collections::HashMap;

use burn::module::Module;
use stratoscope_diagnostics::Result;
use stratoscope_diagnostics::work::{Unit, Work};

use super::Replicas;
use super::storage::Storage;
use crate::checksum::{self, Checksum};
use crate::variable::VariableRecord;

impl<M: Module + 'static> Replicas<M> {
    /// The checksum of every copy of every variable: a row per record, a column per copy, as in the
    /// record's `homes`.
    ///
    /// # Errors
    /// SC0907 if a value cannot be read from its device, SC0520 if it is interrupted.
    pub fn checksums(&self) -> Result<Vec<Vec<Checksum>>> {
        // What replicas compute with, not the rows of it that they update.
        let (modules, devices) = match self.keeps_copies() {
            true => (self.unsharded(), self.devices()),
            false => (self.modules(), self.storage_devices()),
        };
        let all = self.records.len() * modules.len();
        let mut work = Work::begin(("comparing", "compared"), all, Unit::Things("variable"));
        let mut columns: Vec<HashMap<_, _>> = Vec::with_capacity(modules.len());
        for (module, device) in modules.iter().zip(devices) {
            let done = columns.iter().map(HashMap::len).sum();
            let column = checksum::of_module(module, &device.name, (&mut work, done))?;
            columns.push(column.into_iter().collect());
        }
        work.finished();
        let sum = |column: usize, record: &VariableRecord| {
            columns.get(column)?.get(&record.param).copied()
        };
        let row = |record: &VariableRecord| match self.storage {
            Storage::Mirrored | Storage::PerProcess | Storage::Central { .. } => (0..columns.len())
                .filter_map(|column| sum(column, record))
                .collect(),
            Storage::Sharded { .. } if self.keeps_copies() => (0..columns.len())
                .filter_map(|column| sum(column, record))
                .collect(),
            Storage::Sharded { .. } => (record.homes.iter())
                .filter_map(|home| sum(home - self.first_home(), record))
                .collect(),
        };
        Ok(self.records.iter().map(row).collect())
    }
}

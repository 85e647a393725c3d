//! [`SavedValues`]: all values that training changes, to be put back later. Tensors are shared with the module until the
//! next update writes new ones, so saving copies nothing by itself.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Tensor;
use stratoscope_diagnostics::Result;

use super::Replicas;
use super::exchange::Snapshot;
use super::running::{self, RunningValues};

/// The values of [`Replicas`] at one moment.
#[derive(Clone)]
pub struct SavedValues<M> {
    /// As [`Replicas::modules`].
    pub modules: Vec<M>,
    /// The variables as each worker of an asynchronous strategy fetched them last, with the number of updates at that
    /// time; empty for other strategies.
    pub fetched: Vec<(M, u64)>,
    /// How often the variables were updated.
    pub updates: u64,
    /// Whether training changes each variable, in the order of the records.
    pub trainable: Vec<bool>,
    /// The running states, whose values the modules share with those that go on.
    pub running: RunningValues,
}

impl<M: Module + 'static> Replicas<M> {
    /// All values at this moment.
    pub fn saved_values(&self) -> SavedValues<M> {
        let fetched = self.snapshots.iter().flatten();
        SavedValues {
            modules: self.modules.clone(),
            fetched: fetched
                .map(|snapshot| (snapshot.module.clone(), snapshot.updates))
                .collect(),
            updates: self.updates,
            trainable: self.records.iter().map(|record| record.trainable).collect(),
            running: self.running_values(),
        }
    }

    /// The same with modules whose running states can be changed without any effect on the model.
    #[must_use]
    pub fn saved_independent_values(&self) -> SavedValues<M> {
        let mut saved = self.saved_values();
        if !self.running.is_empty() {
            let modules = saved.modules.iter();
            saved.modules = modules.map(|it| self.independent_copy(it)).collect();
        }
        saved
    }

    /// Puts the values back.
    ///
    /// # Errors
    /// SC0915 for values of another number of modules, workers or variables; then nothing has changed.
    pub fn restore_values(&mut self, saved: &SavedValues<M>) -> Result<()> {
        let workers = self.snapshots.as_ref().map_or(0, Vec::len);
        let per = self.storage.module_name();
        self.one_each("modules", saved.modules.len(), self.modules.len(), per)?;
        self.one_each("modules", saved.fetched.len(), workers, "worker")?;
        self.one_each(
            "flags",
            saved.trainable.len(),
            self.records.len(),
            "variable",
        )?;
        self.set_modules(&saved.modules);
        self.set_running_values(&saved.running);
        self.values_changed();
        if let Some(snapshots) = &mut self.snapshots {
            for (snapshot, (module, updates)) in snapshots.iter_mut().zip(&saved.fetched) {
                *snapshot = Snapshot {
                    module: match self.running.is_empty() {
                        true => module.clone(),
                        false => {
                            let own = snapshot.module.clone();
                            running::with_parameters(own, module, &self.running)
                        }
                    },
                    updates: *updates,
                };
            }
        }
        self.updates = saved.updates;
        for (record, &trainable) in self.records.iter_mut().zip(&saved.trainable) {
            record.trainable = trainable;
        }
        Ok(())
    }
}

impl<M: Module + 'static> Replicas<M> {
    /// Gives the stored modules the parameters of others.
    fn set_modules(&mut self, others: &[M]) {
        if self.running.is_empty() {
            self.modules.clone_from_slice(others);
            return;
        }
        for (own, other) in self.modules.iter_mut().zip(others) {
            *own = running::with_parameters(own.clone(), other, &self.running);
        }
    }
}

impl<M: Module> SavedValues<M> {
    /// Takes the values of the running states from the modules, into which they were read.
    pub fn take_running(&mut self) {
        let of = self.running.iter().map(|(id, _)| *id).collect();
        if let Some(module) = self.modules.first() {
            self.running = running::values(module, &of);
        }
    }

    /// The size of all values in bytes, as if nothing were shared.
    pub fn bytes(&self) -> u64 {
        struct Size(u64);
        impl ModuleVisitor for Size {
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                let value = param.val();
                self.0 += (value.shape().num_elements() * value.dtype().size()) as u64;
            }
        }
        let mut size = Size(0);
        let fetched = self.fetched.iter().map(|(module, _)| module);
        for module in self.modules.iter().chain(fetched) {
            module.visit(&mut size);
        }
        size.0
    }
}

//! Work on all replicas at once, each on a thread of its own.

use std::collections::{HashMap, HashSet};
use std::panic::{self, AssertUnwindSafe};
use std::time::Instant;

use burn::module::{Module, ParamId};
use burn::tensor::Tensor;
use stratoscope_diagnostics::Result;

use super::storage::Storage;
use super::{ReplicaId, Replicas};
use crate::device::LogicalDevice;
use crate::shards::{self, Homes};
use crate::strategy::Shard;
use crate::variable::VariableRecord;
use crate::{collective, threads};

impl<M: Module + 'static> Replicas<M> {
    /// Calls `work` for every replica with its module and its input, each on the replica's own
    /// thread, and returns the results in the order of the replicas. A panic in one is passed on
    /// when all have ended.
    ///
    /// # Errors
    /// SC0915 if there is not one input per replica.
    pub fn for_each_replica<I, T, F>(&self, inputs: Vec<I>, work: F) -> Result<Vec<T>>
    where
        I: Send + 'static,
        T: Send + 'static,
        F: Fn(ReplicaId, &M, I) -> T + Send + Sync + 'static,
    {
        self.one_each("inputs", inputs.len(), self.len(), "replica")?;
        if matches!(self.storage, Storage::PerProcess) {
            return Ok(self.one_after_the_other(inputs, work));
        }
        Ok(Self::work_on(self.readable()?, inputs, work))
    }

    /// [`Self::for_each_replica`] as a part of an optimizer step: what replicas fetch for it is counted, and the
    /// workers of an asynchronous strategy use the variables that they fetched after their last push.
    ///
    /// # Errors
    /// SC0915 if there is not one input per replica, SC0907 if a copy cannot be made.
    pub fn compute_each_replica<I, T, F>(&self, inputs: Vec<I>, work: F) -> Result<Vec<T>>
    where
        I: Send + 'static,
        T: Send + 'static,
        F: Fn(ReplicaId, &M, I) -> T + Send + Sync + 'static,
    {
        self.one_each("inputs", inputs.len(), self.len(), "replica")?;
        if let Some(snapshots) = &self.snapshots {
            let modules = snapshots.iter().map(|it| it.module.clone()).collect();
            return Ok(Self::work_on(modules, inputs, work));
        }
        if matches!(self.storage, Storage::PerProcess) {
            return Ok(self.one_after_the_other(inputs, work));
        }
        let start = Instant::now();
        let modules = self.readable()?;
        let done = match self.shard() {
            _ if self.len() < 2 => None,
            None if self.copies() == self.len() => None,
            None => Some(collective::fetch(&self.records, self.len(), 0..self.len())),
            // Each has all: it was gathered after the update.
            Some(Shard::Optimizer | Shard::Gradients) => None,
            Some(Shard::Parameters) => {
                let (ops, replicas) = (self.cross_device_ops(), self.len());
                Some(collective::all_gather(self.records.iter(), ops, replicas))
            }
        };
        if let Some(done) = done {
            self.collectives.done(done, start);
        }
        Ok(Self::work_on(modules, inputs, work))
    }

    /// [`Self::compute_each_replica`] of replicas that divide the weights among them, where the work gathers those of
    /// [`Self::gather_in_parts`] itself, before the forward and again before the backward pass of a part: the modules have
    /// only the replica's rows of them, and `work` gets all pieces.
    ///
    /// # Errors
    /// SC0915 if there is not one input per replica, SC0907 if a copy cannot be made.
    pub fn compute_in_parts<I, T, F>(&self, inputs: Vec<I>, work: F) -> Result<Vec<T>>
    where
        I: Send + 'static,
        T: Send + 'static,
        F: Fn(ReplicaId, &M, I) -> T + Send + Sync + 'static,
    {
        self.one_each("inputs", inputs.len(), self.len(), "replica")?;
        let start = Instant::now();
        let Storage::Sharded { homes, .. } = &self.storage else {
            return self.compute_each_replica(inputs, work);
        };
        let others: Homes = homes
            .iter()
            .filter(|(param, _)| !self.in_parts.contains(param))
            .map(|(&param, parts)| (param, parts.clone()))
            .collect();
        let replicas = self.devices.iter().zip(&self.modules);
        let modules = replicas.map(|(device, own)| {
            shards::join(own, &self.modules, &others, self.first_home(), device)
        });
        let modules = modules.collect::<Result<Vec<M>>>()?;
        for gathered in self.gathered_in_a_pass() {
            self.collectives.done(gathered, start);
        }
        Ok(Self::work_on(modules, inputs, work))
    }

    /// [`Self::compute_each_replica`] under `ModelParallel`, with the network of each replica's first device: the layers get the
    /// slices of [`Self::gather_in_parts`] that its others have from the work. What else is cut is put together for it.
    ///
    /// # Errors
    /// SC0915 unless there is one input per replica, SC0907 if a copy cannot be made.
    pub fn compute_in_slices<I, T, F>(&self, inputs: Vec<I>, work: F) -> Result<Vec<T>>
    where
        I: Send + 'static,
        T: Send + 'static,
        F: Fn(ReplicaId, &M, I) -> T + Send + Sync + 'static,
    {
        self.one_each("inputs", inputs.len(), self.len(), "replica")?;
        let Storage::Sharded { homes, .. } = &self.storage else {
            return self.compute_each_replica(inputs, work);
        };
        let is_cut = |record: &&VariableRecord| !record.rows.is_empty();
        let cut = self.records.iter().filter(is_cut);
        let others = cut.filter(|record| !self.in_parts.contains(&record.param));
        let others: Homes = others
            .filter_map(|record| Some((record.param, homes.get(&record.param)?.clone())))
            .collect();
        let replicas = self.modules.chunks(self.modules_of_a_copy());
        let modules = replicas.zip(&self.devices).map(|(own, device)| {
            let first = &own[0];
            match others.is_empty() {
                true => Ok(first.clone()),
                false => shards::join(first, own, &others, 0, device),
            }
        });
        let modules = modules.collect::<Result<Vec<M>>>()?;
        Ok(Self::work_on(modules, inputs, work))
    }

    /// Whether layers compute with slices.
    pub fn computes_in_slices(&self) -> bool {
        !self.sliced_over.is_empty() && !self.in_parts.is_empty()
    }

    /// The axes along which the variables are cut that layers compute with in slices.
    pub fn cut_axes(&self) -> HashMap<ParamId, usize> {
        let records = self.records.iter();
        let own = records.filter(|it| self.sliced_over.len() == it.rows.len());
        own.filter(|it| self.computes_in_slices() && self.in_parts.contains(&it.param))
            .map(|it| (it.param, it.axis))
            .collect()
    }

    /// Calls `work` for every stage of a pipeline with its module and its input, and returns the results in the order of the
    /// stages, those of one replica after the other. All run at the same time, each on a thread of its own, so that they may
    /// wait for each other. A panic in one is passed on when all have ended.
    ///
    /// # Errors
    /// SC0915 if there is not one input per stage of each replica.
    pub fn compute_each_stage<I, T, F>(&self, inputs: Vec<I>, work: F) -> Result<Vec<T>>
    where
        I: Send + 'static,
        T: Send + 'static,
        F: Fn(usize, &M, I) -> T + Send + Sync + 'static,
    {
        self.one_each("inputs", inputs.len(), self.modules.len(), "stage")?;
        let inputs = self.modules.iter().cloned().zip(inputs).collect();
        let work = move |stage, (module, input): (M, I)| work(stage, &module, input);
        Ok(threads::together(inputs, work))
    }

    /// Calls `work` for every replica of a pipeline with the modules of its stages and its input, each on the replica's own
    /// thread, and returns the results in the order of the replicas. A panic in one is passed on when all have ended.
    ///
    /// # Errors
    /// SC0915 if there is not one input per replica.
    pub fn for_each_row<I, T, F>(&self, inputs: Vec<I>, work: F) -> Result<Vec<T>>
    where
        I: Send + 'static,
        T: Send + 'static,
        F: Fn(ReplicaId, &[M], I) -> T + Send + Sync + 'static,
    {
        self.one_each("inputs", inputs.len(), self.len(), "replica")?;
        let rows = self.modules.chunks(self.modules_of_a_copy());
        let inputs = rows.map(<[M]>::to_vec).zip(inputs).collect();
        let work = move |index, (row, input): (Vec<M>, I)| work(ReplicaId(index), &row, input);
        Ok(threads::for_each(inputs, work))
    }

    /// The all-gathers of a forward and backward pass: of all variables, and of those in parts once more.
    pub(super) fn gathered_in_a_pass(&self) -> Vec<collective::Done> {
        let (ops, replicas) = (self.cross_device_ops(), self.len());
        let in_parts = || {
            self.records
                .iter()
                .filter(|it| self.in_parts.contains(&it.param))
        };
        let mut all = vec![collective::all_gather(self.records.iter(), ops, replicas)];
        if in_parts().next().is_some() {
            all.push(collective::all_gather(in_parts(), ops, replicas));
        }
        all
    }

    /// The rows of all replicas of the variables in parts, each as a vector, in their order. They are views.
    pub fn pieces(&self) -> HashMap<ParamId, Vec<Tensor<1>>> {
        match &self.storage {
            Storage::Sharded { homes, .. } => shards::pieces(&self.modules, homes, &self.in_parts),
            Storage::Mirrored | Storage::PerProcess | Storage::Central { .. } => HashMap::new(),
        }
    }

    /// Which variables [`Self::compute_in_parts`] leaves to the work, where replicas divide the weights; and
    /// [`Self::compute_in_slices`], where devices have slices.
    pub fn gather_in_parts(&mut self, variables: HashSet<ParamId>) {
        self.in_parts = variables;
    }

    /// Whether a variable is gathered part by part.
    pub fn is_in_parts(&self, variable: ParamId) -> bool {
        self.gathers_in_parts() && self.in_parts.contains(&variable)
    }

    /// Whether the weights are to be gathered part by part.
    pub fn gathers_in_parts(&self) -> bool {
        self.shard() == Some(Shard::Parameters) && !self.in_parts.is_empty()
    }

    /// All replicas with the one module that is here: what workers compute when none of them is asked.
    fn one_after_the_other<I, T, F>(&self, inputs: Vec<I>, work: F) -> Vec<T>
    where
        F: Fn(ReplicaId, &M, I) -> T,
    {
        let inputs = inputs.into_iter().enumerate();
        inputs
            .map(|(index, input)| work(ReplicaId(index), &self.modules[0], input))
            .collect()
    }

    fn work_on<I, T, F>(modules: Vec<M>, inputs: Vec<I>, work: F) -> Vec<T>
    where
        I: Send + 'static,
        T: Send + 'static,
        F: Fn(ReplicaId, &M, I) -> T + Send + Sync + 'static,
    {
        let inputs = modules.into_iter().zip(inputs).collect();
        let work = move |index, (module, input): (M, I)| work(ReplicaId(index), &module, input);
        threads::for_each(inputs, work)
    }

    /// Calls `work` for every stored module ([`Self::modules`]), to change it: an optimizer's update. If variables
    /// are sharded, each server gets its part of the gradients from [`Self::scatter`]. After a panic in `work` every
    /// module is still stored, with the changes made before the panic.
    ///
    /// # Errors
    /// SC0915 if there is not one input per stored module.
    pub fn update_each_replica<I, T, F>(&mut self, inputs: Vec<I>, work: F) -> Result<Vec<T>>
    where
        I: Send + 'static,
        T: Send + 'static,
        F: Fn(ReplicaId, &mut M, I) -> T + Send + Sync + 'static,
    {
        let per = self.storage.module_name();
        self.one_each("inputs", inputs.len(), self.modules.len(), per)?;
        self.updates += 1;
        let copies = self.take_copies()?;
        self.values_changed();
        let inputs = self.modules.drain(..).zip(inputs).collect();
        let done = threads::for_each(inputs, move |index, (mut module, input): (M, I)| {
            let call = AssertUnwindSafe(|| work(ReplicaId(index), &mut module, input));
            let result = panic::catch_unwind(call);
            (module, result)
        });
        let (modules, results): (Vec<M>, Vec<_>) = done.into_iter().unzip();
        self.modules = modules;
        if let Some(copies) = copies {
            self.gather(copies);
        }
        let value =
            |result: std::thread::Result<T>| result.unwrap_or_else(|p| panic::resume_unwind(p));
        Ok(results.into_iter().map(value).collect())
    }

    /// A full module per replica, to compute with: its own copy, or one that it fetches from where the variables
    /// are stored.
    pub(super) fn readable(&self) -> Result<Vec<M>> {
        if matches!(self.storage, Storage::Mirrored) {
            return Ok(self.modules.clone());
        }
        if self.keeps_copies() {
            return Ok(self.unsharded().to_vec());
        }
        if self.stages.is_some() || !self.sliced_over.is_empty() {
            let others = self.devices.iter().enumerate().skip(1);
            let others = others.map(|(replica, device)| self.full_copy(replica, device));
            return std::iter::once(Ok(self.first().clone()))
                .chain(others)
                .collect();
        }
        let read = |(index, device): (usize, &LogicalDevice)| {
            // The replica whose device stores the variables reads them in place.
            let stored_here = index == 0 && self.servers.is_empty() && !self.is_sharded();
            match stored_here {
                true => Ok(self.modules[0].clone()),
                false => self.full_copy(0, device),
            }
        };
        self.devices.iter().enumerate().map(read).collect()
    }
}

//! What replicas exchange: the mean of gradients or parameters, pushes and fetches.

use std::sync::OnceLock;
use std::time::Instant;

use burn::module::Module;
use burn::optim::GradientsParams;
use stratoscope_diagnostics::Result;

use super::storage::Storage;
use super::{ReplicaId, Replicas};
use crate::collective::{self, Across, CrossDeviceOps, Groups, Operation};
use crate::device::LogicalDevice;
use crate::strategy::Strategy;
use crate::values;
use crate::{copy, shards};

/// The variables as a worker fetched them.
#[derive(Clone)]
pub(super) struct Snapshot<M> {
    pub(super) module: M,
    /// How many updates had been made when the worker fetched them.
    pub(super) updates: u64,
}

impl<M: Module + 'static> Replicas<M> {
    /// Collectives from here on belong to a new optimizer step.
    pub fn begin_step(&self) {
        self.collectives.begin_step();
    }

    /// The gradients' mean over the replicas, weighted by samples: `Σ gradient_i · samples_i / Σ samples`. Since the
    /// loss of each replica is the mean over its part of the batch, this is the gradient of the mean loss of the
    /// whole batch, also where the parts have different sizes. Every copy of the variables gets the mean on its
    /// own device, equal bit for bit. In a pipeline that is the device of the variable's stage, in each replica.
    ///
    /// The gradients of a replica with 0 samples are ignored. A gradient that a replica lacks counts as zeros. A
    /// single replica gets its gradients back, and nothing is counted.
    ///
    /// # Errors
    /// SC0915 if there is not one set of gradients and one count per replica, or no samples.
    pub fn all_reduce(
        &self,
        gradients: Vec<GradientsParams>,
        samples: &[usize],
    ) -> Result<Vec<GradientsParams>> {
        self.reduce(Operation::AllReduce, gradients, samples)
    }

    fn reduce(
        &self,
        operation: Operation,
        values: Vec<GradientsParams>,
        samples: &[usize],
    ) -> Result<Vec<GradientsParams>> {
        let start = Instant::now();
        let across = self.across();
        let (values, done) =
            collective::reduce(operation, self.structure(), &across, values, samples)?;
        if let Some(done) = done {
            self.collectives.done(done, start);
        }
        Ok(values)
    }

    /// Counts an all-reduce, or another such operation, of so many numbers in so many tensors that worker processes have
    /// computed since `start`.
    pub fn reduced_by_workers(
        &self,
        operation: Operation,
        (elements, tensors): (usize, usize),
        start: Instant,
    ) {
        let ops = self.strategy.as_ref().map(Strategy::cross_device_ops);
        let ops = ops.unwrap_or_default();
        let bytes = match (operation, self.strategy.as_ref()) {
            (Operation::AllReduce, Some(strategy)) => strategy.gradient_bytes(),
            _ => size_of::<f32>(),
        };
        let size = (elements, tensors, bytes);
        let done = collective::reduced_by_workers(operation, ops, self.len(), size);
        self.collectives.done(done, start);
    }

    /// Replicas, then servers: the order in which [`crate::Transfer`] counts devices.
    fn all_devices(&self) -> Vec<LogicalDevice> {
        [self.computing(), &self.servers].concat()
    }

    /// The communication pattern of the replicas.
    pub(super) fn cross_device_ops(&self) -> CrossDeviceOps {
        let ops = self.strategy.as_ref().map(Strategy::cross_device_ops);
        ops.unwrap_or_default()
    }

    /// The full copies of variables of which each replica updates some rows, before an update; `None` under other
    /// strategies.
    pub(super) fn take_copies(&mut self) -> Result<Option<Vec<M>>> {
        if !self.keeps_copies() {
            return Ok(None);
        }
        let known = match &mut self.storage {
            Storage::Sharded { joined, .. } => joined.take(),
            Storage::Mirrored | Storage::PerProcess | Storage::Central { .. } => None,
        };
        known.map_or_else(|| self.joined_copies(), Ok).map(Some)
    }

    /// Writes the rows that were updated into the full copies of all replicas. Afterwards the rows are a part of their
    /// replica's copy and need no memory of their own.
    pub(super) fn gather(&mut self, copies: Vec<M>) {
        let start = Instant::now();
        let Storage::Sharded { homes, joined, .. } = &mut self.storage else {
            return;
        };
        let trained = self.records.iter().filter(|record| record.trainable);
        let params = trained.clone().map(|record| record.param).collect();
        let pieces = shards::pieces(&self.modules, homes, &params);
        let copies = shards::gather(pieces, copies, &self.devices);
        let views = copies.iter().enumerate();
        self.modules = views
            .map(|(home, copy)| shards::view(copy, homes, home))
            .collect();
        *joined = OnceLock::from(copies);
        let done = collective::all_gather(trained, self.cross_device_ops(), self.len());
        self.collectives.done(done, start);
    }

    fn across(&self) -> Across<'_> {
        let each = self.devices_of_a_replica();
        Across {
            ops: self.cross_device_ops(),
            replicas: self.len(),
            each,
            groups: Groups::of(&self.all_devices(), each, &self.records),
            // Where each replica has all variables, the mean goes to each.
            homes: self.storage.homes().filter(|_| self.copies() < 2),
            shard: self.shard(),
        }
    }

    /// Gives every replica the mean of all replicas' trainable variables, weighted by samples: the synchronization
    /// of local SGD. Afterwards they are equal bit for bit. Does nothing where there is one copy.
    ///
    /// # Errors
    /// SC0915 if there is not one count per replica, or no samples.
    pub fn average(&mut self, samples: &[usize]) -> Result<()> {
        if self.copies() < 2 || self.is_sharded() {
            return Ok(());
        }
        let values = self.modules.iter().map(values::of).collect();
        let means = self.reduce(Operation::Average, values, samples)?;
        let modules = self.modules.drain(..).zip(means);
        self.modules = modules
            .map(|(m, means)| values::replaced(m, means))
            .collect();
        Ok(())
    }

    /// A separate model with the mean that [`Self::average`] would give. These replicas do not change, and
    /// nothing is counted.
    ///
    /// # Errors
    /// As [`Self::average`], and SC0907 if a copy cannot be made.
    pub fn averaged(&self, samples: &[usize]) -> Result<Self> {
        let mut other = self.with_modules(self.modules.clone());
        other.average(samples)?;
        Ok(other)
    }

    /// Gives copies on another kind of device than the first copy's the values of the first. Different devices
    /// round the same update differently, so that copies that make it for themselves would drift apart.
    ///
    /// # Errors
    /// SC0907 if a copy cannot be made.
    pub fn equalize(&mut self) -> Result<()> {
        let (each, devices) = (self.modules_of_a_copy(), self.storage_devices().to_vec());
        for index in each..self.modules.len() {
            let (first, device) = (&devices[index % each], &devices[index]);
            if device.backend != first.backend || device.description != first.description {
                self.modules[index] = copy::module(&self.modules[index % each], device)?;
            }
        }
        Ok(())
    }

    /// Sends one worker's gradients to the servers without waiting for other workers. The caller applies what is
    /// returned at once; the worker then [fetches](Self::fetch).
    pub fn push(&self, worker: ReplicaId, gradients: GradientsParams) -> GradientsParams {
        let start = Instant::now();
        let (arrived, done) =
            collective::push(self.structure(), &self.across(), worker.0, gradients);
        let snapshot = self.snapshots.as_ref().and_then(|all| all.get(worker.0));
        let fetched_at = snapshot.map_or(self.updates, |snapshot| snapshot.updates);
        self.collectives.stale(self.updates - fetched_at);
        self.collectives.done(done, start);
        arrived
    }

    /// Gives a worker of an asynchronous strategy the current variables. Does nothing under other strategies, whose
    /// replicas fetch when they compute.
    ///
    /// # Errors
    /// SC0907 if a copy cannot be made.
    pub fn fetch(&mut self, worker: ReplicaId) -> Result<()> {
        let start = Instant::now();
        if self
            .snapshots
            .as_ref()
            .is_none_or(|all| all.len() <= worker.0)
        {
            return Ok(());
        }
        let module = self.full_copy(0, &self.devices[worker.0])?;
        let updates = self.updates;
        if let Some(snapshots) = &mut self.snapshots {
            snapshots[worker.0] = Snapshot { module, updates };
        }
        let done = collective::fetch(&self.records, self.len(), std::iter::once(worker.0));
        self.collectives.done(done, start);
        Ok(())
    }

    /// Gives all workers of an asynchronous strategy the current variables; not counted.
    pub(super) fn fetch_all(&mut self) -> Result<()> {
        let is_asynchronous = (self.strategy.as_ref()).is_some_and(Strategy::is_asynchronous);
        if is_asynchronous {
            let updates = self.updates;
            let modules = self.readable()?.into_iter();
            let snapshots = modules.map(|module| Snapshot { module, updates });
            self.snapshots = Some(snapshots.collect());
        }
        Ok(())
    }
}

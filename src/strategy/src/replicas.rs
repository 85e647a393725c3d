//! A module under a strategy: where its variables are stored, and the work that all replicas do with them.
//!
//! *Data-parallel training* runs the same network on several devices, the replicas, each on its own part of the
//! batch. Strategies differ in where the variables live meanwhile (`storage`): a full copy on every replica, one
//! copy on one device, or rows spread over parameter servers. [`Replicas`] hides the difference from a
//! training step, which is always
//!
//! 1. [`compute_each_replica`](Replicas::compute_each_replica): forward and backward pass on each replica;
//! 2. [`all_reduce`](Replicas::all_reduce): the mean of the gradients, delivered to where the variables are stored;
//! 3. [`update_each_replica`](Replicas::update_each_replica): the optimizer, on every stored module.
//!
//! This file places a module and answers what is where; `work` runs closures on the replicas, `exchange` moves
//! gradients and parameters between devices.

use std::collections::HashSet;
use std::fmt;
use std::time::Instant;

use burn::module::{Module, ParamId};
use stratoscope_diagnostics::Result;
use stratoscope_render::text;

use crate::collective::{self, Collective, Collectives};
use crate::device::{LogicalDevice, default_device};
use crate::origin::Origin;
use crate::strategy::{PipelineStages, Shard, Strategy, model_parallel};
use crate::variable::{self, VariableRecord};
use crate::{buffers, copy, problem, scope};

mod checksums;
mod exchange;
mod mappers;
mod running;
mod saved;
mod storage;
mod work;

use self::exchange::Snapshot;
use self::mappers::{Renamed, Trainable};
pub use self::running::RunningValues;
pub use self::saved::SavedValues;
use self::storage::Storage;
pub use self::storage::StoredPart;

/// A replica's number, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReplicaId(pub usize);

/// A module under a strategy.
///
/// [`Self::modules`] are the modules that are stored, on [`Self::storage_devices`]: one full copy per replica
/// (mirrored), one copy (central), or one module per server with the server's rows (sharded). All of them have
/// the same parameter identities and share no storage. Whoever changes one copy must change all alike.
///
/// # Example
/// ```
/// use burn::nn::LinearConfig;
/// use stratoscope_strategy::{CentralStorageStrategy, MirroredStrategy, Origin, Replicas, scope};
///
/// # fn main() -> stratoscope_diagnostics::Result<()> {
/// let (mirrored, central) = (MirroredStrategy::logical(2)?, CentralStorageStrategy::logical(2)?);
/// let place = |guard: scope::ScopeGuard| {
///     let layer = LinearConfig::new(4, 3).init(&scope::device()?);
///     let placed = Replicas::place(layer, &[], Origin::current());
///     drop(guard);
///     placed
/// };
/// assert_eq!(place(scope::enter(&mirrored)?)?.copies(), 2);
/// assert_eq!(place(scope::enter(&central)?)?.copies(), 1);
/// # Ok(())
/// # }
/// ```
pub struct Replicas<M> {
    /// What is stored, as [`Storage`] says; one per storage device.
    modules: Vec<M>,
    storage: Storage<M>,
    /// One per replica.
    devices: Vec<LogicalDevice>,
    /// The devices of a parameter server strategy that store variables and compute nothing; else none.
    servers: Vec<LogicalDevice>,
    /// The variables as each worker of an asynchronous strategy fetched them last; `None` for other strategies.
    snapshots: Option<Vec<Snapshot<M>>>,
    /// How often the variables were updated.
    updates: u64,
    /// How often values may have changed, by whatever.
    changes: u64,
    strategy: Option<Strategy>,
    records: Vec<VariableRecord>,
    /// The devices with slices of the layers, under `ModelParallel`, one replica after the other; else none.
    sliced_over: Vec<LogicalDevice>,
    /// What is gathered part by part, where replicas divide the weights among them; what layers compute with in slices, under
    /// `ModelParallel`.
    in_parts: HashSet<ParamId>,
    /// What forward passes in training change (`running`).
    running: HashSet<ParamId>,
    /// Which layers are on which device, in a pipeline.
    stages: Option<PipelineStages>,
    collectives: Collectives,
}

impl<M: Module + 'static> Replicas<M> {
    /// Places a module on the devices of the active strategy; outside any scope, on the default device. `names` are the
    /// checkpoint's names of its variables, for those whose name differs from the path of their field.
    ///
    /// # Errors
    /// SC0907 if a copy cannot be made.
    pub fn place(module: M, names: &[(String, ParamId)], origin: Origin) -> Result<Self> {
        Self::place_under(scope::current(), module, names, origin)
    }

    /// [`Self::place`] under a given strategy, or none.
    ///
    /// # Errors
    /// SC0609 for a variable that is larger than the largest buffer of a device, SC0907 if a copy cannot be made; SC0620 and
    /// SC0624 for a module that a pipeline cannot divide, SC0626 for one whose variables cannot be cut as a layout says.
    pub fn place_under(
        strategy: Option<Strategy>,
        module: M,
        names: &[(String, ParamId)],
        origin: Origin,
    ) -> Result<Self> {
        let devices = match &strategy {
            Some(strategy) => strategy.replicas().to_vec(),
            None => vec![default_device()?],
        };
        let mut records = variable::describe(&module, names, strategy.as_ref(), &origin);
        let stages = PipelineStages::of(strategy.as_ref(), &module)?;
        if let (Some(stages), Some(strategy)) = (&stages, &strategy) {
            stages.assign(&strategy.label(), &mut records);
        }
        let mut sliced_over = Vec::new();
        if let Some(strategy) = &strategy {
            model_parallel::assign(strategy, &mut records)?;
            sliced_over = strategy.model_devices().to_vec();
        }
        buffers::check(&records, &devices)?;
        let servers = strategy
            .as_ref()
            .map_or(Vec::new(), |s| s.servers().to_vec());
        let mut placed = Self {
            modules: Vec::new(),
            storage: Storage::of(strategy.as_ref(), &records),
            devices,
            servers,
            snapshots: None,
            updates: 0,
            changes: 0,
            strategy,
            records,
            sliced_over,
            in_parts: HashSet::new(),
            running: running::find(&module),
            stages,
            collectives: Collectives::default(),
        };
        placed.modules = placed.copies_of(&module)?;
        placed.fetch_all()?;
        Ok(placed)
    }

    /// A separate model with these modules, placed alike: no worker has fetched its variables, and nothing is counted.
    fn with_modules(&self, modules: Vec<M>) -> Self {
        Self {
            modules,
            storage: self.storage.for_other_values(),
            devices: self.devices.clone(),
            servers: self.servers.clone(),
            snapshots: None,
            updates: self.updates,
            changes: 0,
            strategy: self.strategy.clone(),
            records: self.records.clone(),
            sliced_over: self.sliced_over.clone(),
            in_parts: self.in_parts.clone(),
            running: self.running.clone(),
            stages: self.stages.clone(),
            collectives: Collectives::default(),
        }
    }

    /// How many replicas there are.
    pub fn len(&self) -> usize {
        self.devices.len()
    }

    /// Always false: a strategy has at least one device.
    pub fn is_empty(&self) -> bool {
        self.devices.is_empty()
    }

    /// How many times all variables are stored: once per replica if they are mirrored, or in slices on the devices of each
    /// replica; else once.
    pub fn copies(&self) -> usize {
        match self.storage {
            Storage::Mirrored => self.devices.len(),
            Storage::PerProcess | Storage::Central { .. } => 1,
            Storage::Sharded { copies, .. } => copies,
        }
    }

    /// Whether variables are updated by rows, on servers or on replicas: [`Self::modules`] have rows, and what the optimizer
    /// keeps is by rows too.
    ///
    /// In a pipeline the rows of a variable are all of it or none, in each replica.
    pub fn is_sharded(&self) -> bool {
        matches!(self.storage, Storage::Sharded { .. })
    }

    /// What the replicas divide among them, if they do.
    pub fn shard(&self) -> Option<Shard> {
        match self.storage {
            Storage::Sharded { shard, .. } => shard,
            Storage::Mirrored | Storage::PerProcess | Storage::Central { .. } => None,
        }
    }

    /// The devices, one per replica.
    pub fn devices(&self) -> &[LogicalDevice] {
        &self.devices
    }

    /// Which layers are on which device, where the strategy is a pipeline: then [`Self::modules`] are one for each stage, with
    /// the variables of its layers, one replica after the other.
    pub fn stages(&self) -> Option<&PipelineStages> {
        self.stages.as_ref()
    }

    /// The devices with slices of the layers, under `ModelParallel`, one replica after the other: then [`Self::modules`] are
    /// one for each, with its slices, the first one of a replica with all that is not cut. Else none.
    pub fn sliced_over(&self) -> &[LogicalDevice] {
        &self.sliced_over
    }

    /// All devices that compute: those of the replicas; of replicas of several devices the stages, or those with slices.
    pub fn computing(&self) -> &[LogicalDevice] {
        match &self.stages {
            Some(stages) => &stages.devices,
            None if !self.sliced_over.is_empty() => &self.sliced_over,
            None => &self.devices,
        }
    }

    /// How many devices compute a replica together.
    pub fn devices_of_a_replica(&self) -> usize {
        self.computing().len() / self.len()
    }

    /// The strategy the module is bound to; none if it was made outside any scope.
    pub fn strategy(&self) -> Option<&Strategy> {
        self.strategy.as_ref()
    }

    /// The variables, in the order of the module's fields.
    pub fn records(&self) -> &[VariableRecord] {
        &self.records
    }

    /// A full module: replica 0's copy, the central copy, or the shards joined. It is what is saved, and what
    /// computes where one replica is enough. Joining shards copies every variable; the result is cached until the
    /// next update.
    pub fn first(&self) -> &M {
        &self.unsharded()[0]
    }

    /// The identities and the structure of the variables. The values may be one server's rows only, so this is
    /// for visitors that look up something by [`ParamId`]; it never copies.
    pub fn structure(&self) -> &M {
        &self.modules[0]
    }

    /// The modules as they are stored, one per [storage device](Self::storage_devices): full copies, or each
    /// server's rows.
    pub fn modules(&self) -> &[M] {
        &self.modules
    }

    /// [`Self::modules`] to be changed, all alike.
    pub fn modules_mut(&mut self) -> &mut [M] {
        self.values_changed();
        &mut self.modules
    }

    /// A number that is another one whenever a value may have changed: what others know of the values holds as long as it
    /// stays.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// What others know of the values does not hold any more.
    pub fn values_changed(&mut self) {
        self.changes += 1;
        self.storage.values_changed();
    }

    /// What the replicas did together.
    pub fn collectives(&self) -> &Collectives {
        &self.collectives
    }

    /// Marks float variables as trainable or frozen, on every device. A frozen variable gets no gradient and so
    /// is never updated.
    pub fn set_trainable(&mut self, params: &HashSet<ParamId>, trainable: bool) {
        self.values_changed();
        let snapshots = self.snapshots.iter_mut().flatten();
        let snapshots = snapshots.map(|snapshot| &mut snapshot.module);
        for module in self.modules.iter_mut().chain(snapshots) {
            *module = module.clone().map(&mut Trainable { params, trainable });
        }
        for record in &mut self.records {
            if params.contains(&record.param) {
                record.trainable = trainable;
            }
        }
    }

    /// Variables that others also have keep the origins that they have there: of a module that was placed anew, because
    /// it has got more variables.
    pub fn keep_origins(&mut self, others: &[VariableRecord]) {
        for record in &mut self.records {
            if let Some(other) = others.iter().find(|other| other.param == record.param) {
                record.origin = other.origin.clone();
            }
        }
    }

    /// Gives every replica the values of this module: after a checkpoint was read or the best epoch is restored.
    /// The variables keep their identities, so that optimizers find their state for them, and those are trained that were
    /// before.
    ///
    /// # Errors
    /// SC0915 for a module with other variables, SC0907 if a copy cannot be made; then nothing has
    /// changed.
    pub fn replace(&mut self, module: &M) -> Result<()> {
        let given = variable::describe(module, &[], None, &Origin::default());
        let shapes = |records: &[VariableRecord]| -> Vec<Vec<usize>> {
            records.iter().map(|record| record.shape.clone()).collect()
        };
        if shapes(&given) != shapes(&self.records) {
            let given = text::count(given.len(), "variable");
            let expects = format!(
                "a module with the {} of the one it replaces, in the same shapes and order",
                text::count(self.records.len(), "variable")
            );
            return Err(problem::bad_size("module", given, &expects));
        }
        let theirs = given.iter().map(|record| record.param);
        let ours = self.records.iter().map(|record| record.param);
        let names = theirs.zip(ours).collect();
        let module = module.clone().map(&mut Renamed(names));
        self.modules = self.copies_of(&module)?;
        // What was frozen or unfrozen since the module was copied stays so: the records say it.
        for trainable in [true, false] {
            let pairs = given.iter().zip(&self.records);
            let changed = pairs.filter(|(given, record)| {
                record.trainable == trainable && given.trainable != trainable
            });
            let params: HashSet<ParamId> = changed.map(|(_, record)| record.param).collect();
            if params.is_empty() {
                continue;
            }
            let params = &params;
            for module in &mut self.modules {
                *module = module.clone().map(&mut Trainable { params, trainable });
            }
        }
        self.values_changed();
        self.updates += 1;
        self.fetch_all()
    }

    /// Copies replica 0's variables to every other replica. Does nothing where there is one copy.
    ///
    /// # Errors
    /// SC0907 if a copy cannot be made; then nothing has changed.
    pub fn broadcast(&mut self) -> Result<()> {
        if self.copies() < 2 {
            return Ok(());
        }
        let start = Instant::now();
        let each = self.modules_of_a_copy();
        let others = self.storage_devices().iter().enumerate().skip(each);
        let others = others
            .map(|(index, device)| copy::module(&self.modules[index % each], device))
            .collect::<Result<Vec<M>>>()?;
        self.modules.truncate(each);
        self.modules.extend(others);
        let done = collective::broadcast(&self.records, self.len());
        self.collectives.done(done, start);
        Ok(())
    }

    /// What the next optimizer step will move, computed from sizes; empty for one replica.
    pub fn planned_collectives(&self) -> Vec<Collective> {
        let Some(strategy) = &self.strategy else {
            return Vec::new();
        };
        let mut planned = collective::planned(strategy, &self.records);
        if self.shard() == Some(Shard::Parameters) {
            let gathered = self.gathered_in_a_pass().into_iter();
            planned.splice(..0, gathered.map(|done| done.collective));
        }
        planned
    }

    /// SC0915, unless as many are given as expected.
    fn one_each(&self, what: &str, given: usize, expected: usize, per: &str) -> Result<()> {
        if given == expected {
            return Ok(());
        }
        let expects = format!("{expected}, one per {per}");
        Err(problem::bad_size(what, given, &expects))
    }
}

impl<M> fmt::Debug for Replicas<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self
            .devices
            .iter()
            .map(|device| device.name.as_str())
            .collect();
        write!(
            f,
            "{} variables on {}",
            self.records.len(),
            names.join(", ")
        )
    }
}

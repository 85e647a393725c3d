//! A module's copies, one per replica, and what is done with all of them.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::OnceLock;
use std::time::Instant;

use burn::module::{Module, ModuleMapper, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::{Bool, Int, Tensor};
use stratoscope_diagnostics::Result;
use stratoscope_diagnostics::work::{Unit, Work};
use stratoscope_render::text;

use crate::checksum::{self, Checksum};
use crate::collective::{self, Across, Collective, Collectives, Operation};
use crate::device::{LogicalDevice, cpu};
use crate::origin::Origin;
use crate::shards::{self, Homes};
use crate::strategy::Strategy;
use crate::variable::{self, VariableKind, VariableRecord};
use crate::{copy, problem, scope, threads, values};

/// A replica's number, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReplicaId(pub usize);

/// A module under a strategy. Where the strategy mirrors, there is one copy per replica: with the same parameter
/// identities and no storage in common; what changes one must change all alike, or they are no longer
/// replicas. Where the strategy keeps one copy of each variable, there is one module, and replicas that compute
/// fetch what they need. Where it cuts variables by rows, each server has a module with its rows, and replicas put
/// together what they fetch.
pub struct Replicas<M> {
    modules: Vec<M>,
    devices: Vec<LogicalDevice>,
    /// The devices that only keep variables.
    servers: Vec<LogicalDevice>,
    /// Where each variable is, if there is one copy of it.
    homes: Option<Homes>,
    /// Whether a variable is cut over the servers.
    is_sharded: bool,
    /// The servers' rows put together, until an update.
    whole: OnceLock<M>,
    /// What the workers of an asynchronous strategy have fetched, and when.
    fetched: Vec<Fetched<M>>,
    /// Updates of the one copy.
    updates: u64,
    strategy: Option<Strategy>,
    records: Vec<VariableRecord>,
    collectives: Collectives,
}

struct Fetched<M> {
    module: M,
    /// After how many updates.
    after: u64,
}

impl<M: Module + 'static> Replicas<M> {
    /// Copies a module to every replica of the active strategy; outside any scope, to the processor.
    /// `names` are the checkpoint's names of its variables, as far as they differ from the paths of
    /// its fields.
    ///
    /// # Errors
    /// SC0907 if a copy cannot be made.
    pub fn place(module: M, names: &[(String, ParamId)], origin: Origin) -> Result<Self> {
        Self::place_under(scope::current(), module, names, origin)
    }

    /// The same under a given strategy, or none.
    ///
    /// # Errors
    /// SC0907 if a copy cannot be made.
    pub fn place_under(
        strategy: Option<Strategy>,
        module: M,
        names: &[(String, ParamId)],
        origin: Origin,
    ) -> Result<Self> {
        let devices = match &strategy {
            Some(strategy) => strategy.replicas().to_vec(),
            None => vec![cpu(0).resolve()?],
        };
        let records = variable::describe(&module, names, strategy.as_ref(), &origin);
        let servers = strategy
            .as_ref()
            .map_or(Vec::new(), |s| s.servers().to_vec());
        let central = strategy.as_ref().is_some_and(|s| !s.has_copies());
        let homes = central.then(|| {
            let home = |record: &VariableRecord| (record.param, record.parts());
            records.iter().map(home).collect()
        });
        let mut placed = Self {
            modules: Vec::new(),
            devices,
            servers,
            homes,
            is_sharded: (records.iter()).any(|record| record.kind == VariableKind::Sharded),
            whole: OnceLock::new(),
            fetched: Vec::new(),
            updates: 0,
            strategy,
            records,
            collectives: Collectives::default(),
        };
        placed.modules = placed.kept(&module)?;
        placed.fetch_all()?;
        Ok(placed)
    }

    /// Copies of a module, on every device that is to have one; or its rows, on every server.
    fn kept(&self, module: &M) -> Result<Vec<M>> {
        let keepers = self.keepers().iter();
        match self.homes.as_ref().filter(|_| self.is_sharded) {
            None => keepers.map(|it| copy::module(module, it)).collect(),
            Some(homes) => (self.len()..)
                .zip(keepers)
                .map(|(home, it)| shards::cut(module, homes, home, it))
                .collect(),
        }
    }

    /// The devices of [`Self::modules`]: every replica where each has a copy, one device where there is one
    /// copy, every server where variables are cut.
    pub fn keepers(&self) -> &[LogicalDevice] {
        match (&self.homes, self.servers.as_slice()) {
            (None, _) => &self.devices,
            (Some(_), []) => &self.devices[..1],
            // All servers are shares of one processor: where a whole variable is among them is kept in its
            // record.
            (Some(_), servers) if !self.is_sharded => &servers[..1],
            (Some(_), servers) => servers,
        }
    }

    /// How many replicas there are.
    pub fn len(&self) -> usize {
        self.devices.len()
    }

    /// Never: a strategy has at least one device.
    pub fn is_empty(&self) -> bool {
        self.devices.is_empty()
    }

    /// How many copies of its variables there are: one per replica, or one.
    pub fn copies(&self) -> usize {
        match self.is_sharded {
            true => 1,
            false => self.modules.len(),
        }
    }

    /// Whether variables are cut by rows over the servers.
    pub fn is_sharded(&self) -> bool {
        self.is_sharded
    }

    /// The devices, one per replica.
    pub fn devices(&self) -> &[LogicalDevice] {
        &self.devices
    }

    /// The strategy the module is bound to; none if it was made outside any scope.
    pub fn strategy(&self) -> Option<&Strategy> {
        self.strategy.as_ref()
    }

    /// The variables, in the order of the module's fields.
    pub fn records(&self) -> &[VariableRecord] {
        &self.records
    }

    /// Replica 0's module, or the one copy, put together if it is cut: what is saved, and what answers
    /// where one is enough.
    pub fn first(&self) -> &M {
        match self.is_sharded {
            false => &self.modules[0],
            true => self.whole.get_or_init(|| {
                let whole = self.whole_on(&self.servers[0]);
                whole.expect("servers are shares of the processor, whose memory can be read")
            }),
        }
    }

    /// All of every copy: [`Self::modules`], or, where those are cut, what they are together.
    pub fn wholes(&self) -> &[M] {
        match self.is_sharded {
            false => &self.modules,
            true => std::slice::from_ref(self.first()),
        }
    }

    /// What has one copy of everything: a module, or the servers' modules as they are, which costs nothing.
    pub fn one_copy(&self) -> &[M] {
        match self.is_sharded {
            false => &self.modules[..1],
            true => &self.modules,
        }
    }

    /// A module with every variable's identity, in their order. Its values may be a server's rows alone: it is
    /// for visits to what belongs to variables, and costs nothing.
    pub fn outline(&self) -> &M {
        &self.modules[0]
    }

    /// The modules, one per copy; or one per server, with its rows of the variables.
    pub fn modules(&self) -> &[M] {
        &self.modules
    }

    /// The modules, to be changed alike.
    pub fn modules_mut(&mut self) -> &mut [M] {
        self.whole = OnceLock::new();
        &mut self.modules
    }

    /// A copy of all variables, on a device.
    fn whole_on(&self, device: &LogicalDevice) -> Result<M> {
        match self.homes.as_ref().filter(|_| self.is_sharded) {
            None => copy::module(&self.modules[0], device),
            Some(homes) => shards::joined(&self.modules, homes, self.len(), device),
        }
    }

    /// What the replicas did together.
    pub fn collectives(&self) -> &Collectives {
        &self.collectives
    }

    /// Marks float variables as trained or not, on every replica. A variable that is not trained gets no
    /// gradient, and so no update.
    pub fn set_trainable(&mut self, params: &HashSet<ParamId>, trainable: bool) {
        self.whole = OnceLock::new();
        for module in &mut self.modules {
            *module = module.clone().map(&mut Trainable { params, trainable });
        }
        for Fetched { module, .. } in &mut self.fetched {
            *module = module.clone().map(&mut Trainable { params, trainable });
        }
        for record in &mut self.records {
            if params.contains(&record.param) {
                record.trainable = trainable;
            }
        }
    }

    /// Gives every replica the values of this module: a checkpoint was read, a best epoch is restored.
    /// The variables keep their identities, so that optimizers still know them.
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
        let old = given.iter().map(|record| record.param);
        let known = old
            .zip(self.records.iter().map(|record| record.param))
            .collect();
        let module = module.clone().map(&mut Renamed(known));
        self.modules = self.kept(&module)?;
        self.whole = OnceLock::new();
        self.updates += 1;
        self.fetch_all()
    }

    /// Copies replica 0's variables to every other replica; nothing where there is one copy.
    ///
    /// # Errors
    /// SC0907 if a copy cannot be made; then nothing has changed.
    pub fn broadcast(&mut self) -> Result<()> {
        if self.copies() < 2 {
            return Ok(());
        }
        let start = Instant::now();
        let others = self.devices[1..]
            .iter()
            .map(|device| copy::module(&self.modules[0], device))
            .collect::<Result<Vec<M>>>()?;
        self.modules.truncate(1);
        self.modules.extend(others);
        let done = collective::broadcast(&self.records, self.len());
        self.collectives.done(done, start);
        Ok(())
    }

    /// A module per replica, to compute with: its own copy, or what it fetches from the one there is.
    fn readable(&self) -> Result<Vec<M>> {
        if self.homes.is_none() {
            return Ok(self.modules.clone());
        }
        let read = |(index, device): (usize, &LogicalDevice)| {
            // The device that keeps the variables reads them where they are.
            let at_home = index == 0 && self.servers.is_empty();
            match at_home {
                true => Ok(self.modules[0].clone()),
                false => self.whole_on(device),
            }
        };
        self.devices.iter().enumerate().map(read).collect()
    }

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
        Ok(Self::work_on(self.readable()?, inputs, work))
    }

    /// The same within an optimizer step: what replicas fetch for it is counted, and the workers of an
    /// asynchronous strategy work with what they fetched after their last push.
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
        if !self.fetched.is_empty() {
            let modules = self.fetched.iter().map(|f| f.module.clone()).collect();
            return Ok(Self::work_on(modules, inputs, work));
        }
        let start = Instant::now();
        let modules = self.readable()?;
        if self.homes.is_some() && self.len() > 1 {
            let done = collective::fetch(&self.records, self.len(), 0..self.len());
            self.collectives.done(done, start);
        }
        Ok(Self::work_on(modules, inputs, work))
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

    /// The same for work that changes the variables, such as an optimizer's update: for every copy of them,
    /// which is every replica's, or the one there is; or for every server's rows of them, with what
    /// [`Self::dealt`] gives it. After a panic every copy is still there, as far as the work had come with it.
    ///
    /// # Errors
    /// SC0915 if there is not one input per module.
    pub fn update_each_replica<I, T, F>(&mut self, inputs: Vec<I>, work: F) -> Result<Vec<T>>
    where
        I: Send + 'static,
        T: Send + 'static,
        F: Fn(ReplicaId, &mut M, I) -> T + Send + Sync + 'static,
    {
        let module = match self.homes {
            None => "replica",
            Some(_) if self.is_sharded => "server",
            Some(_) => "copy",
        };
        self.one_each("inputs", inputs.len(), self.modules.len(), module)?;
        self.updates += 1;
        self.whole = OnceLock::new();
        let inputs = self.modules.drain(..).zip(inputs).collect();
        let done = threads::for_each(inputs, move |index, (mut module, input): (M, I)| {
            let call = AssertUnwindSafe(|| work(ReplicaId(index), &mut module, input));
            let result = panic::catch_unwind(call);
            (module, result)
        });
        let (modules, results): (Vec<M>, Vec<_>) = done.into_iter().unzip();
        self.modules = modules;
        let keep =
            |result: std::thread::Result<T>| result.unwrap_or_else(|p| panic::resume_unwind(p));
        Ok(results.into_iter().map(keep).collect())
    }

    /// From now on collectives belong to a new optimizer step.
    pub fn begin_step(&self) {
        self.collectives.begin_step();
    }

    /// The gradients' mean over the replicas, weighted by samples: `Σ gradient_i · samples_i / Σ samples`. Where the
    /// shards are mean losses of uneven size, this is the gradient of the mean loss of the whole batch.
    /// Every copy of the variables gets one, on its own device, equal bit for bit.
    ///
    /// A replica with 0 samples has no say, whatever its gradients are. A gradient that a replica
    /// lacks counts as zeros. One replica gets its gradients back, and nothing is counted.
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

    /// Gradients for [`Self::update_each_replica`], from those of one copy: the same; or, where variables
    /// are cut, the gradients of each server's rows.
    pub fn dealt(&self, gradients: GradientsParams) -> Vec<GradientsParams> {
        match self.homes.as_ref().filter(|_| self.is_sharded) {
            None => vec![gradients],
            Some(homes) => {
                let (first, servers) = (self.len(), self.servers.len());
                shards::dealt(self.outline(), homes, first, servers, gradients)
            }
        }
    }

    fn reduce(
        &self,
        operation: Operation,
        values: Vec<GradientsParams>,
        samples: &[usize],
    ) -> Result<Vec<GradientsParams>> {
        let start = Instant::now();
        let all = self.all_devices();
        let across = self.across(&all);
        let (values, done) =
            collective::reduce(operation, self.outline(), &across, values, samples)?;
        if let Some(done) = done {
            self.collectives.done(done, start);
        }
        Ok(values)
    }

    fn all_devices(&self) -> Vec<LogicalDevice> {
        [self.devices.as_slice(), &self.servers].concat()
    }

    fn across<'a>(&'a self, all: &'a [LogicalDevice]) -> Across<'a> {
        let ops = self.strategy.as_ref().map(Strategy::cross_device_ops);
        Across {
            ops: ops.unwrap_or_default(),
            devices: &self.devices,
            homes: self.homes.as_ref(),
            all,
        }
    }

    /// Gives every replica the mean of all replicas' trainable variables, weighted by samples: what
    /// local SGD does from time to time. Afterwards they are equal bit for bit. With one replica nothing
    /// happens.
    ///
    /// # Errors
    /// SC0915 if there is not one count per replica, or no samples.
    pub fn average(&mut self, samples: &[usize]) -> Result<()> {
        if self.copies() < 2 {
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

    /// A model of its own, with the mean that [`Self::average`] would give; these replicas stay apart,
    /// and nothing is counted.
    ///
    /// # Errors
    /// As [`Self::average`], and SC0907 if a copy cannot be made.
    pub fn averaged(&self, samples: &[usize]) -> Result<Self> {
        let mut other = Self {
            modules: self.modules.clone(),
            devices: self.devices.clone(),
            servers: self.servers.clone(),
            homes: self.homes.clone(),
            is_sharded: self.is_sharded,
            whole: OnceLock::new(),
            fetched: Vec::new(),
            updates: self.updates,
            strategy: self.strategy.clone(),
            records: self.records.clone(),
            collectives: Collectives::default(),
        };
        other.average(samples)?;
        Ok(other)
    }

    /// Sends one worker's gradients to the servers, each of which gets those of its variables or rows,
    /// and waits for nobody. They are to be applied at once; the worker then [fetches](Self::fetch).
    pub fn push(&self, worker: ReplicaId, gradients: GradientsParams) -> GradientsParams {
        let start = Instant::now();
        let all = self.all_devices();
        let (arrived, done) =
            collective::push(self.outline(), &self.across(&all), worker.0, gradients);
        let after = self.fetched.get(worker.0).map_or(self.updates, |f| f.after);
        self.collectives.stale(self.updates - after);
        self.collectives.done(done, start);
        arrived
    }

    /// Gives a worker of an asynchronous strategy the variables as they are now; under others nothing happens,
    /// as replicas fetch when they compute.
    ///
    /// # Errors
    /// SC0907 if a copy cannot be made.
    pub fn fetch(&mut self, worker: ReplicaId) -> Result<()> {
        let start = Instant::now();
        if self.fetched.len() <= worker.0 {
            return Ok(());
        }
        let module = self.whole_on(&self.devices[worker.0])?;
        let after = self.updates;
        self.fetched[worker.0] = Fetched { module, after };
        let done = collective::fetch(&self.records, self.len(), std::iter::once(worker.0));
        self.collectives.done(done, start);
        Ok(())
    }

    /// The same for all workers, where the strategy is asynchronous; not counted.
    fn fetch_all(&mut self) -> Result<()> {
        if !self
            .strategy
            .as_ref()
            .is_some_and(Strategy::is_asynchronous)
        {
            return Ok(());
        }
        let after = self.updates;
        let modules = self.readable()?.into_iter();
        self.fetched = modules.map(|module| Fetched { module, after }).collect();
        Ok(())
    }

    /// What the next optimizer step will move, computed from sizes; none with one replica.
    pub fn planned_collectives(&self) -> Vec<Collective> {
        match &self.strategy {
            Some(strategy) => collective::planned(strategy, &self.records),
            None => Vec::new(),
        }
    }

    /// The checksum of every copy of every variable: a row per record, a column per copy, as in the
    /// record's `homes`.
    ///
    /// # Errors
    /// SC0907 if a value cannot be read from its device, SC0520 if it is interrupted.
    pub fn checksums(&self) -> Result<Vec<Vec<Checksum>>> {
        let all = self.records.len() * self.modules.len();
        let mut work = Work::begin(("comparing", "compared"), all, Unit::Things("variable"));
        let mut columns: Vec<HashMap<_, _>> = Vec::with_capacity(self.modules.len());
        for (module, device) in self.modules.iter().zip(self.keepers()) {
            let done = columns.iter().map(HashMap::len).sum();
            let column = checksum::of_module(module, &device.name, (&mut work, done))?;
            columns.push(column.into_iter().collect());
        }
        work.finished();
        let sum = |keeper: usize, record: &VariableRecord| {
            columns.get(keeper)?.get(&record.param).copied()
        };
        let row = |record: &VariableRecord| match self.is_sharded {
            false => (0..columns.len())
                .filter_map(|keeper| sum(keeper, record))
                .collect(),
            true => (record.homes.iter())
                .filter_map(|home| sum(home - self.len(), record))
                .collect(),
        };
        Ok(self.records.iter().map(row).collect())
    }

    fn one_each(&self, what: &str, given: usize, expected: usize, per: &str) -> Result<()> {
        if given == expected {
            return Ok(());
        }
        let expects = format!("{expected}, one per {per}");
        Err(problem::bad_size(what, given, &expects))
    }
}

/// Marks some parameters as trained or not.
struct Trainable<'a> {
    params: &'a HashSet<ParamId>,
    trainable: bool,
}

impl ModuleMapper for Trainable<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        match self.params.contains(&param.id) {
            true => param.set_require_grad(self.trainable),
            false => param,
        }
    }
}

/// Gives parameters other identities.
struct Renamed(HashMap<ParamId, ParamId>);

impl ModuleMapper for Renamed {
    fn map_float<const D: usize>(&mut self, mut param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.id = self.0.get(&param.id).copied().unwrap_or(param.id);
        param
    }

    fn map_int<const D: usize>(
        &mut self,
        mut param: Param<Tensor<D, Int>>,
    ) -> Param<Tensor<D, Int>> {
        param.id = self.0.get(&param.id).copied().unwrap_or(param.id);
        param
    }

    fn map_bool<const D: usize>(
        &mut self,
        mut param: Param<Tensor<D, Bool>>,
    ) -> Param<Tensor<D, Bool>> {
        param.id = self.0.get(&param.id).copied().unwrap_or(param.id);
        param
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

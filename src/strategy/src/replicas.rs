//! A module's copies, one per replica, and what is done with all of them.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::time::Instant;

use burn::module::{Module, ModuleMapper, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::{Bool, Int, Tensor};
use stratoscope_diagnostics::{Result, words};

use crate::checksum::{self, Checksum};
use crate::collective::{self, Collectives};
use crate::device::{LogicalDevice, cpu};
use crate::origin::Origin;
use crate::strategy::Strategy;
use crate::variable::{self, VariableRecord};
use crate::{copy, problem, scope, threads};

/// A replica's number, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReplicaId(pub usize);

/// One copy of a module per replica. The copies have the same parameter identities and no storage in
/// common; what changes one must change all alike, or they are no longer replicas.
pub struct Replicas<M> {
    modules: Vec<M>,
    devices: Vec<LogicalDevice>,
    strategy: Option<Strategy>,
    records: Vec<VariableRecord>,
    collectives: Collectives,
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
        let modules = devices
            .iter()
            .map(|device| copy::module(&module, device))
            .collect::<Result<_>>()?;
        Ok(Self {
            modules,
            devices,
            strategy,
            records,
            collectives: Collectives::default(),
        })
    }

    /// How many replicas there are.
    pub fn len(&self) -> usize {
        self.modules.len()
    }

    /// Never: a strategy has at least one device.
    pub fn is_empty(&self) -> bool {
        self.modules.is_empty()
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

    /// Replica 0's module: what is saved, and what answers where one replica is enough.
    pub fn first(&self) -> &M {
        &self.modules[0]
    }

    /// The modules, one per replica.
    pub fn modules(&self) -> &[M] {
        &self.modules
    }

    /// The modules, to be changed alike.
    pub fn modules_mut(&mut self) -> &mut [M] {
        &mut self.modules
    }

    /// What the replicas did together.
    pub fn collectives(&self) -> &Collectives {
        &self.collectives
    }

    /// Marks float variables as trained or not, on every replica. A variable that is not trained gets no
    /// gradient, and so no update.
    pub fn set_trainable(&mut self, params: &HashSet<ParamId>, trainable: bool) {
        for module in &mut self.modules {
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
            let given = words::count(given.len(), "variable");
            let expects = format!(
                "a module with the {} of the one it replaces, in the same shapes and order",
                words::count(self.records.len(), "variable")
            );
            return Err(problem::bad_size("module", given, &expects));
        }
        let old = given.iter().map(|record| record.param);
        let known = old
            .zip(self.records.iter().map(|record| record.param))
            .collect();
        let module = module.clone().map(&mut Renamed(known));
        let copies = self
            .devices
            .iter()
            .map(|device| copy::module(&module, device))
            .collect::<Result<_>>()?;
        self.modules = copies;
        Ok(())
    }

    /// Copies replica 0's variables to every other replica.
    ///
    /// # Errors
    /// SC0907 if a copy cannot be made; then nothing has changed.
    pub fn broadcast(&mut self) -> Result<()> {
        let start = Instant::now();
        let others = self.devices[1..]
            .iter()
            .map(|device| copy::module(&self.modules[0], device))
            .collect::<Result<Vec<M>>>()?;
        if others.is_empty() {
            return Ok(());
        }
        self.modules.truncate(1);
        self.modules.extend(others);
        let bytes = self.records.iter().map(|record| record.bytes).sum();
        self.collectives
            .broadcast(self.len(), self.records.len(), bytes, start);
        Ok(())
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
        self.one_per_replica("inputs", inputs.len())?;
        let inputs = self.modules.iter().cloned().zip(inputs).collect();
        let work = move |index, (module, input): (M, I)| work(ReplicaId(index), &module, input);
        Ok(threads::for_each(inputs, work))
    }

    /// The same for work that changes the module, such as an optimizer's update. After a panic
    /// every replica still has a module, as far as the work had come with it.
    ///
    /// # Errors
    /// SC0915 if there is not one input per replica.
    pub fn update_each_replica<I, T, F>(&mut self, inputs: Vec<I>, work: F) -> Result<Vec<T>>
    where
        I: Send + 'static,
        T: Send + 'static,
        F: Fn(ReplicaId, &mut M, I) -> T + Send + Sync + 'static,
    {
        self.one_per_replica("inputs", inputs.len())?;
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

    /// The gradients' mean over the replicas, weighted by samples, on every replica; see
    /// [`collective::all_reduce`].
    ///
    /// # Errors
    /// SC0915 if there is not one set of gradients and one count per replica, or no samples.
    pub fn all_reduce(
        &self,
        gradients: Vec<GradientsParams>,
        samples: &[usize],
    ) -> Result<Vec<GradientsParams>> {
        let Self {
            devices,
            collectives,
            ..
        } = self;
        collective::all_reduce(self.first(), devices, gradients, samples, collectives)
    }

    /// The checksum of every copy of every variable: a row per record, a column per replica.
    ///
    /// # Errors
    /// SC0907 if a value cannot be read from its device.
    pub fn checksums(&self) -> Result<Vec<Vec<Checksum>>> {
        let columns = self
            .modules
            .iter()
            .zip(&self.devices)
            .map(|(module, device)| checksum::of_module(module, &device.name))
            .map(|column| Ok(column?.into_iter().collect::<HashMap<_, _>>()))
            .collect::<Result<Vec<_>>>()?;
        let row = |record: &VariableRecord| {
            columns
                .iter()
                .filter_map(|column| column.get(&record.param).copied())
                .collect()
        };
        Ok(self.records.iter().map(row).collect())
    }

    fn one_per_replica(&self, what: &str, given: usize) -> Result<()> {
        if given == self.len() {
            return Ok(());
        }
        Err(problem::bad_size(
            what,
            given,
            &format!("{}, one per replica", self.len()),
        ))
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

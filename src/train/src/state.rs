//! The whole state of a model, and the lock it is behind.

use std::collections::{HashMap, HashSet};
use std::iter;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use burn::module::ParamId;
use stratoscope_diagnostics::rules::{HeadWritten, NoLoss, NotCompiled};
use stratoscope_diagnostics::{Place, Result, Rule};
use stratoscope_strategy::{Origin, PlacementReport, Replicas, Shard, VariableRecord, origin};

use crate::lease::Occupied;
use crate::memory;
use crate::progress::SavedRun;
use stratoscope_arguments::Compiled;
use stratoscope_arguments::context::ledger::Ledger;
use stratoscope_diagnostics::problem;
use stratoscope_network::{AnyNetwork, Files};
use stratoscope_optim::Slot;
use stratoscope_optim::schedule::span::Span;
use stratoscope_report::history::History;
use stratoscope_step::exchange::ExchangeMode;
use stratoscope_step::gradients::ByHand;
use stratoscope_step::workers::bytes_sent;
use stratoscope_step::{StepSettings, StepState};

/// What the handles of a model share.
pub struct SharedModel {
    /// By which an optimizer knows the model that it belongs to.
    pub identity: Arc<()>,
    state: Mutex<ModelState>,
    /// The run that has or lends the state.
    pub occupied: Occupied,
    /// What the run that lends the state has measured, where it says so.
    history: Mutex<Option<History>>,
}

impl SharedModel {
    /// A model that no call has.
    pub fn new(state: ModelState) -> Self {
        Self {
            identity: Arc::new(()),
            state: Mutex::new(state),
            occupied: Occupied::default(),
            history: Mutex::default(),
        }
    }

    /// What the run that trains the model has measured so far, while it lends the state to be looked at.
    pub fn history_so_far(&self) -> Option<History> {
        self.history().clone()
    }

    pub(crate) fn history(&self) -> MutexGuard<'_, Option<History>> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, to be read: a run lends it to its callbacks.
    pub fn state(&self) -> MutexGuard<'_, ModelState> {
        // A panic inside a call leaves the state whole: what it was about to change is replaced last.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, unless a call has it.
    pub fn try_state(&self) -> Option<MutexGuard<'_, ModelState>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// Everything about a model that changes. One call at a time has it.
pub struct ModelState {
    /// Weights, moments, and what an optimizer step works on.
    pub step: StepState,
    /// Tokenizer, labels and configuration.
    pub files: Box<dyn Files>,
    /// Set by `compile!`.
    pub compiled: Option<Arc<Compiled>>,
    /// A run that was interrupted, for `resume = true`.
    pub saved_run: Option<SavedRun>,
    /// Whether `compile!` was asked to train it on one device although a strategy is alive.
    pub alone: bool,
    /// Whether a step was ever made: new variables are random until then.
    pub has_learned: bool,
    /// `max_length` of the latest run over texts: what the model is measured and asked with.
    pub trained_length: Option<usize>,
    /// Variables that were unfrozen since the last step: they have the values from before until one is made.
    pub unfrozen: Vec<String>,
    /// What a loop by hand has computed since its last step.
    pub by_hand: ByHand,
    /// Its line in the list of models that hold memory.
    pub ledger: Arc<Ledger>,
    /// The statement that made the model; its variables may be younger.
    pub made: Origin,
}

impl ModelState {
    /// The replicas as they would be if a run that is going on ended now: replicas that step alone are averaged.
    ///
    /// # Errors
    /// SC0907 if a copy cannot be made.
    pub fn settled(&self) -> Result<Settled<'_>> {
        let (replicas, local) = (&self.step.replicas, &self.step.local);
        match local.steps {
            0 => Ok(Settled::AsTheyAre(replicas)),
            _ => Ok(Settled::Averaged(Box::new(
                replicas.averaged(&local.examples)?,
            ))),
        }
    }

    /// A run over texts begins that reads so many tokens of each.
    pub(crate) fn note_trained_length(&mut self, tokens: usize) {
        self.trained_length = Some(tokens);
        self.files.set_trained_length(tokens);
    }

    /// Freezes variables, or trains them.
    pub fn set_trainable(&mut self, params: &HashSet<ParamId>, trainable: bool) {
        self.step.replicas.set_trainable(params, trainable);
        let records = self.step.replicas.records().iter();
        let chosen = records.filter(|record| params.contains(&record.param));
        let names: HashSet<String> = chosen.map(|record| record.name.clone()).collect();
        match trainable {
            true => self.unfrozen.extend(names),
            false => self.unfrozen.retain(|name| !names.contains(name)),
        }
    }

    /// A step was made, here or before what was read.
    pub fn has_stepped(&mut self) {
        self.has_learned = true;
        self.keep_unfrozen();
    }

    /// What was unfrozen counts as trained from now on.
    pub(crate) fn keep_unfrozen(&mut self) {
        let names = std::mem::take(&mut self.unfrozen);
        if !names.is_empty() {
            self.files.keep_trained(&names);
        }
    }

    /// Where the variables are.
    pub fn placement(&mut self) -> Result<PlacementReport> {
        let mut report = PlacementReport::of(&self.step.replicas)?.titled(self.files.model_name());
        // A network that cannot travel is an error of `fit!`; until then nobody else has a copy.
        if self.step.takes_workers(&*self.files).is_ok() {
            if self.step.workers.is_some() {
                report.without_copies_of_others();
            }
            for (worker, sums) in self.step.sums_at_workers() {
                report.add_copies(worker, &sums);
            }
        }
        let Some(compiled) = &self.compiled else {
            return Ok(report);
        };
        let report = match &self.step.tallies {
            Some(tallies) => tallies.shown(report, &compiled.metrics),
            None => report,
        };
        let slots = compiled.optimizer.slots();
        let shard = self.step.replicas.shard();
        let divided = |report: PlacementReport, from: Shard| match shard >= Some(from) {
            true => report.divided(),
            false => report,
        };
        let stepped = self.step.moments.first().filter(|state| state.steps() > 0);
        let of_a_copy = self.step.replicas.modules_of_a_copy();
        let Some(_) = stepped.filter(|_| !self.step.gradient_bytes.is_empty()) else {
            let report = divided(report.planned("gradients"), Shard::Gradients);
            let planned = |report: PlacementReport, slot: Slot| {
                let numbers = |shape: &[usize]| slot.numbers(shape);
                divided(
                    report.planned_beside(slot.name(), numbers),
                    Shard::Optimizer,
                )
            };
            return Ok(slots.into_iter().fold(report, planned));
        };
        let gradients = |id| self.step.gradient_bytes.get(&id).copied();
        let mut report = divided(report.measured("gradients", gradients), Shard::Gradients);
        for slot in slots {
            let measured = report.measured(slot.name(), |id| {
                // What is kept beside the rows of a copy is together of the variable's size.
                let states = self.step.moments.iter().take(of_a_copy);
                let bytes = states.map(|state| state.bytes(id, slot)).sum();
                Some(bytes).filter(|&bytes| bytes > 0)
            });
            report = divided(measured, Shard::Optimizer);
        }
        Ok(self.with_activations(report, &self.step.last_batch))
    }

    /// Adds what the layers computed for the last batch, estimated by the network, where it can.
    fn with_activations(
        &self,
        report: PlacementReport,
        batch: &[(usize, usize)],
    ) -> PlacementReport {
        // Of a pipeline, what each stage keeps is in the report of its stages.
        let Some(&first) = batch
            .first()
            .filter(|_| self.step.replicas.stages().is_none())
        else {
            return report;
        };
        let bytes = batch.iter().map(|&(examples, length)| {
            let steps = memory::steps_known(self, examples, length, self.step.recomputed)?;
            steps.iter().map(|step| step.activations).max()
        });
        let Some(bytes) = bytes.collect::<Option<Vec<u64>>>() else {
            return report;
        };
        // Where several devices compute a replica, they are counted on its first one.
        let others = self.step.replicas.devices_of_a_replica() - 1;
        let bytes = bytes
            .into_iter()
            .flat_map(|own| iter::once(own).chain(iter::repeat_n(0, others)));
        let bytes: Vec<u64> = bytes.collect();
        let part = |(examples, length): (usize, usize)| format!("{examples} × {length} tokens");
        let parts = match batch.iter().all(|&other| other == first) {
            true if batch.len() > 1 => format!("{} on each replica", part(first)),
            true => part(first),
            false => {
                let parts: Vec<String> = batch.iter().map(|&other| part(other)).collect();
                format!("{}, by replica", parts.join(", "))
            }
        };
        let note = format!("estimated from the sizes of the layers, for the last batch: {parts}");
        report.estimated_activations(note, &bytes)
    }

    /// What each worker process sends, in words, where there are several: gradients at each step, to the last worker and
    /// around to all; or with local SGD from time to time the weights, and what optimizers keep to the chief.
    pub fn sent_by_workers(&self) -> Option<String> {
        let strategy = self.step.replicas.strategy()?;
        let workers = strategy.team().map(|team| team.size() as u64);
        let workers = workers.filter(|&workers| workers > 1)?;
        let compiled = self.compiled.as_ref()?;
        let sizes = self
            .trainable()
            .map(|it| it.shape.iter().product::<usize>());
        let numbers = sizes.sum::<usize>() as u64;
        let all_reduced = numbers * if workers > 2 { 2 } else { 1 };
        Some(match compiled.sync_every {
            0 | 1 => bytes_sent(all_reduced * strategy.gradient_bytes() as u64, 1),
            every => {
                let of_a_variable =
                    |it: &VariableRecord| compiled.optimizer.kept_numbers(&it.shape);
                let kept: u64 = self.trainable().map(of_a_variable).sum();
                bytes_sent(4 * (all_reduced + (workers - 1) * kept), every)
            }
        })
    }

    /// The variables that training changes.
    pub fn trainable(&self) -> impl Iterator<Item = &VariableRecord> {
        self.step
            .replicas
            .records()
            .iter()
            .filter(|record| record.trainable)
    }

    /// What weights and an optimizer's slots hold in memory, on all replicas.
    pub fn bytes(&self) -> u64 {
        let weights: u64 = self
            .step
            .replicas
            .records()
            .iter()
            .map(|record| record.bytes)
            .sum();
        let compiled = self.compiled.as_ref();
        let compiled = compiled.filter(|_| self.step.steps_since_compile() > 0);
        let kept: u64 = compiled.map_or(0, |compiled| {
            let beside = |record: &VariableRecord| compiled.optimizer.kept_bytes(&record.shape);
            self.trainable().map(beside).sum()
        });
        (weights + kept) * self.step.replicas.len() as u64
    }

    /// Records in the list of models what this one holds now.
    pub fn enter_in_ledger(&self) {
        self.ledger
            .set(self.bytes(), self.step.replicas.computing());
    }

    /// The numbers of one copy of the variables.
    pub fn num_parameters(&self) -> usize {
        let elements = |shape: &Vec<usize>| shape.iter().product::<usize>();
        self.step
            .replicas
            .records()
            .iter()
            .map(|record| elements(&record.shape))
            .sum()
    }

    /// The parameters that weight decay leaves alone.
    pub(crate) fn undecayed(&self) -> HashSet<ParamId> {
        let parameters = self.step.replicas.first().parameters().into_iter();
        let optimizer = self.compiled.as_ref().map(|compiled| &compiled.optimizer);
        parameters
            .filter(|known| optimizer.is_some_and(|optimizer| optimizer.excludes(known)))
            .map(|known| known.id)
            .collect()
    }

    /// What the rate of each parameter is multiplied with, where it is not 1.
    fn layer_factors(&self) -> HashMap<ParamId, f64> {
        let compiled = self.compiled.as_ref();
        let parameters = self.step.replicas.first().parameters();
        compiled.map_or_else(HashMap::new, |compiled| {
            compiled.optimizer.layer_factors(&parameters)
        })
    }

    /// Replicas and devices in words.
    pub fn devices_in_words(&self) -> String {
        match self.step.replicas.strategy() {
            Some(strategy) => format!("{}, {}", strategy.name(), strategy.devices_in_words()),
            None => match self.step.replicas.devices().first() {
                Some(device) => format!("{} ({})", device.name, device.description),
                None => String::new(),
            },
        }
    }

    /// Variables that are frozen.
    pub fn frozen(&self) -> HashSet<ParamId> {
        let records = self.step.replicas.records().iter();
        let frozen = records.filter(|record| !record.trainable);
        frozen.map(|record| record.param).collect()
    }

    /// The part of the names that the variables of the head share.
    pub fn head(&self) -> Option<String> {
        let last = self.step.replicas.records().last()?;
        let head = last.name.split('.').next()?;
        (!self.files.label_names().is_empty()).then(|| head.to_owned())
    }

    /// Where the number of the head's outputs was written.
    pub fn head_written(&self) -> HeadWritten {
        let (cell, line) = (self.made.cell, self.made.line);
        let is_here = cell.is_some() && cell == origin::current_cell();
        HeadWritten {
            call: match self.files.model_name() {
                "BertForSequenceClassification" => Some("from_pretrained"),
                "Sequential" => Some("Dense"),
                _ => None,
            },
            elsewhere: match (cell, line) {
                _ if is_here || self.made == Origin::default() => None,
                (Some(cell), Some(line)) => Some(format!("`In[{cell}]`, line {line}")),
                (Some(cell), None) => Some(format!("`In[{cell}]`")),
                (None, _) => Some(self.made.to_string()),
            },
            line: line.filter(|_| is_here).map(|line| line as usize),
            is_binary: false,
        }
    }

    /// The weights were changed by another call: an interrupted local SGD run goes on from these.
    pub fn forget_unaveraged(&mut self) {
        if let Some(saved) = &mut self.saved_run {
            saved.replicas = None;
        }
    }

    /// What stays the same in the steps of a run with these settings.
    ///
    /// # Errors
    /// SC0112 for a model that was not compiled, SC0113 without a loss, SC0103 for a rate of variables that a model, whose
    /// variables were made after `compile!`, has not got.
    pub fn step_settings(&self, call: &str) -> Result<StepSettings> {
        let compiled = self.compiled_for(call)?;
        if self.is_built() {
            let parameters = self.step.replicas.first().parameters();
            let optimizer = &compiled.optimizer;
            let findings = optimizer.rates_for_nothing(&parameters, &Place::call(call));
            if let Some(problem) = problem::together(findings) {
                return Err(problem);
            }
        }
        Ok(StepSettings {
            loss: compiled.loss.ok_or_else(|| NoLoss.error())?,
            exchange: ExchangeMode::of(&self.step.replicas, compiled.sync_every),
            undecayed: Arc::new(self.undecayed()),
            layer_factors: Arc::new(self.layer_factors()),
            class_weights: None,
            seed: 0,
            span: Span::new(0),
            rate_factor: 1.0,
            recompute: false,
            measures_updates: true,
            dropout: None,
            change: None,
            compiled: Arc::clone(compiled),
        })
    }

    /// What `compile!` set.
    ///
    /// # Errors
    /// SC0112 for a model that was not compiled.
    pub fn compiled_for(&self, call: &str) -> Result<&Arc<Compiled>> {
        let call = call.to_owned();
        self.compiled
            .as_ref()
            .ok_or_else(|| NotCompiled { call }.error())
    }
}

/// Replicas that agree.
pub enum Settled<'s> {
    /// They agree by themselves.
    AsTheyAre(&'s Replicas<AnyNetwork>),
    /// Copies with the average of their weights: they step alone.
    Averaged(Box<Replicas<AnyNetwork>>),
}

impl Deref for Settled<'_> {
    type Target = Replicas<AnyNetwork>;

    fn deref(&self) -> &Replicas<AnyNetwork> {
        match self {
            Self::AsTheyAre(replicas) => replicas,
            Self::Averaged(replicas) => replicas,
        }
    }
}

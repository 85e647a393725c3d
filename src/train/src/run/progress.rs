//! What a run knows while it goes: its data, where it is, and what it needs to go on after an interrupt.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use burn::module::ParamId;
use burn::optim::GradientsAccumulator;
use stratoscope_data::{Dataset, Encoded};
use stratoscope_diagnostics::Result;
use stratoscope_strategy::Checksum;

use crate::arguments::class_weight::ClassWeights;
use crate::arguments::{FitPlan, Validation};
use crate::model::State;
use crate::network::{Files, Network};
use crate::report::counters::Shape;
use crate::report::history::{ExecutionRecord, History};
use crate::run::watch::{Moment, Watch};
use crate::step::{Apart, Trainer};
use crate::{prepare, problem};

/// The sum of the losses of some examples.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LossSum {
    pub sum: f64,
    pub examples: usize,
}

impl LossSum {
    pub(crate) fn add(&mut self, sum: f64, examples: usize) {
        self.sum += sum;
        self.examples += examples;
    }

    /// The mean over the examples.
    pub(crate) fn mean(self) -> f64 {
        self.sum / self.examples as f64
    }
}

/// Where a run is, and what it has measured.
pub(crate) struct Progress<N: Network> {
    pub epoch: u64,
    /// Batches of the epoch that are done.
    pub batch: u64,
    /// Batches since the run began; the dropout masks' number.
    pub batches_of_run: u64,
    /// Optimizer steps since the run began.
    pub steps: u64,
    /// The gradients of the micro-batches since the last optimizer step, per replica.
    pub accumulated: Vec<GradientsAccumulator<N>>,
    /// The loss over those batches.
    pub since_step: LossSum,
    /// The loss over the examples of the epoch, added up batch by batch: wherever an execution ends, it is
    /// the same sum.
    pub of_epoch: LossSum,
    pub epoch_seconds: f64,
    /// The epoch's callbacks were called, and its metrics begin at 0.
    pub epoch_begun: bool,
    /// A callback of a batch ends the run with this epoch.
    pub stops: bool,
    /// What examples count in the loss, by their class.
    pub class_weights: Option<ClassWeights>,
    pub last_rate: f64,
    pub last_loss: Option<f64>,
    pub last_norm: Option<f64>,
    pub best_value: Option<f64>,
    /// The weights of the best epoch, kept for early stopping.
    pub best: Option<N>,
    pub epochs_without_better: u64,
    pub watch: Watch,
    pub history: History,
}

impl<N: Network> Progress<N> {
    pub(crate) fn new(devices: String) -> Self {
        Self {
            epoch: 0,
            batch: 0,
            batches_of_run: 0,
            steps: 0,
            accumulated: Vec::new(),
            since_step: LossSum::default(),
            of_epoch: LossSum::default(),
            epoch_seconds: 0.0,
            epoch_begun: false,
            stops: false,
            class_weights: None,
            last_rate: 0.0,
            last_loss: None,
            last_norm: None,
            best_value: None,
            best: None,
            epochs_without_better: 0,
            watch: Watch::default(),
            history: History::new(devices),
        }
    }

    /// The same where the epochs before `epoch` count as done, so that orders, dropout masks and a
    /// schedule over the run take up there.
    pub(crate) fn beginning_with(mut self, epoch: u64, shape: &Shape) -> Self {
        let done = shape.counters(epoch);
        self.epoch = epoch;
        self.batches_of_run = done.batches;
        self.steps = done.optimizer_steps;
        self
    }

    pub(crate) fn next_epoch(&mut self) {
        self.epoch += 1;
        self.batch = 0;
        self.of_epoch = LossSum::default();
        self.epoch_seconds = 0.0;
        self.epoch_begun = false;
    }

    /// Where the run is, for what is not finite in a batch.
    pub(crate) fn moment(&self, rate: f64, rows: &[usize]) -> Moment {
        Moment {
            step: self.steps,
            epoch: self.epoch,
            rate,
            last_loss: self.last_loss,
            last_norm: self.last_norm,
            rows: rows.to_vec(),
        }
    }

    pub(crate) fn execution(&self, first_batch: u64) -> Execution {
        Execution {
            epoch: self.epoch,
            first_batch,
            ..Execution::default()
        }
    }

    /// Whether the epoch is the best so far: its `value` is lower by more than `min_delta`. With `keep` its weights are remembered: the tensors are
    /// shared until the next update, which then writes new ones.
    pub(crate) fn compare(
        &mut self,
        state: &State<N>,
        value: Option<f64>,
        min_delta: f64,
        keep: bool,
    ) -> Result<bool> {
        let Some(value) = value else { return Ok(false) };
        // A NaN is never better, and anything is better than nothing.
        let better = self.best_value.is_none_or(|best| value < best - min_delta);
        if better {
            self.best_value = Some(value);
            self.epochs_without_better = 0;
            self.history.best_epoch = Some(self.epoch);
            let whole = || -> Result<N> { Ok(state.settled()?.first().clone()) };
            self.best = keep.then(whole).transpose()?;
        } else {
            self.epochs_without_better += 1;
        }
        Ok(better)
    }

    /// The weights that the run leaves: their moving averages, where the optimizer keeps them; or those
    /// of the best epoch, if they were kept, which were measured as they were.
    pub(crate) fn leave_weights(&mut self, trainer: &mut Trainer<'_, N>) -> Result<()> {
        trainer.synchronise(self)?;
        self.history.loss_scale = trainer.compiled.loss_scale.told(trainer.policy);
        let averaged = trainer.overwrite_with_averages()?;
        let best = self.best.take();
        if let Some(best) = best.filter(|_| averaged || self.epochs_without_better > 0) {
            trainer.replicas.replace(&best)?;
            self.history.restored_best = true;
            return Ok(());
        }
        self.history.averaged_weights = averaged;
        Ok(())
    }
}

/// An execution that is going on.
#[derive(Default)]
pub(crate) struct Execution {
    pub epoch: u64,
    pub first_batch: u64,
    pub batches: u64,
    pub optimizer_steps: u64,
    pub loss: LossSum,
    pub learning_rate: Option<f64>,
    pub gradient_norm: Option<f64>,
}

impl Execution {
    pub(crate) fn finished(self, step: u64, next_rate: f64, seconds: f64) -> ExecutionRecord {
        ExecutionRecord {
            epoch: self.epoch,
            first_batch: self.first_batch,
            batches: self.batches,
            optimizer_steps: self.optimizer_steps,
            step,
            loss: self.loss.mean(),
            learning_rate: self.learning_rate.unwrap_or(next_rate),
            gradient_norm: self.gradient_norm,
            seconds,
        }
    }
}

/// A run that was interrupted.
pub(crate) struct SavedRun<N: Network> {
    pub progress: Progress<N>,
    pub signature: Signature,
    /// The replicas' own weights, where they stepped alone. The model has their average meanwhile.
    pub apart: Option<(Apart, Vec<N>)>,
}

impl<N: Network> State<N> {
    /// Replicas that step alone, to be kept as they are: an interrupt averages them.
    pub(crate) fn apart(&self) -> Option<(Apart, Vec<N>)> {
        let apart = &self.compiled.as_ref()?.apart;
        (apart.steps > 0).then(|| (apart.clone(), self.replicas.modules().to_vec()))
    }

    /// Gives the replicas back their own weights.
    pub(crate) fn take_apart(&mut self, (apart, modules): (Apart, Vec<N>)) {
        if let Some(compiled) = &mut self.compiled {
            compiled.apart = apart;
            self.replicas.modules_mut().clone_from_slice(&modules);
        }
    }

    /// The weights were changed by another call: an interrupted run goes on from these.
    pub(crate) fn forget_apart(&mut self) {
        if let Some(saved) = &mut self.saved_run {
            saved.apart = None;
        }
    }
}

impl<N: Network> SavedRun<N> {
    /// SC0103 unless the run can go on with this.
    pub(crate) fn check(&self, signature: &Signature) -> Result<()> {
        if self.signature == *signature {
            return Ok(());
        }
        let expects = format!(
            "the data and settings of the interrupted run: {}",
            self.signature
        );
        let told = problem::bad_value("fit", "resume", "true", expects)
            .evidence("now", signature.to_string())
            .fix("give the same data and arguments again, or drop `resume`");
        Err(Box::new(told))
    }
}

/// What must be the same for a run to go on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Signature {
    examples: usize,
    batch_size: usize,
    seed: u64,
    shuffle: bool,
    max_length: usize,
    gradient_accumulation_steps: u64,
    batches_per_epoch: u64,
    class_weights: Option<ClassWeights>,
    /// Of every example: its tokens or numbers, and its label.
    data: Checksum,
}

impl Signature {
    pub(crate) fn of(
        plan: &FitPlan<'_>,
        data: &Prepared,
        shape: &Shape,
        class_weights: Option<&ClassWeights>,
    ) -> Self {
        Self {
            examples: data.train.len(),
            batch_size: plan.batch_size,
            seed: plan.seed,
            shuffle: plan.shuffle,
            max_length: data.train.max_length(),
            gradient_accumulation_steps: shape.gradient_accumulation_steps,
            batches_per_epoch: shape.batches_per_epoch,
            class_weights: class_weights.cloned(),
            data: checksum(&data.train),
        }
    }
}

/// A checksum of what a data set trains on: tokens, segments, numbers and labels of every example, in
/// its order.
fn checksum(data: &Encoded) -> Checksum {
    let mut bytes = Vec::new();
    let mut of_examples = Vec::with_capacity(data.len() * size_of::<u64>());
    for example in (0..data.len()).filter_map(|at| data.get(at)) {
        bytes.clear();
        // The lengths keep two lists from being taken for one.
        bytes.extend((example.ids.len() as u64).to_le_bytes());
        bytes.extend((example.features.len() as u64).to_le_bytes());
        let words = example.ids.iter().chain(&example.type_ids);
        bytes.extend(words.flat_map(|word| word.to_le_bytes()));
        bytes.extend(
            example
                .features
                .iter()
                .flat_map(|number| number.to_le_bytes()),
        );
        bytes.extend(format!("{:?}", example.label).bytes());
        of_examples.extend(Checksum::of(&bytes).0.to_le_bytes());
    }
    Checksum::of(&of_examples)
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            examples,
            batch_size,
            seed,
            shuffle,
            max_length,
            data,
            class_weights,
            ..
        } = self;
        write!(
            f,
            "{examples} examples (checksum {}), batch_size = {batch_size}, seed = {seed}, \
             shuffle = {shuffle}, max_length = {max_length}",
            data.short()
        )?;
        match class_weights {
            Some(_) => f.write_str(", with class weights"),
            None => Ok(()),
        }
    }
}

/// The data of a run, checked and tokenized.
pub(crate) struct Prepared {
    pub train: Encoded,
    pub validation: Option<Encoded>,
    /// Examples of an epoch: all, or those of its `steps_per_epoch` batches.
    pub epoch_examples: usize,
    pub undecayed: HashSet<ParamId>,
    /// The names of the classes, in the order of the outputs.
    pub label_names: Vec<String>,
}

impl Prepared {
    /// Also gives the model the label names of its training data, where it has none of its own, and what one
    /// output decides between.
    pub(crate) fn of<N: Network>(
        state: &mut State<N>,
        data: &Dataset,
        plan: &FitPlan<'_>,
    ) -> Result<Self> {
        let parts;
        let (train, validation) = match plan.validation {
            Validation::None => (data, None),
            Validation::Data(validation) => (data, Some(validation)),
            Validation::Split(share) => {
                parts = data.split(share)?;
                (&parts.0, Some(&parts.1))
            }
        };
        let named = prepare::adopted_names(&state.files, train);
        let files = match &named {
            Some(names) => state.files.clone().with_label_names(names.clone()),
            None => state.files.clone(),
        };
        let loss = state.compiled.as_ref().and_then(|compiled| compiled.loss);
        let files = files.with_binary_labels(prepare::binary_labels(&state.files, loss, train));
        let (train, validation) = prepare::splits(
            &files,
            &state.head_written(),
            state.compiled.as_ref(),
            train,
            validation,
            plan,
        )?;
        let in_steps = |steps: u64| usize::try_from(steps).unwrap_or(usize::MAX);
        let in_steps = |steps: u64| in_steps(steps).saturating_mul(plan.batch_size);
        let prepared = Self {
            epoch_examples: plan
                .steps_per_epoch
                .map_or(train.len(), in_steps)
                .min(train.len()),
            train,
            validation,
            undecayed: state.undecayed(),
            label_names: files.label_names().to_vec(),
        };
        state.files = files;
        Ok(prepared)
    }

    /// The examples of the largest batch in a full group of batches, and in the last one of an epoch.
    pub(crate) fn largest_batches(&self, batch_size: usize, group: u64) -> (usize, usize) {
        let examples = self.epoch_examples;
        let batches = examples.div_ceil(batch_size.max(1));
        let group = usize::try_from(group).unwrap_or(usize::MAX);
        let in_last = match batches % group {
            0 => group.min(batches),
            rest => rest,
        };
        let short = examples % batch_size.max(1);
        let last = if in_last == 1 && short > 0 {
            short
        } else {
            batch_size
        };
        (batch_size.min(examples), last.min(examples))
    }

    /// How many examples each replica sees in the batches of one optimizer step.
    pub(crate) fn shares(
        &self,
        group: Range<u64>,
        batch_size: usize,
        replicas: usize,
    ) -> Vec<usize> {
        let mut shares = vec![0; replicas];
        for batch in group {
            let start = (batch as usize).saturating_mul(batch_size);
            let size = self.train.len().saturating_sub(start).min(batch_size);
            for (index, share) in shares.iter_mut().enumerate() {
                // As `Batch::split` divides: the first ones get one more.
                *share += size / replicas + usize::from(index < size % replicas);
            }
        }
        shares
    }
}

//! Where a run is and what it has measured: beside [`StepState`](stratoscope_step::StepState) all that it needs to go on
//! after an interrupt.

use std::fmt;

use stratoscope_data::{Encoded, Masking, Split};
use stratoscope_diagnostics::Result;
use stratoscope_strategy::Checksum;

use crate::edits::Dated;
use crate::hooks::Recent;
use crate::state::ModelState;
use crate::watch::{Moment, Watch};
use stratoscope_arguments::FitPlan;
use stratoscope_arguments::class_weight::ClassWeights;
use stratoscope_diagnostics::problem;
use stratoscope_inspect::ExampleLog;
use stratoscope_network::AnyNetwork;
use stratoscope_report::counters::Shape;
use stratoscope_report::history::{ExecutionRecord, History, StepRecord};
use stratoscope_step::exchange::LocalSgdState;
use stratoscope_step::prepare::Prepared;
use stratoscope_step::{LossSum, StepRecorded};

/// Where a run is, and what it has measured.
#[derive(Clone)]
pub struct Progress {
    /// The epoch, from 0.
    pub epoch: u64,
    /// Batches of the epoch that are done.
    pub batch: u64,
    /// The loss over the examples of the epoch, added up batch by batch, so that it does not depend on where
    /// executions end.
    pub epoch_loss: LossSum,
    /// How long the epoch took so far.
    pub epoch_seconds: f64,
    /// Whether the callbacks of the epoch's begin were called and its metrics were reset.
    pub epoch_begun: bool,
    /// Whether a callback of a batch ends the run with this epoch.
    pub stops: bool,
    /// The learning rate of the latest step.
    pub last_rate: f64,
    /// The loss of the latest step.
    pub last_loss: Option<f64>,
    /// The norm of the latest gradient.
    pub last_norm: Option<f64>,
    /// The best epoch so far.
    pub best: BestEpoch,
    /// What the warnings of the run have seen.
    pub watch: Watch,
    /// What the training passes have said of each example, for `data_map`.
    pub examples: ExampleLog,
    /// The execution that is running, or that a pause has left open.
    pub execution: Option<Execution>,
    /// The latest optimizer steps.
    pub recent: Recent,
    /// All weights were looked at in this run, and were finite.
    pub were_weights_finite: bool,
    /// What was measured.
    pub history: History,
}

/// The best epoch so far.
#[derive(Clone, Default)]
pub struct BestEpoch {
    /// The lowest value of what is monitored.
    pub value: Option<f64>,
    /// Its weights, kept for early stopping.
    pub weights: Option<AnyNetwork>,
    /// Epochs since the best one.
    pub epochs_without_better: u64,
}

impl Progress {
    /// The begin of a run, in this epoch.
    pub fn new(devices: String, epoch: u64) -> Self {
        Self {
            epoch,
            batch: 0,
            epoch_loss: LossSum::default(),
            epoch_seconds: 0.0,
            epoch_begun: false,
            stops: false,
            last_rate: 0.0,
            last_loss: None,
            last_norm: None,
            best: BestEpoch::default(),
            watch: Watch::default(),
            examples: ExampleLog::default(),
            execution: None,
            recent: Recent::default(),
            were_weights_finite: false,
            history: History::new(devices),
        }
    }

    /// Whether the last batch of the epoch, which has so many, is done, or a callback has left the others out.
    pub(crate) fn batches_are_over(&self, batches: u64) -> bool {
        self.stops || self.batch >= batches
    }

    /// An optimizer step was made.
    pub(crate) fn stepped(&mut self, step: u64, made: &StepRecorded) {
        self.history.steps.push(StepRecord {
            step,
            loss: made.loss,
            learning_rate: made.rate,
        });
        self.last_norm = Some(made.norm);
        if let Some(execution) = &mut self.execution {
            execution.stepped(made);
        }
    }

    /// Whether an epoch ended after the best one.
    pub(crate) fn is_behind_best(&self) -> bool {
        let last = self.history.epochs.last().map(|record| record.epoch);
        last != self.history.best_epoch
    }

    pub(crate) fn next_epoch(&mut self) {
        self.epoch += 1;
        self.batch = 0;
        self.epoch_loss = LossSum::default();
        self.epoch_seconds = 0.0;
        self.epoch_begun = false;
    }

    /// Where the run is, for SC0505.
    pub fn moment(&self, step: u64, rate: f64, rows: &[usize]) -> Moment {
        Moment {
            step,
            epoch: self.epoch,
            rate,
            last_loss: self.last_loss,
            last_norm: self.last_norm,
            rows: rows.to_vec(),
        }
    }

    /// Whether the epoch is the best so far: its `value` is lower by more than `min_delta`. Nothing is compared where it
    /// has none. With `keep` its weights are remembered: the tensors are shared until the next update, which then writes
    /// new ones.
    pub fn compare(
        &mut self,
        state: &ModelState,
        value: Option<f64>,
        min_delta: f64,
        keep: bool,
    ) -> Result<bool> {
        let Some(value) = value else { return Ok(false) };
        // A NaN is never better, and anything else is better than nothing. Runs of earlier versions may have kept one.
        let known = self.best.value.filter(|best| !best.is_nan());
        let better = !value.is_nan() && known.is_none_or(|best| value < best - min_delta);
        if better {
            self.best.value = Some(value);
            self.best.epochs_without_better = 0;
            self.history.best_epoch = Some(self.epoch);
            let weights = || -> Result<AnyNetwork> {
                let settled = state.settled()?;
                Ok(settled.independent_copy(settled.first()))
            };
            self.best.weights = keep.then(weights).transpose()?;
        } else {
            self.best.epochs_without_better += 1;
        }
        Ok(better)
    }
}

/// An execution that is running: `steps_per_execution` batches between two returns to the host.
#[derive(Clone, Default)]
pub struct Execution {
    /// The epoch, from 0.
    pub epoch: u64,
    /// Its first batch, from 0.
    pub first_batch: u64,
    /// Its batches so far.
    pub batches: u64,
    /// Its optimizer steps so far.
    pub optimizer_steps: u64,
    /// Its losses.
    pub loss: LossSum,
    /// The rate of its first step.
    pub learning_rate: Option<f64>,
    /// The norm of its latest gradient.
    pub gradient_norm: Option<f64>,
    /// How long it took so far.
    pub seconds: f64,
    /// A step of it has left weights that may not be finite.
    pub is_doubtful: bool,
}

impl Execution {
    /// An execution that begins with this batch.
    pub fn new(epoch: u64, first_batch: u64) -> Self {
        Self {
            epoch,
            first_batch,
            ..Self::default()
        }
    }

    pub(crate) fn stepped(&mut self, step: &StepRecorded) {
        self.optimizer_steps += step.updates;
        self.learning_rate = Some(step.rate);
        self.gradient_norm = Some(step.norm);
        self.is_doubtful |= !step.are_weights_finite;
    }

    /// Its record in the history.
    pub fn finished(self, step: u64, next_rate: f64) -> ExecutionRecord {
        ExecutionRecord {
            epoch: self.epoch,
            first_batch: self.first_batch,
            batches: self.batches,
            optimizer_steps: self.optimizer_steps,
            step,
            loss: self.loss.mean(),
            learning_rate: self.learning_rate.unwrap_or(next_rate),
            gradient_norm: self.gradient_norm,
            seconds: self.seconds,
        }
    }
}

/// A run that was interrupted.
pub struct SavedRun {
    /// Where it was.
    pub progress: Progress,
    /// What must be the same for another run to go on with it.
    pub signature: Signature,
    /// The changes that were made to it.
    pub edits: Vec<Dated>,
    /// The replicas' own weights, where they step alone. Meanwhile the model has their average.
    pub replicas: Option<(LocalSgdState, Vec<AnyNetwork>)>,
}

impl SavedRun {
    /// SC0103 unless the run can go on with this.
    pub fn check(&self, signature: &Signature) -> Result<()> {
        if self.signature == *signature {
            return Ok(());
        }
        let expects = format!(
            "the data and settings of the interrupted run: {}",
            self.signature
        );
        let finding = problem::bad_value("fit", "resume", "true", expects)
            .evidence("now", signature.to_string())
            .fix("pass the same data and arguments as before, or drop `resume`");
        Err(Box::new(finding))
    }
}

/// What must be the same for a run to go on.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    examples: usize,
    batch_size: usize,
    seed: u64,
    shuffle: bool,
    group_by_length: bool,
    max_length: usize,
    gradient_accumulation_steps: u64,
    batches_per_epoch: u64,
    class_weights: Option<ClassWeights>,
    /// Which tokens are hidden, for a model that predicts them.
    masking: Option<Masking>,
    /// Of every example: its tokens or numbers, its label and its other targets.
    data: Checksum,
}

impl Signature {
    /// That of a run with this plan and this data.
    pub fn of(
        plan: &FitPlan<'_>,
        data: &Prepared,
        shape: &Shape,
        class_weights: Option<&ClassWeights>,
        masking: Option<Masking>,
    ) -> Self {
        Self {
            examples: data.train.len(),
            batch_size: plan.batch_size,
            seed: plan.seed,
            shuffle: plan.shuffle,
            group_by_length: plan.group_by_length,
            max_length: data.train.max_length(),
            gradient_accumulation_steps: shape.gradient_accumulation_steps,
            batches_per_epoch: shape.batches_per_epoch,
            class_weights: class_weights.cloned(),
            masking,
            data: checksums(&data.train).all,
        }
    }
}

/// Checksums of what a data set trains on, of every example in its order.
pub struct DataChecksums {
    /// Of tokens, segments, numbers and labels.
    pub inputs: Checksum,
    /// Of these and the other targets; the same where there are none.
    pub all: Checksum,
}

/// The checksums of a data set.
pub fn checksums(data: &Split) -> DataChecksums {
    match data {
        Split::Held(encoded) => of_tokens(encoded),
        Split::Streamed(stream) => {
            let of_stream = Checksum::of(&stream.fingerprint());
            DataChecksums {
                inputs: of_stream,
                all: of_stream,
            }
        }
    }
}

fn of_tokens(data: &Encoded) -> DataChecksums {
    let mut bytes = Vec::new();
    let room = data.len() * size_of::<u64>();
    let (mut inputs, mut all) = (Vec::with_capacity(room), Vec::with_capacity(room));
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
        if example.weight != 1.0 {
            bytes.extend(example.weight.to_le_bytes());
        }
        let of_inputs = Checksum::of(&bytes);
        inputs.extend(of_inputs.0.to_le_bytes());
        let targets = example.targets.in_checksum();
        let of_all = match targets.is_empty() {
            true => of_inputs,
            false => {
                bytes.extend(targets.bytes());
                Checksum::of(&bytes)
            }
        };
        all.extend(of_all.0.to_le_bytes());
    }
    DataChecksums {
        inputs: Checksum::of(&inputs),
        all: Checksum::of(&all),
    }
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
            group_by_length,
            masking,
            ..
        } = self;
        write!(
            f,
            "{examples} examples (checksum {}), batch_size = {batch_size}, seed = {seed}, \
             shuffle = {shuffle}, max_length = {max_length}",
            data.short()
        )?;
        if *group_by_length {
            f.write_str(", group_by_length = true")?;
        }
        if let Some(Masking { share, whole_words }) = masking {
            write!(f, ", masking of {share}, whole words: {whole_words}")?;
        }
        match class_weights {
            Some(_) => f.write_str(", with class weights"),
            None => Ok(()),
        }
    }
}

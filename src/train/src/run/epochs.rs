//! The training loop: epoch → execution → batch → optimizer step.
//!
//! The functions are in the order in which they call each other. One optimizer step, whatever the number of replicas
//! and micro-batches, uses the mean of the gradients over all examples of its batches:
//!
//! ```text
//! w ← w − update(1/n · Σ over examples i of ∇ loss(i)),   n = examples of all micro-batches on all replicas
//! ```
//!
//! Each replica divides by the number of examples *it* sees in the whole step, and the all-reduce weighs replicas by
//! the same number (`step::backward`, `step::exchange`), so that the result does not depend on how examples are
//! divided. With `gradient_accumulation_steps = A` a step has A batches; with `steps_per_execution = S` an
//! execution has S batches, after which callbacks are called.
//!
//! An interrupt is noticed after every batch. All that a run needs to go on is in `StepState` and `Progress`.

use std::ops::Range;
use std::time::{Duration, Instant};

use stratoscope_data::{Batch, Prefetch};
use stratoscope_diagnostics::Result;

use crate::arguments::FitPlan;
use crate::callbacks::{Callbacks, Flow};
use crate::context::events::{Advanced, ExecutionEnded, Observer};
use crate::context::interrupt;
use crate::network::{Files, Network};
use crate::prepare::Prepared;
use crate::report::counters::Shape;
use crate::report::history::StepRecord;
use crate::run::lease::Lease;
use crate::run::pace::Pace;
use crate::run::progress::{Execution, Progress};
use crate::step::evaluation::{empty_tally, measured};
use crate::step::finite::{first_non_finite, weights_are_finite};
use crate::step::forward::{BatchOutputs, PREFETCHED};
use crate::step::{StepOutcome, StepSettings};

/// Progress is reported at most this often within an execution.
const REPORT_PERIOD: Duration = Duration::from_millis(100);

/// The observer and the callbacks of a run.
pub(crate) struct Listeners<'l, 'a> {
    pub run: u64,
    pub observer: &'l dyn Observer,
    pub callbacks: &'l mut Callbacks<'a>,
}

/// A run that is going on.
pub(crate) struct Run<'r, 'm, 'a, N: Network> {
    /// The model's state; callbacks may read it between executions.
    pub lease: &'r mut Lease<'m, N>,
    pub plan: &'r FitPlan<'a>,
    pub settings: StepSettings,
    pub data: &'r Prepared,
    pub shape: Shape,
    pub progress: &'r mut Progress<N>,
    pub listeners: Listeners<'r, 'a>,
    pub pace: Pace,
    /// When the latest batch ended, or the epoch began.
    pub batch_ended: Option<Instant>,
    /// When progress was reported last.
    pub reported: Option<Instant>,
}

impl<N: Network> Run<'_, '_, '_, N> {
    /// All epochs. Returns when they are over, when the run was interrupted (`history.interrupted`), or when it
    /// stopped early.
    pub(crate) fn all(&mut self) -> Result<()> {
        while self.progress.epoch < self.plan.epochs {
            if !self.progress.epoch_begun {
                self.begin_epoch();
            }
            if !self.progress.stops {
                self.batches()?;
            }
            if self.progress.history.interrupted {
                return Ok(());
            }
            let stops = self.end_epoch()?;
            if self.progress.history.interrupted {
                return Ok(());
            }
            if stops {
                self.progress.history.stopped_early = true;
                break;
            }
        }
        self.leave_weights()
    }

    /// Resets the metrics and calls the callbacks. Not at the end of an epoch: between two runs one can look at the
    /// counts of the last epoch.
    fn begin_epoch(&mut self) {
        let classes = self.lease.files.classes();
        let compiled = &self.settings.compiled;
        let empty = empty_tally(classes, compiled.loss, &compiled.metrics);
        if let Some(tallies) = &mut self.lease.step.tallies {
            *tallies = tallies.emptied(empty);
        }
        let (epoch, callbacks) = (self.progress.epoch, &mut *self.listeners.callbacks);
        self.lease.lent(|| callbacks.epoch_begins(epoch));
        self.progress.epoch_begun = true;
    }

    /// The batches of the epoch that are left: all, or those after an interrupt. Tokens are padded to batches ahead, on
    /// a thread of their own.
    fn batches(&mut self) -> Result<()> {
        let order = match self.plan.shuffle {
            true => (self.data.train).shuffle(self.plan.seed, self.progress.epoch),
            false => self.data.train.clone(),
        };
        let done = self.progress.batch;
        let rest = order.batch(self.plan.batch_size)?.skip(done as usize);
        let mut batches = Prefetch::new(rest, PREFETCHED);
        self.batch_ended = Some(Instant::now());
        for execution in self.shape.executions(done) {
            self.execution(execution, &mut batches)?;
            if self.progress.history.interrupted || self.progress.stops {
                break;
            }
        }
        Ok(())
    }

    /// `steps_per_execution` batches. One that is interrupted ends early, and counts as what it was.
    fn execution(&mut self, range: Range<u64>, batches: &mut Prefetch<Batch>) -> Result<()> {
        let begun = Instant::now();
        let mut execution = Execution::new(self.progress.epoch, range.start);
        for index in range.clone() {
            let Some(batch) = batches.next() else { break };
            let is_last = index + 1 == range.end;
            let is_done = self.batch(index, &batch, is_last, &mut execution)?;
            if !is_done || interrupt::requested() {
                self.progress.history.interrupted = true;
                break;
            }
            if !is_last && self.reported.is_none_or(|at| at.elapsed() >= REPORT_PERIOD) {
                self.report_progress(execution.learning_rate);
            }
        }
        // One that was given up in its first batch did not happen.
        match execution.batches {
            0 => Ok(()),
            _ => self.end_execution(execution, begun),
        }
    }

    /// A batch, and an optimizer step if it is the last one of its group. `false` if it was given up: then nothing has
    /// changed.
    fn batch(
        &mut self,
        index: u64,
        batch: &Batch,
        is_last: bool,
        execution: &mut Execution,
    ) -> Result<bool> {
        let group = self.shape.group(index);
        let replicas = self.lease.step.replicas.len();
        let shares = (self.data).shares(group.clone(), self.plan.batch_size, replicas);
        let stop = interrupt::after_patience();

        // Forward and backward on every replica. The gradients stay there and add up.
        let step = &mut self.lease.step;
        let Some(outputs) = step.accumulate(&self.settings, batch, &shares, &stop)? else {
            return Ok(false);
        };
        self.record_batch(batch, &outputs, execution)?;
        self.progress.batch = index + 1;

        // Inside a group of micro-batches nothing is exchanged and nothing is updated.
        if index + 1 == group.end {
            self.step(batch, &shares, is_last, execution)?;
        }
        let now = Instant::now();
        if let Some(before) = self.batch_ended.replace(now) {
            self.pace.batch((now - before).as_secs_f64());
        }
        Ok(true)
    }

    /// Checks the loss and the outputs of a batch, and counts them for the metrics.
    fn record_batch(
        &mut self,
        batch: &Batch,
        outputs: &BatchOutputs,
        execution: &mut Execution,
    ) -> Result<()> {
        let step = &mut self.lease.step;
        let loss: f64 = outputs.iter().map(|(_, output)| output.loss).sum();
        if !loss.is_finite() {
            let moment = self
                .progress
                .moment(step.steps, step.rate(&self.settings), &batch.rows);
            let weight = first_non_finite(step.replicas.first());
            return Err(moment.not_finite("loss", loss, weight.map(|it| it.name)));
        }
        let network = step.replicas.first();
        (self.progress.watch).outputs(network, self.settings.compiled.loss, outputs)?;
        step.last_batch = (outputs.iter().map(|(part, _)| (part.size(), part.seq))).collect();
        if let Some(tallies) = &mut step.tallies {
            // Replicas without a part of the batch are the last ones.
            for (replica, (part, output)) in outputs.iter().enumerate() {
                tallies.add(replica, &part.labels, &output.outputs);
            }
        }
        step.accumulated_loss.add(loss, batch.size());
        step.batches += 1;
        step.counters.batches += 1;
        execution.loss.add(loss, batch.size());
        execution.batches += 1;
        self.progress.epoch_loss.add(loss, batch.size());
        Ok(())
    }

    /// The optimizer step that the batch ends: exchange, clip, update.
    fn step(
        &mut self,
        batch: &Batch,
        shares: &[usize],
        is_last: bool,
        execution: &mut Execution,
    ) -> Result<()> {
        let step = &mut self.lease.step;
        // The last step of an execution waits for the devices, so that its time is measured.
        let made = match step.optimizer_step(&self.settings, shares, is_last)? {
            StepOutcome::Made(made) => made,
            StepOutcome::Skipped => return Ok(()),
            StepOutcome::NotFinite { found, rate } => {
                let moment = self.progress.moment(step.steps, rate, &batch.rows);
                return Err(moment.not_finite("gradient", found.value, Some(found.name)));
            }
        };
        self.progress.history.steps.push(StepRecord {
            step: step.steps,
            loss: made.loss,
            learning_rate: made.rate,
        });
        self.progress.last_norm = Some(made.norm);
        self.progress.watch.rate(made.rate);
        execution.stepped(made);
        self.lease.has_learned = true;
        Ok(())
    }

    /// Back on the host after an execution: checks the weights, records, and calls the callbacks of batches, as Keras
    /// does once per execution.
    fn end_execution(&mut self, execution: Execution, begun: Instant) -> Result<()> {
        let step = &mut self.lease.step;
        let stored = step.replicas.modules();
        // One full copy of the variables: a module, or the shards of all servers.
        let mut one_copy = stored.iter().take(stored.len() / step.replicas.copies());
        if one_copy.any(|one| weights_are_finite(one).is_err())
            && let Err(it) = weights_are_finite(step.replicas.first())
        {
            let moment = (self.progress).moment(step.steps, self.progress.last_rate, &[]);
            return Err(moment.not_finite("weight", it.value, Some(it.name)));
        }
        let seconds = begun.elapsed().as_secs_f64();
        step.counters.executions += 1;
        let record = execution.finished(step.steps, step.rate(&self.settings), seconds);
        let counters = step.counters;
        let progress = &mut *self.progress;
        progress.epoch_seconds += seconds;
        progress.last_rate = record.learning_rate;
        progress.last_loss = Some(record.loss);
        progress.history.executions.push(record.clone());
        let callbacks = &mut *self.listeners.callbacks;
        if !callbacks.is_empty() {
            let flow = self.lease.lent(|| callbacks.batches_ended(&record));
            progress.stops |= flow == Flow::Stop;
        }
        self.report_progress(Some(record.learning_rate));
        let run = self.listeners.run;
        self.listeners.observer.execution_ended(&ExecutionEnded {
            run,
            record,
            counters,
        });
        Ok(())
    }

    /// Reports to the observer where the run is.
    fn report_progress(&mut self, learning_rate: Option<f64>) {
        self.reported = Some(Instant::now());
        let (progress, step) = (&*self.progress, &self.lease.step);
        let Some(tallies) = &step.tallies else {
            return;
        };
        let of_epoch = self.shape.batches_per_epoch;
        let left = (self.plan.epochs - progress.epoch) * of_epoch - progress.batch;
        self.listeners.observer.advanced(&Advanced {
            run: self.listeners.run,
            epoch: progress.epoch,
            batches: progress.batch,
            epoch_loss: progress.epoch_loss.mean(),
            epoch_metrics: measured(&self.settings.compiled.metrics, &tallies.read()),
            learning_rate: learning_rate.unwrap_or(progress.last_rate),
            counters: step.counters,
            sequences_per_second: self.pace.speed(self.plan.batch_size),
            seconds_left: self.pace.seconds_for(left),
        });
    }
}

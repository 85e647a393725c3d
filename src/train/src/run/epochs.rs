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
//! The loop can be left and entered again: all that a run needs to go on is in `StepState` and `RunState`. It is left
//! where [`Goal`] says, and after any batch if it is interrupted. A run of `start!` is always left between two
//! optimizer steps: micro-batches of a step that was not made are forgotten (`mark`), and computed again.

use std::ops::Range;
use std::time::{Duration, Instant};

use stratoscope_data::{Batch, Prefetch};
use stratoscope_diagnostics::Result;

use crate::callbacks::Flow;
use crate::context::events::{Advanced, ExecutionEnded};
use crate::context::interrupt;
use crate::network::{Files, Network};
use crate::run::lease::Lease;
use crate::run::mark::Mark;
use crate::run::progress::Execution;
use crate::run::run_state::RunState;
use crate::step::Proposed;
use crate::step::evaluation::{empty_tally, measured};
use crate::step::finite::{first_non_finite, weights_are_finite};
use crate::step::forward::{BatchOutputs, PREFETCHED};

/// Progress is reported at most this often within an execution.
const REPORT_PERIOD: Duration = Duration::from_millis(100);

/// Where a call leaves the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// After so many optimizer steps.
    Steps(u64),
    /// When the run has made so many optimizer steps in all.
    UntilStep(u64),
    /// When the epoch is over.
    Epoch,
    /// When all epochs are over.
    End,
}

/// Why the loop was left.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Pause {
    /// The goal of the call is reached.
    Reached,
    /// The interrupt button, or [`interrupt::request`].
    Interrupted,
    /// There are no more steps.
    Complete,
}

/// A run while a call drives it.
pub(crate) struct Drive<'r, 'm, 'a, N: Network> {
    /// The model's state; callbacks may read it between executions.
    pub lease: &'r mut Lease<'m, N>,
    pub run: &'r mut RunState<'a, N>,
    pub goal: Goal,
    /// Optimizer steps of this call.
    pub made: u64,
    pub pause: Option<Pause>,
    /// What is put back if the step is not made, where a run is left between two steps only.
    pub mark: Option<Mark>,
    /// When the latest batch ended, or the epoch began.
    pub batch_ended: Option<Instant>,
    /// When progress was reported last.
    pub reported: Option<Instant>,
}

impl<N: Network> Drive<'_, '_, '_, N> {
    /// Epoch after epoch, until the goal is reached or a pause comes.
    pub(crate) fn epochs(&mut self) -> Result<Pause> {
        while !self.run.is_complete() {
            if self.is_reached() {
                return Ok(Pause::Reached);
            }
            if !self.run.progress.epoch_begun {
                self.begin_epoch();
            }
            if !self.run.progress.stops {
                self.batches()?;
            }
            // An epoch whose last step is made ends in the same call.
            let is_over = self.run.progress.batches_are_over(&self.run.shape);
            match self.pause.take() {
                Some(Pause::Reached) if is_over => {}
                Some(pause) => return Ok(pause),
                None => {}
            }
            if self.end_epoch()?.is_break() {
                return Ok(Pause::Interrupted);
            }
            if self.goal == Goal::Epoch && !self.run.is_complete() {
                return Ok(Pause::Reached);
            }
        }
        Ok(Pause::Complete)
    }

    fn is_reached(&self) -> bool {
        match self.goal {
            Goal::Steps(steps) => self.made >= steps,
            Goal::UntilStep(step) => self.lease.step.steps >= step,
            Goal::Epoch | Goal::End => false,
        }
    }

    /// Resets the metrics and calls the callbacks. Not at the end of an epoch: between two runs one can look at the
    /// counts of the last epoch.
    fn begin_epoch(&mut self) {
        let classes = self.lease.files.classes();
        let compiled = &self.run.settings.compiled;
        let empty = empty_tally(classes, compiled.loss, &compiled.metrics);
        if let Some(tallies) = &mut self.lease.step.tallies {
            *tallies = tallies.emptied(empty);
        }
        let (epoch, callbacks) = (self.run.progress.epoch, &mut self.run.callbacks);
        self.lease.lent(|| callbacks.epoch_begins(epoch));
        self.run.progress.epoch_begun = true;
    }

    /// The batches of the epoch that are left: all, or those after a pause. Tokens are padded to batches ahead, on
    /// a thread of their own.
    fn batches(&mut self) -> Result<()> {
        let (epoch, done) = (self.run.progress.epoch, self.run.progress.batch);
        let rest = self.run.batches_of(epoch)?.skip(done as usize);
        let mut batches = Prefetch::new(rest, PREFETCHED);
        self.batch_ended = Some(Instant::now());
        for execution in self.run.shape.executions(done) {
            self.execution(execution, &mut batches)?;
            if self.pause.is_some() || self.run.progress.stops {
                break;
            }
        }
        Ok(())
    }

    /// `steps_per_execution` batches, or what a pause has left of them.
    fn execution(&mut self, range: Range<u64>, batches: &mut Prefetch<Batch>) -> Result<()> {
        let begun = Instant::now();
        let epoch = self.run.progress.epoch;
        (self.run.progress.execution).get_or_insert_with(|| Execution::new(epoch, range.start));
        for index in range.clone() {
            let Some(batch) = batches.next() else { break };
            let is_last = index + 1 == range.end;
            self.batch(index, &batch, is_last)?;
            if self.pause.is_some() {
                break;
            }
            if !is_last && self.reported.is_none_or(|at| at.elapsed() >= REPORT_PERIOD) {
                self.report_progress();
            }
        }
        if let Some(execution) = &mut self.run.progress.execution {
            execution.seconds += begun.elapsed().as_secs_f64();
        }
        // What a pause leaves open goes on with the run. `fit!` cannot know whether it does: its execution ends early,
        // and counts as what it was.
        let stays_open = self.run.pauses_between_steps && self.run.progress.batch < range.end;
        match self.pause.is_some() && stays_open {
            true => Ok(()),
            false => self.end_execution(),
        }
    }

    /// A batch, and an optimizer step if it is the last one of its group. One that is given up has changed nothing.
    fn batch(&mut self, index: u64, batch: &Batch, is_last: bool) -> Result<()> {
        let group = self.run.shape.group(index);
        let replicas = self.lease.step.replicas.len();
        let shares = (self.run.data).shares(group.clone(), self.run.plan.batch_size, replicas);
        let stop = interrupt::after_patience();
        if index == group.start {
            self.mark_step();
        }

        // Forward and backward on every replica. The gradients stay there and add up.
        let step = &mut self.lease.step;
        let Some(outputs) = step.accumulate(&self.run.settings, batch, &shares, &stop)? else {
            self.interrupt();
            return Ok(());
        };
        self.record_batch(batch, &outputs)?;
        self.record_examples(&outputs);
        self.run.progress.batch = index + 1;

        // Inside a group of micro-batches nothing is exchanged and nothing is updated.
        if index + 1 == group.end {
            self.step(batch, &shares, is_last)?;
        }
        let now = Instant::now();
        if let Some(before) = self.batch_ended.replace(now) {
            self.run.pace.batch((now - before).as_secs_f64());
        }
        if interrupt::requested() {
            self.interrupt();
        } else if self.is_reached() {
            self.pause = Some(Pause::Reached);
        }
        Ok(())
    }

    /// Checks the loss and the outputs of a batch, and counts them for the metrics.
    fn record_batch(&mut self, batch: &Batch, outputs: &BatchOutputs) -> Result<()> {
        let (step, progress) = (&mut self.lease.step, &mut self.run.progress);
        let loss: f64 = outputs.iter().map(|(_, output)| output.loss).sum();
        if !loss.is_finite() {
            let moment = progress.moment(step.steps, step.rate(&self.run.settings), &batch.rows);
            let weight = first_non_finite(step.replicas.first());
            return Err(moment.not_finite("loss", loss, weight.map(|it| it.name)));
        }
        let network = step.replicas.first();
        (progress.watch).outputs(network, self.run.settings.compiled.loss, outputs)?;
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
        if let Some(execution) = &mut progress.execution {
            execution.loss.add(loss, batch.size());
            execution.batches += 1;
        }
        progress.epoch_loss.add(loss, batch.size());
        Ok(())
    }

    /// The optimizer step that the batch ends: exchange, clip, update.
    fn step(&mut self, batch: &Batch, shares: &[usize], is_last: bool) -> Result<()> {
        let (step, progress) = (&mut self.lease.step, &mut self.run.progress);
        let settings = &self.run.settings;
        match step.propose(settings, shares)? {
            Proposed::Skipped => {}
            Proposed::NotFinite { found, rate, .. } => {
                let moment = progress.moment(step.steps, rate, &batch.rows);
                return Err(moment.not_finite("gradient", found.value, Some(found.name)));
            }
            Proposed::Update(proposal) => {
                // The last step of an execution waits for the devices, so that its time is measured.
                let made = step.accept(proposal, settings, is_last)?;
                progress.stepped(step.steps, made);
                self.lease.has_learned = true;
            }
        }
        self.mark = None;
        self.made += 1;
        Ok(())
    }

    /// Back on the host after an execution: checks the weights, records, and calls the callbacks of batches, as Keras
    /// does once per execution.
    fn end_execution(&mut self) -> Result<()> {
        let (step, progress) = (&mut self.lease.step, &mut self.run.progress);
        // One that was given up in its first batch did not happen.
        let Some(execution) = progress.execution.take().filter(|it| it.batches > 0) else {
            return Ok(());
        };
        let stored = step.replicas.modules();
        // One full copy of the variables: a module, or the shards of all servers.
        let mut one_copy = stored.iter().take(stored.len() / step.replicas.copies());
        if one_copy.any(|one| weights_are_finite(one).is_err())
            && let Err(it) = weights_are_finite(step.replicas.first())
        {
            let moment = progress.moment(step.steps, progress.last_rate, &[]);
            return Err(moment.not_finite("weight", it.value, Some(it.name)));
        }
        step.counters.executions += 1;
        let record = execution.finished(step.steps, step.rate(&self.run.settings));
        let counters = step.counters;
        progress.epoch_seconds += record.seconds;
        progress.last_rate = record.learning_rate;
        progress.last_loss = Some(record.loss);
        progress.history.executions.push(record.clone());
        let callbacks = &mut self.run.callbacks;
        if !callbacks.is_empty() {
            let flow = self.lease.lent(|| callbacks.batches_ended(&record));
            progress.stops |= flow == Flow::Stop;
        }
        self.report_progress();
        let run = self.run.number;
        self.run.observer.execution_ended(&ExecutionEnded {
            run,
            record,
            counters,
        });
        Ok(())
    }

    /// Reports to the observer where the run is.
    fn report_progress(&mut self) {
        self.reported = Some(Instant::now());
        let (run, step) = (&*self.run, &self.lease.step);
        let Some(tallies) = &step.tallies else {
            return;
        };
        let progress = &run.progress;
        let of_epoch = run.shape.batches_per_epoch;
        let left = (run.plan.epochs - progress.epoch) * of_epoch - progress.batch;
        let running = progress.execution.as_ref();
        let rate = running.and_then(|execution| execution.learning_rate);
        run.observer.advanced(&Advanced {
            run: run.number,
            epoch: progress.epoch,
            batches: progress.batch,
            epoch_loss: progress.epoch_loss.mean(),
            epoch_metrics: measured(&run.settings.compiled.metrics, &tallies.read()),
            learning_rate: rate.unwrap_or(progress.last_rate),
            counters: step.counters,
            sequences_per_second: run.pace.speed(run.plan.batch_size),
            seconds_left: run.pace.seconds_for(left),
        });
    }
}

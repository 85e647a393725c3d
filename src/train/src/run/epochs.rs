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
//! divided. Where the loss is a mean over tokens, n is the number of tokens of the step (`step_batches`). With
//! `gradient_accumulation_steps = A` a step has A batches; with `steps_per_execution = S` an execution has S batches,
//! after which callbacks are called.
//!
//! The loop can be left and entered again: all that a run needs to go on is in `StepState` and `RunState`. It is left
//! where [`Goal`] says, and after any batch if it is interrupted. A run of `start!` is always left between two
//! optimizer steps: micro-batches of a step that was not made are forgotten (`step_undo`), and computed again.

use std::ops::Range;
use std::time::{Duration, Instant};

use stratoscope_data::{Batch, Prefetch};
use stratoscope_diagnostics::Result;

use crate::callbacks::Flow;
use crate::context::events::{Advanced, ExecutionEnded};
use crate::context::interrupt;
use crate::report::counters::Shape;
use crate::report::stop::Hit;
use crate::run::batch_plan::BatchPosition;
use crate::run::check_breakpoints::Seen;
use crate::run::edits::Dated;
use crate::run::lease::Lease;
use crate::run::progress::Execution;
use crate::run::run_state::RunState;
use crate::run::step_undo::{Counted, StepUndo};
use crate::step::Proposed;
use crate::step::evaluation::{empty_tally, measured};
use crate::step::failures::guarded;
use crate::step::finite::{first_non_finite, weights_are_finite};
use crate::step::forward::{BatchOutputs, PREFETCHED};

/// Progress is reported at most this often within an execution.
const REPORT_PERIOD: Duration = Duration::from_millis(100);

/// A report that takes longer than this, because its metrics keep all answers of the epoch, is followed by a pause of so many
/// times its duration.
const LONG_REPORT: Duration = Duration::from_millis(2);
const PAUSE_AFTER_LONG_REPORT: u32 = 20;

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
    /// A condition holds for the coming step.
    Breakpoint(Box<Hit>),
    /// There are no more steps.
    Complete,
}

/// A run while a call drives it.
pub(crate) struct Drive<'r, 'm, 'a> {
    /// The model's state; callbacks may read it between executions.
    pub lease: &'r mut Lease<'m>,
    pub run: &'r mut RunState<'a>,
    pub goal: Goal,
    /// Optimizer steps of this call.
    pub made: u64,
    pub pause: Option<Pause>,
    /// What is put back if the step is not made, where a run is left between two steps only.
    pub undo: Option<StepUndo>,
    /// What the metrics are to count when the step is made.
    pub counted: Vec<Counted>,
    /// What was seen of the batches of the coming step.
    pub seen: Seen,
    /// When the latest batch ended, or the epoch began.
    pub batch_ended: Option<Instant>,
    /// When progress was reported last.
    pub reported: Option<Instant>,
    /// Until when it is not reported, after a report that took long.
    pub quiet_until: Option<Instant>,
    /// Paused with its button.
    pub is_paused: bool,
    /// Examples and tokens of what was computed last, or is being computed.
    pub tried: (usize, usize),
    /// The most examples and tokens for which the devices have room.
    pub admitted: Option<(usize, usize)>,
    /// The weights are being changed: what fails now cannot be tried again.
    pub is_updating: bool,
}

impl Drive<'_, '_, '_> {
    /// Epoch after epoch, until the goal is reached or a pause comes.
    pub(crate) fn epochs(&mut self) -> Result<Pause> {
        while !self.run.is_complete() {
            if self.is_reached() {
                return Ok(Pause::Reached);
            }
            if !self.run.progress.epoch_begun {
                self.begin_epoch()?;
            }
            if !self.run.progress.stops
                && let Err(problem) = self.batches()
            {
                self.divide(problem)?;
                continue;
            }
            if self.run.progress.stops {
                // A callback has left the rest of a group out.
                self.commit_step();
            }
            // An epoch whose last step is made ends in the same call.
            let is_over = (self.run.progress).batches_are_over(self.run.batches_of_epoch());
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
    fn begin_epoch(&mut self) -> Result<()> {
        let classes = (self.lease.files.task(), self.lease.files.classes());
        let compiled = &self.run.settings.compiled;
        let empty = empty_tally(classes, compiled.loss, &compiled.metrics);
        if let Some(tallies) = &mut self.lease.step.tallies {
            *tallies = tallies.emptied(empty);
        }
        let (epoch, callbacks) = (self.run.progress.epoch, &mut self.run.callbacks);
        self.lease.lent(|| callbacks.epoch_begins(epoch));
        self.run.unfreeze(self.lease)?;
        self.run.progress.epoch_begun = true;
        Ok(())
    }

    /// The batches of the epoch that are left: all, or those after a pause. Tokens are padded to batches ahead, on
    /// a thread of their own.
    fn batches(&mut self) -> Result<()> {
        let (epoch, done) = (self.run.progress.epoch, self.run.progress.batch);
        let rest = self.run.batch_plan.batches_from(epoch, done)?;
        let mut batches = Prefetch::new(rest, PREFETCHED);
        self.batch_ended = Some(Instant::now());
        let shape = Shape {
            batches_per_epoch: self.run.batch_plan.batches(epoch),
            ..self.run.shape
        };
        for execution in shape.executions(done) {
            self.execution(execution, &mut batches)?;
            if self.pause.is_some() || self.run.progress.stops {
                break;
            }
        }
        Ok(())
    }

    /// `steps_per_execution` batches, or what a pause has left of them.
    fn execution(
        &mut self,
        range: Range<u64>,
        batches: &mut Prefetch<Result<Batch>>,
    ) -> Result<()> {
        let begun = Instant::now();
        let epoch = self.run.progress.epoch;
        (self.run.progress.execution).get_or_insert_with(|| Execution::new(epoch, range.start));
        for index in range.clone() {
            let Some(batch) = batches.next().transpose()? else {
                break;
            };
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
        let epoch = self.run.progress.epoch;
        let group = self.run.batch_plan.group(epoch, index);
        let begin = BatchPosition {
            epoch,
            batch: group.start,
        };
        if self.run.skipped.contains(&begin) {
            // Later batches have the dropout masks that they would have had.
            self.lease.step.batches += 1;
            self.run.progress.batch = index + 1;
            return Ok(());
        }
        let replicas = self.lease.step.replicas.len();
        let shares = self.run.shares(group.clone(), replicas);
        if index == group.start {
            self.between_steps()?;
            self.remember_step();
            self.seen = Seen::default();
        }

        if !self.forward_backward(batch, &shares)? {
            return Ok(());
        }
        self.count_batch();
        self.run.progress.batch = index + 1;

        // Inside a group of micro-batches nothing is exchanged and nothing is updated.
        if index + 1 == group.end {
            self.step(batch, &shares, is_last)?;
            self.obey();
        }
        if self.pause.is_some() {
            return Ok(());
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

    /// Checks the loss and the outputs of a batch or a part of one, and adds its loss to the others.
    pub(super) fn record_part(&mut self, batch: &Batch, outputs: &BatchOutputs) -> Result<()> {
        let loss: f64 = outputs.iter().map(|(_, output)| output.loss).sum();
        self.see(batch, outputs);
        if !loss.is_finite() {
            if self.breaks_at_loss(loss) {
                return Ok(());
            }
            let (step, progress) = (&self.lease.step, &self.run.progress);
            let moment = progress.moment(step.steps, step.rate(&self.run.settings), &batch.rows);
            let weight = first_non_finite(step.replicas.first());
            return Err(moment.not_finite("loss", loss, weight.map(|it| it.name)));
        }
        let (step, progress) = (&mut self.lease.step, &mut self.run.progress);
        let network = step.replicas.first();
        (progress.watch).outputs(network, self.run.settings.compiled.loss, outputs)?;
        step.last_batch = (outputs.iter().map(|(part, _)| (part.size(), part.seq))).collect();
        step.accumulated_loss.add(loss, batch);
        if let Some(execution) = &mut progress.execution {
            execution.loss.add(loss, batch);
        }
        progress.epoch_loss.add(loss, batch);
        Ok(())
    }

    /// A batch is done.
    fn count_batch(&mut self) {
        self.lease.step.batches += 1;
        self.lease.step.counters.batches += 1;
        if let Some(execution) = &mut self.run.progress.execution {
            execution.batches += 1;
        }
    }

    /// The optimizer step that the batch ends: exchange, clip, update.
    fn step(&mut self, batch: &Batch, shares: &[usize], is_last: bool) -> Result<()> {
        self.gather_for_conditions()?;
        let devices = self.lease.step.replicas.devices().to_vec();
        let (state, settings) = (&mut self.lease.step, &self.run.settings);
        let proposed = guarded(&devices, false, || state.propose(settings, shares))?;
        if self.breaks_at(&proposed) {
            return Ok(());
        }
        let (step, progress) = (&mut self.lease.step, &mut self.run.progress);
        match proposed {
            Proposed::Skipped => {}
            Proposed::NotFinite { found, rate, .. } => {
                let moment = progress.moment(step.steps, rate, &batch.rows);
                return Err(moment.not_finite("gradient", found.value, Some(found.name)));
            }
            Proposed::Update(proposal) => {
                // The last step of an execution waits for the devices, so that its time is measured.
                self.is_updating = true;
                let accepted = || step.accept(proposal, &self.run.settings, is_last);
                let made = guarded(&devices, true, accepted)?;
                self.is_updating = false;
                progress.stepped(step.steps, made, self.seen.accuracy());
                self.lease.has_stepped();
            }
        }
        self.commit_step();
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
        // Of an update that was measured it is known; running states change in forward passes.
        let is_known = progress.were_weights_finite
            && !execution.is_doubtful
            && !step.replicas.has_running_values();
        if !is_known
            && one_copy.any(|one| weights_are_finite(one).is_err())
            && let Err(it) = weights_are_finite(step.replicas.first())
        {
            let moment = progress.moment(step.steps, progress.last_rate, &[]);
            return Err(moment.not_finite("weight", it.value, Some(it.name)));
        }
        progress.were_weights_finite = true;
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
    pub(super) fn report_progress(&mut self) {
        let begun = Instant::now();
        if self.quiet_until.is_some_and(|until| begun < until) {
            return;
        }
        self.reported = Some(begun);
        let (run, step) = (&*self.run, &self.lease.step);
        let Some(tallies) = &step.tallies else {
            return;
        };
        let progress = &run.progress;
        let left = run.rest(run.next_batch()).batches;
        let running = progress.execution.as_ref();
        let rate = running.and_then(|execution| execution.learning_rate);
        let mut counters = step.counters;
        // A run that is paused after the last batch of an execution has not ended it yet.
        let of_execution = run.shape.steps_per_execution;
        let is_whole =
            progress.batch.is_multiple_of(of_execution) || progress.batch == run.batches_of_epoch();
        if is_whole && running.is_some_and(|execution| execution.batches > 0) {
            counters.executions += 1;
        }
        run.observer.advanced(&Advanced {
            run: run.number,
            epoch: progress.epoch,
            batches: progress.batch,
            of_epoch: run.batches_of_epoch(),
            epoch_loss: progress.epoch_loss.mean(),
            epoch_metrics: measured(&run.settings.compiled.metrics, &tallies.read()),
            learning_rate: rate.unwrap_or(progress.last_rate),
            rate_changes: run.edits.iter().filter_map(Dated::of_the_rate).collect(),
            counters,
            sequences_per_second: run.pace.speed(run.batch_plan.batch_size()),
            seconds_left: run.pace.seconds_for(left),
            workers: step.workers_now(),
        });
        let took = begun.elapsed();
        self.quiet_until = (took > LONG_REPORT).then(|| begun + took * PAUSE_AFTER_LONG_REPORT);
    }
}

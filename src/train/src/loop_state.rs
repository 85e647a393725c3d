//! What the training loop works on: the model's state, the run, and where the call that drives it is to end. The loop
//! (`training_loop`) says in which order things happen, the functions here what they do to the run.

use std::borrow::Cow;
use std::ops::Range;
use std::time::Duration;

use stratoscope_data::{Batch, Prefetch};
use stratoscope_diagnostics::{Diagnostic, Result};

use crate::batch_plan::BatchPosition;
use crate::lease::Lease;
use crate::progress::Execution;
use crate::run_state::RunState;
use stratoscope_arguments::context::requests::Request;
use stratoscope_report::counters::Shape;
use stratoscope_report::history::ExecutionRecord;
use stratoscope_report::stop::{Hit, StopReason};
use stratoscope_step::changed::StepChange;
use stratoscope_step::failures::guarded;
use stratoscope_step::finite::{NonFinite, first_non_finite, weights_are_finite};
use stratoscope_step::forward::{BatchOutputs, PREFETCHED};
use stratoscope_step::{Proposal, Proposed, StepRecorded};

/// Where a call leaves the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// After this number of optimizer steps.
    Steps(u64),
    /// When the run has made this number of optimizer steps in all.
    UntilStep(u64),
    /// When the epoch is over.
    Epoch,
    /// When all epochs are over.
    End,
}

/// Why the loop was left.
#[derive(Clone, Debug, PartialEq)]
pub enum Pause {
    /// The goal of the call is reached.
    Reached,
    /// The interrupt button, or [`interrupt::request`](stratoscope_arguments::context::interrupt::request).
    Interrupted,
    /// A condition holds for the coming step.
    Breakpoint(Box<Hit>),
    /// There are no more steps.
    Complete,
    /// A request wants the run to be turned back, and to go on from there.
    TurnBack(Box<TurnBack>),
}

/// What a request wants that turns back a run which trains. The crate `run` does it, which has the snapshots then.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnBack {
    /// The number of the request, for its answer.
    pub number: u64,
    /// The request.
    pub request: Request,
    /// The optimizer steps that the run has made afterwards.
    pub step: u64,
}

impl Goal {
    /// The method that drives a run there.
    pub fn call(self) -> &'static str {
        match self {
            Self::Steps(_) => "step",
            Self::UntilStep(_) => "until",
            Self::Epoch => "epoch",
            Self::End => "finish",
        }
    }
}

impl Pause {
    /// What the stop says of it.
    pub fn reason(&self) -> StopReason {
        match self {
            Self::Reached => StopReason::Reached,
            Self::Interrupted => StopReason::Interrupted,
            Self::Breakpoint(hit) => StopReason::Breakpoint(hit.clone()),
            Self::Complete => StopReason::Complete,
            // The run goes on: no stop is reported.
            Self::TurnBack(_) => StopReason::Interrupted,
        }
    }
}

/// The model and the run while a call drives them. Hooks read and change it.
pub(crate) struct LoopState<'r, 'm, 'a> {
    /// The model's state; callbacks may read it between executions.
    pub lease: &'r mut Lease<'m>,
    /// The run.
    pub run: &'r mut RunState<'a>,
    /// Where the call leaves the loop.
    pub goal: Goal,
    /// Optimizer steps of this call.
    pub made: u64,
    /// Set where the loop is to be left.
    pub pause: Option<Pause>,
    /// The weights are being changed: what fails now cannot be tried again.
    pub is_updating: bool,
    /// The changes of the batches that are in those which the loop makes.
    pub batch_changes: usize,
}

impl LoopState<'_, '_, '_> {
    pub(crate) fn is_reached(&self) -> bool {
        match self.goal {
            Goal::Steps(steps) => self.made >= steps,
            Goal::UntilStep(step) => self.lease.step.steps >= step,
            Goal::Epoch | Goal::End => false,
        }
    }

    /// Whether no other execution of the epoch follows: a pause has come, or a callback has ended the epoch.
    pub(crate) fn is_leaving(&self) -> bool {
        self.pause.is_some() || self.run.progress.stops
    }

    /// Whether the batches that the loop makes are not those of the plan any more: a request has changed them.
    pub(crate) fn is_replanned(&self) -> bool {
        self.run.batch_plan.changes() != self.batch_changes
    }

    /// Whether the last batch of the epoch is done.
    pub(crate) fn is_epoch_over(&self) -> bool {
        (self.run.progress).batches_are_over(self.run.batches_of_epoch())
    }

    /// The batches of the epoch that are not done. Tokens are padded to batches ahead, on a thread.
    pub(crate) fn batches_left(&self) -> Result<Prefetch<Result<Batch>>> {
        let progress = &self.run.progress;
        let left = (self.run.batch_plan).batches_from(progress.epoch, progress.batch)?;
        Ok(Prefetch::new(left, PREFETCHED))
    }

    /// The executions of these batches, as ranges of batches of the epoch.
    pub(crate) fn executions_left(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let progress = &self.run.progress;
        let shape = Shape {
            batches_per_epoch: self.run.batch_plan.batches(progress.epoch),
            ..self.run.shape
        };
        let executions: Vec<_> = shape.executions(progress.batch).collect();
        executions.into_iter()
    }

    /// Begins an execution, unless a pause has left this one open.
    pub(crate) fn open_execution(&mut self, first: u64) {
        let epoch = self.run.progress.epoch;
        (self.run.progress.execution).get_or_insert_with(|| Execution::new(epoch, first));
    }

    pub(crate) fn add_seconds(&mut self, passed: Duration) {
        if let Some(execution) = &mut self.run.progress.execution {
            execution.seconds += passed.as_secs_f64();
        }
    }

    /// Whether the execution is left open, to go on with the run after a pause or with other batches. After a pause `fit!`
    /// cannot know whether it goes on: its execution ends early, and counts as what it was.
    pub(crate) fn leaves_execution_open(&self, end: u64) -> bool {
        let goes_on = match self.pause {
            Some(_) => self.run.pauses_between_steps,
            None => self.is_replanned(),
        };
        goes_on && self.run.progress.batch < end
    }

    /// The batches that make an optimizer step together with this one.
    pub fn group(&self, index: u64) -> Range<u64> {
        (self.run.batch_plan).group(self.run.progress.epoch, index)
    }

    /// Whether the user has left this step out.
    pub(crate) fn is_left_out(&self, group: &Range<u64>) -> bool {
        let begin = BatchPosition {
            epoch: self.run.progress.epoch,
            batch: group.start,
        };
        self.run.skipped.contains(&begin)
    }

    /// What the user has changed about the step of this batch is in force from here on. Returns the batch, with other labels
    /// and weights where it has any.
    pub fn changed<'b>(&mut self, group: &Range<u64>, batch: &'b Batch) -> Cow<'b, Batch> {
        let run = &mut *self.run;
        let is_step_changed = !run.step_changes.is_empty() || run.settings.change.is_some();
        let are_rows_changed = run.row_changes.is_some() || run.without_row.is_some();
        if !is_step_changed && !are_rows_changed {
            return Cow::Borrowed(batch);
        }
        run.settings.change = run.step_change(run.progress.epoch, group.start);
        let changes = run.row_changes.iter().chain(&run.settings.change);
        let changed = StepChange::batch_by_all(changes.chain(&run.without_row), batch);
        changed.map_or(Cow::Borrowed(batch), Cow::Owned)
    }

    /// Goes past a batch. Later batches have the dropout masks that they would have had.
    pub fn leave_out(&mut self, index: u64) {
        self.lease.step.batches += 1;
        self.run.progress.batch = index + 1;
    }

    /// How many examples of the step each replica sees.
    pub(crate) fn examples_by_replica(&self, group: &Range<u64>) -> Vec<usize> {
        self.run
            .shares(group.clone(), self.lease.step.replicas.len())
    }

    /// Adds the loss of a batch, or of a part of one, to that of the step, the execution and the epoch.
    ///
    /// # Errors
    /// SC0505 for a loss that is not finite.
    pub(crate) fn record_loss(&mut self, batch: &Batch, outputs: &BatchOutputs) -> Result<()> {
        let loss = loss_of(outputs);
        if !loss.is_finite() {
            let (step, progress) = (&self.lease.step, &self.run.progress);
            let moment = progress.moment(step.steps, step.rate(&self.run.settings), &batch.rows);
            let weight = first_non_finite(step.replicas.first());
            return Err(moment.not_finite("loss", loss, weight.map(|it| it.name)));
        }
        let (step, progress) = (&mut self.lease.step, &mut self.run.progress);
        step.last_batch = (outputs.iter().map(|(part, _)| (part.size(), part.seq))).collect();
        step.accumulated_loss.add(loss, batch);
        if let Some(execution) = &mut progress.execution {
            execution.loss.add(loss, batch);
        }
        progress.epoch_loss.add(loss, batch);
        Ok(())
    }

    /// A batch is done.
    pub(crate) fn count_batch(&mut self, index: u64) {
        self.lease.step.batches += 1;
        self.lease.step.counters.batches += 1;
        if let Some(execution) = &mut self.run.progress.execution {
            execution.batches += 1;
        }
        self.run.progress.batch = index + 1;
    }

    /// The exchanged gradients of the step; no weight has changed.
    ///
    /// # Errors
    /// SC0907 if a device fails.
    pub(crate) fn propose(&mut self, examples: &[usize]) -> Result<Proposed> {
        let devices = self.lease.step.replicas.computing().to_vec();
        let (step, settings) = (&mut self.lease.step, &self.run.settings);
        guarded(&devices, false, || step.propose(settings, examples))
    }

    /// The update. The last step of an execution waits for the devices, so that its time is measured.
    ///
    /// # Errors
    /// SC0907 if a device fails.
    pub fn accept(&mut self, proposal: Proposal, is_last: bool) -> Result<StepRecorded> {
        let devices = self.lease.step.replicas.computing().to_vec();
        self.is_updating = true;
        let (step, settings) = (&mut self.lease.step, &self.run.settings);
        let made = guarded(&devices, true, || step.accept(proposal, settings, is_last))?;
        self.is_updating = false;
        self.run.progress.stepped(self.lease.step.steps, &made);
        self.lease.has_stepped();
        Ok(made)
    }

    /// SC0505 for a gradient.
    pub(crate) fn gradient_not_finite(
        &self,
        found: NonFinite,
        rate: f64,
        rows: &[usize],
    ) -> Box<Diagnostic> {
        let moment = (self.run.progress).moment(self.lease.step.steps, rate, rows);
        moment.not_finite("gradient", found.value, Some(found.name))
    }

    /// Checks the weights and records the execution; `None` for one that was given up in its first batch.
    ///
    /// # Errors
    /// SC0505 for weights that are not finite.
    pub(crate) fn close_execution(&mut self) -> Result<Option<ExecutionRecord>> {
        let (step, progress) = (&mut self.lease.step, &mut self.run.progress);
        let Some(execution) = progress.execution.take().filter(|it| it.batches > 0) else {
            return Ok(None);
        };
        let stored = step.replicas.modules();
        let mut one_copy = stored.iter().take(step.replicas.modules_of_a_copy());
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
        progress.epoch_seconds += record.seconds;
        progress.last_rate = record.learning_rate;
        progress.last_loss = Some(record.loss);
        progress.history.executions.push(record.clone());
        Ok(Some(record))
    }
}

/// The sum of the losses of the examples of a batch.
pub(crate) fn loss_of(outputs: &BatchOutputs) -> f64 {
    outputs.iter().map(|(_, output)| output.loss).sum()
}

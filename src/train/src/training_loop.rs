//! The training loop: epoch → execution → batch → optimizer step. The functions are in the order in which they call each other.
//!
//! One optimizer step uses the mean of the gradients over all examples of its batches, however many replicas and
//! micro-batches there are:
//!
//! ```text
//! w ← w − update(1/n · Σ over examples i of ∇ loss(i)),   n = examples of all micro-batches on all replicas
//! ```
//!
//! Each replica divides by the number of examples that *it* sees in the whole step, and the all-reduce weighs replicas by
//! the same number (`step::backward`, `step::exchange`). Where the loss is a mean over tokens, n is the number of tokens.
//! With `gradient_accumulation_steps = A` a step has A batches; with `steps_per_execution = S` an execution has S batches.
//!
//! The loop can be left and entered again: all that a run needs to go on is in `StepState` and `RunState`. Everything else
//! that happens in a run is a [hook](super::hooks). `tests/train/naive_loop.rs` compares it with a loop that has none.

use std::ops::Range;
use std::time::Instant;

use stratoscope_data::{Batch, Prefetch};
use stratoscope_diagnostics::Result;

use crate::hooks::Hooks;
use crate::loop_state::{Goal, LoopState, Pause};
use stratoscope_step::Proposed;

/// A run while a call drives it.
pub(crate) struct Drive<'r, 'm, 'a> {
    pub at: LoopState<'r, 'm, 'a>,
    pub hooks: Hooks<'a>,
}

impl Drive<'_, '_, '_> {
    /// Epoch after epoch, until the goal is reached or a pause comes.
    pub fn epochs(&mut self) -> Result<Pause> {
        while !self.at.run.is_complete() {
            if self.at.is_reached() {
                return Ok(Pause::Reached);
            }
            self.begin_epoch()?;
            if let Err(problem) = self.batches() {
                // A device was out of memory: the same step is tried in smaller parts.
                self.divide(problem)?;
                continue;
            }
            let is_over = self.at.is_epoch_over();
            match self.at.pause.take() {
                // An epoch whose last step is made ends in the same call.
                Some(Pause::Reached) if is_over => {}
                Some(pause) => return Ok(pause),
                None => {}
            }
            if self.end_epoch()?.is_break() {
                return Ok(Pause::Interrupted);
            }
            if self.at.goal == Goal::Epoch && !self.at.run.is_complete() {
                return Ok(Pause::Reached);
            }
        }
        Ok(Pause::Complete)
    }

    /// The batches of the epoch that are left: all, or those after a pause. Between two steps a request can change them.
    fn batches(&mut self) -> Result<()> {
        self.tell(|hook, at| hook.batches_begin(at))?;
        while !self.at.is_leaving() {
            self.at.batch_changes = self.at.run.batch_plan.changes();
            self.planned_batches()?;
            if !self.at.is_replanned() {
                break;
            }
        }
        if !self.at.is_leaving() && self.at.run.progress.execution.is_some() {
            // The batches were changed within it, and none of the epoch is left.
            self.end_execution()?;
        }
        if self.at.run.progress.stops {
            // A callback has ended the epoch within a group of micro-batches: they count, and make no step.
            self.tell(|hook, at| hook.step_made(at))?;
        }
        Ok(())
    }

    /// The batches of the epoch that are left, as they are planned now.
    fn planned_batches(&mut self) -> Result<()> {
        let (mut executions, mut batches) = (self.at.executions_left(), self.at.batches_left()?);
        while !(self.at.is_leaving() || self.at.is_replanned())
            && let Some(execution) = executions.next()
        {
            self.execution(execution, &mut batches)?;
        }
        Ok(())
    }

    /// `steps_per_execution` batches, or what a pause has left of them.
    fn execution(&mut self, range: Range<u64>, batches: &mut Batches) -> Result<()> {
        let begun = Instant::now();
        self.at.open_execution(range.start);
        for index in range.clone() {
            let Some(batch) = batches.next().transpose()? else {
                break;
            };
            self.batch(index, &batch, index + 1 == range.end)?;
            if self.at.pause.is_some() || self.at.is_replanned() {
                break;
            }
        }
        self.at.add_seconds(begun.elapsed());
        match self.at.leaves_execution_open(range.end) {
            true => Ok(()),
            false => self.end_execution(),
        }
    }

    /// A micro-batch, and an optimizer step if it is the last one of its group.
    fn batch(&mut self, index: u64, batch: &Batch, is_last: bool) -> Result<()> {
        let group = self.at.group(index);
        if self.at.is_left_out(&group) {
            self.at.leave_out(index);
            return Ok(());
        }
        let batch = &self.at.changed(&group, batch);
        if index == group.start {
            self.tell(|hook, at| hook.before_step(at))?;
        }
        let examples = self.at.examples_by_replica(&group);
        if !self.forward_backward(batch, &examples)? {
            return Ok(());
        }
        self.at.count_batch(index);
        // Inside a group of micro-batches nothing is exchanged and nothing is updated.
        if index + 1 == group.end {
            self.step(batch, &examples, is_last)?;
            self.tell(|hook, at| hook.step_ended(at))?;
        }
        if self.at.pause.is_none() {
            self.leave_if_asked()?;
            self.tell(|hook, at| hook.after_batch(at, is_last))?;
        }
        Ok(())
    }

    /// The optimizer step: exchange, clip, update.
    fn step(&mut self, batch: &Batch, examples: &[usize], is_last: bool) -> Result<()> {
        self.tell(|hook, at| hook.before_exchange(at))?;
        let proposed = self.at.propose(examples)?;
        self.tell(|hook, at| hook.proposed(at, &proposed))?;
        if self.at.pause.is_some() {
            return self.tell(|hook, at| hook.step_given_up(at));
        }
        match proposed {
            Proposed::Skipped => {}
            Proposed::NotFinite { found, rate, .. } => {
                return Err(self.at.gradient_not_finite(found, rate, &batch.rows));
            }
            Proposed::Update(proposal) => {
                let made = self.at.accept(proposal, is_last)?;
                self.tell(|hook, at| hook.updated(at, &made))?;
            }
        }
        self.at.made += 1;
        self.tell(|hook, at| hook.step_made(at))
    }
}

/// Batches that are padded ahead, on a thread of their own.
type Batches = Prefetch<Result<Batch>>;

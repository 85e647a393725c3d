//! How a call drives a run: it enters the training loop, and leaves it at its goal, after an interrupt or an error.

use std::panic::{self, AssertUnwindSafe};

use stratoscope_diagnostics::Result;

use crate::edits::Dated;
use crate::hooks::Hook;
use crate::lease::Lease;
use crate::loop_state::{Goal, LoopState, Pause};
use crate::run_state::{Phase, RunState};
use crate::training_loop::Drive;
use stratoscope_arguments::context::interrupt;
use stratoscope_report::counters::Counters;

impl RunState<'_> {
    /// Runs the loop until the goal is reached, the run is interrupted or there are no more steps.
    ///
    /// # Errors
    /// What goes wrong in a step or between two epochs. A run of `start!` then stands before the step that was not made, also
    /// when a panic goes on.
    pub fn drive(&mut self, lease: &mut Lease<'_>, goal: Goal) -> Result<Pause> {
        self.tell(lease.step.counters);
        self.observer.fit_started(&self.started);
        self.drive_on(lease, goal)
    }

    /// The same within a call of which listeners have heard.
    ///
    /// # Errors
    /// As [`Self::drive`].
    pub fn drive_on(&mut self, lease: &mut Lease<'_>, goal: Goal) -> Result<Pause> {
        let state = &mut **lease;
        state.step.takes_workers(&*state.files)?;
        if self.phase == Phase::Fresh {
            state.step.counts_anew();
            let (callbacks, started) = (&mut self.hooks.callbacks, &self.started);
            lease.lent(|| callbacks.train_begins(started));
            self.phase = Phase::Going;
        }
        let mut drive = Drive {
            hooks: std::mem::take(&mut self.hooks),
            at: LoopState {
                lease,
                run: self,
                goal,
                made: 0,
                pause: None,
                is_updating: false,
                batch_changes: 0,
            },
        };
        drive
            .hooks
            .all()
            .into_iter()
            .for_each(|hook| hook.call_begins());
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| drive.epochs()));
        let outcome = outcome.map(|outcome| drive.leave(outcome));
        if outcome.is_err() && drive.at.run.pauses_between_steps {
            drive.give_up_step();
            drive.at.run.stop = None;
        }
        let Drive { at, hooks } = drive;
        at.run.hooks = hooks;
        outcome.unwrap_or_else(|panic| panic::resume_unwind(panic))
    }

    /// Brings what listeners hear at the begin of a call up to date: the sizes that hold now.
    pub(crate) fn tell(&mut self, counters: Counters) {
        let epoch = self.progress.epoch;
        let planned = match self.edits.iter().any(Dated::changes_batches) {
            true => counters.and(&self.rest(self.next_batch())),
            false => self
                .shape
                .counters(self.plan.epochs - self.plan.initial_epoch),
        };
        let started = &mut self.started;
        started.counters = counters;
        started.planned = planned;
        started.batch_size = self.batch_plan.batch_size();
        started.batches_per_epoch = self.batch_plan.batches(epoch.min(self.plan.epochs - 1));
        started.examples = self.data.train.len() - self.batch_plan.dropped().len();
    }
}

impl Drive<'_, '_, '_> {
    /// Tells all hooks, in their order.
    pub(crate) fn tell(
        &mut self,
        moment: impl Fn(&mut dyn Hook, &mut LoopState<'_, '_, '_>) -> Result<()>,
    ) -> Result<()> {
        let mut hooks = self.hooks.all().into_iter();
        hooks.try_for_each(|hook| moment(hook, &mut self.at))
    }

    /// Back on the host after an execution: the weights are checked, and the hooks hear of it, as Keras's callbacks of
    /// batches do once per execution.
    pub(crate) fn end_execution(&mut self) -> Result<()> {
        match self.at.close_execution()? {
            Some(record) => self.tell(|hook, at| hook.execution_ended(at, &record)),
            None => Ok(()),
        }
    }

    /// What follows when the loop is left. At the end of all epochs the model gets the weights that the run leaves; after an
    /// error the step is given up.
    pub fn leave(&mut self, outcome: Result<Pause>) -> Result<Pause> {
        let pause = match outcome {
            Ok(pause) => pause,
            Err(problem) => {
                self.give_up_step();
                return Err(problem);
            }
        };
        let is_end = pause == Pause::Complete && self.at.goal == Goal::End;
        if !is_end {
            self.at.lease.step.gather()?;
        }
        self.tell(|hook, at| hook.call_ends(at, &pause))?;
        if is_end {
            self.leave_weights()?;
        }
        Ok(pause)
    }

    /// After an error or a panic: the step is not made. The state is made whole as far as that is possible.
    pub(crate) fn give_up_step(&mut self) {
        self.at.run.is_damaged = self.at.is_updating;
        // The first error is the one to tell.
        let _ = self.tell(|hook, at| hook.step_given_up(at));
        let _ = self.at.lease.step.gather();
    }

    /// Leaves the loop at its goal or after an interrupt.
    pub(crate) fn leave_if_asked(&mut self) -> Result<()> {
        if interrupt::requested() {
            return self.interrupt();
        }
        if self.at.is_reached() {
            self.at.pause = Some(Pause::Reached);
        }
        Ok(())
    }

    /// Leaves the loop; a step that has begun is not made.
    pub fn interrupt(&mut self) -> Result<()> {
        self.at.pause = Some(Pause::Interrupted);
        self.tell(|hook, at| hook.step_given_up(at))
    }
}

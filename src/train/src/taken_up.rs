//! Where a run begins: at its first epoch, where an interrupted run was, or with a checkpoint, which another strategy may have
//! written.
//!
//! Under another strategy the weights, moments, counters and the place in the data are those of the checkpoint. What is random
//! follows from seed, step, replica and place in the batch: so dropout masks are the same where as many replicas divide a
//! batch, in the same parts. What differs is reported.

use stratoscope_arguments::FitPlan;
use stratoscope_arguments::context::warnings::notice;
use stratoscope_diagnostics::rules::ResumedOnOtherDevices;
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_report::counters::Shape;

use crate::batch_plan::BatchPlan;
use crate::checkpoint::{Checkpoints, LaidOut, Resuming, made_with};
use crate::edits::{Change, Dated};
use crate::fit::{Ready, devices_of};
use crate::hooks::RunCheckpoints;
use crate::progress::Progress;
use crate::run_state::RunState;
use crate::state::ModelState;

/// Where a run begins, and with what.
pub(crate) struct Begun {
    /// How far it is.
    pub progress: Progress,
    /// Where the run writes complete checkpoints.
    pub complete: Option<RunCheckpoints>,
    /// The changes of the run that this one goes on with.
    pub edits: Vec<Dated>,
    /// How the run that this one goes on with was laid out, where another strategy has written its checkpoint.
    pub moved: Option<LaidOut>,
}

/// The begin of a run.
///
/// # Errors
/// What is wrong with the checkpoint that it goes on with.
pub(crate) fn begun(
    state: &mut ModelState,
    plan: &FitPlan<'_>,
    ready: &Ready,
    batch_plan: &BatchPlan,
) -> Result<Begun> {
    if plan.every.is_none() && plan.resume_from.is_none() {
        return Ok(take_up(state, plan, &ready.shape));
    }
    state.step.ensure_moments();
    let made_with = made_with(state, plan, &ready.settings, &ready.data);
    let (mut begun, run) = match &plan.resume_from {
        None => (take_up(state, plan, &ready.shape), None),
        Some(folder) => {
            let resumed = Resuming {
                state,
                settings: &ready.settings,
                batch_plan,
                epochs: plan.epochs,
                made_with: &made_with,
                devices: devices_of(state),
            }
            .newest_of(folder)?;
            state.step.restore(&resumed.state)?;
            state.has_stepped();
            state.saved_run = None;
            let begun = Begun {
                progress: resumed.progress,
                complete: None,
                edits: resumed.edits,
                moved: resumed.moved,
            };
            (begun, Some(resumed.run))
        }
    };
    let steps = state.step.steps;
    if let (Some(folder), Some(every)) = (&plan.checkpoint, plan.every) {
        begun.complete = Some(RunCheckpoints {
            checkpoints: Checkpoints::new(folder.clone(), every, plan.keep_last, run, steps),
            made_with,
        });
    }
    Ok(begun)
}

/// Where the run begins: at its first epoch, or where an interrupted one was, with the changes that were made to that.
fn take_up(state: &mut ModelState, plan: &FitPlan<'_>, shape: &Shape) -> Begun {
    state.step.ensure_moments();
    let (progress, edits) = match state.saved_run.take() {
        Some(saved) if plan.resume => {
            if let Some(replicas) = saved.replicas {
                state.step.restore_unaveraged(replicas);
            }
            state.step.counters = saved.progress.history.counters;
            (saved.progress, saved.edits)
        }
        _ => {
            // The epochs before `initial_epoch` count as done, so that orders, dropout masks and a schedule over the
            // run take up there.
            let done = shape.counters(plan.initial_epoch);
            state.step.begin_run(done.batches, done.optimizer_steps);
            let progress = Progress::new(devices_of(state), plan.initial_epoch);
            (progress, Vec::new())
        }
    };
    Begun {
        progress,
        complete: None,
        edits,
        moved: None,
    }
}

impl RunState<'_> {
    /// Takes over the changes of the run that this one goes on with, and how it was laid out under another strategy.
    ///
    /// # Errors
    /// SC0532, where it is denied; those of [`Self::make`].
    pub(crate) fn go_on(
        &mut self,
        state: &mut ModelState,
        edits: Vec<Dated>,
        moved: Option<&LaidOut>,
    ) -> Result<()> {
        self.take_over(state, edits)?;
        moved.map_or(Ok(()), |then| self.moved_from(state, then))
    }

    /// The run was laid out like this before; its state is in this model by now. Batches that were computed in the
    /// micro-batches of a pipeline are computed in parts of the same size, so that the masks of dropout are the same.
    ///
    /// # Errors
    /// SC0532, where it is denied.
    fn moved_from(&mut self, state: &mut ModelState, then: &LaidOut) -> Result<()> {
        let now = LaidOut::of(state, &self.settings);
        let batch_size = self.batch_plan.batch_size();
        let part_then = {
            let all = then
                .micro_batches
                .map_or(batch_size, |it| batch_size.div_ceil(it));
            self.part.map_or(all, |part| part.min(all)).max(1)
        };
        let needs_all = self.settings.loss.needs_several();
        let is_alike = then.replicas == now.replicas && now.micro_batches.is_none();
        if part_then < self.part_size() && is_alike && !needs_all {
            self.edit(state, Change::Parts(part_then as u64))?;
        }
        let mut differences = then.differences(&now);
        if part_then != self.part_size() {
            let parts = |part: usize| format!("{part} examples at once");
            let (name, now) = ("a batch is computed".to_owned(), self.part_size());
            differences.push((name, parts(part_then), parts(now)));
        }
        let rule = ResumedOnOtherDevices {
            step: state.step.steps,
            then: then.devices.clone(),
            now: now.devices,
            batch_size,
            differences,
        };
        rule.check().map_or(Ok(()), notice)
    }
}

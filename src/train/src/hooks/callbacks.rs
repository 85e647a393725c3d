//! The user's callbacks, and `GradualUnfreezing`, which is one of them to its user and a series of changes to the run.

use stratoscope_diagnostics::{Diagnostic, Result};

use super::{At, EpochOver, Hook};
use crate::lease::Lease;
use crate::loop_state::Pause;
use crate::run_state::RunState;
use stratoscope_arguments::callbacks::{Callbacks, Flow};
use stratoscope_arguments::context::RunContext;
use stratoscope_arguments::context::alert::{Alert, AlertKind};
use stratoscope_report::history::{ExecutionRecord, History};

/// They may read the model meanwhile. All of them are called, whichever stops the run.
impl Hook for Callbacks<'_> {
    fn epoch_begins(&mut self, at: At<'_, '_, '_, '_>) -> Result<()> {
        let epoch = at.run.progress.epoch;
        at.lease.lent(|| self.tell_epoch_begins(epoch));
        Ok(())
    }

    fn execution_ended(&mut self, at: At<'_, '_, '_, '_>, record: &ExecutionRecord) -> Result<()> {
        if !self.is_empty() {
            let flow = at.lease.lent(|| self.tell_batches_ended(record));
            at.run.progress.stops |= flow == Flow::Stop;
        }
        Ok(())
    }

    fn after_batch(&mut self, at: At<'_, '_, '_, '_>, _: bool) -> Result<()> {
        tell_noticed(self, at);
        Ok(())
    }

    fn call_ends(&mut self, at: At<'_, '_, '_, '_>, pause: &Pause) -> Result<()> {
        tell_noticed(self, at);
        if let Pause::Breakpoint(hit) = pause {
            let (run, step) = (at.run.number, at.lease.step.steps);
            let alert = Alert {
                kind: AlertKind::Breakpoint,
                run,
                step,
                code: None,
                message: hit.condition.clone(),
            };
            at.lease.lent(|| self.tell_alert(&alert));
        }
        Ok(())
    }

    fn epoch_ended(&mut self, at: At<'_, '_, '_, '_>, epoch: &EpochOver<'_>) -> Result<()> {
        let flow = at.lease.lent(|| self.tell_epoch_ended(epoch.record));
        at.run.progress.history.stopped_early |= flow == Flow::Stop;
        Ok(())
    }
}

impl RunState<'_> {
    /// Tells the callbacks that the run is over, or was interrupted.
    pub fn tell_end(&mut self, lease: &mut Lease<'_>, history: &History) {
        let alert = Alert {
            kind: AlertKind::Finished,
            run: self.number,
            step: lease.step.steps,
            code: None,
            message: match (history.interrupted, history.epochs.last()) {
                (true, _) => "interrupted".to_owned(),
                (false, Some(epoch)) => format!("loss {:.4} in the last epoch", epoch.loss),
                (false, None) => "no epoch was made".to_owned(),
            },
        };
        let callbacks = &mut self.hooks.callbacks;
        lease.lent(|| {
            callbacks.train_ended(history);
            callbacks.tell_alert(&alert);
        });
    }

    /// Tells the callbacks that an error has ended a call.
    pub fn tell_failure(&mut self, lease: &mut Lease<'_>, problem: &Diagnostic) {
        let alert = Alert::of(AlertKind::Failed, self.number, lease.step.steps, problem);
        let callbacks = &mut self.hooks.callbacks;
        if !callbacks.is_empty() {
            lease.lent(|| callbacks.tell_alert(&alert));
        }
    }
}

/// Tells callbacks of the warnings that were shown since the last time.
fn tell_noticed(callbacks: &mut Callbacks<'_>, at: At<'_, '_, '_, '_>) {
    if callbacks.is_empty() {
        return;
    }
    let found = RunContext::current().take_noticed();
    if found.is_empty() {
        return;
    }
    let (run, step) = (at.run.number, at.lease.step.steps);
    at.lease.lent(|| {
        for warning in &found {
            callbacks.tell_alert(&Alert::of(AlertKind::Warning, run, step, warning));
        }
    });
}

/// Trains one more layer from epoch to epoch (`GradualUnfreezing`).
#[derive(Default)]
pub struct Unfreezing;

impl Hook for Unfreezing {
    fn epoch_begins(&mut self, at: At<'_, '_, '_, '_>) -> Result<()> {
        at.run.unfreeze(at.lease)
    }
}

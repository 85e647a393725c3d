//! The user's callbacks, and `GradualUnfreezing`, which is one of them to its user and a series of changes to the run.

use stratoscope_diagnostics::Result;

use super::{At, EpochOver, Hook};
use crate::callbacks::{Callbacks, Flow};
use crate::report::history::ExecutionRecord;

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

    fn epoch_ended(&mut self, at: At<'_, '_, '_, '_>, epoch: &EpochOver<'_>) -> Result<()> {
        let flow = at.lease.lent(|| self.tell_epoch_ended(epoch.record));
        at.run.progress.history.stopped_early |= flow == Flow::Stop;
        Ok(())
    }
}

/// Trains one more layer from epoch to epoch (`GradualUnfreezing`).
#[derive(Default)]
pub(crate) struct Unfreezing;

impl Hook for Unfreezing {
    fn epoch_begins(&mut self, at: At<'_, '_, '_, '_>) -> Result<()> {
        at.run.unfreeze(at.lease)
    }
}

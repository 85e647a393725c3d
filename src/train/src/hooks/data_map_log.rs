//! What each training pass says of each example, for `run.data_map()`.

use stratoscope_diagnostics::Result;

use super::{At, Hook};
use stratoscope_step::forward::BatchOutputs;
use stratoscope_step::head::Head;

/// Keeps it in [`Progress::examples`](crate::progress::Progress::examples).
#[derive(Default)]
pub struct DataMapLog;

impl Hook for DataMapLog {
    fn counted(&mut self, at: At<'_, '_, '_, '_>, outputs: &BatchOutputs) -> Result<()> {
        // Only a run that is driven piece by piece can be asked for it, and it takes memory for every example.
        if !at.run.pauses_between_steps || at.run.data.train.held().is_none() {
            return Ok(());
        }
        let network = at.lease.step.replicas.first();
        let head = Head::of(&*at.lease.files, network, Some(at.run.settings.loss));
        let (progress, rows) = (&mut at.run.progress, at.run.data.train.len());
        (progress.examples).record(progress.epoch, rows, head, outputs);
        Ok(())
    }
}

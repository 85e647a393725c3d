//! What is kept of a run between two optimizer steps: snapshots in memory, checkpoints on disk.

use stratoscope_diagnostics::Result;

use crate::network::Network;
use crate::run::checkpoint::Checkpoints;
use crate::run::epochs::Drive;
use crate::run::snapshot::Snapshot;

/// Optimizer steps from one snapshot of `start!` to the next, where nothing is said.
pub(crate) const SNAPSHOT_EVERY: u64 = 10;
/// The memory that the snapshots of a run may take, where nothing is said: 1 GB.
pub(crate) const SNAPSHOT_BYTES: u64 = 1_000_000_000;

/// The checkpoints of a run, and what it was made with.
pub(crate) struct Keeping {
    pub checkpoints: Checkpoints,
    pub made_with: Vec<(String, String)>,
}

impl<N: Network> Drive<'_, '_, '_, N> {
    /// The run stands before an optimizer step: all that follows the one before is over.
    ///
    /// # Errors
    /// SC0525 if a checkpoint cannot be written, where it is denied.
    pub(super) fn between_steps(&mut self) -> Result<()> {
        let steps = self.lease.step.steps;
        if let Some(ring) = self
            .run
            .snapshots
            .as_mut()
            .filter(|ring| ring.is_due(steps))
        {
            self.lease.step.gather()?;
            let snapshot = Snapshot::of(&self.lease.step, &self.run.progress, self.run.edits.len());
            ring.add(steps, snapshot.bytes(), snapshot);
        }
        match &self.run.keeping {
            Some(keeping) if keeping.checkpoints.is_due(steps) => self.write_checkpoint(),
            _ => Ok(()),
        }
    }

    /// All epochs are over; the weights are not yet those that the run leaves.
    ///
    /// # Errors
    /// As [`Self::between_steps`].
    pub(super) fn after_all_epochs(&mut self) -> Result<()> {
        let steps = self.lease.step.steps;
        match &self.run.keeping {
            Some(keeping) if keeping.checkpoints.lacks(steps) => self.write_checkpoint(),
            _ => Ok(()),
        }
    }

    fn write_checkpoint(&mut self) -> Result<()> {
        self.lease.step.gather()?;
        let (run, state) = (&mut *self.run, &**self.lease);
        let Some(keeping) = &mut run.keeping else {
            return Ok(());
        };
        let snapshot = Snapshot::of(&state.step, &run.progress, run.edits.len());
        let made_with = (keeping.made_with.as_slice(), run.edits.as_slice());
        (keeping.checkpoints).write(&snapshot, state, &run.settings, made_with)?;
        run.progress.history.complete_checkpoint = keeping.checkpoints.newest();
        Ok(())
    }
}

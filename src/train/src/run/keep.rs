//! What is kept of a run between two optimizer steps: snapshots in memory, checkpoints on disk.

use stratoscope_diagnostics::Result;

use crate::run::checkpoint::Checkpoints;
use crate::run::epochs::{Drive, Pause};
use crate::run::run_state::RunState;
use crate::run::snapshot::Snapshot;
use crate::run::state::ModelState;

/// Optimizer steps from one snapshot of `start!` to the next, where nothing is said.
pub(crate) const SNAPSHOT_EVERY: u64 = 10;
/// The memory that the snapshots of a run may take, where nothing is said: 1 GB.
pub(crate) const SNAPSHOT_BYTES: u64 = 1_000_000_000;

/// The checkpoints of a run, and what it was made with.
pub(crate) struct Keeping {
    pub checkpoints: Checkpoints,
    pub made_with: Vec<(String, String)>,
}

impl Drive<'_, '_, '_> {
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
        self.write_what_is_due()
    }

    /// A call leaves the run here. A checkpoint that is due is written now, since the next call may never come; an interrupt
    /// does not wait for one.
    ///
    /// # Errors
    /// As [`Self::between_steps`].
    pub(super) fn between_calls(&mut self, pause: &Pause) -> Result<()> {
        match pause {
            Pause::Interrupted => Ok(()),
            Pause::Complete => self.after_all_epochs(),
            Pause::Reached | Pause::Breakpoint(_) => self.write_what_is_due(),
        }
    }

    /// All epochs are over; the weights are not yet those that the run leaves.
    ///
    /// # Errors
    /// As [`Self::between_steps`].
    pub(super) fn after_all_epochs(&mut self) -> Result<()> {
        let steps = self.lease.step.steps;
        match &self.run.keeping {
            Some(keeping) if keeping.checkpoints.lacks(steps) => {
                self.run.write_checkpoint(self.lease)
            }
            _ => Ok(()),
        }
    }

    fn write_what_is_due(&mut self) -> Result<()> {
        let steps = self.lease.step.steps;
        match &self.run.keeping {
            Some(keeping) if keeping.checkpoints.is_due(steps) => {
                self.run.write_checkpoint(self.lease)
            }
            _ => Ok(()),
        }
    }
}

impl RunState<'_> {
    /// Writes a complete checkpoint of where the run stands, if it keeps any.
    ///
    /// # Errors
    /// SC0525 if it cannot be written, where it is denied.
    fn write_checkpoint(&mut self, state: &mut ModelState) -> Result<()> {
        state.step.gather()?;
        let Some(keeping) = &mut self.keeping else {
            return Ok(());
        };
        let snapshot = Snapshot::of(&state.step, &self.progress, self.edits.len());
        let (made_with, edits) = (&keeping.made_with, &self.edits);
        (keeping.checkpoints).write(&snapshot, state, &self.settings, made_with, edits)?;
        self.progress.history.complete_checkpoint = keeping.checkpoints.newest();
        Ok(())
    }

    /// The run was turned back to where it stands: what is kept of later steps is of another future. If the newest
    /// checkpoint on disk is of that future, one of this place is written, from which `resume_from` goes on. `undone`:
    /// changes that were made here are undone too.
    ///
    /// # Errors
    /// SC0525 if the checkpoint cannot be written, where it is denied.
    pub(super) fn keep_from_here(&mut self, state: &mut ModelState, undone: bool) -> Result<()> {
        let (here, edits) = (state.step.steps, self.edits.len());
        if let Some(ring) = &mut self.snapshots {
            ring.forget_after(here, |it| it.edits <= edits);
        }
        let Some(keeping) = &mut self.keeping else {
            return Ok(());
        };
        keeping.checkpoints.turned_back(here);
        let newest = keeping.checkpoints.newest();
        if newest.is_some() {
            self.progress.history.complete_checkpoint = newest;
        }
        let is_other = |step: u64| step > here || (undone && step == here);
        let is_due = keeping.checkpoints.newest_step().is_some_and(is_other);
        // Weights of which some were updated and others not are none to go on from.
        match is_due && !self.is_damaged && !keeping.checkpoints.are_stopped() {
            true => self.write_checkpoint(state),
            false => Ok(()),
        }
    }
}

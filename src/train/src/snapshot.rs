//! Snapshots of a run: all that an optimizer step changes, held in memory, so that the run can be turned back.
//!
//! A snapshot is taken between two optimizer steps, when all that follows the earlier one is over: callbacks, validation
//! and the begin of an epoch. Restoring it and stepping on gives the same bits on the CPU, because all random numbers
//! are functions of the numbers of seed, batch and replica, and the order of the examples of seed and epoch.

use stratoscope_diagnostics::Result;

use crate::progress::Progress;
use stratoscope_report::history::{EpochRecord, ExecutionRecord, StepRecord};
use stratoscope_step::{SavedStep, StepState};

/// A run between two optimizer steps. A clone shares its tensors.
#[derive(Clone)]
pub struct Snapshot {
    /// The state of the model.
    pub state: SavedStep,
    /// How far the run was.
    pub progress: Progress,
    /// The changes of the run that were made before.
    pub edits: usize,
}

impl Snapshot {
    /// The state of this moment.
    pub fn of(step: &StepState, progress: &Progress, edits: usize) -> Self {
        Self {
            state: step.saved(),
            progress: progress.clone(),
            edits,
        }
    }

    /// Puts everything back.
    ///
    /// # Errors
    /// SC0915 for the snapshot of another model.
    pub fn restore(&self, step: &mut StepState, progress: &mut Progress) -> Result<()> {
        step.restore(&self.state)?;
        progress.clone_from(&self.progress);
        Ok(())
    }

    /// The memory that it takes, at most.
    pub fn bytes(&self) -> u64 {
        let history = &self.progress.history;
        let records = history.steps.len() * size_of::<StepRecord>()
            + history.executions.len() * size_of::<ExecutionRecord>()
            + history.epochs.len() * size_of::<EpochRecord>();
        let values = &self.state.values;
        let best = match self.progress.best.weights {
            Some(_) => values.bytes() / (values.modules.len() + values.fetched.len()).max(1) as u64,
            None => 0,
        };
        self.state.bytes() + best + records as u64 + self.progress.examples.bytes()
    }
}

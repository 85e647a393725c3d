//! What happens in a run beside the arithmetic of its loop. Each `Hook` is a file with its own state; the loop
//! (`training_loop`) calls all of them at the same moments, in the order of `Hooks::all`, and none of
//! them calls another.
//!
//! | hook | what it does |
//! | --- | --- |
//! | [`Snapshots`] | holds snapshots in memory, to which `rewind` turns back |
//! | `KeptCheckpoints` | writes the weights of epochs, and complete checkpoints of the run |
//! | `StepUndo` | puts everything back where a step is not made, and counts for the metrics where it is |
//! | `RecentSteps` | keeps the numbers of the latest steps |
//! | [`Breakpoints`] | stops the run before a step |
//! | `MemoryLimits` | compares the declared memory of devices with what a batch needs |
//! | `LiveTable` | shows where the run is, and does what its buttons ask |
//! | `OutputChecks` | reports outputs and predictions that cannot be right |
//! | `DataMapLog` | keeps what each training pass says of each example |
//! | [`Callbacks`] | the user's own |
//! | `Unfreezing` | trains one more layer from epoch to epoch |
//! | [`StepClock`] | notes what the loop does when, while a profile is made: the first and the last of all hooks |
//!
//! What a hook needs between two moments is in its own fields. What a run that is turned back must find again is in
//! [`Progress`](super::progress::Progress), since snapshots and checkpoints hold that. The exchange between replicas and
//! workers is a part of the arithmetic and no hook: see `step::exchange`.
//!
//! To add a hook: its file here, a field of [`Hooks`], and its place in `Hooks::all`.

use stratoscope_data::Batch;
use stratoscope_diagnostics::Result;

use crate::loop_state::{LoopState, Pause};
use stratoscope_arguments::callbacks::Callbacks;
use stratoscope_metrics::metric::Tally;
use stratoscope_report::history::{EpochRecord, ExecutionRecord};
use stratoscope_step::forward::BatchOutputs;
use stratoscope_step::{Proposed, StepRecorded};

mod breakpoint_check;
mod callbacks;
mod checkpoints;
mod data_map_log;
mod live_table;
mod memory_limits;
mod output_checks;
mod pace;
mod recent_steps;
mod ring;
mod snapshots;
mod step_clock;
mod step_undo;

pub use breakpoint_check::Breakpoints;
pub(crate) use callbacks::Unfreezing;
pub(crate) use checkpoints::{KeptCheckpoints, RunCheckpoints};
pub(crate) use data_map_log::DataMapLog;
pub(crate) use live_table::LiveTable;
pub(crate) use memory_limits::MemoryLimits;
pub(crate) use output_checks::OutputChecks;
pub(crate) use recent_steps::{Recent, RecentSteps};
pub use snapshots::Snapshots;
pub(crate) use snapshots::{SNAPSHOT_BYTES, SNAPSHOT_EVERY};
pub use step_clock::{Activity, SharedSpans, Span, Spans, StepClock};
pub(crate) use step_undo::StepUndo;

/// What a hook reads and changes.
pub(crate) type At<'h, 'r, 'm, 'a> = &'h mut LoopState<'r, 'm, 'a>;

/// An epoch that is over, with its validation.
pub(crate) struct EpochOver<'e> {
    /// What was measured in it.
    pub record: &'e EpochRecord,
    /// What the training passes of the epoch have counted.
    pub counted: &'e Tally,
    /// Whether it is the best one so far.
    pub is_best: bool,
    /// Whether a callback has ended the run in this epoch.
    pub is_last: bool,
}

/// Something that happens in a run beside the arithmetic of its loop. Each method is a moment of the loop; what it returns as
/// an error ends the call.
pub(crate) trait Hook {
    /// A call begins to drive the run.
    fn call_begins(&mut self) {}

    /// An epoch begins.
    fn epoch_begins(&mut self, _at: At<'_, '_, '_, '_>) -> Result<()> {
        Ok(())
    }

    /// Batches are going to be made: at the begin of an epoch, and after a pause within it.
    fn batches_begin(&mut self, _at: At<'_, '_, '_, '_>) -> Result<()> {
        Ok(())
    }

    /// The run stands before an optimizer step: all that follows the one before is over.
    fn before_step(&mut self, _at: At<'_, '_, '_, '_>) -> Result<()> {
        Ok(())
    }

    /// A batch, or a part of one, is going to be computed.
    fn before_batch(&mut self, _at: At<'_, '_, '_, '_>, _batch: &Batch) -> Result<()> {
        Ok(())
    }

    /// It was computed, forward and backward. Its loss may not be finite.
    fn computed(
        &mut self,
        _at: At<'_, '_, '_, '_>,
        _batch: &Batch,
        _outputs: &BatchOutputs,
    ) -> Result<()> {
        Ok(())
    }

    /// Its loss is finite and counts.
    fn counted(&mut self, _at: At<'_, '_, '_, '_>, _outputs: &BatchOutputs) -> Result<()> {
        Ok(())
    }

    /// All gradients of the step are there.
    fn before_exchange(&mut self, _at: At<'_, '_, '_, '_>) -> Result<()> {
        Ok(())
    }

    /// The gradients are exchanged and looked at; no weight has changed. A hook that sets [`LoopState::pause`] stops the run
    /// before the update.
    fn proposed(&mut self, _at: At<'_, '_, '_, '_>, _proposed: &Proposed) -> Result<()> {
        Ok(())
    }

    /// The weights were updated.
    fn updated(&mut self, _at: At<'_, '_, '_, '_>, _made: &StepRecorded) -> Result<()> {
        Ok(())
    }

    /// The step is made, also where its update was skipped.
    fn step_made(&mut self, _at: At<'_, '_, '_, '_>) -> Result<()> {
        Ok(())
    }

    /// A step that may have begun is not made.
    fn step_given_up(&mut self, _at: At<'_, '_, '_, '_>) -> Result<()> {
        Ok(())
    }

    /// The step is made, or the run was stopped before its update.
    fn step_ended(&mut self, _at: At<'_, '_, '_, '_>) -> Result<()> {
        Ok(())
    }

    /// A batch is over; the last one of its execution or not.
    fn after_batch(&mut self, _at: At<'_, '_, '_, '_>, _is_last: bool) -> Result<()> {
        Ok(())
    }

    /// An execution is over.
    fn execution_ended(
        &mut self,
        _at: At<'_, '_, '_, '_>,
        _record: &ExecutionRecord,
    ) -> Result<()> {
        Ok(())
    }

    /// An epoch is over.
    fn epoch_ended(&mut self, _at: At<'_, '_, '_, '_>, _epoch: &EpochOver<'_>) -> Result<()> {
        Ok(())
    }

    /// A call leaves the run here.
    fn call_ends(&mut self, _at: At<'_, '_, '_, '_>, _pause: &Pause) -> Result<()> {
        Ok(())
    }
}

/// The hooks of a run.
#[derive(Default)]
pub struct Hooks<'a> {
    /// States to which the run can be turned back.
    pub snapshots: Snapshots,
    /// What is written to disk.
    pub checkpoints: KeptCheckpoints,
    /// What takes back a step that a breakpoint stops.
    pub undo: StepUndo,
    /// The latest steps.
    pub recent: RecentSteps,
    /// Conditions under which the run stops.
    pub breakpoints: Breakpoints,
    /// The limits of the devices' memory.
    pub memory: MemoryLimits,
    /// The table of the run, and its buttons.
    pub table: LiveTable,
    /// Warnings about the network's outputs.
    pub outputs: OutputChecks,
    /// How each example was answered in each epoch.
    pub data_map: DataMapLog,
    /// The user's callbacks.
    pub callbacks: Callbacks<'a>,
    /// Layers that are trained only later.
    pub unfreezing: Unfreezing,
    /// When each part of a step began and ended, for a profile.
    pub clock: StepClock,
}

impl Hooks<'_> {
    /// All of them, in the order in which they hear of a moment.
    pub(crate) fn all(&mut self) -> [&mut dyn Hook; 13] {
        [
            &mut self.clock.first,
            &mut self.snapshots,
            &mut self.checkpoints,
            &mut self.undo,
            &mut self.recent,
            &mut self.breakpoints,
            &mut self.memory,
            &mut self.table,
            &mut self.outputs,
            &mut self.data_map,
            &mut self.callbacks,
            &mut self.unfreezing,
            &mut self.clock.last,
        ]
    }

    /// Those of a fork: callbacks and checkpoints stay with the run that it was made from.
    pub fn of_fork(&self) -> Hooks<'static> {
        Hooks {
            snapshots: self.snapshots.clone(),
            breakpoints: self.breakpoints.clone(),
            ..Hooks::default()
        }
    }
}

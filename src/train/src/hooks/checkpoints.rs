//! What a run writes to disk: the weights of its last and its best epoch (`checkpoint`), and complete checkpoints of the run
//! (`every`), from which `resume_from` goes on.

use std::path::Path;

use stratoscope_diagnostics::Result;

use super::{At, EpochOver, Hook};
use crate::checkpoint::Checkpoints;
use crate::loop_state::Pause;
use crate::run_state::RunState;
use crate::snapshot::Snapshot;
use crate::state::ModelState;
use stratoscope_network::AnyNetwork;

/// The complete checkpoints of a run, if it writes any.
#[derive(Default)]
pub struct KeptCheckpoints {
    /// Complete checkpoints, with which a run goes on.
    pub complete: Option<RunCheckpoints>,
}

/// The complete checkpoints of a run, and what it was made with.
pub struct RunCheckpoints {
    /// The folder and what is in it.
    pub checkpoints: Checkpoints,
    /// The settings of the run, by their names.
    pub made_with: Vec<(String, String)>,
}

impl Hook for KeptCheckpoints {
    fn before_step(&mut self, at: At<'_, '_, '_, '_>) -> Result<()> {
        self.write_if_due(at.run, at.lease)
    }

    /// The weights of the epoch, to the folder of `checkpoint`.
    fn epoch_ended(&mut self, at: At<'_, '_, '_, '_>, epoch: &EpochOver<'_>) -> Result<()> {
        let Some(folder) = at.run.plan.checkpoint.clone() else {
            return Ok(());
        };
        let are_stopped = |it: &RunCheckpoints| it.checkpoints.are_stopped();
        if self.complete.as_ref().is_some_and(are_stopped) {
            return Ok(());
        }
        // Between two averages of a local SGD run the replicas differ: their average is saved.
        let replicas = at.lease.settled()?;
        // Such a model has no files of its own; its complete checkpoints have everything.
        if !replicas.first().can_be_saved() {
            return Ok(());
        }
        // A replay has written it the first time; by now the folder has what later epochs have written.
        if at.run.is_replayed || self.save(at.lease, replicas.first(), &folder, epoch.is_best)? {
            at.run.progress.history.checkpoint = Some(folder.display().to_string());
        }
        Ok(())
    }

    /// A checkpoint that is due is written now, since the next call may never come; an interrupt does not wait for one.
    fn call_ends(&mut self, at: At<'_, '_, '_, '_>, pause: &Pause) -> Result<()> {
        match pause {
            Pause::Interrupted | Pause::TurnBack(_) => Ok(()),
            Pause::Reached | Pause::Breakpoint(_) => self.write_if_due(at.run, at.lease),
            // All epochs are over; the weights are not yet those that the run leaves.
            Pause::Complete => {
                let steps = at.lease.step.steps;
                match &self.complete {
                    Some(it) if it.checkpoints.lacks(steps) => self.write(at.run, at.lease),
                    _ => Ok(()),
                }
            }
        }
    }
}

impl KeptCheckpoints {
    fn write_if_due(&mut self, run: &mut RunState<'_>, state: &mut ModelState) -> Result<()> {
        let steps = state.step.steps;
        match &self.complete {
            Some(it) if it.checkpoints.is_due(steps) => self.write(run, state),
            _ => Ok(()),
        }
    }

    /// Writes a complete checkpoint of where the run stands, if it keeps any.
    ///
    /// # Errors
    /// SC0525 if it cannot be written, where it is denied.
    fn write(&mut self, run: &mut RunState<'_>, state: &mut ModelState) -> Result<()> {
        state.step.gather()?;
        let Some(complete) = &mut self.complete else {
            return Ok(());
        };
        let snapshot = Snapshot::of(&state.step, &run.progress, run.edits.len());
        let (made_with, edits) = (&complete.made_with, &run.edits);
        (complete.checkpoints).write(&snapshot, state, &run.settings, made_with, edits)?;
        run.progress.history.complete_checkpoint = complete.checkpoints.newest();
        Ok(())
    }

    /// Saves the weights as those of the last epoch, and of the best one. False where the writing has ended.
    fn save(
        &mut self,
        state: &ModelState,
        network: &AnyNetwork,
        folder: &Path,
        is_best: bool,
    ) -> Result<bool> {
        let all = [("last", true), ("best", is_best)].into_iter();
        for (name, _) in all.filter(|(_, is_due)| *is_due) {
            let saved = network.save(&*state.files, &folder.join(name));
            match (saved, &mut self.complete) {
                (Ok(_), _) => {}
                // With complete checkpoints a full disk ends the writing and not the run.
                (Err(problem), Some(complete)) => {
                    let reason = problem.message.clone();
                    complete.checkpoints.stop(state.step.steps, reason)?;
                    return Ok(false);
                }
                (Err(problem), None) => return Err(problem),
            }
        }
        Ok(true)
    }

    /// The run was turned back to where it stands. If the newest checkpoint on disk is of the future that is forgotten, one of
    /// this place is written, from which `resume_from` goes on. `undone`: changes that were made here are undone too.
    ///
    /// # Errors
    /// SC0525 if the checkpoint cannot be written, where it is denied.
    pub fn turned_back(
        &mut self,
        run: &mut RunState<'_>,
        state: &mut ModelState,
        undone: bool,
    ) -> Result<()> {
        let Some(complete) = &mut self.complete else {
            return Ok(());
        };
        let (here, checkpoints) = (state.step.steps, &mut complete.checkpoints);
        checkpoints.turned_back(here);
        let newest = checkpoints.newest();
        if newest.is_some() {
            run.progress.history.complete_checkpoint = newest;
        }
        let is_other = |step: u64| step > here || (undone && step == here);
        let is_due = checkpoints.newest_step().is_some_and(is_other);
        // Weights of which some were updated and others not are none to go on from.
        match is_due && !run.is_damaged && !checkpoints.are_stopped() {
            true => self.write(run, state),
            false => Ok(()),
        }
    }
}

//! Checkpoints of a run on disk: `fit!(…, checkpoint = "folder", every = 50, keep_last = 3)` writes them,
//! `resume_from = "folder"` goes on from the newest complete one, in another process, to the same bits on the CPU.
//!
//! `folder` adds a checkpoint so that it is complete or absent whenever the process is killed; [`format`] says what
//! its files are; `tensors` and `convert` translate a [`Snapshot`] to them, `reading` and `resuming` back; [`made_with`] is
//! what must be the same for the run to go on. The strategy need not be: [`LaidOut`] is written beside the tensors, and
//! `relaid` cuts them as another strategy stores them. Nothing that is read is believed before it is checked: sizes,
//! checksums, names, types and shapes.

mod check;
mod convert;
mod folder;
mod format;
mod laid_out;
mod made_with;
mod moments;
mod reading;
mod relaid;
mod resuming;
mod tensors;

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use burn::module::ParamId;
use stratoscope_diagnostics::rules::CheckpointsStopped;
use stratoscope_diagnostics::{Result, Rule};

use self::folder::{Lock, Unfinished};
use self::format::{Body, FORMAT, PROGRAM, PROGRESS, STATE};
use self::tensors::Layout;
use stratoscope_arguments::context::warnings::notice;

use crate::edits::Dated;
use crate::snapshot::Snapshot;
use crate::state::ModelState;
use stratoscope_step::StepSettings;
use stratoscope_step::exchange::ExchangeMode;

pub(crate) use self::check::check_checkpoint;
pub(crate) use self::format::Bits;
pub use self::laid_out::LaidOut;
pub use self::made_with::made_with;
pub use self::resuming::{Resumed, Resuming};

/// Writes the checkpoints of a run.
#[derive(Debug)]
pub struct Checkpoints {
    folder: PathBuf,
    /// Optimizer steps from one to the next.
    every: u64,
    keep_last: usize,
    /// Tells the runs apart that write to one folder.
    run: String,
    /// The step of the newest one, or where the run began.
    latest: u64,
    /// The newest one that is complete.
    newest: Option<(u64, PathBuf)>,
    /// Set when one could not be written: there are no more.
    stopped: bool,
}

impl Checkpoints {
    /// For a run that stands after `step` steps. `run`: what an earlier process called it.
    pub fn new(
        folder: PathBuf,
        every: u64,
        keep_last: usize,
        run: Option<String>,
        step: u64,
    ) -> Self {
        Self {
            folder,
            every,
            keep_last: keep_last.max(1),
            run: run.unwrap_or_else(new_run),
            latest: step,
            newest: None,
            stopped: false,
        }
    }

    /// Whether one is to be written after so many steps.
    pub(crate) fn is_due(&self, step: u64) -> bool {
        !self.stopped && step >= self.latest + self.every
    }

    /// Whether the state after so many steps is not written yet.
    pub(crate) fn lacks(&self, step: u64) -> bool {
        !self.stopped && step > self.latest
    }

    /// The run was turned back to this step: what was written of later ones is another future.
    pub fn turned_back(&mut self, step: u64) {
        self.latest = self.latest.min(step);
    }

    /// The path of the newest complete one.
    pub fn newest(&self) -> Option<String> {
        let (_, path) = self.newest.as_ref()?;
        Some(path.display().to_string())
    }

    /// The step of the newest one of this run in the folder, which an earlier process may have written.
    pub(crate) fn newest_step(&self) -> Option<u64> {
        let (found, _) = folder::list(&self.folder).ok()?;
        let newest = found.into_iter().find(|it| it.body.run == self.run)?;
        Some(newest.body.step)
    }

    /// Writes one, and removes those that are not to be kept. If that fails it is the last attempt, with a warning.
    ///
    /// # Errors
    /// SC0525, where it is denied.
    pub fn write(
        &mut self,
        snapshot: &Snapshot,
        state: &ModelState,
        settings: &StepSettings,
        made_with: &[(String, String)],
        edits: &[Dated],
    ) -> Result<()> {
        let step = snapshot.state.steps;
        self.latest = step;
        let reason = match self.attempt(snapshot, state, settings, made_with, edits) {
            Ok(path) => {
                self.newest = Some((step, path));
                return Ok(());
            }
            Err(reason) => reason,
        };
        self.stop(step, reason)
    }

    /// Whether the writing has ended because it failed.
    pub(crate) fn are_stopped(&self) -> bool {
        self.stopped
    }

    /// Ends the writing, which failed after so many steps.
    ///
    /// # Errors
    /// SC0525, where it is denied.
    pub fn stop(&mut self, step: u64, reason: String) -> Result<()> {
        self.stopped = true;
        let rule = CheckpointsStopped {
            folder: self.folder.display().to_string(),
            step,
            reason,
            newest: self.newest.as_ref().map(|(step, _)| *step),
        };
        notice(rule.diagnostic())
    }

    fn attempt(
        &self,
        snapshot: &Snapshot,
        state: &ModelState,
        settings: &StepSettings,
        made_with: &[(String, String)],
        edits: &[Dated],
    ) -> std::result::Result<PathBuf, String> {
        let in_words = |error: std::io::Error| error.to_string();
        let lock = Lock::of(&self.folder).map_err(in_words)?;
        let (found, _) = folder::list(&self.folder).map_err(in_words)?;
        let unfinished = Unfinished::begin(&self.folder, &lock).map_err(in_words)?;
        let replicas = &state.step.replicas;
        if replicas.first().can_be_saved() {
            // As `save_pretrained` would write it now: replicas that step alone are averaged.
            let settled = state.settled().map_err(|problem| problem.message)?;
            let saved = settled.first().save(&*state.files, unfinished.path());
            saved.map_err(|problem| problem.message)?;
        }
        let layout = layout(state, settings);
        let laid_out = LaidOut::of(state, settings);
        tensors::write(&unfinished.path().join(STATE), snapshot, &layout, &laid_out)?;
        let progress = convert::progress_of(snapshot, &params(state), edits);
        let progress = serde_json::to_vec(&progress).map_err(|error| error.to_string())?;
        unfinished.write(PROGRESS, &progress).map_err(in_words)?;
        let step = snapshot.state.steps;
        let body = Body {
            format: FORMAT,
            program: PROGRAM.to_owned(),
            run: self.run.clone(),
            sequence: found
                .iter()
                .map(|it| it.body.sequence + 1)
                .max()
                .unwrap_or(1),
            step,
            made_with: made_with.to_vec(),
            files: Vec::new(),
        };
        let path = unfinished
            .finish(&folder::name_after(step), body)
            .map_err(in_words)?;
        let own = found.into_iter().filter(|it| it.body.run == self.run);
        for old in own.skip(self.keep_last - 1) {
            old.remove(&lock).map_err(in_words)?;
        }
        Ok(path)
    }
}

/// A name for a run that no other has.
fn new_run() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.map_or(0, |since| since.as_nanos());
    format!("{since:x}-{:x}", std::process::id())
}

/// The variables in their order.
fn params(state: &ModelState) -> Vec<ParamId> {
    let records = state.step.replicas.records().iter();
    records.map(|record| record.param).collect()
}

/// Copies that make every update alike are written once.
fn layout<'a>(state: &'a ModelState, settings: &StepSettings) -> Layout<'a> {
    let replicas = &state.step.replicas;
    let are_equal = settings.exchange == ExchangeMode::AllReduce;
    Layout {
        records: replicas.records(),
        copies: match are_equal {
            true => replicas.modules_of_a_copy(),
            false => replicas.modules().len(),
        },
    }
}

//! Checkpoints of a run on disk: `fit!(…, checkpoint = "folder", every = 50, keep_last = 3)` writes them,
//! `resume_from = "folder"` goes on from the newest complete one, in another process, to the same bits on the CPU.
//!
//! `folder` adds a checkpoint so that it is complete or absent whenever the process is killed; [`format`] says what
//! its files are; `tensors` and `convert` translate a [`Snapshot`] to them and back; [`made_with`] is what must be
//! the same for the run to go on. Nothing that is read is believed before it is checked: sizes, checksums, names, types
//! and shapes.

mod check;
mod convert;
mod folder;
mod format;
mod made_with;
mod moments;
mod tensors;

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use burn::module::ParamId;
use stratoscope_diagnostics::rules::{
    CheckpointOfOtherRun, CheckpointOfOtherVersion, CheckpointsStopped, DamagedCheckpoint,
};
use stratoscope_diagnostics::{Diagnostic, Result, Rule};

use self::convert::{Expected, Refused};
use self::folder::{Found, Lock, Unfinished, Unusable};
use self::format::{Body, FORMAT, PROGRAM, PROGRESS, STATE, SavedProgress};
use self::tensors::Layout;
use stratoscope_arguments::context::warnings::notice;
use stratoscope_metrics::metric::{low_is_good, names};

use crate::batch_plan::BatchPlan;
use crate::edits::Dated;
use crate::progress::Progress;
use crate::snapshot::Snapshot;
use crate::state::ModelState;
use stratoscope_step::exchange::ExchangeMode;
use stratoscope_step::{SavedStep, StepSettings};

pub(crate) use self::check::check_checkpoint;
pub(crate) use self::format::Bits;
pub use self::made_with::made_with;

/// The state and the progress that a checkpoint holds, or the file that does not fit and why.
type Converted = std::result::Result<(SavedStep, Progress), (&'static str, Refused)>;

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
        tensors::write(&unfinished.path().join(STATE), snapshot, &layout)?;
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

/// A run as it was written.
pub struct Resumed {
    /// The state of the model.
    pub state: SavedStep,
    /// How far the run was.
    pub progress: Progress,
    /// What the process that began the run called it.
    pub run: String,
    /// The changes that were made to the run.
    pub edits: Vec<Dated>,
}

/// What a run is made with that is to go on.
pub struct Resuming<'a> {
    /// The model, compiled and with its variables.
    pub state: &'a ModelState,
    /// The settings of the steps.
    pub settings: &'a StepSettings,
    /// The batches of the run before any change.
    pub batch_plan: &'a BatchPlan,
    /// One past the last epoch.
    pub epochs: u64,
    /// The settings of the run, by their names.
    pub made_with: &'a [(String, String)],
    /// Replicas and devices in words.
    pub devices: String,
}

impl Resuming<'_> {
    /// The newest complete checkpoint of a folder.
    ///
    /// # Errors
    /// SC0526 if there is none, SC0527 if it is of another run, SC0528 if another version wrote it; SC0526 as a warning
    /// where a newer one is damaged.
    pub(crate) fn newest_of(&self, folder: &Path) -> Result<Resumed> {
        let exists = folder.symlink_metadata().is_ok();
        let listed = match exists {
            true => folder::list(folder),
            false => Ok((Vec::new(), Vec::new())),
        };
        let (found, mut unusable) = listed.unwrap_or_else(|error| {
            let path = folder.to_owned();
            let reason = error.to_string();
            (Vec::new(), vec![Unusable::Damaged { path, reason }])
        });
        for one in found {
            let differences = made_with::differences(&one.body.made_with, self.made_with);
            if !differences.is_empty() {
                let rule = CheckpointOfOtherRun {
                    checkpoint: one.path.display().to_string(),
                    differences,
                };
                return Err(rule.error());
            }
            match self.read(&one) {
                Ok(resumed) => {
                    report_damaged(folder, &unusable, &one)?;
                    return Ok(resumed);
                }
                Err(reason) => unusable.push(reason),
            }
        }
        Err(none_is_complete(folder, &unusable, exists))
    }

    /// The earliest or the latest complete one that this run has written after at most so many steps, in its folder. One
    /// that does not belong to what the run has become since, or is damaged, is passed over.
    pub fn until(
        &self,
        checkpoints: &Checkpoints,
        (step, earliest): (u64, bool),
        belongs: impl Fn(&Resumed) -> bool,
    ) -> Option<Resumed> {
        let (mut found, _) = folder::list(&checkpoints.folder).ok()?;
        found.retain(|it| it.body.run == checkpoints.run && it.body.step <= step);
        found.sort_by_key(|it| match earliest {
            true => it.body.step,
            false => u64::MAX - it.body.step,
        });
        let mut read = found.iter().filter_map(|it| self.read(it).ok());
        read.find(|resumed| belongs(resumed))
    }

    fn read(&self, one: &Found) -> std::result::Result<Resumed, Unusable> {
        let mut files = one.verified(&[PROGRESS, STATE])?.into_iter();
        let (Some(progress), Some(tensors)) = (files.next(), files.next()) else {
            unreachable!("two files were asked for");
        };
        let damaged = |name: &str, reason: String| Unusable::Damaged {
            path: one.path.join(name),
            reason,
        };
        let saved: SavedProgress = serde_json::from_slice(&progress)
            .map_err(|error| damaged(PROGRESS, error.to_string()))?;
        if saved.step.steps != one.body.step {
            let reason = "it is of another step than the manifest".to_owned();
            return Err(damaged(PROGRESS, reason));
        }
        let edits = saved.edits.clone();
        let (state, progress) = self
            .converted(saved, &tensors)
            .map_err(|(name, reason)| damaged(name, reason))?;
        Ok(Resumed {
            state,
            progress,
            run: one.body.run.clone(),
            edits,
        })
    }

    fn converted(&self, saved: SavedProgress, file: &[u8]) -> Converted {
        let replicas = &self.state.step.replicas;
        let params = params(self.state);
        let expected = Expected {
            batch_plan: self.batch_plan,
            epochs: self.epochs,
            metrics: &names(&self.settings.compiled.metrics),
            low_is_good: &low_is_good(&self.settings.compiled.metrics),
            params: &params,
            replicas: replicas.len(),
        };
        let in_progress = |reason| (PROGRESS, reason);
        let mut state = self.state.step.saved();
        state.values = replicas.saved_independent_values();
        convert::counts_into(&saved.step, &expected, &mut state).map_err(in_progress)?;
        let (moments, has_best) = (saved.step.moments.clone(), saved.has_best);
        let logged = (saved.example_epochs.clone(), saved.examples_full);
        let progress = convert::progress_from(saved, self.devices.clone(), &expected);
        let mut progress = progress.map_err(in_progress)?;
        let layout = layout(self.state, self.settings);
        let like = has_best.then(|| replicas.independent_copy(replicas.first()));
        let best = tensors::read(file, &mut state, like, &layout, &moments);
        progress.best.weights = best.map_err(|reason| (STATE, reason))?;
        state.values.take_running();
        let logged = (logged.0.as_slice(), logged.1);
        let log = tensors::examples(file, logged, self.batch_plan.examples());
        progress.examples = log.map_err(|reason| (STATE, reason))?;
        Ok((state, progress))
    }
}

fn listed(unusable: &[Unusable]) -> Vec<(String, String)> {
    let listed = unusable.iter().map(|it| match it {
        Unusable::Damaged { path, reason } => (path.display().to_string(), reason.clone()),
        Unusable::OtherVersion { path, .. } => (
            path.display().to_string(),
            "another version wrote it".to_owned(),
        ),
    });
    listed.collect()
}

/// SC0526 as a warning, where others in the folder are damaged. What another version wrote is of another run, which
/// nobody asked for.
fn report_damaged(folder: &Path, unusable: &[Unusable], used: &Found) -> Result<()> {
    let damaged = unusable
        .iter()
        .filter(|it| matches!(it, Unusable::Damaged { .. }));
    let damaged: Vec<Unusable> = damaged.cloned().collect();
    if damaged.is_empty() {
        return Ok(());
    }
    let rule = DamagedCheckpoint {
        folder: folder.display().to_string(),
        unusable: listed(&damaged),
        used: Some(used.path.display().to_string()),
        exists: true,
    };
    notice(rule.diagnostic())
}

fn none_is_complete(folder: &Path, unusable: &[Unusable], exists: bool) -> Box<Diagnostic> {
    let of_other_version = unusable.iter().find_map(|it| match it {
        Unusable::OtherVersion {
            path,
            format,
            program,
        } => Some((path, format, program)),
        Unusable::Damaged { .. } => None,
    });
    if let Some((path, format, program)) = of_other_version {
        let format = format.map_or_else(
            || "an unknown format".to_owned(),
            |it| format!("format {it}"),
        );
        let program = program.as_deref().unwrap_or("unknown");
        let rule = CheckpointOfOtherVersion {
            checkpoint: path.display().to_string(),
            written_by: format!("version {program} ({format})"),
            now: format!("version {PROGRAM} (format {FORMAT})"),
        };
        return rule.error();
    }
    let rule = DamagedCheckpoint {
        folder: folder.display().to_string(),
        unusable: listed(unusable),
        used: None,
        exists,
    };
    rule.error()
}

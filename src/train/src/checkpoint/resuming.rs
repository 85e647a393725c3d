//! A checkpoint read: the newest complete one of a folder becomes the state of a run that goes on with it, under the strategy
//! that wrote it or another one.

use std::path::Path;

use stratoscope_diagnostics::rules::{
    CheckpointOfOtherRun, CheckpointOfOtherVersion, DamagedCheckpoint,
};
use stratoscope_diagnostics::{Diagnostic, Result, Rule};

use super::convert::{self, Expected, Refused};
use super::folder::{self, Found, Unusable};
use super::format::{FORMAT, PROGRAM, PROGRESS, STATE, SavedProgress};
use super::made_with::{self, Difference};
use super::reading::{self, Reading};
use super::relaid::Relaid;
use super::{Checkpoints, LaidOut, layout, params};
use crate::batch_plan::BatchPlan;
use crate::edits::Dated;
use crate::progress::Progress;
use crate::state::ModelState;
use stratoscope_arguments::context::warnings::notice;
use stratoscope_metrics::metric::{low_is_good, names};
use stratoscope_step::evaluation::empty_tally;
use stratoscope_step::{SavedStep, StepSettings};

/// The state and the progress that a checkpoint holds, or the file that does not fit and why.
type Converted = std::result::Result<(SavedStep, Progress), (&'static str, Refused)>;

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
    /// How it was laid out, where that differs from the run that goes on.
    pub moved: Option<LaidOut>,
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
    /// SC0526 if there is none, SC0527 if it is of another run or cannot be laid out as this one, SC0528 if another version
    /// wrote it; SC0526 as a warning where a newer one is damaged.
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
            let other_run = |reason: Option<String>| {
                let rule = CheckpointOfOtherRun {
                    checkpoint: one.path.display().to_string(),
                    differences: differences.clone(),
                    reason,
                };
                rule.error()
            };
            let is_of_places = |it: &Difference| made_with::OF_PLACES.contains(&it.0.as_str());
            if !differences.iter().all(is_of_places) {
                return Err(other_run(None));
            }
            let read = Opened::of(&one).and_then(|opened| {
                let moved = match differences.is_empty() {
                    true => Ok(None),
                    false => self.moved(&opened).map(Some),
                };
                moved.map_or_else(
                    |reason| Ok(Err(other_run(reason))),
                    |moved| self.read(&one, opened, moved).map(Ok),
                )
            });
            match read {
                Ok(resumed) => {
                    let resumed = resumed?;
                    report_damaged(folder, &unusable, &one)?;
                    return Ok(resumed);
                }
                Err(reason) => unusable.push(reason),
            }
        }
        Err(none_is_complete(folder, &unusable, exists))
    }

    /// The earliest or the latest complete one that this run has written after at most so many steps, in its folder. One
    /// that does not belong to what the run has become since, or is damaged, is passed over, and so is one that another
    /// strategy has written: steps from there would have other bits.
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
        let is_of_this =
            |it: &&Found| made_with::differences(&it.body.made_with, self.made_with).is_empty();
        let read = |it: &Found| self.read(it, Opened::of(it).ok()?, None).ok();
        let mut read = found.iter().filter(is_of_this).filter_map(read);
        read.find(|resumed| belongs(resumed))
    }

    /// How a checkpoint of another strategy is laid out, if this run can go on with it.
    ///
    /// # Errors
    /// Why it cannot, where there is more to say than what differs.
    fn moved(&self, opened: &Opened) -> std::result::Result<LaidOut, Option<String>> {
        let then = LaidOut::of_file(&opened.tensors).ok_or(None)?;
        let now = LaidOut::of(self.state, self.settings);
        if !then.has_variables_of(&now) {
            return Err(None);
        }
        match then.why_not(&now) {
            Some(reason) => Err(Some(reason)),
            None => Ok(then),
        }
    }

    fn read(
        &self,
        one: &Found,
        opened: Opened,
        moved: Option<LaidOut>,
    ) -> std::result::Result<Resumed, Unusable> {
        let damaged = |name: &str, reason: String| Unusable::Damaged {
            path: one.path.join(name),
            reason,
        };
        let saved: SavedProgress = serde_json::from_slice(&opened.progress)
            .map_err(|error| damaged(PROGRESS, error.to_string()))?;
        if saved.step.steps != one.body.step {
            let reason = "it is of another step than the manifest".to_owned();
            return Err(damaged(PROGRESS, reason));
        }
        let edits = saved.edits.clone();
        let (state, progress) = self
            .converted(saved, &opened.tensors, moved.as_ref())
            .map_err(|(name, reason)| damaged(name, reason))?;
        Ok(Resumed {
            state,
            progress,
            run: one.body.run.clone(),
            edits,
            moved,
        })
    }

    fn converted(
        &self,
        mut saved: SavedProgress,
        file: &[u8],
        moved: Option<&LaidOut>,
    ) -> Converted {
        let replicas = &self.state.step.replicas;
        let params = params(self.state);
        let compiled = &self.settings.compiled;
        let expected = Expected {
            batch_plan: self.batch_plan,
            epochs: self.epochs,
            metrics: &names(&compiled.metrics),
            low_is_good: &low_is_good(&compiled.metrics),
            params: &params,
            replicas: replicas.len(),
        };
        let in_progress = |reason| (PROGRESS, reason);
        let mut state = self.state.step.saved();
        state.values = replicas.saved_independent_values();
        if moved.is_some() {
            saved.step = convert::counts_elsewhere(saved.step, state.values.modules.len());
        }
        convert::counts_into(&saved.step, &expected, &mut state).map_err(in_progress)?;
        let (moments, has_best) = (saved.step.moments.clone(), saved.has_best);
        let logged = (saved.example_epochs.clone(), saved.examples_full);
        let progress = convert::progress_from(saved, self.devices.clone(), &expected);
        let mut progress = progress.map_err(in_progress)?;
        let now = LaidOut::of(self.state, self.settings);
        let relaid = moved.map(|then| Relaid { then, now: &now });
        let classes = (self.state.files.task(), self.state.files.classes());
        let reading = Reading {
            layout: &layout(self.state, self.settings),
            best_like: has_best.then(|| replicas.independent_copy(replicas.first())),
            moments: &moments,
            relaid: relaid.as_ref(),
            empty: empty_tally(classes, compiled.loss, &compiled.metrics),
        };
        let best = reading::read(file, &mut state, reading);
        progress.best.weights = best.map_err(|reason| (STATE, reason))?;
        state.values.take_running();
        let logged = (logged.0.as_slice(), logged.1);
        let log = reading::examples(file, logged, self.batch_plan.examples());
        progress.examples = log.map_err(|reason| (STATE, reason))?;
        Ok((state, progress))
    }
}

/// The files of a checkpoint with the state of its run, whose sizes and checksums are right.
struct Opened {
    progress: Vec<u8>,
    tensors: Vec<u8>,
}

impl Opened {
    fn of(one: &Found) -> std::result::Result<Self, Unusable> {
        let mut files = one.verified(&[PROGRESS, STATE])?.into_iter();
        let (Some(progress), Some(tensors)) = (files.next(), files.next()) else {
            unreachable!("two files were asked for");
        };
        Ok(Self { progress, tensors })
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

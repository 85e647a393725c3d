//! Turning a run back: the nearest snapshot is restored, and the steps from it to the one that is asked for are made
//! again. On the CPU the run then stands at the very bits of the first time. On a GPU sums may have another order, so the
//! losses of the replayed steps are compared with those of the first time, everywhere, and a difference is reported.
//!
//! Callbacks and the observer hear nothing of a replay: they have heard of those steps. Breakpoints do not stop it.

use std::collections::VecDeque;
use std::fmt;
use std::panic::resume_unwind;

use serde::Serialize;
use stratoscope_diagnostics::rules::{InvalidSize, OutOfMemory, ReplayDiffers, UpdateUndone};
use stratoscope_diagnostics::{Diagnostic, Result, Rule};
use stratoscope_render::html::prose;
use stratoscope_render::text;

use stratoscope_arguments::context::interrupt::Listening;
use stratoscope_arguments::context::warnings::notice;
use stratoscope_arguments::count::IntoCount;

use crate::handle::Run;
use stratoscope_report::history::{Edit, StepRecord};
use stratoscope_train::edits::Dated;
use stratoscope_train::hooks::Snapshots;
use stratoscope_train::lease::Lease;
use stratoscope_train::loop_state::{Goal, Pause};
use stratoscope_train::parts::free_memory;
use stratoscope_train::run_state::RunState;
use stratoscope_train::snapshot::Snapshot;

/// A run that was turned back.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rewound {
    /// Optimizer steps that the run has made now.
    pub step: u64,
    /// Optimizer steps that it had made before.
    pub from: u64,
    /// The step of the snapshot that was restored.
    pub snapshot: u64,
    /// Steps that were made again.
    pub replayed: u64,
    /// The replay was interrupted: the run stands before the step that was asked for.
    pub interrupted: bool,
    /// The first replayed step with another loss: its number, its loss the first time and now.
    pub differs: Option<(u64, f64, f64)>,
    /// The changes that were made at this step or later: they are undone. After an interrupt these are also the changes on
    /// the way to the step that was asked for.
    pub dropped: Vec<Edit>,
}

impl Rewound {
    fn line(&self) -> String {
        let steps = |count: u64| text::count(usize::try_from(count).unwrap_or(usize::MAX), "step");
        let replay = match (self.replayed, self.differs) {
            (0, _) => String::new(),
            (count, None) => format!(" and {} replayed with the same loss", steps(count)),
            (count, Some((step, before, now))) => format!(
                " and {} replayed; step {step} has the loss {now:.6}, the first time {before:.6}",
                steps(count)
            ),
        };
        let restored = format!("snapshot of step {}{replay}", self.snapshot);
        if (self.step, self.replayed) == (self.from, 0) && self.dropped.is_empty() {
            return format!("the run stands at step {} already", self.step);
        }
        let interrupted = match self.interrupted {
            true => "; interrupted on the way",
            false => "",
        };
        let dropped: Vec<String> = self.dropped.iter().map(Edit::to_string).collect();
        let dropped = match dropped.is_empty() {
            true => String::new(),
            false => format!("; undone: {}", dropped.join("; ")),
        };
        format!(
            "turned back from step {} to step {} ({restored}){interrupted}{dropped}",
            self.from, self.step,
        )
    }

    /// As HTML without scripts or style sheets.
    pub fn to_html(&self) -> String {
        let line = prose(&self.line());
        format!("<div style=\"font-size:13px;margin:2px 0\">{line}</div>")
    }
}

impl fmt::Display for Rewound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line())
    }
}

impl Run {
    /// Turns the run back to the moment when it had made `step` optimizer steps. What was measured afterwards is
    /// forgotten, and so are later snapshots. A run that writes complete checkpoints, of which the newest is of a later
    /// step, writes one of this place at once: `resume_from` goes on from here. The earlier ones stay on disk as far as
    /// `keep_last` says. Conditions of [`break_when`](Self::break_when) do not stop the replay.
    ///
    /// # Errors
    /// SC0915 for a step that was not made or has no snapshot before it; SC0525 for a checkpoint that cannot be written,
    /// where it is denied; SC0521 for a run that is finished; SC0121 in a callback of this run.
    pub fn rewind(&self, step: impl IntoCount) -> Result<Rewound> {
        let step = step.into_count().at_least(0, "rewind", "step")?;
        let _listening = Listening::begin();
        self.with("rewind", |lease, run| rewind(lease, run, step))
    }

    /// Takes a snapshot every so many optimizer steps from now on, in at most so many megabytes. Those that are held are
    /// dropped. Default of `start!`: 10 steps, 1000 megabytes.
    ///
    /// # Errors
    /// SC0103 for no steps; SC0521 for a run that is finished; SC0121 in a callback of this run.
    pub fn keep_snapshots(&self, every: impl IntoCount, megabytes: impl IntoCount) -> Result<()> {
        let every = every.into_count().at_least(1, "keep_snapshots", "every")?;
        let megabytes = megabytes
            .into_count()
            .at_least(0, "keep_snapshots", "megabytes")?;
        self.with("keep_snapshots", |lease, run| {
            let most_bytes = megabytes.saturating_mul(1_000_000);
            let snapshots = Snapshots::every(every, most_bytes);
            run.hooks.snapshots = snapshots.beginning_at(lease, run)?;
            Ok(())
        })
    }
}

/// What is done about an error of a call that has driven a run. Where a device had no memory for the update of a step, some
/// weights may have changed and others not: the run is turned back to before the step, if a snapshot is held, and a note
/// (SC0610) says so. If the steps since the snapshot cannot be made again either, the run stands at the snapshot.
///
/// Returns the error, or that of a denied note.
pub(crate) fn undo_update(
    lease: &mut Lease<'_>,
    run: &mut RunState<'static>,
    call: &str,
    problem: Box<Diagnostic>,
) -> Box<Diagnostic> {
    if !run.is_damaged || !OutOfMemory::is(&problem) {
        return problem;
    }
    let made = lease.step.steps;
    let latest: Vec<Dated> = run
        .edits
        .iter()
        .filter(|it| !it.is_before(made))
        .cloned()
        .collect();
    let newest = run.hooks.snapshots.steps().next_back();
    let undone = [Some(made), newest].into_iter().flatten().find_map(|step| {
        free_memory(lease.step.replicas.computing());
        rewind(lease, run, step).ok()
    });
    let Some(undone) = undone else {
        return problem;
    };
    // `rewind` undoes what was changed where the run stands.
    for dated in latest {
        if undone.step == made
            && !run.edits.contains(&dated)
            && let Err(problem) = run.edit(lease, dated.change)
        {
            return problem;
        }
    }
    let rule = UpdateUndone {
        call: call.to_owned(),
        made,
        step: undone.step,
        snapshot: undone.snapshot,
    };
    notice(rule.diagnostic()).err().unwrap_or(problem)
}

/// Changes at the step itself are undone: a snapshot with one of them is none of this moment.
fn edits_before(edits: &[Dated], step: u64) -> usize {
    let edits = edits.iter();
    edits.take_while(|dated| dated.is_before(step)).count()
}

/// The snapshot from which the steps up to `step` are made again.
///
/// # Errors
/// SC0915 if there is none, or if the step was not made.
fn nearest<'s>(
    snapshots: &'s Snapshots,
    edits: &[Dated],
    step: u64,
    from: u64,
) -> Result<&'s Snapshot> {
    let kept = edits_before(edits, step);
    let found = snapshots.nearest(step, |it| it.edits <= kept);
    let found = found.filter(|_| step <= from);
    found.ok_or_else(|| not_held(step, from, snapshots.steps().next()))
}

/// Whether a run can be turned back to this step.
///
/// # Errors
/// SC0915.
pub(crate) fn check_rewind(lease: &Lease<'_>, run: &RunState<'_>, step: u64) -> Result<()> {
    nearest(&run.hooks.snapshots, &run.edits, step, lease.step.steps).map(|_| ())
}

pub(crate) fn rewind(
    lease: &mut Lease<'_>,
    run: &mut RunState<'static>,
    step: u64,
) -> Result<Rewound> {
    let from = lease.step.steps;
    let kept = edits_before(&run.edits, step);
    let snapshot = nearest(&run.hooks.snapshots, &run.edits, step, from)?;
    let (restored, made) = (snapshot.state.steps, snapshot.edits);
    let earlier = run.progress.history.steps.clone();
    snapshot.restore(&mut lease.step, &mut run.progress)?;
    run.is_damaged = false;
    let later = run.unmake_after(step);
    (run.hooks.snapshots).forget_after(step, |it| it.edits <= kept);
    run.stop = None;
    let mut left: VecDeque<Dated> = std::mem::take(&mut run.edits).into();
    let outcome = run.replaying(lease, |lease, run| {
        remade(lease, run, &mut left, (made, step))
    });
    // Whatever came of it: the run stands where it stands now.
    let unmade = left.iter().map(Dated::listed);
    let dropped: Vec<Edit> = unmade.chain(later).collect();
    run.hooks.breakpoints.pass(lease.step.steps);
    let written = turned_back(run, lease, !dropped.is_empty());
    let interrupted = outcome.unwrap_or_else(|panic| resume_unwind(panic))? == Pause::Interrupted;
    written?;
    let replayed = run
        .progress
        .history
        .steps
        .iter()
        .filter(|it| it.step > restored);
    let differs = first_difference(&earlier, replayed);
    let rewound = Rewound {
        step: lease.step.steps,
        from,
        snapshot: restored,
        replayed: lease.step.steps - restored,
        interrupted,
        differs,
        dropped,
    };
    if let Some((step, before, replayed)) = differs {
        let rule = ReplayDiffers {
            step,
            before,
            replayed,
            devices: run.progress.history.devices.clone(),
        };
        notice(rule.diagnostic())?;
    }
    Ok(rewound)
}

/// The run was turned back to where it stands: what is kept of later steps is of a future that is forgotten. `undone`:
/// changes that were made here are undone too.
///
/// # Errors
/// SC0525 if a checkpoint cannot be written, where it is denied.
fn turned_back(run: &mut RunState<'static>, lease: &mut Lease<'_>, undone: bool) -> Result<()> {
    let (here, edits) = (lease.step.steps, run.edits.len());
    let mut hooks = std::mem::take(&mut run.hooks);
    (hooks.snapshots).forget_after(here, |it| it.edits <= edits);
    let written = hooks.checkpoints.turned_back(run, lease, undone);
    run.hooks = hooks;
    written
}

/// Makes the changes again, each at its step but for the first `made`, which the snapshot holds; and the steps between
/// them. A change that is not made again, since the replay ends before, stays in `left`.
fn remade(
    lease: &mut Lease<'_>,
    run: &mut RunState<'static>,
    left: &mut VecDeque<Dated>,
    (made, step): (usize, u64),
) -> Result<Pause> {
    run.progress.history.edits.clear();
    let mut index = 0;
    while let Some(dated) = left.front() {
        if index >= made {
            let pause = run.drive(lease, Goal::UntilStep(dated.step))?;
            if pause == Pause::Interrupted {
                return Ok(pause);
            }
        }
        match index < made {
            true => run.make_held(lease, &dated.change)?,
            false => run.make(lease, &dated.change)?,
        }
        run.progress.history.edits.push(dated.listed());
        run.edits.extend(left.pop_front());
        index += 1;
    }
    run.drive(lease, Goal::UntilStep(step))
}

/// The first step whose loss is not the one it had, with both.
pub(crate) fn first_difference<'s>(
    earlier: &[StepRecord],
    replayed: impl Iterator<Item = &'s StepRecord>,
) -> Option<(u64, f64, f64)> {
    let mut pairs = replayed.filter_map(|now| {
        let before = earlier.iter().find(|before| before.step == now.step)?;
        Some((now.step, before.loss, now.loss))
    });
    pairs.find(|(_, before, now)| before.to_bits() != now.to_bits())
}

/// SC0915: the steps to which the run can be turned back.
fn not_held(step: u64, made: u64, first: Option<u64>) -> Box<Diagnostic> {
    let expects = match first {
        Some(first) => {
            format!("from {first}, the first snapshot, to {made}, the steps that are made")
        }
        None => "a step with a snapshot before it, and there is none".to_owned(),
    };
    let rule = InvalidSize {
        what: "step".to_owned(),
        given: step.to_string(),
        expects,
        place: None,
    };
    rule.error()
}

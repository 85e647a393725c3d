//! `run.hindsight(40..50, |tap| …)`: past steps are replayed with probes that nobody had set. The nearest snapshot before
//! them is restored, or the nearest checkpoint where no snapshot is, the steps from there are made again, and before each
//! of those that are asked for the step is run with taps. Then everything is put back: the run stands where it stood.

use std::ops::{Bound, RangeBounds};
use std::panic::resume_unwind;

use stratoscope_diagnostics::rules::StepNotHeld;
use stratoscope_diagnostics::{Diagnostic, Result, Rule};
use stratoscope_render::text;

use stratoscope_arguments::context::interrupt::Listening;

use crate::handle::Run;
use crate::micro_batch::probes_of;
use crate::rewind::first_difference;
use stratoscope_diagnostics::problem;
use stratoscope_report::inspection::{Collected, Direction, Hindsight, IntoCollected, Probe};
use stratoscope_step::forward::interrupted;
use stratoscope_train::checkpoint::{Resumed, Resuming};
use stratoscope_train::edits::Dated;
use stratoscope_train::lease::Lease;
use stratoscope_train::loop_state::{Goal, Pause};
use stratoscope_train::run_state::{ComingStep, RunState};
use stratoscope_train::snapshot::Snapshot;

/// What a closure makes of a value.
pub(crate) type Each<'e> = dyn FnMut(&Probe) -> Option<f64> + 'e;

impl Run {
    /// Replays steps that were made, with probes that nobody had set: the closure gets every output of a layer and every
    /// gradient of each step, with its name, statistics and elements, and the numbers that it returns are collected. Steps
    /// are counted from 1, as in the history; the step that comes next may be the last. The run stands afterwards where it
    /// stood, also after a panic of the closure, and on the CPU the values have the bits that they had. The closure may read
    /// the model; what would change it is SC0121.
    ///
    /// # Errors
    /// SC0531 for steps that were not made or cannot be replayed any more; SC0103 for none; SC0520 if it is interrupted;
    /// SC0521 for a run that is finished; SC0121 in a callback of this run; SC0907 if a device fails.
    pub fn hindsight<R: IntoCollected>(
        &self,
        steps: impl RangeBounds<u64>,
        mut each: impl FnMut(&Probe) -> R,
    ) -> Result<Hindsight> {
        let steps = (steps.start_bound().cloned(), steps.end_bound().cloned());
        self.hindsight_of(steps, &mut |probe| each(probe).into_collected())
    }

    fn hindsight_of(
        &self,
        steps: (Bound<u64>, Bound<u64>),
        each: &mut Each<'_>,
    ) -> Result<Hindsight> {
        let _listening = Listening::begin();
        self.with("hindsight", |lease, run| {
            let (first, last) = asked(steps, lease.step.steps)?;
            let replayable = replayable(run, lease);
            let is_to_come = last > lease.step.steps + 1;
            let begin = begin_of(run, lease, first - 1).filter(|_| !is_to_come);
            let Some(snapshot) = begin else {
                return Err(not_held((first, last), replayable, lease.step.steps));
            };
            replayed(lease, run, (first, last), &snapshot, each)
        })
    }
}

/// The first and the last step that are asked for, of a run that has made so many.
fn asked((from, to): (Bound<u64>, Bound<u64>), made: u64) -> Result<(u64, u64)> {
    let first = match from {
        Bound::Included(step) => step,
        Bound::Excluded(step) => step.saturating_add(1),
        Bound::Unbounded => 1,
    };
    let last = match to {
        Bound::Included(step) => step,
        Bound::Excluded(step) => step.saturating_sub(1),
        Bound::Unbounded => made.max(first),
    };
    if first == 0 || last < first {
        let given = format!("{first} to {last}");
        let expects = "a range of steps, counted from 1, such as `1..11`";
        return Err(Box::new(problem::bad_value(
            "hindsight",
            "steps",
            given,
            expects,
        )));
    }
    Ok((first, last))
}

/// SC0531.
fn not_held((first, last): (u64, u64), replayable: (u64, u64), made: u64) -> Box<Diagnostic> {
    StepNotHeld {
        first,
        last,
        replayable,
        made,
    }
    .error()
}

/// What a run has that a replay must not touch.
pub(crate) struct Aside {
    pub at: Snapshot,
    pub edits: Vec<Dated>,
}

/// The first and the last step that can be replayed: from the oldest snapshot or checkpoint to the step that comes next.
fn replayable(run: &RunState<'static>, lease: &Lease<'_>) -> (u64, u64) {
    let of_ring = run.hooks.snapshots.steps().next();
    let of_disk = checkpointed(run, lease, u64::MAX, true).map(|it| it.state.steps);
    let made = lease.step.steps;
    let oldest = of_ring.into_iter().chain(of_disk).min().unwrap_or(made);
    (oldest.min(made) + 1, made + 1)
}

/// The latest state after at most so many steps: a snapshot, or a checkpoint.
fn begin_of(run: &RunState<'static>, lease: &Lease<'_>, step: u64) -> Option<Snapshot> {
    if step >= lease.step.steps {
        let here = || Snapshot::of(&lease.step, &run.progress, run.edits.len());
        return (step == lease.step.steps).then(here);
    }
    let found = run.hooks.snapshots.nearest(step, |_| true);
    found
        .cloned()
        .or_else(|| checkpointed(run, lease, step, false))
}

/// The latest checkpoint of this run after at most so many steps, or the earliest. One of another future, from before
/// the run was turned back, has other losses or changes.
fn checkpointed(
    run: &RunState<'static>,
    lease: &Lease<'_>,
    step: u64,
    earliest: bool,
) -> Option<Snapshot> {
    let kept = run.hooks.checkpoints.complete.as_ref()?;
    let mut batch_plan = run.batch_plan.clone();
    batch_plan.forget_changes();
    let resuming = Resuming {
        state: lease,
        settings: &run.base,
        batch_plan: &batch_plan,
        epochs: run.plan.epochs,
        made_with: &kept.made_with,
        devices: run.progress.history.devices.clone(),
    };
    let step = step.min(lease.step.steps);
    let (edits, history) = (&run.edits, &run.progress.history);
    let belongs = |resumed: &Resumed| {
        let steps = resumed.progress.history.steps.iter();
        edits.starts_with(&resumed.edits) && first_difference(&history.steps, steps).is_none()
    };
    let resumed = resuming.until(&kept.checkpoints, (step, earliest), belongs)?;
    Some(Snapshot {
        edits: resumed.edits.len(),
        state: resumed.state,
        progress: resumed.progress,
    })
}

/// Replays, and puts everything back, also after an error and before a panic goes on.
fn replayed(
    lease: &mut Lease<'_>,
    run: &mut RunState<'static>,
    steps: (u64, u64),
    snapshot: &Snapshot,
    each: &mut Each<'_>,
) -> Result<Hindsight> {
    put_aside(lease, run, |lease, run, aside| {
        looked(lease, run, steps, snapshot, aside, each)
    })
}

/// Calls what turns the run back and makes steps again, with the state that the run has. Whatever comes of it, the run stands afterwards
/// where it stood, with the snapshots that it had.
pub(crate) fn put_aside<T>(
    lease: &mut Lease<'_>,
    run: &mut RunState<'static>,
    work: impl FnOnce(&mut Lease<'_>, &mut RunState<'static>, &Aside) -> Result<T>,
) -> Result<T> {
    let aside = Aside {
        at: Snapshot::of(&lease.step, &run.progress, run.edits.len()),
        edits: run.edits.clone(),
    };
    let snapshots = std::mem::take(&mut run.hooks.snapshots);
    let stop = run.stop.take();
    let done = run.replaying(lease, |lease, run| work(lease, run, &aside));
    let back = put_back(lease, run, &aside);
    (run.hooks.snapshots, run.stop) = (snapshots, stop);
    let value = done.unwrap_or_else(|panic| resume_unwind(panic))?;
    back?;
    Ok(value)
}

/// Turns the run back to a snapshot, with the changes that it has; returns the number of these.
pub(crate) fn begin_at(
    lease: &mut Lease<'_>,
    run: &mut RunState<'static>,
    snapshot: &Snapshot,
    aside: &Aside,
) -> Result<usize> {
    run.unmake_after(0);
    snapshot.restore(&mut lease.step, &mut run.progress)?;
    for dated in aside.edits.iter().take(snapshot.edits) {
        run.make_held(lease, &dated.change)?;
    }
    Ok(snapshot.edits.min(aside.edits.len()))
}

/// The changes and the state of before. The state is put back whatever fails.
fn put_back(lease: &mut Lease<'_>, run: &mut RunState<'static>, aside: &Aside) -> Result<()> {
    run.unmake_after(0);
    let mut outcome = Ok(());
    for dated in &aside.edits {
        let made = run.make_held(lease, &dated.change);
        outcome = outcome.and(made);
    }
    run.edits.clone_from(&aside.edits);
    let restored = aside.at.restore(&mut lease.step, &mut run.progress);
    outcome.and(restored)
}

fn looked(
    lease: &mut Lease<'_>,
    run: &mut RunState<'static>,
    (first, last): (u64, u64),
    snapshot: &Snapshot,
    aside: &Aside,
    each: &mut Each<'_>,
) -> Result<Hindsight> {
    let mut made = begin_at(lease, run, snapshot, aside)?;
    let mut found = Found::default();
    for step in first..=last {
        let upcoming = |made: usize| aside.edits.get(made).filter(|dated| dated.step < step);
        while let Some(dated) = upcoming(made) {
            advance(lease, run, dated.step, "hindsight")?;
            run.make(lease, &dated.change)?;
            made += 1;
        }
        advance(lease, run, step - 1, "hindsight")?;
        // Workers that push alone make several steps at once.
        if lease.step.steps != step - 1 {
            continue;
        }
        let Some(coming) = run.coming_step(lease)? else {
            break;
        };
        // The step itself comes afterwards, in its turn.
        probed(lease, run, &coming, each, &mut found)?;
    }
    Ok(Hindsight {
        steps: (first, last),
        values: found.values,
        outputs: found.outputs,
        notes: notes(run, snapshot, aside),
    })
}

/// What the closure has returned, and the names of the outputs that it was called with.
#[derive(Default)]
struct Found {
    values: Vec<Collected>,
    outputs: Vec<String>,
}

impl Found {
    fn add(&mut self, probe: &Probe, each: &mut Each<'_>) {
        let is_output = probe.direction == Direction::Forward;
        if is_output && !self.outputs.contains(&probe.name) {
            self.outputs.push(probe.name.clone());
        }
        if let Some(value) = each(probe) {
            self.values.push(Collected {
                step: probe.step,
                name: probe.name.clone(),
                direction: probe.direction,
                micro_batch: probe.micro_batch,
                replica: probe.replica,
                value,
            });
        }
    }
}

/// Runs the coming step with taps, a batch at a time, and calls the closure with what is seen of each. What is kept at one
/// time is what one batch computes. The closure may read the model, which is then as it is before the step.
fn probed(
    lease: &mut Lease<'_>,
    run: &RunState<'static>,
    coming: &ComingStep,
    each: &mut Each<'_>,
    found: &mut Found,
) -> Result<()> {
    let mut running = lease.step.replicas.running_values();
    for micro_batch in 0..coming.batches.len() {
        let before = (micro_batch, &running);
        let (probes, after) = probes_of(lease, run, coming, before, "hindsight")?;
        lease.lent(|| {
            for probe in &probes {
                found.add(probe, each);
            }
        });
        running = after;
    }
    Ok(())
}

/// Makes steps until so many are made.
pub(crate) fn advance(
    lease: &mut Lease<'_>,
    run: &mut RunState<'static>,
    step: u64,
    call: &str,
) -> Result<()> {
    match run.drive(lease, Goal::UntilStep(step))? {
        Pause::Interrupted => {
            let made = usize::try_from(lease.step.steps).unwrap_or(usize::MAX);
            Err(interrupted(
                call,
                made,
                usize::try_from(step).unwrap_or(usize::MAX),
            ))
        }
        _ => Ok(()),
    }
}

fn notes(run: &RunState<'static>, snapshot: &Snapshot, aside: &Aside) -> Vec<String> {
    let from = snapshot.state.steps;
    let replayed = run.progress.history.steps.iter();
    let replayed: Vec<_> = replayed.filter(|it| it.step > from).collect();
    let steps = text::count(replayed.len(), "step");
    let mut notes = vec![format!(
        "{steps} replayed from the state after step {from}; the run is back after step {}",
        aside.at.state.steps
    )];
    let earlier = &aside.at.progress.history.steps;
    if let Some((step, before, now)) = first_difference(earlier, replayed.into_iter()) {
        notes.push(format!(
            "the replay is not exact: step {step} had the loss {before:.6} and has {now:.6} here"
        ));
    }
    notes
}

//! How a run would do on another number of workers: a prediction from a few numbers, each of which is measured, given or
//! assumed, and says so.
//!
//! [`cost`] has the model of a step, [`failures`] that of snapshots, [`measured`] what a run says, [`options`] what a user
//! says, [`mesh`] that of tensor and pipeline parallelism with ZeRO. Nothing is run for a prediction.

mod cost;
mod failures;
mod measured;
mod mesh;
mod options;
mod show;
#[cfg(test)]
mod tests;
mod words;

use stratoscope_diagnostics::Result;
use stratoscope_workers::chain::PIECE;
use stratoscope_workers::{Tally, Team};

use self::cost::CostModel;
pub use self::cost::ScalingPattern;
use self::failures::{best_interval, useful_share};
use self::measured::Measured;
pub use self::mesh::{
    MeshCost, MeshOptions, MeshPrediction, MeshShape, NetworkSize, predict_mesh, predict_meshes,
};
use self::options::{Facts, Failures};
pub use self::options::{ScalingOptions, ScalingParameter, ScalingSource};
use crate::problem::bad_size;

/// More workers have no sense for a chain.
const MOST_WORKERS: usize = 1 << 20;

/// A row of a prediction. Times are in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScalingRow {
    /// How many workers.
    pub workers: usize,
    /// A step.
    pub step: f64,
    /// Its forward and backward pass and update.
    pub computing: f64,
    /// The all-reduce of its gradients.
    pub exchange: f64,
    /// What the chief does for the other workers: rows out, outputs in.
    pub chief: f64,
    /// Of all workers.
    pub examples_per_second: f64,
    /// [`Self::examples_per_second`], divided by what so many workers would do that never wait.
    pub efficiency: f64,
    /// Work between two snapshots.
    pub snapshot_every: f64,
    /// The share of time that is left when snapshots are written and failures are made good.
    pub useful: f64,
}

/// How a run would do on so many workers. It is a prediction: nothing of it was run.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalingPrediction {
    rows: Vec<ScalingRow>,
    parameters: Vec<ScalingParameter>,
    /// By pattern, at each number of workers: the efficiency.
    patterns: Vec<(ScalingPattern, Vec<(usize, f64)>)>,
    measured: Option<Measured>,
    model: CostModel,
    any_ends_run: bool,
}

impl ScalingPrediction {
    /// A row for 1, 2, 4, … workers, and for the number that was asked for.
    pub fn rows(&self) -> &[ScalingRow] {
        &self.rows
    }

    /// The row of so many workers.
    pub fn at(&self, workers: usize) -> Option<&ScalingRow> {
        self.rows.iter().find(|row| row.workers == workers)
    }

    /// The numbers that it is made of.
    pub fn parameters(&self) -> &[ScalingParameter] {
        &self.parameters
    }

    /// The efficiency on so many workers, were the pattern this one. `None` for a number that has no row, and for the
    /// hierarchical pattern where nobody has said how many workers a machine has.
    pub fn efficiency_of(&self, pattern: ScalingPattern, workers: usize) -> Option<f64> {
        let (_, line) = self.patterns.iter().find(|(it, _)| *it == pattern)?;
        let point = line.iter().find(|(count, _)| *count == workers)?;
        Some(point.1)
    }
}

/// The prediction of a team's strategy.
///
/// # Errors
/// SC0915 for a number outside its range, or that nobody has measured, given or assumed.
pub(crate) fn predict(
    team: &Team,
    workers: usize,
    options: &ScalingOptions,
) -> Result<ScalingPrediction> {
    let is_here = team.seats().iter().all(|seat| {
        seat.process
            .as_ref()
            .is_none_or(stratoscope_workers::Process::is_here)
    });
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let facts = Facts {
        piece_bytes: (PIECE * team.communication().gradients.bytes()) as f64,
        patience: team.settings().patience.as_secs_f64(),
        launched: team.is_awaited(),
    };
    predict_from(
        &team.tally(),
        (is_here.then_some(cores), facts),
        workers,
        options,
    )
}

fn predict_from(
    tally: &Tally,
    (cores, facts): (Option<usize>, Facts),
    workers: usize,
    options: &ScalingOptions,
) -> Result<ScalingPrediction> {
    if !(1..=MOST_WORKERS).contains(&workers) {
        return Err(bad_size("workers", workers, "1 to 1048576"));
    }
    let measured = Measured::of(tally, cores, facts.piece_bytes);
    let resolved = options.resolve(measured.as_ref(), facts)?;
    let (model, failures) = (resolved.model, resolved.failures);
    let counts = counts(workers);
    let row = |&count: &usize| row(&model, &failures, count);
    let is_known = |pattern: &ScalingPattern| {
        *pattern != ScalingPattern::Hierarchical || model.machine.is_some()
    };
    let line = |pattern: ScalingPattern| {
        let point = |&count: &usize| (count, efficiency(&model, count, pattern));
        (pattern, counts.iter().map(point).collect())
    };
    Ok(ScalingPrediction {
        rows: counts.iter().map(row).collect(),
        parameters: resolved.parameters,
        patterns: ScalingPattern::ALL
            .into_iter()
            .filter(is_known)
            .map(line)
            .collect(),
        measured,
        model,
        any_ends_run: failures.any_ends_run,
    })
}

/// 1, 2, 4, … and the last one.
fn counts(last: usize) -> Vec<usize> {
    let doubled = std::iter::successors(Some(1), |count| Some(2 * count));
    let mut counts: Vec<usize> = doubled.take_while(|count| *count < last).collect();
    counts.push(last);
    counts
}

fn efficiency(model: &CostModel, workers: usize, pattern: ScalingPattern) -> f64 {
    let alone = model.examples_per_second(1, pattern);
    model.examples_per_second(workers, pattern) / (workers as f64 * alone)
}

fn row(model: &CostModel, failures: &Failures, workers: usize) -> ScalingRow {
    let pattern = ScalingPattern::Chain;
    let step = model.step(workers, pattern);
    let Failures {
        between,
        snapshot,
        restart,
        any_ends_run,
        patience,
    } = *failures;
    // The run ends with its chief; under some launchers with any of its workers, the first of which is lost early.
    let of_run = match any_ends_run {
        true => between / workers as f64,
        false => between,
    };
    let snapshot_every = best_interval(snapshot, of_run);
    let of_snapshots = useful_share(snapshot_every, snapshot, restart, of_run);
    // A worker that is lost costs the others the time until it is noticed, and the step.
    let others = match any_ends_run {
        true => 0.0,
        false => workers.saturating_sub(1) as f64 / between,
    };
    let lost = others * (patience + step.seconds());
    ScalingRow {
        workers,
        step: step.seconds(),
        computing: step.computing,
        exchange: step.exchange,
        chief: step.chief,
        examples_per_second: model.examples_per_second(workers, pattern),
        efficiency: efficiency(model, workers, pattern),
        snapshot_every,
        useful: of_snapshots / (1.0 + lost),
    }
}

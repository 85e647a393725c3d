//! `compare([&a, &b])`: the first step, batch and variable where two runs part.

use std::collections::HashMap;

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::tensor::Tensor;
use stratoscope_diagnostics::Result;
use stratoscope_strategy::{Checksum, SavedValues};

use crate::handle::Run;
use stratoscope_arguments::context::interrupt::Listening;
use stratoscope_network::AnyNetwork;
use stratoscope_report::comparison::{Comparison, OtherWeights, Parted, names_of};
use stratoscope_report::history::History;
use stratoscope_train::batch_plan::BatchPosition;
use stratoscope_train::run_state::RunState;

/// Two runs side by side: curves, and the first step, batch and variable where they part. Losses and weights are compared
/// to the bit; weights after the steps at which both runs hold a snapshot, and where both stand now.
///
/// # Errors
/// SC0121 in a callback of one of the runs; SC0521 for a run that is finished.
pub fn compare(runs: [&Run; 2]) -> Result<Comparison> {
    let _listening = Listening::begin();
    let [first, second] = runs;
    let (left, right) = (side(first)?, side(second)?);
    let pairs = left.history.steps.iter().zip(&right.history.steps);
    let steps = pairs.clone().count();
    let at = pairs
        .clone()
        .position(|(a, b)| a.loss.to_bits() != b.loss.to_bits());
    let parted = match at.and_then(|at| Some((at, pairs.clone().nth(at)?))) {
        None => None,
        Some((at, (a, b))) => {
            let batches = [&left, &right].map(|side| side.batches.get(at).copied());
            Some(Parted {
                step: a.step,
                losses: [a.loss, b.loss],
                rows: [rows(first, batches[0])?, rows(second, batches[1])?],
                batches: batches.map(|at| at.map(|it| (it.epoch, it.batch))),
            })
        }
    };
    Ok(Comparison {
        names: names_of([&left.label, &right.label]),
        steps,
        parted,
        weights: other_weights(&left, &right),
        edits: [left.history.edits.clone(), right.history.edits.clone()],
        histories: [left.history, right.history],
    })
}

/// What is compared of a run.
struct Side {
    /// What a fork is called.
    label: String,
    history: History,
    /// The first batches of its steps.
    batches: Vec<BatchPosition>,
    /// Checksums of the variables by the step of the snapshot, in the order of the model.
    weights: Vec<(u64, Vec<(String, Checksum)>)>,
}

fn side(run: &Run) -> Result<Side> {
    run.with("compare", |lease, run| {
        let records = lease.step.replicas.records();
        let named = |steps: u64, values: &SavedValues<AnyNetwork>| {
            let sums = checksums(values);
            let records = records.iter();
            let named = records.filter_map(|it| Some((it.name.clone(), *sums.get(&it.param)?)));
            (steps, named.collect())
        };
        let held = run
            .hooks
            .snapshots
            .all()
            .map(|it| named(it.state.steps, &it.state.values));
        let mut weights: Vec<(u64, _)> = held.collect();
        // Where it stands now, behind the last of them.
        let now = lease.step.steps;
        if weights.last().is_none_or(|(step, _)| *step < now) {
            weights.push(named(now, &lease.step.replicas.saved_values()));
        }
        Ok(Side {
            label: run.label().to_owned(),
            history: run.history(lease),
            batches: batches(run, lease.step.counters.skipped_steps),
            weights,
        })
    })
}

/// The first batch of every step that is recorded; none where steps without a record lie between them.
fn batches(run: &RunState<'_>, skipped: u64) -> Vec<BatchPosition> {
    if skipped > 0 {
        return Vec::new();
    }
    let epochs = run.plan.initial_epoch..run.plan.epochs;
    let starts = |epoch: u64| {
        let group = move |batch: u64| run.batch_plan.group(epoch, batch);
        let begun = (run.batch_plan.batches(epoch) > 0).then(|| group(0));
        let groups = std::iter::successors(begun, move |before| {
            Some(group(before.end)).filter(|next| !next.is_empty())
        });
        groups.map(move |group| BatchPosition {
            epoch,
            batch: group.start,
        })
    };
    let all = epochs.flat_map(starts);
    let made = all.filter(|begin| !run.skipped.contains(begin));
    made.take(run.progress.history.steps.len()).collect()
}

/// The rows of the data set in the batches of a step.
fn rows(run: &Run, begin: Option<BatchPosition>) -> Result<Vec<usize>> {
    let Some(BatchPosition { epoch, batch }) = begin else {
        return Ok(Vec::new());
    };
    run.with("compare", |_, run| {
        let group = run.batch_plan.group(epoch, batch);
        let batches = run.batch_plan.batches_from(epoch, group.start)?;
        let batches = batches.take((group.end - group.start) as usize);
        let rows = batches.map(|batch| Ok(batch?.rows));
        Ok(rows.collect::<Result<Vec<_>>>()?.concat())
    })
}

/// The checksum of every variable of the first copy; of the rows of the first server where variables are split.
fn checksums(values: &SavedValues<AnyNetwork>) -> HashMap<ParamId, Checksum> {
    struct Sums(HashMap<ParamId, Checksum>);
    impl ModuleVisitor for Sums {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Ok(data) = param.val().try_into_data() {
                self.0.insert(param.id, Checksum::of(data.as_bytes()));
            }
        }
    }
    let mut sums = Sums(HashMap::new());
    if let Some(module) = values.modules.first() {
        module.visit(&mut sums);
    }
    // Of these the module has the latest values.
    for (id, data) in &values.running {
        sums.0.insert(*id, Checksum::of(data.as_bytes()));
    }
    sums.0
}

/// The first step at which both hold a snapshot and a variable differs.
fn other_weights(left: &Side, right: &Side) -> Option<OtherWeights> {
    let mut equal_after = None;
    left.weights.iter().find_map(|(step, ours)| {
        let (_, theirs) = right.weights.iter().find(|(other, _)| other == step)?;
        let differs = |(name, sum): &&(String, Checksum)| !theirs.contains(&(name.clone(), *sum));
        let names: Vec<String> = (ours.iter().filter(differs))
            .map(|(name, _)| name.clone())
            .collect();
        if names.is_empty() {
            equal_after = Some(*step);
            return None;
        }
        Some(OtherWeights {
            step: *step,
            variables: names,
            of: ours.len(),
            equal_after,
        })
    })
}

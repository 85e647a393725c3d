//! `compare([&a, &b])`: the first step, batch and variable where two runs part.

use std::collections::HashMap;

use burn::module::{ModuleVisitor, Param, ParamId};
use burn::tensor::Tensor;
use stratoscope_diagnostics::Result;
use stratoscope_strategy::Checksum;

use crate::network::Network;
use crate::report::comparison::{Comparison, OtherWeights, Parted};
use crate::report::history::History;
use crate::run::handle::Run;
use crate::run::run_state::RunState;
use crate::run::snapshot::Snapshot;

/// Two runs side by side: curves, and the first step, batch and variable where they part. Losses and weights are compared
/// to the bit; weights after the steps at which both runs hold a snapshot.
///
/// # Errors
/// SC0121 in a callback of one of the runs; SC0521 for a run that is finished.
pub fn compare<N: Network>(runs: [&Run<N>; 2]) -> Result<Comparison> {
    (N::calls().compare)(runs)
}

/// What is compared of a run.
struct Side {
    history: History,
    /// Epoch, first batch and rows of the step that is asked for.
    batches: Vec<(u64, u64)>,
    /// Checksums of the variables by the step of the snapshot, in the order of the model.
    weights: Vec<(u64, Vec<(String, Checksum)>)>,
}

pub(crate) fn compare_here<N: Network>(runs: [&Run<N>; 2]) -> Result<Comparison> {
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
                batches,
            })
        }
    };
    Ok(Comparison {
        steps,
        parted,
        weights: other_weights(&left, &right),
        edits: [left.history.edits.clone(), right.history.edits.clone()],
        histories: [left.history, right.history],
    })
}

fn side<N: Network>(run: &Run<N>) -> Result<Side> {
    run.with("compare", |lease, run| {
        let records = lease.step.replicas.records();
        let named = |snapshot: &Snapshot<N>| {
            let sums = checksums(snapshot);
            let records = records.iter();
            let named = records.filter_map(|it| Some((it.name.clone(), *sums.get(&it.param)?)));
            (snapshot.state.steps, named.collect())
        };
        let held = run.snapshots.iter().flat_map(|ring| ring.all());
        let weights = held.map(named).collect();
        Ok(Side {
            history: run.history(lease),
            batches: batches(run, lease.step.counters.skipped_steps),
            weights,
        })
    })
}

/// Epoch and first batch of every step that is recorded; none where steps without a record lie between them.
fn batches<N: Network>(run: &RunState<'_, N>, skipped: u64) -> Vec<(u64, u64)> {
    if skipped > 0 || !run.skipped.is_empty() {
        return Vec::new();
    }
    let (group, of_epoch) = (
        run.shape.gradient_accumulation_steps,
        run.shape.batches_per_epoch,
    );
    let epochs = run.plan.initial_epoch..run.plan.epochs;
    let starts = || (0..of_epoch.div_ceil(group)).map(move |index| index * group);
    let all = epochs.flat_map(|epoch| starts().map(move |batch| (epoch, batch)));
    all.take(run.progress.history.steps.len()).collect()
}

/// The rows of the data set in the batches of a step.
fn rows<N: Network>(run: &Run<N>, place: Option<(u64, u64)>) -> Result<Vec<usize>> {
    let Some((epoch, batch)) = place else {
        return Ok(Vec::new());
    };
    run.with("compare", |_, run| {
        let group = run.shape.group(batch);
        let batches = run.batches_of(epoch)?.skip(group.start as usize);
        let batches = batches.take((group.end - group.start) as usize);
        Ok(batches.flat_map(|batch| batch.rows).collect())
    })
}

/// The checksum of every variable of the first copy; of the rows of the first server where variables are split.
fn checksums<N: Network>(snapshot: &Snapshot<N>) -> HashMap<ParamId, Checksum> {
    struct Sums(HashMap<ParamId, Checksum>);
    impl ModuleVisitor for Sums {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Ok(data) = param.val().try_into_data() {
                self.0.insert(param.id, Checksum::of(data.as_bytes()));
            }
        }
    }
    let mut sums = Sums(HashMap::new());
    if let Some(module) = snapshot.state.values.modules.first() {
        module.visit(&mut sums);
    }
    sums.0
}

/// The first step at which both hold a snapshot and a variable differs.
fn other_weights(left: &Side, right: &Side) -> Option<OtherWeights> {
    left.weights.iter().find_map(|(step, ours)| {
        let (_, theirs) = right.weights.iter().find(|(other, _)| other == step)?;
        let differs = |(name, sum): &&(String, Checksum)| !theirs.contains(&(name.clone(), *sum));
        let names: Vec<String> = (ours.iter().filter(differs))
            .map(|(name, _)| name.clone())
            .collect();
        (!names.is_empty()).then_some(OtherWeights {
            step: *step,
            variables: names,
            of: ours.len(),
        })
    })
}

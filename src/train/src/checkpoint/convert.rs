//! Between a run in memory and [`SavedProgress`]. What is read is checked before it is believed: numbers against each
//! other and against the run that is to go on.

use std::collections::HashMap;

use burn::module::ParamId;

use super::format::{
    Bits, SavedCounts, SavedEpoch, SavedEvaluation, SavedExecution, SavedExecutionRecord,
    SavedHistory, SavedProgress, Sum,
};
use stratoscope_metrics::metric::Predicted;

use crate::batch_plan::BatchPlan;
use crate::edits::{Change, Dated};
use crate::hooks::Recent;
use crate::progress::{Execution, Progress};
use crate::snapshot::Snapshot;
use stratoscope_report::history::{
    EpochRecord, Evaluation, ExecutionRecord, History, Measured, StepRecord,
};
use stratoscope_report::run_report::StepPoint;
use stratoscope_step::exchange::LocalSgdState;
use stratoscope_step::loss_scale::LossScale;
use stratoscope_step::{LossSum, SavedStep};

/// What is to be written of a snapshot, tensors aside. `params`: the variables in their order.
pub(super) fn progress_of(it: &Snapshot, params: &[ParamId], edits: &[Dated]) -> SavedProgress {
    let progress = &it.progress;
    SavedProgress {
        epoch: progress.epoch,
        batch: progress.batch,
        epoch_loss: progress.epoch_loss.into(),
        epoch_seconds: progress.epoch_seconds.into(),
        epoch_begun: progress.epoch_begun,
        stops: progress.stops,
        last_rate: progress.last_rate.into(),
        last_loss: progress.last_loss.map(Bits::from),
        last_norm: progress.last_norm.map(Bits::from),
        best_value: progress.best.value.map(Bits::from),
        has_best: progress.best.weights.is_some(),
        epochs_without_better: progress.best.epochs_without_better,
        outputs_seen: progress.watch.outputs_seen,
        collapse_reported: progress.watch.collapse_reported,
        highest_rate: progress.watch.highest_rate.into(),
        edits: edits.to_vec(),
        history: history_of(&progress.history),
        execution: progress.execution.as_ref().map(execution_of),
        recent: (progress.recent.points())
            .map(|it| {
                (
                    it.step,
                    it.loss.into(),
                    it.gradient_norm.into(),
                    it.learning_rate.into(),
                    it.accuracy.map(Bits::from),
                )
            })
            .collect(),
        best_accuracy: progress.recent.best_accuracy.map(Bits::from),
        example_epochs: progress.examples.saved().map(|(epoch, _)| epoch).collect(),
        examples_full: progress.examples.is_full(),
        step: counts_of(&it.state, params),
    }
}

fn counts_of(state: &SavedStep, params: &[ParamId]) -> SavedCounts {
    let (scale, finite) = state.loss_scale.parts();
    SavedCounts {
        batches: state.batches,
        steps: state.steps,
        counters: state.counters,
        loss_scale: (scale.into(), finite),
        local_steps: state.local.steps,
        local_examples: state.local.examples.clone(),
        moments: state.moments.iter().map(|it| it.steps()).collect(),
        updates: state.values.updates,
        fetched: (state.values.fetched.iter()).map(|(_, at)| *at).collect(),
        gradient_bytes: match state.gradient_bytes.is_empty() {
            true => Vec::new(),
            false => (params
                .iter()
                .map(|id| state.gradient_bytes.get(id).copied()))
            .collect(),
        },
        last_batch: state.last_batch.clone(),
    }
}

fn history_of(history: &History) -> SavedHistory {
    let executions = history.executions.iter().map(|it| SavedExecutionRecord {
        epoch: it.epoch,
        first_batch: it.first_batch,
        batches: it.batches,
        optimizer_steps: it.optimizer_steps,
        step: it.step,
        loss: it.loss.into(),
        learning_rate: it.learning_rate.into(),
        gradient_norm: it.gradient_norm.map(Bits::from),
        seconds: it.seconds.into(),
    });
    let steps = history.steps.iter();
    SavedHistory {
        epochs: history.epochs.iter().map(epoch_of).collect(),
        executions: executions.collect(),
        steps: steps
            .map(|it| (it.step, it.loss.into(), it.learning_rate.into()))
            .collect(),
        best_epoch: history.best_epoch,
        best_by: history.best_by.clone(),
        stopped_early: history.stopped_early,
    }
}

fn epoch_of(record: &EpochRecord) -> SavedEpoch {
    let validation = record.validation.as_ref().map(|it| SavedEvaluation {
        loss: it.loss.into(),
        metrics: metrics_of(&it.metrics),
        examples: it.examples,
        labels: it.predictions.labels.clone(),
        predictions: it.predictions.predictions.clone(),
        confusion: it.predictions.confusion.clone(),
        label_names: it.predictions.label_names.clone(),
        seconds: it.seconds.into(),
    });
    SavedEpoch {
        epoch: record.epoch,
        loss: record.loss.into(),
        metrics: metrics_of(&record.metrics),
        validation,
        learning_rate: record.learning_rate.into(),
        seconds: record.seconds.into(),
        sequences_per_second: record.sequences_per_second.into(),
    }
}

fn metrics_of(metrics: &[Measured]) -> Vec<(String, Option<Bits>)> {
    let metrics = metrics.iter();
    metrics
        .map(|it| (it.name.to_owned(), it.value.map(Bits::from)))
        .collect()
}

fn execution_of(it: &Execution) -> SavedExecution {
    SavedExecution {
        epoch: it.epoch,
        first_batch: it.first_batch,
        batches: it.batches,
        optimizer_steps: it.optimizer_steps,
        loss: it.loss.into(),
        learning_rate: it.learning_rate.map(Bits::from),
        gradient_norm: it.gradient_norm.map(Bits::from),
        seconds: it.seconds.into(),
    }
}

impl From<LossSum> for Sum {
    fn from(it: LossSum) -> Self {
        Self {
            sum: it.sum.into(),
            examples: it.examples,
        }
    }
}

impl From<Sum> for LossSum {
    /// A checkpoint is written between two steps.
    fn from(it: Sum) -> Self {
        Self::of_steps(it.sum.into(), it.examples)
    }
}

/// What a run that goes on expects of what it reads.
pub(super) struct Expected<'a> {
    pub batch_plan: &'a BatchPlan,
    /// One past the last epoch.
    pub epochs: u64,
    /// The names of the metrics.
    pub metrics: &'a [&'static str],
    /// Of those of which low values are good.
    pub low_is_good: &'a [&'static str],
    /// The variables in their order.
    pub params: &'a [ParamId],
    /// Replicas.
    pub replicas: usize,
}

/// A reason for which a file is not believed.
pub(super) type Refused = String;

/// Where the run is, from what was read; the best weights aside.
pub(super) fn progress_from(
    saved: SavedProgress,
    devices: String,
    expected: &Expected<'_>,
) -> Result<Progress, Refused> {
    check_position(&saved, expected)?;
    let counts = &saved.step;
    let mut earlier = 0;
    for (step, ..) in &saved.history.steps {
        if *step <= earlier || *step > counts.steps {
            return Err(format!("step {step} follows on step {earlier}"));
        }
        earlier = *step;
    }
    let mut progress = Progress::new(devices, saved.epoch);
    progress.batch = saved.batch;
    progress.epoch_loss = saved.epoch_loss.into();
    progress.epoch_seconds = saved.epoch_seconds.into();
    progress.epoch_begun = saved.epoch_begun;
    progress.stops = saved.stops;
    progress.last_rate = saved.last_rate.into();
    progress.last_loss = saved.last_loss.map(f64::from);
    progress.last_norm = saved.last_norm.map(f64::from);
    progress.best.value = saved.best_value.map(f64::from);
    progress.best.epochs_without_better = saved.epochs_without_better;
    progress.watch.outputs_seen = saved.outputs_seen;
    progress.watch.collapse_reported = saved.collapse_reported;
    progress.watch.highest_rate = saved.highest_rate.into();
    history_from(saved.history, expected, &mut progress.history)?;
    progress.history.edits = saved.edits.iter().map(Dated::listed).collect();
    let execution = saved.execution.map(|it| Execution {
        epoch: it.epoch,
        first_batch: it.first_batch,
        batches: it.batches,
        optimizer_steps: it.optimizer_steps,
        loss: it.loss.into(),
        learning_rate: it.learning_rate.map(f64::from),
        gradient_norm: it.gradient_norm.map(f64::from),
        seconds: it.seconds.into(),
        is_doubtful: true,
    });
    let begins_before = |it: &Execution| {
        // Batches that were left out are not counted.
        let end = it.first_batch.checked_add(it.batches);
        it.epoch == saved.epoch && end.is_some_and(|end| end <= saved.batch)
    };
    if !execution.as_ref().is_none_or(begins_before) {
        return Err("the execution that is not over does not end where the run is".to_owned());
    }
    progress.execution = execution;
    let recent = saved.recent.into_iter();
    let recent = recent.map(|(step, loss, norm, rate, accuracy)| StepPoint {
        step,
        loss: loss.into(),
        gradient_norm: norm.into(),
        learning_rate: rate.into(),
        accuracy: accuracy.map(f64::from),
    });
    progress.recent = Recent::of(recent.collect(), saved.best_accuracy.map(f64::from));
    Ok(progress)
}

/// Whether the run, with its changes, can stand where it was.
fn check_position(saved: &SavedProgress, expected: &Expected<'_>) -> Result<(), Refused> {
    let mut batch_plan = expected.batch_plan.clone();
    for dated in &saved.edits {
        if let Change::Batches(from, change) = &dated.change {
            batch_plan.change(from.next_batch(), change)?;
        }
    }
    let (epoch, batch) = (saved.epoch, saved.batch);
    let batches = batch_plan.batches(epoch);
    let fits = epoch <= expected.epochs
        && batch <= batches
        && (epoch < expected.epochs || batch == 0)
        && (batch == batches || batch_plan.group(epoch, batch).start == batch);
    match fits {
        true => Ok(()),
        false => Err(format!(
            "epoch {epoch} and batch {batch} are no place of this run"
        )),
    }
}

fn history_from(
    saved: SavedHistory,
    expected: &Expected<'_>,
    history: &mut History,
) -> Result<(), Refused> {
    let epochs = saved.epochs.into_iter();
    history.epochs = epochs
        .map(|it| epoch_from(it, expected))
        .collect::<Result<_, _>>()?;
    let executions = saved.executions.into_iter().map(|it| ExecutionRecord {
        epoch: it.epoch,
        first_batch: it.first_batch,
        batches: it.batches,
        optimizer_steps: it.optimizer_steps,
        step: it.step,
        loss: it.loss.into(),
        learning_rate: it.learning_rate.into(),
        gradient_norm: it.gradient_norm.map(f64::from),
        seconds: it.seconds.into(),
    });
    history.executions = executions.collect();
    let steps = saved.steps.into_iter();
    history.steps = steps
        .map(|(step, loss, rate)| StepRecord {
            step,
            loss: loss.into(),
            learning_rate: rate.into(),
        })
        .collect();
    history.best_epoch = saved.best_epoch;
    history.best_by = saved.best_by;
    history.stopped_early = saved.stopped_early;
    Ok(())
}

fn epoch_from(saved: SavedEpoch, expected: &Expected<'_>) -> Result<EpochRecord, Refused> {
    let names = expected.metrics;
    let validation = saved.validation.map(|it| {
        Ok::<_, Refused>(Evaluation {
            loss: it.loss.into(),
            metrics: metrics_from(it.metrics, names)?,
            examples: it.examples,
            predictions: Predicted {
                labels: it.labels,
                predictions: it.predictions,
                confusion: it.confusion,
                label_names: it.label_names,
            },
            seconds: it.seconds.into(),
            low_is_good: expected.low_is_good.to_vec(),
            cut: None,
            other_length: None,
        })
    });
    Ok(EpochRecord {
        epoch: saved.epoch,
        loss: saved.loss.into(),
        metrics: metrics_from(saved.metrics, names)?,
        validation: validation.transpose()?,
        learning_rate: saved.learning_rate.into(),
        seconds: saved.seconds.into(),
        sequences_per_second: saved.sequences_per_second.into(),
    })
}

fn metrics_from(
    saved: Vec<(String, Option<Bits>)>,
    names: &[&'static str],
) -> Result<Vec<Measured>, Refused> {
    let metric = |(name, value): (String, Option<Bits>)| {
        let known = names.iter().find(|known| **known == name);
        let name = *known.ok_or_else(|| format!("`{name}` is no metric of this run"))?;
        Ok(Measured {
            name,
            value: value.map(f64::from),
        })
    };
    saved.into_iter().map(metric).collect()
}

/// The counts of a run under another strategy, which stores `modules` modules. All of them make every update.
pub(super) fn counts_elsewhere(saved: SavedCounts, modules: usize) -> SavedCounts {
    let steps = saved.moments.iter().copied().max().unwrap_or_default();
    SavedCounts {
        moments: vec![steps; modules],
        local_examples: Vec::new(),
        // What each replica had of a batch is of others now.
        last_batch: Vec::new(),
        ..saved
    }
}

/// Puts the counts of what was read in place of those of a state.
pub(super) fn counts_into(
    saved: &SavedCounts,
    expected: &Expected<'_>,
    state: &mut SavedStep,
) -> Result<(), Refused> {
    let (scale, finite) = saved.loss_scale;
    let scale = f64::from(scale);
    if !(scale.is_finite() && scale >= 1.0) {
        return Err(format!("the loss is not scaled by {scale}"));
    }
    let is_absent_or = |given: usize, count: usize| given == 0 || given == count;
    let fits = saved.moments.len() == state.values.modules.len()
        && saved.fetched.len() == state.values.fetched.len()
        && is_absent_or(saved.local_examples.len(), expected.replicas)
        && is_absent_or(saved.gradient_bytes.len(), expected.params.len())
        && saved.last_batch.len() <= expected.replicas;
    if !fits {
        return Err("there are not as many counts as replicas and variables".to_owned());
    }
    state.loss_scale = LossScale::from_parts((scale, finite));
    state.local = LocalSgdState {
        steps: saved.local_steps,
        examples: saved.local_examples.clone(),
    };
    state.batches = saved.batches;
    state.steps = saved.steps;
    state.counters = saved.counters;
    state.values.updates = saved.updates;
    for ((_, at), &saved) in state.values.fetched.iter_mut().zip(&saved.fetched) {
        *at = saved;
    }
    let bytes = expected.params.iter().zip(&saved.gradient_bytes);
    state.gradient_bytes = bytes
        .filter_map(|(id, bytes)| Some((*id, (*bytes)?)))
        .collect::<HashMap<_, _>>();
    state.last_batch.clone_from(&saved.last_batch);
    Ok(())
}

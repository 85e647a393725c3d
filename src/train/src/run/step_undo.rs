//! The place before an optimizer step to which a run goes back if the step is not made: a breakpoint stops it, an error
//! or an interrupt comes between its micro-batches. The batches of the step are computed again when the run goes on,
//! with the same dropout masks, since those are numbered by `StepState::batches`.
//!
//! Up to the update a step changes nothing but what it counts and the running state of layers such as `BatchNorm`, so
//! that this is all that is put back.

use stratoscope_data::Labels;
use stratoscope_strategy::RunningValues;

use crate::report::counters::Counters;
use crate::run::epochs::{Drive, Pause};
use crate::run::progress::Execution;
use crate::step::LossSum;
use crate::step::forward::BatchOutputs;

/// What the metrics are to count of a part of a batch: the replica, labels and outputs.
pub(crate) type Counted = (usize, Labels, Vec<f32>);

/// What a step counts before its update, as it was before the step.
pub(crate) struct StepUndo {
    // Of `StepState`.
    batches: u64,
    counters: Counters,
    last_batch: Vec<(usize, usize)>,
    running: RunningValues,
    // Of `Progress`.
    batch: u64,
    epoch_loss: LossSum,
    epoch_seconds: f64,
    execution: Option<Execution>,
    executions: usize,
    last_loss: Option<f64>,
    last_rate: f64,
    stops: bool,
}

impl StepUndo {
    /// The first batch of the step in the epoch.
    pub(super) fn batch(&self) -> u64 {
        self.batch
    }

    /// The running states before the step.
    pub(super) fn running(&self) -> &RunningValues {
        &self.running
    }
}

impl Drive<'_, '_, '_> {
    /// An optimizer step begins: what it is going to change is remembered.
    pub(super) fn remember_step(&mut self) {
        let (step, progress) = (&self.lease.step, &self.run.progress);
        self.undo = Some(StepUndo {
            batches: step.batches,
            counters: step.counters,
            last_batch: step.last_batch.clone(),
            running: step.replicas.running_values(),
            batch: progress.batch,
            epoch_loss: progress.epoch_loss,
            epoch_seconds: progress.epoch_seconds,
            execution: progress.execution.clone(),
            executions: progress.history.executions.len(),
            last_loss: progress.last_loss,
            last_rate: progress.last_rate,
            stops: progress.stops,
        });
    }

    /// Counts the outputs of a batch for the metrics: where the step can be forgotten, when it is made.
    pub(super) fn count(&mut self, outputs: &BatchOutputs) {
        // Replicas without a part of the batch are the last ones.
        for (replica, (part, output)) in outputs.iter().enumerate() {
            if self.undo.is_some() {
                let (labels, outputs) = (part.labels.clone(), output.outputs.clone());
                self.counted.push((replica, labels, outputs));
            } else if let Some(tallies) = &mut self.lease.step.tallies {
                tallies.add(replica, &part.labels, &output.outputs);
            }
        }
    }

    /// The step is made: nothing of it is put back any more, and the metrics count its outputs.
    pub(super) fn commit_step(&mut self) {
        self.undo = None;
        for (replica, labels, outputs) in self.counted.drain(..) {
            if let Some(tallies) = &mut self.lease.step.tallies {
                tallies.add(replica, &labels, &outputs);
            }
        }
    }

    /// The run is to be left here.
    pub(super) fn interrupt(&mut self) {
        self.pause = Some(Pause::Interrupted);
        self.forget_step();
    }

    /// After an error or a panic: the step is not made. The state is made whole as far as that is possible.
    pub(super) fn give_up_step(&mut self) {
        self.run.is_damaged = self.is_updating;
        self.forget_step();
        // The first error is the one to tell.
        let _ = self.lease.step.gather();
    }

    /// Goes back to before the step that is not made, if one has begun, in a run that is left between two steps only.
    /// Another keeps what it has counted.
    pub(super) fn forget_step(&mut self) {
        match self.run.pauses_between_steps {
            true => self.put_back(),
            false => self.commit_step(),
        }
    }

    /// Goes back to before the step that is not made, if one has begun.
    pub(super) fn put_back(&mut self) {
        let Some(undo) = self.undo.take() else {
            return;
        };
        self.counted.clear();
        let (step, progress) = (&mut self.lease.step, &mut self.run.progress);
        step.accumulated.clear();
        step.accumulated_loss = LossSum::default();
        step.batches = undo.batches;
        step.counters = undo.counters;
        step.last_batch = undo.last_batch;
        step.replicas.set_running_values(&undo.running);
        progress.batch = undo.batch;
        progress.epoch_loss = undo.epoch_loss;
        progress.epoch_seconds = undo.epoch_seconds;
        progress.execution = undo.execution;
        progress.history.executions.truncate(undo.executions);
        progress.last_loss = undo.last_loss;
        progress.last_rate = undo.last_rate;
        progress.stops = undo.stops;
    }
}

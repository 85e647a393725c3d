//! The place before an optimizer step to which a run goes back if the step is not made: a breakpoint stops it, an error
//! or an interrupt comes between its micro-batches. The batches of the step are computed again when the run goes on,
//! with the same dropout masks, since those are numbered by `StepState::batches`.
//!
//! Up to the update a step changes nothing but what it counts and the running state of layers such as `BatchNorm`, so
//! that this is all that is put back. For the same reason the metrics count the outputs of a step when it is made.

use stratoscope_data::Labels;
use stratoscope_diagnostics::Result;
use stratoscope_strategy::RunningValues;

use super::{At, Hook};
use crate::loop_state::LoopState;
use crate::progress::Execution;
use stratoscope_report::counters::Counters;
use stratoscope_step::LossSum;
use stratoscope_step::forward::BatchOutputs;

/// What the metrics are to count of a part of a batch: the replica, labels and outputs.
type Counted = (usize, Labels, Vec<f32>);

/// Puts a run back before a step that is not made.
#[derive(Default)]
pub struct StepUndo {
    /// What the step changes before its update, as it was before the step; `None` between two steps.
    before: Option<BeforeStep>,
    /// What the metrics are to count when the step is made.
    counted: Vec<Counted>,
}

/// What a step counts before its update, as it was before the step.
struct BeforeStep {
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

impl Hook for StepUndo {
    fn call_begins(&mut self) {
        *self = Self::default();
    }

    fn before_step(&mut self, at: At<'_, '_, '_, '_>) -> Result<()> {
        let (step, progress) = (&at.lease.step, &at.run.progress);
        self.before = Some(BeforeStep {
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
        Ok(())
    }

    fn counted(&mut self, at: At<'_, '_, '_, '_>, outputs: &BatchOutputs) -> Result<()> {
        // Replicas without a part of the batch are the last ones.
        for (replica, (part, output)) in outputs.iter().enumerate() {
            if self.before.is_some() {
                let (labels, outputs) = (part.labels.clone(), output.outputs.clone());
                self.counted.push((replica, labels, outputs));
            } else if let Some(tallies) = &mut at.lease.step.tallies {
                tallies.add(replica, &part.labels, &output.outputs);
            }
        }
        Ok(())
    }

    /// Nothing of it is put back any more, and the metrics count its outputs.
    fn step_made(&mut self, at: At<'_, '_, '_, '_>) -> Result<()> {
        self.before = None;
        for (replica, labels, outputs) in self.counted.drain(..) {
            if let Some(tallies) = &mut at.lease.step.tallies {
                tallies.add(replica, &labels, &outputs);
            }
        }
        Ok(())
    }

    /// A run of `start!` stands between two steps. One of `fit!` keeps what it has counted.
    fn step_given_up(&mut self, at: At<'_, '_, '_, '_>) -> Result<()> {
        match at.run.pauses_between_steps {
            true => self.put_back(at),
            false => self.step_made(at)?,
        }
        Ok(())
    }
}

impl StepUndo {
    /// Whether the step that has begun can be put back.
    pub(crate) fn is_in_step(&self) -> bool {
        self.before.is_some()
    }

    /// Goes back to before the step that is not made, if one has begun.
    pub(crate) fn put_back(&mut self, at: &mut LoopState<'_, '_, '_>) {
        let Some(before) = self.before.take() else {
            return;
        };
        self.counted.clear();
        let (step, progress) = (&mut at.lease.step, &mut at.run.progress);
        step.accumulated.clear();
        step.accumulated_loss = LossSum::default();
        step.batches = before.batches;
        step.counters = before.counters;
        step.last_batch = before.last_batch;
        step.replicas.set_running_values(&before.running);
        progress.batch = before.batch;
        progress.epoch_loss = before.epoch_loss;
        progress.epoch_seconds = before.epoch_seconds;
        progress.execution = before.execution;
        progress.history.executions.truncate(before.executions);
        progress.last_loss = before.last_loss;
        progress.last_rate = before.last_rate;
        progress.stops = before.stops;
    }
}

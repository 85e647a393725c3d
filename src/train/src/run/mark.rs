//! The place before an optimizer step to which a run goes back if the step is not made: a breakpoint stops it, an error
//! or an interrupt comes between its micro-batches. The batches of the step are computed again when the run goes on,
//! with the same dropout masks, since those are numbered by `StepState::batches`.
//!
//! Up to the update a step changes nothing but what it counts, so that this is all that is put back.

use crate::metric::Tallies;
use crate::network::Network;
use crate::report::counters::Counters;
use crate::run::epochs::{Drive, Pause};
use crate::run::progress::Execution;
use crate::step::LossSum;

/// What a step counts before its update.
pub(crate) struct Mark {
    // Of `StepState`.
    batches: u64,
    counters: Counters,
    tallies: Option<Tallies>,
    last_batch: Vec<(usize, usize)>,
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

impl Mark {
    /// The first batch of the step in the epoch.
    pub(super) fn batch(&self) -> u64 {
        self.batch
    }
}

impl<N: Network> Drive<'_, '_, '_, N> {
    /// An optimizer step begins.
    pub(super) fn mark_step(&mut self) {
        if !self.run.pauses_between_steps {
            return;
        }
        let (step, progress) = (&self.lease.step, &self.run.progress);
        self.mark = Some(Mark {
            batches: step.batches,
            counters: step.counters,
            tallies: step.tallies.clone(),
            last_batch: step.last_batch.clone(),
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

    /// The run is to be left here.
    pub(super) fn interrupt(&mut self) {
        self.pause = Some(Pause::Interrupted);
        self.forget_step();
    }

    /// Goes back to before the step that is not made, if one has begun.
    pub(super) fn forget_step(&mut self) {
        let Some(mark) = self.mark.take() else {
            return;
        };
        let (step, progress) = (&mut self.lease.step, &mut self.run.progress);
        step.accumulated.clear();
        step.accumulated_loss = LossSum::default();
        step.batches = mark.batches;
        step.counters = mark.counters;
        step.tallies = mark.tallies;
        step.last_batch = mark.last_batch;
        progress.batch = mark.batch;
        progress.epoch_loss = mark.epoch_loss;
        progress.epoch_seconds = mark.epoch_seconds;
        progress.execution = mark.execution;
        progress.history.executions.truncate(mark.executions);
        progress.last_loss = mark.last_loss;
        progress.last_rate = mark.last_rate;
        progress.stops = mark.stops;
    }
}

//! Between two epochs of a run: metrics begin at zero, the validation data is measured, the epoch is compared with the best
//! one; and which weights the run leaves at its end.

use std::ops::ControlFlow;

use stratoscope_diagnostics::Result;

use crate::hooks::EpochOver;
use crate::loop_state::LoopState;
use crate::training_loop::Drive;
use stratoscope_arguments::callbacks::Monitor;
use stratoscope_arguments::context::interrupt;
use stratoscope_arguments::context::warnings::notice;
use stratoscope_metrics::metric::own;
use stratoscope_report::history::{EpochRecord, Evaluation};
use stratoscope_step::LossSum;
use stratoscope_step::evaluation::{Measures, empty_tally, evaluate_batches, measured};
use stratoscope_step::head::Head;

/// A validation that was interrupted; the run goes on with the whole validation.
struct Interrupted;

impl Drive<'_, '_, '_> {
    /// Resets the metrics and calls the callbacks, unless the epoch has begun before. Not at the end of an epoch: between two
    /// runs one can look at the counts of the last epoch.
    pub(crate) fn begin_epoch(&mut self) -> Result<()> {
        if self.at.run.progress.epoch_begun {
            return Ok(());
        }
        let lease = &mut *self.at.lease;
        let classes = (lease.files.task(), lease.files.classes());
        let compiled = &self.at.run.settings.compiled;
        let empty = empty_tally(classes, compiled.loss, &compiled.metrics);
        if let Some(tallies) = &mut lease.step.tallies {
            *tallies = tallies.emptied(empty);
        }
        self.tell(|hook, at| hook.epoch_begins(at))?;
        self.at.run.progress.epoch_begun = true;
        Ok(())
    }

    /// Validates, compares, and tells the hooks. Breaks if it was interrupted in the validation: then the epoch has not
    /// ended. After an error behind the validation the run goes on with the next epoch.
    pub(crate) fn end_epoch(&mut self) -> Result<ControlFlow<()>> {
        let at = &mut self.at;
        at.lease.step.gather()?;
        let validation = match at.validated()? {
            Ok(validation) => validation,
            Err(Interrupted) => return Ok(ControlFlow::Break(())),
        };
        let step = &at.lease.step;
        let Some(counted) = step.tallies.as_ref().map(|tallies| tallies.read()) else {
            at.run.progress.history.stopped_early = true;
            return Ok(ControlFlow::Continue(()));
        };
        let metrics = &at.run.settings.compiled.metrics;
        let progress = &at.run.progress;
        let LossSum { examples, .. } = progress.epoch_loss;
        let record = EpochRecord {
            epoch: progress.epoch,
            loss: progress.epoch_loss.mean(),
            metrics: measured(metrics, &counted),
            validation,
            learning_rate: progress.last_rate,
            seconds: progress.epoch_seconds,
            sequences_per_second: examples as f64 / progress.epoch_seconds,
        };
        own::failures(metrics).into_iter().try_for_each(notice)?;
        let is_best = at.compare(&record)?;
        let progress = &mut at.run.progress;
        let is_last = progress.stops;
        progress.history.epochs.push(record.clone());
        progress.next_epoch();
        let patience = (at.run.plan.stopping.as_ref()).map(|stopping| stopping.patience);
        // Of the first epoch nothing is better yet, and where its value is undefined it is not the best one.
        let is_first = progress.history.epochs.len() == 1;
        let waited = progress.best.epochs_without_better;
        let stops = patience.is_some_and(|patience| waited >= patience && !is_first);
        progress.history.stopped_early = stops || is_last;
        let over = EpochOver {
            record: &record,
            counted: &counted,
            is_best,
            is_last,
        };
        self.tell(|hook, at| hook.epoch_ended(at, &over))?;
        Ok(ControlFlow::Continue(()))
    }

    /// The weights that the run leaves: their moving averages, where the optimizer keeps them (`use_ema`); or those of
    /// the best epoch, if early stopping kept them.
    pub(crate) fn leave_weights(&mut self) -> Result<()> {
        let (step, run) = (&mut self.at.lease.step, &mut *self.at.run);
        step.average_parameters()?;
        step.compare_workers(true)?;
        run.progress.history.loss_scale = step.loss_scale.in_force(step.policy);
        let averaged = step.overwrite_with_averages(&run.settings)?;
        let best = run.progress.best.weights.take();
        if let Some(best) = best.filter(|_| averaged || run.progress.is_behind_best()) {
            step.replicas.replace(&best)?;
            run.progress.history.restored_best = true;
            return Ok(());
        }
        run.progress.history.averaged_weights = averaged;
        Ok(())
    }
}

impl LoopState<'_, '_, '_> {
    /// Loss and metrics of the validation data, where this epoch is validated (`validation_freq`).
    fn validated(&self) -> Result<std::result::Result<Option<Evaluation>, Interrupted>> {
        let run = &*self.run;
        let is_validated = run.plan.validation_freq.includes(run.progress.epoch);
        let Some(data) = run.data.validation.as_ref().filter(|_| is_validated) else {
            return Ok(Ok(None));
        };
        let measures = Measures {
            loss: run.settings.loss,
            metrics: &run.settings.compiled.metrics,
            classes: self.lease.files.classes(),
            task: self.lease.files.task(),
            precision: self.lease.step.policy.precision(),
        };
        let report = |done: usize| run.observer.validated(run.number, done, data.len());
        // Between two averages of a local SGD run the replicas differ: their average is measured.
        let replicas = self.lease.settled()?;
        match evaluate_batches(&replicas, data, run.part_size(), measures, &report) {
            Err(problem) if interrupt::is_interruption(&problem) => Ok(Err(Interrupted)),
            validation => validation.map(|mut it| {
                let head = Head::of(
                    &*self.lease.files,
                    replicas.first(),
                    Some(run.settings.loss),
                );
                it.predictions.label_names = head.label_names(&*self.lease.files);
                Ok(Some(it))
            }),
        }
    }

    /// Whether the epoch is the best so far, by what is monitored.
    fn compare(&mut self, record: &EpochRecord) -> Result<bool> {
        let known = &self.run.settings.compiled.metrics;
        let (value, min_delta, keep) = match &self.run.plan.stopping {
            Some(it) => (it.monitor.value(record, known), it.min_delta, it.restore),
            None => (Monitor::default().value(record, known), 0.0, false),
        };
        (self.run.progress).compare(self.lease, value, min_delta, keep)
    }
}

//! Between two epochs of a run: validation, comparison with the best epoch, checkpoint, callbacks; and the weights
//! that the run leaves.

use std::ops::ControlFlow;

use stratoscope_diagnostics::Result;

use crate::callbacks::{Flow, Monitor};
use crate::context::events::EpochEnded;
use crate::context::interrupt;
use crate::context::warnings::notice;
use crate::metric::own;
use crate::report::history::{EpochRecord, Evaluation};
use crate::run::epochs::Drive;
use crate::run::watch::EpochOf;
use crate::step::LossSum;
use crate::step::evaluation::{Measures, evaluate_batches, measured};
use crate::step::head::Head;

/// A validation that was interrupted; the run goes on with the whole validation.
struct Interrupted;

impl Drive<'_, '_, '_> {
    /// Validates, compares, saves, and reports the epoch. Breaks if it was interrupted in the validation: then the epoch
    /// has not ended. After an error behind the validation the run goes on with the next epoch.
    pub(super) fn end_epoch(&mut self) -> Result<ControlFlow<()>> {
        let epoch = self.run.progress.epoch;
        self.lease.step.gather()?;
        let validation = match self.validated()? {
            Ok(validation) => validation,
            Err(Interrupted) => return Ok(ControlFlow::Break(())),
        };
        let step = &self.lease.step;
        let Some(counted) = step.tallies.as_ref().map(|tallies| tallies.read()) else {
            self.run.progress.history.stopped_early = true;
            return Ok(ControlFlow::Continue(()));
        };
        let steps = step.steps;
        let progress = &mut self.run.progress;
        let LossSum { examples, .. } = progress.epoch_loss;
        let record = EpochRecord {
            epoch,
            loss: progress.epoch_loss.mean(),
            metrics: measured(&self.run.settings.compiled.metrics, &counted),
            validation,
            learning_rate: progress.last_rate,
            seconds: progress.epoch_seconds,
            sequences_per_second: examples as f64 / progress.epoch_seconds,
        };
        let failures = own::failures(&self.run.settings.compiled.metrics);
        failures.into_iter().try_for_each(notice)?;
        let best = self.compare(&record)?;
        let progress = &mut self.run.progress;
        let asked_before = progress.stops;
        progress.history.epochs.push(record.clone());
        progress.next_epoch();
        let patience = (self.run.plan.stopping.as_ref()).map(|stopping| stopping.patience);
        // Of the first epoch nothing is better yet, and where its value is undefined it is not the best one.
        let is_first = progress.history.epochs.len() == 1;
        let stops = patience.is_some_and(|it| progress.epochs_without_better >= it && !is_first);
        progress.history.stopped_early = stops || asked_before;
        self.save(best)?;
        self.run.observer.epoch_ended(&EpochEnded {
            run: self.run.number,
            record: record.clone(),
            batches: self.run.batch_plan.batches(epoch),
            best,
        });
        self.run.progress.watch.epoch(&EpochOf {
            epoch,
            is_last: epoch + 1 == self.run.plan.epochs || asked_before,
            steps,
            training: &counted,
            training_loss: record.loss,
            validation: record.validation.as_ref(),
            label_names: &self.run.data.label_names,
            optimizer: self.run.settings.compiled.optimizer.name,
            pretrained: self.lease.files.source().is_some(),
        })?;
        // All callbacks are called, whoever stopped the run.
        let callbacks = &mut self.run.callbacks;
        let asked = self.lease.lent(|| callbacks.epoch_ended(&record));
        self.run.progress.history.stopped_early |= asked == Flow::Stop;
        Ok(ControlFlow::Continue(()))
    }

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

    /// Writes the weights to the folder of `checkpoint`.
    fn save(&mut self, best: bool) -> Result<()> {
        let Some(folder) = &self.run.plan.checkpoint else {
            return Ok(());
        };
        if self
            .run
            .keeping
            .as_ref()
            .is_some_and(|it| it.checkpoints.are_stopped())
        {
            return Ok(());
        }
        let replicas = self.lease.settled()?;
        let (network, files) = (replicas.first(), &*self.lease.files);
        // Its complete checkpoints have all that such a model has.
        if !network.can_be_saved() {
            return Ok(());
        }
        let written = Some(folder.display().to_string());
        if self.run.is_replayed {
            // It was written the first time; by now the folder has what later epochs have written.
            self.run.progress.history.checkpoint = written;
            return Ok(());
        }
        let all = [("last", true), ("best", best)].into_iter();
        for (name, _) in all.filter(|(_, is_due)| *is_due) {
            match (
                network.save(files, &folder.join(name)),
                &mut self.run.keeping,
            ) {
                (Ok(_), _) => {}
                // With complete checkpoints a full disk ends the writing and not the run.
                (Err(problem), Some(keeping)) => {
                    keeping
                        .checkpoints
                        .stop(self.lease.step.steps, problem.message.clone())?;
                    return Ok(());
                }
                (Err(problem), None) => return Err(problem),
            }
        }
        self.run.progress.history.checkpoint = written;
        Ok(())
    }

    /// The weights that the run leaves: their moving averages, where the optimizer keeps them (`use_ema`); or those of
    /// the best epoch, if early stopping kept them.
    pub(super) fn leave_weights(&mut self) -> Result<()> {
        let (step, progress) = (&mut self.lease.step, &mut self.run.progress);
        step.average_parameters()?;
        step.compare_workers(true)?;
        progress.history.loss_scale = step.loss_scale.in_force(step.policy);
        let averaged = step.overwrite_with_averages(&self.run.settings)?;
        let best = progress.best.take();
        if let Some(best) = best.filter(|_| averaged || progress.is_behind_best()) {
            step.replicas.replace(&best)?;
            progress.history.restored_best = true;
            return Ok(());
        }
        progress.history.averaged_weights = averaged;
        Ok(())
    }
}

//! Between two epochs of a run: validation, comparison with the best epoch, checkpoint, callbacks; and the weights
//! that the run leaves.

use stratoscope_diagnostics::Result;

use crate::callbacks::{Flow, Monitor};
use crate::context::events::EpochEnded;
use crate::context::interrupt;
use crate::network::{Files, Network};
use crate::report::history::{EpochRecord, Evaluation};
use crate::run::epochs::{Listeners, Run};
use crate::run::watch::EpochOf;
use crate::step::LossSum;
use crate::step::evaluation::{Measures, evaluate_batches, measured};

/// A validation that was interrupted; the run goes on with the whole validation.
struct Interrupted;

impl<N: Network> Run<'_, '_, '_, N> {
    /// Validates, compares, saves, and reports the epoch; returns whether the run stops with it.
    pub(super) fn end_epoch(&mut self) -> Result<bool> {
        let epoch = self.progress.epoch;
        let validation = match self.validated()? {
            Ok(validation) => validation,
            Err(Interrupted) => {
                self.progress.history.interrupted = true;
                return Ok(false);
            }
        };
        let step = &self.lease.step;
        let Some(counted) = step.tallies.as_ref().map(|tallies| tallies.read()) else {
            return Ok(true);
        };
        let steps = step.steps;
        let LossSum { examples, .. } = self.progress.epoch_loss;
        let record = EpochRecord {
            epoch,
            loss: self.progress.epoch_loss.mean(),
            metrics: measured(&self.settings.compiled.metrics, &counted),
            validation,
            learning_rate: self.progress.last_rate,
            seconds: self.progress.epoch_seconds,
            sequences_per_second: examples as f64 / self.progress.epoch_seconds,
        };
        let best = self.compare(&record)?;
        self.progress.history.epochs.push(record.clone());
        self.save(best)?;
        self.listeners.observer.epoch_ended(&EpochEnded {
            run: self.listeners.run,
            record: record.clone(),
            best,
        });
        self.progress.watch.epoch(&EpochOf {
            epoch,
            is_last: epoch + 1 == self.plan.epochs || self.progress.stops,
            steps,
            training: &counted,
            training_loss: record.loss,
            validation: record.validation.as_ref(),
            label_names: &self.data.label_names,
            optimizer: self.settings.compiled.optimizer.name,
            pretrained: self.lease.files.source().is_some(),
        })?;
        self.progress.next_epoch();
        let patience = (self.plan.stopping.as_ref()).map(|stopping| stopping.patience);
        let stops = patience.is_some_and(|it| self.progress.epochs_without_better >= it);
        // All callbacks are called, whoever stopped the run.
        let callbacks = &mut *self.listeners.callbacks;
        let asked = self.lease.lent(|| callbacks.epoch_ended(&record));
        Ok(stops || self.progress.stops || asked == Flow::Stop)
    }

    /// Loss and metrics of the validation data, where this epoch is validated (`validation_freq`).
    fn validated(&self) -> Result<std::result::Result<Option<Evaluation>, Interrupted>> {
        let is_validated = self.plan.validation_freq.includes(self.progress.epoch);
        let Some(data) = self.data.validation.as_ref().filter(|_| is_validated) else {
            return Ok(Ok(None));
        };
        let measures = Measures {
            loss: self.settings.loss,
            metrics: &self.settings.compiled.metrics,
            classes: self.lease.files.classes(),
            precision: self.lease.step.policy.precision(),
        };
        let Listeners { run, observer, .. } = self.listeners;
        let report = |done: usize| observer.validated(run, done, data.len());
        // Between two averages of a local SGD run the replicas differ: their average is measured.
        let replicas = self.lease.settled()?;
        match evaluate_batches(&replicas, data, self.plan.batch_size, measures, &report) {
            Err(problem) if interrupt::is_interruption(&problem) => Ok(Err(Interrupted)),
            validation => validation.map(|it| Ok(Some(it))),
        }
    }

    /// Whether the epoch is the best so far, by what is monitored.
    fn compare(&mut self, record: &EpochRecord) -> Result<bool> {
        let (value, min_delta, keep) = match &self.plan.stopping {
            Some(it) => (it.monitor.value(record), it.min_delta, it.restore),
            None => (Monitor::default().value(record), 0.0, false),
        };
        self.progress.compare(self.lease, value, min_delta, keep)
    }

    /// Writes the weights to the folder of `checkpoint`.
    fn save(&mut self, best: bool) -> Result<()> {
        let Some(folder) = &self.plan.checkpoint else {
            return Ok(());
        };
        let replicas = self.lease.settled()?;
        let (network, files) = (replicas.first(), &self.lease.files);
        network.save(files, &folder.join("last"))?;
        if best {
            network.save(files, &folder.join("best"))?;
        }
        self.progress.history.checkpoint = Some(folder.display().to_string());
        Ok(())
    }

    /// The weights that the run leaves: their moving averages, where the optimizer keeps them (`use_ema`); or those of
    /// the best epoch, if early stopping kept them.
    pub(super) fn leave_weights(&mut self) -> Result<()> {
        let (step, progress) = (&mut self.lease.step, &mut *self.progress);
        step.average_parameters()?;
        progress.history.loss_scale = step.loss_scale.in_force(step.policy);
        let averaged = step.overwrite_with_averages(&self.settings)?;
        let best = progress.best.take();
        if let Some(best) = best.filter(|_| averaged || progress.epochs_without_better > 0) {
            step.replicas.replace(&best)?;
            progress.history.restored_best = true;
            return Ok(());
        }
        progress.history.averaged_weights = averaged;
        Ok(())
    }
}

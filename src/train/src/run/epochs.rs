//! The loop of `fit!`: epoch → execution → batch → optimizer step.
//!
//! One optimizer step, whatever the number of replicas and micro-batches, is made from the mean of the
//! gradients over all examples of its batches: each replica divides its sums by its own number of
//! examples of the whole step, the all-reduce weighs replicas by that number.
//!
//! Callbacks hear of executions. Progress is told several times a second, and an interrupt is heard after
//! every batch, however many an execution has: it ends there and is counted as what it was. All that a run
//! needs to go on is in `Progress`.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use burn::module::ParamId;
use stratoscope_data::{Batch, Prefetch};
use stratoscope_diagnostics::Result;

use crate::arguments::FitPlan;
use crate::callbacks::{Callbacks, Flow, Monitor};
use crate::context::events::{Advanced, EpochEnded, ExecutionEnded, Observer};
use crate::context::interrupt;
use crate::model::evaluate::{Answer, Asked, PREFETCHED, measured, on_replicas, tally};
use crate::network::{Files, Network};
use crate::report::counters::Shape;
use crate::report::history::{EpochRecord, Evaluation, StepRecord};
use crate::run::lease::Lease;
use crate::run::pace::Pace;
use crate::run::progress::{Execution, LossSum, Prepared, Progress};
use crate::run::watch::{self, EpochOf, gradients_are_finite, weights_are_finite};
use crate::step::Trainer;

/// How often progress is told within an execution, at most.
const PERIOD: Duration = Duration::from_millis(100);

/// Who hears of a run.
pub(crate) struct Listeners<'l, 'a> {
    pub run: u64,
    pub observer: &'l dyn Observer,
    pub callbacks: &'l mut Callbacks<'a>,
}

/// A run that is going on.
pub(crate) struct Run<'r, 'm, 'a, N: Network> {
    pub lease: &'r mut Lease<'m, N>,
    pub plan: &'r FitPlan<'a>,
    pub data: &'r Prepared,
    pub shape: Shape,
    pub undecayed: Arc<HashSet<ParamId>>,
    pub progress: &'r mut Progress<N>,
    pub listeners: Listeners<'r, 'a>,
    pub pace: Pace,
    /// When the latest batch ended, or the epoch began.
    pub batch_ended: Option<Instant>,
    /// When progress was told last.
    pub told: Option<Instant>,
}

impl<N: Network> Run<'_, '_, '_, N> {
    /// The run, epoch by epoch. Returns when all are over, when it was interrupted
    /// (`history.interrupted`), or when it stopped early.
    pub(crate) fn all(&mut self) -> Result<()> {
        while self.progress.epoch < self.plan.epochs {
            if !self.progress.epoch_begun {
                self.begin_epoch();
            }
            if !self.progress.stops {
                self.batches()?;
            }
            if self.progress.history.interrupted {
                return Ok(());
            }
            let stops = self.end_epoch()?;
            if self.progress.history.interrupted {
                return Ok(());
            }
            if stops {
                self.progress.history.stopped_early = true;
                break;
            }
        }
        let mut trainer = Trainer::of(self.lease, &self.undecayed, "fit")?;
        self.progress.leave_weights(&mut trainer)
    }

    fn begin_epoch(&mut self) {
        // Here and not at the end: between runs, what was counted last can be looked at.
        let classes = self.lease.files.classes();
        if let Some(compiled) = &mut self.lease.compiled {
            let empty = tally(classes, compiled.loss, &compiled.metrics);
            compiled.tallies = compiled.tallies.emptied(empty);
        }
        let (epoch, callbacks) = (self.progress.epoch, &mut *self.listeners.callbacks);
        self.lease.lent(|| callbacks.epoch_begins(epoch));
        self.progress.epoch_begun = true;
    }

    /// What is left of the epoch's batches.
    fn batches(&mut self) -> Result<()> {
        let order = match self.plan.shuffle {
            true => (self.data.train).shuffle(self.plan.seed, self.progress.epoch),
            false => self.data.train.clone(),
        };
        let done = self.progress.batch;
        let rest = order.batch(self.plan.batch_size)?.skip(done as usize);
        let mut batches = Prefetch::new(rest, PREFETCHED);
        self.batch_ended = Some(Instant::now());
        for execution in self.shape.executions(done) {
            self.execution(execution, &mut batches)?;
            if self.progress.history.interrupted || self.progress.stops {
                break;
            }
        }
        Ok(())
    }

    fn execution(&mut self, range: Range<u64>, batches: &mut Prefetch<Batch>) -> Result<()> {
        let begun = Instant::now();
        let mut execution = self.progress.execution(range.start);
        for index in range.clone() {
            let Some(batch) = batches.next() else { break };
            let is_last = index + 1 == range.end;
            let is_done = self.batch(index, &batch, is_last, &mut execution)?;
            if !is_done || interrupt::requested() {
                self.progress.history.interrupted = true;
                break;
            }
            if !is_last && self.told.is_none_or(|told| told.elapsed() >= PERIOD) {
                self.tell_progress(execution.learning_rate);
            }
        }
        // One that was given up in its first batch has not been.
        match execution.batches {
            0 => Ok(()),
            _ => self.back_on_the_host(execution, begun),
        }
    }

    /// A batch, and an optimizer step if it is the last one of its group. `false` if it was given up: then
    /// nothing has changed.
    fn batch(
        &mut self,
        index: u64,
        batch: &Batch,
        is_last: bool,
        execution: &mut Execution,
    ) -> Result<bool> {
        let group = self.shape.group(index);
        let (size, replicas) = (self.plan.batch_size, self.lease.replicas.len());
        let shares = self.data.shares(group.clone(), size, replicas);
        let stop = interrupt::after_patience();
        let trainer = Trainer::of(self.lease, &self.undecayed, "fit")?;

        // Forward and backward on every replica; the gradients stay there and add up.
        let seed = self.plan.seed;
        let done = trainer.forward_and_backward(batch, &shares, seed, self.progress, &stop)?;
        let Some(answers) = done else {
            return Ok(false);
        };
        self.answered(batch, &answers, execution)?;
        self.progress.batch = index + 1;
        self.progress.batches_of_run += 1;
        self.progress.history.counters.batches += 1;
        execution.batches += 1;

        // Inside a group of micro-batches nothing is exchanged and nothing is updated.
        if index + 1 == group.end {
            self.step(batch, &shares, is_last, execution)?;
        }
        let now = Instant::now();
        if let Some(before) = self.batch_ended.replace(now) {
            self.pace.batch((now - before).as_secs_f64());
        }
        Ok(true)
    }

    /// Looks at what the replicas answered, and counts it.
    fn answered(
        &mut self,
        batch: &Batch,
        answers: &[(Batch, Answer)],
        execution: &mut Execution,
    ) -> Result<()> {
        let loss: f64 = answers.iter().map(|(_, answer)| answer.loss).sum();
        let total_steps = self.total_steps();
        let trainer = Trainer::of(self.lease, &self.undecayed, "fit")?;
        if !loss.is_finite() {
            let rate = trainer.rate(self.progress.steps, total_steps);
            let moment = self.progress.moment(rate, &batch.rows);
            let spoilt = watch::spoilt_weight(trainer.replicas.first());
            return Err(moment.not_finite("loss", loss, spoilt.map(|it| it.name)));
        }
        let compiled = trainer.compiled;
        let network = trainer.replicas.first();
        (self.progress.watch).outputs(network, compiled.loss, answers)?;
        let parts = answers.iter().map(|(part, _)| (part.size(), part.seq));
        compiled.last_batch = parts.collect();
        // Replicas that sit a batch out are the last ones.
        for (replica, (part, answer)) in answers.iter().enumerate() {
            (compiled.tallies).add(replica, &part.labels, &answer.outputs);
        }
        execution.loss.add(loss, batch.size());
        self.progress.since_step.add(loss, batch.size());
        self.progress.of_epoch.add(loss, batch.size());
        Ok(())
    }

    /// The mean over the replicas, or each replica's own; clipping by its norm, the update.
    fn step(
        &mut self,
        batch: &Batch,
        shares: &[usize],
        is_last: bool,
        execution: &mut Execution,
    ) -> Result<()> {
        let total_steps = self.total_steps();
        let mut trainer = Trainer::of(self.lease, &self.undecayed, "fit")?;
        let progress = &mut *self.progress;
        let loss = std::mem::take(&mut progress.since_step).mean();
        let exchanged = trainer.exchange(progress, shares)?;
        if trainer.skips(&exchanged, progress) {
            return Ok(());
        }
        let norm = exchanged.norm();
        let rate = trainer.rate(progress.steps, total_steps);
        let network = trainer.replicas.structure();
        let checked = exchanged.gradients.iter().zip(&exchanged.norms);
        let mut checked = checked.map(|(one, &norm)| gradients_are_finite(network, one, norm));
        if let Some(it) = checked.find_map(std::result::Result::err) {
            let moment = progress.moment(rate, &batch.rows);
            return Err(moment.not_finite("gradient", it.value, Some(it.name)));
        }
        execution.optimizer_steps += trainer.step(exchanged, rate, is_last, progress)?;
        progress.history.steps.push(StepRecord {
            step: progress.steps,
            loss,
            learning_rate: rate,
        });
        progress.last_norm = Some(norm);
        progress.watch.rate(rate);
        execution.learning_rate = Some(rate);
        execution.gradient_norm = Some(norm);
        self.lease.has_learnt = true;
        Ok(())
    }

    /// Once per execution, as callbacks in Keras.
    fn back_on_the_host(&mut self, execution: Execution, begun: Instant) -> Result<()> {
        let stored = self.lease.replicas.modules();
        // One full copy of the variables: a module, or the shards of all servers.
        let mut one_copy = stored
            .iter()
            .take(stored.len() / self.lease.replicas.copies());
        if one_copy.any(|one| weights_are_finite(one).is_err())
            && let Err(it) = weights_are_finite(self.lease.replicas.first())
        {
            let moment = self.progress.moment(self.progress.last_rate, &[]);
            return Err(moment.not_finite("weight", it.value, Some(it.name)));
        }
        let seconds = begun.elapsed().as_secs_f64();
        let next_rate = self.next_rate()?;
        let progress = &mut *self.progress;
        progress.history.counters.executions += 1;
        progress.epoch_seconds += seconds;
        let record = execution.finished(progress.steps, next_rate, seconds);
        progress.last_rate = record.learning_rate;
        progress.last_loss = Some(record.loss);
        progress.history.executions.push(record.clone());
        let callbacks = &mut *self.listeners.callbacks;
        if !callbacks.is_empty() {
            let flow = self.lease.lent(|| callbacks.batches_ended(&record));
            progress.stops |= flow == Flow::Stop;
        }
        let counters = progress.history.counters;
        self.tell_progress(Some(record.learning_rate));
        let run = self.listeners.run;
        self.listeners.observer.execution_ended(&ExecutionEnded {
            run,
            record,
            counters,
        });
        Ok(())
    }

    fn tell_progress(&mut self, learning_rate: Option<f64>) {
        self.told = Some(Instant::now());
        let Some(compiled) = &self.lease.compiled else {
            return;
        };
        let progress = &*self.progress;
        let of_epoch = self.shape.batches_per_epoch;
        let left = (self.plan.epochs - progress.epoch) * of_epoch - progress.batch;
        self.listeners.observer.advanced(&Advanced {
            run: self.listeners.run,
            epoch: progress.epoch,
            batches: progress.batch,
            epoch_loss: progress.of_epoch.mean(),
            epoch_metrics: measured(&compiled.metrics, &compiled.tallies.read()),
            learning_rate: learning_rate.unwrap_or(progress.last_rate),
            counters: progress.history.counters,
            sequences_per_second: self.pace.speed(self.plan.batch_size),
            seconds_left: self.pace.seconds_for(left),
        });
    }

    /// Validates, compares, saves, and tells of the epoch; whether the run stops with it.
    fn end_epoch(&mut self) -> Result<bool> {
        let epoch = self.progress.epoch;
        let validation = match self.validated()? {
            Ok(validation) => validation,
            Err(Interrupted) => {
                self.progress.history.interrupted = true;
                return Ok(false);
            }
        };
        let Some(compiled) = &self.lease.compiled else {
            return Ok(true);
        };
        let counted = compiled.tallies.read();
        let LossSum { examples, .. } = self.progress.of_epoch;
        let record = EpochRecord {
            epoch,
            loss: self.progress.of_epoch.mean(),
            metrics: measured(&compiled.metrics, &counted),
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
        let compiled = self.lease.compiled.as_ref();
        let optimizer = compiled.map_or("", |compiled| compiled.optimizer.name);
        self.progress.watch.epoch(&EpochOf {
            epoch,
            is_last: epoch + 1 == self.plan.epochs || self.progress.stops,
            steps: self.progress.steps,
            training: &counted,
            training_loss: record.loss,
            validation: record.validation.as_ref(),
            label_names: &self.data.label_names,
            optimizer,
            pretrained: self.lease.files.source().is_some(),
        })?;
        self.progress.next_epoch();
        let patience = self
            .plan
            .stopping
            .as_ref()
            .map(|stopping| stopping.patience);
        let stops = patience.is_some_and(|it| self.progress.epochs_without_better >= it);
        // All are called, whoever stopped it.
        let callbacks = &mut *self.listeners.callbacks;
        let asked = self.lease.lent(|| callbacks.epoch_ended(&record));
        Ok(stops || self.progress.stops || asked == Flow::Stop)
    }

    /// Loss and metrics of the validation data, where this epoch is to be validated. An interrupt ends it
    /// without any; the run then goes on with the whole validation.
    fn validated(&self) -> Result<std::result::Result<Option<Evaluation>, Interrupted>> {
        let is_validated = self.plan.validation_freq.includes(self.progress.epoch);
        let Some(data) = self.data.validation.as_ref().filter(|_| is_validated) else {
            return Ok(Ok(None));
        };
        let Some((loss, compiled)) =
            (self.lease.compiled.as_ref()).and_then(|it| Some((it.loss?, it)))
        else {
            return Ok(Ok(None));
        };
        let asked = Asked {
            loss,
            metrics: &compiled.metrics,
            classes: self.lease.files.classes(),
            precision: self.lease.policy.precision(),
        };
        let Listeners { run, observer, .. } = self.listeners;
        let tell = |done: usize| observer.validated(run, done, data.len());
        // Between two averages the replicas differ: what is measured is their average.
        let replicas = self.lease.settled()?;
        match on_replicas(&replicas, data, self.plan.batch_size, asked, &tell) {
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

    fn total_steps(&self) -> u64 {
        self.shape.counters(self.plan.epochs).optimizer_steps
    }

    /// The rate of the optimizer step that comes next.
    fn next_rate(&mut self) -> Result<f64> {
        let total_steps = self.total_steps();
        let trainer = Trainer::of(self.lease, &self.undecayed, "fit")?;
        Ok(trainer.rate(self.progress.steps, total_steps))
    }
}

/// What has one whole result was interrupted.
struct Interrupted;

//! `fit!(model, data, …)`: epoch → execution → batch → optimizer step, in `train`.
//!
//! Who owns what: the data set owns labels and order, the plan (`FitPlan`) all numbers of the run,
//! `Compiled` optimizer, loss, metrics and the two group sizes, `Replicas` the weights. `Progress` is
//! all that a run needs to go on after an interrupt; `trainer` has the parts of a step.
//!
//! One optimizer step, whatever the number of replicas and micro-batches, is made from the mean of the
//! gradients over all examples of its batches: each replica divides its sums by its own number of
//! examples of the whole step, the all-reduce weighs replicas by that number.

use std::sync::Arc;
use std::time::Instant;

use stratoscope_data::{Dataset, Encoded, Label, Prefetch};
use stratoscope_diagnostics::rules::{CallbackPerExecution, NoLoss, NotCompiled};
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_strategy::Origin;

use crate::args::{FitArgs, FitPlan, Validation};
use crate::callbacks::{Callbacks, Flow, Monitor};
use crate::class_weight::{ClassWeights, without_classes};
use crate::counters::Shape;
use crate::evaluate::{PREFETCHED, measured, tally};
use crate::events::{
    EpochEnded, ExecutionEnded, FitStarted, Observer, next_run, observer_of_a_run,
};
use crate::history::{EpochRecord, History, StepRecord};
use crate::interrupt;
use crate::model::{Model, State};
use crate::network::{Files, Network};
use crate::optimizer::OptimizerState;
use crate::problem;
use crate::receipt::names;
use crate::run::{Prepared, Progress, SavedRun, Signature};
use crate::trainer::{self, Trainer};
use crate::warnings::{self, notice};
use crate::watch::{self, Before, EpochOf, gradients_are_finite, weights_are_finite};

impl<N: Network> Model<N> {
    /// Trains the model on a data set.
    ///
    /// An interrupt ends it after the current optimizer step, with what was measured so far;
    /// `resume` goes on from there.
    ///
    /// # Errors
    /// SC0112 for a model that was not compiled, SC0113 without a loss, SC0121 in a callback of the
    /// model's own run; what is wrong with arguments or data, before the first step; SC0505 at the first loss or gradient that is not finite, before
    /// the update, and at the first such weight after it; SC0907 if a device fails.
    #[track_caller]
    pub fn fit(&self, data: &Dataset, args: FitArgs<'_>) -> Result<History> {
        (N::calls().fit)(self, data, args, Origin::current())
    }

    pub(crate) fn fit_from(
        &self,
        data: &Dataset,
        args: FitArgs<'_>,
        origin: Origin,
    ) -> Result<History> {
        warnings::begin_call();
        let mut plan = args.resolve()?;
        let mut state = self.free_state("fit")?;
        check_compiled(&state, &plan)?;
        state.ready_for(data, "fit", origin.clone())?;
        if let Validation::Data(validation) = plan.validation {
            state.ready_for(validation, "fit", origin)?;
        }
        let dataset = data;
        let data = Prepared::of(&mut state, data, &plan)?;
        let before = Before {
            dataset,
            data: &data,
            batch_size: plan.batch_size,
            batches_per_epoch: data.epoch_examples.div_ceil(plan.batch_size) as u64,
            epochs: plan.epochs,
        };
        if !(plan.resume && state.saved_run.is_some()) {
            before.check(&state)?;
        }
        let rates = state.compiled.as_ref().map(|it| before.rates(it));
        let state = &mut *state;
        let Some(compiled) = &mut state.compiled else {
            return Err(NotCompiled {
                call: "fit".to_owned(),
            }
            .error());
        };
        let shape = Shape {
            batches_per_epoch: data.epoch_examples.div_ceil(plan.batch_size) as u64,
            steps_per_execution: compiled.steps_per_execution,
            gradient_accumulation_steps: compiled.gradient_accumulation_steps,
            replicas: state.replicas.len() as u64,
            exchange: trainer::exchange(
                &state.replicas,
                compiled,
                data.largest_batches(plan.batch_size, compiled.gradient_accumulation_steps),
            ),
        };
        // A panic in a step, of a GPU that has no memory left, has taken the moments with it.
        compiled
            .states
            .resize_with(state.replicas.keepers().len(), OptimizerState::default);
        let signature = Signature::of(&plan, &data, &shape);
        let devices = match state.replicas.strategy() {
            Some(strategy) => strategy.devices_in_words(),
            None => state.replicas.devices()[0].name.clone(),
        };
        let classes = state.files.classes();
        if plan.resume
            && let Some(saved) = &state.saved_run
        {
            saved.check(&signature)?;
        }
        let mut progress = match state.saved_run.take() {
            Some(saved) if plan.resume => saved.progress,
            _ => Progress::new(devices.clone()).beginning_with(plan.initial_epoch, &shape),
        };
        progress.class_weights = class_weights(&plan, &state.files, &data.train)?;
        if let Some(stopping) = &plan.stopping {
            progress.history.best_by = stopping.monitor.words().to_owned();
        }
        tell_of_batches(&plan, &shape)?;
        let observer = observer_of_a_run(plan.verbose);
        let run = next_run();
        let started = FitStarted {
            run,
            epochs: plan.epochs,
            batches_per_epoch: shape.batches_per_epoch,
            batch_size: plan.batch_size,
            examples: data.train.len(),
            validation_examples: data.validation.as_ref().map_or(0, Encoded::len),
            devices,
            rates: rates.map(|rates| rates.to_string()).unwrap_or_default(),
            metrics: names(&compiled.metrics),
            planned: shape.counters(plan.epochs - plan.initial_epoch),
            counters: progress.history.counters,
        };
        observer.fit_started(&started);
        let mut callbacks = std::mem::take(&mut plan.callbacks);
        callbacks.train_begins(&started);
        let mut trainer = Trainer {
            replicas: &mut state.replicas,
            compiled,
            gradient_bytes: &mut state.gradient_bytes,
            undecayed: Arc::new(data.undecayed.clone()),
            classes,
            policy: state.policy,
        };
        let outcome = train(
            &mut trainer,
            &plan,
            &data,
            &shape,
            &mut progress,
            &state.files,
            &mut Listeners {
                run,
                observer: &*observer,
                callbacks: &mut callbacks,
            },
        );
        // Replicas that step alone are equal again, whatever ended the run.
        let outcome = outcome.and(trainer.synchronise(&mut progress));
        if let Err(problem) = outcome {
            observer.fit_failed(run);
            return Err(problem);
        }
        let history = progress.history.clone();
        if history.interrupted {
            progress.history.interrupted = false;
            state.saved_run = Some(SavedRun {
                progress,
                signature,
            });
        }
        state.has_learnt |= history.counters.optimizer_steps > 0;
        state.enter_in_ledger();
        observer.fit_ended(run, &history);
        callbacks.train_ended(&history);
        Ok(history)
    }
}

/// The run, epoch by epoch. Returns when all are over, when it was interrupted
/// (`history.interrupted`), or when it stopped early.
fn train<N: Network>(
    trainer: &mut Trainer<'_, N>,
    plan: &FitPlan<'_>,
    data: &Prepared,
    shape: &Shape,
    progress: &mut Progress<N>,
    files: &N::Files,
    listeners: &mut Listeners<'_, '_>,
) -> Result<()> {
    let (run, observer) = (listeners.run, listeners.observer);
    let total_steps = shape.counters(plan.epochs).optimizer_steps;
    while progress.epoch < plan.epochs {
        let epoch = progress.epoch;
        let mut flow = Flow::Continue;
        if progress.batch == 0 {
            // Here and not at the end: between runs, what was counted last can be looked at.
            let compiled = &mut *trainer.compiled;
            let empty = tally(trainer.classes, compiled.loss, &compiled.metrics);
            compiled.tallies = compiled.tallies.emptied(empty);
            listeners.callbacks.epoch_begins(epoch);
        }
        let order = match plan.shuffle {
            true => data.train.shuffle(plan.seed, epoch),
            false => data.train.clone(),
        };
        let rest = order.batch(plan.batch_size)?.skip(progress.batch as usize);
        let mut batches = Prefetch::new(rest, PREFETCHED);

        for execution in shape.executions(progress.batch) {
            let start = Instant::now();
            let mut record = progress.execution(execution.start);
            let (mut loss_sum, mut examples) = (0.0, 0);
            for index in execution.clone() {
                let Some(batch) = batches.next() else { break };
                let group = shape.group(index);

                // Forward and backward on every replica; the gradients stay there and add up.
                let shares = data.shares(group.clone(), plan.batch_size, trainer.replicas.len());
                let answers = trainer.forward_and_backward(&batch, &shares, plan.seed, progress)?;
                let loss: f64 = answers.iter().map(|(_, answer)| answer.loss).sum();
                if !loss.is_finite() {
                    let rate = trainer.rate(progress.steps, total_steps);
                    let moment = progress.moment(rate, &batch.rows);
                    let spoilt = watch::spoilt_weight(trainer.replicas.first());
                    return Err(moment.not_finite("loss", loss, spoilt.map(|it| it.name)));
                }
                let network = trainer.replicas.first();
                progress
                    .watch
                    .outputs(network, trainer.compiled.loss, &answers)?;
                let parts = answers.iter().map(|(part, _)| (part.size(), part.seq));
                trainer.compiled.last_batch = parts.collect();
                // Replicas that sit a batch out are the last ones.
                for (replica, (part, answer)) in answers.iter().enumerate() {
                    let tallies = &mut trainer.compiled.tallies;
                    tallies.add(replica, &part.labels, &answer.outputs);
                }
                loss_sum += loss;
                examples += batch.size();
                progress.since_step.add(loss, batch.size());
                progress.batch = index + 1;
                progress.batches_of_run += 1;
                record.batches += 1;
                progress.history.counters.batches += 1;

                // Inside a group of micro-batches nothing is exchanged and nothing is updated.
                if index + 1 < group.end {
                    continue;
                }

                // The mean over the replicas, or each replica's own; clipping by its norm, the step.
                let exchanged = trainer.exchange(progress, &shares)?;
                let step_loss = progress.since_step.take_mean();
                if trainer.skips(&exchanged, progress) {
                    if interrupt::requested() {
                        progress.history.interrupted = true;
                        break;
                    }
                    continue;
                }
                let norm = exchanged.norm();
                let rate = trainer.rate(progress.steps, total_steps);
                let network = trainer.replicas.outline();
                let checked = exchanged.gradients.iter().zip(&exchanged.norms);
                let mut checked =
                    checked.map(|(one, &norm)| gradients_are_finite(network, one, norm));
                if let Some(it) = checked.find_map(std::result::Result::err) {
                    let moment = progress.moment(rate, &batch.rows);
                    return Err(moment.not_finite("gradient", it.value, Some(it.name)));
                }
                let last = index + 1 == execution.end;
                record.optimizer_steps += trainer.step(exchanged, rate, last, progress)?;
                progress.history.steps.push(StepRecord {
                    step: progress.steps,
                    loss: step_loss,
                    learning_rate: rate,
                });
                progress.last_norm = Some(norm);
                progress.watch.rate(rate);
                record.learning_rate = Some(rate);
                record.gradient_norm = Some(norm);
                if interrupt::requested() {
                    progress.history.interrupted = true;
                    break;
                }
            }

            // Back on the host: once per execution, as callbacks in Keras.
            let mut kept = trainer.replicas.one_copy().iter();
            if kept.any(|one| weights_are_finite(one).is_err())
                && let Err(it) = weights_are_finite(trainer.replicas.first())
            {
                let moment = progress.moment(progress.last_rate, &[]);
                return Err(moment.not_finite("weight", it.value, Some(it.name)));
            }
            progress.history.counters.executions += 1;
            progress.epoch_loss += loss_sum;
            progress.epoch_examples += examples;
            let seconds = start.elapsed().as_secs_f64();
            progress.epoch_seconds += seconds;
            let next_rate = trainer.rate(progress.steps, total_steps);
            let record = record.finished(
                progress.steps,
                loss_sum / examples as f64,
                next_rate,
                seconds,
            );
            progress.last_rate = record.learning_rate;
            progress.last_loss = Some(record.loss);
            progress.history.executions.push(record.clone());
            let speed = progress.epoch_examples as f64 / progress.epoch_seconds;
            let of_epoch = data.epoch_examples;
            let done = (progress.batch as usize * plan.batch_size).min(of_epoch);
            let left = (plan.epochs - epoch) as f64 * of_epoch as f64 - done as f64;
            flow = listeners.callbacks.batches_ended(&record);
            observer.execution_ended(&ExecutionEnded {
                run,
                record,
                epoch_loss: progress.epoch_loss / progress.epoch_examples as f64,
                epoch_metrics: measured(
                    &trainer.compiled.metrics,
                    &trainer.compiled.tallies.read(),
                ),
                counters: progress.history.counters,
                sequences_per_second: speed,
                seconds_left: left / speed,
            });
            if progress.history.interrupted {
                return Ok(());
            }
            if flow == Flow::Stop {
                break;
            }
        }

        let is_validated = plan.validation_freq.includes(epoch);
        let validation = match data.validation.as_ref().filter(|_| is_validated) {
            Some(validation) => Some(trainer.validate(validation, plan.batch_size)?),
            None => None,
        };
        let counted = trainer.compiled.tallies.read();
        let record = EpochRecord {
            epoch,
            loss: progress.epoch_loss / progress.epoch_examples as f64,
            metrics: measured(&trainer.compiled.metrics, &counted),
            validation,
            learning_rate: progress.last_rate,
            seconds: progress.epoch_seconds,
            sequences_per_second: progress.epoch_examples as f64 / progress.epoch_seconds,
        };
        let best = compare(trainer, plan, progress, &record)?;
        progress.history.epochs.push(record.clone());
        save(trainer, plan, progress, files, best)?;
        observer.epoch_ended(&EpochEnded {
            run,
            record: record.clone(),
            best,
        });
        progress.watch.epoch(&EpochOf {
            epoch,
            is_last: epoch + 1 == plan.epochs || flow == Flow::Stop,
            steps: progress.steps,
            training: &counted,
            training_loss: record.loss,
            validation: record.validation.as_ref(),
            label_names: &data.label_names,
            optimizer: trainer.compiled.optimizer.name,
            pretrained: files.source().is_some(),
        })?;
        progress.next_epoch();
        let patience = plan.stopping.as_ref().map(|stopping| stopping.patience);
        let stops = patience.is_some_and(|patience| progress.epochs_without_better >= patience);
        // All are called, whoever stopped it.
        let asked = listeners.callbacks.epoch_ended(&record);
        if stops || flow == Flow::Stop || asked == Flow::Stop {
            progress.history.stopped_early = true;
            break;
        }
    }
    progress.leave_weights(trainer)
}

/// Who hears of a run.
struct Listeners<'l, 'a> {
    run: u64,
    observer: &'l dyn Observer,
    callbacks: &'l mut Callbacks<'a>,
}

/// Whether the epoch is the best so far, by what is monitored.
fn compare<N: Network>(
    trainer: &Trainer<'_, N>,
    plan: &FitPlan<'_>,
    progress: &mut Progress<N>,
    record: &EpochRecord,
) -> Result<bool> {
    match &plan.stopping {
        Some(stopping) => {
            let value = stopping.monitor.value(record);
            progress.compare(trainer, value, stopping.min_delta, stopping.restore)
        }
        None => progress.compare(trainer, Monitor::default().value(record), 0.0, false),
    }
}

/// Writes the weights to the folder of `checkpoint`.
fn save<N: Network>(
    trainer: &Trainer<'_, N>,
    plan: &FitPlan<'_>,
    progress: &mut Progress<N>,
    files: &N::Files,
    best: bool,
) -> Result<()> {
    let Some(folder) = &plan.checkpoint else {
        return Ok(());
    };
    let network = trainer.whole()?;
    network.save(files, &folder.join("last"))?;
    if best {
        network.save(files, &folder.join("best"))?;
    }
    progress.history.checkpoint = Some(folder.display().to_string());
    Ok(())
}

/// The weights of the classes, in the order of the outputs.
fn class_weights(
    plan: &FitPlan<'_>,
    files: &impl Files,
    data: &Encoded,
) -> Result<Option<ClassWeights>> {
    let Some(written) = &plan.class_weight else {
        return Ok(None);
    };
    let names = match (files.classes(), files.binary_labels()) {
        (Some(_), _) => files.label_names().to_vec(),
        // One output that decides between two.
        (None, Some(names)) => names.to_vec(),
        (None, None) => return Err(without_classes()),
    };
    let mut counts = vec![0; names.len()];
    for example in (0..data.len()).filter_map(|position| data.get(position)) {
        let class = match example.label {
            Some(Label::Class(class)) => class,
            Some(Label::Value(value)) => value.round() as usize,
            None => continue,
        };
        if let Some(count) = counts.get_mut(class) {
            *count += 1;
        }
    }
    Ok(Some(written.resolve(&names, &counts)?))
}

/// SC0108: callbacks of batches, where an execution holds several.
///
/// # Errors
/// SC0108, where it is denied.
fn tell_of_batches(plan: &FitPlan<'_>, shape: &Shape) -> Result<()> {
    let rule = CallbackPerExecution {
        steps_per_execution: shape.steps_per_execution,
        batches_per_epoch: shape.batches_per_epoch,
        callbacks: plan.callbacks.of_batches(),
    };
    let several = shape.steps_per_execution > 1 && shape.batches_per_epoch > 1;
    match rule.callbacks > 0 && several {
        true => notice(rule.diagnostic()),
        false => Ok(()),
    }
}

fn check_compiled<N: Network>(state: &State<N>, plan: &FitPlan<'_>) -> Result<()> {
    if plan.checkpoint.is_some() && !state.replicas.first().can_be_saved() {
        let name = state.files.model_name();
        let told = problem::bad_value("fit", "checkpoint", "…", "a model that has files");
        let told = told.why(format!(
            "`{name}` has no files of Hugging Face's kind to be saved as"
        ));
        return Err(Box::new(told));
    }
    if let (Some(stopping), Some(compiled)) = (&plan.stopping, &state.compiled) {
        let is_validated = !matches!(plan.validation, Validation::None);
        stopping.check(&compiled.metrics, is_validated)?;
    }
    match &state.compiled {
        None => Err(NotCompiled {
            call: "fit".to_owned(),
        }
        .error()),
        Some(compiled) if compiled.loss.is_none() => Err(NoLoss.error()),
        Some(_) => Ok(()),
    }
}

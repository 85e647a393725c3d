//! `fit!(model, data, …)`: what a run needs is checked and made ready, the run is made (`epochs`), and what
//! it leaves is kept.
//!
//! Who owns what: the data set owns labels and order, the plan (`FitPlan`) all numbers of the run,
//! `Compiled` optimizer, loss, metrics and the two group sizes, `Replicas` the weights. `Progress` is
//! all that a run needs to go on after an interrupt; `epochs` has the loop, `trainer` the parts of a step.
//!
//! The run has the model's state until it ends, and lends it to its callbacks (`lease`).

use std::sync::Arc;

use stratoscope_data::{Dataset, Encoded, Label};
use stratoscope_diagnostics::rules::{CallbackPerExecution, NoLoss, NotCompiled};
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_strategy::{BackendKind, LogicalDevice, Origin};

use crate::arguments::class_weight::{ClassWeights, without_classes};
use crate::arguments::{FitArgs, FitPlan, Validation};
use crate::context::events::{FitStarted, next_run, observer_of_a_run};
use crate::context::interrupt::{self, Listening};
use crate::context::warnings::{begin_call, notice};
use crate::model::{Model, State};
use crate::network::{Files, Network};
use crate::optimizer::{Optimizer, OptimizerState, UpdateRule};
use crate::problem;
use crate::report::counters::Shape;
use crate::report::history::History;
use crate::report::receipt::names;
use crate::run::epochs::{Listeners, Run};
use crate::run::lease::Lease;
use crate::run::pace::Pace;
use crate::run::progress::{Prepared, Progress, SavedRun, Signature};
use crate::run::watch::Before;
use crate::schedule::RatePlan;
use crate::step::{Trainer, exchange};

impl<N: Network> Model<N> {
    /// Trains the model on a data set.
    ///
    /// An interrupt ends it after the current batch, or within one that takes longer than a second, with
    /// what was measured so far; `resume` goes on from there, and ends on the very weights that a run
    /// without an interrupt ends on. One that comes before the first batch leaves the model as it was.
    ///
    /// # Errors
    /// SC0112 for a model that was not compiled, SC0113 without a loss, SC0121 in a callback of the
    /// model's own run; what is wrong with arguments or data, before the first step; SC0505 at the first
    /// loss or gradient that is not finite, before the update, and at the first such weight after it;
    /// SC0907 if a device fails.
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
        begin_call();
        let _listening = Listening::begin();
        let mut plan = args.resolve()?;
        let mut lease = self.lease("fit")?;
        check_compiled(&lease, &plan)?;
        let ready = match ready(&mut lease, data, &plan, origin) {
            Err(problem) if interrupt::is_interruption(&problem) => {
                return Ok(interrupted_before(&lease, &plan));
            }
            ready => ready?,
        };
        run(&mut lease, &mut plan, ready)
    }
}

/// What a run is made with.
struct Ready {
    data: Prepared,
    shape: Shape,
    /// The learning rate in words.
    rates: String,
    class_weights: Option<ClassWeights>,
}

/// Checks the data against the model, and tokenizes it.
fn ready<N: Network>(
    state: &mut State<N>,
    dataset: &Dataset,
    plan: &FitPlan<'_>,
    origin: Origin,
) -> Result<Ready> {
    state.ready_for(dataset, "fit", origin.clone())?;
    if let Validation::Data(validation) = plan.validation {
        state.ready_for(validation, "fit", origin)?;
    }
    let data = Prepared::of(state, dataset, plan)?;
    let before = Before {
        dataset,
        data: &data,
        batch_size: plan.batch_size,
        batches_per_epoch: data.epoch_examples.div_ceil(plan.batch_size) as u64,
        epochs: plan.epochs,
    };
    if !(plan.resume && state.saved_run.is_some()) {
        before.check(state)?;
    }
    let Some(compiled) = &state.compiled else {
        return Err(not_compiled());
    };
    let shape = Shape {
        batches_per_epoch: before.batches_per_epoch,
        steps_per_execution: compiled.steps_per_execution,
        gradient_accumulation_steps: compiled.gradient_accumulation_steps,
        replicas: state.replicas.len() as u64,
        exchange: exchange(
            &state.replicas,
            compiled,
            data.largest_batches(plan.batch_size, compiled.gradient_accumulation_steps),
        ),
    };
    let rates = rates_in_words(&before.rates(compiled), &compiled.optimizer);
    Ok(Ready {
        class_weights: class_weights(plan, &state.files, &data.train)?,
        data,
        shape,
        rates,
    })
}

/// The rates of a run, and whether they have no warm-up: Adam's first steps are as large as the rate
/// allows, before its moments mean anything.
fn rates_in_words(plan: &RatePlan, optimizer: &Optimizer) -> String {
    let is_adam = matches!(optimizer.rule, UpdateRule::Adam(_));
    let begins = plan.made == 0 || plan.schedule.spans_the_run();
    match is_adam && begins && plan.schedule.warmup_steps(plan.steps) == 0 {
        true => format!("{plan}, no warm-up"),
        false => plan.to_string(),
    }
}

/// What the run leaves: nothing has changed, and an earlier run can still be resumed.
fn interrupted_before<N: Network>(state: &State<N>, plan: &FitPlan<'_>) -> History {
    let saved = state.saved_run.as_ref().filter(|_| plan.resume);
    let mut history = match saved {
        Some(saved) => saved.progress.history.clone(),
        None => History::new(devices_of(state)),
    };
    history.interrupted = true;
    history
}

fn run<N: Network>(
    lease: &mut Lease<'_, N>,
    plan: &mut FitPlan<'_>,
    Ready {
        data,
        shape,
        rates,
        class_weights,
    }: Ready,
) -> Result<History> {
    let signature = Signature::of(plan, &data, &shape, class_weights.as_ref());
    if plan.resume
        && let Some(saved) = &lease.saved_run
    {
        saved.check(&signature)?;
    }
    tell_of_batches(plan, &shape)?;
    let mut progress = take_up(lease, plan, &shape)?;
    progress.class_weights = class_weights;
    if let Some(stopping) = &plan.stopping {
        progress.history.best_by = stopping.monitor.words().to_owned();
    }
    let observer = observer_of_a_run(plan.verbose);
    let number = next_run();
    let started = FitStarted {
        run: number,
        epochs: plan.epochs,
        batches_per_epoch: shape.batches_per_epoch,
        batch_size: plan.batch_size,
        examples: data.train.len(),
        validation_examples: data.validation.as_ref().map_or(0, Encoded::len),
        devices: devices_of(lease),
        rates,
        metrics: (lease.compiled.as_ref()).map_or_else(Vec::new, |it| names(&it.metrics)),
        planned: shape.counters(plan.epochs - plan.initial_epoch),
        counters: progress.history.counters,
        compiles_for: compiled_for(lease.replicas.devices()),
    };
    observer.fit_started(&started);
    let mut callbacks = std::mem::take(&mut plan.callbacks);
    lease.lent(|| callbacks.train_begins(&started));
    let undecayed = Arc::new(data.undecayed.clone());
    let mut run = Run {
        lease: &mut *lease,
        plan: &*plan,
        data: &data,
        shape,
        undecayed: Arc::clone(&undecayed),
        progress: &mut progress,
        listeners: Listeners {
            run: number,
            observer: &*observer,
            callbacks: &mut callbacks,
        },
        pace: Pace::default(),
        batch_ended: None,
        told: None,
    };
    let outcome = run.all();
    // To go on with, replicas that step alone are kept as they are.
    let apart = lease.apart().filter(|_| progress.history.interrupted);
    let counters = progress.history.counters;
    // They are equal again, whatever ended the run.
    let mut trainer = Trainer::of(lease, &undecayed, "fit")?;
    let outcome = outcome.and(trainer.synchronise(&mut progress));
    if let Err(problem) = outcome {
        observer.fit_failed(number);
        return Err(problem);
    }
    let history = progress.history.clone();
    if history.interrupted {
        progress.history.interrupted = false;
        // The average is of this moment: a run that goes on makes its averages when they are due.
        progress.history.counters = counters;
        lease.saved_run = Some(SavedRun {
            progress,
            signature,
            apart,
        });
    }
    lease.enter_in_ledger();
    observer.fit_ended(number, &history);
    lease.lent(|| callbacks.train_ended(&history));
    Ok(history)
}

/// Where the run begins: at its first epoch, or where an interrupted one was.
fn take_up<N: Network>(
    state: &mut State<N>,
    plan: &FitPlan<'_>,
    shape: &Shape,
) -> Result<Progress<N>> {
    let Some(compiled) = &mut state.compiled else {
        return Err(not_compiled());
    };
    // A panic in a step, of a GPU that has no memory left, has taken the moments with it.
    let copies = state.replicas.storage_devices().len();
    (compiled.states).resize_with(copies, OptimizerState::default);
    match state.saved_run.take() {
        Some(saved) if plan.resume => {
            if let Some(apart) = saved.apart {
                state.take_apart(apart);
            }
            Ok(saved.progress)
        }
        _ => {
            let progress = Progress::new(devices_of(state));
            Ok(progress.beginning_with(plan.initial_epoch, shape))
        }
    }
}

/// Replicas and devices in words.
fn devices_of<N: Network>(state: &State<N>) -> String {
    match state.replicas.strategy() {
        Some(strategy) => strategy.devices_in_words(),
        None => state.replicas.devices()[0].name.clone(),
    }
}

/// The devices whose kernels are compiled when they are first used.
fn compiled_for(devices: &[LogicalDevice]) -> Vec<String> {
    let is_gpu = |device: &&LogicalDevice| match device.backend {
        BackendKind::Wgpu | BackendKind::Cuda => true,
        BackendKind::Flex => false,
    };
    let gpus = devices.iter().filter(is_gpu);
    gpus.map(|device| device.name.clone()).collect()
}

fn not_compiled() -> Box<stratoscope_diagnostics::Diagnostic> {
    let call = "fit".to_owned();
    NotCompiled { call }.error()
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
        None => Err(not_compiled()),
        Some(compiled) if compiled.loss.is_none() => Err(NoLoss.error()),
        Some(_) => Ok(()),
    }
}

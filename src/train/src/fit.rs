//! `fit!(model, data, …)` and `start!(model, data, …)`: what a run needs is checked and made ready; `fit!` drives it to
//! its end at once.
//!
//! Who owns what: the data set owns labels and order, the plan ([`FitPlan`]) all numbers of the run, `Compiled`
//! optimizer, loss, metrics and the two group sizes, [`StepState`](stratoscope_step::StepState) the weights and all that a
//! step changes, [`Progress`](crate::progress::Progress) where the run is, [`RunState`] all of that but the `StepState`.
//!
//! A call that trains has the model's state until it returns, and lends it to its callbacks (`lease`).

use std::collections::{HashMap, HashSet};

use stratoscope_data::{Data, Split};
use stratoscope_diagnostics::rules::{CallbackPerExecution, RecomputeUnsupported};
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_strategy::{BackendKind, LogicalDevice, Origin};

use crate::auto_batch_size::{BatchSizeRequest, ChosenBatchSize, choose};
use crate::batch_plan::BatchPlan;
use crate::checkpoint::check_checkpoint;
use crate::class_weights::class_weights;
use crate::edits::Change;
use crate::hooks::{Hooks, KeptCheckpoints, SNAPSHOT_BYTES, SNAPSHOT_EVERY, Snapshots};
use crate::lease::Lease;
use crate::loop_state::Goal;
use crate::pipeline;
use crate::progress::Signature;
use crate::run_state::{Phase, RunState};
use crate::state::{ModelState, SharedModel};
use crate::taken_up::{Begun, begun};
use crate::unfreezing;
use crate::watch::Before;
use stratoscope_arguments::context::RunContext;
use stratoscope_arguments::context::events::FitStarted;
use stratoscope_arguments::context::interrupt::{self, Listening};
use stratoscope_arguments::context::warnings::{begin_call, notice};
use stratoscope_arguments::{FitArgs, FitPlan, Validation};
use stratoscope_metrics::metric::{low_is_good, names};
use stratoscope_network::Input;
use stratoscope_optim::schedule::RatePlan;
use stratoscope_optim::schedule::span::Span;
use stratoscope_optim::{Optimizer, UpdateRule};
use stratoscope_report::counters::Shape;
use stratoscope_report::history::History;
use stratoscope_step::StepSettings;
use stratoscope_step::prepare::{Prepared, shard};

/// Trains the model on a data set: a run that is driven to its end at once.
///
/// # Errors
/// See `Model::fit`.
pub fn fit(
    model: &SharedModel,
    data: Data<'_>,
    args: FitArgs<'_>,
    origin: Origin,
) -> Result<History> {
    begin_call();
    let _listening = Listening::begin();
    let mut plan = args.resolve()?;
    let mut lease = model.lease("fit")?;
    check_settings(&lease, &plan)?;
    let ready = match ready(&mut lease, data, &mut plan, origin) {
        Err(problem) if interrupt::is_interruption(&problem) => {
            return Ok(interrupted_before(&lease, &plan));
        }
        ready => ready?,
    };
    let mut run = begin(&mut lease, plan, ready)?;
    let outcome = run.drive(&mut lease, Goal::End);
    match run.end(&mut lease, outcome) {
        Ok(history) => {
            run.observer.fit_ended(run.number, &history);
            run.tell_end(&mut lease, &history);
            Ok(history)
        }
        Err(problem) => {
            run.observer.fit_failed(run.number);
            run.tell_failure(&mut lease, &problem);
            Err(problem)
        }
    }
}

/// A run that stands before its first step, for `start!`.
///
/// # Errors
/// See `Model::start`.
pub fn start(
    lease: &mut Lease<'_>,
    data: Data<'_>,
    mut plan: FitPlan<'static>,
    origin: Origin,
) -> Result<RunState<'static>> {
    check_settings(lease, &plan)?;
    let ready = ready(lease, data, &mut plan, origin)?;
    let mut run = begin(lease, plan, ready)?;
    run.pauses_between_steps = true;
    let snapshots = Snapshots::every(SNAPSHOT_EVERY, SNAPSHOT_BYTES);
    run.hooks.snapshots = snapshots.beginning_at(lease, &run)?;
    run.started.is_piece = true;
    Ok(run)
}

/// What a run is made with.
pub(crate) struct Ready {
    pub data: Prepared,
    pub settings: StepSettings,
    pub shape: Shape,
    /// The learning rate in words.
    rates: String,
    /// The batches that were chosen, for `batch_size = auto`.
    chosen: Option<ChosenBatchSize>,
}

fn check_settings(state: &ModelState, plan: &FitPlan<'_>) -> Result<()> {
    check_checkpoint(state, plan)?;
    if plan.recompute && !state.step.replicas.first().can_recompute() {
        let model = state.files.model_name().to_owned();
        return Err(RecomputeUnsupported { model }.error());
    }
    if let (Some(stopping), Some(compiled)) = (&plan.stopping, &state.compiled) {
        let is_validated = !matches!(plan.validation, Validation::None);
        stopping.check(&compiled.metrics, is_validated)?;
    }
    state.step_settings("fit").map(|_| ())
}

/// Checks the data against the model, and tokenizes it.
fn ready(
    state: &mut ModelState,
    dataset: Data<'_>,
    plan: &mut FitPlan<'_>,
    origin: Origin,
) -> Result<Ready> {
    state.ready_for(dataset, "fit", origin.clone())?;
    match &plan.validation {
        Validation::Data(data) => state.ready_for_validation(Data::Held(data), "fit", origin)?,
        Validation::Stream(stream) => {
            state.ready_for_validation(Data::Streamed(stream), "fit", origin)?;
        }
        Validation::None | Validation::Split(_) => {}
    }
    let compiled = state.compiled_for("fit")?;
    let head = state.head_written();
    let (data, files) = Prepared::of(&*state.files, &head, compiled, dataset, plan)?;
    state.files = files;
    let data = shard(data, dataset, state.step.replicas.strategy(), plan)?;
    let request = BatchSizeRequest {
        choice: plan.choice,
        written: plan.batch_size,
        examples: data.epoch_examples,
        length: data.train.report().longest.min(data.train.max_length()),
        recompute: plan.recompute,
    };
    let chosen = choose(state, request)?;
    if let Some(chosen) = &chosen {
        plan.batch_size = chosen.batch_size;
    }
    pipeline::check(state, plan.batch_size)?;
    let data = data.with_padding(plan);
    let before = Before {
        dataset,
        data: &data,
        batch_size: plan.batch_size,
        at_once: chosen
            .as_ref()
            .and_then(|it| it.part)
            .unwrap_or(plan.batch_size),
        batches_per_epoch: data.epoch_examples.div_ceil(plan.batch_size) as u64,
        epochs: plan.epochs,
        recompute: plan.recompute,
    };
    if !(plan.resume && state.saved_run.is_some()) {
        before.check(state)?;
    }
    let settings = state.step_settings("fit")?;
    let compiled = &settings.compiled;
    let group = compiled.gradient_accumulation_steps;
    let replicas = state.step.replicas.len();
    let shape = Shape {
        batches_per_epoch: before.batches_per_epoch,
        steps_per_execution: compiled.steps_per_execution,
        gradient_accumulation_steps: group,
        replicas: replicas as u64,
        exchange: (settings.exchange)
            .counted(replicas, data.largest_batches(plan.batch_size, group)),
    };
    let rates = rates_in_words(
        &before.rates(compiled, state.step.steps_since_compile()),
        &compiled.optimizer,
    );
    Ok(Ready {
        settings: StepSettings {
            class_weights: class_weights(plan, &*state.files, &data)?,
            seed: plan.seed,
            recompute: plan.recompute,
            span: Span::new(shape.counters(plan.epochs).optimizer_steps),
            ..settings
        },
        data,
        shape,
        rates,
        chosen,
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

/// What an interrupt before the first batch leaves: nothing has changed, and an earlier run can still be resumed.
fn interrupted_before(state: &ModelState, plan: &FitPlan<'_>) -> History {
    let saved = state.saved_run.as_ref().filter(|_| plan.resume);
    let mut history = match saved {
        Some(saved) => saved.progress.history.clone(),
        None => History::new(devices_of(state)),
    };
    history.interrupted = true;
    history
}

/// The run before its first step, or where an interrupted one was.
fn begin<'a>(lease: &mut Lease<'_>, mut plan: FitPlan<'a>, ready: Ready) -> Result<RunState<'a>> {
    let signature = Signature::of(
        &plan,
        &ready.data,
        &ready.shape,
        ready.settings.class_weights.as_ref(),
        lease.files.hidden(),
    );
    if plan.resume
        && let Some(saved) = &lease.saved_run
    {
        saved.check(&signature)?;
    }
    report_callbacks_of_batches(&plan, &ready.shape)?;
    unfreezing::check(lease, plan.unfreezes_every)?;
    let batch_plan = batches(&plan, &ready);
    let micro_batches = pipeline::micro_batches(lease);
    let Begun {
        mut progress,
        complete,
        edits,
        moved,
    } = begun(lease, &plan, &ready, &batch_plan)?;
    progress.history.low_is_good = low_is_good(&ready.settings.compiled.metrics);
    if let Some(stopping) = &plan.stopping {
        progress.history.best_by = stopping.monitor.words().to_owned();
    }
    let context = RunContext::current();
    let (observer, number) = (context.observer_of_a_run(plan.verbose), context.next_run());
    let started = started(lease, &plan, &ready, number);
    // A run that goes on has the parts that it had.
    let goes_on = plan.resume_from.is_some() || plan.resume;
    let part = ready.chosen.and_then(|it| it.part).filter(|_| !goes_on);
    if lease.files.takes() == Input::Texts {
        lease.note_trained_length(ready.data.train.max_length());
    }
    // It is tokenized by now.
    plan.validation = Validation::None;
    // Those of the run that this one goes on with.
    let requests = std::mem::take(&mut progress.history.requests);
    let mut run = RunState {
        number,
        hooks: Hooks {
            callbacks: std::mem::take(&mut plan.callbacks),
            checkpoints: KeptCheckpoints { complete },
            ..Hooks::default()
        },
        plan,
        observer,
        data: ready.data,
        base: ready.settings.clone(),
        settings: ready.settings,
        edits: Vec::new(),
        skipped: HashSet::new(),
        step_changes: HashMap::new(),
        row_changes: None,
        without_row: None,
        batch_plan,
        shape: ready.shape,
        part: None,
        micro_batches,
        signature,
        progress,
        started,
        pauses_between_steps: false,
        phase: Phase::Fresh,
        is_damaged: false,
        is_replayed: false,
        stop: None,
        fork_of: None,
        forks: 0,
        requests,
    };
    run.go_on(lease, edits, moved.as_ref())?;
    if let Some(part) = part {
        run.edit(lease, Change::Parts(part as u64))?;
    }
    Ok(run)
}

/// Which examples each batch takes.
fn batches(plan: &FitPlan<'_>, ready: &Ready) -> BatchPlan {
    BatchPlan::new(
        ready.data.in_order(plan),
        plan.shuffle.then_some(plan.seed),
        ready.data.epoch_examples,
        plan.batch_size,
        ready.shape.gradient_accumulation_steps,
    )
}

/// What the run will do, for those who listen.
fn started(state: &ModelState, plan: &FitPlan<'_>, ready: &Ready, run: u64) -> FitStarted {
    let Ready { data, shape, .. } = ready;
    FitStarted {
        run,
        epochs: plan.epochs,
        batches_per_epoch: shape.batches_per_epoch,
        batch_size: plan.batch_size,
        examples: data.train.len(),
        validation_examples: data.validation.as_ref().map_or(0, Split::len),
        devices: devices_of(state),
        rates: ready.rates.clone(),
        chosen: ready.chosen.as_ref().map(|it| it.why.clone()),
        tokens: data.tokens_in_words(),
        metrics: names(&ready.settings.compiled.metrics),
        planned: shape.counters(plan.epochs - plan.initial_epoch),
        counters: state.step.counters,
        is_piece: false,
        is_quiet: !plan.verbose,
        compiles_for: compiled_for(state.step.replicas.computing()),
    }
}

/// Replicas and devices in words.
pub(crate) fn devices_of(state: &ModelState) -> String {
    match state.step.replicas.strategy() {
        Some(strategy) => {
            let words = strategy.devices_in_words();
            match state.sent_by_workers() {
                None => words,
                Some(sent) => format!("{words}; {sent}"),
            }
        }
        None => state.step.replicas.devices()[0].name.clone(),
    }
}

/// The devices whose kernels are compiled when they are first used.
fn compiled_for(devices: &[LogicalDevice]) -> Vec<String> {
    let is_gpu =
        |device: &&LogicalDevice| matches!(device.backend, BackendKind::Wgpu | BackendKind::Cuda);
    let gpus = devices.iter().filter(is_gpu);
    gpus.map(|device| device.name.clone()).collect()
}

/// SC0108: callbacks of batches, where an execution has several.
///
/// # Errors
/// SC0108, where it is denied.
fn report_callbacks_of_batches(plan: &FitPlan<'_>, shape: &Shape) -> Result<()> {
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

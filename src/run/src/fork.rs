//! `run.fork()?`: a second run from here. It has weights, optimizer state, counts and place in the data of its own, and a
//! model of its own, so that both can be driven in turn and [compared](super::compare).
//!
//! Nothing is copied at once: tensors are shared until one of the two updates them, and data and snapshots stay shared.
//! A fork that is not changed makes the same steps to the same bits, because all of its random numbers are functions of
//! seed, batch and replica.

use std::cell::RefCell;
use std::sync::Arc;

use stratoscope_diagnostics::rules::ForkHasLess;
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_strategy::Origin;

use crate::handle::{Owned, Run};
use stratoscope_arguments::callbacks::Callbacks;
use stratoscope_arguments::context::RunContext;
use stratoscope_arguments::context::interrupt::Listening;
use stratoscope_arguments::context::ledger::Ledger;
use stratoscope_arguments::context::warnings::{begin_call, notice};
use stratoscope_arguments::{FitPlan, Validation};
use stratoscope_report::run_report::ForkOf;
use stratoscope_step::StepState;
use stratoscope_step::gradients::ByHand;
use stratoscope_train::run_state::RunState;
use stratoscope_train::state::{ModelState, SharedModel};

impl Run {
    /// A second run that stands where this one stands, on a model of its own (`Run::model`). Both go on by themselves;
    /// changes to one are none to the other. Callbacks and checkpoints stay with this run.
    ///
    /// # Errors
    /// SC0530 as a note where the run has callbacks or checkpoints; SC0907 if a device fails; SC0521 for a run that is
    /// finished; SC0121 in a callback of this run.
    #[track_caller]
    pub fn fork(&self) -> Result<Self> {
        let origin = Origin::current();
        begin_call();
        let _listening = Listening::begin();
        self.with("fork", |lease, run| {
            let rule = ForkHasLess {
                callbacks: run.hooks.callbacks.len(),
                folder: (run.plan.checkpoint.as_ref()).map(|folder| folder.display().to_string()),
            };
            if rule.callbacks > 0 || rule.folder.is_some() {
                notice(rule.diagnostic())?;
            }
            let saved = lease.step.saved();
            let mut step = StepState::new(lease.step.replicas.forked()?, lease.step.policy);
            step.restore(&saved)?;
            step.recomputed = lease.step.recomputed;
            step.made_by = lease.step.made_by;
            run.forks += 1;
            let label = match run.label() {
                "" => format!("fork {}", run.forks),
                own => format!("{own}.{}", run.forks),
            };
            let of = ForkOf {
                label,
                step: saved.steps,
                bytes: saved.bytes(),
            };
            let bytes = of.bytes;
            let state = forked_run(run, of);
            let model = SharedModel::new(forked_model(lease, step, origin));
            model.occupied.reserve();
            let owned = Owned {
                inside: RefCell::default(),
                model: Arc::new(model),
                bytes,
                state: RefCell::new(state),
            };
            Ok(Self::holding(owned))
        })
    }
}

/// A model of its own with the values of this one, no moments and no run.
///
/// # Errors
/// SC0907 if a device fails.
pub fn copy_without_run(from: &ModelState, origin: Origin) -> Result<ModelState> {
    let mut step = StepState::new(from.settled()?.forked()?, from.step.policy);
    step.made_by = from.step.made_by;
    step.ensure_moments();
    step.tallies.clone_from(&from.step.tallies);
    Ok(forked_model(from, step, origin))
}

fn forked_model(from: &ModelState, step: StepState, origin: Origin) -> ModelState {
    let entry = format!("a fork of {}, {origin}", from.files.model_name());
    let state = ModelState {
        step,
        files: from.files.clone(),
        compiled: from.compiled.clone(),
        saved_run: None,
        alone: from.alone,
        has_learned: from.has_learned,
        trained_length: from.trained_length,
        unfrozen: from.unfrozen.clone(),
        by_hand: ByHand::default(),
        ledger: Ledger::open(entry, RunContext::current().alive()),
        made: origin,
    };
    state.enter_in_ledger();
    state
}

fn forked_run(run: &RunState<'static>, of: ForkOf) -> RunState<'static> {
    let context = RunContext::current();
    let number = context.next_run();
    let mut started = run.started.clone();
    started.run = number;
    let (mut progress, mut hooks) = (run.progress.clone(), run.hooks.of_fork());
    // It writes no checkpoints, and names none of the run that it was made from.
    progress.history.forget_checkpoints();
    for snapshot in hooks.snapshots.all_mut() {
        snapshot.progress.history.forget_checkpoints();
    }
    RunState {
        number,
        plan: forked_plan(&run.plan),
        observer: context.observer_of_a_run(run.plan.verbose),
        data: run.data.clone(),
        settings: run.settings.clone(),
        base: run.base.clone(),
        edits: run.edits.clone(),
        skipped: run.skipped.clone(),
        step_changes: run.step_changes.clone(),
        row_changes: run.row_changes.clone(),
        without_row: None,
        batch_plan: run.batch_plan.clone(),
        shape: run.shape,
        part: run.part,
        micro_batches: run.micro_batches,
        signature: run.signature.clone(),
        progress,
        started,
        pauses_between_steps: true,
        phase: run.phase,
        hooks,
        is_damaged: false,
        is_replayed: false,
        stop: None,
        fork_of: Some(of),
        forks: 0,
        requests: Vec::new(),
    }
}

/// The plan without what cannot be shared: callbacks and folders. Validation data is tokenized by now.
fn forked_plan(plan: &FitPlan<'static>) -> FitPlan<'static> {
    FitPlan {
        initial_epoch: plan.initial_epoch,
        epochs: plan.epochs,
        batch_size: plan.batch_size,
        choice: plan.choice,
        steps_per_epoch: plan.steps_per_epoch,
        validation: Validation::None,
        validation_steps: plan.validation_steps,
        validation_freq: plan.validation_freq.clone(),
        shuffle: plan.shuffle,
        group_by_length: plan.group_by_length,
        seed: plan.seed,
        max_length: plan.max_length,
        class_weight: plan.class_weight.clone(),
        callbacks: Callbacks::new(),
        stopping: plan.stopping.clone(),
        unfreezes_every: plan.unfreezes_every,
        checkpoint: None,
        every: None,
        keep_last: plan.keep_last,
        resume: false,
        resume_from: None,
        recompute: plan.recompute,
        verbose: plan.verbose,
    }
}

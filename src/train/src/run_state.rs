//! [`RunState`]: all of a run but the model's own state.
//!
//! It borrows nothing of the model: each call leases the model's state, runs the loop of `training_loop` and gives it back. A
//! run of `fit!` is driven once, to its end or to an interrupt; one of `start!` (`Run` of the crate `run`) as often
//! as its user likes. With `'a = 'static` it outlives the cell that made it.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use stratoscope_data::{Batch, even_shares};
use stratoscope_diagnostics::Result;

use stratoscope_arguments::FitPlan;
use stratoscope_arguments::context::events::{FitStarted, Observer};
use stratoscope_inspect::Inspection;

use crate::batch_plan::{BatchPlan, BatchPosition};
use crate::edits::Dated;
use crate::hooks::Hooks;
use crate::loop_state::Pause;
use crate::progress::{Progress, SavedRun, Signature};
use crate::state::ModelState;
use stratoscope_report::counters::{Counters, Shape};
use stratoscope_report::history::{History, RequestRecord};
use stratoscope_report::run_report::{ForkOf, Position};
use stratoscope_report::stop::Stop;
use stratoscope_step::StepSettings;
use stratoscope_step::changed::StepChange;
use stratoscope_step::prepare::Prepared;

/// All of a run but the model's own state.
pub struct RunState<'a> {
    /// Distinguishes the runs of a context.
    pub number: u64,
    /// The arguments of `fit!`, resolved.
    pub plan: FitPlan<'a>,
    /// Who observes the run.
    pub observer: Arc<dyn Observer>,
    /// The data in tokens.
    pub data: Prepared,
    /// What is the same from step to step.
    pub settings: StepSettings,
    /// As they were before any change.
    pub base: StepSettings,
    /// The changes that were made, the oldest first.
    pub edits: Vec<Dated>,
    /// The first batches of the steps that are left out.
    pub skipped: HashSet<BatchPosition>,
    /// What is changed about steps, by their first batches.
    pub step_changes: HashMap<BatchPosition, Arc<StepChange>>,
    /// Which examples each batch has, and which batches make a step.
    pub batch_plan: BatchPlan,
    /// Other labels and weights of rows, from the step of the change on.
    pub row_changes: Option<Arc<StepChange>>,
    /// The weight 0 of a row, whatever else is changed, while `run.influence` makes steps without it.
    pub without_row: Option<Arc<StepChange>>,
    /// As it was planned at the begin; executions and exchanges are what they were.
    pub shape: Shape,
    /// The most examples of a batch that are computed at once; `None`: all.
    pub part: Option<usize>,
    /// Micro-batches of a batch, in a pipeline.
    pub micro_batches: Option<usize>,
    /// What must be the same for another run to go on with this one.
    pub signature: Signature,
    /// How far it is, and what was measured.
    pub progress: Progress,
    /// What happens in it beside the arithmetic of the loop, which has them while a call drives the run.
    pub hooks: Hooks<'a>,
    /// What the run will do, for those who listen.
    pub started: FitStarted,
    /// A run of `start!`: it is left between two optimizer steps only.
    pub pauses_between_steps: bool,
    /// Whether it has begun, or is over.
    pub phase: Phase,
    /// The latest call has failed in an update: some weights may have changed and others not.
    pub is_damaged: bool,
    /// Its steps are made once more ([`Self::replaying`]).
    pub is_replayed: bool,
    /// Where and why the latest call left it.
    pub stop: Option<Stop>,
    /// From where it was forked.
    pub fork_of: Option<ForkOf>,
    /// How often it was forked.
    pub forks: u64,
    /// The requests that reached it from outside. A run that is turned back keeps them.
    pub requests: Vec<RequestRecord>,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No call has driven it yet: the callbacks have not heard of it.
    Fresh,
    /// It has begun.
    Going,
    /// It has left its weights, or was given up.
    Over,
}

/// With which batch the next optimizer step begins that is not left out.
pub struct ComingBatch {
    /// Where that batch is.
    pub position: BatchPosition,
    /// How many batches before it are left out.
    pub left_out: u64,
}

/// The batches of the optimizer step that comes next, and what numbers its dropout masks.
pub struct ComingStep {
    /// The first one's number in the run: that of its dropout masks. The others follow.
    pub number: u64,
    /// One, or with `gradient_accumulation_steps` several; those that are computed in parts are several each.
    pub batches: Vec<Batch>,
    /// Those of the run, with what is changed about the step.
    pub settings: StepSettings,
}

impl RunState<'_> {
    /// What a fork is called; empty for another run.
    pub fn label(&self) -> &str {
        self.fork_of.as_ref().map_or("", |fork| &fork.label)
    }

    /// Whether there are no more steps.
    pub fn is_complete(&self) -> bool {
        self.progress.epoch >= self.plan.epochs || self.progress.history.stopped_early
    }

    /// The batches of the epoch that it is in.
    pub(crate) fn batches_of_epoch(&self) -> u64 {
        self.batch_plan.batches(self.progress.epoch)
    }

    /// The next batch of the epoch that it is in.
    pub(crate) fn next_batch(&self) -> BatchPosition {
        BatchPosition {
            epoch: self.progress.epoch,
            batch: self.progress.batch,
        }
    }

    /// What it counts from a batch to its end.
    pub fn rest(&self, from: BatchPosition) -> Counters {
        (self.batch_plan).rest(from, self.plan.epochs, &self.shape)
    }

    /// How many examples each replica sees in these batches of the epoch.
    pub fn shares(&self, batches: Range<u64>, replicas: usize) -> Vec<usize> {
        let epoch = self.progress.epoch;
        if let Some(shares) = self.batch_plan.shares(epoch, batches.clone()) {
            return shares;
        }
        let mut shares = vec![0; replicas];
        for size in self.batch_plan.sizes(epoch, batches) {
            for part in self.part_sizes(size) {
                for (share, own) in shares.iter_mut().zip(even_shares(part, replicas)) {
                    *share += own;
                }
            }
        }
        shares
    }

    /// What the next optimizer step computes with; `None` when there are no more.
    pub fn coming_step(&self, state: &ModelState) -> Result<Option<ComingStep>> {
        let Some(ComingBatch { position, left_out }) = self.coming_batch() else {
            return Ok(None);
        };
        let BatchPosition { epoch, batch } = position;
        let group = self.batch_plan.group(epoch, batch);
        let rest = self.batch_plan.batches_from(epoch, batch)?;
        let count = (group.end - batch) as usize;
        let batches: Vec<Batch> = rest.take(count).collect::<Result<_>>()?;
        let change = self.step_change(epoch, group.start);
        let changes = || (self.row_changes.iter().chain(&change)).chain(&self.without_row);
        let changed = |batch: Batch| StepChange::batch_by_all(changes(), &batch).unwrap_or(batch);
        let batches = batches.into_iter().map(changed);
        let parts = batches.flat_map(|batch| self.in_parts(batch));
        Ok(Some(ComingStep {
            number: self.first_mask(state.step.batches + left_out),
            batches: parts.collect(),
            settings: StepSettings {
                change: change.clone(),
                ..self.settings.clone()
            },
        }))
    }

    /// What is changed about the step that begins with this batch.
    pub(crate) fn step_change(&self, epoch: u64, batch: u64) -> Option<Arc<StepChange>> {
        let position = BatchPosition { epoch, batch };
        self.step_changes.get(&position).cloned()
    }

    /// A look at the model before a step of this run, which is only read.
    pub fn inspection<'i>(
        &'i self,
        model: &'i ModelState,
        coming: &'i ComingStep,
    ) -> Inspection<'i> {
        Inspection {
            step: &model.step,
            settings: &coming.settings,
            files: &*model.files,
            first_batch: coming.number,
            batches: &coming.batches,
        }
    }

    /// What was measured so far.
    pub fn history(&self, state: &ModelState) -> History {
        let mut history = self.progress.history.clone();
        history.counters = state.step.counters;
        history.requests.clone_from(&self.requests);
        history
    }

    /// The end of the run, whatever it was: replicas are equal again. Where it was interrupted the model keeps what a
    /// run with `resume` needs to go on.
    pub fn end(&mut self, state: &mut ModelState, outcome: Result<Pause>) -> Result<History> {
        self.phase = Phase::Over;
        self.release_all(state);
        let is_interrupted = matches!(&outcome, Ok(pause) if *pause != Pause::Complete);
        let step = &mut state.step;
        // To go on with, replicas that step alone are kept as they are; the average is of this moment, and not counted
        // as one of the run that goes on.
        let unaveraged = step.unaveraged().filter(|_| is_interrupted);
        let counters = step.counters;
        // The replicas are made equal also after an error.
        let outcome = outcome.and(step.average_parameters());
        self.progress.history.counters = step.counters;
        step.counters = counters;
        if let Err(problem) = outcome {
            step.begin_run(0, 0);
            return Err(problem);
        }
        self.progress.history.requests.clone_from(&self.requests);
        let mut history = self.progress.history.clone();
        history.interrupted = is_interrupted;
        if is_interrupted {
            let mut progress = self.progress.clone();
            progress.history.counters = counters;
            state.saved_run = Some(SavedRun {
                progress,
                signature: self.signature.clone(),
                edits: self.edits.clone(),
                replicas: unaveraged,
            });
        }
        state.enter_in_ledger();
        Ok(history)
    }
}

/// Where a run stands.
pub fn position(state: &ModelState, run: &RunState<'_>) -> Position {
    let progress = &run.progress;
    let epoch = progress.epoch.min(run.plan.epochs.saturating_sub(1));
    let batches = run.batch_plan.batches(epoch);
    Position {
        step: state.step.steps,
        steps: run.settings.span.steps(),
        epoch,
        epochs: run.plan.epochs,
        batch: match progress.epoch >= run.plan.epochs {
            true => batches,
            false => progress.batch,
        },
        batches,
        learning_rate: state.step.rate(&run.settings),
    }
}

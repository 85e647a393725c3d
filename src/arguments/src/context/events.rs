//! The events of a run, for a table in a notebook, a log or a test.
//!
//! A context has one observer; the facade installs the one that draws. Without one, events are dropped and warnings
//! go to standard error. All numbers of events are measured; only those called `left` are estimates.

use std::sync::Arc;

use stratoscope_diagnostics::Diagnostic;
use stratoscope_strategy::strategy::Workers;

use super::RunContext;
use super::alert::Alert;
use super::requests::{Answer, Request};
use stratoscope_report::counters::Counters;
use stratoscope_report::history::{EpochRecord, ExecutionRecord, History, Measured};

/// Listens to runs. Every method does nothing unless it is written.
pub trait Observer: Send + Sync {
    /// The data is ready, the first step comes next.
    fn fit_started(&self, _event: &FitStarted) {}

    /// The batches to come were changed while the run trains: what it will do from here on.
    fn replanned(&self, _event: &FitStarted) {}

    /// A batch is over, within an execution or at its end. Reported several times a second, not for every
    /// batch.
    fn advanced(&self, _event: &Advanced) {}

    /// An execution is over: `steps_per_execution` batches, or what was left of the epoch.
    fn execution_ended(&self, _event: &ExecutionEnded) {}

    /// The validation of an epoch has computed some of its examples.
    fn validated(&self, _run: u64, _done: usize, _total: usize) {}

    /// An epoch and its validation are over.
    fn epoch_ended(&self, _event: &EpochEnded) {}

    /// The run is over, or was interrupted.
    fn fit_ended(&self, _run: u64, _history: &History) {}

    /// The run ended with an error.
    fn fit_failed(&self, _run: u64) {}

    /// `evaluate!` has computed some of its examples; all of them when `done == total`.
    fn evaluated(&self, _run: u64, _done: usize, _total: usize) {}

    /// What a person asks of a run that was not asked before, oldest first. The loop looks between two optimizer
    /// steps.
    fn command(&self, _run: u64) -> Option<RunCommand> {
        None
    }

    /// The answer to a [`RunCommand::Request`] with this number.
    fn answered(&self, _request: u64, _answer: &Answer) {}

    /// An alert to be shown (`on_alert(AlertTo::notebook())`).
    fn alert(&self, alert: &Alert) {
        eprintln!("{alert}");
    }

    /// Whether somebody waits to read models, as a debugger does. The loop asks between two optimizer steps.
    fn wants_to_look(&self) -> bool {
        false
    }

    /// The model of the run can be read until this returns.
    fn look(&self) {}

    /// The run waits between two optimizer steps, or goes on.
    fn paused(&self, _run: u64, _is_paused: bool) {}

    /// A warning or a note; the call goes on. Called through [`crate::context::warnings`], which decides what is
    /// reported.
    fn notice(&self, diagnostic: Diagnostic) {
        eprintln!("{diagnostic}");
    }

    /// Whether it counts notices itself and wants those that were shown before, too.
    fn counts_notices(&self) -> bool {
        false
    }
}

/// What a person can ask of a run that is going on.
#[derive(Clone, Debug, PartialEq)]
pub enum RunCommand {
    /// Wait before the next optimizer step.
    Pause,
    /// Make one optimizer step, then wait again.
    Step,
    /// Go on.
    Continue,
    /// End the call as an interrupt does: nothing is lost.
    Stop,
    /// Multiply the learning rate by this from the next step on.
    ScaleRate(f64),
    /// A request that came by a comm or a socket; [`Observer::answered`] gets its answer.
    Request {
        /// Its number.
        number: u64,
        /// What is asked.
        request: Request,
    },
}

/// What a run will do.
#[derive(Clone, Debug)]
pub struct FitStarted {
    /// Tells runs apart.
    pub run: u64,
    /// Epochs in all.
    pub epochs: u64,
    /// Batches of an epoch.
    pub batches_per_epoch: u64,
    /// Examples of a global batch.
    pub batch_size: usize,
    /// Examples to train on.
    pub examples: usize,
    /// Examples to validate on.
    pub validation_examples: usize,
    /// Replicas and their devices: `mirrored#1: 2 logical CPU devices`.
    pub devices: String,
    /// The learning rate at the beginning, at 10 % and 50 % of the run and at its last step, in words.
    pub rates: String,
    /// The batch size and its parts with the reason, where `batch_size = auto` has chosen them.
    pub chosen: Option<String>,
    /// What the cache of tokens did for the texts, which files are streamed and how much is padding, in words; nothing for
    /// small data in a random order.
    pub tokens: Option<String>,
    /// The names of the metrics.
    pub metrics: Vec<&'static str>,
    /// The counters at the end of all epochs.
    pub planned: Counters,
    /// The counters now; not 0 in a run that is resumed.
    pub counters: Counters,
    /// A call of a run of `start!` begins, one of several: it may be over at once.
    pub is_piece: bool,
    /// It shows nothing (`verbose = false`).
    pub is_quiet: bool,
    /// The GPUs for which the first step compiles and tunes kernels: `wgpu:0`.
    pub compiles_for: Vec<String>,
}

/// Where a run is.
#[derive(Clone, Debug)]
pub struct Advanced {
    /// The run.
    pub run: u64,
    /// The epoch, counted from 0.
    pub epoch: u64,
    /// Batches of the epoch that are done.
    pub batches: u64,
    /// Batches of the epoch: what changes on the way can give epochs different numbers.
    pub of_epoch: u64,
    /// The mean loss of the epoch so far, over its examples.
    pub epoch_loss: f64,
    /// The metrics of the epoch so far.
    pub epoch_metrics: Vec<Measured>,
    /// The rate of the latest optimizer step; of the first one before there was any.
    pub learning_rate: f64,
    /// The changes of the rate that were made by hand: `5e-5 from step 21 on`.
    pub rate_changes: Vec<String>,
    /// The counters of the run so far.
    pub counters: Counters,
    /// Examples per second, by the latest batches; `None` before the second batch of the run is over, since the
    /// first one says nothing.
    pub sequences_per_second: Option<f64>,
    /// Seconds of training left at this speed, validation not counted; `None` likewise.
    pub seconds_left: Option<f64>,
    /// The processes that compute, where they are several.
    pub workers: Option<Workers>,
}

/// An execution that is over.
#[derive(Clone, Debug)]
pub struct ExecutionEnded {
    /// The run.
    pub run: u64,
    /// This execution.
    pub record: ExecutionRecord,
    /// The counters of the run so far.
    pub counters: Counters,
}

/// An epoch that is over.
#[derive(Clone, Debug)]
pub struct EpochEnded {
    /// The run.
    pub run: u64,
    /// The epoch.
    pub record: EpochRecord,
    /// Its batches.
    pub batches: u64,
    /// Whether it is the best one so far by its validation loss.
    pub best: bool,
}

/// The observer of a context that nobody observes.
pub(super) struct Nobody;

impl Observer for Nobody {}

/// Lets `observer` observe the runs of the current context, in place of the one before.
pub fn install(observer: Arc<dyn Observer>) {
    RunContext::current().observe(observer);
}

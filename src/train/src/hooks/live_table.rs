//! What a person sees of a run while it goes on, and the buttons below it ([`RunCommand`]). The buttons are obeyed after each
//! optimizer step; a paused run waits there.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use stratoscope_diagnostics::Result;

use super::pace::Pace;
use super::{At, EpochOver, Hook};
use crate::edits::{Change, Dated};
use crate::loop_state::{LoopState, Pause, TurnBack};
use crate::requests::{Done, Move};
use crate::run_state::RunState;
use stratoscope_arguments::context::events::{Advanced, EpochEnded, ExecutionEnded, RunCommand};
use stratoscope_arguments::context::interrupt;
use stratoscope_arguments::context::requests::{Refusal, Request};
use stratoscope_report::counters::Counters;
use stratoscope_report::history::ExecutionRecord;
use stratoscope_step::StepState;
use stratoscope_step::evaluation::measured;

/// How often a paused run looks for the next command.
const PERIOD: Duration = Duration::from_millis(20);

/// Progress is reported at most this often within an execution.
const REPORT_PERIOD: Duration = Duration::from_millis(100);

/// A report that takes longer than this, because its metrics keep all answers of the epoch, is followed by a pause of this
/// multiple of its duration.
const LONG_REPORT: Duration = Duration::from_millis(2);
const PAUSE_AFTER_LONG_REPORT: u32 = 20;

/// Tells the observer of a run where it is, and does what the observer's user asks.
#[derive(Default)]
pub struct LiveTable {
    /// How fast the run is.
    pace: Pace,
    /// When the latest batch ended, or the first one of a call or an epoch began.
    batch_ended: Option<Instant>,
    /// When progress was reported last.
    reported: Option<Instant>,
    /// Until when it is not reported, after a report that took long.
    quiet_until: Option<Instant>,
    /// Paused with its button.
    is_paused: bool,
    /// It is turned back while it is paused: it waits where it stands then.
    waits_again: bool,
}

impl Hook for LiveTable {
    fn call_begins(&mut self) {
        let pace = std::mem::take(&mut self.pace);
        *self = Self {
            pace,
            is_paused: self.waits_again,
            waits_again: self.waits_again,
            ..Self::default()
        };
    }

    fn batches_begin(&mut self, at: At<'_, '_, '_, '_>) -> Result<()> {
        if std::mem::take(&mut self.waits_again) {
            self.obey(at);
        }
        Ok(())
    }

    fn epoch_begins(&mut self, _: At<'_, '_, '_, '_>) -> Result<()> {
        self.batch_ended = None;
        Ok(())
    }

    fn before_step(&mut self, _: At<'_, '_, '_, '_>) -> Result<()> {
        self.batch_ended.get_or_insert_with(Instant::now);
        Ok(())
    }

    fn step_ended(&mut self, at: At<'_, '_, '_, '_>) -> Result<()> {
        self.obey(at);
        Ok(())
    }

    fn after_batch(&mut self, at: At<'_, '_, '_, '_>, is_last: bool) -> Result<()> {
        let now = Instant::now();
        if let Some(before) = self.batch_ended.replace(now) {
            self.pace.batch((now - before).as_secs_f64());
        }
        let is_due = self.reported.is_none_or(|at| at.elapsed() >= REPORT_PERIOD);
        if is_due && !is_last && at.pause.is_none() {
            self.report(at);
        }
        Ok(())
    }

    fn execution_ended(&mut self, at: At<'_, '_, '_, '_>, record: &ExecutionRecord) -> Result<()> {
        self.report(at);
        at.run.observer.execution_ended(&ExecutionEnded {
            run: at.run.number,
            record: record.clone(),
            counters: at.lease.step.counters,
        });
        Ok(())
    }

    fn epoch_ended(&mut self, at: At<'_, '_, '_, '_>, epoch: &EpochOver<'_>) -> Result<()> {
        at.run.observer.epoch_ended(&EpochEnded {
            run: at.run.number,
            record: epoch.record.clone(),
            batches: at.run.batch_plan.batches(epoch.record.epoch),
            best: epoch.is_best,
        });
        Ok(())
    }
}

impl LiveTable {
    /// The batches to come have another size.
    pub(crate) fn forget_pace(&mut self) {
        self.pace = Pace::default();
    }

    /// Does what was asked since the last step. A paused run waits here for Step, Continue, Stop or an interrupt.
    fn obey(&mut self, at: &mut LoopState<'_, '_, '_>) {
        let (observer, run) = (Arc::clone(&at.run.observer), at.run.number);
        if self.is_paused {
            // The step that was just made.
            self.show_pause(at);
        }
        loop {
            if observer.wants_to_look() {
                let history = at.run.history(at.lease);
                at.lease.lent_with(Some(history), || observer.look());
            }
            let command = match observer.command(run) {
                Some(RunCommand::Request { number, request }) => {
                    match self.request(at, number, &request) {
                        Some(command) => Some(command),
                        // It is turned back, and leaves the loop.
                        None if at.pause.is_some() => return,
                        None => continue,
                    }
                }
                other => other,
            };
            match command {
                Some(RunCommand::Pause) if !self.is_paused => {
                    self.is_paused = true;
                    self.show_pause(at);
                }
                Some(RunCommand::Continue) if self.is_paused => {
                    self.is_paused = false;
                    observer.paused(run, false);
                }
                // A request has become one of the others.
                Some(RunCommand::Pause | RunCommand::Continue | RunCommand::Request { .. }) => {}
                Some(RunCommand::Step) => return,
                Some(RunCommand::Stop) => {
                    at.pause = Some(Pause::Interrupted);
                    return;
                }
                Some(RunCommand::ScaleRate(factor)) => {
                    // Only the edits that need variables can fail.
                    let _ = at.run.edit(at.lease, Change::ScaleRate(factor.into()));
                }
                None if !self.is_paused || interrupt::requested() => return,
                None => thread::sleep(PERIOD),
            }
        }
    }

    /// Does what a request asks, and answers it. Returns the command that it means, if it moves the run. A request that turns
    /// the run back is answered when that is done.
    fn request(
        &mut self,
        at: &mut LoopState<'_, '_, '_>,
        number: u64,
        request: &Request,
    ) -> Option<RunCommand> {
        let observer = Arc::clone(&at.run.observer);
        let changes = at.run.batch_plan.changes();
        let to = match at.run.requested(at.lease, request) {
            Done::Answered(answer) => {
                if at.run.batch_plan.changes() != changes {
                    self.replanned(at);
                }
                observer.answered(number, &answer);
                return None;
            }
            Done::TurnsBack(step) => {
                self.waits_again = self.is_paused;
                at.pause = Some(Pause::TurnBack(Box::new(TurnBack {
                    number,
                    request: request.clone(),
                    step,
                })));
                return None;
            }
            Done::Moves(to) => to,
        };
        let (command, what, is_possible) = match to {
            Move::Pause => (RunCommand::Pause, "paused", !self.is_paused),
            Move::Step => (RunCommand::Step, "one step", self.is_paused),
            Move::Continue => (RunCommand::Continue, "goes on", self.is_paused),
            Move::Stop => (RunCommand::Stop, "stopped", true),
        };
        let outcome = match (is_possible, self.is_paused) {
            (true, _) => Ok(what.into()),
            (false, true) => Err(Refusal::new("not_now", "the run is paused already")),
            (false, false) => Err(Refusal::new("not_now", "the run is not paused")),
        };
        let answer = at.run.recorded(at.lease, request, outcome);
        observer.answered(number, &answer);
        is_possible.then_some(command)
    }

    /// The batches to come are others: they have another pace, and the table another end.
    fn replanned(&mut self, at: &mut LoopState<'_, '_, '_>) {
        self.pace = Pace::default();
        let counters = counters(at.run, &at.lease.step);
        at.run.tell(counters);
        at.run.observer.replanned(&at.run.started);
    }

    /// Reports also soon after a report that took long: no later one corrects what a paused run shows.
    fn show_pause(&mut self, at: &LoopState<'_, '_, '_>) {
        self.quiet_until = None;
        self.report(at);
        at.run.observer.paused(at.run.number, true);
    }

    /// Tells the observer where the run is.
    fn report(&mut self, at: &LoopState<'_, '_, '_>) {
        let begun = Instant::now();
        if self.quiet_until.is_some_and(|until| begun < until) {
            return;
        }
        self.reported = Some(begun);
        let (run, step) = (&*at.run, &at.lease.step);
        let Some(tallies) = &step.tallies else {
            return;
        };
        let progress = &run.progress;
        let left = run.rest(run.next_batch()).batches;
        let running = progress.execution.as_ref();
        let rate = running.and_then(|execution| execution.learning_rate);
        run.observer.advanced(&Advanced {
            run: run.number,
            epoch: progress.epoch,
            batches: progress.batch,
            of_epoch: run.batches_of_epoch(),
            epoch_loss: progress.epoch_loss.mean(),
            epoch_metrics: measured(&run.settings.compiled.metrics, &tallies.read()),
            learning_rate: rate.unwrap_or(progress.last_rate),
            rate_changes: run.edits.iter().filter_map(Dated::of_the_rate).collect(),
            counters: counters(run, step),
            sequences_per_second: self.pace.speed(run.batch_plan.batch_size()),
            seconds_left: self.pace.seconds_for(left),
            workers: step.workers_now(),
        });
        let took = begun.elapsed();
        self.quiet_until = (took > LONG_REPORT).then(|| begun + took * PAUSE_AFTER_LONG_REPORT);
    }
}

/// What a run has counted. One that is paused after the last batch of an execution has not ended it yet.
fn counters(run: &RunState<'_>, step: &StepState) -> Counters {
    let progress = &run.progress;
    let of_execution = run.shape.steps_per_execution;
    let is_whole =
        progress.batch.is_multiple_of(of_execution) || progress.batch == run.batches_of_epoch();
    let running = progress.execution.as_ref();
    let mut counters = step.counters;
    if is_whole && running.is_some_and(|execution| execution.batches > 0) {
        counters.executions += 1;
    }
    counters
}

//! The observer of a run with `verbose = false`: it shows nothing, and others can read and steer the run all the same.

use std::sync::Arc;

use super::events::{Advanced, FitStarted, Observer, RunCommand};
use super::requests::Answer;
use stratoscope_report::history::History;

/// Passes on what one needs to read and steer a run. The beginning is marked with [`FitStarted::is_quiet`]; epochs,
/// executions and evaluations are only for those who show them.
pub(super) struct Quiet(pub(super) Arc<dyn Observer>);

impl Observer for Quiet {
    fn fit_started(&self, event: &FitStarted) {
        let is_quiet = true;
        self.0.fit_started(&FitStarted {
            is_quiet,
            ..event.clone()
        });
    }

    fn replanned(&self, event: &FitStarted) {
        let is_quiet = true;
        self.0.replanned(&FitStarted {
            is_quiet,
            ..event.clone()
        });
    }

    fn advanced(&self, event: &Advanced) {
        self.0.advanced(event);
    }

    fn fit_ended(&self, run: u64, history: &History) {
        self.0.fit_ended(run, history);
    }

    fn fit_failed(&self, run: u64) {
        self.0.fit_failed(run);
    }

    fn command(&self, run: u64) -> Option<RunCommand> {
        self.0.command(run)
    }

    fn answered(&self, request: u64, answer: &Answer) {
        self.0.answered(request, answer);
    }

    fn wants_to_look(&self) -> bool {
        self.0.wants_to_look()
    }

    fn look(&self) {
        self.0.look();
    }

    fn paused(&self, run: u64, is_paused: bool) {
        self.0.paused(run, is_paused);
    }
}

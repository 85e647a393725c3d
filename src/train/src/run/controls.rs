//! What a person asks of a run with the buttons below its table ([`RunCommand`]). The loop looks after each optimizer
//! step, and waits there while the run is paused.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::context::events::RunCommand;
use crate::context::interrupt;

use crate::run::edits::Change;
use crate::run::epochs::Drive;

/// How often a paused run looks for the next command.
const PERIOD: Duration = Duration::from_millis(20);

impl Drive<'_, '_, '_> {
    /// Does what was asked since the last step. A paused run waits here for Step, Continue, Stop or an interrupt.
    pub(super) fn obey(&mut self) {
        let (observer, run) = (Arc::clone(&self.run.observer), self.run.number);
        if self.is_paused {
            // The step that was just made.
            self.show_pause();
        }
        loop {
            match observer.command(run) {
                Some(RunCommand::Pause) if !self.is_paused => {
                    self.is_paused = true;
                    self.show_pause();
                }
                Some(RunCommand::Continue) if self.is_paused => {
                    self.is_paused = false;
                    observer.paused(run, false);
                }
                Some(RunCommand::Pause | RunCommand::Continue) => {}
                Some(RunCommand::Step) => return,
                Some(RunCommand::Stop) => {
                    self.interrupt();
                    return;
                }
                Some(RunCommand::ScaleRate(factor)) => {
                    // Only the edits that need variables can fail.
                    let _ = self.run.edit(self.lease, Change::ScaleRate(factor.into()));
                }
                None if !self.is_paused || interrupt::requested() => return,
                None => thread::sleep(PERIOD),
            }
        }
    }

    fn show_pause(&mut self) {
        self.report_progress();
        self.run.observer.paused(self.run.number, true);
    }
}

//! What goes wrong with the debugger of machine code, as cards of the running cell.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use stratoscope_diagnostics::render::{self, Source};
use stratoscope_diagnostics::rules::{DebuggerEnded, DebuggerProblem, DebuggerUnavailable};
use stratoscope_diagnostics::{Diagnostic, Rule};
use stratoscope_wire::MimeBundle;

use super::events::is_untraced;
use super::{Adapter, Native, START_POLL};
use crate::message::{DisplayData, Transient};

/// How long the end of a cell waits for the card of an adapter that has ended before.
const CARD_TIMEOUT: Duration = Duration::from_secs(20);

/// The adapter could not be attached.
pub(super) fn failed(reason: String) -> DebuggerUnavailable {
    let problem = match reason.contains("permitted") {
        true => DebuggerProblem::NotPermitted,
        false => DebuggerProblem::Failed,
    };
    DebuggerUnavailable { problem, reason }
}

impl Native {
    /// Shows a card below the running cell, if the notebook's settings let it.
    pub(super) fn show(&self, found: Diagnostic) {
        if !self.shows_cards.load(Ordering::SeqCst) {
            return;
        }
        let Some(found) = self.session.judged(found) else {
            return;
        };
        // It names no place in the cell.
        let source = Source { text: "", name: "" };
        let mut data = MimeBundle::new();
        let mut insert = |mime: &str, value| drop(data.insert(mime.to_owned(), value));
        insert("text/html", render::html(&found, &source).into());
        insert("text/plain", render::plain(&found, &source).into());
        insert(render::MIME, render::json(&found, &source));
        let display = DisplayData {
            data,
            metadata: MimeBundle::new(),
            transient: Transient::default(),
        };
        let parent = self.parent.lock().clone();
        self.iopub.publish(&parent, &display);
    }

    /// The cell that is about to run is not debugged: shown if it has breakpoints. The filters for panics and errors concern
    /// all cells, and the first one shows it.
    pub(super) fn show_unavailable(&self, problem: DebuggerUnavailable, number: u64) {
        let (has_breakpoints, filters) = {
            let debugger = self.debugger.lock();
            (
                debugger.has_breakpoints(number),
                debugger.filters_of_cells(),
            )
        };
        if !has_breakpoints {
            let mut state = self.state.lock();
            if !(filters.panics || filters.errors) || state.shown.as_ref() == Some(&problem) {
                return;
            }
            state.shown = Some(problem.clone());
        }
        self.show(problem.diagnostic());
    }

    /// The adapter has ended while it was attached.
    pub(super) fn show_end(&self, adapter: &Adapter) {
        let given_up = adapter.given_up();
        self.show(DebuggerEnded { given_up }.diagnostic());
    }

    /// A cell has run. If the adapter has ended meanwhile, its card belongs to this cell.
    pub async fn after_cell(&self) {
        let (adapter, process) = {
            let state = self.state.lock();
            (state.adapter.clone(), state.process)
        };
        // A cell goes on when LLDB lets it go, which may be before the end of the adapter is noticed.
        if let Some(adapter) = adapter
            && (!adapter.is_open() || is_untraced(process))
        {
            let begun = Instant::now();
            while self.is_attached(&adapter) && begun.elapsed() < CARD_TIMEOUT {
                tokio::time::sleep(START_POLL).await;
            }
        }
        if self.debugger.lock().is_started() {
            // Whoever has forgotten the adapter shows the card before the turn ends.
            drop(self.turn.lock().await);
        }
        self.shows_cards.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_forbids_has_a_fix_of_its_own() {
        let problem = |reason: &str| failed(reason.to_owned()).problem;
        assert_eq!(
            problem("attach failed: Operation not permitted"),
            DebuggerProblem::NotPermitted
        );
        assert_eq!(
            problem("attach failed: lost connection"),
            DebuggerProblem::Failed
        );
    }
}

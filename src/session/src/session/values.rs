//! Questions about values, requests to runs, and the process that a debugger attaches to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use stratoscope_diagnostics::Diagnostic;
use stratoscope_wire::{InspectAnswer, InspectQuestion, RunAnswer, RunRequest};

use super::{Command, Session};
use crate::debuggee::{CellLine, Debuggee};
use crate::evaluate::Interrupt;

impl Session {
    /// A request to a run of the running cell, as [`Interrupt::request`](crate::Interrupt::request).
    pub async fn request(&self, request: RunRequest) -> Option<RunAnswer> {
        let evaluator = self.shared.interrupt.lock().clone()?;
        // It waits for the process that runs the cells.
        let asked = tokio::task::spawn_blocking(move || evaluator.request(request));
        asked.await.ok().flatten()
    }

    /// As [`Evaluate::inspect_values`](crate::Evaluate::inspect_values); while a cell runs, as [`Interrupt::inspect_values`](crate::Interrupt::inspect_values).
    /// An evaluator that is starting is waited for a while, unless a cell waits for it, too.
    pub async fn inspect_values(&self, question: InspectQuestion) -> InspectAnswer {
        let command = |answer| Command::InspectValues {
            question: question.clone(),
            answer,
        };
        if let Some(found) = self.question(command).await {
            return found;
        }
        let Some(meanwhile) = self.shared.interrupt.lock().clone() else {
            return InspectAnswer::missing("no cell has run");
        };
        // It waits for the process that runs the cells.
        let asked = tokio::task::spawn_blocking(move || meanwhile.inspect_values(question));
        let failed = |_| InspectAnswer::missing("the kernel failed to ask for the value");
        asked.await.unwrap_or_else(failed)
    }

    /// As [`Interrupt::known_values`].
    pub fn known_values(&self, question: InspectQuestion) -> InspectAnswer {
        match self.handle() {
            Some(handle) => handle.known_values(question),
            None => InspectAnswer::missing("no cell has run"),
        }
    }

    /// As [`Interrupt::set_debugging`].
    pub fn set_debugging(&self, adapter: Option<u32>, has_information: bool) {
        if let Some(handle) = self.handle() {
            handle.set_debugging(adapter, has_information);
        }
    }

    /// As [`Interrupt::judged`].
    pub fn judged(&self, diagnostic: Diagnostic) -> Option<Diagnostic> {
        match self.handle() {
            Some(handle) => handle.judged(diagnostic),
            None => Some(diagnostic),
        }
    }

    /// As [`Interrupt::debuggee`].
    pub fn debuggee(&self) -> Option<Debuggee> {
        self.handle()?.debuggee()
    }

    /// As [`Interrupt::compiled_lines`].
    pub fn compiled_lines(&self) -> BTreeMap<u32, CellLine> {
        self.handle()
            .map(|it| it.compiled_lines())
            .unwrap_or_default()
    }

    /// Whether no evaluator has started and none is about to.
    pub fn has_failed_to_start(&self) -> bool {
        self.shared.has_started.load(Ordering::SeqCst) && self.handle().is_none()
    }

    fn handle(&self) -> Option<Arc<dyn Interrupt>> {
        self.shared.interrupt.lock().clone()
    }
}

//! Steps. Each statement of a cell is a closure that the library calls (`staged` in the crate `compile`), so that a step out
//! of a statement ends in the library: it goes on to the next statement of the cell.

use std::sync::Arc;

use serde_json::json;

use super::frames::Stop;
use super::{ANSWER_TIMEOUT, Adapter, Native};

/// A step that was continued more often ends where it is.
const MAX_CONTINUATIONS: u32 = 40;

impl Native {
    /// Steps: `next`, `stepIn` or `stepOut`.
    pub(super) async fn step(
        &self,
        adapter: &Adapter,
        command: &str,
        thread: u64,
    ) -> Result<(), String> {
        let arguments = json!({"threadId": thread, "granularity": "statement"});
        adapter
            .ask(command, arguments, ANSWER_TIMEOUT)
            .await
            .map(drop)
    }

    /// A step has ended: in a cell, or in a library that it has to leave.
    pub(super) async fn has_stepped(&self, adapter: &Arc<Adapter>, stop: Stop) {
        let thread = stop.thread;
        let is_mine = stop.frames.first().is_some_and(|it| it.place.is_some());
        let shows_libraries = self.debugger.lock().cells().shows_libraries;
        let count = self.state.lock().step.unwrap_or(MAX_CONTINUATIONS);
        if is_mine || shows_libraries || count >= MAX_CONTINUATIONS {
            return self.stop_at(stop, "step", "", &[]);
        }
        self.state.lock().step = Some(count + 1);
        let has_begun = match stop.is_in_a_cell() {
            true => self.step(adapter, "stepOut", thread).await,
            false => {
                self.until_next_statement(adapter, &stop).await;
                self.resume(adapter, thread).await
            }
        };
        if has_begun.is_err() {
            self.stop_at(stop, "step", "", &[]);
        }
    }

    /// The statements behind this one stop until the next stop. Not `--one-shot`, whose stops have no number.
    async fn until_next_statement(&self, adapter: &Arc<Adapter>, stop: &Stop) {
        let mut frames = stop.frames.iter().enumerate();
        let found = frames.find(|(_, it)| it.runs_the_cell() && it.file.ends_with("lib.rs"));
        let Some((index, frame)) = found else {
            return;
        };
        // A statement that is a closure is called on the line before its first one.
        let line = frame.line + u32::from(index > 0);
        let behind: Vec<u32> = {
            let state = self.state.lock();
            let lines = state.libraries.get(&frame.library).into_iter().flatten();
            let behind = lines.filter(|(compiled, it)| it.begins && **compiled > line);
            behind.map(|(compiled, _)| *compiled).collect()
        };
        for line in behind {
            let library = &frame.library;
            let command = format!("breakpoint set --shlib {library} --file lib.rs --line {line}");
            if let Some(number) = self.set(adapter, &command).await {
                self.state.lock().temporary.insert(number);
            }
        }
    }
}

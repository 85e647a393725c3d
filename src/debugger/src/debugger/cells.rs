//! What a debugger for machine code, which stops cells, has to know of the state, and what it tells.

use serde_json::{Value, json};

use super::Debugger;
use crate::action::{Action, Answered, Asked};
use crate::breakpoints::Breakpoint;
use crate::filters::OfCells;

/// The process that runs the cells, as a front end sees it.
#[derive(Debug, Default)]
pub struct CellsOfDebugger {
    /// It is stopped.
    pub is_stopped: bool,
    /// Frames of libraries are shown, and steps go into them.
    pub shows_libraries: bool,
}

impl Debugger {
    /// The process that runs the cells, as a front end sees it.
    pub fn cells(&mut self) -> &mut CellsOfDebugger {
        &mut self.cells
    }

    /// Why breakpoints in cells cannot stop; `None`: they can.
    pub fn set_missing(&mut self, reason: Option<String>) {
        self.breakpoints.missing = reason;
    }

    /// The breakpoints in cells that can stop.
    pub fn breakpoints(&self) -> &[Breakpoint] {
        self.breakpoints.valid()
    }

    /// Whether the cell that has run with this number has breakpoints, even if they cannot stop.
    pub fn has_breakpoints(&self, number: u64) -> bool {
        let path = self.sources.executed(number);
        path.is_some_and(|path| self.breakpoints.are_in(path))
    }

    /// Where a cell stops by itself.
    pub fn filters_of_cells(&self) -> OfCells {
        self.conditions.of_cells
    }

    /// A cell runs with this number.
    pub fn execute(&mut self, number: u64, code: &str) {
        self.sources.execute(number, code);
    }

    /// The path of the cell that has run with this number.
    pub fn path_of(&self, number: u64) -> Option<String> {
        self.sources.executed(number).map(str::to_owned)
    }

    /// Whether a run of training moves, which `pause` means then.
    pub fn has_moving_run(&self) -> bool {
        !self.runs.known().is_empty() || self.standing.moving().is_some()
    }

    /// An event with its number.
    pub fn event(&mut self, name: &str, body: Value) -> Value {
        json!({"type": "event", "event": name, "seq": self.next(), "body": body})
    }

    /// The reply to the content of a request that something else has answered.
    pub fn answered(&mut self, content: &Value, answer: Result<Value, String>) -> Answered {
        let request = Asked {
            seq: content["seq"].clone(),
            command: content["command"].as_str().unwrap_or_default().to_owned(),
        };
        let action = match answer {
            Ok(body) => self.reply(&request, body),
            Err(reason) => self.refused(&request, &reason),
        };
        match action {
            Action::Reply(answered) => answered,
            // Both make replies.
            _ => Answered {
                reply: Value::Null,
                events: Vec::new(),
                then: None,
            },
        }
    }
}

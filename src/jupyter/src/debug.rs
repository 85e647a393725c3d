//! The debugger's requests: `debug_request`, mostly on control. What needs no values is answered at once and in order; a
//! question about values waits in a task of its own, so that an interrupt is heard meanwhile.

use std::sync::Arc;

use native::Native;
use parking_lot::Mutex;
use serde_json::Value;
use stratoscope_debugger::{Action, Answered, Debugger, Then};
use stratoscope_session::Session;
use stratoscope_wire::{InspectQuestion, RunState};

use super::socket::iopub::Iopub;

pub mod adapter;
mod native;

/// Answers requests; clones share the debugger.
#[derive(Clone)]
pub struct Debug {
    debugger: Arc<Mutex<Debugger>>,
    session: Arc<Session>,
    native: Arc<Native>,
}

/// What a request leads to.
pub enum Begun {
    /// The debugger's own state.
    Own(Action),
    /// As [`Begun::Own`]; then the debugger of machine code does its part for the request with this content.
    Both(Answered, Value),
    /// The debugger of machine code answers the request with this content.
    Native(Value),
}

impl Begun {
    /// Whether the reply needs nothing else.
    pub fn is_answered(&self) -> bool {
        matches!(self, Self::Own(Action::Reply(_)))
    }
}

/// Requests that the debugger of machine code follows, too.
const FOLLOWED: [&str; 5] = [
    "attach",
    "disconnect",
    "terminate",
    "setBreakpoints",
    "setExceptionBreakpoints",
];

/// Why Rust code is not evaluated.
const BUSY: &str = "a cell is running, and only variables and their parts can be read meanwhile, such as `list[3].name`";

impl Debug {
    /// A debugger that nobody has started.
    pub fn new(session: Arc<Session>, iopub: Iopub) -> Self {
        // Front ends compute the path of a cell from this. There is no file: `source` has the text.
        let folder = format!("stratoscope-cells-{}/", std::process::id());
        let prefix = std::env::temp_dir().join(folder);
        let debugger = Debugger::new(prefix.to_string_lossy().into_owned());
        let debugger = Arc::new(Mutex::new(debugger));
        Self {
            native: Native::new(session.clone(), iopub, debugger.clone()),
            debugger,
            session,
        }
    }

    /// What the content of a request asks for.
    pub fn begin(&self, content: &Value) -> Begun {
        if self.native.takes(content) {
            return Begun::Native(content.clone());
        }
        let mut debugger = self.debugger.lock();
        let is_followed = content["command"]
            .as_str()
            .is_some_and(|it| FOLLOWED.contains(&it));
        if is_followed {
            debugger.set_missing(adapter::find_or_advise().err());
        }
        match debugger.request(content) {
            Action::Reply(answered) if is_followed => Begun::Both(answered, content.clone()),
            action => Begun::Own(action),
        }
    }

    /// A cell is about to run. `silent`: without outputs.
    pub async fn before_cell(&self, parent: &Arc<Value>, number: u64, code: &str, silent: bool) {
        self.native.before_cell(parent, number, code, silent).await;
    }

    /// A cell has run; its reply has not been sent.
    pub async fn after_cell(&self) {
        self.native.after_cell().await;
    }

    /// The running cell is interrupted.
    pub fn interrupt(&self) {
        self.native.interrupt();
    }

    /// A run of the running cell begins, pauses, goes on or ends; returns the events to be published.
    pub fn run_changed(&self, run: u64, now: RunState) -> Vec<Value> {
        self.debugger.lock().run_changed(run, now)
    }

    /// The running cell has ended; returns the events to be published.
    pub fn cell_ended(&self) -> Vec<Value> {
        self.native.cell_ended();
        self.debugger.lock().cell_ended()
    }

    /// What comes after a reply; returns the events to be published. A run that is moved may take long.
    pub async fn after(&self, then: Option<Then>) -> Vec<Value> {
        let mut events = Vec::new();
        match then {
            Some(Then::Evaluate(code)) => {
                let result = match self.session.evaluate_expression(code).await {
                    Ok(evaluated) => evaluated.map_err(|error| error.evalue),
                    Err(_) => Err("the kernel is shutting down".to_owned()),
                };
                events.extend(self.debugger.lock().moved(result));
            }
            Some(Then::Look) => {}
            _ => return events,
        }
        events.extend(self.look().await);
        events
    }

    /// Asks where the runs of `start!` stand, if a debugger was started and no cell runs; returns the events to be published.
    pub async fn look(&self) -> Vec<Value> {
        if !self.debugger.lock().is_started() || self.session.is_executing() {
            return Vec::new();
        }
        let answer = self.session.inspect_values(InspectQuestion::Runs).await;
        match self.session.is_executing() {
            // It is asked again at the end of that cell.
            true => Vec::new(),
            false => self.debugger.lock().runs_stand(answer),
        }
    }

    /// Gets what the answer needs, and makes it.
    pub async fn finish(&self, begun: Begun) -> Answered {
        let mut action = match begun {
            Begun::Own(action) => action,
            Begun::Native(content) => return self.native.answer(&content).await,
            Begun::Both(answered, content) => {
                self.native
                    .follow(&content, answered.reply["success"] == true)
                    .await;
                return answered;
            }
        };
        loop {
            action = match action {
                Action::Reply(answered) => {
                    match &answered.then {
                        Some(Then::Control(run, action)) => self.session.control(*run, *action),
                        Some(Then::Interrupt) => self.session.interrupt(),
                        Some(Then::Look | Then::Evaluate(_)) | None => {}
                    }
                    return answered;
                }
                Action::Move(pending) => {
                    let mut debugger = self.debugger.lock();
                    match self.session.is_executing() {
                        true => debugger.refuse(&pending, BUSY),
                        false => debugger.begin_move(pending),
                    }
                }
                Action::Inspect { question, then } => {
                    let answer = match self.native.is_stopped() {
                        true => self.session.known_values(question),
                        false => self.session.inspect_values(question).await,
                    };
                    self.debugger.lock().inspected(then, answer)
                }
                Action::Evaluate { expression, then } => {
                    let result = match self.session.is_executing() {
                        true => Err(BUSY.to_owned()),
                        false => match self.session.evaluate_expression(expression).await {
                            Ok(evaluated) => evaluated.map_err(|error| error.evalue),
                            Err(_) => Err("the kernel is shutting down".to_owned()),
                        },
                    };
                    self.debugger.lock().evaluated(then, result)
                }
            };
        }
    }
}

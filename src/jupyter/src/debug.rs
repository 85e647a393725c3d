//! The debugger's requests: `debug_request`, mostly on control. What needs no values is answered at once and in order; a
//! question about values waits in a task of its own, so that an interrupt is heard meanwhile.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use stratoscope_debugger::{Action, Answered, Debugger};
use stratoscope_session::Session;
use stratoscope_wire::RunState;

/// Answers requests; clones share the debugger.
#[derive(Clone)]
pub struct Debug {
    debugger: Arc<Mutex<Debugger>>,
    session: Arc<Session>,
}

/// Why Rust code is not evaluated.
const BUSY: &str = "a cell is running, and only variables and their parts can be read meanwhile, such as `list[3].name`";

impl Debug {
    /// A debugger that nobody has started.
    pub fn new(session: Arc<Session>) -> Self {
        // Front ends compute the path of a cell from this. There is no file: `source` has the text.
        let folder = format!("stratoscope-cells-{}/", std::process::id());
        let prefix = std::env::temp_dir().join(folder);
        let debugger = Debugger::new(prefix.to_string_lossy().into_owned());
        Self {
            debugger: Arc::new(Mutex::new(debugger)),
            session,
        }
    }

    /// What the content of a request asks for.
    pub fn begin(&self, content: &Value) -> Action {
        self.debugger.lock().request(content)
    }

    /// A run of the running cell begins, pauses, goes on or ends; returns the events to be published.
    pub fn run_changed(&self, run: u64, now: RunState) -> Vec<Value> {
        self.debugger.lock().run_changed(run, now)
    }

    /// The running cell has ended; returns the events to be published.
    pub fn cell_ended(&self) -> Vec<Value> {
        self.debugger.lock().cell_ended()
    }

    /// Gets what the answer needs, and makes it.
    pub async fn finish(&self, mut action: Action) -> Answered {
        loop {
            action = match action {
                Action::Reply(answered) => {
                    if let Some((run, action)) = answered.control {
                        self.session.control(run, action);
                    }
                    return answered;
                }
                Action::Inspect { question, then } => {
                    let answer = self.session.inspect_values(question).await;
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

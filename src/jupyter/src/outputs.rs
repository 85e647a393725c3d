//! The outputs of a running cell: each becomes a message whose parent is the cell's request.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use stratoscope_wire::{MimeBundle, RunState};

use super::comms::{Change, Comms};
use super::debug::Debug;
use super::history::History;
use super::message::{
    ClearOutput, DebugEvent, DisplayData, ExecuteResult, InputRequest, Transient, UpdateDisplayData,
};
use super::socket::iopub::Iopub;
use super::socket::stdin::Stdin;
use super::steering::Steering;
use super::widget;
use stratoscope_session::{OutputSink, PastCells, SteerRequest, SteerSocket, Stream};

/// The outputs of one cell.
pub struct CellOutputs {
    /// The request's header.
    pub parent: Arc<Value>,
    /// The sender of the request, which is asked for input.
    pub identities: Vec<Vec<u8>>,
    /// The cell's number.
    pub number: u64,
    /// Publish nothing.
    pub silent: bool,
    /// The sender is a console, which ignores updates of displays: the last state of each.
    pub last_updates: Option<Mutex<Vec<(String, MimeBundle)>>>,
    /// Whether the sender can answer questions.
    pub allow_stdin: bool,
    /// Where outputs are published.
    pub iopub: Iopub,
    /// Where the live table of variables is.
    pub comms: Comms,
    /// Whose threads are the runs.
    pub debug: Debug,
    /// Where others read and steer runs.
    pub steering: Steering,
    /// Where questions are asked.
    pub stdin: Stdin,
    /// For `%history`.
    pub history: Arc<History>,
    /// What belongs into the reply.
    pub for_reply: Mutex<ForReply>,
}

/// Collected while the cell runs.
#[derive(Default)]
pub struct ForReply {
    /// For the pager.
    pub payload: Vec<Value>,
    /// `text/plain` of the result, for the history.
    pub result_text: Option<String>,
}

impl CellOutputs {
    /// What belongs into the reply; called once, when the cell has ended.
    pub fn take_for_reply(&self) -> ForReply {
        self.tell(self.debug.cell_ended());
        // Also where the cell process was killed in the middle of a run.
        for display in self.comms.end_runs(&self.parent) {
            self.display(empty(), MimeBundle::new(), Some(display), true);
        }
        let last = self.last_updates.as_ref();
        let last = last.map(|it| std::mem::take(&mut *it.lock()));
        let has_text = |data: &MimeBundle| data.get("text/plain") != empty().get("text/plain");
        for (_, data) in last
            .into_iter()
            .flatten()
            .filter(|(_, data)| has_text(data))
        {
            self.display(data, MimeBundle::new(), None, false);
        }
        std::mem::take(&mut *self.for_reply.lock())
    }
}

impl CellOutputs {
    /// Publishes events of the debugger.
    fn tell(&self, events: Vec<Value>) {
        for event in events {
            self.iopub.publish(&self.parent, &DebugEvent(event));
        }
    }
}

impl OutputSink for CellOutputs {
    fn stream(&self, stream: Stream, text: &str) {
        if !self.silent {
            self.iopub.publish_text(&self.parent, stream, text);
        }
    }

    fn display(
        &self,
        data: MimeBundle,
        metadata: MimeBundle,
        display_id: Option<String>,
        update: bool,
    ) {
        if self.silent {
            return;
        }
        if let (true, Some(last), Some(id)) = (update, &self.last_updates, &display_id) {
            let mut last = last.lock();
            match last.iter_mut().find(|(known, _)| known == id) {
                Some((_, state)) => *state = data.clone(),
                None => last.push((id.clone(), data.clone())),
            }
        }
        let transient = Transient { display_id };
        if update {
            let content = UpdateDisplayData {
                data,
                metadata,
                transient,
            };
            self.iopub.publish_blocking(&self.parent, &content);
        } else {
            let content = DisplayData {
                data,
                metadata,
                transient,
            };
            self.iopub.publish_blocking(&self.parent, &content);
        }
    }

    fn result(&self, data: MimeBundle) {
        if self.silent {
            return;
        }
        let text = data
            .get("text/plain")
            .and_then(Value::as_str)
            .map(str::to_owned);
        self.for_reply.lock().result_text = text;
        let content = ExecuteResult {
            execution_count: self.number,
            data,
            metadata: MimeBundle::new(),
        };
        self.iopub.publish_blocking(&self.parent, &content);
    }

    fn clear(&self, wait: bool) {
        if !self.silent {
            self.iopub.publish(&self.parent, &ClearOutput { wait });
        }
    }

    fn input(&self, prompt: &str, password: bool) -> Option<String> {
        if !self.allow_stdin {
            return None;
        }
        let content = InputRequest {
            prompt: prompt.to_owned(),
            password,
        };
        self.stdin.ask(&self.identities, &self.parent, content)
    }

    fn show_variables_live(&self, mut table: MimeBundle) {
        if self.silent {
            return;
        }
        let id = self.comms.open_table(&self.parent, html(&table));
        table.extend([widget::view(&id)]);
        self.display(table, MimeBundle::new(), None, false);
    }

    fn has_live_variables(&self) -> bool {
        self.comms.has_table()
    }

    fn update_variables(&self, table: &MimeBundle) {
        self.comms.update_table(&self.parent, html(table));
    }

    fn run_controls(&self, run: u64, state: RunState) {
        if self.silent {
            return;
        }
        self.tell(self.debug.run_changed(run, state));
        match self.comms.set_run(&self.parent, run, state) {
            Change::Opened { view, display } => {
                let mut data = empty();
                data.extend([view]);
                self.display(data, MimeBundle::new(), Some(display), false);
            }
            Change::Ended { display } => {
                self.display(empty(), MimeBundle::new(), Some(display), true);
            }
            Change::None => {}
        }
    }

    fn steer(&self, request: SteerRequest) -> Result<Option<SteerSocket>, String> {
        self.steering.steer(request)
    }

    fn page(&self, data: MimeBundle) {
        self.for_reply
            .lock()
            .payload
            .push(json!({"source": "page", "data": data, "start": 0}));
    }

    fn next_input(&self, text: &str) -> bool {
        if self.silent {
            return false;
        }
        self.for_reply
            .lock()
            .payload
            .push(json!({"source": "set_next_input", "text": text, "replace": false}));
        // A front end that executes notebooks cannot answer questions, and inserts no cells.
        self.allow_stdin
    }

    fn ask_exit(&self) {
        self.for_reply
            .lock()
            .payload
            .push(json!({"source": "ask_exit", "keepkernel": false}));
    }

    fn history(&self) -> Option<&dyn PastCells> {
        Some(&*self.history)
    }

    fn replace_input(&self, text: &str) {
        self.for_reply
            .lock()
            .payload
            .push(json!({"source": "set_next_input", "text": text, "replace": true}));
    }
}

/// What a display shows that has nothing to show.
fn empty() -> MimeBundle {
    MimeBundle::from_iter([("text/plain".to_owned(), json!(""))])
}

fn html(bundle: &MimeBundle) -> &str {
    bundle
        .get("text/html")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

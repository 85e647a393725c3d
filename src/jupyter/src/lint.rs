//! The comm `stratoscope.lint`: a front end sends the text of a cell while it is typed, and gets what the checks find in it.
//!
//! ```text
//! request  {"sequence": 7, "cell": "id", "text": "…", "strategy_elsewhere": false}
//! answer   {"sequence": 7, "cell": "id", "ranges": [{
//!             "from": 17, "to": 26, "severity": "error" | "warning" | "note", "code": "SC0101", "message": "…",
//!             "why": ["…"], "labels": [{"from": …, "to": …, "text": "…"}],
//!             "fixes": [{"title": "…", "edits": [{"from": …, "to": …, "insert": "…"}]}],
//!             "page": {"name": "…", "finds": "…", "why": "…", "good": "…"}}]}
//! ```
//!
//! Positions are UTF-16 code units of the text. `strategy_elsewhere` (`true` if it is missing) says that another cell of
//! the notebook may make a strategy; where none does, SC0102 is found before any cell has run.
//!
//! The requests arrive on shell, which does not wait for a running cell. They are answered by a thread of the runtime's
//! pool, one at a time, and without `busy` and `idle`: a front end would show that the kernel works at every key, and that
//! it is idle while a cell runs. A front end must therefore not wait for `idle`.
//!
//! Answers that nobody needs are not made: a request replaces the one of the same cell that waits, and the answer to a
//! request that was replaced meanwhile is dropped.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use stratoscope_diagnostics::rules::explain;
use stratoscope_diagnostics::{Diagnostic, Edit, Place, Severity};
use stratoscope_os::console::warn;
use stratoscope_session::Lint;

use super::envelope::Request;
use super::message::{CommClose, CommMessage, CommOpen};
use super::open_comms::{CommEvent, OpenComms};
use super::socket::iopub::Iopub;
use super::utf16::Utf16;

/// The target of the comm.
pub const TARGET: &str = "stratoscope.lint";

/// Longer texts are answered without ranges, as nothing was found.
const MOST_TEXT: usize = 1 << 20;
/// Longer ids of cells are refused.
const MOST_ID: usize = 256;
/// Of more findings, the first ones are sent.
const MOST_RANGES: usize = 100;
/// Requests that wait, and their bytes; the oldest ones are dropped.
const MOST_WAITING: usize = 1024;
const MOST_WAITING_BYTES: usize = 16 << 20;

/// Answers the requests; clones share everything.
#[derive(Clone)]
pub struct LintComms {
    iopub: Iopub,
    /// `None`: the target does not exist.
    linter: Option<Arc<dyn Lint>>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    comms: OpenComms,
    /// The requests that wait, the oldest first; at most one of each cell.
    waiting: VecDeque<Waiting>,
    /// The bytes of their texts.
    bytes: usize,
    /// Whether a thread answers.
    answers: bool,
}

/// A request that waits for its answer.
struct Waiting {
    /// The header of its message.
    parent: Arc<Value>,
    comm_id: String,
    asked: Asked,
}

/// The data of a request.
#[derive(Debug, Deserialize)]
struct Asked {
    sequence: u64,
    cell: String,
    text: String,
    #[serde(default = "unknown")]
    strategy_elsewhere: bool,
}

fn unknown() -> bool {
    true
}

impl Waiting {
    /// Whether both are of the same cell.
    fn is_of(&self, comm_id: &str, cell: &str) -> bool {
        self.comm_id == comm_id && self.asked.cell == cell
    }
}

impl State {
    /// The next request.
    fn pop(&mut self) -> Option<Waiting> {
        let next = self.waiting.pop_front()?;
        self.bytes -= next.asked.text.len();
        Some(next)
    }

    /// Lets a request wait, in the place of the one of the same cell. One that is older than that is dropped.
    fn push(&mut self, request: Waiting) {
        let (comm_id, asked) = (&request.comm_id, &request.asked);
        let known = (self.waiting.iter()).position(|it| it.is_of(comm_id, &asked.cell));
        self.bytes += asked.text.len();
        if let Some(at) = known {
            let waiting = &mut self.waiting[at];
            let dropped = match waiting.asked.sequence < asked.sequence {
                true => std::mem::replace(waiting, request),
                false => request,
            };
            self.bytes -= dropped.asked.text.len();
        } else {
            self.waiting.push_back(request);
        }
        while self.waiting.len() > MOST_WAITING || self.bytes > MOST_WAITING_BYTES {
            self.pop();
        }
    }

    fn close(&mut self, comm_id: &str) -> bool {
        self.forget(comm_id);
        self.comms.close(comm_id)
    }

    /// Drops the requests of a comm that wait.
    fn forget(&mut self, comm_id: &str) {
        let (gone, kept) = (std::mem::take(&mut self.waiting).into_iter())
            .partition::<VecDeque<_>, _>(|it| it.comm_id == comm_id);
        self.waiting = kept;
        self.bytes -= gone.iter().map(|it| it.asked.text.len()).sum::<usize>();
    }
}

impl LintComms {
    /// No comm is open.
    pub fn new(iopub: Iopub, linter: Option<Arc<dyn Lint>>) -> Self {
        Self {
            iopub,
            linter,
            state: Arc::default(),
        }
    }

    /// Takes a message if it is one of these comms; returns whether it was.
    pub fn take(&self, request: &Request) -> bool {
        let parent = || Arc::new(request.header_json.clone());
        match CommEvent::of(request) {
            Some(CommEvent::Open(comm)) => self.open(&parent(), comm),
            Some(CommEvent::Message(message)) => self.receive(&parent(), message),
            Some(CommEvent::Close(comm)) => self.state.lock().close(&comm.comm_id),
            None => false,
        }
    }

    /// The ids of the open comms.
    pub fn list(&self) -> Vec<String> {
        self.state.lock().comms.ids()
    }

    fn open(&self, parent: &Arc<Value>, comm: CommOpen) -> bool {
        if comm.target_name != TARGET || self.linter.is_none() {
            return false;
        }
        let mut state = self.state.lock();
        if let Some(comm_id) = state.comms.open(comm.comm_id) {
            state.forget(&comm_id);
            let data = json!({});
            self.iopub.publish(parent, &CommClose { comm_id, data });
        }
        true
    }

    fn receive(&self, parent: &Arc<Value>, message: CommMessage) -> bool {
        let mut state = self.state.lock();
        if !state.comms.contains(&message.comm_id) {
            return false;
        }
        match Asked::deserialize(message.data) {
            Ok(asked) if asked.cell.len() <= MOST_ID => {
                state.push(Waiting {
                    parent: parent.clone(),
                    comm_id: message.comm_id,
                    asked,
                });
                if !std::mem::replace(&mut state.answers, true) {
                    let comms = self.clone();
                    tokio::task::spawn_blocking(move || comms.answer_all());
                }
            }
            Ok(_) => warn("a request to check a cell was dropped: the id of the cell is too long"),
            Err(error) => warn(&format!(
                "a request to check a cell is malformed and was dropped: {error}"
            )),
        }
        true
    }

    /// Answers until nothing waits. Runs once at a time, beside the tasks.
    fn answer_all(&self) {
        loop {
            let next = {
                let mut state = self.state.lock();
                let next = state.pop();
                state.answers = next.is_some();
                next
            };
            let Some(request) = next else { return };
            let data = self.answer(&request.asked);
            let (comm_id, cell) = (request.comm_id, &request.asked.cell);
            let is_needed = {
                let state = self.state.lock();
                let replaced = state.waiting.iter().any(|it| it.is_of(&comm_id, cell));
                !replaced && state.comms.contains(&comm_id)
            };
            if is_needed {
                let answer = CommMessage { comm_id, data };
                self.iopub.publish_blocking(&request.parent, &answer);
            }
        }
    }

    fn answer(&self, asked: &Asked) -> Value {
        let check = |linter: &Arc<dyn Lint>| linter.lint(&asked.text, asked.strategy_elsewhere);
        let found = match &self.linter {
            Some(linter) if asked.text.len() <= MOST_TEXT => {
                // A mistake in a check must not end the answers.
                catch_unwind(AssertUnwindSafe(|| check(linter))).unwrap_or_default()
            }
            _ => Vec::new(),
        };
        let utf16 = Utf16::of(&asked.text);
        let ranges: Vec<Value> = (found.iter())
            .filter_map(|found| range(found, &utf16))
            .take(MOST_RANGES)
            .collect();
        json!({"sequence": asked.sequence, "cell": asked.cell, "ranges": ranges})
    }
}

/// What is sent of a finding; `None`: it has no place in the text.
fn range(found: &Diagnostic, utf16: &Utf16<'_>) -> Option<Value> {
    let labels = (found.labels.iter())
        .filter_map(|label| Some((place(&label.place, utf16)?, label.text.as_str())));
    let mut labels = labels.map(|((from, to), text)| json!({"from": from, "to": to, "text": text}));
    let first = labels.next()?;
    let (from, to) = (first["from"].clone(), first["to"].clone());
    let labels: Vec<Value> = std::iter::once(first).chain(labels).collect();
    let fixes: Vec<Value> = (found.fixes.iter())
        .map(|fix| json!({"title": fix.title, "edits": edits(&fix.edits, utf16)}))
        .collect();
    let page = explain(&found.code).map(|entry| {
        let page = &entry.page;
        json!({"name": page.name, "finds": page.finds, "why": page.why, "good": page.good})
    });
    let severity = match found.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    Some(json!({
        "from": from,
        "to": to,
        "severity": severity,
        "code": found.code,
        "message": found.message,
        "why": found.why,
        "labels": labels,
        "fixes": fixes,
        "page": page,
    }))
}

/// The edits of a fix in the order of the text; none if they cannot be made together.
fn edits(edits: &[Edit], utf16: &Utf16<'_>) -> Vec<Value> {
    let placed = |edit: &Edit| Some((place(&edit.place, utf16)?, edit.replacement.clone()));
    let Some(mut edits) = edits.iter().map(placed).collect::<Option<Vec<_>>>() else {
        return Vec::new();
    };
    edits.sort();
    if edits.windows(2).any(|two| two[0].0.1 > two[1].0.0) {
        return Vec::new();
    }
    let edits = edits.into_iter();
    edits
        .map(|((from, to), insert)| json!({"from": from, "to": to, "insert": insert}))
        .collect()
}

fn place(place: &Place, utf16: &Utf16<'_>) -> Option<(usize, usize)> {
    match place {
        Place::Span(span) if span.start <= span.end => {
            Some((utf16.offset(span.start)?, utf16.offset(span.end)?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;

//! Runs that others can read and steer. Two doors lead to one handler: the comm `stratoscope.runs` of a front end, and, if
//! `%steer socket` asks for it, a socket of this machine with a key (`http.rs`).
//!
//! ```text
//! request  {"id": 7, "run": 3 | "name", "action": "set_learning_rate", "arguments": {"rate": 1e-5}}
//! answer   {"id": 7, "ok": true, "result": {"step": 40, "what": "learning rate 1e-5 from here on"}}
//!          {"id": 7, "ok": false, "error": {"code": "SC0103", "message": "…"}}
//! ```
//!
//! The action `runs` lists the runs and all actions with their arguments as JSON Schema. A run of the running cell has a number,
//! and its loop answers between two optimizer steps. A run of `start!` that stands between two cells has the name of its
//! variable; its request becomes an expression that the evaluator evaluates, as a move of the debugger's panel does. In both
//! cases the cell process checks the arguments (`src/train/src/requests`), so that the table of actions, the checks and
//! the history are one. Here are only the limits: of sizes, of rates, and of requests that wait.
//!
//! Nothing of a request is logged.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use stratoscope_session::{Session, SteerRequest, SteerSocket};
use stratoscope_wire::request::{RUNS, refusal};
use stratoscope_wire::{InspectAnswer, InspectQuestion, RunRequest, StandingRun};
use tokio::runtime::Handle;

use super::debug::Debug;
use super::envelope::Request;
use super::message::{CommClose, CommMessage, CommOpen, DebugEvent};
use super::open_comms::{CommEvent, OpenComms};
use super::socket::iopub::Iopub;

mod http;

/// The target of the comm.
pub const TARGET: &str = "stratoscope.runs";

/// Longer requests are refused, in bytes of JSON.
pub const MAX_REQUEST_BYTES: usize = 16 << 10;
/// Requests that wait for an answer at once.
const MAX_WAITING: usize = 16;
/// Requests a second over some time, and at once after a pause.
const REQUESTS_PER_SECOND: f64 = 20.0;
const MAX_BURST: f64 = 40.0;

/// Answers requests; clones share everything.
#[derive(Clone)]
pub struct Steering {
    session: Arc<Session>,
    debug: Debug,
    iopub: Iopub,
    runtime: Handle,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    comms: Mutex<OpenComms>,
    waiting: AtomicUsize,
    rate: Mutex<Rate>,
    socket: Mutex<Option<http::Socket>>,
}

/// How many requests may come now: a bucket of tokens.
struct Rate {
    tokens: f64,
    filled: Instant,
}

impl Default for Rate {
    fn default() -> Self {
        Self {
            tokens: MAX_BURST,
            filled: Instant::now(),
        }
    }
}

impl Rate {
    /// Whether a request may come.
    fn admits(&mut self, now: Instant) -> bool {
        let seconds = now.duration_since(self.filled).as_secs_f64();
        self.tokens = (self.tokens + seconds * REQUESTS_PER_SECOND).min(MAX_BURST);
        self.filled = now;
        let has_one = self.tokens >= 1.0;
        self.tokens -= f64::from(u8::from(has_one));
        has_one
    }
}

/// A request as it comes.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    /// Read by [`id_of`].
    #[serde(default, rename = "id")]
    _id: Value,
    #[serde(default)]
    run: Option<Named>,
    action: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

/// How a request names a run.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Named {
    Number(u64),
    Variable(String),
}

/// The `id` of a request, which its answer repeats: a number or a short text.
fn id_of(data: &Value) -> Option<Value> {
    match &data["id"] {
        id @ Value::Number(_) => Some(id.clone()),
        Value::String(id) if id.len() <= 100 => Some(id.as_str().into()),
        _ => None,
    }
}

/// Reads a request.
///
/// # Errors
/// The answer to one that is none.
fn parsed(data: Value) -> Result<Asked, Value> {
    const FORM: &str = "expected {\"id\": …, \"run\": …, \"action\": …, \"arguments\": {…}}";
    let is_identified = data["id"].is_null() || id_of(&data).is_some();
    match Asked::deserialize(data) {
        Ok(asked) if is_identified => Ok(asked),
        Ok(_) => Err(refusal("malformed", "`id` is a number or a short text")),
        Err(_) => Err(refusal("malformed", FORM)),
    }
}

/// Counts a request that waits, until it is dropped.
struct Waits<'w>(&'w AtomicUsize);

impl<'w> Waits<'w> {
    fn begin(waiting: &'w AtomicUsize) -> Option<Self> {
        let before = waiting.fetch_add(1, Ordering::SeqCst);
        let waits = Self(waiting);
        (before < MAX_WAITING).then_some(waits)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Steering {
    /// No comm and no socket is open. Called in the runtime of the kernel.
    pub fn new(session: Arc<Session>, debug: Debug, iopub: Iopub) -> Self {
        Self {
            session,
            debug,
            iopub,
            runtime: Handle::current(),
            shared: Arc::default(),
        }
    }

    /// Opens or closes the socket; see [`OutputSink::steer`](stratoscope_session::OutputSink::steer).
    pub fn steer(&self, request: SteerRequest) -> Result<Option<SteerSocket>, String> {
        let mut socket = self.shared.socket.lock();
        match request {
            SteerRequest::Show => {}
            SteerRequest::Close => *socket = None,
            SteerRequest::Open if socket.is_some() => {}
            SteerRequest::Open => {
                let opened = http::Socket::open(self.clone(), &self.runtime);
                let failed = |error| format!("the socket cannot be opened: {error}");
                *socket = Some(opened.map_err(failed)?);
            }
        }
        Ok(socket.as_ref().map(|it| it.place.clone()))
    }

    /// The kernel ends: the socket is closed, and the file of its key is removed.
    pub fn close(&self) {
        *self.shared.socket.lock() = None;
    }

    /// Answers a request. `parent`: the header of the message that it came with.
    async fn answer(&self, from: &str, data: Value, parent: &Arc<Value>) -> Value {
        let id = id_of(&data);
        let mut answer = match self.admitted(data) {
            Ok(asked) => {
                let request = RunRequest {
                    run: None,
                    from: from.to_owned(),
                    action: asked.action,
                    arguments: asked.arguments,
                };
                match Waits::begin(&self.shared.waiting) {
                    Some(_waits) => self.handled(asked.run, request, parent).await,
                    None => refusal("too_many", "too many requests wait for an answer"),
                }
            }
            Err(answer) => answer,
        };
        if let Some(id) = id {
            answer["id"] = id;
        }
        answer
    }

    /// Checks the rate, the size and the form of a request.
    ///
    /// # Errors
    /// The answer to one that is refused.
    fn admitted(&self, data: Value) -> Result<Asked, Value> {
        if !self.shared.rate.lock().admits(Instant::now()) {
            let message = "too many requests: at most 20 a second";
            return Err(refusal("too_many", message));
        }
        if data.to_string().len() > MAX_REQUEST_BYTES {
            return Err(refusal("too_large", "a request has at most 16 KiB"));
        }
        parsed(data)
    }

    async fn handled(
        &self,
        run: Option<Named>,
        mut request: RunRequest,
        parent: &Arc<Value>,
    ) -> Value {
        if request.action == RUNS {
            return self.runs(request).await;
        }
        if !self.session.is_executing() {
            return self.between_cells(run, request, parent).await;
        }
        request.run = match run {
            None => None,
            Some(Named::Number(number)) => Some(number),
            Some(Named::Variable(_)) => {
                let message = "a cell is running: the runs that it trains have numbers, the others wait for its end";
                return refusal("not_now", message);
            }
        };
        self.of_the_cell(request).await
    }

    /// Asks the loop of a run of the running cell.
    async fn of_the_cell(&self, request: RunRequest) -> Value {
        let message = "no answer: no cell has run, its process has ended, or the request waits for a long step and may still be done";
        let answer = self.session.request(request).await;
        answer.unwrap_or_else(|| refusal("no_answer", message))
    }

    /// The runs of the running cell, those that stand, and all actions.
    async fn runs(&self, request: RunRequest) -> Value {
        let mut answer = self.of_the_cell(request).await;
        if answer["ok"] == true {
            let standing = self.standing().await;
            let standing = standing.iter().map(|run| {
                json!({"run": run.name, "state": "standing", "optimizer_steps": run.made, "stop": run.stop})
            });
            answer["result"]["standing"] = standing.collect();
        }
        answer
    }

    async fn standing(&self) -> Vec<StandingRun> {
        if self.session.is_executing() {
            return Vec::new();
        }
        match self.session.inspect_values(InspectQuestion::Runs).await {
            InspectAnswer::Runs { runs } => runs,
            _ => Vec::new(),
        }
    }

    /// Does what is asked of a run that stands, as a cell would.
    async fn between_cells(
        &self,
        run: Option<Named>,
        request: RunRequest,
        parent: &Arc<Value>,
    ) -> Value {
        let standing = self.standing().await;
        let found = match &run {
            Some(Named::Number(_)) => None,
            Some(Named::Variable(name)) => standing.iter().find(|it| it.name == *name),
            None if standing.len() > 1 => {
                return refusal("which_run", "several runs stand: name one by `run`");
            }
            None => standing.first(),
        };
        let Some(found) = found else {
            let message =
                "no cell is running, and no run with steps left stands in such a variable";
            return refusal("no_run", message);
        };
        let code = expression(&found.name, &request);
        if self.session.is_executing() {
            return refusal("not_now", "a cell is running");
        }
        let evaluated = self.session.evaluate_expression(code).await;
        // The panel of the debugger shows where the run stands now.
        for event in self.debug.look().await {
            self.iopub.publish(parent, &DebugEvent(event));
        }
        match evaluated {
            Ok(Ok(mut data)) => data
                .remove("application/json")
                .unwrap_or_else(|| refusal("failed", "the run has given no answer")),
            Ok(Err(error)) => refusal("failed", error.evalue),
            Err(_) => refusal("failed", "the kernel is shutting down"),
        }
    }
}

/// The call of a request, as Rust. All that comes from outside is in literals of texts; the name is that of a variable.
fn expression(name: &str, request: &RunRequest) -> String {
    let RunRequest {
        from,
        action,
        arguments,
        ..
    } = request;
    let arguments = Value::Object(arguments.clone()).to_string();
    format!("::stratoscope::cell::request(&{name}, {from:?}, {action:?}, {arguments:?})")
}

impl Steering {
    /// Takes a message if it is one of these comms; returns whether it was. Answers come later, without `busy` and `idle`.
    pub fn take(&self, request: &Request) -> bool {
        let parent = || Arc::new(request.header_json.clone());
        match CommEvent::of(request) {
            Some(CommEvent::Open(comm)) => self.open(&parent(), comm),
            Some(CommEvent::Message(message)) => self.receive(parent(), message),
            Some(CommEvent::Close(comm)) => self.shared.comms.lock().close(&comm.comm_id),
            None => false,
        }
    }

    /// The ids of the open comms.
    pub fn list(&self) -> Vec<String> {
        self.shared.comms.lock().ids()
    }

    fn open(&self, parent: &Arc<Value>, comm: CommOpen) -> bool {
        if comm.target_name != TARGET {
            return false;
        }
        if let Some(comm_id) = self.shared.comms.lock().open(comm.comm_id) {
            let data = json!({});
            self.iopub.publish(parent, &CommClose { comm_id, data });
        }
        true
    }

    fn receive(&self, parent: Arc<Value>, message: CommMessage) -> bool {
        let CommMessage { comm_id, data } = message;
        if !self.shared.comms.lock().contains(&comm_id) {
            return false;
        }
        let steering = self.clone();
        tokio::spawn(async move {
            let data = steering.answer("comm", data, &parent).await;
            steering
                .iopub
                .publish(&parent, &CommMessage { comm_id, data });
        });
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_comes_from_outside_stays_in_literals() {
        let arguments = json!({"prefix": "a\"); drop(run); (\"\\"});
        let request = RunRequest {
            from: "socket".to_owned(),
            action: "x\", \"y".to_owned(),
            arguments: arguments.as_object().expect("an object").clone(),
            ..RunRequest::default()
        };
        let call = syn::parse_str::<syn::ExprCall>(&expression("run", &request)).expect("one call");
        let texts: Vec<String> = (call.args.iter().skip(1))
            .map(|it| match it {
                syn::Expr::Lit(syn::ExprLit {
                    lit: syn::Lit::Str(text),
                    ..
                }) => text.value(),
                _ => panic!("no literal"),
            })
            .collect();
        assert_eq!(texts, ["socket", "x\", \"y", &arguments.to_string()]);
    }

    #[test]
    fn requests_are_read_strictly() {
        let asked = parsed(json!({"id": 3, "run": "run", "action": "pause"})).expect("a request");
        assert!(matches!(asked.run, Some(Named::Variable(name)) if name == "run"));
        for data in [
            json!(null),
            json!({}),
            json!({"action": 3}),
            json!({"action": "pause", "run": -1}),
            json!({"action": "pause", "arguments": []}),
            json!({"action": "pause", "other": 1}),
            json!({"action": "pause", "id": {}}),
            json!({"action": "pause", "id": "x".repeat(101)}),
        ] {
            let answer = parsed(data.clone()).expect_err("is refused");
            assert_eq!(answer["error"]["code"], "malformed", "{data}");
        }
    }

    #[test]
    fn the_rate_is_limited_and_recovers() {
        let mut rate = Rate::default();
        let now = rate.filled;
        let admitted = (0..100).filter(|_| rate.admits(now)).count();
        assert_eq!(admitted, MAX_BURST as usize);
        let later = now + Duration::from_millis(150);
        let admitted = (0..100).filter(|_| rate.admits(later)).count();
        assert_eq!(admitted, 3);
    }

    #[test]
    fn waiting_requests_are_counted() {
        let waiting = AtomicUsize::new(0);
        let all: Vec<_> = (0..MAX_WAITING)
            .map(|_| Waits::begin(&waiting).expect("has room"))
            .collect();
        assert!(Waits::begin(&waiting).is_none());
        drop(all);
        assert_eq!(waiting.load(Ordering::SeqCst), 0);
    }
}

//! Executes cells in the order in which their requests arrived.
//!
//! Guarantees for each cell: `busy`, `execute_input`, the outputs in order, at most one `error`,
//! the reply, `idle`. A cell that fails aborts the cells that were waiting at that moment.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::comms::Comms;
use super::consoles::Consoles;
use super::debug::Debug;
use super::envelope::Request;
use super::history::History;
use super::message::{DebugEvent, Error, ExecuteInput, ExecuteReply, ExecuteRequest};
use super::outputs::{CellOutputs, ForReply};
use super::running::Running;
use super::socket::iopub::Iopub;
use super::socket::router::Replies;
use super::socket::stdin::Stdin;
use super::steering::Steering;
use stratoscope_session::{CellError, CellOutcome, OwnedCell, Session, interrupted};

/// How long after an error the executor waits for the cells that were sent together with the failing one, which
/// may still be on their way through the shell socket. The reply of the failing cell waits as long.
const ABORT_WITHIN: Duration = Duration::from_millis(10);

/// The queue of cells; clones share it.
#[derive(Clone)]
pub struct Executor {
    queue: UnboundedSender<Request>,
}

impl Executor {
    /// The queue, and the task that executes its cells.
    pub fn new(
        session: Arc<Session>,
        history: Arc<History>,
        (iopub, running): (Iopub, Running),
        (comms, debug, steering): (Comms, Debug, Steering),
        (stdin, consoles): (Stdin, Consoles),
        replies: Replies,
    ) -> (Self, impl Future<Output = ()>) {
        let (queue, requests) = unbounded_channel();
        let task = Task {
            session,
            history,
            iopub,
            running,
            comms,
            debug,
            steering,
            stdin,
            consoles,
            replies,
            requests,
            count: 0,
        };
        (Self { queue }, task.run())
    }

    /// Executes a cell after those before it.
    pub fn enqueue(&self, request: Request) {
        // The task ends only with the kernel.
        let _ = self.queue.send(request);
    }
}

struct Task {
    session: Arc<Session>,
    history: Arc<History>,
    iopub: Iopub,
    running: Running,
    comms: Comms,
    debug: Debug,
    steering: Steering,
    stdin: Stdin,
    consoles: Consoles,
    replies: Replies,
    requests: UnboundedReceiver<Request>,
    /// The number of the last stored cell.
    count: u64,
}

impl Task {
    async fn run(mut self) {
        while let Some(request) = self.requests.recv().await {
            self.handle(request).await;
        }
    }

    async fn handle(&mut self, request: Request) {
        let parent = Arc::new(request.header_json.clone());
        self.running.begin_cell(&parent);
        let (reply, abort) = match ExecuteRequest::deserialize(&request.content) {
            Ok(content) => self.execute(&request, &parent, content).await,
            Err(error) => {
                let error = Error::malformed(&request.header.msg_type, &error);
                self.iopub.publish(&parent, &error);
                (ExecuteReply::error(self.count, error, Vec::new()), false)
            }
        };
        // Taken before the reply is sent: what a client sends after it has read the reply is executed.
        let mut aborted = Vec::new();
        if abort {
            tokio::time::sleep(ABORT_WITHIN).await;
            while let Ok(waiting) = self.requests.try_recv() {
                aborted.push(waiting);
            }
        }
        self.replies.send(&request, &reply).await;
        self.running.end_cell(&parent);
        for event in self.debug.look().await {
            self.iopub.publish(&parent, &DebugEvent(event));
        }
        self.history.keep();
        for waiting in aborted {
            let parent = Arc::new(waiting.header_json.clone());
            self.running.begin_cell(&parent);
            self.replies.send(&waiting, &ExecuteReply::aborted()).await;
            self.running.end_cell(&parent);
        }
    }

    /// The reply, and whether waiting cells are to be aborted.
    async fn execute(
        &mut self,
        request: &Request,
        parent: &Arc<Value>,
        content: ExecuteRequest,
    ) -> (ExecuteReply, bool) {
        let is_blank = content.code.trim().is_empty();
        if !content.silent {
            let input = ExecuteInput {
                code: &content.code,
                execution_count: self.count + u64::from(!is_blank),
            };
            self.iopub.publish(parent, &input);
        }
        if is_blank {
            let expressions = self.user_expressions(&content.user_expressions).await;
            return (ExecuteReply::ok(self.count, expressions, Vec::new()), false);
        }
        let number = self.count + 1;
        let is_stored = content.store_history && !content.silent;
        if is_stored {
            self.count = number;
            self.history.push(number, content.code.clone());
        }
        let (outcome, for_reply) = self.run_cell(request, parent, &content, number).await;
        if is_stored && let Some(text) = for_reply.result_text {
            self.history.set_output(number, text);
        }
        let error = match outcome {
            CellOutcome::Ok => {
                let expressions = self.user_expressions(&content.user_expressions).await;
                let reply = ExecuteReply::ok(number, expressions, for_reply.payload);
                return (reply, false);
            }
            CellOutcome::Error(error) => error,
            CellOutcome::Interrupted { lost } => interrupted(number, lost),
        };
        let mut error = Error::from(error);
        if content.stop_on_error && !content.allow_stdin {
            error = error.for_a_log();
        }
        if !content.silent {
            self.iopub.publish(parent, &error);
        }
        let reply = ExecuteReply::error(number, error, for_reply.payload);
        (reply, content.stop_on_error)
    }

    /// Runs a cell in the session; its outcome, and what belongs into the reply.
    async fn run_cell(
        &self,
        request: &Request,
        parent: &Arc<Value>,
        content: &ExecuteRequest,
        number: u64,
    ) -> (CellOutcome, ForReply) {
        let outputs = Arc::new(CellOutputs {
            parent: parent.clone(),
            identities: request.identities.clone(),
            number,
            silent: content.silent,
            last_updates: (content.allow_stdin && self.consoles.has(&request.header_json))
                .then(Mutex::default),
            allow_stdin: content.allow_stdin,
            iopub: self.iopub.clone(),
            comms: self.comms.clone(),
            debug: self.debug.clone(),
            steering: self.steering.clone(),
            stdin: self.stdin.clone(),
            history: self.history.clone(),
            for_reply: Mutex::default(),
        });
        let cell = OwnedCell {
            code: content.code.clone(),
            number,
            silent: content.silent,
        };
        self.debug
            .before_cell(parent, number, &content.code, content.silent)
            .await;
        let outcome = self.session.execute(cell, outputs.clone()).await;
        self.debug.after_cell().await;
        let outcome = outcome.unwrap_or_else(|_| {
            let reason = "the kernel is being shut down".to_owned();
            CellOutcome::Error(CellError {
                ename: "KernelEnded".to_owned(),
                traceback: vec![reason.clone()],
                evalue: reason,
            })
        });
        (outcome, outputs.take_for_reply())
    }

    async fn user_expressions(&self, expressions: &Map<String, Value>) -> Value {
        let mut results = Map::new();
        for (name, expression) in expressions {
            let expression = match expression {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let result = match self.session.evaluate_expression(expression).await {
                Ok(Ok(data)) => json!({"status": "ok", "data": data, "metadata": {}}),
                Ok(Err(error)) => json!({
                    "status": "error",
                    "ename": error.ename,
                    "evalue": error.evalue,
                    "traceback": error.traceback,
                }),
                Err(_) => continue,
            };
            results.insert(name.clone(), result);
        }
        Value::Object(results)
    }
}

//! Answers requests: everything that arrives on shell and control except the execution of cells.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stratoscope_debugger::Then;
use stratoscope_os::console::warn;
use stratoscope_session::Session;
use tokio::sync::mpsc::UnboundedSender;

use super::comms::Comms;
use super::completeness::is_complete;
use super::consoles::Consoles;
use super::cursor::{byte_offset, code_points};
use super::debug::{Begun, Debug};
use super::envelope::Request;
use super::execution::Executor;
use super::history::{Entry, History};
use super::kernel_info::kernel_info;
use super::lint::{self, LintComms};
use super::message::{
    Access, CommClose, CommInfoReply, CommInfoRequest, CommMessage, CommOpen, CompleteReply,
    CompleteRequest, DebugEvent, DebugReply, HistoryReply, HistoryRequest, InspectReply,
    InspectRequest, InterruptReply, IsCompleteRequest, MessageType, ShutdownReply, ShutdownRequest,
};
use super::running::Running;
use super::socket::iopub::Iopub;
use super::socket::router::{Replies, Requests};
use super::socket::stdin::Stdin;
use super::steering::{self, Steering};

/// Why the kernel shuts down.
pub struct Shutdown {
    /// The header of the request; `{}` without one.
    pub parent: Value,
    /// A new kernel is started afterwards.
    pub restart: bool,
}

impl Shutdown {
    /// A shutdown that no message asked for: a signal, or the end of the parent process.
    pub fn without_request() -> Self {
        Self {
            parent: json!({}),
            restart: false,
        }
    }
}

/// Answers requests; clones share everything.
#[derive(Clone)]
pub struct RequestHandler {
    /// Runs the cells.
    pub session: Arc<Session>,
    /// The executed cells.
    pub history: Arc<History>,
    /// Publishes outputs.
    pub iopub: Iopub,
    /// Publishes states.
    pub running: Running,
    /// The open comms.
    pub comms: Comms,
    /// Those that check cells while they are typed.
    pub lint: LintComms,
    /// Answers the debugger's requests.
    pub debug: Debug,
    /// Answers requests to runs.
    pub steering: Steering,
    /// Asks for input.
    pub stdin: Stdin,
    /// The senders that ignore updates of displays.
    pub consoles: Consoles,
    /// Queues cells.
    pub executor: Executor,
    /// Ends the kernel.
    pub shutdown: UnboundedSender<Shutdown>,
}

impl RequestHandler {
    /// Answers the requests of one channel. Cells are only queued, and requests that need the evaluator wait
    /// in a task of their own, so that the next request is read at once.
    pub async fn serve(self, mut requests: Requests, replies: Replies) {
        loop {
            let request = requests.next().await;
            match request.header.msg_type {
                MessageType::ExecuteRequest => self.executor.enqueue(request),
                // Between no `busy` and `idle`.
                _ if self.lint.take(&request) || self.steering.take(&request) => {}
                MessageType::DebugRequest => {
                    let begun = self.debug.begin(&request.content);
                    let is_answered = begun.is_answered();
                    let (handler, mut replies) = (self.clone(), replies.clone());
                    let debugging =
                        async move { handler.debug(&request, begun, &mut replies).await };
                    match is_answered {
                        true => debugging.await,
                        false => drop(tokio::spawn(debugging)),
                    }
                }
                MessageType::CompleteRequest | MessageType::InspectRequest => {
                    let (handler, mut replies) = (self.clone(), replies.clone());
                    tokio::spawn(async move { handler.handle(request, &mut replies).await });
                }
                _ => self.handle(request, &mut replies.clone()).await,
            }
        }
    }

    /// Answers a request of the debugger, between `busy` and `idle`.
    async fn debug(&self, request: &Request, begun: Begun, replies: &mut Replies) {
        let parent = Arc::new(request.header_json.clone());
        self.running.begin(&parent);
        let answered = self.debug.finish(begun).await;
        replies.send(request, &DebugReply(answered.reply)).await;
        for event in answered.events {
            self.iopub.publish(&parent, &DebugEvent(event));
        }
        if !matches!(answered.then, Some(Then::Look | Then::Evaluate(_))) {
            return self.running.end(&parent);
        }
        // The next request is read meanwhile. A run that trains makes the kernel busy until it stands.
        let handler = self.clone();
        tokio::spawn(async move {
            for event in handler.debug.after(answered.then).await {
                handler.iopub.publish(&parent, &DebugEvent(event));
            }
            handler.running.end(&parent);
        });
    }

    /// Answers one request, between `busy` and `idle`.
    async fn handle(&self, request: Request, replies: &mut Replies) {
        let parent = Arc::new(request.header_json.clone());
        self.running.begin(&parent);
        let answered = self.reply(&request, &parent, replies).await;
        if let Err(error) = answered {
            replies.refuse(&request, &error).await;
        }
        self.running.end(&parent);
        if request.header.msg_type == MessageType::ShutdownRequest {
            let restart = ShutdownRequest::deserialize(&request.content).is_ok_and(|it| it.restart);
            let _ = self.shutdown.send(Shutdown {
                parent: request.header_json,
                restart,
            });
        }
    }

    async fn reply(
        &self,
        request: &Request,
        parent: &Arc<Value>,
        replies: &mut Replies,
    ) -> serde_json::Result<()> {
        match &request.header.msg_type {
            MessageType::KernelInfoRequest => replies.send(request, &kernel_info()).await,
            MessageType::CompleteRequest => {
                let reply = self.complete(content(request)?).await;
                replies.send(request, &reply).await
            }
            MessageType::InspectRequest => {
                let reply = self.inspect(content(request)?).await;
                replies.send(request, &reply).await
            }
            MessageType::IsCompleteRequest => {
                let IsCompleteRequest { code } = content(request)?;
                self.consoles.note(&request.header_json);
                replies.send(request, &is_complete(&code)).await
            }
            MessageType::HistoryRequest => {
                self.consoles.note(&request.header_json);
                let reply = self.history(content(request)?).await;
                replies.send(request, &reply).await
            }
            MessageType::CommInfoRequest => {
                let CommInfoRequest { target_name } = content(request)?;
                let comms = self.open_comms(target_name.as_deref());
                let status = "ok";
                replies
                    .send(request, &CommInfoReply { status, comms })
                    .await
            }
            MessageType::CommOpen => {
                self.comms.opened(parent, content::<CommOpen>(request)?);
                true
            }
            MessageType::CommMessage => {
                let message = content::<CommMessage>(request)?;
                if let Some((run, action)) = self.comms.received(parent, &message) {
                    self.session.control(run, action);
                }
                true
            }
            MessageType::CommClose => {
                self.comms.closed(&content::<CommClose>(request)?.comm_id);
                true
            }
            MessageType::InterruptRequest => {
                self.interrupt();
                let reply = InterruptReply { status: "ok" };
                replies.send(request, &reply).await
            }
            MessageType::ShutdownRequest => {
                let ShutdownRequest { restart } = content(request)?;
                let status = "ok";
                replies
                    .send(request, &ShutdownReply { status, restart })
                    .await
            }
            other @ (MessageType::ExecuteRequest
            | MessageType::DebugRequest
            | MessageType::InputReply
            | MessageType::Unknown(_)) => {
                warn(&format!("message of unknown type `{other}` ignored"));
                true
            }
        };
        Ok(())
    }

    /// The open comms by their ids; with a name, those of that target.
    fn open_comms(&self, target_name: Option<&str>) -> Value {
        let mut comms = self.comms.list(target_name);
        let others = [
            (lint::TARGET, self.lint.list()),
            (steering::TARGET, self.steering.list()),
        ];
        for (target, ids) in others {
            if target_name.is_none_or(|name| name == target) {
                let listed = |id| (id, json!({"target_name": target}));
                comms.extend(ids.into_iter().map(listed));
            }
        }
        Value::Object(comms)
    }

    async fn complete(&self, request: CompleteRequest) -> CompleteReply {
        let CompleteRequest { code, cursor_pos } = request;
        let cursor = byte_offset(&code, cursor_pos);
        let completions = self.session.complete(code.clone(), cursor).await;
        let (start, end) = (
            code_points(&code, completions.start),
            code_points(&code, completions.end),
        );
        let types: Vec<Value> = completions
            .items
            .iter()
            .map(|item| {
                json!({"text": item.text, "type": item.kind, "signature": item.detail,
                       "start": start, "end": end})
            })
            .collect();
        CompleteReply {
            status: "ok",
            matches: completions
                .items
                .into_iter()
                .map(|item| item.text)
                .collect(),
            cursor_start: start,
            cursor_end: end,
            metadata: json!({"_jupyter_types_experimental": types}),
        }
    }

    async fn inspect(&self, request: InspectRequest) -> InspectReply {
        let InspectRequest {
            code,
            cursor_pos,
            detail_level,
        } = request;
        let cursor = byte_offset(&code, cursor_pos);
        let data = self.session.inspect(code, cursor, detail_level).await;
        InspectReply {
            status: "ok",
            found: data.is_some(),
            data: data.unwrap_or_default(),
            metadata: Default::default(),
        }
    }

    /// On a thread of its own, since the file may be long.
    async fn history(&self, request: HistoryRequest) -> HistoryReply {
        let history = self.history.clone();
        let found = tokio::task::spawn_blocking(move || {
            let found = match request.hist_access_type {
                Access::Range => history.range(request.session, request.start, request.stop),
                Access::Tail => history.tail(request.n.unwrap_or(usize::MAX)),
                Access::Search => {
                    let pattern = request.pattern.as_deref().unwrap_or("*");
                    history.search(pattern, request.n, request.unique)
                }
            };
            let entry = |entry: Entry| match request.output {
                true => json!([entry.session, entry.line, [entry.input, entry.output]]),
                false => json!([entry.session, entry.line, entry.input]),
            };
            found.into_iter().map(entry).collect()
        });
        HistoryReply {
            status: "ok",
            // A panic is a bug; the front end goes on without a history.
            history: found.await.unwrap_or_default(),
        }
    }

    /// Interrupts the running cell.
    pub fn interrupt(&self) {
        // The session first, so that a cancelled question is known to be an interrupt.
        self.session.interrupt();
        self.debug.interrupt();
        self.stdin.cancel();
    }
}

fn content<T: DeserializeOwned>(request: &Request) -> serde_json::Result<T> {
    T::deserialize(&request.content)
}

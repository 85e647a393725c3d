//! The kernel: binds the sockets, answers requests, ends.

use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use zeromq::RouterSocket;

use super::comms::Comms;
use super::completeness::is_complete;
use super::connection::{Channel, Connection};
use super::envelope::{Request, Sealer};
use super::execution::Executor;
use super::history::{History, HistoryEntry};
use super::message::{
    Access, CommClose, CommInfoReply, CommInfoRequest, CommMessage, CommOpen, CompleteReply,
    CompleteRequest, HelpLink, HistoryReply, HistoryRequest, InspectReply, InspectRequest,
    InterruptReply, IsCompleteRequest, KernelInfoReply, PROTOCOL_VERSION, ShutdownReply,
    ShutdownRequest, Status,
};
use super::signature::Signer;
use super::socket::door::Doors;
use super::socket::heartbeat;
use super::socket::iopub::Iopub;
use super::socket::router::{Replies, Requests};
use super::socket::stdin::Stdin;
use stratoscope_session::{Backend, Session};

/// How long the evaluator may take to end its process and remove its folders.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(5);

/// How long iopub may take to send what waits.
const DRAIN_LIMIT: Duration = Duration::from_secs(6);

/// How long clients may take to read what was said last.
const LAST_WORDS_LIMIT: Duration = Duration::from_secs(1);

/// Serves the kernel of a connection file until it is shut down.
pub fn serve(
    connection_file: &Path,
    allow_remote: bool,
    backend: Box<dyn Backend>,
) -> anyhow::Result<ExitCode> {
    let connection = Connection::read(connection_file, allow_remote)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // One for the loop that blocks on nothing, one spare: cells compute in other processes.
        .worker_threads(2)
        .enable_all()
        .build()
        .context("the runtime did not start")?;
    let served = runtime.block_on(serve_until_shutdown(&connection, backend));
    runtime.shutdown_timeout(Duration::from_millis(100));
    for file in connection.socket_files() {
        let _ = std::fs::remove_file(file);
    }
    served.map(|()| ExitCode::SUCCESS)
}

async fn serve_until_shutdown(
    connection: &Connection,
    backend: Box<dyn Backend>,
) -> anyhow::Result<()> {
    let signer = Signer::new(connection.key());
    let sealer = Sealer::new(signer.clone());

    let mut doors = Doors::new().context("cannot make a private folder")?;
    let shell: RouterSocket = doors.open(connection, Channel::Shell).await?;
    let control: RouterSocket = doors.open(connection, Channel::Control).await?;
    let stdin: RouterSocket = doors.open(connection, Channel::Stdin).await?;
    let iopub = doors.open(connection, Channel::Iopub).await?;
    let heart = doors.open(connection, Channel::Heartbeat).await?;

    // The evaluator starts on its own thread; from here on requests are answered.
    let session = Arc::new(Session::start(backend));
    let history = Arc::new(Mutex::new(History::default()));
    let (iopub, publisher) = Iopub::new(iopub, sealer.clone());
    let mut publisher = tokio::spawn(publisher);
    let halves = |socket: RouterSocket, name| {
        let (send, receive) = socket.split();
        (
            Requests::new(receive, signer.clone(), name),
            Replies::new(send, sealer.clone(), name),
        )
    };
    let (stdin_requests, stdin_replies) = halves(stdin, "stdin");
    let (stdin, stdin_task) = Stdin::new(stdin_requests, stdin_replies);
    let mut tasks = vec![
        tokio::spawn(stdin_task),
        tokio::spawn(heartbeat::run(heart)),
    ];
    let (shell_requests, shell_replies) = halves(shell, "shell");
    let (control_requests, control_replies) = halves(control, "control");
    let comms = Comms::new(iopub.clone());
    let (executor, executor_task) = Executor::new(
        session.clone(),
        history.clone(),
        iopub.clone(),
        comms.clone(),
        stdin.clone(),
        shell_replies.clone(),
    );
    tasks.push(tokio::spawn(executor_task));

    let (shutdown, mut shutdowns) = unbounded_channel();
    let kernel = Kernel {
        session,
        history,
        iopub,
        comms,
        stdin,
        executor,
        shutdown,
    };
    tasks.push(tokio::spawn(
        kernel.clone().answer(shell_requests, shell_replies),
    ));
    tasks.push(tokio::spawn(
        kernel.clone().answer(control_requests, control_replies),
    ));
    tasks.push(tokio::spawn(kernel.clone().hear_signals()));
    tasks.push(tokio::spawn(kernel.clone().follow_parent()));

    let last = shutdowns.recv().await.unwrap_or(Shutdown {
        parent: json!({}),
        restart: false,
    });

    kernel.stdin.cancel();
    let mut ended = kernel.session.shut_down();
    let limit = Instant::now() + SHUTDOWN_LIMIT;
    while tokio::time::timeout(Duration::from_millis(200), &mut ended)
        .await
        .is_err()
    {
        if Instant::now() > limit {
            stratoscope_os::console::warn("the evaluator did not end in time");
            break;
        }
        kernel.session.give_up_starting();
    }
    let reply = ShutdownReply {
        status: "ok",
        restart: last.restart,
    };
    kernel.iopub.publish(&Arc::new(last.parent), &reply);
    kernel.iopub.close();
    if tokio::time::timeout(DRAIN_LIMIT, &mut publisher)
        .await
        .is_err()
    {
        stratoscope_os::console::warn("not every output could be sent");
        publisher.abort();
    }
    // With the tasks and the kernel the sockets go, which ends their connections.
    tasks.iter().for_each(JoinHandle::abort);
    drop(kernel);
    doors.close(LAST_WORDS_LIMIT).await;
    Ok(())
}

/// Why the kernel ends.
struct Shutdown {
    /// The header of the request, or `{}`.
    parent: Value,
    restart: bool,
}

/// What requests are answered from; clones share everything.
#[derive(Clone)]
struct Kernel {
    session: Arc<Session>,
    history: Arc<Mutex<History>>,
    iopub: Iopub,
    comms: Comms,
    stdin: Stdin,
    executor: Executor,
    shutdown: UnboundedSender<Shutdown>,
}

impl Kernel {
    /// Answers the requests of one channel. Cells are only put in a queue, and what needs the
    /// evaluator waits in a task of its own, so that the next request is read at once.
    async fn answer(self, mut requests: Requests, replies: Replies) {
        loop {
            let request = requests.next().await;
            match request.header.msg_type.as_str() {
                "execute_request" => self.executor.enqueue(request),
                "complete_request" | "inspect_request" => {
                    let (kernel, mut replies) = (self.clone(), replies.clone());
                    tokio::spawn(async move { kernel.handle(request, &mut replies).await });
                }
                _ => self.handle(request, &mut replies.clone()).await,
            }
        }
    }

    /// Answers one request, between `busy` and `idle`.
    async fn handle(&self, request: Request, replies: &mut Replies) {
        let parent = Arc::new(request.header_json.clone());
        self.iopub.publish(&parent, &Status::busy());
        let answered = self.reply(&request, &parent, replies).await;
        if let Err(error) = answered {
            let msg_type = &request.header.msg_type;
            stratoscope_os::console::warn(&format!(
                "{msg_type} is malformed and was dropped: {error}"
            ));
        }
        self.iopub.publish(&parent, &Status::idle());
        if request.header.msg_type == "shutdown_request" {
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
        match request.header.msg_type.as_str() {
            "kernel_info_request" => replies.send(request, &kernel_info()).await,
            "complete_request" => {
                let reply = self.complete(content(request)?).await;
                replies.send(request, &reply).await
            }
            "inspect_request" => {
                let reply = self.inspect(content(request)?).await;
                replies.send(request, &reply).await
            }
            "is_complete_request" => {
                let IsCompleteRequest { code } = content(request)?;
                replies.send(request, &is_complete(&code)).await
            }
            "history_request" => {
                let reply = self.history(&content(request)?);
                replies.send(request, &reply).await
            }
            "comm_info_request" => {
                let CommInfoRequest { target_name } = content(request)?;
                let reply = CommInfoReply {
                    status: "ok",
                    comms: self.comms.list(target_name.as_deref()),
                };
                replies.send(request, &reply).await
            }
            "comm_open" => {
                self.comms.opened(parent, content::<CommOpen>(request)?);
                true
            }
            "comm_msg" => {
                self.comms
                    .received(parent, &content::<CommMessage>(request)?);
                true
            }
            "comm_close" => {
                self.comms.closed(&content::<CommClose>(request)?.comm_id);
                true
            }
            "interrupt_request" => {
                self.interrupt();
                replies
                    .send(request, &InterruptReply { status: "ok" })
                    .await
            }
            "shutdown_request" => {
                let ShutdownRequest { restart } = content(request)?;
                replies
                    .send(
                        request,
                        &ShutdownReply {
                            status: "ok",
                            restart,
                        },
                    )
                    .await
            }
            other => {
                stratoscope_os::console::warn(&format!(
                    "message of unknown type `{other}` ignored"
                ));
                true
            }
        };
        Ok(())
    }

    async fn complete(&self, request: CompleteRequest) -> CompleteReply {
        let CompleteRequest { code, cursor_pos } = request;
        let cursor = byte_offset(&code, cursor_pos);
        let found = self.session.complete(code.clone(), cursor).await;
        let (start, end) = (
            code_points(&code, found.start),
            code_points(&code, found.end),
        );
        let types: Vec<Value> = found
            .items
            .iter()
            .map(|item| {
                json!({"text": item.text, "type": item.kind, "signature": item.detail,
                       "start": start, "end": end})
            })
            .collect();
        CompleteReply {
            status: "ok",
            matches: found.items.into_iter().map(|item| item.text).collect(),
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

    fn history(&self, request: &HistoryRequest) -> HistoryReply {
        let history = self.lock_history();
        let found = match request.hist_access_type {
            // Only this session is remembered; IPython counts it as 0.
            Access::Range if request.session != 0 => Vec::new(),
            Access::Range => history.range(request.start, request.stop),
            Access::Tail => history.tail(request.n.unwrap_or(usize::MAX)),
            Access::Search => {
                let pattern = request.pattern.as_deref().unwrap_or("*");
                history.search(pattern, request.n, request.unique)
            }
        };
        let entry = |entry: &HistoryEntry| match request.output {
            true => json!([0, entry.line, [entry.input, entry.output]]),
            false => json!([0, entry.line, entry.input]),
        };
        HistoryReply {
            status: "ok",
            history: found.into_iter().map(entry).collect(),
        }
    }

    fn interrupt(&self) {
        // First, so that what is answered with nothing is known to be interrupted.
        self.session.interrupt();
        self.stdin.cancel();
    }

    /// `SIGINT` interrupts, `SIGTERM` ends: for front ends that send signals.
    async fn hear_signals(self) {
        let (Ok(mut interrupts), Ok(mut terminations)) = (
            signal(SignalKind::interrupt()),
            signal(SignalKind::terminate()),
        ) else {
            stratoscope_os::console::warn("signals cannot be heard; interrupt messages still work");
            return;
        };
        loop {
            tokio::select! {
                Some(()) = interrupts.recv() => self.interrupt(),
                Some(()) = terminations.recv() => {
                    let _ = self.shutdown.send(Shutdown { parent: json!({}), restart: false });
                }
                else => return,
            }
        }
    }

    /// Ends when the front end that started the kernel is gone. `jupyter_client` sets the variable
    /// when the kernel is meant to end with it.
    async fn follow_parent(self) {
        let follows = std::env::var("JPY_PARENT_PID").is_ok_and(|pid| pid != "0");
        if !follows {
            return std::future::pending().await;
        }
        let parent = std::os::unix::process::parent_id();
        while std::os::unix::process::parent_id() == parent {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let _ = self.shutdown.send(Shutdown {
            parent: json!({}),
            restart: false,
        });
    }

    fn lock_history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn content<T: DeserializeOwned>(request: &Request) -> serde_json::Result<T> {
    T::deserialize(&request.content)
}

fn kernel_info() -> KernelInfoReply {
    KernelInfoReply {
        status: "ok",
        protocol_version: PROTOCOL_VERSION,
        implementation: "stratoscope",
        implementation_version: env!("CARGO_PKG_VERSION"),
        language_info: language_info(),
        banner: format!(
            "stratoscope {}: Rust, with BERT under a distribution strategy",
            env!("CARGO_PKG_VERSION")
        ),
        debugger: false,
        help_links: vec![
            HelpLink {
                text: "stratoscope",
                url: env!("CARGO_PKG_REPOSITORY"),
            },
            HelpLink {
                text: "burn",
                url: "https://burn.dev/book/",
            },
            HelpLink {
                text: "The Rust book",
                url: "https://doc.rust-lang.org/book/",
            },
        ],
        supported_features: Vec::new(),
    }
}

/// The language of the cells, as `kernel_info_reply` says and notebooks record it.
pub fn language_info() -> Value {
    json!({
        "name": "rust",
        "version": env!("CARGO_PKG_RUST_VERSION"),
        "mimetype": "text/rust",
        "file_extension": ".rs",
        "pygments_lexer": "rust",
        "codemirror_mode": "rust",
        "nbconvert_exporter": "script",
    })
}

/// Code points from the start to bytes; beyond the end: the end.
fn byte_offset(code: &str, code_points: usize) -> usize {
    code.char_indices()
        .nth(code_points)
        .map_or(code.len(), |(at, _)| at)
}

/// Bytes from the start to code points; beyond the end: the end.
fn code_points(code: &str, byte_offset: usize) -> usize {
    code.char_indices()
        .take_while(|(at, _)| *at < byte_offset)
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_code_points() {
        let code = "let größe𝄞 = 1;";
        for (at, (byte, _)) in code.char_indices().enumerate() {
            assert_eq!(byte_offset(code, at), byte);
            assert_eq!(code_points(code, byte), at);
        }
        assert_eq!(byte_offset(code, 1000), code.len());
        assert_eq!(code_points(code, 1000), code.chars().count());
        assert_eq!(byte_offset("", 0), 0);
    }
}

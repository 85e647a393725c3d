//! The kernel's life: binds the sockets, starts the tasks, shuts down.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use stratoscope_os::console::warn;
use stratoscope_session::{Backend, Session};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinHandle;
use zeromq::{RouterSocket, XPubSocket};

use super::comms::Comms;
use super::connection::{Channel, Connection};
use super::consoles::Consoles;
use super::debug::Debug;
use super::envelope::Sealer;
use super::execution::Executor;
use super::history::{History, Place};
use super::lint::LintComms;
use super::message::ShutdownReply;
use super::requests::{RequestHandler, Shutdown};
use super::running::Running;
use super::signature::Signer;
use super::socket::heartbeat;
use super::socket::iopub::Iopub;
use super::socket::listener::Listeners;
use super::socket::router::{Replies, Requests};
use super::socket::stdin::Stdin;
use super::steering::Steering;

/// How long the end of the kernel waits for the file of the history.
const FLUSH_LIMIT: Duration = Duration::from_secs(2);

/// How long the evaluator may take to end its process and remove its folders.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(5);

/// How long iopub may take to send its queue.
const DRAIN_LIMIT: Duration = Duration::from_secs(6);

/// How long clients may take to read the last messages.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// Serves the kernel of a connection file until it is shut down.
///
/// # Errors
/// The connection file is not usable, or a socket cannot be bound.
pub fn serve(
    connection_file: &Path,
    allow_remote: bool,
    backend: Box<dyn Backend>,
) -> anyhow::Result<ExitCode> {
    let connection = Connection::read(connection_file, allow_remote)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // One for the tasks, which never block, and one spare: cells run in other processes.
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
    let sockets = Sockets::bind(connection).await?;
    // The evaluator starts on its own thread; from here on requests are answered.
    let session = Arc::new(Session::start(backend));
    let (shutdown, mut shutdowns) = unbounded_channel();
    let (handler, tasks, listeners) = start_tasks(sockets, connection, session, shutdown);
    let last = shutdowns.recv().await;
    shut_down(
        handler,
        tasks,
        listeners,
        last.unwrap_or_else(Shutdown::without_request),
    )
    .await;
    Ok(())
}

/// The five sockets, bound.
struct Sockets {
    listeners: Listeners,
    shell: RouterSocket,
    control: RouterSocket,
    stdin: RouterSocket,
    iopub: XPubSocket,
    heartbeat: RouterSocket,
}

impl Sockets {
    async fn bind(connection: &Connection) -> anyhow::Result<Self> {
        let mut listeners = Listeners::new().context("cannot make a private folder")?;
        Ok(Self {
            shell: listeners.open(connection, Channel::Shell).await?,
            control: listeners.open(connection, Channel::Control).await?,
            stdin: listeners.open(connection, Channel::Stdin).await?,
            iopub: listeners.open(connection, Channel::Iopub).await?,
            heartbeat: listeners.open(connection, Channel::Heartbeat).await?,
            listeners,
        })
    }
}

/// The tasks of a kernel.
struct Tasks {
    /// Sends what is published; ends when the queue is closed and empty.
    publisher: JoinHandle<()>,
    /// Those that run until they are aborted.
    others: Vec<JoinHandle<()>>,
}

/// Starts a task per socket, one that executes cells and one that waits for the end.
fn start_tasks(
    sockets: Sockets,
    connection: &Connection,
    session: Arc<Session>,
    shutdown: tokio::sync::mpsc::UnboundedSender<Shutdown>,
) -> (RequestHandler, Tasks, Listeners) {
    let signer = Signer::new(connection.key());
    let sealer = Sealer::new(signer.clone());
    let history = Arc::new(History::start(Place::of_environment()));
    let (iopub, publisher) = Iopub::new(sockets.iopub, sealer.clone());
    let halves = |socket: RouterSocket, name| {
        let (send, receive) = socket.split();
        (
            Requests::new(receive, signer.clone(), name),
            Replies::new(send, sealer.clone(), name),
        )
    };
    let (stdin_requests, stdin_replies) = halves(sockets.stdin, "stdin");
    let (stdin, stdin_task) = Stdin::new(stdin_requests, stdin_replies);
    let (shell_requests, shell_replies) = halves(sockets.shell, "shell");
    let (control_requests, control_replies) = halves(sockets.control, "control");
    let comms = Comms::new(iopub.clone());
    let lint = LintComms::new(iopub.clone(), session.linter());
    let running = Running::new(iopub.clone());
    let debug = Debug::new(session.clone(), iopub.clone());
    let steering = Steering::new(session.clone(), debug.clone(), iopub.clone());
    let consoles = Consoles::default();
    let (executor, executor_task) = Executor::new(
        session.clone(),
        history.clone(),
        (iopub.clone(), running.clone()),
        (comms.clone(), debug.clone(), steering.clone()),
        (stdin.clone(), consoles.clone()),
        shell_replies.clone(),
    );
    let handler = RequestHandler {
        session,
        history,
        iopub,
        running,
        comms,
        lint,
        debug,
        steering,
        stdin,
        consoles,
        executor,
        shutdown,
    };
    let shell = handler.clone().serve(shell_requests, shell_replies);
    let control = handler.clone().serve(control_requests, control_replies);
    let tasks = Tasks {
        publisher: tokio::spawn(publisher),
        others: vec![
            tokio::spawn(stdin_task),
            tokio::spawn(heartbeat::run(sockets.heartbeat)),
            tokio::spawn(executor_task),
            tokio::spawn(shell),
            tokio::spawn(control),
            tokio::spawn(handle_signals(handler.clone())),
            tokio::spawn(follow_parent(handler.clone())),
        ],
    };
    (handler, tasks, sockets.listeners)
}

/// Ends the evaluator, sends the last messages and closes the connections.
async fn shut_down(
    handler: RequestHandler,
    mut tasks: Tasks,
    listeners: Listeners,
    shutdown: Shutdown,
) {
    handler.stdin.cancel();
    handler.steering.close();
    let mut ended = handler.session.shut_down();
    let limit = Instant::now() + SHUTDOWN_LIMIT;
    while tokio::time::timeout(Duration::from_millis(200), &mut ended)
        .await
        .is_err()
    {
        if Instant::now() > limit {
            warn("the evaluator did not end in time");
            break;
        }
        handler.session.give_up_starting();
    }
    let reply = ShutdownReply {
        status: "ok",
        restart: shutdown.restart,
    };
    handler.iopub.publish(&Arc::new(shutdown.parent), &reply);
    handler.iopub.close();
    // Also the cell that the shutdown has ended.
    let history = handler.history.clone();
    let flushed = tokio::task::spawn_blocking(move || {
        history.keep();
        history.flush(FLUSH_LIMIT);
    });
    let _ = flushed.await;
    if tokio::time::timeout(DRAIN_LIMIT, &mut tasks.publisher)
        .await
        .is_err()
    {
        warn("not every output could be sent");
        tasks.publisher.abort();
    }
    // Dropping the tasks and the handler drops the sockets, which closes their connections.
    tasks.others.iter().for_each(JoinHandle::abort);
    drop(handler);
    listeners.close(CLOSE_LIMIT).await;
}

/// `SIGINT` interrupts and `SIGTERM` shuts down, for front ends that send signals.
async fn handle_signals(handler: RequestHandler) {
    let (Ok(mut interrupts), Ok(mut terminations)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        warn("signals cannot be received; interrupt messages still work");
        return;
    };
    loop {
        tokio::select! {
            Some(()) = interrupts.recv() => handler.interrupt(),
            Some(()) = terminations.recv() => {
                let _ = handler.shutdown.send(Shutdown::without_request());
            }
            else => return,
        }
    }
}

/// Shuts down when the process that started the kernel has ended. `jupyter_client` sets the variable when
/// the kernel is to end with it.
async fn follow_parent(handler: RequestHandler) {
    let follows = std::env::var("JPY_PARENT_PID").is_ok_and(|pid| pid != "0");
    if !follows {
        return std::future::pending().await;
    }
    let parent = std::os::unix::process::parent_id();
    while std::os::unix::process::parent_id() == parent {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let _ = handler.shutdown.send(Shutdown::without_request());
}

//! The facade's end of the wire: one connection per process, opened when it is first needed.
//!
//! A separate thread reads the messages of the kernel, so that an interrupt arrives while a cell
//! computes. An error of sending is not reported: there is no kernel left to report it to.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::time::Duration;

use stratoscope_models::warnings;
use stratoscope_wire::{Reader, ToCells, ToKernel, WireError, Writer, socket};

use crate::{cell, inspect, progress};

/// Sends a message; `false` if no kernel listens or the message could not be written.
pub(crate) fn send(message: &ToKernel) -> bool {
    match connection() {
        Some(connection) => connection.send(message),
        None => false,
    }
}

/// Whether a kernel listens.
pub(crate) fn is_open() -> bool {
    connection().is_some()
}

/// Asks the user for a line. `None` if no kernel listens, or its front end cannot ask.
pub(crate) fn ask(prompt: &str, password: bool) -> Option<String> {
    let connection = connection()?;
    // Locked until the answer has arrived: a second thread that asks waits.
    let replies = lock(&connection.replies);
    let question = ToKernel::Input {
        prompt: prompt.to_owned(),
        password,
    };
    if !connection.send(&question) {
        return None;
    }
    let answer = replies.recv().ok().flatten();
    // An interrupt cancels the question; `interrupted` reports to the kernel that the cell has noticed it.
    if cell::interrupted() { None } else { answer }
}

struct Connection {
    writer: Mutex<Writer<UnixStream>>,
    /// Answers to questions; `None` where nobody can be asked.
    replies: Mutex<Receiver<Option<String>>>,
    shown: Mutex<Receiver<()>>,
}

/// How long a cell waits until the kernel has taken its output. After that it goes on, and the order is not kept.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long text without a line end is waited for at the end of a cell.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

impl Connection {
    fn send(&self, message: &ToKernel) -> bool {
        // Text that was printed before without a line end is shown before the message.
        let _ = std::io::stdout().flush();
        self.write(message)
    }

    fn write(&self, message: &ToKernel) -> bool {
        if is_child() {
            return false;
        }
        // Text that is printed next goes through a pipe; it waits until the message has its place.
        let waiting = message.is_shown().then(|| lock(&self.shown));
        if let Some(shown) = &waiting {
            // An answer that came after its time limit belongs to an earlier message.
            while shown.try_recv().is_ok() {}
        }
        let addressed = cell::addressed(message);
        match lock(&self.writer).send(addressed.as_ref().unwrap_or(message)) {
            Ok(()) => {}
            Err(WireError::TooLong { limit }) => {
                eprintln!("not shown: larger than {} MiB", limit >> 20);
                return false;
            }
            Err(_) => return false,
        }
        if let Some(shown) = &waiting {
            let _ = shown.recv_timeout(PATIENCE);
        }
        true
    }
}

fn connection() -> Option<&'static Connection> {
    static CONNECTION: OnceLock<Option<Connection>> = OnceLock::new();
    CONNECTION.get_or_init(open).as_ref()
}

fn open() -> Option<Connection> {
    let (reader, writer) = match socket::connect()? {
        Ok(ends) => ends,
        Err(error) => {
            eprintln!("the kernel cannot be reached: {error}");
            return None;
        }
    };
    notice_forks();
    let (answer, replies) = channel();
    let (taken, shown) = channel();
    std::thread::Builder::new()
        .name("stratoscope-wire".to_owned())
        .spawn(move || listen(reader, &answer, &taken))
        .ok()?;
    Some(Connection {
        writer: Mutex::new(writer),
        replies: Mutex::new(replies),
        shown: Mutex::new(shown),
    })
}

/// This is a child that a cell has forked: it must not answer in the place of its parent.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// Whether this process is a child of the one that the kernel has started.
pub(crate) fn is_child() -> bool {
    IS_CHILD.load(Ordering::Relaxed)
}

fn notice_forks() {
    static REGISTERED: Once = Once::new();
    unsafe extern "C" fn forked() {
        IS_CHILD.store(true, Ordering::Relaxed);
    }
    // SAFETY: the handler only stores to an atomic, which is allowed in a child of a process with threads.
    REGISTERED.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(forked));
    });
}

fn listen(mut reader: Reader<UnixStream>, replies: &Sender<Option<String>>, shown: &Sender<()>) {
    loop {
        match reader.receive() {
            Ok(ToCells::Hello { .. }) => {}
            Ok(ToCells::Sync { id }) => {
                answer(&ToKernel::Synced { id });
            }
            Ok(ToCells::Describe) => {
                let variables = cell::described();
                answer(&ToKernel::Described { variables });
            }
            Ok(ToCells::Inspect {
                id,
                generation,
                is_idle,
                question,
            }) => inspect::ask(id, generation, is_idle, question),
            Ok(ToCells::Interrupt) => cell::interrupt(),
            Ok(ToCells::Shown) => {
                let _ = shown.send(());
            }
            Ok(ToCells::Deny { codes }) => warnings::deny_only(&codes),
            Ok(ToCells::Control { run, action }) => progress::pressed(run, action),
            Ok(ToCells::Request { id, request }) => progress::requested(id, request),
            Ok(ToCells::InputReply { text }) => {
                let _ = replies.send(text);
            }
            Ok(ToCells::Leave) => leave(),
            Err(WireError::Malformed(error)) => eprintln!("the kernel sent nonsense: {error}"),
            Err(_) => return,
        }
    }
}

/// Sends the answer to a question that has no place among the outputs.
pub(crate) fn reply(message: &ToKernel) {
    if let Some(connection) = connection() {
        connection.write(message);
    }
}

/// Sends from the thread of the wire, which must not wait for the lock of standard output: a cell may hold it for good, by
/// `mem::forget(stdout().lock())`.
fn answer(message: &ToKernel) {
    /// A thread waits for the lock.
    static WAITS: AtomicBool = AtomicBool::new(false);
    if !WAITS.swap(true, Ordering::Relaxed) {
        let (flushed, end) = channel();
        let flush = move || {
            let _ = std::io::stdout().flush();
            WAITS.store(false, Ordering::Relaxed);
            let _ = flushed.send(());
        };
        let thread = std::thread::Builder::new().name("stratoscope-flush".to_owned());
        match thread.spawn(flush) {
            Ok(_) if end.recv_timeout(FLUSH_TIMEOUT).is_err() => eprintln!(
                "a cell holds the lock of standard output: what other threads print waits for it"
            ),
            Ok(_) => {}
            Err(_) => WAITS.store(false, Ordering::Relaxed),
        }
    }
    if let Some(connection) = connection() {
        connection.write(message);
    }
}

/// Ends the process. Its variables are not dropped, and nothing that libraries have registered runs: drivers of GPUs may wait
/// there for threads that are gone.
fn leave() {
    stratoscope_workers::mpi::end();
    // SAFETY: it ends the process and touches no memory.
    unsafe { libc::_exit(0) };
}

/// A poisoned lock is used as it is: messages are written whole, so a panic leaves no part of one.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! The facade's end of the wire: one connection per process, opened when it is first needed.
//!
//! A separate thread reads the messages of the kernel, so that an interrupt arrives while a cell
//! computes. An error of sending is not reported: there is no kernel left to report it to.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use stratoscope_train::warnings;
use stratoscope_wire::{Reader, ToCells, ToKernel, WireError, Writer, socket};

use crate::{cell, progress};

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

impl Connection {
    fn send(&self, message: &ToKernel) -> bool {
        // Text that was printed before without a line end is shown before the message.
        let _ = std::io::stdout().flush();
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

fn listen(mut reader: Reader<UnixStream>, replies: &Sender<Option<String>>, shown: &Sender<()>) {
    loop {
        match reader.receive() {
            Ok(ToCells::Hello { .. }) => {}
            Ok(ToCells::Sync { id }) => {
                send(&ToKernel::Synced { id });
            }
            Ok(ToCells::Describe) => {
                let variables = cell::described();
                send(&ToKernel::Described { variables });
            }
            Ok(ToCells::Interrupt) => cell::interrupt(),
            Ok(ToCells::Shown) => {
                let _ = shown.send(());
            }
            Ok(ToCells::Deny { codes }) => warnings::deny_only(&codes),
            Ok(ToCells::Control { run, action }) => progress::pressed(run, action),
            Ok(ToCells::InputReply { text }) => {
                let _ = replies.send(text);
            }
            Ok(ToCells::Leave) => leave(),
            Err(WireError::Malformed(error)) => eprintln!("the kernel sent nonsense: {error}"),
            Err(_) => return,
        }
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

//! The facade's end of the wire: one connection a process, opened when it is first needed.
//!
//! A thread of its own reads what the kernel says, so that an interrupt is heard while a cell
//! computes. Sending never fails loudly: a kernel that is gone cannot be told so.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use stratoscope_train::warnings;
use stratoscope_wire::{Reader, ToCells, ToKernel, WireError, Writer, socket};

use crate::cell;

/// Sends a message; `false` when nobody listens or it could not be written.
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

/// Asks the person at the notebook for a line. `None` when nobody listens.
pub(crate) fn ask(prompt: &str, password: bool) -> Option<String> {
    let connection = connection()?;
    // Held until the answer is there: two threads that ask wait for each other.
    let replies = lock(&connection.replies);
    let question = ToKernel::Input {
        prompt: prompt.to_owned(),
        password,
    };
    if !connection.send(&question) {
        return None;
    }
    let answer = replies.recv().ok();
    // An interrupt cancels the question.
    answer.filter(|_| !cell::interrupted())
}

struct Connection {
    writer: Mutex<Writer<UnixStream>>,
    replies: Mutex<Receiver<String>>,
    shown: Mutex<Receiver<()>>,
}

/// How long a cell waits for its output to be taken. Then it goes on: order matters less than that.
const PATIENCE: Duration = Duration::from_secs(10);

impl Connection {
    fn send(&self, message: &ToKernel) -> bool {
        // What was printed before, without a line's end to push it out, is shown before.
        let _ = std::io::stdout().flush();
        // What is printed next goes another way, and is held back until this has its place.
        let waiting = message.is_shown().then(|| lock(&self.shown));
        if let Some(shown) = &waiting {
            // An answer that came too late belongs to an earlier message.
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

fn listen(mut reader: Reader<UnixStream>, replies: &Sender<String>, shown: &Sender<()>) {
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
            Ok(ToCells::InputReply { text }) => {
                let _ = replies.send(text);
            }
            Err(WireError::Malformed(error)) => eprintln!("the kernel sent nonsense: {error}"),
            Err(_) => return,
        }
    }
}

/// A cell that panicked while it held a lock leaves nothing half-written behind: messages are
/// written whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! The kernel's end of the wire: accepts the cell process, relays what it shows, and asks it.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use stratoscope_wire::{
    InspectAnswer, InspectQuestion, Reader, RunAnswer, RunRequest, ToCells, ToKernel, WireError,
    Writer, handshake, socket,
};

/// What is done with a message; called on the connection's thread, in order.
pub type Handler = dyn Fn(ToKernel) + Send + Sync;

/// How long a process may take to say hello.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// Listens until it is dropped. A new connection takes the place of the one before: evcxr starts a
/// new process when one has died.
pub struct Link {
    shared: Arc<Shared>,
    path: PathBuf,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    stopping: AtomicBool,
    handler: Box<Handler>,
}

#[derive(Default)]
struct State {
    /// Counts connections, so that the end of an old one does not close a new one.
    connection: u64,
    writer: Option<Writer<UnixStream>>,
    /// The first message to every process.
    greeting: Option<ToCells>,
    asked: u64,
    answered: u64,
    /// The answers to questions about values, until they are taken; of one that comes too late, nobody waits.
    inspected: BTreeMap<u64, Option<Inspected>>,
    /// The answers to requests, likewise.
    requested: BTreeMap<u64, Option<RunAnswer>>,
}

/// What a process has answered to a question about values.
pub struct Inspected {
    /// The answer.
    pub answer: InspectAnswer,
    /// The variables that it is about and whose types are to be registered.
    pub unknown: Vec<String>,
    /// The process that has answered, counted from 1.
    pub process: u64,
}

impl Link {
    /// Listens on a new socket at `path`, in a folder that is private already.
    pub fn listen(path: &Path, handler: Box<Handler>) -> Result<Self, WireError> {
        let listener = socket::listen(path)?;
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
            stopping: AtomicBool::new(false),
            handler,
        });
        let accepting = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("wire-accept".to_owned())
            .spawn(move || accept(&listener, &accepting))?;
        Ok(Self {
            shared,
            path: path.to_owned(),
        })
    }

    /// Sends a message; `false` when no process is connected.
    pub fn send(&self, message: &ToCells) -> bool {
        let mut state = self.shared.lock();
        state
            .writer
            .as_mut()
            .is_some_and(|writer| writer.send(message).is_ok())
    }

    /// Sends a message now, and as the first one to every process that connects later. A later call replaces
    /// the message.
    pub fn send_always(&self, message: ToCells) {
        let mut state = self.shared.lock();
        if let Some(writer) = state.writer.as_mut() {
            let _ = writer.send(&message);
        }
        state.greeting = Some(message);
    }

    /// Asks about values. `None`: no process is connected, it ends, or it does not answer in time.
    pub fn inspect(
        &self,
        generation: u32,
        is_idle: bool,
        question: InspectQuestion,
        patience: Duration,
    ) -> Option<Inspected> {
        let question = |id| ToCells::Inspect {
            id,
            generation,
            is_idle,
            question,
        };
        self.ask(question, |state| &mut state.inspected, patience)
    }

    /// Sends a request to a run. `None`: no process is connected, it ends, or it does not answer in time.
    pub fn request(&self, request: RunRequest, patience: Duration) -> Option<RunAnswer> {
        let question = |id| ToCells::Request { id, request };
        self.ask(question, |state| &mut state.requested, patience)
    }

    /// Sends a question with a number, and waits until its answer is in its place.
    fn ask<T>(
        &self,
        question: impl FnOnce(u64) -> ToCells,
        places: fn(&mut State) -> &mut BTreeMap<u64, Option<T>>,
        patience: Duration,
    ) -> Option<T> {
        let mut state = self.shared.lock();
        state.asked += 1;
        let (id, connection) = (state.asked, state.connection);
        state.writer.as_mut()?.send(&question(id)).ok()?;
        places(&mut state).insert(id, None);
        let end = Instant::now() + patience;
        loop {
            if let Some(Some(_)) = places(&mut state).get(&id) {
                return places(&mut state).remove(&id).flatten();
            }
            let left = end.saturating_duration_since(Instant::now());
            let is_open = state.writer.is_some() && state.connection == connection;
            if left.is_zero() || !is_open {
                places(&mut state).remove(&id);
                return None;
            }
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until everything that the process has sent so far is handled; `false` when it is not
    /// connected, ends, or does not answer in time.
    pub fn sync(&self, patience: Duration) -> bool {
        let mut state = self.shared.lock();
        state.asked += 1;
        let id = state.asked;
        let connection = state.connection;
        let question = ToCells::Sync { id };
        let sent = state
            .writer
            .as_mut()
            .is_some_and(|writer| writer.send(&question).is_ok());
        if !sent {
            return false;
        }
        let end = Instant::now() + patience;
        while state.answered < id {
            let left = end.saturating_duration_since(Instant::now());
            let is_open = state.writer.is_some() && state.connection == connection;
            if left.is_zero() || !is_open {
                return false;
            }
            state = self
                .shared
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        true
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        if let Some(writer) = self.shared.lock().writer.take() {
            let _ = writer.get_ref().shutdown(std::net::Shutdown::Both);
        }
        // Wakes the thread that accepts.
        let _ = UnixStream::connect(&self.path);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn accept(listener: &UnixListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stopping.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        // A process that does not complete the handshake is ignored.
        let Ok((reader, mut writer)) = greet(stream) else {
            continue;
        };
        let mut state = shared.lock();
        state.connection += 1;
        let connection = state.connection;
        if let Some(greeting) = &state.greeting {
            // A process that is gone already is noticed by whoever reads from it.
            let _ = writer.send(greeting);
        }
        state.writer = Some(writer);
        drop(state);
        let relaying = Arc::clone(shared);
        let _ = std::thread::Builder::new()
            .name("wire-relay".to_owned())
            .spawn(move || relay(reader, connection, &relaying));
    }
}

fn greet(stream: UnixStream) -> Result<socket::Connection, WireError> {
    stream.set_read_timeout(Some(HANDSHAKE))?;
    let (mut reader, mut writer) = socket::split(stream)?;
    handshake::accept(&mut reader, &mut writer)?;
    writer.get_ref().set_read_timeout(None)?;
    // A process that no longer reads must not hold the kernel.
    writer.get_ref().set_write_timeout(Some(HANDSHAKE))?;
    Ok((reader, writer))
}

fn relay(mut reader: Reader<UnixStream>, connection: u64, shared: &Shared) {
    loop {
        match reader.receive() {
            Ok(ToKernel::Synced { id }) => {
                shared.lock().answered = id;
                shared.changed.notify_all();
            }
            Ok(ToKernel::Inspected {
                id,
                answer,
                unknown,
            }) => {
                if let Some(place) = shared.lock().inspected.get_mut(&id) {
                    *place = Some(Inspected {
                        answer,
                        unknown,
                        process: connection,
                    });
                }
                shared.changed.notify_all();
            }
            Ok(ToKernel::Answered { id, answer }) => {
                if let Some(place) = shared.lock().requested.get_mut(&id) {
                    *place = Some(answer);
                }
                shared.changed.notify_all();
            }
            Ok(message) => (shared.handler)(message),
            Err(WireError::Malformed(_)) => {}
            Err(_) => break,
        }
    }
    let mut state = shared.lock();
    if state.connection == connection {
        state.writer = None;
    }
    drop(state);
    shared.changed.notify_all();
}

/// The socket's error as one of `io`.
pub fn to_io(error: WireError) -> io::Error {
    io::Error::other(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_sent_before_a_sync_is_handled_before_it_returns() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("wire");
        let seen = Arc::new(Mutex::new(0));
        let handler = {
            let seen = Arc::clone(&seen);
            move |message| {
                assert_eq!(message, ToKernel::Interrupted);
                std::thread::sleep(Duration::from_millis(1));
                *seen.lock().expect("no panic") += 1;
            }
        };
        let link = Link::listen(&path, Box::new(handler)).expect("listens");
        assert!(!link.sync(Duration::from_secs(1)), "nobody is there");
        let (mut reader, mut writer) = socket::connect_to(&path).expect("connects");
        for _ in 0..50 {
            writer.send(&ToKernel::Interrupted).expect("sends");
        }
        let cells = std::thread::spawn(move || {
            if let Ok(ToCells::Sync { id }) = reader.receive() {
                writer.send(&ToKernel::Synced { id }).expect("sends");
            }
        });
        // The connection is announced by the accepting thread.
        let end = Instant::now() + Duration::from_secs(5);
        while !link.sync(Duration::from_secs(5)) && Instant::now() < end {}
        assert_eq!(*seen.lock().expect("no panic"), 50);
        cells.join().expect("no panic");
        assert!(!link.sync(Duration::from_secs(5)), "it is gone");
    }
}

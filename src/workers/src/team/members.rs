//! The thread that looks after the members of a job: it takes in who comes, starts or calls whoever is missing, and gives workers
//! the chief's signs of life.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use stratoscope_os::process::die_with_parent;

use super::{Event, EventKind, LOOK, Launch, Member, Shared, WorkerSource};
use crate::fault::{Fault, Outcome};
use crate::frame::Kind;
use crate::hello::{Hello, Process, Role};
use crate::link::Link;
use crate::listener::Visitor;
use crate::message::Pulse;
use crate::worker::ChiefAddress;

/// Tells a worker that was started the chief's address.
pub const CHIEF_VARIABLE: &str = "STRATOSCOPE_WORKER_CHIEF";
/// Tells it its number.
pub const MEMBER_VARIABLE: &str = "STRATOSCOPE_WORKER_MEMBER";
/// Tells it the file with the job's key.
pub const KEY_VARIABLE: &str = "STRATOSCOPE_WORKER_KEY";

pub(super) const KEY_FILE: &str = "key.pem";

/// The longest pause between two attempts to fill a seat.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Where a worker that was started finds its chief, and the file with the key; `None` in another process.
pub fn chief_in_environment() -> Option<(ChiefAddress, PathBuf)> {
    let variable = |name| std::env::var(name).ok();
    let chief: SocketAddr = variable(CHIEF_VARIABLE)?.parse().ok()?;
    let member: u64 = variable(MEMBER_VARIABLE)?.parse().ok()?;
    let key = std::env::var_os(KEY_VARIABLE)?;
    Some((ChiefAddress::Dial(chief, member), key.into()))
}

impl Shared {
    pub(super) fn look_after_all(self: Arc<Self>, visitors: &Receiver<Visitor>) {
        let mut beaten = Instant::now();
        while !self.is_over.load(Ordering::SeqCst) {
            match visitors.recv_timeout(LOOK) {
                Ok(visitor) => self.welcome(visitor),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if beaten.elapsed() >= self.settings.heartbeat {
                beaten = Instant::now();
                self.beat();
            }
            let seats = self.state.lock().seats.len();
            for seat in 0..seats {
                self.look_after(seat);
            }
        }
    }

    fn beat(&self) {
        let all: Vec<Arc<Mutex<Link>>> = {
            let state = self.state.lock();
            let members = state.seats.iter().filter_map(|it| it.member.as_ref());
            members.map(|member| Arc::clone(&member.commands)).collect()
        };
        for commands in all {
            // A command that is being sent is a sign of life, too.
            if let Some(mut commands) = commands.try_lock() {
                let _ = commands.send(Kind::Heartbeat, 0, &[]);
            }
        }
    }

    /// Takes in a connection.
    fn welcome(self: &Arc<Self>, visitor: Visitor) {
        let mut state = self.state.lock();
        if visitor.hello.role == Role::Hop {
            let now = self.generation.load(Ordering::SeqCst);
            state.hops.retain(|it| it.hello.generation >= now);
            state.hops.push(visitor);
            drop(state);
            self.changed.notify_all();
            return;
        }
        let of = |it: &Visitor| it.hello.member == visitor.hello.member;
        let other = state.halves.iter().position(of);
        match other.map(|at| state.halves.swap_remove(at)) {
            Some(other) if other.hello.role != visitor.hello.role => {
                drop(state);
                let (commands, answers) = match visitor.hello.role {
                    Role::Commands => (visitor, other),
                    _ => (other, visitor),
                };
                let Some(hop) = commands.hello.hop else {
                    return;
                };
                let process = commands.hello.process.clone();
                let member = commands.hello.member;
                let _ = self.admit(member, process, hop, commands.link, answers.link);
            }
            _ => {
                // Who came first and never completed is forgotten.
                if state.halves.len() >= 64 {
                    state.halves.remove(0);
                }
                state.halves.push(visitor);
            }
        }
    }

    /// Gives a worker its seat.
    fn admit(
        self: &Arc<Self>,
        id: u64,
        process: Process,
        hop: SocketAddr,
        commands: Link,
        mut answers: Link,
    ) -> Outcome<()> {
        answers.set_patience(self.settings.patience)?;
        let chief = match commands.local() {
            Some(own) => SocketAddr::new(own.ip(), self.listener.port()),
            None => self.listener,
        };
        let closers = vec![commands.closer()?, answers.closer()?];
        let mut state = self.state.lock();
        let is_awaited = matches!(self.source, WorkerSource::Awaited(_));
        let seat = (1..)
            .zip(&state.seats)
            .position(|(number, it)| match is_awaited {
                // Who is awaited has the number that its launcher has given it.
                true => it.member.is_none() && number == id,
                false => it.coming.is_some_and(|(expected, _)| expected == id),
            });
        let is_here = |it: &super::Seat| it.member.as_ref().is_some_and(|it| it.id == id);
        let (Some(index), false) = (seat, state.seats.iter().any(is_here)) else {
            return Err(Fault::refused("a worker that nobody waits for"));
        };
        state.version += 1;
        let it = &mut state.seats[index];
        it.coming = None;
        it.next = None;
        (it.failures, it.lasting_failures) = (0, 0);
        let was_taken = std::mem::replace(&mut it.was_taken, true);
        it.member = Some(Member {
            id,
            process: process.clone(),
            hop,
            chief,
            commands: Arc::new(Mutex::new(commands)),
            closers,
            heard: Instant::now(),
            pulse: Pulse::default(),
            answers: std::collections::HashMap::new(),
        });
        if was_taken {
            state.events.push(Event {
                seat: index + 1,
                process: Some(process),
                after: self.begun.elapsed(),
                kind: EventKind::Came,
            });
        }
        drop(state);
        let hears = Arc::clone(self);
        let thread = std::thread::Builder::new().name(format!("worker-{}", index + 1));
        thread.spawn(move || hears.hear(index + 1, id, &mut answers))?;
        self.changed.notify_all();
        Ok(())
    }

    /// Fills a seat that is empty, and notices who does not come.
    fn look_after(self: &Arc<Self>, index: usize) {
        let mut state = self.state.lock();
        let it = &mut state.seats[index];
        if it.member.is_some() {
            return;
        }
        let mut failed = None;
        if let Some((_, since)) = it.coming {
            let exited = it
                .child
                .as_mut()
                .and_then(|child| child.try_wait().ok().flatten());
            if let Some(status) = exited {
                failed = Some(format!(
                    "its process ended with {status}{}",
                    self.last_words(index)
                ));
            } else if since.elapsed() >= self.settings.start {
                failed = Some(format!("it has not answered for {:.0?}", since.elapsed()));
            } else {
                return;
            }
        }
        if let Some(reason) = failed {
            self.failed(&mut state, index, &Fault::Failed(reason));
            return;
        }
        let it = &mut state.seats[index];
        let replaces = self.loss_policy.lock().replaces || !it.was_taken;
        if !replaces || it.next.is_some_and(|next| Instant::now() < next) {
            return;
        }
        let id = self.members.fetch_add(1, Ordering::SeqCst);
        match &self.source {
            WorkerSource::Awaited(_) => {}
            WorkerSource::Started(_, launch) => {
                it.coming = Some((id, Instant::now()));
                match self.started(index, id, launch.as_ref()) {
                    Ok(child) => it.child = Some(child),
                    Err(error) => self.failed(&mut state, index, &Fault::Broken(error.to_string())),
                }
            }
            WorkerSource::At(addresses) => {
                let address = addresses[index].1;
                it.coming = Some((id, Instant::now()));
                drop(state);
                let calls = Arc::clone(self);
                let call = move || {
                    if let Err(fault) = calls.call(id, address) {
                        let mut state = calls.state.lock();
                        calls.failed(&mut state, index, &fault);
                    }
                };
                let thread = std::thread::Builder::new().name("call".to_owned());
                let _ = thread.spawn(call);
            }
        }
    }

    /// Nobody came for a seat: the next attempt is later. A worker at an address may only not listen yet.
    fn failed(&self, state: &mut super::State, index: usize, fault: &Fault) {
        let reason = fault.to_string();
        let after = self.begun.elapsed();
        let it = &mut state.seats[index];
        it.coming = None;
        if let Some(mut child) = it.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        it.failures += 1;
        it.lasting_failures += u32::from(!matches!(fault, Fault::Unreachable(_)));
        let pause = Duration::from_millis(250 << it.failures.min(6));
        // Who starts its workers by hand does not wait long for the last one.
        let longest = match fault {
            Fault::Unreachable(_) if !it.was_taken => Duration::from_secs(1),
            _ => LONGEST_PAUSE,
        };
        it.next = Some(Instant::now() + pause.min(longest));
        it.reason.clone_from(&reason);
        let (is_first, was_taken) = (it.failures == 1, it.was_taken);
        if is_first && was_taken {
            state.events.push(Event {
                seat: index + 1,
                process: None,
                after,
                kind: EventKind::NotStarted(reason),
            });
        }
        self.changed.notify_all();
    }

    /// Starts a process on this machine. The key is in a file; the environment names the file.
    fn started(
        &self,
        index: usize,
        id: u64,
        launch: &dyn Launch,
    ) -> io::Result<std::process::Child> {
        let missing = || io::Error::other("there is no folder");
        let folder = self.folder().ok_or_else(missing)?;
        let log = self.log(index).ok_or_else(missing)?;
        let log = File::options().create(true).append(true).open(log)?;
        let mut command = launch.command(index + 1)?;
        command
            .env(CHIEF_VARIABLE, self.listener.to_string())
            .env(MEMBER_VARIABLE, id.to_string())
            .env(KEY_VARIABLE, folder.join(KEY_FILE))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        // This thread lives as long as the job.
        die_with_parent(&mut command).spawn()
    }

    /// The end of what a process wrote, to say why it has ended.
    fn last_words(&self, index: usize) -> String {
        let text = self.log(index).and_then(|path| std::fs::read(path).ok());
        let text = text.unwrap_or_default();
        let text = String::from_utf8_lossy(&text[text.len().saturating_sub(4096)..]).into_owned();
        match text
            .lines()
            .rev()
            .map(str::trim)
            .find(|line| !line.is_empty())
        {
            Some(line) => format!(": {}", line.chars().take(300).collect::<String>()),
            None => String::new(),
        }
    }

    /// Calls a worker that waits at an address.
    fn call(self: &Arc<Self>, id: u64, address: SocketAddr) -> Outcome<()> {
        let hello = |role| Hello::new(&self.settings, role, id, 0);
        let (commands, welcome) = hello(Role::Commands).dial(address, &self.key, &self.settings)?;
        let (answers, _) = hello(Role::Answers).dial(address, &self.key, &self.settings)?;
        self.admit(id, welcome.process, address, commands, answers)
    }
}

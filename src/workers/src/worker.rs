//! A worker process: it belongs to whoever holds the job's key, takes its place in each membership, carries out one
//! command after the other, and says every half second that it lives.

use std::net::SocketAddr;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::chain::{Aborter, Chain};
use crate::collective::Collective;
use crate::fault::{Fault, Outcome};
use crate::frame::Kind;
use crate::hello::{Hello, Process, Role};
use crate::key::JobKey;
use crate::link::Link;
use crate::listener::{Listener, Visitor};
use crate::message::{self, Answer, Command, Form, MOST_BYTES, Pulse};
use crate::mpi::{self, Mpi};
use crate::nccl::Nccl;
use crate::settings::{Settings, Transport};

/// After how many times its patience a worker takes a silent chief for gone. The chief may stand in a debugger or a long
/// cell, but its heartbeats come from a thread of their own.
const CHIEF_PATIENCE: u32 = 10;

/// How often who waits for a neighbor looks whether that is still wanted.
const LOOK: Duration = Duration::from_millis(50);

/// What a worker can do.
pub trait Work {
    /// Carries out a command, together with the group where it needs that, and returns the answer.
    ///
    /// # Errors
    /// [`Fault::Failed`] where the work itself failed; what the collective returned, if that did.
    fn work(&mut self, command: &[u8], group: &mut dyn Collective) -> Outcome<Vec<u8>>;

    /// What a command is called: `computes a batch`.
    fn name(&self, command: &[u8]) -> &'static str;

    /// The CUDA device of this process, for a job whose gradients NCCL adds.
    ///
    /// # Errors
    /// [`Fault::Failed`] where it has none.
    fn cuda_device(&self) -> Outcome<usize> {
        Err(Fault::Failed("this process has no CUDA device".to_owned()))
    }
}

/// Where a worker finds its chief, or waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChiefAddress {
    /// The chief waits for it at this address, as the worker of this number.
    Dial(SocketAddr, u64),
    /// It waits for the chief at this address.
    Listen(SocketAddr),
}

/// Works for a chief until the job is over. A worker that listens then waits for the next one, and returns only if its
/// port cannot be opened. `ready` gets the address at which the worker listens, or that of the chief that it has reached.
///
/// # Errors
/// The chief cannot be reached, or is lost.
pub fn serve(
    chief: ChiefAddress,
    key: &JobKey,
    settings: &Settings,
    work: &mut dyn Work,
    ready: &dyn Fn(SocketAddr),
) -> Outcome<()> {
    match chief {
        ChiefAddress::Dial(chief, member) => {
            let local = SocketAddr::new(local_address(chief)?, 0);
            let (listener, visitors) = Listener::open(local, key, settings)?;
            let hello = |role| {
                let hello = Hello::new(settings, role, member, 0);
                hello.reached_at(Some(listener.address()))
            };
            let (commands, _) = hello(Role::Commands).dial(chief, key, settings)?;
            let (answers, _) = hello(Role::Answers).dial(chief, key, settings)?;
            ready(chief);
            let outcome =
                Session::new(key, settings, member, visitors).run(commands, answers, work);
            // This worker has one job.
            mpi::end();
            outcome
        }
        ChiefAddress::Listen(address) => {
            let (listener, visitors) = Listener::open(address, key, settings)?;
            ready(listener.address());
            let mut waiting = Vec::new();
            let mut visitors = Some(visitors);
            loop {
                let Some(came) = visitors.take() else {
                    return Err(Fault::Closed);
                };
                let (hello, commands, answers) = pair(&came, &mut waiting, settings)?;
                let mut session = Session::new(key, settings, hello.member, came);
                session.chief = Some(hello.process);
                session.early = std::mem::take(&mut waiting);
                // The next chief may come before the last one is known to be gone.
                let _ = session.run(commands, answers, work);
                waiting.append(&mut session.early);
                visitors = Some(session.visitors);
            }
        }
    }
}

/// The address of this machine from which that one is reached.
fn local_address(other: SocketAddr) -> Outcome<std::net::IpAddr> {
    let any: SocketAddr = match other {
        SocketAddr::V4(_) => SocketAddr::from(([0, 0, 0, 0], 0)),
        SocketAddr::V6(_) => SocketAddr::from(([0; 16], 0)),
    };
    let socket = std::net::UdpSocket::bind(any)?;
    socket.connect(other)?;
    Ok(socket.local_addr()?.ip())
}

/// The two connections of the next chief. Hops that have come stay in `waiting`: a chief connects to its neighbor as soon as
/// it is welcomed, which may be while the worker ends the session before.
fn pair(
    visitors: &Receiver<Visitor>,
    waiting: &mut Vec<Visitor>,
    settings: &Settings,
) -> Outcome<(Hello, Link, Link)> {
    loop {
        let of = |role| move |it: &Visitor| it.hello.role == role;
        if let Some(at) = waiting.iter().rposition(of(Role::Commands)) {
            let member = waiting[at].hello.member;
            let answers =
                |it: &Visitor| it.hello.role == Role::Answers && it.hello.member == member;
            if let Some(other) = waiting.iter().rposition(answers) {
                let (high, low) = (at.max(other), at.min(other));
                let (second, first) = (waiting.remove(high), waiting.remove(low));
                waiting.retain(|it| it.hello.role == Role::Hop);
                let (commands, answers) = match first.hello.role {
                    Role::Commands => (first, second),
                    _ => (second, first),
                };
                return Ok((commands.hello, commands.link, answers.link));
            }
        }
        match visitors.recv_timeout(settings.patience) {
            Ok(visitor) => waiting.push(visitor),
            // Half a chief does not come any more.
            Err(RecvTimeoutError::Timeout) => waiting.clear(),
            Err(RecvTimeoutError::Disconnected) => return Err(Fault::Closed),
        }
    }
}

/// The work for one chief.
struct Session<'a> {
    key: &'a JobKey,
    settings: &'a Settings,
    member: u64,
    visitors: Receiver<Visitor>,
    /// Who has come and is not expected yet.
    early: Vec<Visitor>,
    /// Who has come, to a worker that listens.
    chief: Option<Process>,
    shared: Arc<Shared>,
}

/// What the threads of a session share.
#[derive(Default)]
struct Shared {
    /// Ends the collective that is going on.
    aborter: Mutex<Option<Aborter>>,
    /// The newest membership whose collectives the chief has ended.
    aborted: AtomicU64,
    is_over: AtomicBool,
    doing: Mutex<(&'static str, Option<Instant>)>,
    done: AtomicU64,
}

impl Shared {
    fn abort(&self) {
        if let Some(aborter) = &*self.aborter.lock() {
            aborter.abort();
        }
    }

    fn pulse(&self) -> Pulse {
        let (doing, since) = *self.doing.lock();
        let sent = self.aborter.lock().as_ref().map_or(0, Aborter::bytes_sent);
        Pulse {
            doing: doing.to_owned(),
            milliseconds: since.map_or(0, |since| since.elapsed().as_millis() as u64),
            done: self.done.load(Ordering::Relaxed),
            bytes_sent: sent,
        }
    }
}

impl<'a> Session<'a> {
    fn new(
        key: &'a JobKey,
        settings: &'a Settings,
        member: u64,
        visitors: Receiver<Visitor>,
    ) -> Self {
        Self {
            key,
            settings,
            member,
            visitors,
            early: Vec::new(),
            chief: None,
            shared: Arc::default(),
        }
    }

    /// Until the chief sends it away or is gone.
    fn run(&mut self, mut commands: Link, answers: Link, work: &mut dyn Work) -> Outcome<()> {
        commands.set_patience(self.settings.patience * CHIEF_PATIENCE)?;
        let closers = [commands.closer()?, answers.closer()?];
        let answers = Arc::new(Mutex::new(answers));
        let (sender, waiting) = mpsc::channel();
        let shared = Arc::clone(&self.shared);
        let listens = spawn("commands", move || {
            let outcome = listen(&mut commands, &sender, &shared);
            shared.is_over.store(true, Ordering::SeqCst);
            shared.abort();
            outcome
        })?;
        let (shared, sender) = (Arc::clone(&self.shared), Arc::clone(&answers));
        let period = self.settings.heartbeat;
        let beats = spawn("heartbeats", move || {
            while !shared.is_over.load(Ordering::SeqCst) {
                // Under the lock, so that no answer comes between what is said and when it is sent.
                let mut link = sender.lock();
                let pulse = serde_json::to_vec(&shared.pulse()).unwrap_or_default();
                if link.send(Kind::Heartbeat, 0, &pulse).is_err() {
                    break;
                }
                drop(link);
                std::thread::sleep(period);
            }
        })?;
        let mut chain = Chain::alone();
        let mut outcome = Ok(());
        while let Some((number, command)) = self.next(&waiting) {
            let answer = match command {
                Command::Leave => break,
                Command::Form(form) => {
                    self.doing("joins the group");
                    self.form(&form, work).map(|formed| {
                        chain = formed;
                        Vec::new()
                    })
                }
                Command::Work(bytes) => {
                    self.doing(work.name(&bytes));
                    carried_out(work, &bytes, &mut chain)
                }
            };
            self.shared.done.fetch_add(1, Ordering::Relaxed);
            *self.shared.doing.lock() = (message::WAITS, Some(Instant::now()));
            let bytes = message::encoded(&answer);
            outcome = answers.lock().send_message(Kind::Answer, number, &bytes);
            if outcome.is_err() {
                break;
            }
        }
        self.shared.is_over.store(true, Ordering::SeqCst);
        closers.iter().for_each(crate::hop::Closer::close);
        let listened = listens.join().unwrap_or(Err(Fault::Closed));
        let _ = beats.join();
        outcome.and(match listened {
            Err(Fault::Closed) => Ok(()),
            other => other,
        })
    }

    /// The next command. `None` where the session is over, or where the same chief has come anew: it counts this
    /// connection as lost, whose end may not have come through a network that was cut.
    fn next(&mut self, waiting: &Receiver<(u64, Command)>) -> Option<(u64, Command)> {
        loop {
            match waiting.recv_timeout(LOOK) {
                Ok(command) => return Some(command),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.early.extend(self.visitors.try_iter());
            let is_the_chief = |it: &Visitor| {
                it.hello.role == Role::Commands && self.chief.as_ref() == Some(&it.hello.process)
            };
            if self.early.iter().any(is_the_chief) {
                return None;
            }
        }
    }

    fn doing(&self, what: &'static str) {
        *self.shared.doing.lock() = (what, Some(Instant::now()));
    }

    /// Connects to the member behind, and waits for the one before.
    fn form(&mut self, form: &Form, work: &dyn Work) -> Outcome<Chain> {
        let since = Instant::now();
        self.shared.abort();
        if form.transport == Transport::Mpi {
            return self.form_over_mpi(form);
        }
        let hello = Hello::new(self.settings, Role::Hop, self.member, form.generation);
        let (right, _) = hello.dial(form.right_address, self.key, self.settings)?;
        let is_left = |it: &Visitor| {
            let hello = &it.hello;
            hello.role == Role::Hop
                && (hello.generation, hello.member) == (form.generation, form.left)
        };
        loop {
            let of_the_past =
                |it: &Visitor| it.hello.role == Role::Hop && it.hello.generation < form.generation;
            self.early.retain(|it| !of_the_past(it));
            if let Some(at) = self.early.iter().position(is_left) {
                let left = self.early.swap_remove(at).link;
                let mut chain = Chain::new(form.position, form.size, left, right)?;
                if let Some(name) = &form.nccl {
                    chain = chain.with(self.join(name, form, work)?)?;
                }
                return Ok(self.formed(form, chain));
            }
            let is_over = self.shared.is_over.load(Ordering::SeqCst);
            if is_over || self.shared.aborted.load(Ordering::SeqCst) >= form.generation {
                return Err(Fault::Aborted);
            }
            // The one before may need its whole patience to be connected, and so did this one.
            if since.elapsed() >= self.settings.patience * 3 {
                return Err(Fault::Silent(since.elapsed()));
            }
            match self.visitors.recv_timeout(LOOK) {
                Ok(visitor) => self.early.push(visitor),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(Fault::Closed),
            }
        }
    }
}

impl Session<'_> {
    /// The same over MPI, whose processes are connected.
    fn form_over_mpi(&self, form: &Form) -> Outcome<Chain> {
        let mpi = Mpi::of_process(self.member)?;
        let hop = |other| mpi.hop(other, form.generation, self.key, self.settings.patience);
        let chain = Chain::new(form.position, form.size, hop(form.left)?, hop(form.right)?)?;
        Ok(self.formed(form, chain))
    }

    /// Begins to meet the others over NCCL. The chief, who is the last to begin, waits until all have met.
    fn join(&self, name: &[u8], form: &Form, work: &dyn Work) -> Outcome<Nccl> {
        let place = (form.position, form.size);
        Nccl::join(name, place, work.cuda_device()?, self.settings.patience)
    }

    fn formed(&self, form: &Form, chain: Chain) -> Chain {
        *self.shared.aborter.lock() = Some(chain.aborter());
        // An abort that came meanwhile has found no chain.
        if self.shared.aborted.load(Ordering::SeqCst) >= form.generation {
            chain.abort();
        }
        chain
    }
}

fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> Outcome<std::thread::JoinHandle<T>> {
    let thread = std::thread::Builder::new().name(name.to_owned());
    Ok(thread.spawn(body)?)
}

/// Reads commands until the connection ends. What ends a collective does not wait for the command that is in it.
fn listen(
    commands: &mut Link,
    sender: &mpsc::Sender<(u64, Command)>,
    shared: &Shared,
) -> Outcome<()> {
    loop {
        let frame = commands.receive_message(MOST_BYTES)?;
        match frame.kind {
            Kind::Heartbeat => {}
            Kind::Abort => {
                shared.aborted.fetch_max(frame.step, Ordering::SeqCst);
                shared.abort();
            }
            Kind::Command => {
                let command = Command::decoded(frame.payload)?;
                let is_last = command == Command::Leave;
                if sender.send((frame.step, command)).is_err() || is_last {
                    return Ok(());
                }
            }
            kind => return Err(Fault::refused(format!("{kind:?} from the chief"))),
        }
    }
}

/// A panic in the work of a command is its answer.
fn carried_out(work: &mut dyn Work, command: &[u8], group: &mut dyn Collective) -> Answer {
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| work.work(command, group)));
    outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(Fault::Failed(
            text.unwrap_or("the work panicked").to_owned(),
        ))
    })
}

//! The chief's side of a job: which workers there are, who of them is lost and who comes in their place, and the group
//! that they form.
//!
//! The chief is member 0 of every group; the workers have *seats* 1, 2, …. A thread reads what each worker says; one that
//! closes its connection, or says nothing for the patience of the job, is lost: it is killed where this process started
//! it, the collective that is going on is ended for all, and somebody else may take the seat. Nothing here blocks on a
//! worker that is gone.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use stratoscope_os::private_folder::{PrivateFolder, fresh_name};
use stratoscope_os::temporary_folder;

use crate::chain::{Aborter, Chain};
use crate::fault::{Fault, Outcome};
use crate::frame::Kind;
use crate::hello::Process;
use crate::hop::Closer;
use crate::key::JobKey;
use crate::link::Link;
use crate::listener::{Listener, Visitor};
use crate::message::{self, Answer, Pulse};
use crate::mpi;
use crate::settings::{Settings, Transport};
use crate::tally::Tally;

mod form;
mod members;
mod talk;
#[cfg(test)]
mod tests;
mod types;

pub use form::{Formed, NotFormed};
pub use members::{CHIEF_VARIABLE, KEY_VARIABLE, MEMBER_VARIABLE, chief_in_environment};
pub use types::{
    Communication, Event, EventKind, Launch, Missing, NotBegun, SeatView, WorkerLossPolicy,
    WorkerSource,
};

/// Whether the user has interrupted, and what is done when workers are missing for some time.
pub type Waiting<'a> = (&'a dyn Fn() -> bool, &'a dyn Fn(&[Missing]));

/// How often who waits looks around.
const LOOK: Duration = Duration::from_millis(50);

/// A job, seen from its chief. Dropping it ends the job and the processes that it started.
pub struct Team {
    shared: Arc<Shared>,
    formed: Mutex<Option<form::Group>>,
    numbers: AtomicU64,
    owner: AtomicU64,
    tally: Mutex<Tally>,
    /// The thread that looks after the members.
    looks: Option<JoinHandle<()>>,
    _listener: Listener,
}

pub(crate) struct Shared {
    key: JobKey,
    settings: Settings,
    source: WorkerSource,
    loss_policy: Mutex<WorkerLossPolicy>,
    communication: Mutex<Communication>,
    state: Mutex<State>,
    changed: Condvar,
    generation: AtomicU64,
    aborter: Mutex<Option<Aborter>>,
    is_over: AtomicBool,
    begun: Instant,
    listener: SocketAddr,
    members: AtomicU64,
    /// Holds the key, where processes are started and the job is not over.
    folder: Mutex<Option<PrivateFolder>>,
}

struct State {
    seats: Vec<Seat>,
    /// Connections of workers that are not complete yet.
    halves: Vec<Visitor>,
    hops: Vec<Visitor>,
    /// Changes with every worker that comes or is lost, and with every group that breaks.
    version: u64,
    events: Vec<Event>,
    /// Workers that are lost and whose event is not written yet.
    losing: usize,
}

#[derive(Default)]
struct Seat {
    member: Option<Member>,
    child: Option<Child>,
    /// The number of who is expected, and since when.
    coming: Option<(u64, Instant)>,
    /// When to try again, and how often that was done without success.
    next: Option<Instant>,
    failures: u32,
    /// Those of them that waiting does not change, such as a process that ends.
    lasting_failures: u32,
    /// Whether somebody had it.
    was_taken: bool,
    /// Why nobody has it.
    reason: String,
}

struct Member {
    id: u64,
    process: Process,
    hop: SocketAddr,
    /// Where it reaches the chief.
    chief: SocketAddr,
    commands: Arc<Mutex<Link>>,
    closers: Vec<Closer>,
    heard: Instant,
    pulse: Pulse,
    /// For each command that was sent to it and whose answer somebody wants: the answer, once it has come.
    answers: HashMap<u64, Option<Answer>>,
}

impl Team {
    /// Begins a job: all workers have come when it returns. Loopback is the only address that is listened at, unless `address` is another. Workers
    /// that are missing for some time are passed to the second function of `waiting`, once.
    ///
    /// # Errors
    /// See [`NotBegun`].
    pub fn begin(
        source: WorkerSource,
        key: JobKey,
        settings: Settings,
        address: Option<SocketAddr>,
        waiting: Waiting<'_>,
    ) -> Result<Self, NotBegun> {
        let system = |what: &str, error: &dyn std::fmt::Display| {
            NotBegun::System(format!("{what}: {error}"))
        };
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let (listener, visitors) = Listener::open(address.unwrap_or(loopback), &key, &settings)
            .map_err(|error| system("no port can be opened", &error))?;
        let (seats, folder) = match &source {
            WorkerSource::Started(count, _) => {
                let folder = private_folder(&key);
                let folder = folder.map_err(|error| system("no private folder", &error))?;
                (*count, Some(folder))
            }
            WorkerSource::At(addresses) => (addresses.len(), None),
            WorkerSource::Awaited(count) => (*count, None),
        };
        let shared = Arc::new(Shared {
            key,
            settings,
            source,
            loss_policy: Mutex::default(),
            communication: Mutex::default(),
            state: Mutex::new(State {
                seats: (0..seats).map(|_| Seat::default()).collect(),
                halves: Vec::new(),
                hops: Vec::new(),
                version: 0,
                events: Vec::new(),
                losing: 0,
            }),
            changed: Condvar::new(),
            generation: AtomicU64::new(0),
            aborter: Mutex::new(None),
            is_over: AtomicBool::new(false),
            begun: Instant::now(),
            listener: listener.address(),
            members: AtomicU64::new(1),
            folder: Mutex::new(folder),
        });
        let members = Arc::clone(&shared);
        let looks = std::thread::Builder::new()
            .name("workers".to_owned())
            .spawn(move || members.look_after_all(&visitors))
            .map_err(|error| system("no thread can be started", &error))?;
        let team = Self {
            shared,
            formed: Mutex::new(None),
            numbers: AtomicU64::new(1),
            owner: AtomicU64::new(0),
            tally: Mutex::default(),
            looks: Some(looks),
            _listener: listener,
        };
        team.all_have_come(waiting)?;
        Ok(team)
    }

    fn all_have_come(&self, (asked, name): Waiting<'_>) -> Result<(), NotBegun> {
        let shared = &self.shared;
        let mut state = shared.state.lock();
        let mut is_named = false;
        loop {
            let Some(seat) = state.seats.iter().position(|it| it.member.is_none()) else {
                return Ok(());
            };
            if asked() {
                return Err(NotBegun::Interrupted);
            }
            let waited = shared.begun.elapsed();
            let missing = |seat: usize| Missing {
                seat: seat + 1,
                address: shared.address_of(seat),
                waited,
                reason: state.seats[seat].reason.clone(),
            };
            if waited >= shared.settings.start || state.seats[seat].lasting_failures >= 3 {
                return Err(NotBegun::Missing(missing(seat)));
            }
            if waited >= shared.settings.naming && !is_named {
                is_named = true;
                let empty = (0..state.seats.len()).filter(|&it| state.seats[it].member.is_none());
                let missing: Vec<Missing> = empty.map(missing).collect();
                MutexGuard::unlocked(&mut state, || name(&missing));
            }
            shared.changed.wait_for(&mut state, LOOK);
        }
    }

    /// The members of the job when all are there: the workers and the chief.
    pub fn size(&self) -> usize {
        self.shared.state.lock().seats.len() + 1
    }

    /// Whether a launcher starts the workers.
    pub fn is_awaited(&self) -> bool {
        matches!(self.shared.source, WorkerSource::Awaited(_))
    }

    /// What happens from now on when a worker is lost.
    pub fn set_loss_policy(&self, policy: WorkerLossPolicy) {
        *self.shared.loss_policy.lock() = policy;
    }

    /// What happens when a worker is lost.
    pub fn loss_policy(&self) -> WorkerLossPolicy {
        *self.shared.loss_policy.lock()
    }

    /// How gradients travel from now on. What carries them is that of the next group.
    pub fn set_communication(&self, communication: Communication) {
        let before = std::mem::replace(&mut *self.shared.communication.lock(), communication);
        if before.transport != communication.transport {
            self.shared.state.lock().version += 1;
            if communication.transport == Transport::Mpi {
                let shared = Arc::downgrade(&self.shared);
                // MPI ends for all processes together, and workers end theirs when they leave.
                mpi::before_end(move || {
                    if let Some(shared) = shared.upgrade() {
                        shared.dismiss();
                    }
                });
            }
        }
    }

    /// How gradients travel.
    pub fn communication(&self) -> Communication {
        *self.shared.communication.lock()
    }

    /// The times of the job.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// What has happened since this was asked last.
    pub fn events(&self) -> Vec<Event> {
        let mut state = self.shared.state.lock();
        // What became of a process is known a moment later.
        let until = Instant::now() + talk::ENDING + Duration::from_millis(500);
        while state.losing > 0 && Instant::now() < until {
            self.shared.changed.wait_for(&mut state, LOOK);
        }
        std::mem::take(&mut state.events)
    }

    /// The seats, in their order.
    pub fn seats(&self) -> Vec<SeatView> {
        let state = self.shared.state.lock();
        let seats = state.seats.iter().enumerate();
        let view = |(seat, it): (usize, &Seat)| SeatView {
            seat: seat + 1,
            address: self.shared.address_of(seat),
            process: it.member.as_ref().map(|member| member.process.clone()),
            heard: it
                .member
                .as_ref()
                .map(|member| (member.heard.elapsed(), member.pulse.clone())),
        };
        seats.map(view).collect()
    }

    /// What a worker of this machine has written to its standard error and output; the last 64 KiB.
    pub fn output(&self, seat: usize) -> Option<String> {
        let path = self.shared.log(seat.checked_sub(1)?)?;
        let bytes = std::fs::read(path).ok()?;
        let start = bytes.len().saturating_sub(64 << 10);
        Some(String::from_utf8_lossy(&bytes[start..]).into_owned())
    }

    /// The workers serve this owner from now on; whether they did before. Owners are numbered by who uses the team.
    pub fn claim(&self, owner: u64) -> bool {
        self.owner.swap(owner, Ordering::SeqCst) == owner
    }

    /// What the members have done for the run that is going on, or was the last.
    pub fn tally(&self) -> Tally {
        self.tally.lock().clone()
    }

    /// Counts what was done.
    pub fn count(&self, change: impl FnOnce(&mut Tally)) {
        change(&mut self.tally.lock());
    }

    /// A number for a command to all members.
    pub fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::SeqCst)
    }

    /// Sends work to a seat.
    ///
    /// # Errors
    /// The worker is lost.
    pub fn send(&self, seat: usize, number: u64, work: Vec<u8>) -> Outcome<()> {
        let command = message::Command::Work(work);
        self.shared.send(seat, number, &command)
    }

    /// Waits for the answer of a seat to a command.
    ///
    /// # Errors
    /// The worker is lost, or the work has failed there. [`Fault::Aborted`] when `asked` says that nobody waits any more.
    pub fn answer(&self, seat: usize, number: u64, asked: &dyn Fn() -> bool) -> Outcome<Vec<u8>> {
        self.shared.answer(seat, number, asked)
    }

    /// Counts a worker as lost, for example because its work fails.
    pub fn lose(&self, seat: usize, fault: Fault) {
        let id = {
            let state = self.shared.state.lock();
            let member = state.seats.get(seat - 1).and_then(|it| it.member.as_ref());
            member.map(|member| member.id)
        };
        if let Some(id) = id {
            self.shared.lose(seat, id, fault);
        }
    }
}

impl Shared {
    /// Ends the job: the workers leave, and processes that were started for it are ended.
    fn dismiss(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        let mut state = self.state.lock();
        for seat in &mut state.seats {
            if let Some(member) = seat.member.take() {
                let leave = message::Command::Leave.encoded();
                if let Some(mut commands) = member.commands.try_lock() {
                    let _ = commands.send_message(Kind::Command, u64::MAX, &leave);
                }
                member.closers.iter().for_each(Closer::close);
            }
            if let Some(mut child) = seat.child.take() {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
        drop(state);
        self.changed.notify_all();
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        // It must not start a process for a seat that is emptied below.
        if let Some(looks) = self.looks.take() {
            let _ = looks.join();
        }
        if let Some(group) = self.formed.lock().take() {
            crate::collective::Collective::abort(&group.chain);
        }
        self.shared.dismiss();
        // Threads that hear the end of their connection still hold `shared`: the key is removed now.
        *self.shared.folder.lock() = None;
        if self.communication().transport == Transport::Mpi {
            mpi::end();
        }
    }
}

/// A folder with the key, for this user only.
fn private_folder(key: &JobKey) -> std::io::Result<PrivateFolder> {
    let temporary = temporary_folder::find().map_err(std::io::Error::other)?;
    // Two jobs may begin in the same nanosecond.
    let mut last = std::io::Error::other("no free name");
    for _ in 0..8 {
        match PrivateFolder::make(temporary.folder.join(fresh_name())) {
            Ok(folder) => {
                key.write(&folder.path().join(members::KEY_FILE))?;
                return Ok(folder);
            }
            Err(error) => last = error,
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(last)
}

impl std::fmt::Debug for Team {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Team({} members)", self.size())
    }
}

/// A group of one, where there is no job.
pub(crate) fn alone() -> Chain {
    Chain::alone()
}

//! Hops over MPI, for jobs whose processes `mpirun`, `mpiexec` or `srun` has started: gradients travel as the cluster's own
//! MPI sends them (shared memory, InfiniBand, …), commands and signs of life stay on TCP.
//!
//! MPI is loaded when a job asks for it, so that a build needs none. It belongs to a process and can be started once in it.
//! One thread owns it and makes all calls, which is the least that MPI asks of its implementations
//! (`MPI_THREAD_FUNNELED`); nothing that it does waits, so that a lost neighbor costs a deadline and not the process.
//! Source: MPI 3.1, sections 3.7 (non-blocking communication), 8.7 (startup) and 12.4 (threads).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::fault::{Fault, Outcome};
use crate::frame::{HEADER, MOST_BYTES};

mod hop;
mod library;

pub use hop::MpiHop;
use library::{Library, Request};

/// How long the start of MPI may take, in which all processes of the job take part, and how long its end.
const START: Duration = Duration::from_secs(60);
const END: Duration = Duration::from_secs(10);

/// How often the owner looks at what is under way before it rests, and for how long it does.
const SPINS: u32 = 2000;
const REST: Duration = Duration::from_micros(50);

/// MPI in this process.
pub struct Mpi {
    orders: Mutex<Sender<Order>>,
    /// The number of this process among those that were started together.
    pub rank: usize,
    /// How many were.
    pub size: usize,
    /// What it is: `Open MPI v4.1.4`.
    pub version: String,
}

/// What the owner is to do.
enum Order {
    Move(Transfer),
    End(Sender<()>),
}

/// Bytes on their way to another process or from it.
struct Transfer {
    /// The number of the other process.
    other: usize,
    /// Keeps memberships apart.
    tag: i32,
    bytes: Vec<u8>,
    is_receive: bool,
    /// Whether somebody waits for it.
    is_wanted: Arc<AtomicBool>,
    done: Sender<Moved>,
}

/// What became of a transfer: its bytes, and how many of them came.
type Moved = Outcome<(Vec<u8>, usize)>;

static PROCESS: OnceLock<Outcome<Mpi>> = OnceLock::new();

/// What is done first when MPI is ended.
static FIRST: Mutex<Vec<Box<dyn FnOnce() + Send>>> = Mutex::new(Vec::new());

/// Whether MPI was ended here, after which it cannot be started again.
static IS_OVER: AtomicBool = AtomicBool::new(false);

impl Mpi {
    /// MPI in this process, which is started by the first call. All processes of the job must call it: it returns when
    /// they have. `number`: that of this process in the job.
    ///
    /// # Errors
    /// There is no MPI, it cannot be started, or the processes do not start it together; MPI has another number for this
    /// process.
    pub fn of_process(number: u64) -> Outcome<&'static Self> {
        let mpi = PROCESS.get_or_init(Self::start);
        let mpi = mpi.as_ref().map_err(Clone::clone)?;
        if IS_OVER.load(Ordering::SeqCst) {
            return Err(Fault::Failed(
                "MPI was used by the job before, and a process can start it once".to_owned(),
            ));
        }
        if mpi.rank as u64 == number {
            return Ok(mpi);
        }
        let (version, rank, size) = (&mpi.version, mpi.rank, mpi.size);
        Err(Fault::Failed(format!(
            "process {number} of the job is process {rank} of {size} to {version}: the launcher that has started it does not \
             use this MPI"
        )))
    }

    fn start() -> Outcome<Self> {
        let (orders, waiting) = mpsc::channel();
        let (ready, started) = mpsc::channel();
        let owner = std::thread::Builder::new().name("mpi".to_owned());
        owner.spawn(move || match Library::start() {
            Ok(library) => {
                let known = (library.rank, library.size, library.version.clone());
                let _ = ready.send(Ok(known));
                own(&library, &waiting);
            }
            Err(fault) => {
                let _ = ready.send(Err(fault));
            }
        })?;
        let (rank, size, version) = started.recv_timeout(START).map_err(|_| {
            Fault::Failed(format!(
                "MPI was not started within {} s: all processes of the job must start it",
                START.as_secs()
            ))
        })??;
        end_with_process();
        Ok(Self {
            orders: Mutex::new(orders),
            rank,
            size,
            version,
        })
    }

    /// The way from and to the process `other`, for a membership of this number.
    ///
    /// # Errors
    /// MPI has no such process.
    pub fn hop(
        &self,
        other: u64,
        generation: u64,
        key: &crate::key::JobKey,
        patience: Duration,
    ) -> Outcome<MpiHop> {
        let rank = usize::try_from(other).ok().filter(|&rank| rank < self.size);
        let rank = rank.ok_or_else(|| {
            let size = self.size;
            Fault::refused(format!("process {other} of an MPI job of {size}"))
        })?;
        let orders = self.orders.lock().clone();
        Ok(MpiHop::new(orders, rank, generation, key.id(), patience))
    }
}

/// Whether there is an MPI to start.
///
/// # Errors
/// No library is found, or one that is no MPI.
pub fn find() -> Outcome<()> {
    library::found().map(|_| ())
}

/// What MPI this process has started: `Open MPI v4.1.4`.
pub fn version() -> Option<String> {
    let mpi = PROCESS.get()?.as_ref().ok()?;
    Some(mpi.version.clone())
}

/// Has `work` done before MPI is ended in this process, if it is.
pub fn before_end(work: impl FnOnce() + Send + 'static) {
    FIRST.lock().push(Box::new(work));
}

/// Ends MPI in this process where it was started: a launcher takes a process that ends without for a failure. Nothing can
/// be sent afterwards.
pub fn end() {
    let Some(Ok(mpi)) = PROCESS.get() else {
        return;
    };
    if IS_OVER.swap(true, Ordering::SeqCst) {
        return;
    }
    let first = std::mem::take(&mut *FIRST.lock());
    first.into_iter().for_each(|work| work());
    let (done, ended) = mpsc::channel();
    if mpi.orders.lock().send(Order::End(done)).is_ok() {
        // The end is one of all processes: it is not waited for where one of them is lost.
        let _ = ended.recv_timeout(END);
    }
}

/// A chief's process ends when its notebook does, whatever the job was doing.
fn end_with_process() {
    extern "C" fn at_exit() {
        end();
    }
    // SAFETY: the function takes nothing, returns nothing, and lives as long as the process.
    unsafe { libc::atexit(at_exit) };
}

/// Makes all calls of MPI until it is ended.
fn own(library: &Library, orders: &Receiver<Order>) {
    let mut moving: Vec<(Transfer, Request)> = Vec::new();
    let mut idle = 0;
    loop {
        let order = match moving.is_empty() {
            true => orders.recv().map_err(|_| TryRecvError::Disconnected),
            false => orders.try_recv(),
        };
        match order {
            Ok(Order::Move(transfer)) => {
                idle = 0;
                begin(library, transfer, &mut moving);
                continue;
            }
            Ok(Order::End(done)) => {
                library.end();
                let _ = done.send(());
                return;
            }
            Err(TryRecvError::Disconnected) => return,
            Err(TryRecvError::Empty) => {}
        }
        let before = moving.len();
        let mut index = 0;
        while index < moving.len() {
            match look(library, &mut moving[index]) {
                None => index += 1,
                Some(outcome) => {
                    let (transfer, _) = moving.remove(index);
                    ended(transfer, outcome);
                }
            }
        }
        idle = if moving.len() < before { 0 } else { idle + 1 };
        match idle < SPINS {
            true => std::thread::yield_now(),
            false => std::thread::sleep(REST),
        }
    }
}

fn begin(library: &Library, mut transfer: Transfer, moving: &mut Vec<(Transfer, Request)>) {
    let (other, tag) = (transfer.other, transfer.tag);
    // The bytes stay where they are until MPI has said that it is done with them: see `own`.
    let begun = match transfer.is_receive {
        true => library.receive(&mut transfer.bytes, other, tag),
        false => library.send(&transfer.bytes, other, tag),
    };
    match begun {
        Ok(request) => moving.push((transfer, request)),
        Err(fault) => ended(transfer, Err(fault)),
    }
}

/// What became of a transfer; `None` while it is under way.
fn look(
    library: &Library,
    (transfer, request): &mut (Transfer, Request),
) -> Option<Outcome<usize>> {
    let is_abandoned = !transfer.is_wanted.load(Ordering::Relaxed);
    if is_abandoned && transfer.is_receive {
        library.cancel(request);
    }
    library.look(request).transpose()
}

fn ended(transfer: Transfer, outcome: Outcome<usize>) {
    let outcome = outcome.map(|count| (transfer.bytes, count));
    // Whoever waited may have given up.
    let _ = transfer.done.send(outcome);
}

//! What a job is begun with, and what is said of its workers.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use crate::fault::Fault;
use crate::hello::Process;
use crate::message::Pulse;
use crate::precision::Precision;
use crate::settings::Transport;

/// How the processes of a job on this machine are started.
pub trait Launch: Send + Sync {
    /// The command of a worker. It finds the chief in its environment ([`chief_in_environment`](crate::team::chief_in_environment)).
    ///
    /// # Errors
    /// Its program is not there.
    fn command(&self, seat: usize) -> std::io::Result<Command>;
}

/// Where the workers of a job come from.
#[derive(Clone)]
pub enum WorkerSource {
    /// This process starts so many on this machine.
    Started(usize, Arc<dyn Launch>),
    /// They wait for the chief at these addresses.
    At(Vec<(String, SocketAddr)>),
    /// They come by themselves, so many, with the job's key.
    Awaited(usize),
}

/// What happens when a worker is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerLossPolicy {
    /// With how many members, the chief among them, work goes on at once.
    pub min_workers: usize,
    /// How long it waits for more where there are fewer.
    pub wait: Duration,
    /// Whether lost workers are started or called again.
    pub replaces: bool,
}

impl Default for WorkerLossPolicy {
    /// Goes on with whoever is left, and replaces who is lost.
    fn default() -> Self {
        Self {
            min_workers: 1,
            wait: Duration::from_secs(30),
            replaces: true,
        }
    }
}

/// How the members of a job exchange numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Communication {
    /// How gradients travel.
    pub gradients: Precision,
    /// What carries them.
    pub transport: Transport,
    /// The CUDA device of this process, which NCCL needs.
    pub cuda_device: Option<usize>,
}

/// Something that happened to a worker.
#[derive(Clone, Debug)]
pub struct Event {
    /// Its seat, from 1.
    pub seat: usize,
    /// Its process, where it was known.
    pub process: Option<Process>,
    /// How long after the begin of the job.
    pub after: Duration,
    /// What it was.
    pub kind: EventKind,
}

/// What happened to a worker.
#[derive(Clone, Debug)]
pub enum EventKind {
    /// It is lost.
    Lost {
        /// Why.
        fault: Fault,
        /// How long before it was last heard.
        silent: Duration,
        /// What it said then.
        pulse: Pulse,
    },
    /// It has taken the seat of one that was lost.
    Came,
    /// Nobody could be started or reached for the seat.
    NotStarted(String),
}

/// What is known of a seat.
#[derive(Clone, Debug)]
pub struct SeatView {
    /// Its number, from 1.
    pub seat: usize,
    /// Where the worker is called, for one that is at an address.
    pub address: Option<String>,
    /// Who has it.
    pub process: Option<Process>,
    /// How long ago it was heard, and what it said.
    pub heard: Option<(Duration, Pulse)>,
}

/// A worker that has not come.
#[derive(Clone, Debug)]
pub struct Missing {
    /// Its seat, from 1.
    pub seat: usize,
    /// Where it was called.
    pub address: Option<String>,
    /// How long it was waited for.
    pub waited: Duration,
    /// What is known.
    pub reason: String,
}

/// Why a job could not begin.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NotBegun {
    /// A worker did not come in time: the first that is missing.
    #[error("worker {} did not come within {:.0} s: {}", .0.seat, .0.waited.as_secs_f64(), .0.reason)]
    Missing(Missing),
    /// The system refuses what is needed: a port, a folder, a key.
    #[error("{0}")]
    System(String),
    /// The user does not wait any longer.
    #[error("interrupted")]
    Interrupted,
}

//! How long processes of a job wait for each other.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What carries gradients and weights between the processes of a job. Commands and signs of life go over TCP always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Transport {
    /// TCP with TLS, each process connected to its neighbors.
    #[default]
    Tcp,
    /// The MPI of the launcher that has started the processes.
    Mpi,
    /// TCP, and NCCL for all-reduces, which are done by the CUDA device of each process.
    Nccl,
}

/// The times of a job, the same in all of its processes, and what they are built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How often a worker gives a sign of life.
    pub heartbeat: Duration,
    /// After how long without one it counts as lost; also the deadline of every hop and every handshake.
    pub patience: Duration,
    /// How long workers may take to come when a job begins.
    pub start: Duration,
    /// After how long those that have not come yet are named.
    pub naming: Duration,
    /// Processes of another build are refused: what they compute would differ.
    pub build: String,
}

impl Settings {
    /// The times by default: a sign of life every half second, lost after 3 s, half a minute to come.
    pub fn new(build: impl Into<String>) -> Self {
        Self {
            heartbeat: Duration::from_millis(500),
            patience: Duration::from_secs(3),
            start: Duration::from_secs(30),
            naming: Duration::from_secs(10),
            build: build.into(),
        }
    }
}

//! Worker processes of a job, and the collectives between them. The crate knows neither models nor tensors: it moves
//! buffers of numbers and commands between processes that hold the same key.
//!
//! - [`key`], [`link`], [`frame`], [`hello`], [`listener`]: authenticated connections, and what is refused on them.
//! - [`collective`] with its engine, [`chain`]: sums in a fixed order, over any [`hop`]: a [`link`] (TCP), or [`mpi`].
//! - [`team`] is the chief's side of a job, [`worker`] a worker's.
//!
//! Start reading at [`team`].

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

pub mod chain;
pub mod cluster;
pub mod collective;
pub mod fault;
pub mod frame;
pub mod hello;
pub mod hop;
pub mod key;
pub mod link;
pub mod listener;
mod message;
pub mod mpi;
pub mod nccl;
mod precision;
pub mod settings;
pub mod tally;
pub mod team;
pub mod worker;

pub use chain::Chain;
pub use cluster::{Cluster, local_rank};
pub use collective::Collective;
pub use fault::{Fault, Outcome};
pub use hello::Process;
pub use key::JobKey;
pub use message::Pulse;
pub use precision::Precision;
pub use settings::{Settings, Transport};
pub use tally::{Done, Exchanges, Straggler, Tally, processor_time};
pub use team::{
    Communication, Event, EventKind, Formed, Launch, Missing, NotBegun, NotFormed, SeatView, Team,
    WorkerLossPolicy, WorkerSource,
};
pub use worker::{ChiefAddress, Work, serve};

//! The Jupyter messaging protocol, version 5.5, over pure-Rust ZeroMQ. It knows the contract of an evaluator
//! (crate `session`) and not evcxr, and uses the crates `session`, `os`, `wire` and `diagnostics`. Start with
//! [`serve`].
//!
//! - [`connection`] reads the connection file; [`signature`] signs and checks; [`envelope`] turns
//!   frames into messages and back; [`message`] has a file per message, so that the folder's
//!   listing is the protocol.
//! - [`socket`] has a file per kind of socket. Each socket is owned by one task.
//! - [`kernel`] answers requests; [`execution`] executes cells, one after the other; [`outputs`]
//!   is what a running cell writes to; [`comms`] are the widgets' channels; [`completeness`] decides
//!   whether a cell is finished.
//!
//! **Invariants.** Nothing that arrives on a socket ends the kernel: what cannot be understood is
//! logged and dropped. No request waits for a running cell, except to execute another one.
//! Everything a cell showed is published before its reply is sent and before `idle`.

#![deny(missing_docs)]

mod clock;
mod comms;
mod completeness;
mod connection;
mod envelope;
mod execution;
#[cfg(test)]
mod fuzz;
mod history;
mod kernel;
mod message;
mod outputs;
mod signature;
mod socket;

pub use kernel::{language_info, serve};

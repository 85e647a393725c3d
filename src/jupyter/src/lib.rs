//! The Jupyter messaging protocol, version 5.5, over pure-Rust ZeroMQ. The crate knows the contract of an evaluator
//! (crate `session`) and not evcxr. Start with [`serve`].
//!
//! - `connection` reads the connection file; `signature` signs and verifies; `envelope` converts between
//!   frames and messages; `message` has a file per message, so that the folder's listing is the protocol.
//! - `socket` has a file per kind of socket. Each socket is owned by one task.
//! - `kernel` starts and ends the tasks; `requests` answers requests; `execution` executes cells in order;
//!   `running` publishes whether the kernel is busy; `outputs` publishes the outputs of a running cell; `comms` are
//!   the channels of widgets, whose models are in `widget`; `open_comms` are those that front ends open; `lint` checks cells while they are typed;
//!   `completeness` decides whether a cell is finished.
//!
//! **Invariants.** Nothing that arrives on a socket ends the kernel: what cannot be parsed is logged and
//! dropped. No request waits for a running cell, except to execute another one. Every output of a cell is
//! published before its reply is sent and before `idle`.

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

mod clock;
mod comms;
mod completeness;
mod connection;
mod consoles;
mod cursor;
mod debug;
mod envelope;
mod execution;
#[cfg(test)]
mod fuzz;
mod history;
mod kernel;
mod kernel_info;
mod lint;
mod message;
mod open_comms;
mod outputs;
mod requests;
mod running;
mod signature;
mod socket;
mod steering;
mod utf16;
mod widget;

pub use debug::adapter::find_or_advise as debug_adapter;
pub use kernel::serve;
pub use kernel_info::language_info;

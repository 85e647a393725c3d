//! The sockets, a file per kind. Each is owned by one task, which alone sends and receives.
//!
//! Clients connect to a [`listener`], which starts a [`proxy`] for each connection; the proxy validates the bytes
//! with [`zmtp`]. [`log`] limits the number of log lines about clients.

pub mod heartbeat;
pub mod iopub;
pub mod listener;
mod log;
mod proxy;
pub mod router;
pub mod stdin;
pub mod zmtp;

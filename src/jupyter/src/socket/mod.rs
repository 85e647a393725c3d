//! The sockets, a file per kind. Each is owned by one task, which alone sends and receives.
//!
//! Clients reach them through a [`door`], which opens a [`passage`] for each connection and reads
//! along by [`zmtp`]'s rules; [`log`] keeps what is said about them short.

pub mod door;
pub mod heartbeat;
pub mod iopub;
mod log;
mod passage;
pub mod router;
pub mod stdin;
pub mod zmtp;

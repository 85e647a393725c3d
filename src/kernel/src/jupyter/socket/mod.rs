//! The sockets, a file per kind. Each is owned by one task, which alone sends and receives.

pub mod heartbeat;
pub mod iopub;
pub mod router;
pub mod stdin;

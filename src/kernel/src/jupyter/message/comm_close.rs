//! `comm_close`: a comm is closed. Iopub, in answer to a `comm_open` whose target is not there.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#tearing-down-comms>

use serde::Serialize;
use serde_json::Value;

use super::Content;

/// Ends a comm.
#[derive(Debug, Serialize)]
pub struct CommClose {
    /// The channel's name.
    pub comm_id: String,
    /// Last words.
    pub data: Value,
}

impl Content for CommClose {
    const TYPE: &'static str = "comm_close";
}

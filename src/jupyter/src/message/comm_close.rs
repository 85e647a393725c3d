//! `comm_close`: a comm is closed. Shell, from a front end; iopub, in answer to a `comm_open` whose
//! target is not there.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#tearing-down-comms>

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Content;

/// Ends a comm.
#[derive(Debug, Deserialize, Serialize)]
pub struct CommClose {
    /// The channel's name.
    pub comm_id: String,
    /// Data for the other side.
    #[serde(default)]
    pub data: Value,
}

impl Content for CommClose {
    const TYPE: &'static str = "comm_close";
}

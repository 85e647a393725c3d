//! `comm_msg`: a message over a comm. Shell, from a front end; iopub, from the kernel.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#comm-messages>

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Content;

/// One message over a comm.
#[derive(Debug, Deserialize, Serialize)]
pub struct CommMessage {
    /// The channel's name.
    pub comm_id: String,
    /// The message.
    #[serde(default)]
    pub data: Value,
}

impl Content for CommMessage {
    const TYPE: &'static str = "comm_msg";
}

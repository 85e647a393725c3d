//! `comm_info_reply`: which comms are open. Shell.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#comm-info>

use serde::Serialize;
use serde_json::Value;

use super::Content;

/// The reply to `comm_info_request`.
#[derive(Debug, Serialize)]
pub struct CommInfoReply {
    /// Always `ok`.
    pub status: &'static str,
    /// By id: their targets.
    pub comms: Value,
}

impl Content for CommInfoReply {
    const TYPE: &'static str = "comm_info_reply";
}

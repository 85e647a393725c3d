//! `history_reply`: cells that were executed. Shell.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#history>

use serde::Serialize;
use serde_json::Value;

use super::Content;

/// The reply to `history_request`.
#[derive(Debug, Serialize)]
pub struct HistoryReply {
    /// Always `ok`.
    pub status: &'static str,
    /// `[session, line, input]` or `[session, line, [input, output]]` each.
    pub history: Vec<Value>,
}

impl Content for HistoryReply {
    const TYPE: &'static str = "history_reply";
}

//! `complete_reply`: what could be written at the cursor. Shell.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#completion>

use serde::Serialize;
use serde_json::Value;

use super::Content;

/// The reply to `complete_request`.
#[derive(Debug, Serialize)]
pub struct CompleteReply {
    /// Always `ok`.
    pub status: &'static str,
    /// Texts that could stand between the two positions, best first.
    pub matches: Vec<String>,
    /// First code point that is replaced.
    pub cursor_start: usize,
    /// One past the last.
    pub cursor_end: usize,
    /// Kinds and signatures, under `_jupyter_types_experimental`.
    pub metadata: Value,
}

impl Content for CompleteReply {
    const TYPE: &'static str = "complete_reply";
}

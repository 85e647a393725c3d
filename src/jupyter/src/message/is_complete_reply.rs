//! `is_complete_reply`: whether Enter may execute the code. Shell.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#code-completeness>

use serde::Serialize;

use super::Content;

/// The reply to `is_complete_request`.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum IsCompleteReply {
    /// Execute it.
    Complete,
    /// Another line is needed.
    Incomplete {
        /// What that line should begin with.
        indent: String,
    },
    /// No further line can make it valid.
    Invalid,
}

impl Content for IsCompleteReply {
    const TYPE: &'static str = "is_complete_reply";
}

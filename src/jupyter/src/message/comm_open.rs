//! `comm_open`: a comm is opened. Shell, from a front end; iopub, from the kernel.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#opening-a-comm>

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Content;

/// Asks for a channel to a target of the kernel.
#[derive(Debug, Deserialize)]
pub struct CommOpen {
    /// The channel's name.
    pub comm_id: String,
    /// The target at the other end.
    #[serde(default)]
    pub target_name: String,
}

/// Tells front ends of a channel to a target of theirs.
#[derive(Debug, Serialize)]
pub struct CommOpened<'a> {
    /// The channel's name.
    pub comm_id: &'a str,
    /// The target at the other end.
    pub target_name: &'a str,
    /// The initial data.
    pub data: Value,
}

impl Content for CommOpened<'_> {
    const TYPE: &'static str = "comm_open";
    /// The version of the widgets' protocol; there are no other targets.
    const METADATA: &'static str = r#"{"version":"2.1.0"}"#;
}

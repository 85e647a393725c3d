//! `shutdown_reply`: the kernel ends. To the sender of the request and on iopub.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#kernel-shutdown>

use serde::Serialize;

use super::Content;

/// The reply to `shutdown_request`, and the last message on iopub.
#[derive(Debug, Serialize)]
pub struct ShutdownReply {
    /// Always `ok`.
    pub status: &'static str,
    /// As in the request.
    pub restart: bool,
}

impl Content for ShutdownReply {
    const TYPE: &'static str = "shutdown_reply";
}

//! `interrupt_reply`: the interrupt was passed on. Control.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#kernel-interrupt>

use serde::Serialize;

use super::Content;

/// The reply to `interrupt_request`, which has no content. The cell ends some time later.
#[derive(Debug, Serialize)]
pub struct InterruptReply {
    /// Always `ok`.
    pub status: &'static str,
}

impl Content for InterruptReply {
    const TYPE: &'static str = "interrupt_reply";
}

//! `debug_reply`: the answer to a `debug_request`, a response of the Debug Adapter Protocol. To the sender of the request.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#debug-request>

use serde::Serialize;
use serde_json::Value;

use super::Content;

/// The reply to `debug_request`, whose content is a request of the Debug Adapter Protocol.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct DebugReply(pub Value);

impl Content for DebugReply {
    const TYPE: &'static str = "debug_reply";
}

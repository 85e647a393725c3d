//! `debug_event`: an event of the Debug Adapter Protocol. Iopub.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#debug-event>

use serde::Serialize;
use serde_json::Value;

use super::Content;

/// An event, such as `initialized`.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct DebugEvent(pub Value);

impl Content for DebugEvent {
    const TYPE: &'static str = "debug_event";
}

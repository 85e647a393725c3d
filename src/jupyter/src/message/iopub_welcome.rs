//! `iopub_welcome`: sent to a new subscriber, which receives every later message. Iopub.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#welcome-message>

use serde::Serialize;

use super::Content;

/// Sent once for each subscription.
#[derive(Debug, Serialize)]
pub struct IopubWelcome {
    /// The topic that was subscribed to.
    pub subscription: String,
}

impl Content for IopubWelcome {
    const TYPE: &'static str = "iopub_welcome";
}

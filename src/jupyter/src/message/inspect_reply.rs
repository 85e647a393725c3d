//! `inspect_reply`: what a name is. Shell.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#introspection>

use serde::Serialize;
use stratoscope_wire::MimeBundle;

use super::Content;

/// The reply to `inspect_request`.
#[derive(Debug, Serialize)]
pub struct InspectReply {
    /// Always `ok`, also when nothing was found.
    pub status: &'static str,
    /// Whether anything is known of the name.
    pub found: bool,
    /// What is known, by MIME type.
    pub data: MimeBundle,
    /// About the representations.
    pub metadata: MimeBundle,
}

impl Content for InspectReply {
    const TYPE: &'static str = "inspect_reply";
}

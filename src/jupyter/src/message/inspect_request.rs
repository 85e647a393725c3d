//! `inspect_request`: what is this name? Shell, from a front end.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#introspection>

use serde::Deserialize;

/// A question about a name in the code.
#[derive(Debug, Deserialize)]
pub struct InspectRequest {
    /// The cell's text so far.
    pub code: String,
    /// Where the cursor is, in code points from the start.
    pub cursor_pos: usize,
    /// 0, or 1 for more.
    #[serde(default)]
    pub detail_level: u8,
}

//! `complete_request`: what could be written at the cursor? Shell, from a front end.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#completion>

use serde::Deserialize;

/// A question about code that is being written.
#[derive(Debug, Deserialize)]
pub struct CompleteRequest {
    /// The cell's text so far.
    pub code: String,
    /// Where the cursor is, in code points from the start.
    pub cursor_pos: usize,
}

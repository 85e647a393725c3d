//! `is_complete_request`: may Enter execute this? Shell, from a console.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#code-completeness>

use serde::Deserialize;

/// A question about code that is being typed.
#[derive(Debug, Deserialize)]
pub struct IsCompleteRequest {
    /// The cell's text so far.
    pub code: String,
}

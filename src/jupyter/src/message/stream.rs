//! `stream`: text of a plain stream. Iopub.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#streams-stdout-stderr-etc>

use serde::Serialize;

use super::Content;

/// Appended to what the cell wrote before.
#[derive(Debug, Serialize)]
pub struct StreamText<'a> {
    /// `stdout` or `stderr`.
    pub name: &'static str,
    /// The text, not necessarily whole lines.
    pub text: &'a str,
}

impl Content for StreamText<'_> {
    const TYPE: &'static str = "stream";
}

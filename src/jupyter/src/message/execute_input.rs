//! `execute_input`: the cell that begins to run. Iopub, to every front end.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#code-inputs>

use serde::Serialize;

use super::Content;

/// Sent before anything the cell shows; not for silent cells.
#[derive(Debug, Serialize)]
pub struct ExecuteInput<'a> {
    /// The cell's text.
    pub code: &'a str,
    /// Its number.
    pub execution_count: u64,
}

impl Content for ExecuteInput<'_> {
    const TYPE: &'static str = "execute_input";
}

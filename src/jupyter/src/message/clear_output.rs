//! `clear_output`: removes what a cell has shown. Iopub.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#clear-output>

use serde::Serialize;

use super::Content;

/// Removes the cell's outputs.
#[derive(Debug, Serialize)]
pub struct ClearOutput {
    /// Only when the next output arrives, so that nothing flickers.
    pub wait: bool,
}

impl Content for ClearOutput {
    const TYPE: &'static str = "clear_output";
}

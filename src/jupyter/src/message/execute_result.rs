//! `execute_result`: the value of a cell. Iopub, at most once a cell.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#id6>

use serde::Serialize;
use stratoscope_wire::MimeBundle;

use super::Content;

/// What the last expression of a cell is.
#[derive(Debug, Serialize)]
pub struct ExecuteResult {
    /// The cell's number.
    pub execution_count: u64,
    /// Its representations, by MIME type.
    pub data: MimeBundle,
    /// About the representations.
    pub metadata: MimeBundle,
}

impl Content for ExecuteResult {
    const TYPE: &'static str = "execute_result";
}

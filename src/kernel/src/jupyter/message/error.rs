//! `error`: why a cell failed. Iopub, exactly once for a cell that fails.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#execution-errors>

use serde::Serialize;

use super::Content;

use crate::evaluator::CellError;

/// One error of a cell; also part of its reply.
#[derive(Clone, Debug, Serialize)]
pub struct Error {
    /// The diagnostic's code, or the kind of failure.
    pub ename: String,
    /// One line that stands alone.
    pub evalue: String,
    /// ANSI text, a line each.
    pub traceback: Vec<String>,
}

impl From<CellError> for Error {
    fn from(error: CellError) -> Self {
        Self {
            ename: error.ename,
            evalue: error.evalue,
            traceback: error.traceback,
        }
    }
}

impl Content for Error {
    const TYPE: &'static str = "error";
}

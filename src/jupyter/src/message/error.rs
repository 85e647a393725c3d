//! `error`: why a cell failed. Iopub, exactly once for a cell that fails.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#execution-errors>

use serde::Serialize;

use stratoscope_render::text;

use super::{Content, MessageType};
use stratoscope_session::CellError;

/// How wide a terminal is.
const COLUMNS: usize = 100;

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

impl Error {
    /// For a request whose content is not what the protocol says.
    pub fn malformed(request: &MessageType, error: &serde_json::Error) -> Self {
        let evalue = format!("the {request} is malformed: {error}");
        Self {
            ename: "ProtocolError".to_owned(),
            traceback: vec![evalue.clone()],
            evalue,
        }
    }

    /// The error for a client that runs a notebook without a user and stops at the first error, as nbclient,
    /// nbconvert and papermill do: they print the traceback and no card. The message, which only the card has
    /// otherwise, is inserted below the first line.
    #[must_use]
    pub fn for_a_log(mut self) -> Self {
        let names_a_card = |head: &String| {
            let codes = head.split_once(": ").map(|(_, codes)| codes);
            codes.is_some_and(|codes| codes.starts_with("SC") && codes.starts_with(&self.ename))
        };
        if self.traceback.first().is_some_and(names_a_card) {
            let message = text::wrap(&self.evalue, COLUMNS);
            self.traceback.splice(1..1, message);
        }
        self
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ename: &str, traceback: &[&str], expected: &[&str]) {
        let error = Error {
            ename: ename.to_owned(),
            evalue: "no such thing".to_owned(),
            traceback: traceback.iter().map(|line| (*line).to_owned()).collect(),
        };
        assert_eq!(error.for_a_log().traceback, expected);
    }

    #[test]
    fn a_log_has_the_message_that_only_a_card_has() {
        check(
            "SC0101",
            &["Cell In[1], line 2: SC0101", "kept: `a`"],
            &["Cell In[1], line 2: SC0101", "no such thing", "kept: `a`"],
        );
        check(
            "SC0201",
            &["Cell In[1]: SC0201, SC0102"],
            &["Cell In[1]: SC0201, SC0102", "no such thing"],
        );
        let rustc = ["Cell In[1], line 2", "error[E0308]: no such thing"];
        check("E0308", &rustc, &rustc);
        check(
            "Interrupted",
            &["Cell In[1]: interrupted"],
            &["Cell In[1]: interrupted"],
        );
        check("SC0101", &[], &[]);
    }
}

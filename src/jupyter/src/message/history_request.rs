//! `history_request`: which cells were executed? Shell, from a front end.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#history>

use serde::Deserialize;

/// A question about the history; `hist_access_type` says which fields matter.
#[derive(Debug, Deserialize)]
pub struct HistoryRequest {
    /// Add the text of the results.
    #[serde(default)]
    pub output: bool,
    /// `range`, `tail` or `search`.
    pub hist_access_type: Access,
    /// `range`: which session; 0 is this one, -1 the one before.
    #[serde(default)]
    pub session: i64,
    /// `range`: the first cell.
    #[serde(default)]
    pub start: i64,
    /// `range`: one past the last cell.
    #[serde(default)]
    pub stop: Option<i64>,
    /// `tail` and `search`: how many at most.
    #[serde(default)]
    pub n: Option<usize>,
    /// `search`: text with `*` and `?`.
    #[serde(default)]
    pub pattern: Option<String>,
    /// `search`: of equal cells only the last.
    #[serde(default)]
    pub unique: bool,
}

/// How the history is asked.
#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// By number.
    Range,
    /// The last ones.
    Tail,
    /// By text.
    Search,
}

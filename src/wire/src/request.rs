//! A request to a run of training that came by a comm or a socket.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The action of a request that names no run: it lists the runs of the running cell and all actions.
pub const RUNS: &str = "runs";

/// The content of [`ToCells::Request`](crate::ToCells::Request).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// The number of the run; `None`: the only one.
    pub run: Option<u64>,
    /// How it came: `comm` or `socket`.
    pub from: String,
    /// The action.
    pub action: String,
    /// Its arguments by name, not checked yet.
    pub arguments: Map<String, Value>,
}

/// The answer to a request, as the one who asks gets it: `{"ok": true, "result": …}` or [`refusal`].
pub type RunAnswer = Value;

/// `{"ok": false, "error": {"code": …, "message": …}}`: the answer to a request that is not done.
pub fn refusal(code: &str, message: impl Into<String>) -> RunAnswer {
    serde_json::json!({"ok": false, "error": {"code": code, "message": message.into()}})
}

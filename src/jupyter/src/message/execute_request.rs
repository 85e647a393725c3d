//! `execute_request`: a cell to execute. Shell, from a front end.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#execute>

use serde::Deserialize;
use serde_json::{Map, Value};

/// One cell, and how to treat it. Absent fields have the specification's defaults.
#[derive(Clone, Debug, Deserialize)]
pub struct ExecuteRequest {
    /// The cell's text.
    pub code: String,
    /// Show nothing, number nothing, remember nothing.
    #[serde(default)]
    pub silent: bool,
    /// Number the cell and keep it in the history; a silent one never is.
    #[serde(default = "yes")]
    pub store_history: bool,
    /// Expressions to evaluate after the cell, by a name of the sender's choice.
    #[serde(default)]
    pub user_expressions: Map<String, Value>,
    /// Whether the sender can answer `input_request`.
    #[serde(default = "yes")]
    pub allow_stdin: bool,
    /// Whether an error here aborts the cells that wait behind.
    #[serde(default = "yes")]
    pub stop_on_error: bool,
}

fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_the_specification_s() {
        let request: ExecuteRequest =
            serde_json::from_str(r#"{"code": "1", "unknown": 3}"#).expect("is valid");
        assert!(!request.silent && request.store_history);
        assert!(request.allow_stdin && request.stop_on_error);
        assert!(request.user_expressions.is_empty());
        serde_json::from_str::<ExecuteRequest>(r#"{"silent": true}"#).expect_err("needs code");
    }
}

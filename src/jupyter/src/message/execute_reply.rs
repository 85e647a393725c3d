//! `execute_reply`: how a cell ended. Shell, to its sender, after everything the cell showed.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#execution-results>

use serde::Serialize;
use serde_json::Value;

use super::Content;

/// The reply to `execute_request`. The fields that do not belong to its status are absent.
#[derive(Debug, Serialize)]
pub struct ExecuteReply {
    /// `ok`, `error` or `aborted`.
    pub status: &'static str,
    /// The cell's number; none for a cell that was not executed, which a front end would show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_count: Option<u64>,
    /// Results of the user expressions; status `ok`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_expressions: Option<Value>,
    /// What to show in the pager; status `ok` or `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Vec<Value>>,
    /// What went wrong; status `error`.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub error: Option<super::Error>,
}

impl ExecuteReply {
    /// The cell ran to its end.
    pub fn ok(execution_count: u64, user_expressions: Value, payload: Vec<Value>) -> Self {
        Self {
            status: "ok",
            execution_count: Some(execution_count),
            user_expressions: Some(user_expressions),
            payload: Some(payload),
            error: None,
        }
    }

    /// The cell failed.
    pub fn error(execution_count: u64, error: super::Error, payload: Vec<Value>) -> Self {
        Self {
            status: "error",
            execution_count: Some(execution_count),
            user_expressions: None,
            payload: Some(payload),
            error: Some(error),
        }
    }

    /// The cell was not executed, since one before it failed.
    pub fn aborted() -> Self {
        Self {
            status: "aborted",
            execution_count: None,
            user_expressions: None,
            payload: None,
            error: None,
        }
    }
}

impl Content for ExecuteReply {
    const TYPE: &'static str = "execute_reply";
}

#[cfg(test)]
mod tests {
    use serde_json::{json, to_value};

    use super::*;

    #[test]
    fn only_the_fields_of_the_status_are_there() {
        let ok = to_value(ExecuteReply::ok(3, json!({}), Vec::new())).expect("serializes");
        let expected = json!({"status": "ok", "execution_count": 3,
                              "user_expressions": {}, "payload": []});
        assert_eq!(ok, expected);
        let error = super::super::Error {
            ename: "SC0101".into(),
            evalue: "no".into(),
            traceback: vec!["Cell In[4], line 1".into()],
        };
        let error = to_value(ExecuteReply::error(4, error, Vec::new())).expect("serializes");
        let expected = json!({"status": "error", "execution_count": 4, "payload": [],
            "ename": "SC0101", "evalue": "no", "traceback": ["Cell In[4], line 1"]});
        assert_eq!(error, expected);
        let aborted = to_value(ExecuteReply::aborted()).expect("serializes");
        assert_eq!(aborted, json!({"status": "aborted"}));
    }
}

//! Requests that reach a run from outside of its cells, by a comm or a socket, and their answers. Which actions there are, and
//! what they do, is in `run/requests`.

use serde_json::{Map, Value, json};
use stratoscope_diagnostics::Diagnostic;

/// A request: an action with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// How it came: `comm` or `socket`.
    pub from: String,
    /// The name of the action.
    pub action: String,
    /// Its arguments by name.
    pub arguments: Map<String, Value>,
}

/// Longer requests are cut in the history, in characters.
const MAX_SHOWN: usize = 200;

impl Request {
    /// The action with its arguments, for the history: `set_learning_rate {"rate":1e-5}`.
    pub fn in_words(&self) -> String {
        let arguments = match self.arguments.is_empty() {
            true => String::new(),
            false => format!(" {}", Value::Object(self.arguments.clone())),
        };
        let all = format!("{}{arguments}", self.action);
        let cut: String = all.chars().take(MAX_SHOWN).collect();
        match cut.len() < all.len() {
            true => cut + "…",
            false => cut,
        }
    }
}

/// The answer to a [`Request`].
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// What was done or asked for, or why not.
    pub outcome: Result<Value, Refusal>,
}

/// Why a request was not done: nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The code of a diagnostic, such as `SC0103`, or `unknown_action`, `bad_argument`, `not_now`.
    pub code: String,
    /// One line.
    pub message: String,
}

impl Refusal {
    /// With a code and one line.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
        }
    }
}

impl From<Box<Diagnostic>> for Refusal {
    fn from(problem: Box<Diagnostic>) -> Self {
        let why = problem.why.first();
        let why = why.map_or(String::new(), |why| format!(": {why}"));
        Self {
            code: problem.code,
            message: format!("{}{why}", problem.message),
        }
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        Self {
            outcome: Err(refusal),
        }
    }
}

impl Answer {
    /// `{"ok": true, "result": …}` or `{"ok": false, "error": {"code": …, "message": …}}`
    pub fn to_json(&self) -> Value {
        match &self.outcome {
            Ok(result) => json!({"ok": true, "result": result}),
            Err(Refusal { code, message }) => {
                json!({"ok": false, "error": {"code": code, "message": message}})
            }
        }
    }
}

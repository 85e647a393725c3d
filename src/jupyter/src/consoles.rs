//! Consoles: front ends in a terminal, which print a display when it comes and ignore its updates. For their cells the last
//! state of each display is shown once more when the cell has ended, so that the table of a run is seen with its rows.
//!
//! No message names the front end. A console asks for the history when it starts, asks whether a text is complete before it
//! executes it, and can answer questions of a cell; programs that execute notebooks do none of this. The consoles of JupyterLab
//! do, but have no user name in their headers, and show updates.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

/// Sessions beyond this are not remembered: their updates stay updates.
const MAX_SESSIONS: usize = 1000;

/// The sessions of consoles; clones share them.
#[derive(Clone, Default)]
pub struct Consoles(Arc<Mutex<HashSet<String>>>);

impl Consoles {
    /// The sender of this header has asked what consoles ask.
    pub fn note(&self, header: &Value) {
        let mut sessions = self.0.lock();
        if let Some(session) = session_in_a_terminal(header)
            && sessions.len() < MAX_SESSIONS
        {
            sessions.insert(session.to_owned());
        }
    }

    /// Whether the sender of this header is one.
    pub fn has(&self, header: &Value) -> bool {
        session_in_a_terminal(header).is_some_and(|session| self.0.lock().contains(session))
    }
}

fn session_in_a_terminal(header: &Value) -> Option<&str> {
    let text = |field| header.get(field).and_then(Value::as_str);
    text("username").filter(|name| !name.is_empty())?;
    text("session")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_console_is_known_by_its_question() {
        let consoles = Consoles::default();
        let terminal = json!({"session": "a", "username": "ada"});
        let lab = json!({"session": "b", "username": ""});
        assert!(!consoles.has(&terminal));
        consoles.note(&terminal);
        consoles.note(&lab);
        assert!(consoles.has(&terminal));
        assert!(!consoles.has(&lab));
        assert!(!consoles.has(&json!({"session": "c", "username": "ada"})));
    }
}

//! Skips evcxr's second compile of a cell with an error. evcxr compiles such a cell again outside of the closure that
//! catches panics, because that closure changes the text of some errors. Most errors have the same text in both. evcxr
//! shows the errors of the first compile when the second one reports none, so our cargo reports none.

use std::path::Path;

use serde::Deserialize;

use super::evcxr_contract::CATCH;
use super::state::State;

/// Errors of names and types, whose text does not depend on the surrounding code.
const PLAIN: [&str; 23] = [
    "E0023", "E0026", "E0027", "E0040", "E0061", "E0063", "E0107", "E0308", "E0369", "E0405",
    "E0412", "E0422", "E0423", "E0425", "E0432", "E0433", "E0531", "E0532", "E0560", "E0599",
    "E0604", "E0608", "E0609",
];

/// Whether an error of this kind has the same text in any surrounding code.
pub fn is_same_anywhere(code: &str) -> bool {
    // What a `?` cannot convert, it cannot convert in any closure.
    PLAIN.contains(&code) || code == "E0277"
}

/// Notes that the cell was refused, if evcxr's retry would get the same errors.
pub fn note_refusal(home: &Path, messages: &str) {
    if gets_the_same(messages) {
        // Without the note the cell is compiled twice.
        let _ = State::update(home, |state| state.retry_is_useless = true);
    }
}

/// Whether this is the retry of a cell whose refusal was noted. A note holds for the next compile alone.
pub fn is_useless(home: &Path, source: &str) -> bool {
    if !State::read(home).retry_is_useless {
        return false;
    }
    let taken = State::update(home, |state| std::mem::take(&mut state.retry_is_useless));
    taken.unwrap_or(false) && !source.contains(CATCH)
}

#[derive(Deserialize)]
struct Message {
    level: String,
    message: String,
    code: Option<Code>,
    rendered: Option<String>,
}

#[derive(Deserialize)]
struct Code {
    code: String,
}

fn gets_the_same(messages: &str) -> bool {
    let messages: Result<Vec<Message>, _> = messages.lines().map(serde_json::from_str).collect();
    messages.is_ok_and(|messages| {
        let mut errors = messages.iter().filter(|it| it.level == "error").peekable();
        errors.peek().is_some() && errors.all(is_plain)
    })
}

fn is_plain(error: &Message) -> bool {
    let is_summary = error.message.starts_with("aborting due to");
    let code = error.code.as_ref().map(|code| code.code.as_str());
    let text = error.rendered.as_deref().unwrap_or(&error.message);
    is_summary || (code.is_some_and(|code| PLAIN.contains(&code)) && !text.contains("closure"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: &str, rendered: &str) -> String {
        let code = serde_json::json!({ "code": code, "explanation": null });
        let message = serde_json::json!({
            "level": "error", "message": "", "code": code, "rendered": rendered, "spans": [],
        });
        message.to_string() + "\n"
    }

    #[test]
    fn errors_that_a_closure_does_not_change_are_compiled_once() {
        let summary = r#"{"level":"error","message":"aborting due to 1 previous error","code":null,"rendered":"error: aborting"}"#;
        let warning = r#"{"level":"warning","message":"unused","code":null,"rendered":null}"#;
        let mismatch = error("E0308", "mismatched types");
        for (messages, expected) in [
            (mismatch.clone(), true),
            (format!("{mismatch}{warning}\n{summary}\n"), true),
            (mismatch.clone() + &error("E0425", "no such name"), true),
            (error("E0308", "expected closure, found integer"), false),
            (mismatch + &error("E0596", "cannot borrow"), false),
            (format!("{warning}\n"), false),
            ("not JSON\n".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(gets_the_same(&messages), expected, "{messages}");
        }
    }

    #[test]
    fn a_note_holds_for_the_next_compile_alone() {
        let home = tempfile::tempdir().expect("a folder");
        let (first, second) = (CATCH.to_owned(), "the cell alone");
        assert!(!is_useless(home.path(), second));
        note_refusal(home.path(), &error("E0425", "no such name"));
        assert!(!is_useless(home.path(), &first));
        assert!(!is_useless(home.path(), second));
        note_refusal(home.path(), &error("E0425", "no such name"));
        assert!(is_useless(home.path(), second));
        assert!(!is_useless(home.path(), second));
    }
}

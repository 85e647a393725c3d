//! The outcome that a cell's tags expect. `raises-exception`, which nbconvert and nbclient also know, allows any error.
//! `expect:SC0101`, a tag of this project, requires this error: a cell that shows a mistake and fails for another reason,
//! or no longer fails, is a failure.

use super::file::Notebook;
use stratoscope_session::CellError;

/// The tag of nbconvert.
const ANY: &str = "raises-exception";
/// The prefix of a tag with a code.
const CODE: &str = "expect:";

/// The expected outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The cell succeeds.
    Success,
    /// It may fail or not.
    Anything,
    /// One of these errors, by the names that Jupyter gives them.
    Errors(Vec<String>),
}

/// Whether the outcome was the expected one, with the outcome in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As expected.
    Fine(String),
    /// Otherwise.
    Wrong(String),
}

impl Expected {
    /// Reads the tags of a cell.
    pub fn of(notebook: &Notebook, index: usize) -> Self {
        let tags = notebook.tags(index);
        let code = |tag: &&str| tag.strip_prefix(CODE).map(|it| it.trim().to_owned());
        let errors: Vec<String> = tags.iter().filter_map(code).collect();
        match errors.is_empty() {
            false => Self::Errors(errors),
            true if tags.contains(&ANY) => Self::Anything,
            true => Self::Success,
        }
    }

    /// Judges how the cell ended.
    pub fn judge(&self, error: Option<&CellError>) -> Verdict {
        let said = error.map_or_else(
            || "ok".to_owned(),
            |error| format!("{}: {}", error.ename, error.evalue),
        );
        match (self, error) {
            (Self::Success | Self::Anything, None) => Verdict::Fine(said),
            (Self::Success, Some(_)) => Verdict::Wrong(said),
            (Self::Anything, Some(_)) => Verdict::Fine(format!("{said} (expected)")),
            (Self::Errors(codes), Some(error)) if codes.contains(&error.ename) => {
                Verdict::Fine(format!("{said} (expected)"))
            }
            (Self::Errors(codes), _) => {
                let codes = codes.join(" or ");
                Verdict::Wrong(format!("{said}, but {codes} was expected"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_expected_by_its_code() {
        let error = |ename: &str| CellError {
            ename: ename.to_owned(),
            evalue: "why".to_owned(),
            traceback: Vec::new(),
        };
        let check = |tags: &[&str], ename: Option<&str>, expected: Verdict| {
            let cell = serde_json::json!({"source": "", "metadata": {"tags": tags}});
            let text = serde_json::json!({"nbformat": 4, "cells": [cell]}).to_string();
            let notebook = Notebook::parse(&text).expect("is a notebook");
            let error = ename.map(error);
            let verdict = Expected::of(&notebook, 0).judge(error.as_ref());
            assert_eq!(verdict, expected, "{tags:?} {ename:?}");
        };
        let fine = |text: &str| Verdict::Fine(text.to_owned());
        let wrong = |text: &str| Verdict::Wrong(text.to_owned());
        let (any, code) = ("raises-exception", "expect:SC0101");
        check(&[], None, fine("ok"));
        check(&["other"], Some("E0308"), wrong("E0308: why"));
        check(&[any], None, fine("ok"));
        check(&[any], Some("E0308"), fine("E0308: why (expected)"));
        check(&[any, code], Some("SC0101"), fine("SC0101: why (expected)"));
        check(&[code], Some("SC0101"), fine("SC0101: why (expected)"));
        check(
            &[any, code],
            Some("E0308"),
            wrong("E0308: why, but SC0101 was expected"),
        );
        check(&[any, code], None, wrong("ok, but SC0101 was expected"));
        check(
            &[code, "expect:SC0102"],
            None,
            wrong("ok, but SC0101 or SC0102 was expected"),
        );
        check(
            &[code, "expect: E1 "],
            Some("E1"),
            fine("E1: why (expected)"),
        );
    }
}

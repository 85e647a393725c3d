//! Calls of a student's function: its panic is caught, and what it returns is judged.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use crate::verdict::{State, Verdict};

/// Called after a panic was caught, so that a panic hook that has noted it can forget it.
static AFTER_PANIC: OnceLock<fn()> = OnceLock::new();

/// Sets what is called after a caught panic; the first call counts.
pub fn on_caught_panic(forget: fn()) {
    let _ = AFTER_PANIC.set(forget);
}

/// Why an exercise is not right.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// It still has its `todo!()`.
    Open,
    /// It panicked.
    Panicked {
        /// The call, with its inputs.
        call: String,
        /// The message.
        message: String,
    },
    /// It returned an error.
    Failed {
        /// The call.
        call: String,
        /// The message of the error.
        message: String,
    },
    /// It returned something else than the true result.
    Wrong {
        /// The call, with its inputs.
        call: String,
        /// What it returned.
        got: String,
        /// The property that the true result has and this one has not.
        violated: String,
        /// What to look at; empty where the property says enough.
        look_at: String,
    },
}

impl Fault {
    /// A result that lacks a property.
    pub fn wrong(
        call: impl Into<String>,
        got: impl Display,
        violated: impl Into<String>,
        look_at: impl Into<String>,
    ) -> Self {
        Self::Wrong {
            call: call.into(),
            got: got.to_string(),
            violated: violated.into(),
            look_at: look_at.into(),
        }
    }
}

/// Calls a student's code; `call` says how, for the card.
///
/// # Errors
/// A fault if it panics.
pub fn attempt<T>(call: impl Into<String>, code: impl FnOnce() -> T) -> Result<T, Fault> {
    let payload = match catch_unwind(AssertUnwindSafe(code)) {
        Ok(value) => return Ok(value),
        Err(payload) => payload,
    };
    if let Some(forget) = AFTER_PANIC.get() {
        forget();
    }
    let message = match (
        payload.downcast_ref::<&str>(),
        payload.downcast_ref::<String>(),
    ) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "a panic whose message is not a text".to_owned(),
    };
    if message.starts_with("not yet implemented") || message.starts_with("not implemented") {
        return Err(Fault::Open);
    }
    Err(Fault::Panicked {
        call: call.into(),
        message,
    })
}

/// The verdict of a check. `name` is what the student fills in, `check` returns what was tried.
pub fn judged(
    exercise: &str,
    name: &str,
    check: impl FnOnce() -> Result<String, Fault>,
) -> Verdict {
    let (state, lines) = match check() {
        Ok(tried) => (State::Right, vec![("tried", tried)]),
        Err(Fault::Open) => {
            let what = format!(
                "`{name}` ends in `todo!()`. Write its body, execute its cell, then this one again."
            );
            (State::Open, vec![("to do", what)])
        }
        Err(Fault::Panicked { call, message }) => {
            let lines = vec![
                ("call", format!("`{call}`")),
                ("panicked", message),
                ("look at", "the first index, division or `unwrap` that these inputs reach. `dbg!(…)` prints a value on the way.".to_owned()),
            ];
            (State::Wrong, lines)
        }
        Err(Fault::Failed { call, message }) => {
            let lines = vec![("call", format!("`{call}`")), ("error", message)];
            (State::Wrong, lines)
        }
        Err(Fault::Wrong {
            call,
            got,
            violated,
            look_at,
        }) => {
            let mut lines = vec![
                ("call", format!("`{call}`")),
                ("got", got),
                ("violated", violated),
            ];
            if !look_at.is_empty() {
                lines.push(("look at", look_at));
            }
            (State::Wrong, lines)
        }
    };
    Verdict::new(exercise, state, lines)
}

/// Whether two numbers agree up to rounding.
pub(crate) fn close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-6 * one.abs().max(other.abs()).max(1.0)
}

/// A number with four digits after the point.
pub(crate) fn show(value: f64) -> String {
    format!("{value:.4}")
}

/// Numbers as a list.
pub(crate) fn list(values: &[f64]) -> String {
    let shown: Vec<String> = values.iter().map(|value| show(*value)).collect();
    format!("[{}]", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_todo_is_an_open_exercise_and_other_panics_are_shown() {
        let open = |message: Option<&str>| {
            attempt("f()", || match message {
                Some(message) => todo!("{message}"),
                None => todo!(),
            })
        };
        let found: Result<f64, Fault> = open(None);
        assert_eq!(found, Err(Fault::Open));
        let found: Result<f64, Fault> = open(Some("the gradient"));
        assert_eq!(found, Err(Fault::Open));
        let empty: Vec<f64> = Vec::new();
        let verdict = judged("1.2", "f", || {
            attempt("f([])", || empty[empty.len()]).map(|it| it.to_string())
        });
        assert_eq!(verdict.state, State::Wrong);
        let plain = verdict.words();
        assert!(
            plain.contains("f([])") && plain.contains("index out of bounds"),
            "{plain}"
        );
    }
}

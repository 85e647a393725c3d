//! Cells of Python: a card with the mistakes that our rules know and the same program as a cell of the notebook, which is put
//! below as the next cell.
//!
//! A cell that is Rust but for a spelling keeps its card with the edit (SC0127), and a cell of a few words that could be
//! either is left to rustc.

use std::panic::{AssertUnwindSafe, catch_unwind};

use stratoscope_cell_text::ParsedCell;
use stratoscope_diagnostics::check::{CellContext, check_cell, is_rust};
use stratoscope_diagnostics::{Diagnostic, Severity};
use stratoscope_python::{Answer, Known};
use stratoscope_session::{CellOutcome, DiagnosticSettings};

use super::relay::Current;
use super::show;

/// Answers a cell if it is Python.
pub(crate) fn answer(
    text: &str,
    known: CellContext,
    settings: &mut DiagnosticSettings,
    current: &Current,
) -> Option<CellOutcome> {
    let answer = python(text, known)?;
    let is_below = answer.has_cell() && current.outputs.next_input(&answer.cell());
    let answer = if is_below { answer.as_note() } else { answer };
    let mut shown: Vec<Diagnostic> = Vec::new();
    for (index, found) in answer.diagnostics.into_iter().enumerate() {
        // What the whole card is about is shown whatever the policy says.
        let found = match index {
            0 => Some(found),
            _ => settings.judged(found, None),
        };
        shown.extend(found.map(|found| show::diagnostic(found, None, current)));
    }
    if is_below {
        return Some(CellOutcome::Ok);
    }
    shown.truncate(1);
    Some(CellOutcome::Error(show::error_of(
        &shown,
        &current.code,
        current.number,
    )))
}

/// Whether a cell as typed is Python that is answered, whatever the notebook has.
pub(crate) fn is_python(code: &str) -> bool {
    let parsed = ParsedCell::of(code);
    parsed.too_deep().is_none() && python(&parsed.rust(), CellContext::default()).is_some()
}

/// The answer to a cell that is Python and no Rust.
fn python(text: &str, known: CellContext) -> Option<Answer> {
    /// The code of a cell that the checks take for Python.
    const PYTHON: &str = "SC1013";
    /// The code of a cell that is Rust but for a spelling.
    const SPELLING: &str = "SC0127";
    /// What the checks say of a cell that ends early.
    const UNFINISHED: &str = "SC1012";
    if !may_be(text) || is_rust(text) {
        return None;
    }
    let found = check_cell(text, &known);
    let is_known = found.iter().any(|found| found.code == PYTHON);
    let errors = found
        .iter()
        .filter(|found| found.severity == Severity::Error);
    let is_open = errors.clone().all(|found| found.code == UNFINISHED);
    let is_spelled = found.iter().any(|found| found.code == SPELLING);
    let binds = is_spelled && binds_without_let(text);
    if !is_known && !is_open && !binds {
        return None;
    }
    let known = Known {
        variables: known.variables,
    };
    // A cell is no reason to lose the variables, whatever the translation meets in it.
    let translated = || stratoscope_python::answer(text, &known);
    let answer = catch_unwind(AssertUnwindSafe(translated)).unwrap_or_default()?;
    let is_python = answer.translation.is_keras || answer.translation.is_torch;
    (is_known || is_python).then_some(answer)
}

/// `model = Sequential([…])  # hidden`: correct spelling alone would not make it Rust. Whether there is a `model` already
/// does not matter: cells are run again.
fn binds_without_let(text: &str) -> bool {
    text.lines().any(|line| {
        line.split_once(" = ").is_some_and(|(name, _)| {
            let is_name = name.chars().all(|it| it.is_alphanumeric() || it == '_');
            is_name && !name.is_empty()
        })
    })
}

/// A cheap look: Rust has words and signs that Python has not.
fn may_be(text: &str) -> bool {
    let is_rust = |line: &str| {
        let line = line.trim();
        line.starts_with("let ")
            || line.starts_with("fn ")
            || line.starts_with("use ")
            || line.ends_with(';')
    };
    !text.lines().any(is_rust)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_is_distinguished_from_broken_rust() {
        for (text, expected) in [
            (
                "import tensorflow as tf\nmodel = tf.keras.Sequential()",
                true,
            ),
            (
                "strategy = tf.distribute.MirroredStrategy()\nmodel = build()",
                true,
            ),
            (
                "model.compile(optimizer=\"adam\", loss=\"mse\")\nmodel.fit(train)",
                true,
            ),
            ("for i in range(3):\n    print(i)", true),
            ("import torch", true),
            (
                "model = Sequential([\n    Dense(10, activation=\"relu\"),  # hidden\n    Dense(2),\n])",
                true,
            ),
            ("let x = 1;", false),
            ("x = 5", false),
            ("let a = 1\nlet b = 2;", false),
            ("n +", false),
            ("f(1)\ng(2)", false),
            ("let name = 'x y';", false),
            ("model.compile(optimizer='adam', loss='mse')", false),
        ] {
            assert_eq!(
                python(text, CellContext::default()).is_some(),
                expected,
                "{text}"
            );
        }
    }
}

//! Cells of Python: a card with the mistakes that our rules know and the same program as a cell of the notebook, which is put
//! below as the next cell.
//!
//! A text can be Python and Rust, or neither by a slip: what counts is in [`python`]. A cell that is Rust but for a spelling
//! keeps its card with the edit (SC0127), and one that only lacks a `;` is left to the checks.

use std::panic::{AssertUnwindSafe, catch_unwind};

use stratoscope_cell_syntax::CellSyntax;
use stratoscope_diagnostics::Diagnostic;
use stratoscope_diagnostics::check::{CellContext, check_cell, is_no_code, is_rust};
use stratoscope_python::{Answer, Known, Reading, Sign};
use stratoscope_session::{CellOutcome, DiagnosticSettings};

use super::relay::Current;
use super::show;

/// Answers a cell if it is Python.
pub(crate) fn answer(
    known: CellContext,
    settings: &mut DiagnosticSettings,
    current: &Current,
) -> Option<CellOutcome> {
    let answer = python(&current.cell, &known)?;
    let is_nothing = answer.is_nothing();
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
    if is_below || is_nothing {
        return Some(CellOutcome::Ok);
    }
    shown.truncate(1);
    Some(CellOutcome::Error(show::error_of(
        &shown,
        current.code(),
        current.number,
    )))
}

/// Whether a cell is Python that is answered, whatever the notebook has.
pub(crate) fn is_python(cell: &CellSyntax) -> bool {
    python(cell, &CellContext::default()).is_some()
}

/// Whether a cell is Python that only imports, and sets up libraries of Python.
pub(crate) fn has_nothing_to_do(cell: &CellSyntax, context: &CellContext) -> bool {
    python(cell, context).is_some_and(|answer| answer.is_nothing())
}

/// The answer to a cell that is Python: it parses as Python, and it is no Rust or says what no Rust says.
fn python(cell: &CellSyntax, context: &CellContext) -> Option<Answer> {
    let text = &**cell.text();
    if !may_be(text) || is_no_code(cell) {
        return None;
    }
    let known = Known {
        variables: context.variables.clone(),
    };
    // A cell is no reason to lose the variables, whatever the translation meets in it.
    let reading = catch_unwind(|| stratoscope_python::reading(text, &known)).unwrap_or_default()?;
    // Of a long text, the checks know only whether its brackets match.
    let is_rust = || !reading.has_operators && is_rust(cell);
    let is_python = match reading.sign {
        _ if context.uses_a_variable(text) && is_slip(cell, &reading, context) => false,
        Sign::Syntax => true,
        // `plt.show();`, as Rust writes it, is an unknown name of Rust, whose card has the name that is here.
        Sign::Library => !(text.trim_end().ends_with(';') && is_rust()),
        Sign::Words => !is_rust(),
        Sign::Spelling => !is_rust() && !is_slip(cell, &reading, context),
    };
    if !is_python {
        return None;
    }
    let translated = || stratoscope_python::answer(text, &known);
    catch_unwind(AssertUnwindSafe(translated)).unwrap_or_default()
}

/// A cell of Rust with a slip: a spelling of Python, or a `;` that is missing. Its own card has the edit.
fn is_slip(cell: &CellSyntax, reading: &Reading, context: &CellContext) -> bool {
    /// The code of a cell that is Rust but for a spelling.
    const SPELLING: &str = "SC0127";
    let mut ended = cell.text().to_string();
    for end in reading.ends.iter().rev() {
        ended.insert(*end, ';');
    }
    let found = check_cell(cell, context);
    is_rust(&ended) || found.iter().any(|found| found.code == SPELLING)
}

/// A cheap look: Rust has words that Python has not.
fn may_be(text: &str) -> bool {
    let is_rust = |line: &str| {
        let line = line.trim_start();
        ["let ", "fn ", "use ", "pub ", "//"]
            .iter()
            .any(|start| line.starts_with(start))
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
            ("history.plot()\nmodel.summary()", false),
            ("model.summary() # look", false),
            ("let name = 'x y';", false),
            ("fit!(model, train, epochs = 3)?", false),
            ("println!(\"{x}\");", false),
            ("model.fit(train, epochs = 3)", false),
            ("scores.push(3)\nscores.len()", false),
            ("2 ** 10", false),
            ("print(\"hello\")", false),
            ("model.compile(optimizer='adam', loss='mse')", true),
            (
                "model.compile(optimizer=\"sgd\", loss=\"mse\"); model.fit(x, y)\nprint(1)",
                true,
            ),
            (
                "train_ds = tf.data.Dataset.from_tensor_slices((dict(train_encodings), train_labels)).shuffle(1000).batch(16)",
                true,
            ),
            ("tf.keras.utils.plot_model(model)", true),
            (
                "preds = model.predict(tokenizer([\"a\"], padding=True))\nprint(np.argmax(preds.logits, axis=1))",
                true,
            ),
            ("[len(t) for t in texts]", true),
            (
                "train_df, val_df = train_test_split(df, test_size=0.2)",
                true,
            ),
            ("plt.show()", true),
            ("plt.show();", false),
            ("{ x + 1 }", false),
            ("*x", false),
            ("x: i32 = 5;", false),
            ("a, b = b, a", true),
            ("df = pd.read_csv(\"a.csv\")", true),
            ("x = [1, 2]\ny = 3", true),
            ("x[1:3]", true),
            ("import numpy as np", true),
        ] {
            assert_eq!(
                python(&text.into(), &CellContext::default()).is_some(),
                expected,
                "{text}"
            );
        }
        let context = CellContext::with_variables([("x", "Dataset")]);
        assert!(python(&"x[1:3]".into(), &context).is_none());
        assert!(python(&"a = [y.text for y in x]".into(), &context).is_none());
        assert!(python(&"[y for y in z]".into(), &context).is_some());
    }
}

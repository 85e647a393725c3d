//! SC1014 `question-mark-without-result`.

use crate::{Diagnostic, Fix, Place, Rule, RulePage, Severity, Stage};

/// A `?` or a `scope!` in a function that returns no `Result`.
#[derive(Clone, Debug)]
pub struct QuestionMarkWithoutResult {
    /// The function.
    pub function: String,
    /// What it returns; nothing for `()`.
    pub returns: Option<String>,
    /// What hands an error on: `?`, `scope!`.
    pub what: String,
    /// Where that stands.
    pub place: Place,
    /// The function's name.
    pub function_place: Place,
    /// Its signature, changed.
    pub fix: Fix,
}

impl Rule for QuestionMarkWithoutResult {
    const PAGE: RulePage = RulePage {
        code: "SC1014",
        name: "question-mark-without-result",
        severity: Severity::Error,
        stage: Stage::Start,
        finds: "A `?`, or a `scope!`, in a function that does not return a `Result`.",
        why: "`?` returns the error from its function, so the function must return a `Result`. A cell can return \
              errors; a function declares it in its signature.",
        bad: "fn rows() -> usize {\n    let data = Dataset::from_arrays([[1.0, 2.0]], [1.0])?;\n    data.len()\n}",
        good: "fn rows() -> Result<usize, Box<dyn std::error::Error>> {\n    \
               let data = Dataset::from_arrays([[1.0, 2.0]], [1.0])?;\n    Ok(data.len())\n}",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let returns = match &self.returns {
            Some(kind) => format!("it returns `{kind}`"),
            None => "it returns nothing".to_owned(),
        };
        let hands_on = match self.what.as_str() {
            "?" => "`?` returns the error from the function",
            _ => "entering a scope can fail, and `scope!` then returns the error from the function",
        };
        let mut diagnostic = Self::start(format!(
            "`{}` needs a function that returns a `Result`; `{}` does not",
            self.what, self.function
        ))
        .label(self.place.clone(), "returns an error")
        .label(self.function_place.clone(), returns)
        .why(hands_on);
        diagnostic.fixes.push(self.fix.clone());
        diagnostic
    }
}

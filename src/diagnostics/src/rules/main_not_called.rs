//! SC1016 `main-not-called`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A cell that defines `main` and does not call it.
#[derive(Clone, Debug)]
pub struct MainNotCalled {
    /// The function's name.
    pub place: Place,
    /// The call that is missing.
    pub call: String,
    /// The end of the cell.
    pub end: Place,
}

impl Rule for MainNotCalled {
    const PAGE: RulePage = RulePage {
        code: "SC1016",
        name: "main-not-called",
        severity: Severity::Note,
        stage: Stage::Text,
        finds: "A cell that defines a function `main` and does not call it.",
        why: "A program starts at `main`; a cell runs its statements from the top, and a function runs when it is called.",
        bad: "fn main() { println!(\"hello\"); }",
        good: "println!(\"hello\");",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        Self::start("`main` is defined but not called, so its code has not run")
            .label(self.place.clone(), "a function like any other")
            .why("a cell runs its statements from the top and needs no `main`")
            .fix_edit(
                format!("call it at the end: `{}`", self.call),
                self.end.clone(),
                format!("\n{}", self.call),
            )
    }
}

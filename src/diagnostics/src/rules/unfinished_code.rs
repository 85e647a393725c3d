//! SC1012 `unfinished-code`.

use crate::{Diagnostic, Fix, Place, Rule, RulePage, Severity, Stage};

/// A bracket, a text or a statement without its end.
#[derive(Clone, Debug)]
pub struct UnfinishedCode {
    /// What is wrong, in one line.
    pub message: String,
    /// Where, and a few words beside it; the first one primary.
    pub labels: Vec<(Place, String)>,
    /// What to do, where that can be said.
    pub fix: Option<Fix>,
}

impl Rule for UnfinishedCode {
    const PAGE: RulePage = RulePage {
        code: "SC1012",
        name: "unfinished-code",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "A bracket or a string that is not closed, a closing bracket without an opening one, or a cell \
                that ends in the middle of a statement.",
        why: "rustc would read past the end of the cell and report an error in code that the kernel generated.",
        bad: "let numbers = vec![1, 2, 3;",
        good: "let numbers = vec![1, 2, 3];",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let mut diagnostic = Self::start(self.message.clone());
        for (place, text) in &self.labels {
            diagnostic = diagnostic.label(place.clone(), text.clone());
        }
        diagnostic.fixes.extend(self.fix.clone());
        diagnostic
    }
}

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
        finds: "A bracket or a text that is never closed, a bracket that closes nothing, or a cell that ends in \
                the middle of a statement.",
        why: "rustc would read on past the end of the cell, and speak of what the kernel has put there.",
        bad: "let numbers = vec![1, 2, 3;",
        good: "let numbers = vec![1, 2, 3];",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let mut told = Self::start(self.message.clone());
        for (place, text) in &self.labels {
            told = told.label(place.clone(), text.clone());
        }
        told.fixes.extend(self.fix.clone());
        told
    }
}

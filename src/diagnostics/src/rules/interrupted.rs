//! SC0520 `interrupted`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// Work that was stopped before it had a result.
#[derive(Clone, Debug)]
pub struct Interrupted {
    /// What it was: `tokenizing`, `predict`.
    pub work: String,
    /// How far it was: `3 200 of 400 000 texts`.
    pub reached: String,
}

impl Rule for Interrupted {
    const PAGE: RulePage = RulePage {
        code: "SC0520",
        name: "interrupted",
        severity: Severity::Error,
        stage: Stage::Training,
        finds: "The interrupt button, or Ctrl-C, while `predict`, `evaluate!`, a download or another call that \
                returns one whole result was at work.",
        why: "Half a result would be taken for a whole one, so there is none. All variables are what they were \
              before the call. `fit!` is different: it returns what it has measured, and `resume = true` goes on.",
        bad: "let answers = model.predict(train)?; // interrupted",
        good: "let answers = model.predict(train.take(100))?;",
        tensorflow: tensorflow::page("SC0520"),
    };

    const NOT_RUN: Option<&'static str> = Some("it takes somebody who presses the button");

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!(
            "{} was interrupted after {}",
            self.work, self.reached
        ))
        .why("there is no result; all variables are what they were before the call")
    }
}

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
        finds: "The interrupt button, or Ctrl-C, during `predict`, `evaluate!`, a download or another call that \
                returns one complete result.",
        why: "A partial result could be mistaken for a complete one, so none is returned. All variables keep \
              their values from before the call. `fit!` is different: it returns the history so far, and `resume \
              = true` continues.",
        bad: "let answers = model.predict(train)?; // interrupted",
        good: "let answers = model.predict(train.take(100))?;",
        tensorflow: tensorflow::page("SC0520"),
    };

    const NOT_RUN: Option<&'static str> = Some("it needs somebody who presses the button");

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!(
            "{} was interrupted after {}",
            self.work, self.reached
        ))
        .why("there is no result; all variables keep their values from before the call")
    }
}

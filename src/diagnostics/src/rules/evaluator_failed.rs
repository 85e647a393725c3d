//! SC0900 `evaluator-failed`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// What executes cells panicked while it started: our bug.
#[derive(Clone, Debug)]
pub struct EvaluatorFailed {
    /// The panic's message.
    pub reason: String,
}

impl Rule for EvaluatorFailed {
    const PAGE: RulePage = RulePage {
        code: "SC0900",
        name: "evaluator-failed",
        severity: Severity::Error,
        stage: Stage::Start,
        finds: "A panic in the part of the kernel that executes cells, while it starts.",
        why: "This is a bug of stratoscope, not of a cell. No cell runs; magics such as `%explain` still work.",
        bad: "1 + 1 // any cell",
        good: "1 + 1 // after the kernel was started again",
        tensorflow: tensorflow::page("SC0900"),
    };

    const NOT_RUN: Option<&'static str> = Some("it needs a bug in the kernel");

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!("the evaluator did not start: {}", self.reason))
            .why("this is a bug of stratoscope, not of the cell; the next cell starts the evaluator again")
            .fix("run `stratoscope doctor`, which reports what is missing")
    }
}

//! SC0115 `unknown-evaluate-argument`.

use super::UnknownArgument;
use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage, arguments};

/// An argument of `evaluate!` whose name is not in the table of arguments.
#[derive(Clone, Debug)]
pub struct UnknownEvaluateArgument(pub UnknownArgument);

impl Rule for UnknownEvaluateArgument {
    const PAGE: RulePage = RulePage {
        code: "SC0115",
        name: "unknown-evaluate-argument",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "An argument of `evaluate!` whose name is not in the table of its arguments.",
        why: "If it were ignored, the default would stay in effect, and the result would not be the requested one.",
        bad: "evaluate!(model, dev, batchsize = 64)?;",
        good: "evaluate!(model, dev, batch_size = 64)?;",
        tensorflow: tensorflow::page("SC0115"),
    };

    const TOLERATES: &'static [&'static str] = &["SC0510"];

    fn diagnostic(&self) -> Diagnostic {
        let diagnostic = Self::start(format!("`evaluate!` has no argument `{}`", self.0.given));
        self.0.describe(diagnostic, "evaluate", arguments::EVALUATE)
    }
}

//! SC0114 `unknown-fit-argument`.

use super::UnknownArgument;
use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage, arguments};

/// An argument of `fit!` whose name is not in the table of arguments.
#[derive(Clone, Debug)]
pub struct UnknownFitArgument(pub UnknownArgument);

impl Rule for UnknownFitArgument {
    const PAGE: RulePage = RulePage {
        code: "SC0114",
        name: "unknown-fit-argument",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "An argument of `fit!` whose name is not in the table of its arguments, or which belongs \
                to `compile!` or to the optimizer.",
        why: "If it were ignored, the default would stay in effect: `epoch = 3` would train one epoch.",
        bad: "fit!(model, train, epoch = 3)?;",
        good: "fit!(model, train, epochs = 3)?;",
        tensorflow: tensorflow::page("SC0114"),
    };

    fn diagnostic(&self) -> Diagnostic {
        self.of_call("fit")
    }
}

impl UnknownFitArgument {
    /// The same for `start`, which has the arguments of `fit`.
    pub fn of_call(&self, call: &str) -> Diagnostic {
        let diagnostic = Self::start(format!("`{call}!` has no argument `{}`", self.0.given));
        self.0.describe(diagnostic, "fit", arguments::FIT)
    }
}

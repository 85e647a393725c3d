//! SC0101 `unknown-compile-argument`.

use super::UnknownArgument;
use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage, arguments};

/// An argument of `compile!` whose name is not in the table of arguments.
#[derive(Clone, Debug)]
pub struct UnknownCompileArgument(pub UnknownArgument);

impl Rule for UnknownCompileArgument {
    const PAGE: RulePage = RulePage {
        code: "SC0101",
        name: "unknown-compile-argument",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "An argument of `compile!` whose name is not in the table of its arguments. Similar names are \
                suggested first; names of other libraries are translated.",
        why: "If it were ignored, the default would stay in effect: the run would not have the settings of the \
              cell.",
        bad: "compile!(model, optimiser = AdamW::new(5e-5), loss = \"sparse_categorical_crossentropy\")?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5), loss = \"sparse_categorical_crossentropy\")?;",
        tensorflow: tensorflow::page("SC0101"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let diagnostic = Self::start(format!("`compile!` has no argument `{}`", self.0.given));
        self.0.describe(diagnostic, "compile", arguments::COMPILE)
    }
}

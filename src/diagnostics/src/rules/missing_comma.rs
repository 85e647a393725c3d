//! SC0122 `missing-comma`.

use crate::{ArgumentRow, Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// Two parts of a call without a comma between them.
#[derive(Clone, Debug)]
pub struct MissingComma {
    /// Name of the call without `!`.
    pub call: String,
    /// The first word of the second part.
    pub before: String,
    /// Where that stands.
    pub place: Place,
    /// Where the comma goes.
    pub insert: Place,
    /// The call's arguments.
    pub arguments: Vec<ArgumentRow>,
}

impl Rule for MissingComma {
    const PAGE: RulePage = RulePage {
        code: "SC0122",
        name: "missing-comma",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "Two parts of `compile!`, `fit!` or `evaluate!` with no comma between them.",
        why: "rustc would report an unexpected token of a macro, far from the missing comma.",
        bad: "compile!(model optimizer = AdamW::new(5e-5))?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5))?;",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!("a comma is missing before `{}`", self.before))
            .label(self.place.clone(), "no comma before this")
            .why(format!(
                "a comma separates the operands and arguments of `{}!`",
                self.call
            ))
            .fix_edit("insert a comma", self.insert.clone(), ",")
            .arguments(self.arguments.clone())
    }
}

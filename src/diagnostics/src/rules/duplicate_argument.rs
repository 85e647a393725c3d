//! SC0117 `duplicate-argument`.

use crate::tensorflow::{self, Quote};
use crate::{ArgumentRow, Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// One argument written twice in a call.
#[derive(Clone, Debug)]
pub struct DuplicateArgument {
    /// Name of the call without `!`.
    pub call: String,
    /// The argument.
    pub argument: String,
    /// The first one.
    pub first: Place,
    /// The later one.
    pub second: Place,
    /// What goes when the first one goes, its comma included.
    pub first_drop: Place,
    /// What goes when the later one goes, its comma included.
    pub second_drop: Place,
    /// The call's arguments.
    pub arguments: Vec<ArgumentRow>,
}

impl Rule for DuplicateArgument {
    const PAGE: RulePage = RulePage {
        code: "SC0117",
        name: "duplicate-argument",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "An argument that is written twice in one call.",
        why: "The later value would silently win.",
        bad: "fit!(model, train, epochs = 3, batch_size = 32, epochs = 4)?;",
        good: "fit!(model, train, epochs = 4, batch_size = 32)?;",
        tensorflow: tensorflow::page("SC0117"),
    };

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!(
            "`{}` is given twice to `{}!`",
            self.argument, self.call
        ))
        .label(self.second.clone(), "given again")
        .label(self.first.clone(), "first given here")
        .why("the later value would silently win")
        .fix_edit("drop the second one", self.second_drop.clone(), "")
        .fix_edit("drop the first one", self.first_drop.clone(), "")
        .arguments(self.arguments.clone())
        .tensorflow(Quote::of("SC0117"))
    }
}

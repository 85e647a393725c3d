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
    /// The text to delete to remove the first one, its comma included.
    pub first_drop: Place,
    /// The text to delete to remove the later one, its comma included.
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
        why: "The later value would silently replace the first one.",
        bad: "fit!(model, train, epochs = 3, batch_size = 32, epochs = 4)?;",
        good: "fit!(model, train, epochs = 4, batch_size = 32)?;",
        tensorflow: tensorflow::page("SC0117"),
    };

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!(
            "`{}` is passed twice to `{}!`",
            self.argument, self.call
        ))
        .label(self.second.clone(), "given again")
        .label(self.first.clone(), "first passed here")
        .why("the later value would silently replace the first one")
        .fix_edit("remove the second one", self.second_drop.clone(), "")
        .fix_edit("remove the first one", self.first_drop.clone(), "")
        .arguments(self.arguments.clone())
        .tensorflow(Quote::of("SC0117"))
    }
}

//! SC0118 `conflicting-arguments`.

use crate::tensorflow;
use crate::{ArgumentRow, Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// Two arguments that exclude each other.
#[derive(Clone, Debug)]
pub struct ConflictingArguments {
    /// Name of the call, with `!` where it is a macro: `fit!`, `AdamW::new`.
    pub call: String,
    /// The first one, its name.
    pub first: String,
    /// Where the first one stands, name and value.
    pub first_place: Place,
    /// The second one, its name.
    pub second: String,
    /// Where the second one stands, name and value.
    pub second_place: Place,
    /// The text to delete to remove the first one, its comma included; at run time the argument.
    pub first_drop: Place,
    /// The text to delete to remove the second one, its comma included; at run time the argument.
    pub second_drop: Place,
    /// Why both cannot be, a sentence.
    pub reason: String,
    /// The call's arguments; empty for optimizers and when raised at run time.
    pub arguments: Vec<ArgumentRow>,
}

impl Rule for ConflictingArguments {
    const PAGE: RulePage = RulePage {
        code: "SC0118",
        name: "conflicting-arguments",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "Two arguments of one call that exclude each other.",
        why: "One of the two would be ignored.",
        bad: "fit!(model, train, validation_data = dev, validation_split = 0.1)?;",
        good: "fit!(model, train, validation_data = dev)?;",
        tensorflow: tensorflow::page("SC0118"),
    };

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!(
            "`{}` and `{}` exclude each other",
            self.first, self.second
        ))
        .label(
            self.second_place.clone(),
            format!("not together with `{}`", self.first),
        )
        .label(self.first_place.clone(), "given here")
        .why(self.reason.clone())
        .fix_edit_of_span(
            format!("remove `{}`", self.second),
            self.second_drop.clone(),
            "",
        )
        .fix_edit_of_span(
            format!("remove `{}`", self.first),
            self.first_drop.clone(),
            "",
        )
        .arguments(self.arguments.clone())
    }
}

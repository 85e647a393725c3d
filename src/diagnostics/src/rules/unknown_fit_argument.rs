//! SC0114 `unknown-fit-argument`.

use super::shared::{Unknown, unknown_argument};
use crate::tensorflow::{self, Quote};
use crate::{ArgumentRow, Diagnostic, Place, Rule, RulePage, Severity, Stage, arguments};

/// An argument of `fit!` whose name is not in the table of arguments.
#[derive(Clone, Debug)]
pub struct UnknownFitArgument {
    /// The name as typed.
    pub given: String,
    /// Where the name stands.
    pub place: Place,
    /// What goes when the argument goes, its comma included.
    pub drop: Place,
    /// Known names that look like it, best first.
    pub similar: Vec<String>,
    /// What the name means elsewhere, a sentence, where that is known.
    pub hint: Option<String>,
    /// The call's arguments, those passed and those left at their defaults.
    pub arguments: Vec<ArgumentRow>,
}

impl Rule for UnknownFitArgument {
    const PAGE: RulePage = RulePage {
        code: "SC0114",
        name: "unknown-fit-argument",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "An argument of `fit!` whose name is not in the table of its arguments, or which belongs \
                to `compile!` or to the optimizer.",
        why: "Ignored, it would leave the default in force: `epoch = 3` would train one epoch.",
        bad: "fit!(model, train, epoch = 3)?;",
        good: "fit!(model, train, epochs = 3)?;",
        tensorflow: tensorflow::page("SC0114"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let told = Self::start(format!("`fit!` has no argument `{}`", self.given));
        unknown_argument(
            told,
            Unknown {
                call: "fit",
                given: &self.given,
                place: &self.place,
                drop: &self.drop,
                similar: &self.similar,
                hint: self.hint.as_deref(),
                known: arguments::FIT
                    .iter()
                    .map(|argument| argument.name)
                    .collect(),
            },
        )
        .arguments(self.arguments.clone())
        .tensorflow(Quote::argument("fit", &self.given))
        .answers(|profile| tensorflow::answer("fit", &self.given, profile))
    }
}

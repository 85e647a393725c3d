//! SC0115 `unknown-evaluate-argument`.

use super::shared::{Unknown, unknown_argument};
use crate::tensorflow::{self, Quote};
use crate::{ArgumentRow, Diagnostic, Place, Rule, RulePage, Severity, Stage, arguments};

/// An argument of `evaluate!` whose name is not in the table of arguments.
#[derive(Clone, Debug)]
pub struct UnknownEvaluateArgument {
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

impl Rule for UnknownEvaluateArgument {
    const PAGE: RulePage = RulePage {
        code: "SC0115",
        name: "unknown-evaluate-argument",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "An argument of `evaluate!` whose name is not in the table of its arguments.",
        why: "Ignored, it would leave the default in force and the numbers would be those of another \
              question.",
        bad: "evaluate!(model, dev, batchsize = 64)?;",
        good: "evaluate!(model, dev, batch_size = 64)?;",
        tensorflow: tensorflow::page("SC0115"),
    };

    const TOLERATES: &'static [&'static str] = &["SC0510"];

    fn diagnostic(&self) -> Diagnostic {
        let told = Self::start(format!("`evaluate!` has no argument `{}`", self.given));
        unknown_argument(
            told,
            Unknown {
                call: "evaluate",
                given: &self.given,
                place: &self.place,
                drop: &self.drop,
                similar: &self.similar,
                hint: self.hint.as_deref(),
                known: arguments::EVALUATE
                    .iter()
                    .map(|argument| argument.name)
                    .collect(),
            },
        )
        .arguments(self.arguments.clone())
        .tensorflow(Quote::argument("evaluate", &self.given))
        .answers(|profile| tensorflow::answer("evaluate", &self.given, profile))
    }
}

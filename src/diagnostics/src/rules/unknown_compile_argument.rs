//! SC0101 `unknown-compile-argument`.

use super::shared::{Unknown, unknown_argument};
use crate::tensorflow::{self, Quote};
use crate::{ArgumentRow, Diagnostic, Place, Rule, RulePage, Severity, Stage, arguments};

/// An argument of `compile!` whose name is not in the table of arguments.
#[derive(Clone, Debug)]
pub struct UnknownCompileArgument {
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

impl Rule for UnknownCompileArgument {
    const PAGE: RulePage = RulePage {
        code: "SC0101",
        name: "unknown-compile-argument",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "An argument of `compile!` whose name is not in the table of its arguments. Names that \
                are one slip away are offered first; names of other libraries are translated.",
        why: "Ignored, it would leave the default in force: the run would train with other settings \
              than those on the screen.",
        bad: "compile!(model, optimiser = AdamW::new(5e-5), loss = \"sparse_categorical_crossentropy\")?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5), loss = \"sparse_categorical_crossentropy\")?;",
        tensorflow: tensorflow::page("SC0101"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let told = Self::start(format!("`compile!` has no argument `{}`", self.given));
        unknown_argument(
            told,
            Unknown {
                call: "compile",
                given: &self.given,
                place: &self.place,
                drop: &self.drop,
                similar: &self.similar,
                hint: self.hint.as_deref(),
                known: arguments::COMPILE
                    .iter()
                    .map(|argument| argument.name)
                    .collect(),
            },
        )
        .arguments(self.arguments.clone())
        .tensorflow(Quote::argument("compile", &self.given))
        .answers(|profile| tensorflow::answer("compile", &self.given, profile))
    }
}

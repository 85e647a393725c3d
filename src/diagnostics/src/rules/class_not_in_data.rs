//! SC0721 `class-not-in-data`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A class that a call names and that the data set or the model does not have.
#[derive(Clone, Debug)]
pub struct ClassNotInData {
    /// The call: `relabel`.
    pub call: String,
    /// The name as written.
    pub given: String,
    /// The classes that exist.
    pub known: Vec<String>,
}

impl Rule for ClassNotInData {
    const PAGE: RulePage = RulePage {
        code: "SC0721",
        name: "class-not-in-data",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "`data.relabel([…])` with a label that is not a class of the data set, or an explanation of a class that the \
                model does not have.",
        why: "A misspelled label would become a class of its own with one example.",
        bad: "let corrected = train.relabel([(3, \"gmaes\")])?;",
        good: "let corrected = train.relabel([(3, \"games\")])?;",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let near =
            crate::check::suggest::similar(&self.given, self.known.iter().map(String::as_str));
        let given = text::excerpt(&self.given, 40);
        let diagnostic = Self::start(format!("there is no class `{given}`"))
            .label(Place::call(&self.call), "unknown class");
        if self.known.is_empty() {
            return diagnostic
                .why("the labels of this data are no classes with names")
                .fix(
                    "make the data set from rows with labels: `Dataset::from_rows(texts, labels)?`",
                );
        }
        let diagnostic = diagnostic.why(format!("known: {}", text::names(&self.known, 12)));
        match near.first() {
            Some(name) => diagnostic.suggest(name),
            None => diagnostic.fix("take one of the known classes"),
        }
    }
}

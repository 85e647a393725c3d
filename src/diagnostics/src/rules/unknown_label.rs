//! SC0913 `unknown-label`.

use crate::tensorflow;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A label that is not a known class.
#[derive(Clone, Debug)]
pub struct UnknownLabel {
    /// The label as it stands.
    pub label: String,
    /// The file.
    pub path: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The classes that are known.
    pub known: Vec<String>,
    /// How many rows have an unknown label, this one included.
    pub rows: usize,
}

impl Rule for UnknownLabel {
    const PAGE: RulePage = RulePage {
        code: "SC0913",
        name: "unknown-label",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "A label in the data that is not a known class of the training split, of the model, or of the given \
                list.",
        why: "A class that occurs only in the validation split can never be predicted; a misspelled label splits \
              a class.",
        bad: "let dev = Dataset::tsv_with_labels(\"misspelt.tsv\", &train.label_names)?; // `gamse` in line 2",
        good: "let dev = Dataset::tsv_with_labels(\"dev.tsv\", &train.label_names)?; // `games` in line 2",
        tensorflow: tensorflow::page("SC0913"),
    };

    const GIVEN: &'static [&'static str] = &[
        "std::fs::write(\"dev.tsv\", \"text\\tlabel\\na fine game\\tgames\\n\")?;\n\
         std::fs::write(\"misspelt.tsv\", \"text\\tlabel\\na fine game\\tgamse\\n\")?;",
    ];

    fn diagnostic(&self) -> Diagnostic {
        let near =
            crate::check::suggest::similar(&self.label, self.known.iter().map(String::as_str));
        let diagnostic = Self::start(format!(
            "`{}`, line {}: unknown label `{}`",
            self.path,
            self.line,
            text::excerpt(&self.label, 40)
        ))
        .label(Place::file(&self.path, Some(self.line)), "unknown label")
        .why(format!("known: {}", text::names(&self.known, 12)));
        let diagnostic = if self.rows > 1 {
            diagnostic.evidence("rows with an unknown label", text::thousands(self.rows))
        } else {
            diagnostic
        };
        match near.first() {
            Some(name) => diagnostic.suggest(name),
            None => diagnostic.fix("correct the label, or train with a split that has it"),
        }
    }
}

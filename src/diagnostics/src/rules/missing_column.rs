//! SC0313 `missing-column`.

use crate::tensorflow::{self, Quote};
use crate::{Answer, Diagnostic, Place, Profile, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A column that the dataset was asked for and does not have.
#[derive(Clone, Debug)]
pub struct MissingColumn {
    /// The column asked for: `label`.
    pub column: String,
    /// The columns that are there.
    pub found: Vec<String>,
    /// The file.
    pub path: String,
}

impl Rule for MissingColumn {
    const PAGE: RulePage = RulePage {
        code: "SC0313",
        name: "missing-column",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "A dataset without a requested column, such as the labels.",
        why: "Without labels there is nothing to learn, and a text column used as the label is noise.",
        bad: "let train = Dataset::tsv(\"reviews.tsv\")?; // columns: text, target",
        good: "let train = Dataset::tsv(\"labelled.tsv\")?; // columns: text, label",
        tensorflow: tensorflow::page("SC0313"),
    };

    const GIVEN: &'static [&'static str] = &[
        "std::fs::write(\"reviews.tsv\", \"text\\ttarget\\na fine game\\tgood\\n\")?;\n\
         std::fs::write(\"labelled.tsv\", \"text\\tlabel\\na fine game\\tgood\\n\")?;",
    ];

    fn diagnostic(&self) -> Diagnostic {
        let near =
            crate::check::suggest::similar(&self.column, self.found.iter().map(String::as_str));
        let diagnostic = Self::start(format!(
            "no `{}` column; found {}",
            self.column,
            text::names(&self.found, 12)
        ))
        .label(Place::file(&self.path, Some(1)), "the header")
        .evidence("file", self.path.clone());
        let diagnostic = match near.first() {
            Some(name) => diagnostic.suggest(name),
            None => diagnostic,
        };
        diagnostic
            .fix(format!(
                "rename the column to `{}`, or name the column that is meant",
                self.column
            ))
            .tensorflow(Quote::of("SC0313"))
            .with_answers(answer)
    }
}

/// docs/keras-semantics.md E21, for data without targets.
fn answer(profile: Profile) -> Answer {
    let says = match profile {
        Profile::Tf23 | Profile::Tf24 => "ValueError: No gradients provided for any variable: […].",
        Profile::TfKeras218 => {
            "ValueError: Target data is missing. Your model was compiled with loss=<…>, and therefore \
             expects target data to be provided in `fit()`."
        }
        Profile::Keras3 => "ValueError: None values not supported.",
    };
    Answer::says(profile, "compiles; `fit` fails", says)
}

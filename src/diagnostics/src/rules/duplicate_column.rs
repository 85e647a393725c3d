//! SC0417 `duplicate-column`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A column that is to be read and is there more than once.
#[derive(Clone, Debug)]
pub struct DuplicateColumn {
    /// The name: `label`.
    pub column: String,
    /// Where it stands in the header, counted from 1.
    pub positions: Vec<usize>,
    /// The file.
    pub path: String,
}

impl Rule for DuplicateColumn {
    const PAGE: RulePage = RulePage {
        code: "SC0417",
        name: "duplicate-column",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "A file in which a column to read occurs twice, such as two `label` columns.",
        why: "Only one of them can be the label, and nothing in the file says which.",
        bad: "let train = Dataset::csv(\"two_labels.csv\")?; // columns: text, label, label",
        good: "let train = Dataset::csv_with(\"renamed.csv\", &Columns::new().label(\"label\"))?;",
        tensorflow: "",
    };

    const GIVEN: &'static [&'static str] = &[
        "std::fs::write(\"two_labels.csv\", \"text,label,label\\na fine game,games,1\\n\")?;\n\
         std::fs::write(\"renamed.csv\", \"text,label,number\\na fine game,games,1\\n\")?;",
    ];

    fn diagnostic(&self) -> Diagnostic {
        let positions: Vec<String> = self.positions.iter().map(usize::to_string).collect();
        Self::start(format!(
            "`{}` has {} named `{}`",
            self.path,
            text::count(self.positions.len(), "column"),
            self.column
        ))
        .label(Place::file(&self.path, Some(1)), "the header")
        .why("only one of them can be read, and nothing says which")
        .evidence("columns", positions.join(", "))
        .fix("rename or remove all but one of them in the first line of the file")
    }
}

//! SC0912 `ragged-row`.

use crate::tensorflow;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A row with another number of fields than the header.
#[derive(Clone, Debug)]
pub struct RaggedRow {
    /// The file.
    pub path: String,
    /// The line, counted from 1.
    pub line: usize,
    /// Fields of the header.
    pub expected: usize,
    /// Fields of this row.
    pub found: usize,
    /// The row as it stands.
    pub text: String,
    /// How many rows are like that, this one included.
    pub rows: usize,
}

impl Rule for RaggedRow {
    const PAGE: RulePage = RulePage {
        code: "SC0912",
        name: "ragged-row",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "A row with more or fewer fields than the header.",
        why: "A tab inside a text shifts every field after it: the label would be a part of the text.",
        bad: "let train = Dataset::tsv(\"ragged.tsv\")?; // line 3 has 3 fields, the header 2",
        good: "let train = Dataset::tsv(\"train.tsv\")?; // every line has 2 fields",
        tensorflow: tensorflow::page("SC0912"),
    };

    const GIVEN: &'static [&'static str] = &[
        "std::fs::write(\"train.tsv\", \"text\\tlabel\\na fine game\\tgames\\n\")?;\n\
         std::fs::write(\"ragged.tsv\", \"text\\tlabel\\na game\\tgames\\na text\\twith a tab\\tgames\\n\")?;",
    ];

    fn diagnostic(&self) -> Diagnostic {
        let diagnostic = Self::start(format!(
            "`{}`, line {} has {}, but the header has {}",
            self.path,
            self.line,
            text::count(self.found, "field"),
            self.expected
        ))
        .label(
            Place::file(&self.path, Some(self.line)),
            text::count(self.found, "field"),
        )
        .why("a separator inside a text shifts every field after it")
        .evidence(
            format!("line {}", self.line),
            text::excerpt(&self.text, 100),
        );
        let diagnostic = if self.rows > 1 {
            diagnostic.evidence("rows like that", text::thousands(self.rows))
        } else {
            diagnostic
        };
        diagnostic
            .fix("quote or replace the separator inside the text, or add the missing field")
            .fix("or skip such rows, which are then counted: `Columns::new().skip_bad_rows()`")
    }
}

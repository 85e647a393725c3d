//! SC0416 `missing-labels`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Rows whose label is empty or null.
#[derive(Clone, Debug)]
pub struct MissingLabels {
    /// The file, or what it was made from.
    pub source: String,
    /// The column, where there are some.
    pub column: Option<String>,
    /// Whether rows are counted as lines of a file.
    pub is_file: bool,
    /// The first few: lines counted from 1, rows in memory from 0.
    pub first: Vec<usize>,
    /// How many there are.
    pub count: usize,
    /// Rows in all.
    pub rows: usize,
    /// The function that reads them: `Dataset::tsv`.
    pub call: String,
}

impl Rule for MissingLabels {
    const PAGE: RulePage = RulePage {
        code: "SC0416",
        name: "missing-labels",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "Rows whose label is empty, blank, `null` in JSON or NaN in an array.",
        why: "An empty label would become a separate class without a name, and the model would learn to predict it. \
              Whether such rows are dropped or get a label depends on the data.",
        bad: "let train = Dataset::tsv(\"gaps.tsv\")?; // line 3 ends after the tab",
        good: "let train = Dataset::tsv_with(\"gaps.tsv\", &Columns::new().drop_missing())?;\n\
               let all = Dataset::tsv_with(\"gaps.tsv\", &Columns::new().fill_missing(\"unknown\"))?;",
        tensorflow: "",
    };

    const GIVEN: &'static [&'static str] = &[
        "std::fs::write(\"gaps.tsv\", \"text\\tlabel\\na fine game\\tgames\\na mail server\\t\\n\")?;",
    ];

    fn diagnostic(&self) -> Diagnostic {
        let unit = if self.is_file { "line" } else { "row" };
        let shown: Vec<String> = self.first.iter().map(usize::to_string).collect();
        let more = self.count.saturating_sub(self.first.len());
        let shown = match (shown.len(), more) {
            (1, 0) => format!("{unit} {}", shown[0]),
            (_, 0) => format!("{unit}s {}", shown.join(", ")),
            (_, more) => format!("{unit}s {} and {more} more", shown.join(", ")),
        };
        let column = self.column.as_deref();
        let column = column.map_or(String::new(), |column| format!(" in column `{column}`"));
        let verb = if self.count == 1 { "has" } else { "have" };
        let diagnostic = Self::start(format!(
            "{} of {} {verb} no label{column}: {shown}",
            text::thousands(self.count),
            text::count(self.rows, "row"),
        ))
        .label(
            match self.is_file {
                true => Place::file(&self.source, self.first.first().copied()),
                false => Place::call(&self.call),
            },
            "no label",
        )
        .why("an empty label would become a separate class without a name");
        let reader = self.call.split_once("::").filter(|(data, format)| {
            matches!(*data, "Dataset" | "Stream")
                && ["tsv", "csv", "jsonl", "parquet", "arrow"].contains(format)
        });
        match reader {
            Some(_) => diagnostic
                .evidence("file", self.source.clone())
                .fix(format!(
                    "remove them: `{}_with({:?}, &Columns::new().drop_missing())?`",
                    self.call, self.source
                ))
                .fix("or fill in a label: `Columns::new().fill_missing(\"unknown\")`"),
            None => {
                diagnostic.fix("drop these rows, or fill in a label, before the dataset is made")
            }
        }
    }
}

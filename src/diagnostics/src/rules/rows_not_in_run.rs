//! SC0741 `rows-not-in-run`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Training rows whose influence is asked for and that the run does not train on.
#[derive(Clone, Debug)]
pub struct RowsNotInRun {
    /// The rows, as written; none where no row was given at all.
    pub unknown: Vec<String>,
    /// How many rows the training data has.
    pub rows: usize,
}

impl Rule for RowsNotInRun {
    const PAGE: RulePage = RulePage {
        code: "SC0741",
        name: "rows-not-in-run",
        severity: Severity::Error,
        stage: Stage::Training,
        finds: "`run.influence(text, label, rows)` with a row that the training data does not have or that was dropped from the run, or \
                with no row at all.",
        why: "Rows are counted from 0 in the training data, as `run.worst(10)`, `run.batch()` and `run.data_map()` show them. A row that \
              was dropped has no influence that could be taken away.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              let run = start!(model, train.take(32), batch_size = 16)?;\n\
              run.step(2)?;\n\
              run.influence(&train[0].text, &train.label_names[0], [3, 32])?",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               let run = start!(model, train.take(32), batch_size = 16)?;\n\
               run.step(2)?;\n\
               run.influence(&train[0].text, &train.label_names[0], [3, 31])?",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let rows = text::count(self.rows, "row");
        let message = match self.unknown.as_slice() {
            [] => "no row to leave out".to_owned(),
            [one] => format!("the run does not train on row {one}"),
            more => format!("the run does not train on rows {}", text::names(more, 6)),
        };
        Self::start(message)
            .label(Place::call("influence"), "nothing is replayed")
            .why(format!(
                "the training data has {rows}: 0 to {}, without those that were dropped",
                self.rows.saturating_sub(1)
            ))
            .fix(
                "give a number of rows, and the run chooses them: `run.influence(text, label, 5)?`",
            )
            .fix("take the rows from `run.worst(10)?` or `run.data_map()?`: `example.row`")
    }
}

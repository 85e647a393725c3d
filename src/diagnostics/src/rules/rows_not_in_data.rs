//! SC0720 `rows-not-in-data`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Rows that are to be changed or looked at and that the data set does not have.
#[derive(Clone, Debug)]
pub struct RowsNotInData {
    /// The call that names them: `relabel`.
    pub call: String,
    /// The rows that do not exist, as written; none where no row was given at all.
    pub unknown: Vec<String>,
    /// Rows of the data set.
    pub rows: usize,
}

impl Rule for RowsNotInData {
    const PAGE: RulePage = RulePage {
        code: "SC0720",
        name: "rows-not-in-data",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "`data.relabel([…])`, `data.drop_examples([…])` or a question about a row, with a row that the data set \
                does not have, or with no row at all.",
        why: "Rows are counted from 0 in the data set that the method is called on, as an audit and `run.drop_examples` \
              count them. After examples are dropped, the later ones have other numbers.",
        bad: "let corrected = train.take(32).relabel([(3, \"games\"), (32, \"games\")])?;",
        good: "let corrected = train.take(32).relabel([(3, \"games\"), (31, \"games\")])?;",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let message = match self.unknown.as_slice() {
            [] => format!("no row was given to `{}`", self.call),
            [one] => format!("there is no row {one} in the data"),
            more => format!("there are no rows {} in the data", text::names(more, 6)),
        };
        let rows = text::count(self.rows, "row");
        let why = match self.rows {
            0 => "the data has no row".to_owned(),
            count => format!("the data has {rows}: 0 to {}", count - 1),
        };
        Self::start(message)
            .label(Place::call(&self.call), "nothing is changed")
            .why(why)
            .fix("take the rows from an audit of the same data: `model.audit(&data)?.wrong_labels()`")
    }
}

//! Tab-separated values: a header line, one row per line, without quoting, as in the files of GLUE. A quote
//! character is an ordinary character.

use std::path::Path;

use stratoscope_diagnostics::Result;

use super::{Columns, FieldCount, Reading, Table, TableRow, read_text};
use crate::dataset::Dataset;
use crate::problem;

const CALL: &str = "Dataset::tsv";

impl Dataset {
    /// Reads a tab-separated file whose columns have common names (see [`Columns`]).
    ///
    /// # Errors
    /// SC0911 if the file cannot be read as UTF-8, SC0912 for a row with more or fewer fields than
    /// the header, SC0313 if a column is missing, SC0914 if there is no row.
    pub fn tsv(path: impl AsRef<Path>) -> Result<Self> {
        Self::tsv_with(path, &Columns::new())
    }

    /// [`Self::tsv`] with named columns.
    ///
    /// # Errors
    /// As [`Dataset::tsv`].
    pub fn tsv_with(path: impl AsRef<Path>, columns: &Columns) -> Result<Self> {
        let path = path.as_ref();
        let text = read_text(CALL, path)?;
        table(CALL, &path.display().to_string(), &text)?.dataset(columns)
    }

    /// [`Self::tsv_with`] with the classes numbered by a list of names, such as that of another split.
    ///
    /// # Errors
    /// As [`Dataset::tsv`]; SC0913 for a label that is not in the list.
    pub fn tsv_with_labels(path: impl AsRef<Path>, label_names: &[String]) -> Result<Self> {
        Self::tsv(path)?.with_label_names(label_names)
    }

    /// Reads text in memory; `source` names it in messages.
    pub(crate) fn tsv_text(call: &'static str, source: &str, text: &str) -> Result<Self> {
        table(call, source, text)?.dataset(&Columns::new())
    }
}

/// Splits the text at line ends and tabs. Empty lines at the end are not rows.
fn table(call: &'static str, source: &str, text: &str) -> Result<Table> {
    let fields = |line: &str| line.split('\t').map(str::to_owned).collect::<Vec<_>>();
    let mut lines = text.trim_end_matches(['\n', '\r']).lines();
    let header = match lines.next() {
        Some(line) if !line.trim().is_empty() => fields(line),
        _ => return Err(problem::empty(source, call)),
    };
    let mut field_count = FieldCount::new(&header);
    let mut rows = Vec::new();
    let mut reading = Reading::begin(text.len());
    let mut offset = 0;
    for (index, line) in lines.enumerate() {
        reading.row(offset)?;
        offset += line.len() + 1;
        // Line 1 is the header.
        let row = TableRow {
            line: index + 2,
            fields: fields(line),
        };
        if field_count.accepts(source, &row) {
            rows.push(row);
        }
    }
    reading.finished();
    field_count.finish(call)?;
    Ok(Table {
        source: source.to_owned(),
        call,
        header,
        rows,
    })
}

//! Tab-separated values: a header line, one row per line, without quoting, as in the files of GLUE. A quote
//! character is an ordinary character.

use std::path::Path;

use stratoscope_diagnostics::Result;

use super::{Columns, FieldCount, Reading, Table, TableRow, files, read_encoded, read_text};
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
        files::read(CALL, path.as_ref(), |path| {
            let text = read_encoded(CALL, path, columns.encoding_name())?;
            table(CALL, &path.display().to_string(), &text, columns)?.dataset(columns)
        })
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
        let columns = Columns::new();
        table(call, source, text, &columns)?.dataset(&columns)
    }
}

/// Reads a file whose first line is a row; `header` is the line that it lacks.
pub(super) fn without_header(path: &Path, header: &str, columns: &Columns) -> Result<Dataset> {
    let text = read_text(CALL, path)?;
    let source = path.display().to_string();
    rows(CALL, &source, header, (&text, 1), columns)?.dataset(columns)
}

/// A text whose first line is the header.
fn table(call: &'static str, source: &str, text: &str, columns: &Columns) -> Result<Table> {
    let (header, text) = text.split_once('\n').unwrap_or((text, ""));
    let header = header.strip_suffix('\r').unwrap_or(header);
    if header.trim().is_empty() {
        return Err(problem::empty(source, call));
    }
    rows(call, source, header, (text, 2), columns)
}

/// Splits the text at line ends and tabs; its first line is line `first` of the file. Empty lines at the end are not rows.
fn rows(
    call: &'static str,
    source: &str,
    header: &str,
    (text, first): (&str, usize),
    columns: &Columns,
) -> Result<Table> {
    let fields = |line: &str| line.split('\t').map(str::to_owned).collect::<Vec<_>>();
    let header = fields(header);
    let lines = text.trim_end_matches(['\n', '\r']).lines();
    let mut field_count = FieldCount::new(&header);
    let mut rows = Vec::new();
    let mut reading = Reading::begin(text.len());
    let mut offset = 0;
    for (index, line) in lines.enumerate() {
        reading.row(offset)?;
        offset += line.len() + 1;
        let row = TableRow {
            line: index + first,
            fields: fields(line),
        };
        if field_count.accepts(source, &row) {
            rows.push(row);
        }
    }
    reading.finished();
    let skipped = field_count.finish(call, columns)?;
    Ok(Table {
        source: source.to_owned(),
        call,
        header,
        rows,
        skipped,
        remarks: Vec::new(),
    })
}

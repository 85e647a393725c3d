//! Comma-separated values with quoting (RFC 4180): one header line; a quoted field may hold commas,
//! line ends and doubled quotes.

use std::path::Path;

use csv::{ErrorKind, ReaderBuilder};
use stratoscope_diagnostics::Result;

use super::{Columns, FieldCount, Reading, Table, TableRow, files, read_text};
use crate::dataset::Dataset;
use crate::problem;

const CALL: &str = "Dataset::csv";

impl Dataset {
    /// Reads a comma-separated file whose columns have common names (see [`Columns`]).
    ///
    /// # Errors
    /// As [`Dataset::tsv`].
    pub fn csv(path: impl AsRef<Path>) -> Result<Self> {
        Self::csv_with(path, &Columns::new())
    }

    /// [`Self::csv`] with named columns.
    ///
    /// # Errors
    /// As [`Dataset::tsv`].
    pub fn csv_with(path: impl AsRef<Path>, columns: &Columns) -> Result<Self> {
        files::read(CALL, path.as_ref(), |path| {
            let text = read_text(CALL, path)?;
            table(&path.display().to_string(), &text, columns)?.dataset(columns)
        })
    }
}

fn table(source: &str, text: &str, columns: &Columns) -> Result<Table> {
    // Flexible, so that ragged rows get our own diagnostic instead of the library's error.
    let mut reader = ReaderBuilder::new()
        .flexible(true)
        .from_reader(text.as_bytes());
    let unreadable = |error: csv::Error| {
        let line = error.position().map(|position| position.line() as usize);
        let reason = match error.kind() {
            ErrorKind::Io(error) => error.to_string(),
            _ => "it is not comma-separated text".to_owned(),
        };
        problem::unreadable(CALL, source, line, reason)
    };
    let header: Vec<String> = reader
        .headers()
        .map_err(unreadable)?
        .iter()
        .map(str::to_owned)
        .collect();
    if header.is_empty() {
        return Err(problem::empty(source, CALL));
    }
    let mut field_count = FieldCount::new(&header);
    let mut rows = Vec::new();
    let mut reading = Reading::begin(text.len());
    for record in reader.records() {
        let record = record.map_err(unreadable)?;
        let offset = record.position().map_or(0, csv::Position::byte);
        reading.row(usize::try_from(offset).unwrap_or(usize::MAX))?;
        let row = TableRow {
            line: record
                .position()
                .map_or(0, |position| position.line() as usize),
            fields: record.iter().map(str::to_owned).collect(),
        };
        if field_count.accepts(source, &row) {
            rows.push(row);
        }
    }
    reading.finished();
    let skipped = field_count.finish(CALL, columns)?;
    Ok(Table {
        source: source.to_owned(),
        call: CALL,
        header,
        rows,
        skipped,
    })
}

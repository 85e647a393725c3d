//! Comma-separated values with quoting (RFC 4180): one header line; a quoted field may hold commas,
//! line ends and doubled quotes.

use std::path::Path;

use csv::{ErrorKind, ReaderBuilder};
use stratoscope_diagnostics::Result;

use super::{Columns, FieldCount, Reading, Table, TableRow, files, read_encoded};
use crate::dataset::Dataset;
use crate::problem;

const CALL: &str = "Dataset::csv";
/// What is wrong with a row that takes the rest of its file.
pub(crate) const OPEN_QUOTE: &str =
    "the row that begins in this line has a quote that is not closed";

impl Dataset {
    /// Reads a comma-separated file whose columns have common names (see [`Columns`]). Where the header has no comma but
    /// `;` or tabs, these separate the fields, which the data set says when it is shown.
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
            let text = read_encoded(CALL, path, columns.encoding_name())?;
            table(&path.display().to_string(), &text, columns)?.dataset(columns)
        })
    }
}

fn table(source: &str, text: &str, columns: &Columns) -> Result<Table> {
    // Flexible, so that ragged rows get our own diagnostic instead of the library's error.
    let separator = separator_of(text);
    let mut reader = ReaderBuilder::new()
        .flexible(true)
        .delimiter(separator)
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
    let mut last = (0, 1);
    let mut field_count = FieldCount::new(&header);
    let mut rows = Vec::new();
    let mut reading = Reading::begin(text.len());
    for record in reader.records() {
        let record = record.map_err(unreadable)?;
        let (offset, line) =
            (record.position()).map_or((0, 1), |it| (it.byte() as usize, it.line() as usize));
        reading.row(offset)?;
        // `csv` counts the line ends before a record as a part of it.
        let mut ends = LeadingEnds::default();
        ends.add(&text.as_bytes()[offset..]);
        last = (offset + ends.bytes, line + ends.lines);
        let row = TableRow {
            line: last.1,
            fields: record.iter().map(str::to_owned).collect(),
        };
        if field_count.accepts(source, &row) {
            rows.push(row);
        }
    }
    reading.finished();
    let (offset, line) = last;
    let is_open = ends_in_quotes(&text.as_bytes()[offset..], separator);
    if is_open && (rows.is_empty() || !columns.skips_bad_rows()) {
        return Err(problem::unreadable(CALL, source, Some(line), OPEN_QUOTE));
    }
    let mut skipped = field_count.finish(CALL, columns)?;
    // With another number of fields it is among them already.
    if is_open && rows.pop_if(|row| row.line == line).is_some() {
        skipped.add(|| format!("line {line}: {OPEN_QUOTE}"));
    }
    Ok(Table {
        source: source.to_owned(),
        call: CALL,
        header,
        rows,
        skipped,
        remarks: match separator {
            b'\t' => vec!["fields are separated by tabs, as its header is".to_owned()],
            b';' => vec!["fields are separated by `;`, as its header is".to_owned()],
            _ => Vec::new(),
        },
    })
}

/// What separates the fields: a comma, unless the header has none and has `;` or tabs.
fn separator_of(text: &str) -> u8 {
    let header = text.lines().next().unwrap_or_default();
    let has = |sign: char| {
        // Between quotes a sign is a letter like any other.
        let plain = header.split('"').step_by(2);
        plain.flat_map(str::chars).any(|letter| letter == sign)
    };
    match (has(','), has(';'), has('\t')) {
        (false, true, _) => b';',
        (false, false, true) => b'\t',
        _ => b',',
    }
}

/// The line ends at the begin of a text that comes in parts.
#[derive(Default)]
pub(crate) struct LeadingEnds {
    /// Their bytes.
    pub(crate) bytes: usize,
    /// The lines that they end.
    pub(crate) lines: usize,
    /// Whether something else has come.
    is_over: bool,
}

impl LeadingEnds {
    /// The next part of the text.
    pub(crate) fn add(&mut self, part: &[u8]) {
        if self.is_over {
            return;
        }
        let is_end = |byte: &&u8| matches!(byte, b'\n' | b'\r');
        let ends = part.iter().take_while(is_end);
        let (bytes, lines) = ends.fold((0, 0), |(bytes, lines), &byte| {
            (bytes + 1, lines + usize::from(byte == b'\n'))
        });
        self.bytes += bytes;
        self.lines += lines;
        self.is_over = bytes < part.len();
    }
}

/// Whether the text of a record ends within quotes: at the end of a file, `csv` takes them for closed.
pub(crate) fn ends_in_quotes(record: &[u8], separator: u8) -> bool {
    #[derive(Clone, Copy, PartialEq)]
    enum At {
        Begin,
        Plain,
        Quoted,
        QuoteInQuotes,
    }
    let end = record.iter().fold(At::Begin, |at, byte| match (at, byte) {
        (At::Begin | At::QuoteInQuotes, b'"') => At::Quoted,
        (At::Quoted, b'"') => At::QuoteInQuotes,
        (At::Quoted, _) => At::Quoted,
        (_, b'\n' | b'\r') => At::Begin,
        (_, &byte) if byte == separator => At::Begin,
        _ => At::Plain,
    });
    end == At::Quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &str) -> Result<Dataset> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("data.csv");
        std::fs::write(&path, content).expect("room");
        Dataset::csv(&path)
    }

    #[test]
    fn lines_are_those_of_an_editor() {
        let content = "text,label\na,x\n\n\n\"b\nb\",y\nc,x\n";
        for content in [content.to_owned(), content.replace('\n', "\r\n")] {
            let data = read(&content).expect("three rows");
            let lines = data.examples.iter().map(|example| example.line);
            assert_eq!(lines.collect::<Vec<_>>(), [Some(2), Some(5), Some(7)]);
        }
        let ragged = read("text,label\r\na,x\r\nb\r\n").expect_err("a field is missing");
        let shown = format!("{ragged:?}");
        assert!(
            ragged.code == "SC0912" && shown.contains("line: Some(3)"),
            "{shown}"
        );
    }

    #[test]
    fn a_quote_that_is_not_closed_is_an_error_of_its_line() {
        let unclosed = read("label,text\nham,a\n\nham,\"He said\nspam,b\n");
        let unclosed = unclosed.expect_err("it is not closed");
        let shown = format!("{unclosed:?}");
        let named = shown.contains("line: Some(4)");
        assert!(
            unclosed.code == "SC0911" && shown.contains("not closed") && named,
            "{shown}"
        );
        assert!(read("label,text\nham,\"a\"\"\"").is_ok());
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("cut.csv");
        std::fs::write(&path, "label,text\nham,a\nspam,\"b\nc").expect("room");
        let columns = Columns::new().skip_bad_rows();
        let data = Dataset::csv_with(&path, &columns).expect("a row");
        assert_eq!((data.len(), data.skipped.rows), (1, 1));
    }
}

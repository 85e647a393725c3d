//! Comma-separated values with quoting (RFC 4180): one header line; a quoted field may hold commas,
//! line ends and doubled quotes. Where the header has no comma but `;` or tabs, these separate the fields.

use std::io::{self, BufRead, BufReader, Read, SeekFrom};

use csv::{ByteRecord, ReaderBuilder};

use super::raw::{At, Content, Limited, Raw};

/// What is wrong with a row that takes the rest of its file.
const OPEN_QUOTE: &str = "the row that begins in this line has a quote that is not closed";

/// The records of a comma-separated file.
pub(super) struct CsvRows {
    reader: csv::Reader<Watched>,
    /// Where the reader began; it counts from there.
    begin: At,
    separator: u8,
    record: ByteRecord,
}

impl CsvRows {
    /// From a place on, at which the file stands.
    pub(super) fn of(input: Limited, begin: At, separator: u8) -> Self {
        Self {
            // Flexible, so that rows with too many fields are ours to report.
            reader: ReaderBuilder::new()
                .has_headers(false)
                .flexible(true)
                .delimiter(separator)
                .from_reader(Watched {
                    input,
                    chunk: Vec::new(),
                    begin: 0,
                    ends: LeadingEnds::default(),
                }),
            begin,
            separator,
            record: ByteRecord::new(),
        }
    }

    /// Where the row after the one that was read begins, or the line ends before it.
    pub(super) fn here(&self) -> At {
        let position = self.reader.position();
        At::line(
            self.begin.offset + position.byte(),
            self.begin.line + position.line() as usize - 1,
        )
    }

    pub(super) fn next(&mut self) -> io::Result<Option<Raw>> {
        let before = self.here();
        let watched = self.reader.get_mut();
        watched.input.begin_row();
        watched.begin_row(before.offset - self.begin.offset);
        let read = self.reader.read_byte_record(&mut self.record);
        if !read.map_err(io::Error::from)? {
            return Ok(None);
        }
        let end = self.here().offset - self.begin.offset;
        let watched = self.reader.get_mut();
        let at = At::line(
            before.offset + watched.ends.bytes as u64,
            before.line + watched.ends.lines,
        );
        let is_last = watched.is_all_read(end) && watched.input.is_at_end()?;
        if is_last && ends_in_quotes(&watched.rest(at.offset)?, self.separator) {
            let content = Content::Wrong(OPEN_QUOTE.to_owned());
            return Ok(Some(Raw { at, content }));
        }
        let fields = self.record.iter().map(std::str::from_utf8);
        let fields: Result<Vec<String>, _> = fields.map(|it| it.map(str::to_owned)).collect();
        let content = fields.map_or(Content::NotText, Content::Fields);
        Ok(Some(Raw { at, content }))
    }
}

/// The bytes of a file, as they are read: `csv` counts the line ends before a record as a part of it.
struct Watched {
    input: Limited,
    /// What was read last, and the bytes before it since the begin of the reader.
    chunk: Vec<u8>,
    begin: u64,
    /// The line ends before the row.
    ends: LeadingEnds,
}

impl Watched {
    /// The next row begins after these bytes, which are read, and after the line ends that follow.
    fn begin_row(&mut self, after: u64) {
        self.ends = LeadingEnds::default();
        let read = usize::try_from(after - self.begin).unwrap_or(usize::MAX);
        self.ends.add(self.chunk.get(read..).unwrap_or_default());
    }

    /// Whether no more than this many bytes have been read.
    fn is_all_read(&self, end: u64) -> bool {
        end == self.begin + self.chunk.len() as u64
    }

    /// All bytes from a place in the file on, whose end has been read.
    fn rest(&mut self, offset: u64) -> io::Result<Vec<u8>> {
        let input = self.input.whole();
        let end = input.stream_position()?;
        input.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        // No more than the row, which has been read.
        input.read_to_end(&mut bytes)?;
        input.seek(SeekFrom::Start(end))?;
        Ok(bytes)
    }
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        // The end of the file leaves the last bytes as they are.
        if read > 0 {
            self.begin += self.chunk.len() as u64;
            self.chunk.clear();
            self.chunk.extend_from_slice(&buffer[..read]);
            self.ends.add(&self.chunk);
        }
        Ok(read)
    }
}

/// What separates the fields of a file, whose first line is its header.
pub(super) fn separator(input: &mut Limited) -> io::Result<u8> {
    const MAX_HEADER_BYTES: u64 = 64 << 10;
    let input = input.whole();
    input.rewind()?;
    let mut header = Vec::new();
    BufReader::new(input.take(MAX_HEADER_BYTES)).read_until(b'\n', &mut header)?;
    Ok(separator_of(&String::from_utf8_lossy(&header)))
}

/// What separates the fields of a text, where it is no comma.
pub(super) fn remark(text: &str) -> Option<String> {
    let separator = match separator_of(text) {
        b'\t' => "tabs",
        b';' => "`;`",
        b'|' => "`|`",
        _ => return None,
    };
    Some(format!(
        "fields are separated by {separator}, as its header is"
    ))
}

/// What separates the fields: a comma, unless the header has none and has `;`, tabs or `|`.
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
        (false, false, false) if has('|') => b'|',
        _ => b',',
    }
}

/// The line ends at the begin of a text that comes in parts.
#[derive(Default)]
struct LeadingEnds {
    /// Their bytes.
    bytes: usize,
    /// The lines that they end.
    lines: usize,
    /// Whether something else has come.
    is_over: bool,
}

impl LeadingEnds {
    /// The next part of the text.
    fn add(&mut self, part: &[u8]) {
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
fn ends_in_quotes(record: &[u8], separator: u8) -> bool {
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
    use stratoscope_diagnostics::Result;

    use super::super::raw::Format;
    use super::super::rows::RawRows;
    use super::*;
    use crate::dataset::Dataset;
    use crate::source::Columns;

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

    fn rows(content: &str) -> Vec<(u64, usize, String)> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rows.csv");
        std::fs::write(&path, content).expect("room");
        let mut rows = RawRows::open(&path, Format::Csv).expect("it opens");
        let mut found = Vec::new();
        loop {
            match rows.next() {
                Ok(Some(Raw { at, content })) => {
                    let shown = match content {
                        Content::Fields(fields) => fields.join("|"),
                        Content::Wrong(reason) => reason,
                        _ => panic!("text"),
                    };
                    found.push((at.offset, at.line, shown));
                }
                Ok(None) => return found,
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn rows_begin_at_lines_of_an_editor() {
        let rows = |content: &str| -> Vec<(usize, String)> {
            let rows = rows(content).into_iter();
            rows.map(|(_, line, fields)| (line, fields)).collect()
        };
        let row = |line: usize, fields: &str| (line, fields.to_owned());
        let expected = [
            row(1, "a|b"),
            row(2, "1|2"),
            row(5, "x\ny|3"),
            row(7, "4|5"),
        ];
        let lines = "a,b\n1,2\n\n\n\"x\ny\",3\n4,5\n";
        assert_eq!(rows(lines), expected);
        let windows = rows(&lines.replace('\n', "\r\n"));
        let fields = |rows: Vec<(usize, String)>| -> Vec<(usize, String)> {
            let rows = rows.into_iter();
            rows.map(|(line, text)| (line, text.replace('\r', "")))
                .collect()
        };
        assert_eq!(fields(windows), expected);
    }

    #[test]
    fn line_ends_are_counted_over_the_borders_of_what_is_read_at_once() {
        for filling in 8180..8200 {
            let content = format!("a,{}\r\n\r\n\r\nb,c\r\n", "x".repeat(filling));
            let rows = rows(&content);
            let second = content.find("b,c").expect("it is there") as u64;
            assert_eq!(rows[1], (second, 4, "b|c".to_owned()), "{filling}");
        }
    }

    #[test]
    fn a_quote_that_is_not_closed_is_an_error_of_its_row() {
        let last = |content: &str| rows(content).pop().expect("a row").2;
        let unclosed = rows("a,b\n1,2\nham,\"He said\nspam,b\n").pop();
        let (_, line, reason) = unclosed.expect("a row");
        assert_eq!((line, reason.as_str()), (3, OPEN_QUOTE));
        for closed in ["a,b\n1,\"x\"", "a,b\n1,\"x\"\"\"", "a,b\n1,x\"y", "a,b\n1,"] {
            assert!(!last(closed).contains("not closed"), "{closed}");
        }
        assert!(last("a,b\n1,\"x\"\"").contains("not closed"));
    }
}

//! The records of a comma-separated file, each with the byte and the line at which it begins.

use std::io::{self, Read, Seek, SeekFrom};

use csv::{ByteRecord, ReaderBuilder, StringRecord};

use super::csv::{LeadingEnds, OPEN_QUOTE, ends_in_quotes};
use super::rows::{At, Content, LONGEST_ROW, Limited, Raw};

/// The records of a comma-separated file.
pub(crate) struct CsvRows {
    reader: csv::Reader<Watched>,
    /// Where the reader began; it counts from there.
    begin: At,
    record: ByteRecord,
}

impl CsvRows {
    /// From a place on, at which the file stands.
    pub(super) fn of(input: Limited, begin: At) -> Self {
        Self {
            // Flexible, so that rows with too many fields are ours to report.
            reader: ReaderBuilder::new()
                .has_headers(false)
                .flexible(true)
                .from_reader(Watched {
                    input,
                    chunk: Vec::new(),
                    begin: 0,
                    ends: LeadingEnds::default(),
                }),
            begin,
            record: ByteRecord::new(),
        }
    }

    /// Where the row after the one that was read begins, or the line ends before it.
    pub(super) fn here(&self) -> At {
        let position = self.reader.position();
        At {
            offset: self.begin.offset + position.byte(),
            line: self.begin.line + position.line() as usize - 1,
            nth: 0,
        }
    }

    pub(super) fn next(&mut self) -> io::Result<Option<Raw>> {
        let before = self.here();
        let watched = self.reader.get_mut();
        watched.input.allow(LONGEST_ROW);
        watched.begin_row(before.offset - self.begin.offset);
        let read = self.reader.read_byte_record(&mut self.record);
        if !read.map_err(io::Error::from)? {
            return Ok(None);
        }
        let end = self.here().offset - self.begin.offset;
        let watched = self.reader.get_mut();
        let at = At {
            offset: before.offset + watched.ends.bytes as u64,
            line: before.line + watched.ends.lines,
            nth: 0,
        };
        let is_last = watched.is_all_read(end) && {
            let left = watched.input.file();
            left.stream_position()? == left.metadata()?.len()
        };
        if is_last && ends_in_quotes(&watched.rest(at.offset)?, b',') {
            let content = Content::Wrong(OPEN_QUOTE.to_owned());
            return Ok(Some(Raw { at, content }));
        }
        let record = std::mem::take(&mut self.record);
        let content = match StringRecord::from_byte_record(record) {
            Ok(record) => Content::Fields(record.iter().map(str::to_owned).collect()),
            Err(_) => Content::NotText,
        };
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
        let file = self.input.file();
        let end = file.stream_position()?;
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        file.take(LONGEST_ROW as u64).read_to_end(&mut bytes)?;
        file.seek(SeekFrom::Start(end))?;
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

#[cfg(test)]
mod tests {
    use super::super::rows::{Format, RawRows};
    use super::*;

    fn read(content: &str) -> Vec<(u64, usize, String)> {
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
    fn lines_are_those_of_an_editor() {
        let rows = |content: &str| -> Vec<(usize, String)> {
            let rows = read(content).into_iter();
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
            let rows = read(&content);
            let second = content.find("b,c").expect("it is there") as u64;
            assert_eq!(rows[1], (second, 4, "b|c".to_owned()), "{filling}");
        }
    }

    #[test]
    fn a_quote_that_is_not_closed_is_an_error_of_its_line() {
        let last = |content: &str| read(content).pop().expect("a row").2;
        let unclosed = read("a,b\n1,2\nham,\"He said\nspam,b\n").pop();
        let (_, line, reason) = unclosed.expect("a row");
        assert_eq!((line, reason.as_str()), (3, OPEN_QUOTE));
        for closed in ["a,b\n1,\"x\"", "a,b\n1,\"x\"\"\"", "a,b\n1,x\"y", "a,b\n1,"] {
            assert!(!last(closed).contains("not closed"), "{closed}");
        }
        assert!(last("a,b\n1,\"x\"\"").contains("not closed"));
    }
}

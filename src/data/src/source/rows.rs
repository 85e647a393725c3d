//! The rows of a file as they stand in it, one after the other, with the byte and the line at which each begins. Only the
//! row that is read is in memory.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use super::columnar::TypedRows;
use super::conll::{Line, LineReader, Unfit};
use super::csv_rows::CsvRows;
use super::squad::Question;
use super::squad_rows::Questions;

/// The most bytes of a row. A quote that is not closed would otherwise make a row of the rest of the file.
pub(super) const LONGEST_ROW: usize = 64 << 20;
/// What some editors write before UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How a file is divided into rows and fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Comma-separated with quoting, a header first.
    Csv,
    /// Tab-separated without quoting, a header first.
    Tsv,
    /// An object a line.
    Jsonl,
    /// A text a line.
    Text,
    /// A word and its tag a line; an empty line ends a sentence.
    Conll,
    /// Columns of typed values, in groups of rows.
    Parquet,
    /// Columns of typed values, in batches of rows.
    Arrow,
    /// Paragraphs with questions in one document.
    Squad,
}

impl Format {
    /// The function that reads it, for messages.
    pub(crate) fn call(self) -> &'static str {
        match self {
            Self::Csv => "Stream::csv",
            Self::Tsv => "Stream::tsv",
            Self::Jsonl => "Stream::jsonl",
            Self::Text => "Stream::text",
            Self::Conll => "Stream::conll",
            Self::Parquet => "Stream::parquet",
            Self::Arrow => "Stream::arrow",
            Self::Squad => "Stream::squad",
        }
    }

    /// Whether the number of a row, or its line, leads to it in the file.
    pub(super) fn has_lines(self) -> bool {
        self != Self::Squad
    }

    /// Whether a field may have parts.
    pub(super) fn has_structures(self) -> bool {
        matches!(self, Self::Jsonl | Self::Parquet | Self::Arrow)
    }

    /// Whether the first row names the columns.
    pub(super) fn has_header(self) -> bool {
        matches!(self, Self::Csv | Self::Tsv)
    }
}

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At {
    /// The byte, from 0; of typed rows about how many there are before the group of the row.
    pub(super) offset: u64,
    /// The line, from 1; of typed rows and questions the row.
    pub(super) line: usize,
    /// Which of the rows that stand there, from 0: a paragraph has several questions.
    pub(super) nth: usize,
}

/// A row.
pub(crate) struct Raw {
    /// Where it begins.
    pub(super) at: At,
    pub(super) content: Content,
}

/// What a row has.
pub(crate) enum Content {
    /// A line without its end.
    Line(String),
    /// Fields whose quotes are read.
    Fields(Vec<String>),
    /// Bytes that are not UTF-8.
    NotText,
    /// Words and their tags.
    Words(Vec<String>, Vec<String>),
    /// Values that are no texts, and why.
    Wrong(String),
    /// A line that is no word with its tag.
    Unfit(Unfit),
    /// A question and its context.
    Question(Question, String),
}

/// The rows of a file from a place on.
pub(crate) enum RawRows {
    Lines(Lines),
    Csv(CsvRows),
    Sentences(Sentences),
    Typed(Box<TypedRows>),
    Questions(Questions),
}

impl RawRows {
    /// From the begin of the file on.
    pub(super) fn open(path: &Path, format: Format) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let mut first = Vec::new();
        let mark = BYTE_ORDER_MARK.len() as u64;
        (&mut file).take(mark).read_to_end(&mut first)?;
        let offset = match first == BYTE_ORDER_MARK {
            true => mark,
            false => 0,
        };
        Self::of(
            file,
            format,
            At {
                offset,
                line: 1,
                nth: 0,
            },
        )
    }

    /// From a place on at which a row begins; of typed rows from the first row.
    pub(super) fn open_at(path: &Path, format: Format, at: At) -> io::Result<Self> {
        Self::of(File::open(path)?, format, at)
    }

    fn of(mut file: File, format: Format, at: At) -> io::Result<Self> {
        file.seek(SeekFrom::Start(at.offset))?;
        let input = Limited::of;
        Ok(match format {
            Format::Csv => Self::Csv(CsvRows::of(input(file), at)),
            Format::Tsv | Format::Jsonl | Format::Text => {
                Self::Lines(Lines::of(input(file), at, format == Format::Tsv))
            }
            Format::Conll => Self::Sentences(Sentences {
                lines: Lines::of(input(file), at, true),
                reader: LineReader::default(),
            }),
            Format::Parquet => Self::Typed(Box::new(TypedRows::parquet(file)?)),
            Format::Arrow => Self::Typed(Box::new(TypedRows::arrow(file)?)),
            Format::Squad => Self::Questions(Questions::of(file, at)),
        })
    }

    /// The next row.
    pub(super) fn next(&mut self) -> io::Result<Option<Raw>> {
        match self {
            Self::Lines(lines) => lines.next(),
            Self::Csv(rows) => rows.next(),
            Self::Sentences(rows) => rows.next(),
            Self::Questions(rows) => rows.next(),
            Self::Typed(rows) => {
                let at = place(rows);
                let fields = rows.next()?;
                Ok(fields.map(|fields| Raw {
                    at,
                    content: fields.map_or_else(Content::Wrong, Content::Fields),
                }))
            }
        }
    }

    /// Where the row after the one that was read begins.
    pub(super) fn here(&self) -> At {
        match self {
            Self::Lines(lines) => lines.waiting.front().map_or(lines.next, |raw| raw.at),
            Self::Csv(rows) => rows.here(),
            Self::Sentences(rows) => rows.lines.next,
            Self::Questions(rows) => rows.here(),
            Self::Typed(rows) => place(rows),
        }
    }
}

fn place(rows: &TypedRows) -> At {
    let (row, offset) = rows.here();
    At {
        offset,
        line: row + 1,
        nth: 0,
    }
}

/// A file of which so many bytes may still be read.
pub(super) struct Limited {
    file: File,
    left: usize,
}

impl Limited {
    pub(super) fn of(file: File) -> Self {
        Self {
            file,
            left: LONGEST_ROW,
        }
    }

    /// So many bytes may be read from here on.
    pub(super) fn allow(&mut self, bytes: usize) {
        self.left = bytes;
    }

    pub(super) fn file(&mut self) -> &mut File {
        &mut self.file
    }
}

impl Read for Limited {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            let most = LONGEST_ROW >> 20;
            let reason = format!("a row is longer than {most} MiB: perhaps a quote is not closed");
            return Err(io::Error::other(reason));
        }
        let most = buffer.len().min(self.left);
        let read = self.file.read(&mut buffer[..most])?;
        self.left -= read;
        Ok(read)
    }
}

/// The lines of a file.
pub(crate) struct Lines {
    reader: BufReader<Limited>,
    next: At,
    /// Whether an empty line is a row, unless only empty ones follow.
    with_blank: bool,
    /// What was read ahead: empty lines and the row after them.
    waiting: VecDeque<Raw>,
}

impl Lines {
    fn of(input: Limited, next: At, with_blank: bool) -> Self {
        Self {
            reader: BufReader::new(input),
            next,
            with_blank,
            waiting: VecDeque::new(),
        }
    }

    fn next(&mut self) -> io::Result<Option<Raw>> {
        if let Some(raw) = self.waiting.pop_front() {
            return Ok(Some(raw));
        }
        while let Some(raw) = self.line()? {
            let is_blank = match &raw.content {
                Content::Line(line) if self.with_blank => line.is_empty(),
                Content::Line(line) => line.trim().is_empty(),
                _ => false,
            };
            match (is_blank, self.with_blank) {
                (true, true) => self.waiting.push_back(raw),
                (true, false) => {}
                (false, _) => {
                    self.waiting.push_back(raw);
                    return Ok(self.waiting.pop_front());
                }
            }
        }
        self.waiting.clear();
        Ok(None)
    }

    fn line(&mut self) -> io::Result<Option<Raw>> {
        self.reader.get_mut().allow(LONGEST_ROW);
        let mut bytes = Vec::new();
        let read = self.reader.read_until(b'\n', &mut bytes)?;
        if read == 0 {
            return Ok(None);
        }
        let at = self.next;
        self.next = At {
            offset: at.offset + read as u64,
            line: at.line + 1,
            nth: 0,
        };
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
            if bytes.last() == Some(&b'\r') {
                bytes.pop();
            }
        }
        let content = String::from_utf8(bytes).map_or(Content::NotText, Content::Line);
        Ok(Some(Raw { at, content }))
    }
}

/// The sentences of a file of tagged words.
pub(crate) struct Sentences {
    lines: Lines,
    reader: LineReader,
}

impl Sentences {
    fn next(&mut self) -> io::Result<Option<Raw>> {
        let mut begin: Option<At> = None;
        let (mut words, mut tags) = (Vec::new(), Vec::new());
        while let Some(raw) = self.lines.line()? {
            let Content::Line(row) = &raw.content else {
                return Ok(Some(raw));
            };
            match self.reader.read(raw.at.line, row) {
                Ok(Line::End) if begin.is_some() => break,
                Ok(Line::End | Line::Comment) => {}
                Ok(Line::Word { word, tag, .. }) => {
                    let begin = begin.get_or_insert(raw.at).offset;
                    if self.lines.next.offset - begin > LONGEST_ROW as u64 {
                        let most = LONGEST_ROW >> 20;
                        let reason = format!(
                            "a sentence is longer than {most} MiB: an empty line ends a sentence"
                        );
                        return Err(io::Error::other(reason));
                    }
                    words.push(word.to_owned());
                    tags.push(tag.to_owned());
                }
                Err(unfit) => {
                    let content = Content::Unfit(unfit);
                    return Ok(Some(Raw { content, ..raw }));
                }
            }
        }
        let content = Content::Words(words, tags);
        Ok(begin.map(|at| Raw { at, content }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(rows: &mut RawRows) -> Vec<(u64, usize, String)> {
        let mut found = Vec::new();
        while let Some(raw) = rows.next().expect("it can be read") {
            let content = match raw.content {
                Content::Line(line) => line,
                Content::Fields(fields) => fields.join("|"),
                Content::Words(words, tags) => format!("{}|{}", words.join(" "), tags.join(" ")),
                Content::Question(..)
                | Content::NotText
                | Content::Wrong(_)
                | Content::Unfit(_) => "?".to_owned(),
            };
            found.push((raw.at.offset, raw.at.line, content));
        }
        found
    }

    #[test]
    fn reading_from_the_place_of_a_row_finds_the_rest() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rows");
        let content = b"\xef\xbb\xbfa,b\r\n\r\n\"x\r\n,y\",1\n\n\nlast,\xff\nend,2\n\n\n";
        std::fs::write(&path, content).expect("it can be written");
        for format in [Format::Csv, Format::Tsv, Format::Jsonl] {
            let whole = all(&mut RawRows::open(&path, format).expect("it opens"));
            assert!(whole.len() >= 4, "{format:?}: {whole:?}");
            assert_eq!(whole[0].0, 3, "{format:?}: after the byte order mark");
            for (at, row) in whole.iter().enumerate() {
                let place = At {
                    offset: row.0,
                    line: row.1,
                    nth: 0,
                };
                let mut rest = RawRows::open_at(&path, format, place).expect("it opens");
                assert_eq!(all(&mut rest), whole[at..], "{format:?} from {place:?}");
            }
        }
        let csv = all(&mut RawRows::open(&path, Format::Csv).expect("it opens"));
        let rows: Vec<&str> = csv.iter().map(|row| row.2.as_str()).collect();
        assert_eq!(rows, ["a|b", "x\r\n,y|1", "?", "end|2"]);
        let tsv = all(&mut RawRows::open(&path, Format::Tsv).expect("it opens"));
        let last = tsv.last().expect("rows");
        assert_eq!((last.1, last.2.as_str()), (8, "end,2"), "{tsv:?}");
        assert_eq!(tsv[1].2, "", "an empty line between rows is a row");
    }
}

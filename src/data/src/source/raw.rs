//! [`Raw`]: a row as it stands in a file, before its columns mean something; and [`Limited`]: the bytes that rows are read
//! from.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};

use super::conll::Unfit;
use super::squad::Question;
use super::values::Value;

/// The most bytes of a row of a stream. A quote that is not closed would otherwise make a row of the rest of the file.
pub(super) const LONGEST_ROW: usize = 64 << 20;

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
    /// Whether the number of a row, or its line, leads to it in the file.
    pub(super) fn has_lines(self) -> bool {
        self != Self::Squad
    }

    /// Whether a field may have parts.
    pub(super) fn has_structures(self) -> bool {
        self == Self::Jsonl || self.is_typed()
    }

    /// Whether values have types.
    pub(super) fn is_typed(self) -> bool {
        matches!(self, Self::Parquet | Self::Arrow)
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

impl At {
    /// The first row of a line.
    pub(super) fn line(offset: u64, line: usize) -> Self {
        Self {
            offset,
            line,
            nth: 0,
        }
    }
}

/// A row.
pub(super) struct Raw {
    /// Where it begins.
    pub(super) at: At,
    pub(super) content: Content,
}

/// What a row has.
pub(super) enum Content {
    /// A line without its end.
    Line(String),
    /// Fields whose quotes are read.
    Fields(Vec<String>),
    /// Bytes that are not UTF-8.
    NotText,
    /// Words and their tags.
    Words(Vec<String>, Vec<String>),
    /// The typed values of the columns that are wanted.
    Values(Vec<Value>),
    /// It cannot be read, and why.
    Wrong(String),
    /// A line that is no word with its tag.
    Unfit(Unfit),
    /// A question and its context.
    Question(Question, String),
}

/// Bytes that can be read from any place on: those of a file, or of a text in memory.
pub(super) trait Bytes: Read + Seek + Send {}

impl<T: Read + Seek + Send> Bytes for T {}

/// Bytes of which a row has a limited number.
pub(super) struct Limited {
    bytes: Box<dyn Bytes>,
    max_row_bytes: usize,
    /// How many may still be read for the present row.
    left: usize,
}

impl Limited {
    /// Those of a file. A row of it has to fit into memory.
    pub(super) fn of_file(file: File) -> Self {
        Self::new(Box::new(file), LONGEST_ROW)
    }

    /// Those of a text that is in memory, whatever its rows are.
    pub(super) fn of_text(text: String) -> Self {
        Self::new(Box::new(Cursor::new(text.into_bytes())), usize::MAX)
    }

    fn new(bytes: Box<dyn Bytes>, max_row_bytes: usize) -> Self {
        Self {
            bytes,
            max_row_bytes,
            left: max_row_bytes,
        }
    }

    /// A row is read from here on.
    pub(super) fn begin_row(&mut self) {
        self.left = self.max_row_bytes;
    }

    /// Whether a row may have this many bytes.
    pub(super) fn is_row(&self, bytes: u64) -> bool {
        bytes <= self.max_row_bytes as u64
    }

    /// All of them, without the limit.
    pub(super) fn whole(&mut self) -> &mut dyn Bytes {
        &mut *self.bytes
    }

    /// Whether none are left.
    pub(super) fn is_at_end(&mut self) -> io::Result<bool> {
        let here = self.bytes.stream_position()?;
        let end = self.bytes.seek(SeekFrom::End(0))?;
        self.bytes.seek(SeekFrom::Start(here))?;
        Ok(here == end)
    }
}

impl Read for Limited {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            let most = self.max_row_bytes >> 20;
            let reason = format!("a row is longer than {most} MiB: perhaps a quote is not closed");
            return Err(io::Error::other(reason));
        }
        let most = buffer.len().min(self.left);
        let read = self.bytes.read(&mut buffer[..most])?;
        self.left -= read;
        Ok(read)
    }
}

//! The rows of a file as they stand in it, one after the other, with the byte and the line at which each begins. Only the
//! row that is read is in memory.

use std::fs::File;
use std::io::{self, Read, SeekFrom};
use std::path::Path;

use super::columnar::TypedRows;
use super::conll::Sentences;
use super::csv::{self, CsvRows};
use super::lines::Lines;
use super::raw::{At, Content, Format, Limited, Raw};
use super::squad_rows::Questions;
use super::{arrow, parquet};

/// What some editors write before UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The rows of a file from a place on.
pub(super) enum RawRows {
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
        if format.is_typed() {
            return Self::typed(file, format, false);
        }
        let mut first = Vec::new();
        let mark = BYTE_ORDER_MARK.len() as u64;
        (&mut file).take(mark).read_to_end(&mut first)?;
        let offset = match first == BYTE_ORDER_MARK {
            true => mark,
            false => 0,
        };
        Self::of(Limited::of_file(file), format, At::line(offset, 1))
    }

    /// From a place on at which a row begins; not of typed rows.
    pub(super) fn open_at(path: &Path, format: Format, at: At) -> io::Result<Self> {
        Self::of(Limited::of_file(File::open(path)?), format, at)
    }

    /// Those of a text in memory, whose first line has this number.
    pub(super) fn of_text(text: String, format: Format, first: usize) -> io::Result<Self> {
        Self::of(Limited::of_text(text), format, At::line(0, first))
    }

    /// Typed rows from the first on. `all_in_memory`: whether all rows are kept, else only the one that is read.
    pub(super) fn typed(file: File, format: Format, all_in_memory: bool) -> io::Result<Self> {
        let look_through = match format {
            Format::Arrow => arrow::look_through,
            _ => parquet::look_through,
        };
        let rows = TypedRows::of(file, look_through, all_in_memory)?;
        Ok(Self::Typed(Box::new(rows)))
    }

    fn of(mut input: Limited, format: Format, at: At) -> io::Result<Self> {
        let separator = match format {
            Format::Csv => csv::separator(&mut input)?,
            _ => b'\t',
        };
        input.whole().seek(SeekFrom::Start(at.offset))?;
        Ok(match format {
            Format::Csv => Self::Csv(CsvRows::of(input, at, separator)),
            Format::Tsv | Format::Jsonl | Format::Text => {
                Self::Lines(Lines::of(input, at, format == Format::Tsv))
            }
            Format::Conll => Self::Sentences(Sentences::of(input, at)),
            // Typed rows are opened by `typed`.
            Format::Squad | Format::Parquet | Format::Arrow => {
                Self::Questions(Questions::of(input, at))
            }
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
                let values = rows.next()?;
                Ok(values.map(|values| Raw {
                    at,
                    content: values.map_or_else(Content::Wrong, Content::Values),
                }))
            }
        }
    }

    /// Where the row after the one that was read begins.
    pub(super) fn here(&self) -> At {
        match self {
            Self::Lines(lines) => lines.here(),
            Self::Csv(rows) => rows.here(),
            Self::Sentences(rows) => rows.here(),
            Self::Questions(rows) => rows.here(),
            Self::Typed(rows) => place(rows),
        }
    }

    /// The line that could not be read, where the row after the one that was read begins at `begun`.
    pub(super) fn failed_line(&self, begun: At) -> Option<usize> {
        match self {
            Self::Questions(rows) => rows.line_of_text(),
            _ => Some(begun.line),
        }
    }
}

fn place(rows: &TypedRows) -> At {
    let (row, offset) = rows.here();
    At::line(offset, row + 1)
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
                _ => "?".to_owned(),
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
                let place = At::line(row.0, row.1);
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

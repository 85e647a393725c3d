//! Rows of files whose columns have types, from any row on, for a stream: Parquet's row groups, Arrow's batches.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::records::{Records, Value};

/// The most bytes of a text: few bytes of a file may stand for many.
const LONGEST: usize = 64 << 20;

/// The fields of a row, empty where a column is not wanted, or what is wrong with it.
pub(crate) type Fields = std::result::Result<Vec<String>, String>;

/// A file and the columns that are wanted of it. It is read once, however often its rows are.
pub(crate) trait TypedFile: Send + Sync {
    /// What the file says about its rows.
    fn records(&self) -> &Records;

    /// The rows from one on.
    ///
    /// # Errors
    /// What the system says of the file.
    fn rows(&self, path: &Path, first: usize) -> io::Result<Box<dyn TypedRows>>;
}

/// What the values of a column are read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadAs {
    /// A text each.
    Text,
    /// A list of texts where a row has one, as JSON.
    List,
    /// The answers of SQuAD, as JSON.
    Answers,
}

/// The rows of an open file.
pub(crate) trait TypedRows {
    /// What the file says about its rows.
    fn records(&self) -> &Records;

    /// Chooses columns.
    ///
    /// # Errors
    /// Why the columns cannot be read.
    fn select(&mut self, columns: &[(usize, ReadAs)]) -> io::Result<Arc<dyn TypedFile>>;

    /// The number of the next row, from 0, and about how many bytes of the file stand before it.
    fn here(&self) -> (usize, u64);

    /// The fields of the next row.
    ///
    /// # Errors
    /// Why the file cannot be read.
    fn next(&mut self) -> io::Result<Option<Fields>>;
}

/// Where the parts of a file begin, groups or batches: the first row of each, and the number of all rows.
pub(super) struct Starts(Vec<usize>);

impl Starts {
    /// Of parts with so many rows each; `None` for more than can be counted, or for a part that does not say.
    pub(super) fn of(parts: impl IntoIterator<Item = Option<usize>>) -> Option<Self> {
        let mut starts = vec![0_usize];
        for rows in parts {
            starts.push(starts.last()?.checked_add(rows?)?);
        }
        Some(Self(starts))
    }

    /// How many rows there are.
    pub(super) fn rows(&self) -> usize {
        self.0.last().copied().unwrap_or(0)
    }

    /// The part that a row is in, the number of parts behind the last row. Some parts have no row.
    pub(super) fn part_of(&self, row: usize) -> usize {
        self.0.partition_point(|&start| start <= row) - 1
    }

    /// The rows of a part.
    pub(super) fn rows_of(&self, part: usize) -> Range<usize> {
        self.0[part]..self.0[part + 1]
    }
}

impl Records {
    /// The names of the columns.
    pub(crate) fn header(&self) -> Vec<String> {
        self.columns.iter().map(|it| it.name.clone()).collect()
    }

    /// The classes that the file names for a column, in their order.
    pub(crate) fn class_names(&self, column: &str) -> Option<&[String]> {
        self.names.get(column).map(Vec::as_slice)
    }

    /// A value as the field of a row; or why it is none.
    pub(super) fn field(
        &self,
        column: usize,
        read_as: ReadAs,
        value: &Value,
    ) -> std::result::Result<String, String> {
        let text = match read_as {
            ReadAs::Text => self.text(column, value),
            ReadAs::List => self.json_of(column, value),
            ReadAs::Answers => self.answers_as_json(column, value),
        }?;
        match text.len() > LONGEST {
            true => {
                let (name, most) = (&self.columns[column].name, LONGEST >> 20);
                Err(format!("`{name}` is longer than {most} MiB"))
            }
            false => Ok(text),
        }
    }
}

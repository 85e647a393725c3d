//! Rows of files whose columns have types. Parquet's row groups and Arrow's batches are both read as record batches of
//! Arrow, by one interface: [`ColumnarFile`]. Its rows go into memory as a whole ([`WholeFile`]), or, for a stream, one by one
//! from any row on ([`TypedRows`]).

use std::fs::File;
use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Field;
use stratoscope_diagnostics::Result;
use stratoscope_render::text;

use super::records::{RecordColumn, Records};
use super::values::{Value, is_nested, unreadable_kind, value};
use super::{LARGEST_FILE_BYTES, Reading, files};
use crate::problem;

/// The most bytes of a text of a stream: few bytes of a file may stand for many.
const MAX_TEXT_BYTES: usize = 64 << 20;

/// What is read, or why it cannot be.
pub(super) type Read<T> = std::result::Result<T, String>;

/// The fields of a row, empty where a column is not wanted, or what is wrong with it.
pub(crate) type Fields = std::result::Result<Vec<String>, String>;

/// A file that was looked through: what it says about its rows, and where its parts begin, row groups or batches. It is
/// looked through once, however often its rows are read.
pub(super) trait ColumnarFile: Send + Sync {
    /// What the file says about its rows.
    fn records(&self) -> &Records;

    /// The rows of each part.
    fn starts(&self) -> &Starts;

    /// About how many bytes of the file stand before a part; after the last part, how many the file has.
    fn bytes_before(&self, part: usize) -> u64;

    /// How many bytes some columns take in memory, where the file says it; else 0.
    fn bytes_in_memory(&self, columns: &[usize]) -> u64;

    /// The rows of some columns, whose numbers ascend, from a row on.
    ///
    /// # Errors
    /// Why the file cannot be read.
    fn batches(
        self: Arc<Self>,
        file: File,
        columns: &[usize],
        first: usize,
    ) -> Read<Box<dyn Batches>>;
}

/// Record batches, one after the other, with an array for each column.
pub(super) trait Batches: Send {
    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// Why the file cannot be read.
    fn next(&mut self) -> Read<Option<RecordBatch>>;
}

/// Looks through an open file, for a call and a path that messages name.
pub(super) type LookThrough = fn(File, &'static str, &str) -> Read<Arc<dyn ColumnarFile>>;

/// Where the parts of a file begin: the first row of each, and the number of all rows.
pub(super) struct Starts(Vec<usize>);

impl Starts {
    /// Of parts with these numbers of rows; `None` for more than can be counted, or for a part that does not say.
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

/// What a column of a file is.
pub(super) fn column_of(field: &Field) -> RecordColumn {
    RecordColumn {
        name: field.name().clone(),
        is_nested: is_nested(field.data_type()),
        unreadable: unreadable_kind(field.data_type()),
    }
}

/// What a decoder makes of the bytes of a file. Not every damage is an error of the decoders of Arrow and Parquet: some are a
/// panic.
pub(super) fn decoded<T, E: std::fmt::Display>(
    decode: impl FnOnce() -> std::result::Result<T, E>,
    damaged: &str,
) -> Read<T> {
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => {
            let error = error.to_string();
            let reason = error.strip_prefix("Parquet error: ").unwrap_or(&error);
            Err(format!("{damaged}: {}", text::excerpt(reason, 200)))
        }
        Err(_) => Err(damaged.to_owned()),
    }
}

/// What is wrong with columns of more bytes, as they are in memory, than a file that is read may have.
pub(super) fn too_large() -> String {
    format!(
        "the columns that are needed hold more than {} GiB",
        LARGEST_FILE_BYTES >> 30
    )
}

/// The values of some columns, row by row.
struct Cursor {
    of: Arc<dyn ColumnarFile>,
    batches: Box<dyn Batches>,
    /// The array of each wanted column in a batch.
    arrays: Vec<usize>,
    batch: Option<RecordBatch>,
    /// The row of the batch that comes next.
    at: usize,
    /// The number of this row in the file, from 0.
    next: usize,
}

impl Cursor {
    fn open(of: Arc<dyn ColumnarFile>, file: File, wanted: &[usize], first: usize) -> Read<Self> {
        let records = of.records();
        for column in wanted.iter().map(|&column| &records.columns[column]) {
            if let Some(kind) = column.unreadable {
                return Err(format!("the column `{}`: {kind} are not read", column.name));
            }
        }
        let mut columns = wanted.to_vec();
        columns.sort_unstable();
        columns.dedup();
        let arrays = wanted.iter();
        let arrays = arrays.map(|column| columns.partition_point(|other| other < column));
        Ok(Self {
            arrays: arrays.collect(),
            batches: Arc::clone(&of).batches(file, &columns, first)?,
            of,
            batch: None,
            at: 0,
            next: first,
        })
    }

    /// The values of the next row in the order of the wanted columns.
    fn next(&mut self) -> Read<Option<Vec<Value>>> {
        if self.next >= self.of.starts().rows() {
            return Ok(None);
        }
        let batch = loop {
            match &self.batch {
                Some(batch) if self.at < batch.num_rows() => break batch,
                _ => {
                    let batch = self.batches.next()?;
                    let fewer = || "it is damaged: it has fewer rows than it says".to_owned();
                    self.batch = Some(batch.ok_or_else(fewer)?);
                    self.at = 0;
                }
            }
        };
        let arrays = self.arrays.iter().map(|&array| batch.column(array));
        let values = || Ok::<_, String>(arrays.map(|array| value(array, self.at)).collect());
        let values = decoded(values, "it is damaged")?;
        self.at += 1;
        self.next += 1;
        Ok(Some(values))
    }

    /// About how many bytes of the file stand before the next row.
    fn bytes_before(&self) -> u64 {
        bytes_before(&*self.of, self.next)
    }
}

/// About how many bytes of a file stand before a row.
fn bytes_before(file: &dyn ColumnarFile, row: usize) -> u64 {
    let starts = file.starts();
    let part = starts.part_of(row);
    let before = file.bytes_before(part);
    if row >= starts.rows() {
        return before;
    }
    let rows = starts.rows_of(part);
    let bytes = file.bytes_before(part + 1).saturating_sub(before) as f64;
    before + (bytes * (row - rows.start) as f64 / rows.len() as f64) as u64
}

/// A file that is read as a whole.
pub(super) struct WholeFile {
    of: Arc<dyn ColumnarFile>,
    file: File,
}

impl WholeFile {
    /// # Errors
    /// SC0911 for a file that cannot be read.
    pub(super) fn open(call: &'static str, path: &Path, look_through: LookThrough) -> Result<Self> {
        let source = path.display().to_string();
        let opened = || {
            let file = files::open(path)?;
            let again = file.try_clone().map_err(|error| error.to_string())?;
            Ok(Self {
                of: look_through(again, call, &source)?,
                file,
            })
        };
        opened().map_err(|reason: String| problem::unreadable(call, &source, None, reason))
    }

    /// What the file says about its rows.
    pub(super) fn records(&self) -> &Records {
        self.of.records()
    }

    /// Goes through all rows; `each` gets the number of the row, from 0, and its values in the order of `wanted`.
    ///
    /// # Errors
    /// SC0911 for a file that is damaged, SC0914 for one without rows, SC0520 after an interrupt; the error of `each`.
    pub(super) fn each(
        &self,
        wanted: &[usize],
        each: &mut dyn FnMut(usize, &[Value]) -> Result<()>,
    ) -> Result<()> {
        let records = self.records();
        if self.of.bytes_in_memory(wanted) > LARGEST_FILE_BYTES {
            return Err(records.unreadable(None, too_large()));
        }
        let starts = self.of.starts();
        if starts.rows() == 0 {
            return Err(problem::empty(&records.source, records.call));
        }
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let mut reading = Reading::begin(size(bytes_before(&*self.of, starts.rows())));
        let file = self.file.try_clone().map_err(|error| error.to_string());
        let cursor = file.and_then(|file| Cursor::open(Arc::clone(&self.of), file, wanted, 0));
        let mut cursor = cursor.map_err(|reason| records.unreadable(Some(0), reason))?;
        let mut bytes = 0_u64;
        loop {
            let row = cursor.next;
            reading.row(size(cursor.bytes_before()))?;
            let values = cursor.next();
            let values = values.map_err(|reason| records.unreadable(Some(row), reason))?;
            let Some(values) = values else { break };
            // Few bytes of a file may stand for many rows.
            bytes += values.iter().map(Value::size).sum::<u64>();
            if bytes > LARGEST_FILE_BYTES {
                return Err(records.unreadable(None, too_large()));
            }
            each(row, &values)?;
        }
        reading.finished();
        Ok(())
    }
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

/// A file and the columns that are wanted of it. It is looked through once, however often its rows are read.
#[derive(Clone)]
pub(crate) struct TypedFile {
    of: Arc<dyn ColumnarFile>,
    wanted: Arc<[(usize, ReadAs)]>,
}

impl TypedFile {
    /// What the file says about its rows.
    pub(crate) fn records(&self) -> &Records {
        self.of.records()
    }

    /// The rows from one on.
    ///
    /// # Errors
    /// What the system says of the file, or why it cannot be read.
    pub(crate) fn rows(&self, path: &Path, first: usize) -> io::Result<TypedRows> {
        let file = File::open(path)?;
        Ok(TypedRows {
            cursor: Some(self.cursor(file.try_clone()?, first)?),
            of: self.clone(),
            file,
        })
    }

    fn cursor(&self, file: File, first: usize) -> io::Result<Cursor> {
        let wanted: Vec<usize> = self.wanted.iter().map(|it| it.0).collect();
        Cursor::open(Arc::clone(&self.of), file, &wanted, first).map_err(io::Error::other)
    }
}

/// The rows of an open file.
pub(crate) struct TypedRows {
    file: File,
    of: TypedFile,
    /// `None` until columns are chosen.
    cursor: Option<Cursor>,
}

impl TypedRows {
    /// The rows of a Parquet file from the first on. Its columns are still to be chosen.
    ///
    /// # Errors
    /// Why it is no Parquet file.
    pub(crate) fn parquet(file: File) -> io::Result<Self> {
        Self::of(file, super::parquet::look_through, "Stream::parquet")
    }

    /// The rows of an Arrow file from the first on. Its columns are still to be chosen.
    ///
    /// # Errors
    /// Why it is no Arrow file, or what is damaged.
    pub(crate) fn arrow(file: File) -> io::Result<Self> {
        Self::of(file, super::arrow::look_through, "Stream::arrow")
    }

    fn of(file: File, look_through: LookThrough, call: &'static str) -> io::Result<Self> {
        let of = look_through(file.try_clone()?, call, "").map_err(io::Error::other)?;
        Ok(Self {
            file,
            of: TypedFile {
                of,
                wanted: Arc::new([]),
            },
            cursor: None,
        })
    }

    /// What the file says about its rows.
    pub(crate) fn records(&self) -> &Records {
        self.of.records()
    }

    /// Chooses columns; the rows begin again.
    ///
    /// # Errors
    /// Why the columns cannot be read.
    pub(crate) fn select(&mut self, columns: &[(usize, ReadAs)]) -> io::Result<TypedFile> {
        self.of.wanted = columns.into();
        self.cursor = Some(self.of.cursor(self.file.try_clone()?, 0)?);
        Ok(self.of.clone())
    }

    /// The number of the next row, from 0, and about how many bytes of the file stand before it.
    pub(crate) fn here(&self) -> (usize, u64) {
        let of_cursor = |cursor: &Cursor| (cursor.next, cursor.bytes_before());
        self.cursor.as_ref().map_or((0, 0), of_cursor)
    }

    /// The fields of the next row.
    ///
    /// # Errors
    /// Why the file cannot be read.
    pub(crate) fn next(&mut self) -> io::Result<Option<Fields>> {
        let Some(cursor) = &mut self.cursor else {
            return Ok(None);
        };
        let Some(values) = cursor.next().map_err(io::Error::other)? else {
            return Ok(None);
        };
        let records = self.of.records();
        let mut row = vec![String::new(); records.columns.len()];
        let mut fields = self.of.wanted.iter().zip(&values);
        let outcome = fields.try_for_each(|(&(column, read_as), value)| {
            row[column] = records.field(column, read_as, value)?;
            Ok(())
        });
        Ok(Some(outcome.map(|()| row)))
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
    fn field(&self, column: usize, read_as: ReadAs, value: &Value) -> Read<String> {
        let text = match read_as {
            ReadAs::Text => self.text(column, value),
            ReadAs::List => self.json_of(column, value),
            ReadAs::Answers => self.answers_as_json(column, value),
        }?;
        if text.len() > MAX_TEXT_BYTES {
            let (name, most) = (&self.columns[column].name, MAX_TEXT_BYTES >> 20);
            return Err(format!("`{name}` is longer than {most} MiB"));
        }
        Ok(text)
    }
}

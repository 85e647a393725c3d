//! Rows of files whose columns have types. Parquet's row groups and Arrow's batches are both read as record batches of
//! Arrow, by one interface: [`ColumnarFile`]. [`TypedRows`] reads them one by one from any row on.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Field;
use stratoscope_render::text;

use super::LARGEST_FILE_BYTES;
use super::records::{RecordColumn, Records};
use super::values::{Value, is_nested, unreadable_kind, value};

/// The most bytes of a value of a stream: few bytes of a file may stand for many.
const MAX_VALUE_BYTES: u64 = 64 << 20;

/// What is read, or why it cannot be.
pub(super) type Read<T> = std::result::Result<T, String>;

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

/// Looks through an open file.
pub(super) type LookThrough = fn(File) -> Read<Arc<dyn ColumnarFile>>;

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

/// What the values of a column are read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadAs {
    /// A text each.
    Text,
    /// A list of texts where a row has one, as JSON.
    List,
    /// The answers of SQuAD, as JSON.
    Answers,
}

/// A file and the columns that are wanted of it. It is looked through once, however often its rows are read.
#[derive(Clone)]
pub(super) struct TypedFile {
    of: Arc<dyn ColumnarFile>,
    wanted: Arc<[(usize, ReadAs)]>,
}

impl TypedFile {
    /// What the file says about its rows.
    pub(super) fn records(&self) -> &Records {
        self.of.records()
    }

    /// The fields of a row, empty where a column is not wanted; or what is wrong with its values.
    pub(super) fn fields(&self, values: &[Value]) -> Read<Vec<String>> {
        let records = self.records();
        let mut row = vec![String::new(); records.columns.len()];
        for (&(column, read_as), value) in self.wanted.iter().zip(values) {
            row[column] = match read_as {
                ReadAs::Text => records.text(column, value),
                ReadAs::List => records.json_of(column, value),
                ReadAs::Answers => records.answers_as_json(column, value),
            }?;
        }
        Ok(row)
    }

    /// The rows of a stream from one on.
    ///
    /// # Errors
    /// What the system says of the file, or why it cannot be read.
    pub(super) fn rows(&self, path: &Path, first: usize) -> io::Result<TypedRows> {
        let file = File::open(path)?;
        Ok(TypedRows {
            cursor: Some(self.cursor(file.try_clone()?, first)?),
            of: self.clone(),
            file,
            bytes: None,
        })
    }

    fn cursor(&self, file: File, first: usize) -> io::Result<Cursor> {
        let wanted: Vec<usize> = self.wanted.iter().map(|it| it.0).collect();
        Cursor::open(Arc::clone(&self.of), file, &wanted, first).map_err(io::Error::other)
    }
}

/// The rows of an open file.
pub(super) struct TypedRows {
    file: File,
    of: TypedFile,
    /// `None` until columns are chosen.
    cursor: Option<Cursor>,
    /// How many bytes the values had so far, where all rows are kept in memory.
    bytes: Option<u64>,
}

impl TypedRows {
    /// The rows of a file from the first on. Its columns are still to be chosen.
    ///
    /// # Errors
    /// Why it is no file of this format, or what is damaged.
    pub(super) fn of(
        file: File,
        look_through: LookThrough,
        all_in_memory: bool,
    ) -> io::Result<Self> {
        let of = look_through(file.try_clone()?).map_err(io::Error::other)?;
        Ok(Self {
            file,
            of: TypedFile {
                of,
                wanted: Arc::new([]),
            },
            cursor: None,
            bytes: all_in_memory.then_some(0),
        })
    }

    /// What the file says about its rows.
    pub(super) fn records(&self) -> &Records {
        self.of.records()
    }

    /// Chooses columns; the rows begin again.
    ///
    /// # Errors
    /// Why the columns cannot be read.
    pub(super) fn select(&mut self, columns: &[(usize, ReadAs)]) -> io::Result<TypedFile> {
        let numbers: Vec<usize> = columns.iter().map(|it| it.0).collect();
        let bytes = self.of.of.bytes_in_memory(&numbers);
        if self.bytes.is_some() && bytes > LARGEST_FILE_BYTES {
            return Err(io::Error::other(too_large()));
        }
        self.of.wanted = columns.into();
        self.cursor = Some(self.of.cursor(self.file.try_clone()?, 0)?);
        Ok(self.of.clone())
    }

    /// The number of the next row, from 0, and about how many bytes of the file stand before it.
    pub(super) fn here(&self) -> (usize, u64) {
        let of_cursor = |cursor: &Cursor| (cursor.next, cursor.bytes_before());
        self.cursor.as_ref().map_or((0, 0), of_cursor)
    }

    /// The values of the next row in the order of the columns that were chosen, or what is wrong with them.
    ///
    /// # Errors
    /// Why the file cannot be read.
    pub(super) fn next(&mut self) -> io::Result<Option<Read<Vec<Value>>>> {
        let Some(cursor) = &mut self.cursor else {
            return Ok(None);
        };
        let Some(values) = cursor.next().map_err(io::Error::other)? else {
            return Ok(None);
        };
        let sizes = values.iter().map(Value::size);
        if let Some(bytes) = &mut self.bytes {
            *bytes += sizes.sum::<u64>();
            return match *bytes > LARGEST_FILE_BYTES {
                true => Err(io::Error::other(too_large())),
                false => Ok(Some(Ok(values))),
            };
        }
        let mut wanted = self.of.wanted.iter().zip(sizes);
        Ok(Some(match wanted.find(|it| it.1 > MAX_VALUE_BYTES) {
            Some((&(column, _), _)) => {
                let name = &self.of.records().columns[column].name;
                let most = MAX_VALUE_BYTES >> 20;
                Err(format!("`{name}` is longer than {most} MiB"))
            }
            None => Ok(values),
        }))
    }
}

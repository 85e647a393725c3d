//! Arrow's IPC files: the stream format, which Hugging Face's `datasets` keeps its data in (`*.arrow`), and the file format,
//! which is Feather's second version (`*.feather`): a stream between a header and a footer.
//! Source: Apache Arrow, "Serialization and Interprocess Communication".

mod arrays;
mod batches;
mod body;
mod kind;
mod lz4;
mod messages;

use std::collections::HashMap;
use std::path::Path;

use polars_arrow_format::ipc::{Endianness, MessageHeaderRef, RecordBatchRef, SchemaRef};
use stratoscope_diagnostics::Result;

use self::arrays::{Cursor, Dictionaries};
use self::kind::Column;
use self::messages::Messages;
use super::records::{METADATA, RecordColumn, Records, Rows, Value, class_names};
use super::{Columns, LARGEST_FILE_BYTES, Reading, files};
use crate::dataset::Dataset;
use crate::problem;

const CALL: &str = "Dataset::arrow";

pub(crate) use self::batches::BatchRows;

/// What is read, or why it cannot be.
type Read<T> = std::result::Result<T, String>;

/// Why a file that says something impossible is not read.
fn damaged<T>() -> Read<T> {
    Err("it is a damaged Arrow file".to_owned())
}

/// What a part of a message says, if it is there.
fn said<T, E>(value: std::result::Result<Option<T>, E>) -> Read<T> {
    match value {
        Ok(Some(value)) => Ok(value),
        _ => damaged(),
    }
}

impl Dataset {
    /// Reads an Arrow file: one of the cache of Hugging Face's `datasets` or of its `save_to_disk` (the stream format), or a
    /// Feather file (the file format), compressed with LZ4 or zstd or not at all. What its columns are decides what is
    /// made, as with [`Self::parquet`]. In messages a row is a line, counted from 1.
    ///
    /// # Errors
    /// SC0911 if the file cannot be read, SC0313 for a missing column, SC0416 for rows without a label, SC0432 for an
    /// answer that does not stand where the file says, SC0914 if there is no row.
    pub fn arrow(path: impl AsRef<Path>) -> Result<Self> {
        files::read(CALL, path.as_ref(), |path| {
            let (records, mut rows) = open(path)?;
            records.dataset(&mut rows)
        })
    }

    /// [`Self::arrow`] of texts, with named columns.
    ///
    /// # Errors
    /// As [`Self::arrow`].
    pub fn arrow_with(path: impl AsRef<Path>, columns: &Columns) -> Result<Self> {
        files::read(CALL, path.as_ref(), |path| {
            let (records, mut rows) = open(path)?;
            records.table(&mut rows, columns)
        })
    }
}

/// The rows of an open file, which stands behind the message of its columns.
struct ArrowRows {
    messages: Messages,
    columns: Vec<Column>,
    dictionaries: Dictionaries,
    /// The rows that were read, and about what they take in memory.
    rows: usize,
    bytes: u64,
}

fn open(path: &Path) -> Result<(Records, ArrowRows)> {
    let source = path.display().to_string();
    let opened = Messages::open(path).and_then(|messages| begin(messages, CALL, &source));
    let (messages, columns, records) =
        opened.map_err(|reason| problem::unreadable(CALL, &source, None, reason))?;
    let rows = ArrowRows {
        messages,
        columns,
        dictionaries: Dictionaries::default(),
        rows: 0,
        bytes: 0,
    };
    Ok((records, rows))
}

/// Reads the message of the columns.
fn begin(
    mut messages: Messages,
    call: &'static str,
    source: &str,
) -> Read<(Messages, Vec<Column>, Records)> {
    let (columns, names) = match &messages.next()? {
        Some(message) => match message.header()? {
            MessageHeaderRef::Schema(schema) => schema_of(schema)?,
            _ => return damaged(),
        },
        None => return damaged(),
    };
    let of_column = |column: &Column| RecordColumn {
        name: column.name.clone(),
        is_nested: column.is_nested(),
    };
    let records = Records {
        names,
        call,
        columns: columns.iter().map(of_column).collect(),
        source: source.to_owned(),
    };
    Ok((messages, columns, records))
}

/// The names of the classes of a column, by its name.
type ClassNames = HashMap<String, Vec<String>>;

/// The columns, and the names of the classes that `datasets` has written.
fn schema_of(schema: SchemaRef<'_>) -> Read<(Vec<Column>, ClassNames)> {
    if !matches!(schema.endianness(), Ok(Endianness::Little)) {
        return Err("its numbers are big-endian: write it on a little-endian machine".to_owned());
    }
    let fields = said(schema.fields())?.iter();
    let columns = fields.map(|field| match field {
        Ok(field) => Column::of(field, 0),
        Err(_) => damaged(),
    });
    let columns = columns.collect::<Read<Vec<_>>>()?;
    let facts = schema.custom_metadata().unwrap_or(None);
    let facts = facts.into_iter().flat_map(|it| it.iter()).flatten();
    let facts = facts.filter(|fact| matches!(fact.key(), Ok(Some(METADATA))));
    let names = facts.filter_map(|fact| class_names(fact.value().ok()??));
    Ok((columns, names.flatten().collect()))
}

impl Rows for ArrowRows {
    fn each(
        &mut self,
        records: &Records,
        wanted: &[usize],
        each: &mut dyn FnMut(usize, &[Value]) -> Result<()>,
    ) -> Result<()> {
        let length = usize::try_from(self.messages.file_bytes()).unwrap_or(usize::MAX);
        let mut reading = Reading::begin(length);
        loop {
            let batch = self.next_batch(wanted);
            let batch = batch.map_err(|reason| records.unreadable(Some(self.rows), reason))?;
            let Some(batch) = batch else { break };
            let place = usize::try_from(self.messages.position()).unwrap_or(usize::MAX);
            for row in batch {
                reading.row(place)?;
                each(self.rows, &row)?;
                self.rows += 1;
            }
        }
        reading.finished();
        match self.rows {
            0 => Err(problem::empty(&records.source, CALL)),
            _ => Ok(()),
        }
    }
}

impl ArrowRows {
    /// The next rows, each with its values in the order of `wanted`; `None` at the end.
    fn next_batch(&mut self, wanted: &[usize]) -> Read<Option<Vec<Vec<Value>>>> {
        while let Some(message) = self.messages.next()? {
            match message.header()? {
                MessageHeaderRef::RecordBatch(batch) => {
                    let (columns, dictionaries) = (&self.columns, &self.dictionaries);
                    let batch = (batch, &message.body[..]);
                    let bytes = &mut self.bytes;
                    return rows_of(batch, (columns, wanted), dictionaries, bytes).map(Some);
                }
                MessageHeaderRef::DictionaryBatch(batch) => {
                    let (columns, batch) = (&self.columns, (batch, &message.body[..]));
                    let bytes = &mut self.bytes;
                    self.dictionaries.read(batch, (columns, wanted), bytes)?;
                }
                _ => return damaged(),
            }
        }
        Ok(None)
    }
}

/// The rows of a batch, each with its values in the order of `wanted`. Their bytes are counted.
fn rows_of(
    (batch, body): (RecordBatchRef<'_>, &[u8]),
    (columns, wanted): (&[Column], &[usize]),
    dictionaries: &Dictionaries,
    bytes: &mut u64,
) -> Read<Vec<Vec<Value>>> {
    let length = length_of(&batch)?;
    let mut cursor = Cursor::of(&batch, body, dictionaries)?;
    let mut found: Vec<(usize, Vec<Value>)> = Vec::with_capacity(wanted.len());
    for (at, column) in columns.iter().enumerate() {
        if !wanted.contains(&at) {
            cursor.skip(column)?;
            continue;
        }
        let named = |reason| format!("the column `{}`: {reason}", column.name);
        let values = cursor.values(column).map_err(named)?;
        if values.len() != length {
            return damaged();
        }
        count(bytes, &values)?;
        found.push((at, values));
    }
    let mut rows: Vec<Vec<Value>> = vec![Vec::new(); length];
    for &at in wanted {
        let column = found.iter_mut().find(|(column, _)| *column == at);
        let values = column.map(|(_, values)| std::mem::take(values));
        for (row, value) in rows.iter_mut().zip(values.unwrap_or_default()) {
            row.push(value);
        }
    }
    Ok(rows)
}

/// The rows that a batch says it has.
fn length_of(batch: &RecordBatchRef<'_>) -> Read<usize> {
    let length = batch.length().ok().and_then(|it| usize::try_from(it).ok());
    length.map_or_else(damaged, Ok)
}

/// Counts what is held: few bytes of a file may stand for many.
fn count(bytes: &mut u64, values: &[Value]) -> Read<()> {
    *bytes += values.iter().map(Value::size).sum::<u64>();
    match *bytes > LARGEST_FILE_BYTES {
        true => Err(too_large()),
        false => Ok(()),
    }
}

fn too_large() -> String {
    let most = LARGEST_FILE_BYTES >> 30;
    format!("the columns that are needed hold more than {most} GiB")
}

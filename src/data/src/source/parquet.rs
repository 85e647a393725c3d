//! Parquet files, as Hugging Face's `datasets` and pandas write them. Only the columns that are needed are read.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::schema::types::Type;
use stratoscope_diagnostics::Result;
use stratoscope_render::text;

use super::records::{METADATA, RecordColumn, Records, Rows, Value, class_names};
use super::{Columns, LARGEST_FILE_BYTES, Reading, files};
use crate::dataset::Dataset;
use crate::problem;

const CALL: &str = "Dataset::parquet";

impl Dataset {
    /// Reads a Parquet file, compressed with Snappy, gzip or zstd or not at all. What its columns are decides what is made:
    /// lists `tokens` and `ner_tags` are tagged words; `question`, `context` and `answers` are questions; else the
    /// columns of texts and labels have common names (see [`Columns`]). In messages a row is a line, counted from 1.
    ///
    /// # Errors
    /// SC0911 if the file cannot be read, SC0313 for a missing column, SC0416 for rows without a label, SC0432 for an
    /// answer that does not stand where the file says, SC0914 if there is no row.
    pub fn parquet(path: impl AsRef<Path>) -> Result<Self> {
        files::read(CALL, path.as_ref(), |path| {
            let (records, mut rows) = open(path)?;
            records.dataset(&mut rows)
        })
    }

    /// [`Self::parquet`] of texts, with named columns.
    ///
    /// # Errors
    /// As [`Self::parquet`].
    pub fn parquet_with(path: impl AsRef<Path>, columns: &Columns) -> Result<Self> {
        files::read(CALL, path.as_ref(), |path| {
            let (records, mut rows) = open(path)?;
            records.table(&mut rows, columns)
        })
    }
}

/// The rows of an open file.
struct ParquetRows {
    reader: SerializedFileReader<fs::File>,
    /// Its columns, as trees of types.
    columns: Vec<Arc<Type>>,
}

fn open(path: &Path) -> Result<(Records, ParquetRows)> {
    let source = path.display().to_string();
    let unreadable = |reason: String| problem::unreadable(CALL, &source, None, reason);
    let file = fs::File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let metadata = file.metadata();
    let metadata = metadata.map_err(|error| unreadable(error.to_string()))?;
    if !metadata.is_file() {
        let reason = "it is not a file: rows of Parquet are read from one file at a time";
        return Err(unreadable(reason.to_owned()));
    }
    let reader = begin(file).map_err(unreadable)?;
    let schema = reader.metadata().file_metadata().schema();
    let columns = schema.get_fields().to_vec();
    let records = records_of(reader.metadata(), source, CALL);
    Ok((records, ParquetRows { reader, columns }))
}

/// What is said of a file whose reader gives up.
pub(super) const DAMAGED: &str = "it is a damaged Parquet file";

/// What is wrong with columns of more than this many bytes, as they are in memory.
pub(super) fn larger_than(bytes: u64) -> String {
    format!(
        "the columns that are needed hold more than {} GiB",
        bytes >> 30
    )
}

/// Reads what a file says of itself, or says why it cannot be read.
pub(super) fn begin(file: fs::File) -> std::result::Result<SerializedFileReader<fs::File>, String> {
    // The reader maps no memory, but what it says of damaged files is not always an error.
    let reader = catch_unwind(AssertUnwindSafe(|| SerializedFileReader::new(file)));
    match reader {
        Ok(Ok(reader)) => Ok(reader),
        Ok(Err(error)) => Err(format!("it is no Parquet file: {}", reason_of(&error))),
        Err(_) => Err(DAMAGED.to_owned()),
    }
}

/// The columns of a file, and the names of its classes.
pub(super) fn records_of(
    metadata: &ParquetMetaData,
    source: String,
    call: &'static str,
) -> Records {
    let schema = metadata.file_metadata();
    let facts = schema.key_value_metadata().into_iter().flatten();
    let facts = facts.filter(|fact| fact.key == METADATA);
    let names = facts.filter_map(|fact| class_names(fact.value.as_deref()?));
    let columns = schema.schema().get_fields().iter();
    let columns = columns.map(|column| RecordColumn {
        name: column.name().to_owned(),
        is_nested: column.is_group(),
    });
    Records {
        names: names.flatten().collect(),
        source,
        call,
        columns: columns.collect(),
    }
}

impl Rows for ParquetRows {
    fn each(
        &mut self,
        records: &Records,
        wanted: &[usize],
        each: &mut dyn FnMut(usize, &[Value]) -> Result<()>,
    ) -> Result<()> {
        let metadata = self.reader.metadata();
        let groups = metadata.row_groups().iter();
        let roots = metadata.file_metadata().schema_descr();
        let chunks = groups.flat_map(|group| group.columns().iter().enumerate());
        let chunks = chunks.filter(|(leaf, _)| wanted.contains(&roots.get_column_root_idx(*leaf)));
        let bytes: u64 = chunks
            .map(|(_, chunk)| u64::try_from(chunk.uncompressed_size()).unwrap_or(u64::MAX))
            .fold(0, u64::saturating_add);
        if bytes > LARGEST_FILE_BYTES {
            return Err(records.unreadable(None, larger_than(LARGEST_FILE_BYTES)));
        }
        // A row of the projection has its fields in the order of the file.
        let mut places = wanted.to_vec();
        places.sort_unstable();
        let order = wanted
            .iter()
            .map(|it| places.partition_point(|other| other < it));
        let order: Vec<usize> = order.collect();
        let fields = places.iter().map(|&place| Arc::clone(&self.columns[place]));
        let projection = Type::group_type_builder(metadata.file_metadata().schema().name())
            .with_fields(fields.collect())
            .build();
        let damaged = |row| records.unreadable(row, DAMAGED);
        let rows = projection.and_then(|it| self.reader.get_row_iter(Some(it)));
        let mut rows = rows.map_err(|error| records.unreadable(None, reason_of(&error)))?;
        let mut reading = Reading::begin(usize::try_from(bytes).unwrap_or(usize::MAX));
        let (mut row, mut read) = (0, 0_u64);
        loop {
            reading.row(usize::try_from(read).unwrap_or(usize::MAX))?;
            let next = catch_unwind(AssertUnwindSafe(|| rows.next()));
            let fields = match next {
                Ok(None) => break,
                Ok(Some(Ok(fields))) => fields,
                Ok(Some(Err(error))) => {
                    return Err(records.unreadable(Some(row), reason_of(&error)));
                }
                Err(_) => return Err(damaged(Some(row))),
            };
            let values: Vec<Value> = fields.get_column_iter().map(|(_, it)| value(it)).collect();
            read += values.iter().map(Value::size).sum::<u64>();
            // Few bytes of a file may stand for many rows.
            if read > LARGEST_FILE_BYTES {
                return Err(records.unreadable(None, larger_than(LARGEST_FILE_BYTES)));
            }
            let ordered = order.iter();
            let ordered = ordered.map(|&at| values.get(at).cloned().unwrap_or(Value::Nothing));
            each(row, &ordered.collect::<Vec<_>>())?;
            row += 1;
        }
        reading.finished();
        match row {
            0 => Err(problem::empty(&records.source, CALL)),
            _ => Ok(()),
        }
    }
}

/// A value as all formats have it.
pub(super) fn value(field: &Field) -> Value {
    match field {
        Field::Null => Value::Nothing,
        Field::Str(text) => Value::Text(text.clone()),
        Field::Bytes(bytes) => Value::Bytes(bytes.data().to_vec()),
        Field::Byte(value) => Value::Integer((*value).into()),
        Field::Short(value) => Value::Integer((*value).into()),
        Field::Int(value) => Value::Integer((*value).into()),
        Field::Long(value) => Value::Integer(*value),
        Field::UByte(value) => Value::Integer((*value).into()),
        Field::UShort(value) => Value::Integer((*value).into()),
        Field::UInt(value) => Value::Integer((*value).into()),
        Field::ULong(value) => match i64::try_from(*value) {
            Ok(value) => Value::Integer(value),
            Err(_) => Value::Shown(value.to_string()),
        },
        Field::Bool(value) => Value::Shown(value.to_string()),
        Field::Float(value) => Value::Shown(value.to_string()),
        Field::Double(value) => Value::Shown(value.to_string()),
        Field::ListInternal(list) => Value::List(list.elements().iter().map(value).collect()),
        Field::Group(row) => {
            let parts = row.get_column_iter();
            let parts = parts.map(|(name, field)| (name.clone(), value(field)));
            Value::Structure(parts.collect())
        }
        Field::MapInternal(_) => Value::Structure(Vec::new()),
        other => Value::Shown(other.to_string()),
    }
}

/// What the reader says, without saying that it is about Parquet.
pub(super) fn reason_of(error: &parquet::errors::ParquetError) -> String {
    let reason = error.to_string();
    let reason = reason.strip_prefix("Parquet error: ").unwrap_or(&reason);
    text::excerpt(reason, 200)
}

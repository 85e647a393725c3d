//! Rows of a Parquet file from any row on, for a stream. Of a row group only the pages that hold the next rows are decoded;
//! pages before them are passed over by their headers.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{ConvertedType, Repetition};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::properties::ReaderProperties;
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedRowGroupReader;
use parquet::record::Field;
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor};

use super::parquet::{DAMAGED, begin, reason_of, records_of, value};
use super::records::{Records, Value};
use super::squad::PARTS;
use super::typed_rows::{Fields, ReadAs, Starts, TypedFile, TypedRows};

/// Rows that are decoded together.
const TOGETHER: usize = 256;
/// The most bytes of rows that are decoded together.
const MOST_TOGETHER: u64 = 1 << 30;

/// What is known of a file. It is read once, however often rows are.
struct Groups {
    metadata: ParquetMetaData,
    records: Records,
    starts: Starts,
    /// About how many bytes stand before each row group, and in all.
    bytes: Vec<u64>,
}

/// A column to read.
#[derive(Clone)]
struct Wanted {
    column: usize,
    read_as: ReadAs,
    /// Where its values stand, or each part of them; none: they are not what is wanted.
    leaves: Vec<usize>,
    /// Whether they are lists.
    is_list: bool,
}

/// From which level of definition on a leaf's list has an element, which may be null.
fn level_of_elements(schema: &SchemaDescriptor, leaf: usize) -> i16 {
    let (mut level, mut of_elements) = (0, 0);
    let mut fields = schema.root_schema().get_fields();
    for name in schema.column(leaf).path().parts() {
        let Some(field) = fields.iter().find(|field| field.name() == name) else {
            break;
        };
        let info = field.get_basic_info();
        if info.has_repetition() && info.repetition() != Repetition::REQUIRED {
            level += 1;
        }
        if info.has_repetition() && info.repetition() == Repetition::REPEATED {
            of_elements = level;
        }
        fields = match field.is_group() {
            true => field.get_fields(),
            false => break,
        };
    }
    of_elements
}

impl Wanted {
    /// Where the values of a column stand.
    fn of(schema: &SchemaDescriptor, (column, read_as): (usize, ReadAs)) -> Self {
        let leaves = 0..schema.num_columns();
        let leaves = leaves.filter(|&leaf| schema.get_column_root_idx(leaf) == column);
        let leaves: Vec<usize> = leaves.collect();
        let root = &schema.root_schema().get_fields()[column];
        let depth = |leaf: usize| schema.column(leaf).max_rep_level();
        let is_named = root.get_basic_info().converted_type() == ConvertedType::LIST;
        let (leaves, is_list) = match (&leaves[..], read_as) {
            // No structure: all of them may be missing.
            (&[only], ReadAs::Answers) if depth(only) == 0 && !root.is_group() => {
                (Some(vec![only]), false)
            }
            // Lists in a structure, or a list of structures.
            (_, ReadAs::Answers) => {
                let part = |name: &&str| {
                    let has_name = |&leaf: &usize| {
                        schema.column(leaf).path().parts()[1..].contains(&(*name).to_owned())
                    };
                    leaves
                        .iter()
                        .copied()
                        .filter(|&leaf| depth(leaf) == 1)
                        .find(has_name)
                };
                (PARTS.iter().map(part).collect(), true)
            }
            (&[only], _) if depth(only) == 0 && !root.is_group() => (Some(vec![only]), false),
            // The list, what is repeated, and its element.
            (&[only], ReadAs::List)
                if depth(only) == 1
                    && (is_named || !root.is_group())
                    && schema.column(only).path().parts().len() <= 3 =>
            {
                (Some(vec![only]), true)
            }
            _ => (None, false),
        };
        Self {
            column,
            read_as,
            leaves: leaves.unwrap_or_default(),
            is_list,
        }
    }
}

/// A file and the columns that are wanted of it.
#[derive(Clone)]
struct Selected {
    groups: Arc<Groups>,
    wanted: Arc<[Wanted]>,
}

/// The rows of an open file.
pub(crate) struct GroupRows {
    file: Arc<File>,
    of: Selected,
    /// The row group that is read, and the readers of each wanted column.
    open: Option<(usize, Vec<Vec<ColumnReader>>)>,
    waiting: VecDeque<Fields>,
    /// The number of the row that comes next, from 0.
    next: usize,
}

impl TypedFile for Selected {
    fn records(&self) -> &Records {
        &self.groups.records
    }

    fn rows(&self, path: &Path, first: usize) -> io::Result<Box<dyn TypedRows>> {
        Ok(Box::new(GroupRows {
            file: Arc::new(File::open(path)?),
            of: self.clone(),
            open: None,
            waiting: VecDeque::new(),
            next: first,
        }))
    }
}

impl GroupRows {
    /// The rows of a file from the first on. Its columns are still to be chosen.
    ///
    /// # Errors
    /// Why it is no Parquet file.
    pub(crate) fn of(file: File) -> io::Result<Self> {
        let reader = begin(file.try_clone()?).map_err(io::Error::other)?;
        let metadata = reader.metadata().clone();
        let rows = metadata.row_groups().iter();
        let starts = Starts::of(rows.map(|group| usize::try_from(group.num_rows()).ok()));
        let starts = starts.ok_or_else(|| io::Error::other(DAMAGED))?;
        let mut bytes = vec![0_u64];
        for group in metadata.row_groups() {
            let size = u64::try_from(group.compressed_size()).unwrap_or(0);
            bytes.push(
                bytes
                    .last()
                    .map_or(size, |before| before.saturating_add(size)),
            );
        }
        let records = records_of(&metadata, String::new(), "Stream::parquet");
        Ok(Self {
            file: Arc::new(file),
            of: Selected {
                groups: Arc::new(Groups {
                    metadata,
                    records,
                    starts,
                    bytes,
                }),
                wanted: Arc::new([]),
            },
            open: None,
            waiting: VecDeque::new(),
            next: 0,
        })
    }
}

impl TypedRows for GroupRows {
    fn records(&self) -> &Records {
        &self.of.groups.records
    }

    fn select(&mut self, columns: &[(usize, ReadAs)]) -> io::Result<Arc<dyn TypedFile>> {
        let schema = self.of.groups.metadata.file_metadata().schema_descr();
        let wanted = columns.iter().map(|&column| Wanted::of(schema, column));
        self.of.wanted = wanted.collect();
        Ok(Arc::new(self.of.clone()))
    }

    fn here(&self) -> (usize, u64) {
        let groups = &self.of.groups;
        (self.next, groups.bytes[groups.starts.part_of(self.next)])
    }

    fn next(&mut self) -> io::Result<Option<Fields>> {
        if self.waiting.is_empty() && !self.fill()? {
            return Ok(None);
        }
        self.next += 1;
        Ok(self.waiting.pop_front())
    }
}

impl GroupRows {
    /// Decodes the next rows; false at the end.
    fn fill(&mut self) -> io::Result<bool> {
        let groups = Arc::clone(&self.of.groups);
        if self.next >= groups.starts.rows() {
            return Ok(false);
        }
        // The decoder does not call every damage an error.
        let read = catch_unwind(AssertUnwindSafe(|| self.decode(&groups)));
        match read {
            Ok(Ok(rows)) if !rows.is_empty() => self.waiting.extend(rows),
            Ok(Err(error)) => return Err(io::Error::other(reason_of(&error))),
            _ => return Err(io::Error::other(DAMAGED)),
        }
        Ok(true)
    }

    fn decode(&mut self, groups: &Groups) -> Result<Vec<Fields>, ParquetError> {
        let group = groups.starts.part_of(self.next);
        if self.open.as_ref().is_none_or(|open| open.0 != group) {
            self.open = Some((group, self.readers(groups, group)?));
        }
        let count = TOGETHER.min(groups.starts.rows_of(group).end - self.next);
        let wanted = Arc::clone(&self.of.wanted);
        let header = groups.records.columns.len();
        let mut rows: Vec<Fields> = vec![Ok(vec![String::new(); header]); count];
        let readers = self.open.iter_mut().flat_map(|open| &mut open.1);
        for (wanted, readers) in wanted.iter().zip(readers) {
            let (column, read_as) = (wanted.column, wanted.read_as);
            if wanted.leaves.is_empty() {
                let reason = groups.records.unfit(column, read_as);
                return Err(ParquetError::General(reason));
            }
            let leaves = readers.iter_mut().zip(&wanted.leaves);
            let parts =
                leaves.map(|(reader, &leaf)| values(reader, groups, (leaf, wanted.is_list), count));
            let parts = parts.collect::<Result<Vec<Vec<Converted>>, ParquetError>>()?;
            if parts.iter().any(|values| values.len() != count) {
                return Err(ParquetError::General(DAMAGED.to_owned()));
            }
            for (row, value) in rows.iter_mut().zip(joined(parts, read_as)) {
                let field = value.and_then(|value| groups.records.field(column, read_as, &value));
                match (row.as_mut(), field) {
                    (Ok(_), Err(reason)) => *row = Err(reason),
                    (Ok(fields), Ok(field)) => fields[column] = field,
                    (Err(_), _) => {}
                }
            }
        }
        Ok(rows)
    }

    /// Readers of the wanted columns of a row group, at the next row.
    fn readers(
        &self,
        groups: &Groups,
        group: usize,
    ) -> Result<Vec<Vec<ColumnReader>>, ParquetError> {
        let reader = SerializedRowGroupReader::new(
            Arc::clone(&self.file),
            groups.metadata.row_group(group),
            groups.metadata.page_index_for_row_group(group),
            Arc::new(ReaderProperties::builder().build()),
        )?;
        let before = self.next - groups.starts.rows_of(group).start;
        let at_row = |&leaf: &usize| {
            let mut column = reader.get_column_reader(leaf)?;
            match skip(&mut column, before)? == before {
                true => Ok(column),
                false => Err(ParquetError::General(DAMAGED.to_owned())),
            }
        };
        let wanted = self.of.wanted.iter();
        wanted
            .map(|it| it.leaves.iter().map(at_row).collect())
            .collect()
    }
}

/// Passes over rows; how many there were.
fn skip(column: &mut ColumnReader, rows: usize) -> Result<usize, ParquetError> {
    match column {
        ColumnReader::BoolColumnReader(it) => it.skip_records(rows),
        ColumnReader::Int32ColumnReader(it) => it.skip_records(rows),
        ColumnReader::Int64ColumnReader(it) => it.skip_records(rows),
        ColumnReader::Int96ColumnReader(it) => it.skip_records(rows),
        ColumnReader::FloatColumnReader(it) => it.skip_records(rows),
        ColumnReader::DoubleColumnReader(it) => it.skip_records(rows),
        ColumnReader::ByteArrayColumnReader(it) => it.skip_records(rows),
        ColumnReader::FixedLenByteArrayColumnReader(it) => it.skip_records(rows),
    }
}

/// A value, or why it is none.
type Converted = std::result::Result<Value, String>;

/// The values of rows whose parts were read one after the other.
fn joined(parts: Vec<Vec<Converted>>, read_as: ReadAs) -> Vec<Converted> {
    let mut parts = parts.into_iter();
    match (read_as, parts.next(), parts.next()) {
        (ReadAs::Answers, Some(texts), Some(starts)) => {
            let rows = texts.into_iter().zip(starts);
            let row = |(text, start): (Converted, Converted)| {
                let [of_text, of_start] = PARTS.map(str::to_owned);
                Ok(Value::Structure(vec![(of_text, text?), (of_start, start?)]))
            };
            rows.map(row).collect()
        }
        (_, values, _) => values.unwrap_or_default(),
    }
}

/// The values of the next rows of a leaf of a column.
fn values(
    column: &mut ColumnReader,
    groups: &Groups,
    (leaf, is_list): (usize, bool),
    rows: usize,
) -> Result<Vec<Converted>, ParquetError> {
    let schema = groups.metadata.file_metadata().schema_descr();
    let of = schema.column(leaf);
    let plain = |field: Field| Ok(value(&field));
    let bytes = |data| match Field::convert_byte_array(&of, data) {
        Ok(field) => Ok(value(&field)),
        Err(error) => Err(reason_of(&error)),
    };
    let (of, elements) = (&of, level_of_elements(schema, leaf));
    let is_list = is_list.then_some(elements);
    match column {
        ColumnReader::BoolColumnReader(it) => each(it, of, is_list, rows, |value| {
            plain(Field::convert_bool(of, value))
        }),
        ColumnReader::Int32ColumnReader(it) => each(it, of, is_list, rows, |value| {
            plain(Field::convert_int32(of, value))
        }),
        ColumnReader::Int64ColumnReader(it) => each(it, of, is_list, rows, |value| {
            plain(Field::convert_int64(of, value))
        }),
        ColumnReader::Int96ColumnReader(it) => each(it, of, is_list, rows, |value| {
            plain(Field::convert_int96(of, value))
        }),
        ColumnReader::FloatColumnReader(it) => each(it, of, is_list, rows, |value| {
            plain(Field::convert_float(of, value))
        }),
        ColumnReader::DoubleColumnReader(it) => each(it, of, is_list, rows, |value| {
            plain(Field::convert_double(of, value))
        }),
        ColumnReader::ByteArrayColumnReader(it) => each(it, of, is_list, rows, bytes),
        ColumnReader::FixedLenByteArrayColumnReader(it) => {
            each(it, of, is_list, rows, |value| bytes(value.into()))
        }
    }
}

/// The values of the next rows of a column of a type: one a row, or a list, whose elements have this level of definition.
fn each<T: DataType>(
    column: &mut ColumnReaderImpl<T>,
    of: &ColumnDescPtr,
    elements: Option<i16>,
    rows: usize,
    convert: impl Fn(T::T) -> Converted,
) -> Result<Vec<Converted>, ParquetError> {
    let (mut defined, mut repeated, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let (found, _, levels) =
        column.read_records(rows, Some(&mut defined), Some(&mut repeated), &mut values)?;
    let mut values = values.into_iter();
    let mut bytes = 0;
    let mut convert = |value| -> Result<Converted, ParquetError> {
        let value = convert(value);
        bytes += value.as_ref().map_or(0, Value::size);
        match bytes > MOST_TOGETHER {
            true => Err(ParquetError::General(format!(
                "{TOGETHER} rows, which are decoded together, hold more than {} GiB",
                MOST_TOGETHER >> 30
            ))),
            false => Ok(value),
        }
    };
    // Levels are there only where a value may be missing.
    let mut at = |level: usize| match of.max_def_level() {
        0 => values.next(),
        most => (defined.get(level) == Some(&most))
            .then(|| values.next())
            .flatten(),
    };
    let Some(elements) = elements else {
        let one = |row| at(row).map_or(Ok(Ok(Value::Nothing)), &mut convert);
        return (0..found).map(one).collect();
    };
    let mut lists: Vec<std::result::Result<Vec<Value>, String>> = Vec::with_capacity(found);
    for level in 0..levels {
        if repeated.get(level).is_none_or(|&depth| depth == 0) {
            lists.push(Ok(Vec::new()));
        }
        let value = match at(level) {
            Some(value) => convert(value)?,
            // An element that is null; else the list has none.
            None if defined.get(level).is_some_and(|&it| it >= elements) => Ok(Value::Nothing),
            None => continue,
        };
        if let Some(list) = lists.last_mut() {
            match (value, list.as_mut()) {
                (Ok(value), Ok(list)) => list.push(value),
                (Err(reason), Ok(_)) => *list = Err(reason),
                (_, Err(_)) => {}
            }
        }
    }
    Ok(lists
        .into_iter()
        .map(|list| list.map(Value::List))
        .collect())
}

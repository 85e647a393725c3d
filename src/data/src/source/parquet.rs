//! Parquet files, as Hugging Face's `datasets`, pandas and polars write them. Only the columns that are needed are read, and
//! of these the pages that hold the rows: those before them are passed over by their headers.

use std::fs::File;
use std::sync::Arc;

use arrow_array::RecordBatch;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::ColumnChunkMetaData;

use super::columnar::{Batches, ColumnarFile, Read, Starts, column_of, decoded};
use super::records::{METADATA, Records, class_names};

/// Rows that are decoded together.
const BATCH_ROWS: usize = 256;
const DAMAGED: &str = "it is a damaged Parquet file";

/// A file whose metadata was read.
struct ParquetFile {
    metadata: ArrowReaderMetadata,
    records: Records,
    starts: Starts,
    /// How many bytes of chunks stand before each row group, and how many there are.
    bytes: Vec<u64>,
}

/// Reads what a file says of itself.
pub(super) fn look_through(file: File) -> Read<Arc<dyn ColumnarFile>> {
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    // The types of Parquet are enough. The description of Arrow's types that some writers add would have to be believed.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let metadata = decoded(
        || ArrowReaderMetadata::load(&file, options),
        "it is no Parquet file",
    )?;
    let groups = metadata.metadata().row_groups();
    let chunks = groups.iter().flat_map(|group| group.columns());
    if !chunks.clone().all(|chunk| is_in_file(chunk, length)) {
        return Err(DAMAGED.to_owned());
    }
    let rows = groups
        .iter()
        .map(|group| usize::try_from(group.num_rows()).ok());
    let starts = Starts::of(rows).ok_or(DAMAGED)?;
    let sizes = groups.iter().map(|group| group.columns());
    let sizes = sizes.map(|chunks| chunks.iter().map(|it| size(it.compressed_size())).sum());
    let mut bytes = vec![0_u64];
    bytes.extend(sizes.scan(0_u64, |before, size: u64| {
        *before = before.saturating_add(size);
        Some(*before)
    }));
    let of_file = metadata.metadata().file_metadata();
    let facts = of_file.key_value_metadata().into_iter().flatten();
    let facts = facts.filter(|fact| fact.key == METADATA);
    let names = facts.filter_map(|fact| class_names(fact.value.as_deref()?));
    let fields = metadata.schema().fields();
    // A structure without columns would shift the numbers of the columns after it.
    if fields.len() != of_file.schema().get_fields().len() {
        return Err(DAMAGED.to_owned());
    }
    let records = Records {
        names: names.flatten().collect(),
        columns: fields.iter().map(|field| column_of(field)).collect(),
    };
    Ok(Arc::new(ParquetFile {
        records,
        starts,
        bytes,
        metadata,
    }))
}

/// Whether a chunk stands where the file says: its bytes are asked for in memory.
fn is_in_file(chunk: &ColumnChunkMetaData, length: u64) -> bool {
    let first = chunk.dictionary_page_offset();
    let first = first.unwrap_or_else(|| chunk.data_page_offset());
    let (Ok(first), Ok(bytes)) = (u64::try_from(first), u64::try_from(chunk.compressed_size()))
    else {
        return false;
    };
    first.checked_add(bytes).is_some_and(|end| end <= length)
}

/// A size, which is no size if it is negative.
fn size(bytes: i64) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

impl ColumnarFile for ParquetFile {
    fn records(&self) -> &Records {
        &self.records
    }

    fn starts(&self) -> &Starts {
        &self.starts
    }

    fn bytes_before(&self, part: usize) -> u64 {
        self.bytes[part]
    }

    fn bytes_in_memory(&self, columns: &[usize]) -> u64 {
        let roots = self.metadata.parquet_schema();
        let groups = self.metadata.metadata().row_groups().iter();
        let chunks = groups.flat_map(|group| group.columns().iter().enumerate());
        let chunks = chunks.filter(|(leaf, _)| columns.contains(&roots.get_column_root_idx(*leaf)));
        let sizes = chunks.map(|(_, chunk)| size(chunk.uncompressed_size()));
        sizes.fold(0, u64::saturating_add)
    }

    fn batches(
        self: Arc<Self>,
        file: File,
        columns: &[usize],
        first: usize,
    ) -> Read<Box<dyn Batches>> {
        let groups = self.metadata.metadata().num_row_groups();
        let group = self.starts.part_of(first);
        let before = if group < groups {
            first - self.starts.rows_of(group).start
        } else {
            0
        };
        let reader = decoded(
            || {
                let metadata = self.metadata.clone();
                let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata);
                let roots = columns.iter().copied();
                let mask = ProjectionMask::roots(reader.parquet_schema(), roots);
                let reader = reader
                    .with_projection(mask)
                    .with_row_groups((group..groups).collect())
                    .with_batch_size(BATCH_ROWS);
                match before {
                    0 => reader.build(),
                    before => reader.with_offset(before).build(),
                }
            },
            DAMAGED,
        )?;
        Ok(Box::new(GroupBatches { reader }))
    }
}

/// The batches of the row groups from one on.
struct GroupBatches {
    reader: ParquetRecordBatchReader,
}

impl Batches for GroupBatches {
    fn next(&mut self) -> Read<Option<RecordBatch>> {
        decoded(|| self.reader.next().transpose(), DAMAGED)
    }
}

//! The batches of an Arrow file from any row on. Where each message begins is found once; of a batch all rows of the wanted
//! columns are decoded.

use std::collections::HashMap;
use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{read_dictionary, read_record_batch};
use arrow_ipc::{Endianness, MessageHeader, Schema, root_as_footer};
use arrow_schema::{DataType, Field, SchemaRef};

use super::check::checked;
use super::messages::{Message, Messages};
use super::{DAMAGED, damaged};
use crate::source::LARGEST_FILE_BYTES;
use crate::source::columnar::{Batches, ColumnarFile, Read, Starts, column_of, decoded, too_large};
use crate::source::records::{METADATA, Records, class_names};

/// The values of dictionaries, by the numbers that columns name them by.
type Dictionaries = HashMap<i64, ArrayRef>;

/// A file whose messages were found.
struct ArrowFile {
    schema: SchemaRef,
    records: Records,
    /// Where the message of each batch begins.
    batches: Vec<u64>,
    /// The same of dictionaries, with their numbers.
    dictionaries: Vec<(u64, i64)>,
    starts: Starts,
    bytes: u64,
    /// Dictionaries that begin before this byte are in force from the first batch on.
    first_batch: u64,
    /// Of these, those that a reader has asked for.
    first: Mutex<Dictionaries>,
}

/// Reads the columns of a file, and finds its messages.
pub(in crate::source) fn look_through(file: File) -> Read<Arc<dyn ColumnarFile>> {
    let mut messages = Messages::of(file)?;
    let places = match messages.footer()? {
        Some(footer) => Places::of_footer(&footer, &mut messages)?,
        None => Places::of_stream(&mut messages)?,
    };
    let Places {
        schema,
        batches,
        rows,
        dictionaries,
        first_batch,
    } = places;
    let names = schema.metadata().get(METADATA);
    let records = Records {
        names: names.and_then(|it| class_names(it)).unwrap_or_default(),
        columns: schema
            .fields()
            .iter()
            .map(|field| column_of(field))
            .collect(),
    };
    Ok(Arc::new(ArrowFile {
        records,
        schema,
        batches,
        dictionaries,
        starts: Starts::of(rows).ok_or(DAMAGED)?,
        first_batch,
        bytes: messages.file_bytes(),
        first: Mutex::default(),
    }))
}

/// Where the messages of a file begin, and what the columns are.
struct Places {
    schema: SchemaRef,
    batches: Vec<u64>,
    /// The rows of each batch.
    rows: Vec<Option<usize>>,
    /// With their numbers.
    dictionaries: Vec<(u64, i64)>,
    /// Dictionaries that begin before this byte are in force from the first batch on.
    first_batch: u64,
}

impl Places {
    fn new(schema: SchemaRef) -> Self {
        Self {
            schema,
            batches: Vec::new(),
            rows: Vec::new(),
            dictionaries: Vec::new(),
            first_batch: u64::MAX,
        }
    }

    /// In a stream the messages follow each other, the columns first.
    fn of_stream(messages: &mut Messages) -> Read<Self> {
        let Some(message) = messages.next_without_body()? else {
            return damaged();
        };
        let schema = message.root()?.header_as_schema().ok_or(DAMAGED)?;
        let mut places = Self::new(schema_of(schema)?);
        loop {
            let position = messages.position();
            let Some(message) = messages.next_without_body()? else {
                break;
            };
            places.add(position, &message)?;
        }
        places.first_batch = places.batches.first().copied().unwrap_or(u64::MAX);
        Ok(places)
    }

    /// In the file format dictionaries are not replaced, and may stand anywhere.
    fn of_footer(footer: &[u8], messages: &mut Messages) -> Read<Self> {
        let footer = root_as_footer(footer).or_else(|_| damaged())?;
        let mut places = Self::new(schema_of(footer.schema().ok_or(DAMAGED)?)?);
        let dictionaries = footer.dictionaries().into_iter().flatten();
        let batches = footer.recordBatches().into_iter().flatten();
        for block in dictionaries.chain(batches) {
            let position = u64::try_from(block.offset()).or_else(|_| damaged())?;
            places.add(position, &messages.at_without_body(position)?)?;
        }
        Ok(places)
    }

    fn add(&mut self, position: u64, message: &Message) -> Read<()> {
        let root = message.root()?;
        match root.header_type() {
            MessageHeader::RecordBatch => {
                let batch = root.header_as_record_batch();
                let length = batch.and_then(|it| usize::try_from(it.length()).ok());
                self.rows.push(length);
                self.batches.push(position);
            }
            MessageHeader::DictionaryBatch => {
                let batch = root.header_as_dictionary_batch().ok_or(DAMAGED)?;
                self.dictionaries.push((position, batch.id()));
            }
            _ => return damaged(),
        }
        Ok(())
    }
}

/// The columns that a file describes.
fn schema_of(schema: Schema<'_>) -> Read<SchemaRef> {
    if schema.endianness() != Endianness::Little {
        return Err("its numbers are big-endian: write it on a little-endian machine".to_owned());
    }
    decoded(|| try_fb_to_schema(schema), DAMAGED).map(Arc::new)
}

impl ColumnarFile for ArrowFile {
    fn records(&self) -> &Records {
        &self.records
    }

    fn starts(&self) -> &Starts {
        &self.starts
    }

    fn bytes_before(&self, part: usize) -> u64 {
        self.batches.get(part).copied().unwrap_or(self.bytes)
    }

    /// Compressed buffers say it, each by itself.
    fn bytes_in_memory(&self, _columns: &[usize]) -> u64 {
        0
    }

    fn batches(
        self: Arc<Self>,
        file: File,
        columns: &[usize],
        first: usize,
    ) -> Read<Box<dyn Batches>> {
        let part = self.starts.part_of(first);
        let before = self.batches.get(part).map(|_| self.starts.rows_of(part));
        let mut reader = FileBatches {
            messages: Messages::known(file)?,
            columns: columns.to_vec(),
            wanted: Vec::new(),
            dictionaries: Dictionaries::new(),
            bytes_of_dictionaries: 0,
            done: self.first_batch,
            next: part,
            skipped: before.map_or(0, |rows| first - rows.start),
            of: Arc::clone(&self),
        };
        for &column in columns {
            dictionaries_of(self.schema.field(column), &mut reader.wanted);
        }
        reader.read_first_dictionaries()?;
        Ok(Box::new(reader))
    }
}

/// The numbers of the dictionaries of a column, those within another one before it.
fn dictionaries_of(field: &Field, found: &mut Vec<i64>) {
    of_type(field.data_type(), found);
    // `arrow-ipc` keeps the number in the field, and offers it in no other way.
    #[expect(deprecated)]
    found.extend(field.dict_id());

    fn of_type(kind: &DataType, found: &mut Vec<i64>) {
        match kind {
            DataType::Dictionary(_, values) => of_type(values, found),
            DataType::List(of) | DataType::LargeList(of) | DataType::FixedSizeList(of, _) => {
                dictionaries_of(of, found);
            }
            DataType::Struct(parts) => parts.iter().for_each(|it| dictionaries_of(it, found)),
            // Other columns have no dictionary, or are not read.
            _ => {}
        }
    }
}

/// The batches of a file from one on.
struct FileBatches {
    messages: Messages,
    of: Arc<ArrowFile>,
    columns: Vec<usize>,
    /// The numbers of the dictionaries of these columns.
    wanted: Vec<i64>,
    /// Their values at the next batch: a later message may replace them, or add to them.
    dictionaries: Dictionaries,
    bytes_of_dictionaries: u64,
    /// Dictionaries that begin before this byte have been read.
    done: u64,
    /// The next batch, and the rows at its begin that are not wanted.
    next: usize,
    skipped: usize,
}

impl FileBatches {
    /// Reads the dictionaries that stand before all batches, unless another reader has.
    fn read_first_dictionaries(&mut self) -> Read<()> {
        let of = Arc::clone(&self.of);
        let mut first = of.first.lock().unwrap_or_else(PoisonError::into_inner);
        for number in self.wanted.clone() {
            if !first.contains_key(&number) {
                // Put there as a whole, so that what is damaged is not taken for read.
                let mut whole = first.clone();
                let (places, end) = (of.dictionaries.iter(), self.done);
                for &(place, _) in places.filter(|it| it.1 == number && it.0 < end) {
                    self.read_dictionary(place, &mut whole)?;
                }
                *first = whole;
            }
        }
        let mine = self.wanted.iter();
        let mine = mine.filter_map(|number| Some((*number, Arc::clone(first.get(number)?))));
        self.dictionaries = mine.collect();
        Ok(())
    }

    fn read_dictionary(&mut self, place: u64, dictionaries: &mut Dictionaries) -> Read<()> {
        let Message { description, body } = self.messages.at(place)?;
        let root = Message::root_of(&description)?;
        let batch = root.header_as_dictionary_batch().ok_or(DAMAGED)?;
        let bytes = checked(&batch.data().ok_or(DAMAGED)?, &body)?;
        self.bytes_of_dictionaries = self.bytes_of_dictionaries.saturating_add(bytes);
        if self.bytes_of_dictionaries > LARGEST_FILE_BYTES {
            return Err(too_large());
        }
        let (body, schema) = (body.into(), &self.of.schema);
        let read = || read_dictionary(&body, batch, schema, dictionaries, &root.version());
        decoded(read, DAMAGED)
    }

    /// Reads the dictionaries that stand before a batch, after those before all of them.
    fn read_dictionaries_before(&mut self, place: u64) -> Read<()> {
        let of = Arc::clone(&self.of);
        let between = self.done..place;
        let new = of.dictionaries.iter();
        for (place, number) in new.filter(|it| between.contains(&it.0)) {
            if self.wanted.contains(number) {
                let mut dictionaries = std::mem::take(&mut self.dictionaries);
                self.read_dictionary(*place, &mut dictionaries)?;
                self.dictionaries = dictionaries;
            }
        }
        self.done = self.done.max(place);
        Ok(())
    }
}

impl Batches for FileBatches {
    fn next(&mut self) -> Read<Option<RecordBatch>> {
        let of = Arc::clone(&self.of);
        let Some(&place) = of.batches.get(self.next) else {
            return Ok(None);
        };
        self.read_dictionaries_before(place)?;
        let Message { description, body } = self.messages.at(place)?;
        let root = Message::root_of(&description)?;
        let batch = root.header_as_record_batch().ok_or(DAMAGED)?;
        checked(&batch, &body)?;
        let (body, columns) = (body.into(), Some(&self.columns[..]));
        let (schema, known) = (Arc::clone(&of.schema), &self.dictionaries);
        let read = || read_record_batch(&body, batch, schema, known, columns, &root.version());
        let rows = decoded(read, DAMAGED)?;
        if rows.num_rows() != of.starts.rows_of(self.next).len() {
            return damaged();
        }
        let skipped = std::mem::take(&mut self.skipped);
        self.next += 1;
        Ok(Some(rows.slice(skipped, rows.num_rows() - skipped)))
    }
}

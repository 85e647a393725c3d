//! Rows of an Arrow file from any row on, for a stream. Where each batch begins is read from its description once; of a
//! batch all rows of the wanted columns are decoded.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use polars_arrow_format::ipc::MessageHeaderRef;

use super::arrays::Dictionaries;
use super::kind::Column;
use super::messages::Messages;
use super::{Read, begin, damaged, length_of, rows_of};
use crate::source::records::Records;
use crate::source::typed_rows::{Fields, ReadAs, Starts, TypedFile, TypedRows};

/// The rows of an open file.
pub(crate) struct BatchRows {
    messages: Messages,
    of: Arc<Batches>,
    waiting: VecDeque<Fields>,
    /// The number of the row that comes next, from 0.
    next: usize,
}

/// What is known of a file, and the columns that are wanted of it.
#[derive(Clone)]
struct Batches {
    shared: Arc<Known>,
    wanted: Vec<(usize, ReadAs)>,
    dictionaries: Arc<Dictionaries>,
}

/// What a file says, whatever is wanted of it.
struct Known {
    columns: Vec<Column>,
    records: Records,
    /// Where the message of each batch begins.
    batches: Vec<u64>,
    /// The same of dictionaries.
    dictionaries: Vec<u64>,
    starts: Starts,
}

impl BatchRows {
    /// The rows of a file from the first on. Its columns are still to be chosen.
    ///
    /// # Errors
    /// Why it is no Arrow file, or what is damaged.
    pub(crate) fn of(file: File) -> io::Result<Self> {
        let opened = Messages::of(file).and_then(Self::looked_through);
        opened.map_err(io::Error::other)
    }

    fn looked_through(messages: Messages) -> Read<Self> {
        let (mut messages, columns, records) = begin(messages, "Stream::arrow", "")?;
        let (mut batches, mut dictionaries, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            let position = messages.position();
            let Some(message) = messages.next_without_body()? else {
                break;
            };
            match message.header()? {
                MessageHeaderRef::RecordBatch(batch) => {
                    rows.push(Some(length_of(&batch)?));
                    batches.push(position);
                }
                MessageHeaderRef::DictionaryBatch(_) => dictionaries.push(position),
                _ => return damaged(),
            }
        }
        let shared = Known {
            columns,
            records,
            batches,
            dictionaries,
            starts: Starts::of(rows).map_or_else(damaged, Ok)?,
        };
        Ok(Self {
            messages,
            of: Arc::new(Batches {
                shared: Arc::new(shared),
                wanted: Vec::new(),
                dictionaries: Arc::default(),
            }),
            waiting: VecDeque::new(),
            next: 0,
        })
    }

    /// The values that the wanted columns name by numbers.
    fn dictionaries(&mut self, wanted: &[usize]) -> Read<Dictionaries> {
        let known = &self.of.shared;
        let (mut dictionaries, mut bytes) = (Dictionaries::default(), 0);
        for &position in &known.dictionaries {
            let message = self.messages.at(position)?;
            let MessageHeaderRef::DictionaryBatch(batch) = message.header()? else {
                return damaged();
            };
            let (columns, batch) = (&known.columns[..], (batch, &message.body[..]));
            if dictionaries.read(batch, (columns, wanted), &mut bytes)? {
                return Err(
                    "the values of a dictionary change within it: `Dataset::arrow` reads it"
                        .to_owned(),
                );
            }
        }
        Ok(dictionaries)
    }

    /// Decodes the next batch.
    fn decode(&mut self) -> Read<()> {
        let (of, known) = (&self.of, &self.of.shared);
        let batch = known.starts.part_of(self.next);
        let message = self.messages.at(known.batches[batch])?;
        let MessageHeaderRef::RecordBatch(found) = message.header()? else {
            return damaged();
        };
        let wanted: Vec<usize> = of.wanted.iter().map(|it| it.0).collect();
        let found = (found, &message.body[..]);
        // What is counted is what is held, which is one batch.
        let rows = rows_of(found, (&known.columns, &wanted), &of.dictionaries, &mut 0)?;
        let said = known.starts.rows_of(batch);
        if rows.len() != said.len() {
            return damaged();
        }
        for values in rows.into_iter().skip(self.next - said.start) {
            let mut row = vec![String::new(); known.columns.len()];
            let mut fields = of.wanted.iter().zip(&values);
            let outcome = fields.try_for_each(|(&(column, read_as), value)| {
                row[column] = known.records.field(column, read_as, value)?;
                Ok(())
            });
            self.waiting.push_back(outcome.map(|()| row));
        }
        Ok(())
    }
}

impl TypedFile for Batches {
    fn records(&self) -> &Records {
        &self.shared.records
    }

    fn rows(&self, path: &Path, first: usize) -> io::Result<Box<dyn TypedRows>> {
        let messages = Messages::known(File::open(path)?).map_err(io::Error::other)?;
        Ok(Box::new(BatchRows {
            messages,
            of: Arc::new(self.clone()),
            waiting: VecDeque::new(),
            next: first,
        }))
    }
}

impl TypedRows for BatchRows {
    fn records(&self) -> &Records {
        &self.of.shared.records
    }

    fn select(&mut self, columns: &[(usize, ReadAs)]) -> io::Result<Arc<dyn TypedFile>> {
        let numbers: Vec<usize> = columns.iter().map(|it| it.0).collect();
        let dictionaries = self.dictionaries(&numbers).map_err(io::Error::other)?;
        let of = Arc::new(Batches {
            shared: Arc::clone(&self.of.shared),
            wanted: columns.to_vec(),
            dictionaries: Arc::new(dictionaries),
        });
        self.of = Arc::clone(&of);
        Ok(of)
    }

    fn here(&self) -> (usize, u64) {
        let known = &self.of.shared;
        let place = known.batches.get(known.starts.part_of(self.next)).copied();
        (self.next, place.unwrap_or(self.messages.file_bytes()))
    }

    fn next(&mut self) -> io::Result<Option<Fields>> {
        if self.waiting.is_empty() {
            if self.next >= self.of.shared.starts.rows() {
                return Ok(None);
            }
            self.decode().map_err(io::Error::other)?;
        }
        self.next += 1;
        Ok(self.waiting.pop_front())
    }
}

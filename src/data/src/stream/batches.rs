//! [`StreamBatches`]: the batches of an epoch, read from the files window by window.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;
use stratoscope_diagnostics::Result;

use super::encoded::EncodedStream;
use super::order::Order;
use crate::batch::Batch;
use crate::encoded::EncodedExample;
use crate::example::Example;

/// The batches of an epoch, read from the files. After an error there are no more.
pub struct StreamBatches {
    stream: EncodedStream,
    batch_size: usize,
    /// Of the next batch in the epoch.
    position: usize,
    /// One for each worker that has rows of its own; else one for all.
    readers: Vec<Reader>,
    has_failed: bool,
}

/// The inputs of an order from a position on.
struct Reader {
    order: Order,
    position: usize,
    /// Those of the window from the position on.
    waiting: std::vec::IntoIter<Waiting>,
}

/// An input that waits for its batch: a row, or one of its windows.
struct Waiting {
    row: Arc<Row>,
    part: usize,
}

/// A row that was read.
struct Row {
    example: Example,
    /// How many inputs it is.
    inputs: usize,
    /// All of them, where they are several: a long text becomes tokens once, however many batches it comes into.
    windows: OnceLock<Vec<EncodedExample>>,
}

impl Row {
    /// Makes tokens of a row with several windows.
    fn cut(&self, stream: &EncodedStream) -> Result<()> {
        if self.windows.get().is_none() {
            let windows = stream.encode(&self.example)?;
            self.windows.get_or_init(|| windows);
        }
        Ok(())
    }

    fn input(&self, part: usize, stream: &EncodedStream) -> Result<EncodedExample> {
        let input = match self.windows.get() {
            Some(windows) => windows.get(part).cloned(),
            None => stream.encode(&self.example)?.into_iter().nth(part),
        };
        input.ok_or_else(|| stream.stream().changed())
    }
}

impl Reader {
    /// The next inputs, as many as that.
    fn read(&mut self, count: usize, stream: &EncodedStream) -> Result<Vec<Waiting>> {
        let mut found = Vec::with_capacity(count);
        while found.len() < count {
            if self.waiting.len() == 0 {
                self.fill(self.position + found.len(), stream)?;
            }
            let missing = count - found.len();
            found.extend(self.waiting.by_ref().take(missing));
        }
        self.position += count;
        Ok(found)
    }

    /// Reads the window of a position.
    fn fill(&mut self, position: usize, stream: &EncodedStream) -> Result<()> {
        // The window before it makes room first.
        self.waiting = Vec::new().into_iter();
        let (inputs, source) = (&stream.inputs, stream.stream());
        let window = self.order.window_at(position);
        let pieces = self.order.pieces(window).iter();
        let rows: Vec<Range<usize>> = pieces.map(|piece| inputs.rows_of(piece)).collect();
        let read = source.index.read(&rows, &source.names)?;
        let numbers = rows.into_iter().flatten();
        let each = read.into_iter().zip(numbers).flat_map(|(example, row)| {
            let row = Arc::new(Row {
                example,
                inputs: inputs.of_row(row),
                windows: OnceLock::new(),
            });
            (0..row.inputs).map(move |part| {
                Some(Waiting {
                    row: Arc::clone(&row),
                    part,
                })
            })
        });
        let mut each: Vec<Option<Waiting>> = each.collect();
        let from = position - self.order.begin(window);
        let places = self.order.places(window).into_iter().skip(from);
        let rest: Vec<Waiting> = places
            .filter_map(|place| each.get_mut(place)?.take())
            .collect();
        self.waiting = rest.into_iter();
        Ok(())
    }

    /// Skipped rows that do not wait already are not read.
    fn skip(&mut self, count: usize) {
        self.position += count;
        match count < self.waiting.len() {
            true => self.waiting.by_ref().take(count).for_each(drop),
            false => self.waiting = Vec::new().into_iter(),
        }
    }
}

impl StreamBatches {
    pub(super) fn new(stream: EncodedStream, batch_size: usize) -> Self {
        let position = stream.first_position();
        let orders = stream.orders().iter().cloned();
        let readers = orders.zip(stream.own_positions(position));
        let reader = |(order, position)| Reader {
            order,
            position,
            waiting: Vec::new().into_iter(),
        };
        Self {
            readers: readers.map(reader).collect(),
            stream,
            batch_size,
            position,
            has_failed: false,
        }
    }

    /// How many of the next rows each reader has.
    fn shares(&self, count: usize) -> Vec<usize> {
        let positions = self.position..self.position + count;
        self.stream.own_shares(positions)
    }

    fn read(&mut self, count: usize) -> Result<Batch> {
        let shares = self.shares(count);
        let mut inputs = Vec::with_capacity(count);
        for (reader, &share) in self.readers.iter_mut().zip(&shares) {
            inputs.extend(reader.read(share, &self.stream)?);
        }
        self.position += count;
        let mut rows: Vec<&Row> = inputs.iter().map(|it| &*it.row).collect();
        rows.retain(|row| row.inputs > 1);
        // Two workers may each have read a row.
        rows.sort_by_key(|row| std::ptr::from_ref(*row));
        rows.dedup_by_key(|row| std::ptr::from_ref(*row));
        rows.par_iter().try_for_each(|row| row.cut(&self.stream))?;
        let encoded = inputs
            .par_iter()
            .map(|Waiting { row, part }| row.input(*part, &self.stream));
        let encoded = encoded.collect::<Result<Vec<EncodedExample>>>()?;
        let encoded: Vec<&EncodedExample> = encoded.iter().collect();
        Ok(Batch {
            by_worker: self.stream.is_divided().then_some(shares),
            ..Batch::of(&encoded, self.stream.shape())
        })
    }
}

impl Iterator for StreamBatches {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        let left = self.stream.end_position().saturating_sub(self.position);
        let count = self.batch_size.min(left);
        if count == 0 || self.has_failed {
            return None;
        }
        let batch = self.read(count);
        self.has_failed = batch.is_err();
        Some(batch)
    }

    /// Skipped batches are not read, so a resumed run begins at once.
    fn nth(&mut self, batches: usize) -> Option<Self::Item> {
        let left = self.stream.end_position().saturating_sub(self.position);
        let skipped = batches.saturating_mul(self.batch_size).min(left);
        let shares = self.shares(skipped);
        for (reader, share) in self.readers.iter_mut().zip(shares) {
            reader.skip(share);
        }
        self.position += skipped;
        self.next()
    }
}

//! [`StreamBatches`]: the batches of an epoch, read from the files window by window.

use rayon::prelude::*;
use stratoscope_diagnostics::Result;

use super::Stream;
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

/// The rows of an order from a position on.
struct Reader {
    order: Order,
    position: usize,
    /// The examples of the window from the position on.
    waiting: std::vec::IntoIter<Example>,
}

impl Reader {
    /// The next examples, as many as that.
    fn read(&mut self, count: usize, stream: &Stream) -> Result<Vec<Example>> {
        let mut examples = Vec::with_capacity(count);
        while examples.len() < count {
            if self.waiting.len() == 0 {
                self.fill(self.position + examples.len(), stream)?;
            }
            let missing = count - examples.len();
            examples.extend(self.waiting.by_ref().take(missing));
        }
        self.position += count;
        Ok(examples)
    }

    /// Reads the window of a position.
    fn fill(&mut self, position: usize, stream: &Stream) -> Result<()> {
        // The window before it makes room first.
        self.waiting = Vec::new().into_iter();
        let window = self.order.window_at(position);
        let read = stream
            .index
            .read(self.order.pieces(window), &stream.names)?;
        let mut read: Vec<Option<Example>> = read.into_iter().map(Some).collect();
        let from = position - self.order.begin(window);
        let places = self.order.places(window).into_iter().skip(from);
        let rest: Vec<Example> = places
            .filter_map(|place| read.get_mut(place)?.take())
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
        let mut examples = Vec::with_capacity(count);
        for (reader, &share) in self.readers.iter_mut().zip(&shares) {
            examples.extend(reader.read(share, self.stream.stream())?);
        }
        self.position += count;
        let encoded: Vec<EncodedExample> = examples
            .par_iter()
            .map(|example| self.stream.encode(example))
            .collect();
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

//! [`Batches`]: the batches of an epoch.

use crate::batch::Batch;
use crate::encoded::{Encoded, EncodedExample};
use crate::prefetch::Prefetch;

/// The batches of an epoch, in order.
#[derive(Clone, Debug)]
pub struct Batches {
    encoded: Encoded,
    batch_size: usize,
    position: usize,
}

impl Batches {
    pub(crate) fn new(encoded: Encoded, batch_size: usize) -> Self {
        Self {
            encoded,
            batch_size,
            position: 0,
        }
    }

    /// Prepares up to `depth` batches ahead on a thread of its own.
    pub fn prefetch(self, depth: usize) -> Prefetch<Batch> {
        Prefetch::new(self, depth)
    }
}

impl Iterator for Batches {
    type Item = Batch;

    fn next(&mut self) -> Option<Batch> {
        let end = self
            .position
            .saturating_add(self.batch_size)
            .min(self.encoded.len());
        let mut positions: Vec<usize> = (self.position..end).collect();
        let by_worker = self.encoded.division.as_ref().map(|division| {
            positions.sort_by_key(|&position| division.worker(position));
            division.shares(self.position..end)
        });
        let examples: Vec<&EncodedExample> = positions
            .into_iter()
            .filter_map(|position| self.encoded.get(position))
            .collect();
        self.position = end;
        (!examples.is_empty()).then(|| Batch {
            by_worker,
            ..Batch::of(&examples, &self.encoded)
        })
    }

    /// Skipped batches are not built, so a resumed run begins at once.
    fn nth(&mut self, batches: usize) -> Option<Batch> {
        let skipped = batches.saturating_mul(self.batch_size);
        self.position = self
            .position
            .saturating_add(skipped)
            .min(self.encoded.len());
        self.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.encoded.len() - self.position).div_ceil(self.batch_size);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Batches {}

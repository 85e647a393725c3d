//! [`Data`] and [`Split`]: what models take, in memory or streamed, as it is given and as tokens.

use std::collections::BTreeSet;
use std::ops::Range;

use stratoscope_diagnostics::Result;

use crate::batch::Batch;
use crate::batches::Batches;
use crate::dataset::Dataset;
use crate::encoded::{Encoded, EncodedExample, TokenReport};
use crate::shards::AutoShardPolicy;
use crate::stream::{EncodedStream, Stream, StreamBatches};

/// What both kinds say alike.
macro_rules! of_either {
    ($self:expr, $data:ident => $value:expr) => {
        match $self {
            Self::Held($data) => $value,
            Self::Streamed($data) => $value,
        }
    };
}

/// The same kind, of which both make a value alike.
macro_rules! of_the_same {
    ($self:expr, $data:ident => $value:expr) => {
        match $self {
            Self::Held($data) => Self::Held($value),
            Self::Streamed($data) => Self::Streamed($value),
        }
    };
}

/// What a model is trained or measured with.
#[derive(Clone, Copy, Debug)]
pub enum Data<'a> {
    /// A data set in memory.
    Held(&'a Dataset),
    /// Rows that stay in their files.
    Streamed(&'a Stream),
}

/// What `fit!`, `start!` and `evaluate!` take as data.
#[diagnostic::on_unimplemented(
    message = "expected a dataset, got `{Self}`",
    label = "a data set, such as `Dataset::tsv(\"train.tsv\")?`, or a stream: `Stream::csv(\"train.csv\")?`"
)]
pub trait IntoData<'a> {
    /// The data, borrowed.
    fn into_data(self) -> Data<'a>;
}

impl<'a> IntoData<'a> for &'a Dataset {
    fn into_data(self) -> Data<'a> {
        Data::Held(self)
    }
}

impl<'a> IntoData<'a> for &'a Stream {
    fn into_data(self) -> Data<'a> {
        Data::Streamed(self)
    }
}

impl<'a, T> IntoData<'a> for &'a &T
where
    &'a T: IntoData<'a>,
{
    fn into_data(self) -> Data<'a> {
        let inner: &'a T = self;
        inner.into_data()
    }
}

impl<'a> IntoData<'a> for Data<'a> {
    fn into_data(self) -> Data<'a> {
        self
    }
}

impl Data<'_> {
    /// How many examples there are.
    pub fn len(&self) -> usize {
        of_either!(self, data => data.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where the examples come from, for messages.
    pub fn source(&self) -> &str {
        match self {
            Self::Held(data) => &data.source,
            Self::Streamed(stream) => stream.source(),
        }
    }

    /// The name of each class, by index.
    pub fn label_names(&self) -> &[String] {
        match self {
            Self::Held(data) => &data.label_names,
            Self::Streamed(stream) => stream.label_names(),
        }
    }

    /// How many examples each class has; of tagged words, how many words.
    pub fn class_counts(&self) -> Vec<usize> {
        of_either!(self, data => data.class_counts())
    }

    /// How the examples are divided over workers.
    pub fn auto_shard(&self) -> AutoShardPolicy {
        of_either!(self, data => data.auto_shard)
    }

    /// The first `count` examples in memory; `None` for a stream that has no more.
    ///
    /// # Errors
    /// SC0911 if a file of a stream has changed.
    pub fn first(&self, count: usize) -> Result<Option<Dataset>> {
        match self {
            Self::Held(data) => Ok(Some(data.take(count))),
            Self::Streamed(stream) if count < stream.len() => stream.first(count).map(Some),
            Self::Streamed(_) => Ok(None),
        }
    }
}

/// The tokens of a split in some order: in memory, or made batch by batch.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a run has one or two of them")]
pub enum Split {
    /// In memory.
    Held(Encoded),
    /// Made when a batch is.
    Streamed(EncodedStream),
}

impl Split {
    /// How many examples an epoch has.
    pub fn len(&self) -> usize {
        of_either!(self, data => data.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How often an epoch has each example.
    pub fn passes(&self) -> usize {
        of_either!(self, data => data.passes())
    }

    /// How many examples each worker has at these positions of the order; `None` where they are divided evenly.
    pub fn shares_of(&self, positions: Range<usize>) -> Option<Vec<usize>> {
        of_either!(self, data => data.shares_of(positions))
    }

    /// The same examples, all of which each of so many workers sees in an epoch.
    #[must_use]
    pub fn seen_by_each(self, workers: usize) -> Self {
        of_the_same!(self, data => data.seen_by_each(workers))
    }

    /// The statistics of the tokenization.
    pub fn report(&self) -> &TokenReport {
        of_either!(self, data => data.report())
    }

    /// The limit that was set, in tokens.
    pub fn max_length(&self) -> usize {
        of_either!(self, data => data.max_length())
    }

    /// The tokens, if they are in memory.
    pub fn held(&self) -> Option<&Encoded> {
        match self {
            Self::Held(encoded) => Some(encoded),
            Self::Streamed(_) => None,
        }
    }

    /// The stream, if it is one.
    pub fn streamed(&self) -> Option<&EncodedStream> {
        match self {
            Self::Held(_) => None,
            Self::Streamed(stream) => Some(stream),
        }
    }

    /// The same examples, whose random orders have examples of similar length beside each other, in batches of this size.
    /// Of a stream that does not know the lengths of its rows the order does not change.
    #[must_use]
    pub fn by_length(&self, batch_size: usize) -> Self {
        match self {
            Self::Held(encoded) => Self::Held(encoded.clone().by_length(batch_size)),
            Self::Streamed(stream) => Self::Streamed(stream.by_length(batch_size)),
        }
    }

    /// The positions that the batches of an epoch have, padding included: of the order of a seed and an epoch, or of that of
    /// the data. Of a stream that does not know the lengths of its rows, what is expected of a random order; `None` if it is
    /// not random.
    pub fn positions(&self, batch_size: usize, random: Option<(u64, u64)>) -> Option<usize> {
        let batch_size = batch_size.max(1);
        match (self, random) {
            (Self::Held(encoded), None) => Some(encoded.positions(batch_size)),
            (Self::Held(encoded), Some((seed, epoch))) => {
                Some(encoded.shuffle(seed, epoch).positions(batch_size))
            }
            (Self::Streamed(stream), random) => stream.positions(batch_size, random),
        }
    }

    /// How many examples have each length in tokens; of prompts with choices, how many of their sequences.
    pub fn lengths(&self) -> Vec<usize> {
        match self {
            Self::Streamed(stream) => stream.lengths().to_vec(),
            Self::Held(encoded) => {
                let mut lengths = Vec::new();
                let examples = (0..encoded.len()).filter_map(|at| encoded.get(at));
                for sequence in examples.flat_map(EncodedExample::sequences) {
                    count_at(&mut lengths, sequence.len());
                }
                lengths
            }
        }
    }

    /// The order of one epoch.
    pub fn shuffle(&self, seed: u64, epoch: u64) -> Self {
        of_the_same!(self, data => data.shuffle(seed, epoch))
    }

    /// The same order, with what is random in an epoch.
    #[must_use]
    pub fn in_epoch(&self, seed: u64, epoch: u64) -> Self {
        of_the_same!(self, data => data.in_epoch(seed, epoch))
    }

    /// At most `count` examples from a position on, without those with these indices; of a stream none can be left out.
    #[must_use]
    pub fn part(&self, from: usize, count: usize, left_out: &BTreeSet<usize>) -> Self {
        match self {
            Self::Held(encoded) => Self::Held(encoded.part(from, count, left_out)),
            Self::Streamed(stream) => Self::Streamed(stream.part(from, count)),
        }
    }

    /// The batches of `batch_size` examples, in order; the last one has the remaining examples.
    ///
    /// # Errors
    /// SC0915 for a `batch_size` of 0.
    pub fn batch(&self, batch_size: usize) -> Result<SplitBatches> {
        Ok(match self {
            Self::Held(encoded) => SplitBatches::Held(encoded.batch(batch_size)?),
            Self::Streamed(stream) => SplitBatches::Streamed(Box::new(stream.batch(batch_size)?)),
        })
    }
}

/// The length of the example with this number, shortest first, where so many examples have each length; 0 where there is
/// none.
pub fn length_of(lengths: &[usize], number: usize) -> usize {
    let mut up_to = 0;
    let found = lengths.iter().position(|examples| {
        up_to += examples;
        up_to > number
    });
    found.unwrap_or(0)
}

/// One more at a place of a list that grows.
pub(crate) fn count_at(counts: &mut Vec<usize>, place: usize) {
    if counts.len() <= place {
        counts.resize(place + 1, 0);
    }
    counts[place] += 1;
}

/// The batches of a [`Split`]: an error where a file cannot be read any more.
#[expect(clippy::large_enum_variant, reason = "an epoch has one of them")]
pub enum SplitBatches {
    /// Of tokens in memory.
    Held(Batches),
    /// Read from files.
    Streamed(Box<StreamBatches>),
}

impl Iterator for SplitBatches {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Held(batches) => batches.next().map(Ok),
            Self::Streamed(batches) => batches.next(),
        }
    }

    fn nth(&mut self, skipped: usize) -> Option<Self::Item> {
        match self {
            Self::Held(batches) => batches.nth(skipped).map(Ok),
            Self::Streamed(batches) => batches.nth(skipped),
        }
    }
}

//! [`EncodedStream`]: a stream as token ids. One pass counts tokens; in an epoch a text becomes tokens when its batch is made.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use sha2::{Digest, Sha256};
use stratoscope_diagnostics::Result;
use stratoscope_diagnostics::work::{Unit, Work};

use super::Stream;
use super::order::Order;
use crate::batch::Batch;
use crate::dataset::Dataset;
use crate::encoded::{Encoded, EncodedExample, TokenReport};
use crate::example::Example;
use crate::masking::{Hidden, Masking};
use crate::problem;
use crate::tokenize::Tokenize;

/// Turns an example into tokens.
type Encode = Arc<dyn Fn(&Example) -> EncodedExample + Send + Sync>;

/// A tokenized stream in the order of an epoch, or a part of it. A clone shares all but the order.
#[derive(Clone)]
pub struct EncodedStream {
    stream: Stream,
    encode: Encode,
    /// All that batches have in common, without an example.
    shape: Encoded,
    fingerprint: [u8; 32],
    order: Order,
    /// The positions of the order that it has.
    positions: Range<usize>,
}

/// How a stream becomes tokens.
pub struct StreamTokens<'t> {
    /// Turns an example into tokens, by the tokenizer below.
    pub encode: Encode,
    /// Pads, and knows the tokens.
    pub tokenizer: &'t dyn Tokenize,
    /// The most tokens of an example.
    pub max_length: usize,
    /// Which tokens are hidden, for a model that predicts them.
    pub masking: Option<Masking>,
}

impl Stream {
    /// Tokenizes every example once, some at a time, and keeps what is counted; `each` gets them with their tokens.
    ///
    /// # Errors
    /// SC0915 for a `max_length` of 0; SC0910 for a tokenizer that cannot hide tokens where that is asked for; SC0911 if a
    /// file has changed; SC0520 if it is interrupted; what `each` ends with.
    pub fn tokenize(
        &self,
        tokens: StreamTokens<'_>,
        each: &mut dyn FnMut(&Dataset, &Encoded) -> Result<()>,
    ) -> Result<EncodedStream> {
        let (tokenizer, max_length) = (tokens.tokenizer, tokens.max_length);
        if max_length == 0 {
            let place = problem::fit_argument("max_length");
            let expects = "at least 1";
            return Err(problem::bad_size(place, "max_length", max_length, expects));
        }
        let hidden = match tokens.masking {
            Some(masking) => Some(Hidden::of_epochs(masking, tokenizer, self.source())?),
            None => None,
        };
        let mut counted = Counted::new(max_length);
        let mut work = Work::begin(
            ("tokenizing", "tokenized"),
            self.len(),
            Unit::Things("text"),
        );
        for portion in self.portions() {
            let portion = portion?;
            let examples = portion.examples.par_iter().enumerate();
            let encoded = examples.map(|(index, example)| EncodedExample {
                index,
                ..(tokens.encode)(example)
            });
            let encoded = Encoded::of(encoded.collect(), tokenizer, max_length);
            counted.add(&encoded);
            each(&portion, &encoded)?;
            work.reached(counted.report.rows)?;
        }
        work.finished();
        let mut shape = Encoded::of(Vec::new(), tokenizer, max_length);
        if let Some(hidden) = hidden {
            shape = shape.with_hidden(hidden);
        }
        let (report, fingerprint) = counted.finished(self.buffer);
        shape.report = report;
        Ok(EncodedStream {
            order: Order::of_the_files(self.len()),
            positions: 0..self.len(),
            stream: self.clone(),
            encode: tokens.encode,
            shape,
            fingerprint,
        })
    }
}

/// What is counted of tokens that are not kept.
struct Counted {
    report: TokenReport,
    /// How many rows have each length.
    lengths: Vec<usize>,
    hash: Sha256,
}

impl Counted {
    fn new(max_length: usize) -> Self {
        Self {
            report: TokenReport {
                rows: 0,
                tokens: 0,
                truncated_rows: 0,
                truncated_tokens: 0,
                longest: 0,
                median: 0,
                unknown_tokens: 0,
                max_length,
            },
            lengths: Vec::new(),
            hash: Sha256::new(),
        }
    }

    fn add(&mut self, encoded: &Encoded) {
        let (all, own) = (&mut self.report, encoded.report());
        all.rows += own.rows;
        all.tokens += own.tokens;
        all.truncated_rows += own.truncated_rows;
        all.truncated_tokens += own.truncated_tokens;
        all.longest = all.longest.max(own.longest);
        all.unknown_tokens += own.unknown_tokens;
        for example in (0..encoded.len()).filter_map(|at| encoded.get(at)) {
            let length = example.ids.len();
            if self.lengths.len() <= length {
                self.lengths.resize(length + 1, 0);
            }
            self.lengths[length] += 1;
            // The length keeps two lists from being taken for one.
            self.hash.update((length as u64).to_le_bytes());
            let words = example.ids.iter().chain(&example.type_ids);
            let words: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
            self.hash.update(&words);
            self.hash.update(format!("{:?}", example.label));
        }
    }

    fn finished(mut self, buffer: usize) -> (TokenReport, [u8; 32]) {
        let (middle, mut before) = (self.report.rows / 2, 0);
        let median = self.lengths.iter().position(|rows| {
            before += rows;
            before > middle
        });
        self.report.median = median.unwrap_or(0);
        self.hash.update((buffer as u64).to_le_bytes());
        (self.report, self.hash.finalize().into())
    }
}

impl EncodedStream {
    /// The order of one epoch, which is determined by seed, epoch and the size of the buffer.
    pub fn shuffle(&self, seed: u64, epoch: u64) -> Self {
        let (rows, buffer) = (self.stream.len(), self.stream.buffer);
        Self {
            order: Order::shuffled(rows, buffer, seed, epoch),
            positions: 0..rows,
            ..self.in_epoch(seed, epoch)
        }
    }

    /// The order of the files, with what is random in an epoch: the tokens that are hidden.
    #[must_use]
    pub fn in_epoch(&self, seed: u64, epoch: u64) -> Self {
        Self {
            shape: self.shape.in_epoch(seed, epoch),
            ..self.clone()
        }
    }

    /// At most `count` examples from a position on.
    #[must_use]
    pub fn part(&self, from: usize, count: usize) -> Self {
        let Range { start, end } = self.positions;
        let start = start.saturating_add(from).min(end);
        Self {
            positions: start..start.saturating_add(count).min(end),
            ..self.clone()
        }
    }

    /// How many examples there are.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Whether it is a part without examples.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// The numbers of the examples in their order.
    pub fn indices(&self) -> impl Iterator<Item = usize> + '_ {
        self.order.rows(self.positions.clone())
    }

    /// The statistics of the tokenization.
    pub fn report(&self) -> &TokenReport {
        self.shape.report()
    }

    /// The limit that was set, in tokens.
    pub fn max_length(&self) -> usize {
        self.shape.max_length()
    }

    /// What its examples are: a SHA-256 of all tokens and labels in their order, and of the size of the buffer.
    pub fn fingerprint(&self) -> [u8; 32] {
        self.fingerprint
    }

    /// The rows that it comes from.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The batches of `batch_size` examples, as of [`Encoded::batch`].
    ///
    /// # Errors
    /// SC0915 for a `batch_size` of 0.
    pub fn batch(&self, batch_size: usize) -> Result<StreamBatches> {
        if batch_size == 0 {
            let place = problem::fit_argument("batch_size");
            let expects = "at least 1";
            return Err(problem::bad_size(place, "batch_size", batch_size, expects));
        }
        Ok(StreamBatches {
            stream: self.clone(),
            batch_size,
            position: self.positions.start,
            waiting: Vec::new().into_iter(),
            has_failed: false,
        })
    }
}

impl fmt::Debug for EncodedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EncodedStream({})", self.report())
    }
}

/// The batches of an epoch, read from the files. After an error there are no more.
pub struct StreamBatches {
    stream: EncodedStream,
    batch_size: usize,
    /// Of the next example.
    position: usize,
    /// The examples of the window from the position on.
    waiting: std::vec::IntoIter<Example>,
    has_failed: bool,
}

impl StreamBatches {
    /// Reads the window of a position.
    fn fill(&mut self, position: usize) -> Result<()> {
        // The window before it makes room first.
        self.waiting = Vec::new().into_iter();
        let (order, stream) = (&self.stream.order, &self.stream.stream);
        let window = order.window_at(position);
        let read = stream.index.read(&order.blocks(window), &stream.names)?;
        let mut read: Vec<Option<Example>> = read.into_iter().map(Some).collect();
        let from = position - order.begin(window);
        let places = order.places(window).into_iter().skip(from);
        let rest: Vec<Example> = places
            .filter_map(|place| read.get_mut(place)?.take())
            .collect();
        self.waiting = rest.into_iter();
        Ok(())
    }

    fn read(&mut self, count: usize) -> Result<Batch> {
        let mut examples = Vec::with_capacity(count);
        while examples.len() < count {
            if self.waiting.len() == 0 {
                self.fill(self.position + examples.len())?;
            }
            let missing = count - examples.len();
            examples.extend(self.waiting.by_ref().take(missing));
        }
        self.position += count;
        let encoded = examples
            .par_iter()
            .map(|example| (self.stream.encode)(example));
        let encoded: Vec<EncodedExample> = encoded.collect();
        let encoded: Vec<&EncodedExample> = encoded.iter().collect();
        Ok(Batch::of(&encoded, &self.stream.shape))
    }
}

impl Iterator for StreamBatches {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        let left = self.stream.positions.end.saturating_sub(self.position);
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
        let left = self.stream.positions.end.saturating_sub(self.position);
        let skipped = batches.saturating_mul(self.batch_size).min(left);
        self.position += skipped;
        match skipped < self.waiting.len() {
            true => self.waiting.by_ref().take(skipped).for_each(drop),
            false => self.waiting = Vec::new().into_iter(),
        }
        self.next()
    }
}

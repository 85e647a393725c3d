//! [`EncodedStream`]: a stream as token ids. One pass counts tokens; in an epoch a text becomes tokens when its batch is made.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use stratoscope_diagnostics::Result;
use stratoscope_diagnostics::work::{Unit, Work};

use super::Stream;
use super::batches::StreamBatches;
use super::counted::{Counted, expected_positions};
use super::division::Division;
use super::inputs::Inputs;
use super::order::{Grouped, Lengths, Order, Random};
use crate::dataset::Dataset;
use crate::encoded::{Encoded, EncodedExample, TokenReport};
use crate::example::Example;
use crate::grouping;
use crate::masking::{Hidden, Masking};
use crate::random::{GOLDEN_GAMMA, mix};
use crate::tags::TagScheme;
use crate::tokenization::of_work;
use crate::tokenize::{self, Tokenize};
use crate::{choices, problem};

/// Turns an example into tokens: one input of the model, or several windows.
type Encode = Arc<dyn Fn(&Example) -> Result<Vec<EncodedExample>> + Send + Sync>;

/// A tokenized stream in the order of an epoch, or a part of it. A clone shares all but the order.
#[derive(Clone)]
pub struct EncodedStream {
    pub(super) stream: Stream,
    encode: Encode,
    /// All that batches have in common, without an example.
    shape: Encoded,
    pub(super) fingerprint: [u8; 32],
    /// How many tokens have each tag, where words have tags.
    tags: Arc<[usize]>,
    /// The order of each worker's rows; one where they are not divided.
    pub(super) orders: Arc<[Order]>,
    /// The rows of each worker, where they are divided.
    pub(super) division: Option<Division>,
    /// Which inputs the rows are, that have positions in the order.
    pub(super) inputs: Inputs,
    /// The positions of an epoch that it has.
    pub(super) positions: Range<usize>,
    lengths: Arc<Lengths>,
    /// The batch size for which a random order has rows of similar length beside each other.
    grouped: Option<usize>,
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
    /// Whether the length of each row is kept, two bytes, so that batches can have rows of similar length.
    pub keeps_lengths: bool,
}

impl Stream {
    /// Tokenizes every example once, some at a time, and keeps what is counted; `each` gets them with their tokens.
    ///
    /// # Errors
    /// SC0915 for a `max_length` of 0; SC0910 for a tokenizer that cannot hide tokens, or does not say where they stand,
    /// where that is asked for, or that cannot encode a text; SC0911 if a file has changed; SC0520 if it is interrupted;
    /// what `each` ends with.
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
        if self.is_tagged() || self.has_answers() {
            tokenize::has_places(tokenizer, self.source())?;
        }
        let mut counted = Counted::new(max_length, tokens.keeps_lengths, self.has_answers());
        let mut work = Work::begin(
            ("tokenizing", "tokenized"),
            self.len(),
            Unit::Things("text"),
        );
        let mut done = 0;
        // Long texts are all of their windows.
        let portions = self
            .portions()
            .flat_map(|portion| match (portion, self.has_answers()) {
                (Ok(portion), true) => portion.in_portions().map(Ok).collect(),
                (portion, _) => vec![portion],
            });
        for portion in portions {
            let portion = portion?;
            let encoded = match self.choices() {
                Some(_) => choices::encoded(&portion.examples, tokenizer, max_length)
                    .map_err(|problem| of_work(problem, &work))?,
                None => {
                    let examples = portion.examples.par_iter();
                    let encoded = examples
                        .map(|example| (tokens.encode)(example))
                        .collect::<Result<Vec<_>>>()
                        .map_err(|problem| of_work(problem, &work))?;
                    let rows = encoded.into_iter().enumerate();
                    let inputs = rows.flat_map(|(index, own)| {
                        let own = own.into_iter();
                        own.map(move |encoded| EncodedExample { index, ..encoded })
                    });
                    Encoded::of(inputs.collect(), tokenizer, max_length)
                }
            };
            counted.add(portion.len(), &encoded);
            each(&portion, &encoded)?;
            done += portion.len();
            work.reached(done)?;
        }
        work.finished();
        let mut shape = Encoded::of(Vec::new(), tokenizer, max_length);
        if self.is_tagged() {
            shape = shape.with_scheme(TagScheme::of(self.label_names()));
        }
        if let Some(hidden) = hidden {
            shape = shape.with_hidden(hidden);
        }
        let counts = counted.finished(self.buffer);
        shape.report = counts.report;
        Ok(EncodedStream {
            orders: [Order::of_the_files(counts.inputs.all_pieces())].into(),
            division: None,
            positions: 0..counts.inputs.len(),
            inputs: counts.inputs,
            stream: self.clone(),
            encode: tokens.encode,
            shape: shape.with_unanswerable(self.index.has_unanswerable),
            tags: counts.tags.into(),
            lengths: counts.lengths.into(),
            fingerprint: counts.fingerprint,
            grouped: None,
        })
    }
}

impl EncodedStream {
    /// The order of one epoch, which is determined by seed, epoch and the size of the buffer.
    pub fn shuffle(&self, seed: u64, epoch: u64) -> Self {
        let workers = self.orders.len();
        let grouped = self.grouped.filter(|_| self.lengths.of_rows.is_some());
        // Each worker has its share of a batch, and all of them the batches in one order.
        let grouped = grouped.map(|batch_size| Grouped {
            batch_size: (batch_size / workers).max(1),
            seed,
            lengths: Arc::clone(&self.lengths),
        });
        let order = |worker: usize, own: &Arc<[Range<usize>]>| {
            let buffer = match self.stream.buffer {
                all if all >= self.stream.len() => self.inputs.len(),
                shared => shared / workers,
            };
            let own_seed = seed.wrapping_add((worker as u64).wrapping_mul(GOLDEN_GAMMA));
            let random = Random {
                seed: own_seed,
                // Those of two workers have no window in common.
                of_windows: if worker == 0 { seed } else { mix(own_seed) },
                epoch,
                buffer,
            };
            Order::shuffled(Arc::clone(own), random).grouped(grouped.clone())
        };
        let orders: Vec<Order> = match &self.division {
            Some(Division { rows, .. }) => {
                let workers = rows.iter().enumerate();
                workers.map(|(worker, rows)| order(worker, rows)).collect()
            }
            None => vec![order(0, &self.inputs.all_pieces())],
        };
        Self {
            orders: orders.into(),
            positions: 0..self.all_positions(),
            ..self.in_epoch(seed, epoch)
        }
    }

    /// The positions of an epoch.
    fn all_positions(&self) -> usize {
        let division = self.division.as_ref();
        division.map_or(self.inputs.len(), |it| it.turns.len())
    }

    /// The same rows, whose random orders have rows of similar length beside each other, in batches of this size, as far as
    /// a buffer reaches. Without the lengths of all rows their order does not change.
    #[must_use]
    pub fn by_length(&self, batch_size: usize) -> Self {
        Self {
            grouped: Some(grouping::batch_size(batch_size)),
            ..self.clone()
        }
    }

    /// How many examples each class has; of tagged words, how many tokens are asked for it.
    pub fn class_counts(&self) -> Vec<usize> {
        match self.stream.is_tagged() {
            true => self.tags.to_vec(),
            false => self.stream.class_counts(),
        }
    }

    /// How many rows have each length in tokens.
    pub fn lengths(&self) -> &[usize] {
        &self.lengths.counts
    }

    /// The positions of an epoch's batches: of its order where the lengths of all rows are known, else what is expected of a
    /// random one.
    pub(crate) fn positions(&self, batch_size: usize, random: Option<(u64, u64)>) -> Option<usize> {
        let Lengths { counts, of_rows } = &*self.lengths;
        let Some(lengths) = of_rows else {
            let of_a_pass = random.map(|_| match self.grouped {
                None => expected_positions(counts, batch_size),
                Some(_) => grouping::expected_positions(counts, batch_size),
            });
            return of_a_pass.map(|positions| self.passes() * positions);
        };
        let order = match random {
            Some((seed, epoch)) => self.shuffle(seed, epoch),
            None => self.in_epoch(0, 0),
        };
        let indices = order.indices();
        let mut rows = indices.into_iter().peekable();
        let mut positions = 0;
        while rows.peek().is_some() {
            let batch = rows.by_ref().take(batch_size);
            let batch = batch.map(|row| usize::from(lengths[row]));
            let (size, longest) = batch.fold((0, 0), |(size, longest): (usize, usize), length| {
                (size + 1, longest.max(length))
            });
            positions += size * longest;
        }
        Some(positions)
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

    /// How many inputs there are: examples, or their windows.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Whether it is a part without examples.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// The numbers of the inputs in their order.
    pub fn indices(&self) -> Box<dyn Iterator<Item = usize> + '_> {
        let Some(Division { turns, .. }) = &self.division else {
            return Box::new(self.orders[0].rows(self.positions.clone()));
        };
        let begins = turns.before(self.positions.start).into_iter();
        let orders = self.orders.iter().zip(begins);
        let mut own: Vec<_> = orders
            .map(|(order, begin)| order.rows(begin..order.len()))
            .collect();
        let workers = turns.from(self.positions.start);
        let workers = workers.take(self.positions.len());
        Box::new(workers.filter_map(move |worker| own[worker].next()))
    }

    /// The statistics of the tokenization.
    pub fn report(&self) -> &TokenReport {
        self.shape.report()
    }

    /// The limit that was set, in tokens.
    pub fn max_length(&self) -> usize {
        self.shape.max_length()
    }

    /// What its examples are: a SHA-256 of all tokens and labels in their order, of the size of the buffer and of how rows are
    /// divided over workers.
    pub fn fingerprint(&self) -> [u8; 32] {
        self.fingerprint
    }

    /// Where it begins in the order of the epoch.
    pub(super) fn first_position(&self) -> usize {
        self.positions.start
    }

    /// Where it ends in the order of the epoch.
    pub(super) fn end_position(&self) -> usize {
        self.positions.end
    }

    /// The order of each worker's rows; one where they are not divided.
    pub(super) fn orders(&self) -> &[Order] {
        &self.orders
    }

    /// The tokens of an example: one input, or several windows.
    pub(super) fn encode(&self, example: &Example) -> Result<Vec<EncodedExample>> {
        (self.encode)(example)
    }

    /// What batches have in common.
    pub(super) fn shape(&self) -> &Encoded {
        &self.shape
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
        Ok(StreamBatches::new(self.clone(), batch_size))
    }
}

impl fmt::Debug for EncodedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EncodedStream({})", self.report())
    }
}

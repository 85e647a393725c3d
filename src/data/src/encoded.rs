//! [`Encoded`]: a data set as token ids. Tokenization happens once; each epoch only reorders indices.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use stratoscope_diagnostics::Result;

use crate::batches::Batches;
use crate::example::Label;
use crate::masking::Hidden;
use crate::questions::Window;
use crate::shards::Division;
use crate::tags::TagScheme;
use crate::token_cache::Kept;
use crate::tokenize::Tokenize;
use crate::{grouping, problem, shards};

/// One tokenized example.
#[derive(Clone, Debug, PartialEq)]
pub struct EncodedExample {
    /// Token ids, special tokens included, no padding.
    pub ids: Vec<u32>,
    /// The segment of each token; as long as `ids`.
    pub type_ids: Vec<u32>,
    /// The features of a numeric example, which has no tokens; else empty.
    pub features: Arc<[f32]>,
    /// The label, as in the data set.
    pub label: Option<Label>,
    /// What its loss is multiplied with: 1 unless the data says otherwise.
    pub weight: f32,
    /// Where its tokens stand in the text that is asked about.
    pub window: Option<Arc<Window>>,
    /// What a head that answers more than one class or number is to answer.
    pub targets: Targets,
    /// The example's index in the data set that was tokenized, counted from 0.
    pub index: usize,
    /// How many tokens were removed by truncation.
    pub truncated: usize,
}

impl EncodedExample {
    /// The positions that it takes in a batch without longer ones.
    pub fn positions(&self) -> usize {
        match &self.targets {
            Targets::Choices(lengths) | Targets::Apart(lengths) => {
                lengths.len() * lengths.iter().max().copied().unwrap_or(0)
            }
            _ => self.ids.len(),
        }
    }

    /// Where its sequences stand in its tokens: one, or that of each choice.
    pub(crate) fn sequences(&self) -> Vec<Range<usize>> {
        let (Targets::Choices(lengths) | Targets::Apart(lengths)) = &self.targets else {
            return std::iter::once(0..self.ids.len()).collect();
        };
        let mut start = 0;
        let each = lengths.iter().map(|&length| {
            start += length;
            start - length..start
        });
        each.collect()
    }
}

/// What is to be answered for an example, where that is more than a class or a number.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Targets {
    /// Its label says it.
    #[default]
    Label,
    /// A class for each token; −100 for tokens that are not asked for. As many as ids.
    Tokens(Arc<[i32]>),
    /// The positions at which the answer begins and ends.
    Span([i32; 2]),
    /// The classes that it has, in order.
    Set(Arc<[usize]>),
    /// Tokens of its own, hidden when it comes into a batch: the number of each token's word, the largest for none.
    Masked(Arc<[u32]>),
    /// Its label says it. Its tokens are a sequence for each choice, one after the other, of these lengths.
    Choices(Arc<[usize]>),
    /// Nothing: its texts are compared with each other. Its tokens are a sequence for each text, one after the other, of
    /// these lengths.
    Apart(Arc<[usize]>),
}

impl Targets {
    /// What a checksum of the data has for them, beside tokens and label.
    pub fn in_checksum(&self) -> String {
        match self {
            Self::Label | Self::Masked(_) => String::new(),
            Self::Tokens(classes) => format!("{classes:?}"),
            Self::Span(span) => format!("{span:?}"),
            Self::Set(classes) => format!("{classes:?}"),
            Self::Choices(lengths) | Self::Apart(lengths) => format!("{lengths:?}"),
        }
    }
}

/// A tokenized data set in some order. Cloning and shuffling copy indices, not tokens.
#[derive(Clone)]
pub struct Encoded {
    pub(crate) examples: Arc<[EncodedExample]>,
    pub(crate) order: Arc<[usize]>,
    /// Which worker has each of them, where the data's policy decides that.
    pub(crate) division: Option<Division>,
    pub(crate) pad_id: u32,
    pub(crate) max_length: usize,
    pub(crate) report: TokenReport,
    pub(crate) scheme: Option<Arc<TagScheme>>,
    /// Whether some question has no answer: then no answer is an answer.
    pub(crate) has_unanswerable: bool,
    pub(crate) hidden: Option<Hidden>,
    pub(crate) kept: Option<Kept>,
    /// The batch size for which a random order has examples of similar length beside each other.
    pub(crate) grouped: Option<usize>,
}

/// Statistics of a tokenization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenReport {
    /// The number of rows.
    pub rows: usize,
    /// The number of tokens, special tokens included, after truncation.
    pub tokens: usize,
    /// Rows that lost at least one token to the maximum length.
    pub truncated_rows: usize,
    /// The number of tokens removed by truncation.
    pub truncated_tokens: usize,
    /// Tokens of the longest row before truncation.
    pub longest: usize,
    /// The median number of tokens of a row after truncation.
    pub median: usize,
    /// Tokens that stand for a word outside the vocabulary.
    pub unknown_tokens: usize,
    /// The limit that was set.
    pub max_length: usize,
}

impl Encoded {
    /// Examples in their order.
    pub(crate) fn of(
        examples: Vec<EncodedExample>,
        tokenizer: &dyn Tokenize,
        max_length: usize,
    ) -> Self {
        Self {
            report: TokenReport::of(&examples, tokenizer.unk_id(), max_length),
            order: (0..examples.len()).collect(),
            division: None,
            examples: examples.into(),
            pad_id: tokenizer.pad_id(),
            max_length,
            scheme: None,
            has_unanswerable: false,
            hidden: None,
            kept: None,
            grouped: None,
        }
    }

    /// The same with what the cache of tokens did.
    pub(crate) fn with_kept(self, kept: Option<Kept>) -> Self {
        Self { kept, ..self }
    }

    /// What the cache of tokens did for it; nothing for small data.
    pub fn kept(&self) -> Option<&Kept> {
        self.kept.as_ref()
    }

    /// The same examples in the order of one epoch, which is determined by seed and epoch and not by the current
    /// order.
    pub fn shuffle(&self, seed: u64, epoch: u64) -> Self {
        let length = |row: usize| grouping::key(self.examples[row].positions());
        let workers = self.division.as_ref().map_or(1, Division::workers);
        let at_random = |worker: usize, rows: &[usize]| {
            let mut order = shards::order_of(worker, rows, seed, epoch);
            if let Some(batch_size) = self.grouped {
                // Each worker has its share of a batch, and all of them the batches in one order.
                let share = (batch_size / workers).max(1);
                grouping::grouped(&mut order, 0, share, length, (seed, epoch));
            }
            order
        };
        let order = match &self.division {
            Some(division) => division.interleaved(at_random),
            None => at_random(0, &(0..self.examples.len()).collect::<Vec<_>>()),
        };
        Self {
            order: order.into(),
            ..self.in_epoch(seed, epoch)
        }
    }

    /// The same examples, whose random orders have examples of similar length beside each other, in batches of this size.
    #[must_use]
    pub fn by_length(self, batch_size: usize) -> Self {
        let grouped = Some(grouping::batch_size(batch_size));
        Self { grouped, ..self }
    }

    /// The examples in their order: their places among those that were tokenized.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// The positions of the batches of the current order, padding included.
    pub fn positions(&self, batch_size: usize) -> usize {
        let of_batch = |batch: &[usize]| {
            let lengths = batch.iter().map(|&at| self.examples[at].positions());
            batch.len() * lengths.max().unwrap_or(0)
        };
        self.order.chunks(batch_size.max(1)).map(of_batch).sum()
    }

    /// The same examples in their order, with what is random in an epoch: the tokens that are hidden.
    #[must_use]
    pub fn in_epoch(&self, seed: u64, epoch: u64) -> Self {
        Self {
            hidden: self.hidden.map(|hidden| hidden.in_epoch(seed, epoch)),
            ..self.clone()
        }
    }

    /// The batches of `batch_size` examples, in order; the last one has the remaining examples. Each is
    /// padded to its own longest row.
    ///
    /// # Errors
    /// SC0915 for a `batch_size` of 0.
    pub fn batch(&self, batch_size: usize) -> Result<Batches> {
        if batch_size == 0 {
            let place = problem::fit_argument("batch_size");
            return Err(problem::bad_size(
                place,
                "batch_size",
                batch_size,
                "at least 1",
            ));
        }
        Ok(Batches::new(self.clone(), batch_size))
    }

    /// At most `count` examples in the current order, from a position of it on, without those with these indices in the
    /// data set.
    #[must_use]
    pub fn part(&self, from: usize, count: usize, left_out: &BTreeSet<usize>) -> Self {
        if from == 0 && count >= self.len() && left_out.is_empty() {
            return self.clone();
        }
        let is_in = |&at: &usize| {
            left_out.is_empty() || !left_out.contains(&self.examples[self.order[at]].index)
        };
        let places: Vec<usize> = (from..self.len()).filter(is_in).take(count).collect();
        Self {
            order: places.iter().map(|&at| self.order[at]).collect(),
            division: self.division.as_ref().map(|it| it.at(&places)),
            ..self.clone()
        }
    }

    /// How many examples there are.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether it is a [`part`](Self::part) without examples: tokenization refuses an empty data set.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The example at a position of the current order.
    pub fn get(&self, position: usize) -> Option<&EncodedExample> {
        self.examples.get(*self.order.get(position)?)
    }

    /// The statistics of the tokenization.
    pub fn report(&self) -> &TokenReport {
        &self.report
    }

    /// The same with what the tags of its tokens mean.
    pub(crate) fn with_scheme(self, scheme: TagScheme) -> Self {
        let scheme = Some(Arc::new(scheme));
        Self { scheme, ..self }
    }

    /// The same with tokens that are hidden in its batches.
    pub(crate) fn with_hidden(self, hidden: Hidden) -> Self {
        let hidden = Some(hidden);
        Self { hidden, ..self }
    }

    /// What is hidden in its batches.
    pub(crate) fn hidden(&self) -> Option<Hidden> {
        self.hidden
    }

    /// The same questions, of which some may have no answer.
    pub(crate) fn with_unanswerable(self, has_unanswerable: bool) -> Self {
        Self {
            has_unanswerable,
            ..self
        }
    }

    /// What the tags of its tokens mean, where they have tags.
    pub(crate) fn scheme(&self) -> Option<&Arc<TagScheme>> {
        self.scheme.as_ref()
    }

    /// The limit that was set, in tokens.
    pub fn max_length(&self) -> usize {
        self.max_length
    }

    /// The id that pads short rows.
    pub fn pad_id(&self) -> u32 {
        self.pad_id
    }
}

impl fmt::Debug for Encoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Encoded({})", self.report)
    }
}

impl TokenReport {
    pub(crate) fn of(examples: &[EncodedExample], unk_id: u32, max_length: usize) -> Self {
        let mut lengths: Vec<usize> = examples.iter().map(|example| example.ids.len()).collect();
        lengths.sort_unstable();
        let unknown =
            |example: &EncodedExample| example.ids.iter().filter(|&&id| id == unk_id).count();
        Self {
            rows: examples.len(),
            tokens: lengths.iter().sum(),
            truncated_rows: examples
                .iter()
                .filter(|example| example.truncated > 0)
                .count(),
            truncated_tokens: examples.iter().map(|example| example.truncated).sum(),
            longest: examples
                .iter()
                .map(|example| example.ids.len() + example.truncated)
                .max()
                .unwrap_or(0),
            median: lengths.get(lengths.len() / 2).copied().unwrap_or(0),
            unknown_tokens: examples.iter().map(unknown).sum(),
            max_length,
        }
    }
}

impl fmt::Display for TokenReport {
    /// One line: `2000 rows, 21893 tokens, longest 33, median 10, none truncated at 64`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} rows, {} tokens, longest {}, median {}, ",
            self.rows, self.tokens, self.longest, self.median
        )?;
        match self.truncated_rows {
            0 => write!(f, "none truncated at {}", self.max_length)?,
            rows => write!(
                f,
                "{rows} truncated at {} ({} tokens lost)",
                self.max_length, self.truncated_tokens
            )?,
        }
        match self.unknown_tokens {
            0 => Ok(()),
            unknown => write!(f, ", {unknown} outside the vocabulary"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dataset;
    use crate::tokenize::letters::Letters;

    #[test]
    fn truncation_and_unknown_tokens_are_counted() {
        let data = Dataset::from_texts(["abc", "abcdefgh", "aBc", ""]);
        let report = data.tokenize(&Letters, 6).unwrap().report().clone();
        let expected = TokenReport {
            rows: 4,
            tokens: 5 + 6 + 5 + 2,
            truncated_rows: 1,
            truncated_tokens: 4,
            longest: 10,
            median: 5,
            unknown_tokens: 1,
            max_length: 6,
        };
        assert_eq!(report, expected);
        assert_eq!(
            report.to_string(),
            "4 rows, 18 tokens, longest 10, median 5, 1 truncated at 6 (4 tokens lost), \
             1 outside the vocabulary"
        );
    }

    #[test]
    fn an_epoch_is_an_order_of_its_own() {
        let texts: Vec<String> = (0..26).map(|i| char::from(b'a' + i).to_string()).collect();
        let encoded = Dataset::from_texts(texts).tokenize(&Letters, 8).unwrap();
        let order = |encoded: &Encoded| -> Vec<usize> {
            (0..encoded.len())
                .map(|at| encoded.get(at).unwrap().index)
                .collect()
        };
        let first = order(&encoded.shuffle(5, 0));
        assert_eq!(first, order(&encoded.shuffle(5, 0)), "same seed and epoch");
        assert_eq!(
            first,
            order(&encoded.shuffle(9, 3).shuffle(5, 0)),
            "whatever came before"
        );
        assert_ne!(first, order(&encoded.shuffle(5, 1)), "next epoch");
        assert_ne!(first, order(&encoded.shuffle(6, 0)), "other seed");
        let mut sorted = first.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, order(&encoded), "nothing lost, nothing doubled");
    }

    #[test]
    fn a_part_keeps_the_order_and_leaves_out_what_is_named() {
        let encoded = Dataset::from_texts(["a", "b", "c", "d", "e"])
            .tokenize(&Letters, 8)
            .unwrap();
        let rows = |encoded: &Encoded| -> Vec<usize> {
            let each = (0..encoded.len()).filter_map(|at| encoded.get(at));
            each.map(|example| example.index).collect()
        };
        let order = rows(&encoded.shuffle(3, 1));
        let part = |from, count, left_out: &[usize]| {
            let left_out = left_out.iter().copied().collect();
            rows(&encoded.shuffle(3, 1).part(from, count, &left_out))
        };
        assert_eq!(part(0, 9, &[]), order);
        assert_eq!(part(2, 2, &[]), order[2..4]);
        assert_eq!(
            part(1, 9, &[order[0], order[2]]),
            [order[1], order[3], order[4]]
        );
        assert!(part(7, 1, &[]).is_empty() && part(4, 9, &[order[4]]).is_empty());
    }
}

//! [`Encoded`]: a data set as token ids. Tokenization happens once; each epoch only reorders indices.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use stratoscope_diagnostics::Result;
use stratoscope_diagnostics::work::{Unit, Work};

use crate::batch::Batches;
use crate::dataset::Dataset;
use crate::example::{Example, Label};
use crate::masking::Hidden;
use crate::questions::{Passages, Window};
use crate::tags::TagScheme;
use crate::tokenize::{Encoding, Tokenize};
use crate::{problem, shards};

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
    /// Its place among all windows, for a window of a longer text.
    pub window: Option<usize>,
    /// What a head that answers more than one class or number is to answer.
    pub targets: Targets,
    /// The example's index in the data set that was tokenized, counted from 0.
    pub index: usize,
    /// How many tokens were removed by truncation.
    pub truncated: usize,
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
}

/// A tokenized data set in some order. Cloning and shuffling copy indices, not tokens.
#[derive(Clone)]
pub struct Encoded {
    pub(crate) examples: Arc<[EncodedExample]>,
    pub(crate) order: Arc<[usize]>,
    /// How often an epoch has each example: once for each worker that sees all of them.
    pub(crate) passes: usize,
    pub(crate) pad_id: u32,
    pub(crate) max_length: usize,
    pub(crate) report: TokenReport,
    pub(crate) scheme: Option<Arc<TagScheme>>,
    pub(crate) passages: Option<Arc<Passages>>,
    pub(crate) hidden: Option<Hidden>,
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

impl Dataset {
    /// Tokenizes every example, in parallel, and truncates it to `max_length` tokens. Numeric examples stay as
    /// they are.
    ///
    /// # Errors
    /// SC0914 for an empty data set; SC0915 for a `max_length` of 0; SC0911 if some examples have a
    /// label and others have none or one of another kind; SC0913 for a class without a name; SC0520
    /// if it is interrupted.
    pub fn tokenize(&self, tokenizer: &dyn Tokenize, max_length: usize) -> Result<Encoded> {
        let encode = |index: usize, example: &Example| {
            let encoding = match example.features.is_empty() {
                true => tokenizer.encode(&example.text, example.pair.as_deref(), max_length),
                false => Encoding::default(),
            };
            EncodedExample {
                ids: encoding.ids,
                type_ids: encoding.type_ids,
                features: Arc::clone(&example.features),
                label: example.label,
                targets: match example.classes() {
                    Some(classes) => Targets::Set(classes.into()),
                    None => Targets::Label,
                },
                window: None,
                index,
                truncated: encoding.truncated,
            }
        };
        self.tokenize_by(tokenizer, max_length, encode)
    }

    /// Encodes every example by a function of its index and itself, in parallel.
    ///
    /// # Errors
    /// As [`tokenize`](Self::tokenize).
    pub(crate) fn tokenize_by(
        &self,
        tokenizer: &dyn Tokenize,
        max_length: usize,
        encode: impl Fn(usize, &Example) -> EncodedExample + Sync,
    ) -> Result<Encoded> {
        self.may_be_tokenized(max_length)?;
        let encode = |index: usize, example: &Example| [encode(index, example)];
        let examples = self.encoded_by(encode)?;
        Ok(Encoded::of(examples, tokenizer, max_length))
    }

    /// Encodes every example as windows, in parallel: the windows are numbered in the order of the examples.
    ///
    /// # Errors
    /// As [`tokenize`](Self::tokenize).
    pub(crate) fn tokenize_in_windows(
        &self,
        tokenizer: &dyn Tokenize,
        max_length: usize,
        encode: impl Fn(usize, &Example) -> Vec<(EncodedExample, Window)> + Sync,
    ) -> Result<(Encoded, Vec<Window>)> {
        self.may_be_tokenized(max_length)?;
        let (mut examples, windows): (Vec<EncodedExample>, Vec<Window>) =
            self.encoded_by(encode)?.into_iter().unzip();
        for (number, example) in examples.iter_mut().enumerate() {
            example.window = Some(number);
        }
        Ok((Encoded::of(examples, tokenizer, max_length), windows))
    }

    /// # Errors
    /// SC0914, SC0915, SC0911 and SC0913, as [`tokenize`](Self::tokenize).
    fn may_be_tokenized(&self, max_length: usize) -> Result<()> {
        if max_length == 0 {
            let place = problem::fit_argument("max_length");
            return Err(problem::bad_size(
                place,
                "max_length",
                max_length,
                "at least 1",
            ));
        }
        if self.is_empty() {
            return Err(problem::empty(&self.source, "fit"));
        }
        self.check_labels()
    }

    /// What a function makes of every example, in their order.
    fn encoded_by<T: Send, I: IntoIterator<Item = T>>(
        &self,
        encode: impl Fn(usize, &Example) -> I + Sync,
    ) -> Result<Vec<T>>
    where
        I::IntoIter: Send,
    {
        let mut encoded: Vec<T> = Vec::with_capacity(self.len());
        let things = match self.num_features() {
            0 => Unit::Things("text"),
            _ => Unit::Things("row"),
        };
        let mut work = Work::begin(("tokenizing", "tokenized"), self.len(), things);
        for portion in portions(&self.examples) {
            if portion.start > 0 {
                work.reached(portion.start)?;
            }
            let first = portion.start;
            let numbered = self.examples[portion].par_iter().enumerate();
            encoded.par_extend(
                numbered.flat_map_iter(|(index, example)| encode(first + index, example)),
            );
        }
        work.finished();
        Ok(encoded)
    }

    /// All labels must be of one kind, and every class must have a name.
    fn check_labels(&self) -> Result<()> {
        let kind = |label: &Option<Label>| label.as_ref().map(std::mem::discriminant);
        let Some(first) = self.examples.first() else {
            return Ok(());
        };
        for example in &self.examples {
            if kind(&example.label) != kind(&first.label) {
                return Err(problem::mixed_labels(&self.source, first, example));
            }
            if let Some(Label::Class(class)) = example.label
                && class >= self.label_names.len()
            {
                let given = class.to_string();
                return Err(problem::unknown_label(
                    &self.source,
                    example,
                    &given,
                    &self.label_names,
                    1,
                ));
            }
        }
        Ok(())
    }
}

/// How many examples are tokenized between two checks for an interrupt: at most a tenth of a second of
/// work, unless a single text takes longer.
fn portions(examples: &[crate::Example]) -> impl Iterator<Item = Range<usize>> {
    const MOST_BYTES: usize = 128 << 10;
    const MOST_EXAMPLES: usize = 8192;
    let mut start = 0;
    std::iter::from_fn(move || {
        let (mut end, mut bytes) = (start, 0);
        while end < examples.len() && end - start < MOST_EXAMPLES && bytes < MOST_BYTES {
            let example = &examples[end];
            bytes += example.text.len() + example.pair.as_ref().map_or(0, String::len);
            end += 1;
        }
        let portion = start..end;
        start = end;
        (!portion.is_empty()).then_some(portion)
    })
}

impl Encoded {
    /// Examples in their order.
    fn of(examples: Vec<EncodedExample>, tokenizer: &dyn Tokenize, max_length: usize) -> Self {
        Self {
            report: TokenReport::of(&examples, tokenizer.unk_id(), max_length),
            order: (0..examples.len()).collect(),
            passes: 1,
            examples: examples.into(),
            pad_id: tokenizer.pad_id(),
            max_length,
            scheme: None,
            passages: None,
            hidden: None,
        }
    }

    /// The same examples in the order of one epoch, which is determined by seed and epoch and not by the current
    /// order.
    pub fn shuffle(&self, seed: u64, epoch: u64) -> Self {
        let examples = self.examples.len();
        let own = |worker| shards::order_of(worker, examples, seed, epoch);
        Self {
            order: shards::interleaved(examples, self.passes, own).into(),
            ..self.in_epoch(seed, epoch)
        }
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
        let is_in =
            |&&at: &&usize| left_out.is_empty() || !left_out.contains(&self.examples[at].index);
        let rest = self.order.get(from..).unwrap_or_default().iter();
        Self {
            order: rest.filter(is_in).take(count).copied().collect(),
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

    /// The same with the contexts that answers are read from.
    pub(crate) fn with_passages(self, passages: Passages) -> Self {
        let passages = Some(Arc::new(passages));
        Self { passages, ..self }
    }

    /// The contexts that answers are read from, where the examples are questions.
    pub fn passages(&self) -> Option<&Arc<Passages>> {
        self.passages.as_ref()
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
    fn of(examples: &[EncodedExample], unk_id: u32, max_length: usize) -> Self {
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
    use crate::Example;
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
    fn portions_are_all_examples_once_and_an_interrupt_is_heard_between_two() {
        let long = "a".repeat(100 << 10);
        let texts = (0..5)
            .map(|_| long.clone())
            .chain((0..9000).map(|_| "b".to_owned()));
        let data = Dataset::from_texts(texts);
        let found: Vec<_> = portions(&data.examples).collect();
        assert_eq!(found, [0..2, 2..4, 4..8196, 8196..9005]);
        let whole = data.tokenize(&Letters, 8).expect("nobody interrupts");
        let indices = (0..whole.len()).map(|at| whole.get(at).expect("it is there").index);
        assert!(indices.eq(0..9005));

        stratoscope_diagnostics::work::request();
        let error = data.tokenize(&Letters, 8).expect_err("interrupted");
        assert_eq!(error.code, "SC0520");
        let expected = "tokenizing was interrupted after 2 of 9005 texts";
        assert_eq!(error.message, expected);
        data.tokenize(&Letters, 8).expect("the request was heard");
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

    #[test]
    fn what_cannot_be_tokenized_is_refused() {
        let data = Dataset::from_labelled([("abc", "x"), ("b", "y")]);
        let code = |result: Result<Encoded>| result.expect_err("it is refused").code;
        assert_eq!(code(data.tokenize(&Letters, 0)), "SC0915");
        assert_eq!(code(data.take(0).tokenize(&Letters, 8)), "SC0914");
        let mut mixed = data.clone();
        mixed.examples[1] = Example::new("b").with_label(Label::Value(0.5));
        assert_eq!(code(mixed.tokenize(&Letters, 8)), "SC0911");
        let mut beyond = data;
        beyond.examples[1].label = Some(Label::Class(2));
        assert_eq!(code(beyond.tokenize(&Letters, 8)), "SC0913");
    }
}

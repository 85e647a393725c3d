//! [`Encoded`]: a data set as token ids. Tokenization happens once; each epoch only reorders indices.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use stratoscope_diagnostics::Result;
use stratoscope_diagnostics::work::{Unit, Work};

use crate::batch::Batches;
use crate::dataset::Dataset;
use crate::example::Label;
use crate::tokenize::{Encoding, Tokenize};
use crate::{problem, random};

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
    /// The example's index in the data set that was tokenized, counted from 0.
    pub index: usize,
    /// How many tokens were removed by truncation.
    pub truncated: usize,
}

/// A tokenized data set in some order. Cloning and shuffling copy indices, not tokens.
#[derive(Clone)]
pub struct Encoded {
    examples: Arc<[EncodedExample]>,
    order: Arc<[usize]>,
    pad_id: u32,
    max_length: usize,
    report: TokenReport,
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
        self.check_labels()?;
        let encode = |(index, example): (usize, &crate::Example)| {
            let encoding = match example.features.is_empty() {
                true => tokenizer.encode(&example.text, example.pair.as_deref(), max_length),
                false => Encoding::default(),
            };
            EncodedExample {
                ids: encoding.ids,
                type_ids: encoding.type_ids,
                features: Arc::clone(&example.features),
                label: example.label,
                index,
                truncated: encoding.truncated,
            }
        };
        let mut examples: Vec<EncodedExample> = Vec::with_capacity(self.len());
        let things = match self.num_features() {
            0 => Unit::Things("text"),
            _ => Unit::Things("row"),
        };
        let mut work = Work::begin(("tokenizing", "tokenized"), self.len(), things);
        for portion in portions(&self.examples) {
            if !examples.is_empty() {
                work.reached(examples.len())?;
            }
            let first = portion.start;
            let numbered = self.examples[portion].par_iter().enumerate();
            examples.par_extend(numbered.map(|(index, example)| encode((first + index, example))));
        }
        work.finished();
        Ok(Encoded {
            report: TokenReport::of(&examples, tokenizer.unk_id(), max_length),
            order: (0..examples.len()).collect(),
            examples: examples.into(),
            pad_id: tokenizer.pad_id(),
            max_length,
        })
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
    /// The same examples in the order of one epoch, which is determined by seed and epoch and not by the current
    /// order.
    pub fn shuffle(&self, seed: u64, epoch: u64) -> Self {
        let order = random::permutation(self.examples.len(), seed, epoch);
        Self {
            order: order.into(),
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

    /// How many examples there are.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Always false: tokenization refuses an empty data set.
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

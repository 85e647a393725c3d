//! From texts to tokens: every example of a data set is tokenized once, in parallel; of a large data set the tokens come from
//! the cache if they were made before.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use stratoscope_diagnostics::work::{Unit, Work};
use stratoscope_diagnostics::{Diagnostic, Result};

use crate::dataset::Dataset;
use crate::encoded::{Encoded, EncodedExample, Targets};
use crate::example::{Example, Label};
use crate::token_cache::{Entry, Kept};
use crate::tokenize::{Form, Tokenize, Tokenized};
use crate::{apart, choices, masking, problem, questions, words};

/// The code of what was interrupted.
const INTERRUPTED: &str = "SC0520";

/// The error of a tokenizer, which knows one text only: an interrupt of the whole work says how far that is.
pub(crate) fn of_work(problem: Box<Diagnostic>, work: &Work) -> Box<Diagnostic> {
    if problem.code == INTERRUPTED {
        return work.interrupted();
    }
    problem
}

/// Gets the tokens of the examples, portion by portion.
type Writes<'w> = &'w mut dyn FnMut(&[Tokenized]);

impl Dataset {
    /// Tokenizes every example, in parallel, and truncates it to `max_length` tokens. Numeric examples stay as
    /// they are. Of a large data set the tokens are read from the [cache](crate::TokenCache), if they are there.
    ///
    /// # Errors
    /// SC0914 for an empty data set; SC0915 for a `max_length` of 0; SC0911 if some examples have a
    /// label and others have none or one of another kind; SC0913 for a class without a name; SC0910 for a text that the
    /// tokenizer cannot encode; SC0520 if it is interrupted.
    pub fn tokenize(&self, tokenizer: &dyn Tokenize, max_length: usize) -> Result<Encoded> {
        self.tokenize_by(tokenizer, &Form::of_texts(max_length), of_text)
    }

    /// The same examples in data sets of some kilobytes of text each.
    pub(crate) fn in_portions(self) -> impl Iterator<Item = Self> {
        let counts: Vec<usize> = portions(&self.examples).map(|own| own.len()).collect();
        let mut plain = self;
        let mut examples = std::mem::take(&mut plain.examples).into_iter();
        counts.into_iter().map(move |count| Self {
            examples: examples.by_ref().take(count).collect(),
            ..plain.clone()
        })
    }

    /// Tokenizes every example, and makes of its tokens what a function says, in parallel.
    ///
    /// # Errors
    /// As [`tokenize`](Self::tokenize).
    pub(crate) fn tokenize_by(
        &self,
        tokenizer: &dyn Tokenize,
        form: &Form,
        encode: impl Fn(usize, &Example, Tokenized) -> EncodedExample + Sync,
    ) -> Result<Encoded> {
        self.may_be_tokenized(form.max_length)?;
        let encode = |index: usize, example: &Example, tokens| [encode(index, example, tokens)];
        let (examples, kept) = self.encoded_by(tokenizer, form, encode)?;
        Ok(Encoded::of(examples, tokenizer, form.max_length).with_kept(kept))
    }

    /// # Errors
    /// SC0914, SC0915, SC0911 and SC0913, as [`tokenize`](Self::tokenize).
    pub(crate) fn may_be_tokenized(&self, max_length: usize) -> Result<()> {
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
        self.check_places()
    }

    /// What a function makes of the tokens of every example, in their order. Of a large data set the tokens are read from
    /// the tokenizer's cache, or written to it.
    pub(crate) fn encoded_by<T: Send, I: IntoIterator<Item = T>>(
        &self,
        tokenizer: &dyn Tokenize,
        form: &Form,
        encode: impl Fn(usize, &Example, Tokenized) -> I + Sync,
    ) -> Result<(Vec<T>, Option<Kept>)>
    where
        I::IntoIter: Send,
    {
        let Some(cache) = tokenizer.cache() else {
            return Ok((self.tokenized(form, tokenizer, &encode, None)?, None));
        };
        let verb = ("looking for tokens of", "looked for tokens of");
        let mut work = Work::begin(verb, self.len(), Unit::Things("text"));
        let entry = cache.entry(&self.examples, form, || work.reached(0))?;
        let Some(entry) = entry else {
            return Ok((self.tokenized(form, tokenizer, &encode, None)?, None));
        };
        let stored = self.cached(&entry, form, tokenizer, &encode, &mut work)?;
        work.finished();
        let rows = self.len();
        if let Some(encoded) = stored {
            return Ok((encoded, Some(Kept::Read { rows })));
        }
        let mut writer = entry.writer(rows);
        let mut add = |tokens: &[Tokenized]| writer.add(tokens, form);
        let encoded = self.tokenized(form, tokenizer, &encode, Some(&mut add))?;
        Ok((encoded, Some(entry.keep(writer, rows))))
    }

    /// Tokenizes every example; `written` also gets the tokens.
    fn tokenized<T: Send, I: IntoIterator<Item = T>>(
        &self,
        form: &Form,
        tokenizer: &dyn Tokenize,
        encode: &(impl Fn(usize, &Example, Tokenized) -> I + Sync),
        mut written: Option<Writes<'_>>,
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
            let examples = self.examples[portion.clone()].par_iter();
            let tokens = examples.map(|example| form.encode(tokenizer, example));
            let tokens = tokens.collect::<Result<Vec<Tokenized>>>();
            let tokens = tokens.map_err(|problem| of_work(problem, &work))?;
            if let Some(written) = &mut written {
                written(&tokens);
            }
            self.extend(&mut encoded, portion, tokens, encode);
        }
        work.finished();
        Ok(encoded)
    }

    /// The same by tokens of the cache; `None` unless all of them are there.
    fn cached<T: Send, I: IntoIterator<Item = T>>(
        &self,
        entry: &Entry,
        form: &Form,
        tokenizer: &dyn Tokenize,
        encode: &(impl Fn(usize, &Example, Tokenized) -> I + Sync),
        work: &mut Work,
    ) -> Result<Option<Vec<T>>>
    where
        I::IntoIter: Send,
    {
        let reader = entry.reader(tokenizer, self.len(), || work.reached(0))?;
        let Some(mut reader) = reader else {
            return Ok(None);
        };
        let mut encoded: Vec<T> = Vec::with_capacity(self.len());
        for portion in portions(&self.examples) {
            work.reached(portion.start)?;
            let Some(tokens) = reader.rows(&self.examples[portion.clone()], form) else {
                return Ok(None);
            };
            self.extend(&mut encoded, portion, tokens, encode);
        }
        Ok(reader.is_at_end().then_some(encoded))
    }

    /// Adds what a function makes of the tokens of some examples.
    fn extend<T: Send, I: IntoIterator<Item = T>>(
        &self,
        encoded: &mut Vec<T>,
        portion: Range<usize>,
        tokens: Vec<Tokenized>,
        encode: &(impl Fn(usize, &Example, Tokenized) -> I + Sync),
    ) where
        I::IntoIter: Send,
    {
        let first = portion.start;
        let examples = self.examples[portion].par_iter().zip(tokens).enumerate();
        encoded
            .par_extend(examples.flat_map_iter(|(index, (example, tokens))| {
                encode(first + index, example, tokens)
            }));
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

/// The tokens of a text, or of a pair, with its label.
pub(crate) fn of_text(index: usize, example: &Example, tokenized: Tokenized) -> EncodedExample {
    let encoding = tokenized.encoding;
    EncodedExample {
        ids: encoding.ids,
        type_ids: encoding.type_ids,
        features: Arc::clone(&example.features),
        label: example.label,
        targets: match example.classes() {
            Some(classes) => Targets::Set(classes.into()),
            None => Targets::Label,
        },
        weight: example.weight,
        window: None,
        index,
        truncated: encoding.truncated,
    }
}

/// What becomes tokens of an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokensOf {
    /// Its texts, as [`Dataset::tokenize`] makes them.
    Texts,
    /// Its words, as [`Dataset::tokenize_words`] does.
    Words,
    /// Its texts, whose tokens are hidden in batches, as [`Dataset::tokenize_masked`] does.
    Masked,
    /// Its choices, as [`Dataset::tokenize_choices`] does.
    Choices,
    /// Its texts one by one, as [`Dataset::tokenize_apart`] does.
    Apart,
    /// Its question and the windows of its text, of which two share `stride` tokens, as [`Dataset::tokenize_questions`] does.
    Windows {
        /// Tokens of the text.
        stride: usize,
    },
}

/// The tokens of one example: one input, or several windows. Its index is its row.
///
/// # Errors
/// As [`Tokenize::encode`].
pub fn encode_example(
    tokenizer: &dyn Tokenize,
    example: &Example,
    max_length: usize,
    of: TokensOf,
) -> Result<Vec<EncodedExample>> {
    let form = match of {
        TokensOf::Choices => {
            let prompt = choices::of_choices(tokenizer, example, max_length)?;
            return Ok(vec![prompt]);
        }
        TokensOf::Apart => {
            let texts = apart::of_texts(tokenizer, example, max_length)?;
            return Ok(vec![texts]);
        }
        TokensOf::Texts => Form::of_texts(max_length),
        TokensOf::Words => words::form(max_length),
        TokensOf::Masked => Form::of_pieces(max_length),
        TokensOf::Windows { .. } => questions::form(),
    };
    let (row, tokenized) = (example.row, form.encode(tokenizer, example)?);
    Ok(match of {
        TokensOf::Texts | TokensOf::Choices | TokensOf::Apart => {
            vec![of_text(row, example, tokenized)]
        }
        TokensOf::Words => vec![words::of_words(row, example, tokenized)],
        TokensOf::Masked => vec![masking::of_pieces(row, example, tokenized)],
        TokensOf::Windows { stride } => {
            questions::windows(tokenized, example, row, (max_length, stride))
        }
    })
}

/// How many examples are tokenized between two checks for an interrupt: at most a tenth of a second of
/// work, unless a single text takes longer.
fn portions(examples: &[Example]) -> impl Iterator<Item = Range<usize>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenize::letters::Letters;

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

    /// As transformers encodes it: with the separator of the second text.
    #[test]
    fn a_pair_with_an_empty_second_text_is_a_pair() {
        let text = "sentence1\tsentence2\tlabel\nab\t\tx\nab\tc\ty\n";
        let read = Dataset::tsv_text("Dataset::tsv", "pairs.tsv", text).expect("two rows");
        let made = Dataset::from_pairs([("ab", ""), ("ab", "c")]);
        for data in [read, made] {
            let encoded = data.tokenize(&Letters, 8).expect("pairs");
            let shown = |at: usize| {
                let row = encoded.get(at).expect("a row");
                (Letters.tokens(&row.ids).concat(), row.type_ids.clone())
            };
            assert_eq!(shown(0), ("[ab]]".to_owned(), vec![0, 0, 0, 0, 1]));
            assert_eq!(shown(1), ("[ab]c]".to_owned(), vec![0, 0, 0, 0, 1, 1]));
        }
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

//! The tokenizer as this crate uses it. The crate of the model implements it.

use std::ops::Range;

use stratoscope_diagnostics::Result;

use crate::example::Example;
use crate::problem;
use crate::token_cache::TokenCache;

/// Turns text into token ids and back.
pub trait Tokenize: Send + Sync {
    /// Encodes a text, or a pair of texts, with the special tokens of the model, truncated to at most
    /// `max_length` tokens, special ones included, without padding.
    ///
    /// # Errors
    /// SC0910 for a text that the tokenizer cannot encode; SC0520 if it is interrupted.
    fn encode(&self, text: &str, pair: Option<&str>, max_length: usize) -> Result<Encoding>;

    /// Encodes like [`encode`](Self::encode), with the place of each token in its text: as many as ids. `None` where a
    /// tokenizer does not know them.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    fn encode_pieces(
        &self,
        _text: &str,
        _pair: Option<&str>,
        _max_length: usize,
    ) -> Result<Option<(Encoding, Vec<Option<Piece>>)>> {
        Ok(None)
    }

    /// The text of some ids, special tokens included.
    fn decode(&self, ids: &[u32]) -> String;

    /// The vocabulary's entry for each id.
    fn tokens(&self, ids: &[u32]) -> Vec<String>;

    /// Whether segment types tell the second text of a pair from the first.
    fn has_segments(&self) -> bool {
        true
    }

    /// The id that pads short rows.
    fn pad_id(&self) -> u32;

    /// The id for words that are not in the vocabulary.
    fn unk_id(&self) -> u32;

    /// The id that hides a token, where the vocabulary has one.
    fn mask_id(&self) -> Option<u32> {
        None
    }

    /// How many ids there are; every id is below it.
    fn vocab_size(&self) -> usize;

    /// Where the tokens of large data sets are kept, for a tokenizer that encodes a text always in the same way. Without it
    /// they are made anew each time.
    fn cache(&self) -> Option<TokenCache> {
        None
    }
}

/// One encoded text, or pair of texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoding {
    /// Token ids, special tokens included, no padding.
    pub ids: Vec<u32>,
    /// The segment of each token: 0 for the first text, 1 for the second. As long as `ids`.
    pub type_ids: Vec<u32>,
    /// How many tokens were removed by truncation.
    pub truncated: usize,
}

/// Where a token stands in its text. Special tokens stand nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its bytes in its text.
    pub range: Range<usize>,
    /// Whether that is the second text of a pair.
    pub in_pair: bool,
    /// Which word of its text it belongs to, by the tokenizer's own rules for splitting a text into words.
    pub word: u32,
}

impl Piece {
    /// Its bytes in its text without blanks at either end: byte-level tokenizers count a blank to the word behind it, and
    /// only some of their files trim it. Empty for a token of blanks only.
    pub fn trimmed(&self, text: &str) -> Range<usize> {
        trimmed(text, &self.range)
    }
}

/// A part of a text without the blanks at either end of it.
pub(crate) fn trimmed(text: &str, range: &Range<usize>) -> Range<usize> {
    let Some(part) = text.get(range.clone()) else {
        return range.clone();
    };
    let start = range.start + (part.len() - part.trim_start().len());
    start..start + part.trim().len()
}

/// How the texts of a data set are encoded.
pub(crate) struct Form {
    /// The most tokens of a text.
    pub(crate) max_length: usize,
    /// Whether it is asked where the tokens stand.
    pub(crate) with_pieces: bool,
    /// The second text that an example is encoded with.
    pub(crate) pair: fn(&Example) -> Option<&str>,
}

/// One example as a tokenizer encodes it in a [`Form`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tokenized {
    pub(crate) encoding: Encoding,
    /// Where each token stands; none where the form does not ask.
    pub(crate) pieces: Vec<Option<Piece>>,
}

impl Form {
    /// A text with its second one.
    pub(crate) fn of_texts(max_length: usize) -> Self {
        Self {
            max_length,
            with_pieces: false,
            pair: |example| example.pair.as_deref(),
        }
    }

    /// The same with the places of the tokens.
    pub(crate) fn of_pieces(max_length: usize) -> Self {
        Self {
            with_pieces: true,
            ..Self::of_texts(max_length)
        }
    }

    /// Encodes an example. One of numbers has no tokens.
    ///
    /// # Errors
    /// As [`Tokenize::encode`].
    pub(crate) fn encode(&self, tokenizer: &dyn Tokenize, example: &Example) -> Result<Tokenized> {
        if !example.features.is_empty() {
            return Ok(Tokenized::default());
        }
        let (text, pair) = (&example.text, (self.pair)(example));
        let (encoding, pieces) = if self.with_pieces {
            let encoded = tokenizer.encode_pieces(text, pair, self.max_length)?;
            encoded.unwrap_or_default()
        } else {
            let encoding = tokenizer.encode(text, pair, self.max_length)?;
            (encoding, Vec::new())
        };
        Ok(Tokenized { encoding, pieces })
    }
}

/// # Errors
/// SC0910 for a tokenizer that does not say where its tokens stand.
pub(crate) fn has_places(tokenizer: &dyn Tokenize, source: &str) -> Result<()> {
    match tokenizer.encode_pieces("a", None, 3)? {
        Some(_) => Ok(()),
        None => Err(problem::no_places(source)),
    }
}

/// A tokenizer for tests: one id per letter (`a` = 3), `[` and `]` around the text, other characters are unknown.
#[cfg(test)]
pub(crate) mod letters {
    use stratoscope_diagnostics::Result;

    use super::{Encoding, Piece, Tokenize};

    pub(crate) struct Letters;

    const START: u32 = 29;
    const END: u32 = 30;
    const UNKNOWN: u32 = 1;
    /// `*` in a text.
    pub(crate) const MASK: u32 = 2;

    impl Tokenize for Letters {
        fn encode(&self, text: &str, pair: Option<&str>, max_length: usize) -> Result<Encoding> {
            let id = |letter: char| match letter {
                'a'..='z' => letter as u32 - 'a' as u32 + 3,
                '*' => MASK,
                _ => UNKNOWN,
            };
            let mut ids = vec![START];
            ids.extend(text.chars().map(id));
            ids.push(END);
            let mut type_ids = vec![0; ids.len()];
            if let Some(pair) = pair {
                ids.extend(pair.chars().map(id));
                ids.push(END);
                type_ids.resize(ids.len(), 1);
            }
            let truncated = ids.len().saturating_sub(max_length);
            ids.truncate(max_length);
            type_ids.truncate(max_length);
            Ok(Encoding {
                ids,
                type_ids,
                truncated,
            })
        }

        /// Each letter is a token; words end at spaces.
        fn encode_pieces(
            &self,
            text: &str,
            pair: Option<&str>,
            max_length: usize,
        ) -> Result<Option<(Encoding, Vec<Option<Piece>>)>> {
            let encoding = self.encode(text, pair, max_length)?;
            let of = |text: &str, in_pair: bool| {
                let mut word = 0;
                let places = text.char_indices().map(move |(at, letter)| {
                    word += u32::from(letter == ' ');
                    let range = at..at + letter.len_utf8();
                    Some(Piece {
                        range,
                        in_pair,
                        word,
                    })
                });
                places.collect::<Vec<_>>()
            };
            let mut pieces = [vec![None], of(text, false), vec![None]].concat();
            if let Some(pair) = pair {
                pieces.extend(of(pair, true));
                pieces.push(None);
            }
            pieces.truncate(encoding.ids.len());
            Ok(Some((encoding, pieces)))
        }

        fn decode(&self, ids: &[u32]) -> String {
            self.tokens(ids).concat()
        }

        fn tokens(&self, ids: &[u32]) -> Vec<String> {
            let letter = |&id: &u32| match id {
                START => '[',
                END => ']',
                0 => '_',
                3..START => (b'a' + (id - 3) as u8) as char,
                _ => '?',
            };
            ids.iter().map(|id| letter(id).to_string()).collect()
        }

        fn pad_id(&self) -> u32 {
            0
        }

        fn unk_id(&self) -> u32 {
            UNKNOWN
        }

        fn mask_id(&self) -> Option<u32> {
            Some(MASK)
        }

        fn vocab_size(&self) -> usize {
            31
        }
    }
}

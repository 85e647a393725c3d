//! A text as words, and which tokens belong to which word.

use std::fmt;
use std::ops::Range;

use stratoscope_bert::BertTokenizer;
use stratoscope_data::{Encoding, Example, Piece, Tokenize};
use stratoscope_diagnostics::rules::NoWordToExplain;
use stratoscope_diagnostics::{Result, Rule};

/// A text, or a pair of texts, whose prediction is explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedText {
    /// The text.
    pub text: String,
    /// The second text of a pair.
    pub pair: Option<String>,
}

impl fmt::Display for ExplainedText {
    /// Both texts of a pair with a bar between them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        match &self.pair {
            Some(pair) => write!(f, " | {pair}"),
            None => Ok(()),
        }
    }
}

impl From<&str> for ExplainedText {
    fn from(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            pair: None,
        }
    }
}

impl From<String> for ExplainedText {
    fn from(text: String) -> Self {
        Self { text, pair: None }
    }
}

impl From<&String> for ExplainedText {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl<A: Into<String>, B: Into<String>> From<(A, B)> for ExplainedText {
    fn from((text, pair): (A, B)) -> Self {
        Self {
            text: text.into(),
            pair: Some(pair.into()),
        }
    }
}

impl From<&Example> for ExplainedText {
    fn from(example: &Example) -> Self {
        Self {
            text: example.text.clone(),
            pair: example.pair.clone(),
        }
    }
}

/// A word: what stands between two blanks. Signs belong to the word that they touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) range: Range<usize>,
    pub(crate) in_pair: bool,
    /// The places of its tokens; none if it was cut off.
    pub(crate) tokens: Vec<usize>,
}

/// A text with its words and tokens.
#[derive(Clone, Debug)]
pub(crate) struct Tokens {
    pub(crate) encoding: Encoding,
    pub(crate) words: Vec<Word>,
}

impl ExplainedText {
    /// The words of both texts, without their tokens.
    pub(crate) fn words(&self) -> Vec<Word> {
        let both = [(Some(&self.text), false), (self.pair.as_ref(), true)];
        let both = both
            .into_iter()
            .filter_map(|(text, in_pair)| Some((text?, in_pair)));
        both.flat_map(|(text, in_pair)| {
            ranges(text).into_iter().map(move |range| Word {
                range,
                in_pair,
                tokens: Vec::new(),
            })
        })
        .collect()
    }

    /// The text that a word is of.
    pub(crate) fn side(&self, in_pair: bool) -> &str {
        if in_pair {
            self.pair.as_deref().unwrap_or_default()
        } else {
            &self.text
        }
    }

    /// Tokenized, at most `max_length` tokens.
    ///
    /// # Errors
    /// SC0724 for a text without a word; the tokenizer's own diagnostics.
    pub(crate) fn tokenized(
        &self,
        call: &str,
        tokenizer: &BertTokenizer,
        max_length: usize,
    ) -> Result<Tokens> {
        let mut words = self.words();
        let encoded = tokenizer.encode_pieces(&self.text, self.pair.as_deref(), max_length)?;
        let (encoding, pieces) = encoded.unwrap_or_default();
        for (at, piece) in pieces.iter().enumerate() {
            let Some(piece) = piece else { continue };
            if let Some(word) = self.word_of(piece, &mut words) {
                word.tokens.push(at);
            }
        }
        if words.iter().all(|word| word.tokens.is_empty()) {
            let rule = NoWordToExplain {
                call: call.to_owned(),
                text: self.text.clone(),
            };
            return Err(rule.error());
        }
        Ok(Tokens { encoding, words })
    }

    fn word_of<'w>(&self, piece: &Piece, words: &'w mut [Word]) -> Option<&'w mut Word> {
        let own = piece.trimmed(self.side(piece.in_pair));
        let mut words = words
            .iter_mut()
            .filter(|word| word.in_pair == piece.in_pair);
        words.find(|word| own.start < word.range.end && own.end > word.range.start)
    }

    /// The text without some of its words, by their places among [`Self::words`].
    pub(crate) fn without(&self, words: &[Word], removed: &[usize]) -> Self {
        let rest = |in_pair: bool| {
            let kept = words
                .iter()
                .enumerate()
                .filter(|(at, word)| word.in_pair == in_pair && !removed.contains(at));
            let kept: Vec<&str> = kept
                .map(|(_, word)| &self.side(in_pair)[word.range.clone()])
                .collect();
            kept.join(" ")
        };
        Self {
            text: rest(false),
            pair: self.pair.as_ref().map(|_| rest(true)),
        }
    }
}

/// What stands between blanks.
fn ranges(text: &str) -> Vec<Range<usize>> {
    let words = text.split_whitespace().map(|word| {
        // A part of the text begins as far behind its begin as their addresses differ.
        let start = word.as_ptr() as usize - text.as_ptr() as usize;
        start..start + word.len()
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_what_stands_between_blanks() {
        let text = ExplainedText::from((" a  chess-game, für", "zwei"));
        let words = text.words();
        let names: Vec<&str> = words
            .iter()
            .map(|word| &text.side(word.in_pair)[word.range.clone()])
            .collect();
        assert_eq!(names, ["a", "chess-game,", "für", "zwei"]);
        assert!(words[3].in_pair && !words[2].in_pair);
        let rest = text.without(&words, &[1]);
        assert_eq!(
            (rest.text.as_str(), rest.pair.as_deref()),
            ("a für", Some("zwei"))
        );
        assert_eq!(text.without(&words, &[3]).pair.as_deref(), Some(""));
    }
}

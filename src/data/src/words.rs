//! Tagged words as tokens: which token gets the tag of its word. The first token of a word does; its further tokens,
//! special tokens and tokens in no word get −100, which no loss and no metric counts. This is the alignment of Hugging
//! Face's example for token classification (`label_all_tokens` off).

use std::ops::Range;

use stratoscope_diagnostics::Result;

use crate::annotation::Word;
use crate::batch::TokenLabels;
use crate::dataset::Dataset;
use crate::encoded::{Encoded, EncodedExample, Targets};
use crate::example::Example;
use crate::tags::TagScheme;
use crate::tokenize::{self, Encoding, Form, Piece, Tokenize, Tokenized};

/// The words of an example, and the token that each begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alignment {
    /// The bytes of each word in the text.
    pub words: Vec<Range<usize>>,
    /// The place of each word's first token; `None` for a word that was cut off or has no token.
    pub first_tokens: Vec<Option<usize>>,
}

impl Alignment {
    /// Of an example and its tokens: its own words, else those that the tokenizer sees, with signs inside of a word as part
    /// of it: `micro-editor` is one word, `London.` two.
    pub fn of(example: &Example, pieces: &[Option<Piece>]) -> Self {
        let words: Vec<Range<usize>> = match example.words() {
            Some(words) => words.iter().map(|word| word.range.clone()).collect(),
            None => words_of(&example.text, pieces),
        };
        let mut first_tokens = vec![None; words.len()];
        // Both are in the order of the text.
        let mut word = 0;
        for (at, piece) in pieces.iter().enumerate() {
            let Some(piece) = piece.as_ref().filter(|piece| !piece.in_pair) else {
                continue;
            };
            let own = piece.trimmed(&example.text);
            while words.get(word).is_some_and(|range| range.end <= own.start) {
                word += 1;
            }
            let is_in = words.get(word).is_some_and(|range| range.start < own.end);
            if is_in && first_tokens[word].is_none() {
                first_tokens[word] = Some(at);
            }
        }
        Self {
            words,
            first_tokens,
        }
    }

    /// The class of each of `length` tokens.
    fn targets(&self, words: &[Word], length: usize) -> Vec<i32> {
        let mut targets = vec![TokenLabels::IGNORED; length];
        for (word, first) in words.iter().zip(&self.first_tokens) {
            if let (Some(tag), Some(target)) = (word.tag, first.and_then(|at| targets.get_mut(at)))
            {
                *target = tag as i32;
            }
        }
        targets
    }
}

/// The words of a text. A tokenizer sees every sign of punctuation as a word of its own, and a byte-level one also letters and
/// digits that touch; a sign that stands between letters or digits, without spaces, joins them.
fn words_of(text: &str, pieces: &[Option<Piece>]) -> Vec<Range<usize>> {
    let mut words: Vec<(u32, Range<usize>)> = Vec::new();
    for piece in pieces.iter().flatten().filter(|piece| !piece.in_pair) {
        let own = piece.trimmed(text);
        if own.is_empty() {
            continue;
        }
        match words.last_mut() {
            Some((word, range)) if *word == piece.word => range.end = range.end.max(own.end),
            _ => words.push((piece.word, own)),
        }
    }
    let part = |range: &Range<usize>| text.get(range.clone()).unwrap_or_default();
    let has_letters = |range: &Range<usize>| part(range).chars().any(char::is_alphanumeric);
    let mut joined: Vec<Range<usize>> = Vec::with_capacity(words.len());
    for (_, word) in words {
        if let [.., before, sign] = &joined[..] {
            let touch = before.end == sign.start && sign.end == word.start;
            if touch && !has_letters(sign) && has_letters(before) && has_letters(&word) {
                joined.pop();
                let last = joined.len() - 1;
                joined[last].end = word.end;
                continue;
            }
        }
        match joined.last_mut() {
            Some(last) if last.end == word.start && goes_on(part(last), part(&word)) => {
                last.end = word.end;
            }
            _ => joined.push(word),
        }
    }
    joined
}

/// Whether a word of the tokenizer continues the one that it touches: letters behind digits, digits behind letters, and the
/// `'t` of `don't`. Ideographs are words by themselves, as BERT has them.
fn goes_on(before: &str, word: &str) -> bool {
    let is_of_word = |it: char| it.is_alphanumeric() && !is_ideograph(it);
    let mut begin = word.chars();
    let first = match begin.next() {
        Some('\'') => begin.next(),
        first => first,
    };
    before.chars().next_back().is_some_and(is_of_word) && first.is_some_and(is_of_word)
}

/// Source: google-research/bert@eedf571 `tokenization.py`, `_is_chinese_char`, in fewer ranges.
fn is_ideograph(it: char) -> bool {
    matches!(it, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{2fa1f}')
}

impl Dataset {
    /// Tokenizes examples of tagged words, in parallel, truncated to `max_length` tokens: the first token of each word
    /// has its tag as target. Examples without words have no target.
    ///
    /// # Errors
    /// As [`tokenize`](Self::tokenize); SC0910 for a tokenizer that does not say where its tokens stand.
    pub fn tokenize_words(&self, tokenizer: &dyn Tokenize, max_length: usize) -> Result<Encoded> {
        tokenize::has_places(tokenizer, &self.source)?;
        let encoded = self.tokenize_by(tokenizer, &form(max_length), of_words)?;
        Ok(encoded.with_scheme(TagScheme::of(&self.label_names)))
    }
}

/// How tagged words are encoded.
pub(crate) fn form(max_length: usize) -> Form {
    Form {
        max_length,
        with_pieces: true,
        pair: |_| None,
    }
}

/// The tokens of an example of tagged words.
pub(crate) fn of_words(index: usize, example: &Example, tokenized: Tokenized) -> EncodedExample {
    let Tokenized { encoding, pieces } = tokenized;
    let Encoding {
        ids,
        type_ids,
        truncated,
    } = encoding;
    let targets = match example.words() {
        Some(words) => {
            let aligned = Alignment::of(example, &pieces);
            Targets::Tokens(aligned.targets(words, ids.len()).into())
        }
        None => Targets::Label,
    };
    EncodedExample {
        targets,
        ids,
        type_ids,
        features: example.features.clone(),
        label: None,
        weight: example.weight,
        window: None,
        index,
        truncated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Labels;
    use crate::tokenize::letters::Letters;

    fn data() -> Dataset {
        let sentences = [(vec!["ab", "c"], vec!["B-X", "O"]), (vec!["d"], vec!["O"])];
        Dataset::from_words(sentences).expect("a tag for each word")
    }

    #[test]
    fn the_first_token_of_a_word_has_its_tag() {
        let encoded = data().tokenize_words(&Letters, 64).expect("it has places");
        // [ a b _ c ]: the space is a token of no word.
        let expected = Targets::Tokens([-100, 1, -100, -100, 0, -100].into());
        assert_eq!(encoded.get(0).map(|it| it.targets.clone()), Some(expected));
        let batch = encoded.batch(2).expect("2").next().expect("a batch");
        let Labels::Tokens(labels) = &batch.labels else {
            panic!("{:?}", batch.labels);
        };
        assert_eq!(labels.classes[6..], [-100, 0, -100, -100, -100, -100]);
        assert_eq!((labels.counted(), labels.weight), (3, 2.0 / 3.0));
        // A part of the batch counts its tokens as the whole batch does.
        let part = batch.split(2).remove(1).expect("a part");
        let Labels::Tokens(own) = &part.labels else {
            panic!("{:?}", part.labels);
        };
        assert_eq!(
            (own.counted(), own.weight, part.labels.len()),
            (1, 2.0 / 3.0, 1)
        );
        let parts = batch.in_parts_of(1);
        let Labels::Tokens(own) = &parts[1].labels else {
            panic!("{:?}", parts[1].labels);
        };
        assert_eq!((own.seq, &own.classes[..]), (3, &[-100, 0, -100][..]));
    }

    #[test]
    fn words_that_were_cut_off_have_no_token() {
        let data = data();
        let encoded = Letters.encode_pieces("ab c", None, 3).expect("letters");
        let (_, pieces) = encoded.expect("places");
        let aligned = Alignment::of(&data[0], &pieces);
        assert_eq!(aligned.first_tokens, [Some(1), None]);
        let encoded = data.tokenize_words(&Letters, 3).expect("it has places");
        assert_eq!(encoded.report().truncated_rows, 1);
    }

    #[test]
    fn a_text_without_words_has_those_of_the_tokenizer() {
        let example = Example::new("ab c");
        let (_, pieces) = Letters
            .encode_pieces(&example.text, None, 64)
            .expect("letters")
            .expect("places");
        let aligned = Alignment::of(&example, &pieces);
        // The tokenizer of the test counts the space to the word that follows, and so do byte-level ones.
        assert_eq!(aligned.words, [0..2, 3..4]);
        assert_eq!(aligned.first_tokens, [Some(1), Some(4)]);
    }

    #[test]
    fn a_sign_within_a_word_joins_it() {
        let text = "see micro-editor (a/b/c), 3.5 - x.";
        let parts = [
            "see", "micro", "-", "editor", "(", "a", "/", "b", "/", "c", ")", ",", "3", ".", "5",
            "-", "x", ".",
        ];
        let mut at = 0;
        let piece = |(word, part): (usize, &&str)| {
            let start = at + text[at..].find(*part).expect("it stands there");
            at = start + part.len();
            let word = word as u32;
            Some(Piece {
                word,
                range: start..at,
                in_pair: false,
            })
        };
        let pieces: Vec<_> = parts.iter().enumerate().map(piece).collect();
        let words = words_of(text, &pieces);
        let words: Vec<&str> = words.into_iter().map(|range| &text[range]).collect();
        let expected = [
            "see",
            "micro-editor",
            "(",
            "a/b/c",
            ")",
            ",",
            "3.5",
            "-",
            "x",
            ".",
        ];
        assert_eq!(words, expected);
    }

    /// As a byte-level tokenizer splits a text, without trimmed offsets.
    #[test]
    fn words_of_a_byte_level_tokenizer_are_those_that_a_reader_sees() {
        let text = "  I don't see B2B  at 3.5kg\n漢字, ";
        let parts = [
            " ", " I", " don", "'t", " see", " B", "2", "B", " ", " at", " 3", ".", "5", "kg",
            "\n", "漢字", ",", " ",
        ];
        let mut at = 0;
        let piece = |(word, part): (usize, &&str)| {
            let start = at;
            at += part.len();
            let word = word as u32;
            Some(Piece {
                word,
                range: start..at,
                in_pair: false,
            })
        };
        let pieces: Vec<_> = parts.iter().enumerate().map(piece).collect();
        let aligned = Alignment::of(&Example::new(text), &pieces);
        let words: Vec<&str> = aligned.words.iter().map(|it| &text[it.clone()]).collect();
        let expected = ["I", "don't", "see", "B2B", "at", "3.5kg", "漢字", ","];
        assert_eq!(words, expected);
        let first: Vec<usize> = aligned.first_tokens.into_iter().flatten().collect();
        assert_eq!(first, [1, 2, 4, 5, 9, 10, 15, 16]);
    }

    #[test]
    fn tags_take_the_numbers_of_another_split() {
        let train = data();
        let dev = Dataset::from_words([(vec!["x"], vec!["B-X"])]).expect("a tag");
        let dev = dev.with_labels_of(&train).expect("a known tag");
        assert_eq!(dev[0].words().map(|words| words[0].tag), Some(Some(1)));
        assert_eq!(train.class_counts(), [2, 1]);
        let other = Dataset::from_words([(vec!["x"], vec!["B-Y"])]).expect("a tag");
        let problem = other.with_labels_of(&train).expect_err("an unknown tag");
        assert_eq!(problem.code, "SC0913");
        assert!(format!("{problem:?}").contains("B-Y"));
    }
}

//! From a text to its tokens: the text is normalized and split into words, each word into pieces of the vocabulary; the pieces
//! are cut to a length and completed with the special tokens.
//!
//! `Tokenizer::encode` of `tokenizers` is not used. It has one length for all calls, and it always post-processes: an
//! encoding that is cut afterwards and post-processed again would have its offsets trimmed twice, which moves the begin of a
//! word behind its first letter. `tests/parity/byte-level` has the offsets of transformers. Nor does it have an end for a
//! text that its normalizers make longer and longer (`limits.rs`).

use std::ops::Range;

use stratoscope_data::{Encoding, Piece};
use tokenizers::utils::truncation::{TruncationParams, truncate_encodings};
use tokenizers::{
    Model, OffsetType, PostProcessor, PreTokenizedString, PreTokenizer, PreTokenizerWrapper,
};

use super::BertTokenizer;
use super::limits::{Failure, Limited};

impl BertTokenizer {
    /// The ids of a text, or of a pair of texts.
    pub(super) fn try_encode(
        &self,
        text: &str,
        pair: Option<&str>,
        max_length: usize,
    ) -> Result<Encoding, Failure> {
        let none = [OffsetType::None; 2];
        let (encoding, truncated) = self.cut_encoding(text, pair, max_length, none)?;
        let length = encoding.len().min(max_length);
        Ok(self.encoded(&encoding, length, truncated))
    }

    /// The same with the place of each token in its text.
    pub(super) fn try_encode_pieces(
        &self,
        text: &str,
        pair: Option<&str>,
        max_length: usize,
    ) -> Result<(Encoding, Vec<Option<Piece>>), Failure> {
        let places = [Places::of(text), Places::of(pair.unwrap_or_default())];
        let offsets = places.each_ref().map(Places::offset_type);
        let (encoding, truncated) = self.cut_encoding(text, pair, max_length, offsets)?;
        let length = encoding.len().min(max_length);
        let tokens = encoding.get_offsets().iter().zip(encoding.get_word_ids());
        let sequences = encoding.get_sequence_ids();
        let pieces = tokens.zip(sequences).map(|((&offsets, word), sequence)| {
            let sequence = sequence?;
            Some(Piece {
                range: places.get(sequence)?.bytes(offsets),
                in_pair: sequence == 1,
                word: (*word)?,
            })
        });
        let pieces = pieces.take(length).collect();
        Ok((self.encoded(&encoding, length, truncated), pieces))
    }

    fn encoded(
        &self,
        encoding: &tokenizers::Encoding,
        length: usize,
        truncated: usize,
    ) -> Encoding {
        let mut type_ids = encoding.get_type_ids()[..length].to_vec();
        if self.has_one_type {
            type_ids.fill(0);
        }
        Encoding {
            ids: encoding.get_ids()[..length].to_vec(),
            type_ids,
            truncated,
        }
    }

    /// Encodes without special tokens, truncates, then adds them; also returns the number of removed tokens.
    fn cut_encoding(
        &self,
        text: &str,
        pair: Option<&str>,
        max_length: usize,
        [of_text, of_pair]: [OffsetType; 2],
    ) -> Result<(tokenizers::Encoding, usize), Failure> {
        let tokenizer = &self.inner.tokenizer;
        let first = self.tokens_of(text, of_text)?;
        let second = pair.map(|pair| self.tokens_of(pair, of_pair)).transpose()?;
        let length_of = |encoding: &Option<tokenizers::Encoding>| {
            encoding.as_ref().map_or(0, |encoding| encoding.len())
        };
        let whole = first.len() + length_of(&second);
        // BERT: [CLS] text [SEP], and one more [SEP] after a pair.
        let added = tokenizer
            .get_post_processor()
            .map_or(0, |it| it.added_tokens(pair.is_some()));
        let room = TruncationParams {
            max_length: max_length.saturating_sub(added),
            direction: self.inner.direction,
            ..TruncationParams::default() // longest first, no overlap
        };
        let (mut first, mut second) = truncate_encodings(first, second, &room)?;
        let rest = first.len() + length_of(&second);
        // `tokenizers` keeps the truncated part as further windows, which are not used here.
        first.take_overflowing();
        if let Some(second) = &mut second {
            second.take_overflowing();
        }
        let encoding = tokenizer.post_process(first, second, true)?;
        Ok((encoding, whole - rest))
    }

    /// The tokens of a text without special tokens, not post-processed.
    fn tokens_of(&self, text: &str, offsets: OffsetType) -> Result<tokenizers::Encoding, Failure> {
        let tokenizer = &self.inner.tokenizer;
        let limited = self.inner.normalizers.for_text(text);
        let added = tokenizer.get_added_vocabulary();
        let mut words = added.extract_and_normalize(Some(&limited), text);
        limited.stopped()?;
        if let Some(pre_tokenizer) = tokenizer.get_pre_tokenizer() {
            split(pre_tokenizer, &mut words, &limited)?;
        }
        let tokenized = words.tokenize(|word| {
            let goes_on = limited.goes_on(word.get().len());
            goes_on.map_err(|failure| failure.to_string())?;
            tokenizer.get_model().tokenize(word.get())
        });
        limited.stopped()?;
        tokenized?;
        Ok(words.into_encoding(None, 0, offsets)?)
    }
}

/// Splits a text into words; of several pre-tokenizers, one after the other.
fn split(
    pre_tokenizer: &PreTokenizerWrapper,
    words: &mut PreTokenizedString,
    limited: &Limited<'_>,
) -> Result<(), Failure> {
    if let PreTokenizerWrapper::Sequence(sequence) = pre_tokenizer {
        let all: &[PreTokenizerWrapper] = sequence.as_ref();
        return all.iter().try_for_each(|each| split(each, words, limited));
    }
    limited.goes_on(limited.bytes())?;
    Ok(pre_tokenizer.pre_tokenize(words)?)
}

/// From the offsets of `tokenizers` to bytes. Offsets are counted in characters, as in transformers: a post-processor
/// trims a blank as one, however many bytes it has.
enum Places {
    /// One byte for each character.
    Ascii,
    /// The first byte of each character, and the length of the text.
    Starts(Vec<usize>),
}

impl Places {
    fn of(text: &str) -> Self {
        if text.is_ascii() {
            return Self::Ascii;
        }
        let starts = text.char_indices().map(|(at, _)| at);
        Self::Starts(starts.chain([text.len()]).collect())
    }

    fn offset_type(&self) -> OffsetType {
        match self {
            Self::Ascii => OffsetType::Byte,
            Self::Starts(_) => OffsetType::Char,
        }
    }

    fn bytes(&self, (start, end): (usize, usize)) -> Range<usize> {
        match self {
            Self::Ascii => start..end,
            Self::Starts(starts) => {
                let length = starts.last().copied().unwrap_or_default();
                let byte = |at: usize| starts.get(at).copied().unwrap_or(length);
                byte(start)..byte(end)
            }
        }
    }
}

//! Hidden tokens, from which a masked language model learns. Of each text a share of the tokens is chosen anew in every
//! epoch; of the chosen ones 8 of 10 become the mask token, 1 becomes any token, 1 stays as it is, and all of them are to be
//! predicted. Source: Devlin et al. 2019, section 3.1; google-research/bert@eedf571 `create_pretraining_data.py`,
//! `create_masked_lm_predictions`, which also has the whole words. New choices in every epoch: Liu et al. 2019, section 4.1.

use std::ops::Range;

use stratoscope_diagnostics::Result;

use crate::batch::{Labels, TokenLabels};
use crate::dataset::Dataset;
use crate::encoded::{Encoded, EncodedExample, Targets};
use crate::example::Example;
use crate::problem;
use crate::random::{RandomStream, mix};
use crate::tokenize::{self, Form, Tokenize, Tokenized};

/// Which tokens are hidden.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Masking {
    /// The share of the tokens of a text that is chosen, between 0 and 1; at least one token. Default: 0.15.
    pub share: f64,
    /// Whether all pieces of a word are chosen together. Default: no.
    pub whole_words: bool,
}

impl Default for Masking {
    fn default() -> Self {
        Self {
            share: 0.15,
            whole_words: false,
        }
    }
}

/// The number of a token that belongs to no word: `[CLS]`, `[SEP]`.
const NO_WORD: u32 = u32::MAX;

/// What is hidden in the batches of a data set.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hidden {
    /// What is chosen at random.
    Chosen {
        masking: Masking,
        mask_id: u32,
        vocab_size: usize,
        seed: u64,
        epoch: u64,
    },
    /// The mask tokens that the texts have.
    Written { mask_id: u32 },
}

impl Hidden {
    /// The same with the choices of an epoch.
    pub(crate) fn in_epoch(mut self, new_seed: u64, new_epoch: u64) -> Self {
        if let Self::Chosen { seed, epoch, .. } = &mut self {
            (*seed, *epoch) = (new_seed, new_epoch);
        }
        self
    }

    /// Hides tokens of a batch, whose ids are B × S, and says which they were.
    pub(crate) fn in_batch(
        self,
        examples: &[&EncodedExample],
        seq: usize,
        ids: &mut [i32],
    ) -> Labels {
        let of_example = |example: &&EncodedExample| match self {
            Self::Chosen { .. } => self.chosen(example),
            Self::Written { mask_id } => {
                let places = example.ids.iter().enumerate();
                let masks = places.filter(|(_, id)| **id == mask_id);
                masks.map(|(at, &id)| (at, id)).collect()
            }
        };
        let hidden: Vec<Vec<(usize, u32)>> = examples.iter().map(of_example).collect();
        let width = hidden.iter().map(Vec::len).max().unwrap_or(0).max(1);
        let mut classes = Vec::with_capacity(examples.len() * width);
        let mut places = Vec::with_capacity(examples.len() * width);
        for (row, (example, hidden)) in examples.iter().zip(&hidden).enumerate() {
            let end = classes.len() + width;
            for &(at, shown) in hidden {
                classes.push(match self {
                    Self::Chosen { .. } => example.ids[at] as i32,
                    Self::Written { .. } => TokenLabels::IGNORED,
                });
                places.push(at as i32);
                ids[row * seq + at] = shown as i32;
            }
            classes.resize(end, TokenLabels::IGNORED);
            places.resize(end, 0);
        }
        Labels::Tokens(TokenLabels::of_batch(
            classes,
            width,
            Some(places),
            examples.len(),
        ))
    }

    /// The chosen tokens of an example in their order, and what stands there instead of each.
    fn chosen(self, example: &EncodedExample) -> Vec<(usize, u32)> {
        let (
            Self::Chosen {
                masking,
                mask_id,
                vocab_size,
                seed,
                epoch,
            },
            Targets::Masked(words),
        ) = (self, &example.targets)
        else {
            return Vec::new();
        };
        let mut groups = groups(words, masking.whole_words);
        let tokens: usize = groups.iter().map(Range::len).sum();
        let wanted = ((tokens as f64 * masking.share).round() as usize).clamp(1, tokens.max(1));
        // A stream for each example of each epoch, so that it does not matter which batch it is in.
        let mut random = RandomStream::new(seed ^ mix(epoch), example.index as u64);
        let mut chosen = Vec::with_capacity(wanted);
        for first in 0..groups.len() {
            if chosen.len() >= wanted {
                break;
            }
            let drawn = first + random.below(groups.len() - first);
            groups.swap(first, drawn);
            // A word that is longer than what is left waits for another epoch; one is always taken.
            if chosen.is_empty() || chosen.len() + groups[first].len() <= wanted {
                chosen.extend(groups[first].clone());
            }
        }
        chosen.sort_unstable();
        let shown = |at: usize| match random.below(10) {
            0..8 => (at, mask_id),
            8 => (at, random.below(vocab_size) as u32),
            _ => (at, example.ids[at]),
        };
        chosen.into_iter().map(shown).collect()
    }
}

/// What is chosen at once: the tokens of a word, or single ones; by the number of each token's word.
fn groups(words: &[u32], whole_words: bool) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    for (at, &word) in words.iter().enumerate() {
        match groups.last_mut() {
            _ if word == NO_WORD => {}
            Some(last) if whole_words && last.end == at && words[at - 1] == word => {
                last.end = at + 1;
            }
            _ => groups.push(at..at + 1),
        }
    }
    groups
}

impl Dataset {
    /// Tokenizes texts, in parallel, truncated to `max_length` tokens, whose tokens are hidden by `masking` when batches
    /// are made of them: other ones in every [`shuffle`](Encoded::shuffle) or [`in_epoch`](Encoded::in_epoch), always the same
    /// ones without. Labels are not used.
    ///
    /// # Errors
    /// As [`tokenize`](Self::tokenize); SC0910 for a tokenizer without a mask token, or that does not say where its
    /// tokens stand.
    pub fn tokenize_masked(
        &self,
        tokenizer: &dyn Tokenize,
        max_length: usize,
        masking: Masking,
    ) -> Result<Encoded> {
        let hidden = Hidden::of_epochs(masking, tokenizer, &self.source)?;
        self.tokenize_hidden(tokenizer, max_length, hidden)
    }

    /// The same for texts that have mask tokens in them, which are to be filled in.
    ///
    /// # Errors
    /// As [`tokenize_masked`](Self::tokenize_masked).
    pub fn tokenize_blanks(&self, tokenizer: &dyn Tokenize, max_length: usize) -> Result<Encoded> {
        let mask_id = mask_of(tokenizer, &self.source)?;
        self.tokenize_hidden(tokenizer, max_length, Hidden::Written { mask_id })
    }

    fn tokenize_hidden(
        &self,
        tokenizer: &dyn Tokenize,
        max_length: usize,
        hidden: Hidden,
    ) -> Result<Encoded> {
        tokenize::has_places(tokenizer, &self.source)?;
        let encoded = self.tokenize_by(tokenizer, &Form::of_pieces(max_length), of_pieces)?;
        Ok(encoded.with_hidden(hidden))
    }
}

/// SC0910 for a tokenizer without a mask.
fn mask_of(tokenizer: &dyn Tokenize, source: &str) -> Result<u32> {
    let mask = tokenizer.mask_id();
    mask.ok_or_else(|| problem::no_mask(source))
}

impl Hidden {
    /// Tokens that are chosen anew in every epoch.
    ///
    /// # Errors
    /// SC0910 for a tokenizer without a mask, or that does not say where its tokens stand.
    pub(crate) fn of_epochs(
        masking: Masking,
        tokenizer: &dyn Tokenize,
        source: &str,
    ) -> Result<Self> {
        let mask_id = mask_of(tokenizer, source)?;
        tokenize::has_places(tokenizer, source)?;
        Ok(Self::Chosen {
            masking,
            mask_id,
            vocab_size: tokenizer.vocab_size(),
            seed: 0,
            epoch: u64::MAX,
        })
    }
}

/// The tokens of a text with the words that they belong to.
pub(crate) fn of_pieces(index: usize, example: &Example, tokenized: Tokenized) -> EncodedExample {
    let Tokenized { encoding, pieces } = tokenized;
    // The words of the second text are counted on from those of the first.
    let of_first = pieces.iter().flatten().filter(|piece| !piece.in_pair);
    let words_of_first = of_first.map(|piece| piece.word + 1).max().unwrap_or(0);
    let word = |piece: &Option<crate::Piece>| match piece {
        Some(piece) if piece.in_pair => words_of_first + piece.word,
        Some(piece) => piece.word,
        None => NO_WORD,
    };
    EncodedExample {
        targets: Targets::Masked(pieces.iter().map(word).collect()),
        ids: encoding.ids,
        type_ids: encoding.type_ids,
        features: example.features.clone(),
        label: None,
        weight: example.weight,
        window: None,
        index,
        truncated: encoding.truncated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batch;
    use crate::tokenize::letters::{Letters, MASK};

    /// 100 letters in words of 4 and a space, which the tokenizer of the test counts to the word that follows.
    fn texts(rows: usize) -> Dataset {
        Dataset::from_texts((0..rows).map(|row| {
            let letter = |at: usize| match at % 5 {
                4 => ' ',
                at => char::from(b'a' + ((7 * row + 3 * at) % 26) as u8),
            };
            (0..100).map(letter).collect::<String>()
        }))
    }

    fn masked(data: &Dataset, whole_words: bool) -> Encoded {
        let masking = Masking {
            whole_words,
            ..Masking::default()
        };
        let encoded = data.tokenize_masked(&Letters, 128, masking);
        encoded.expect("it has a mask and places")
    }

    fn labels(batch: &Batch) -> (&TokenLabels, &[i32]) {
        match &batch.labels {
            Labels::Tokens(labels) => (labels, labels.places.as_deref().expect("places")),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_share_of_the_tokens_is_hidden_and_eight_of_ten_are_masks() {
        let data = texts(400);
        let encoded = masked(&data, false);
        let (mut chosen, mut masks, mut same) = (0, 0, 0);
        for batch in encoded.shuffle(3, 0).batch(32).expect("32") {
            let (labels, places) = labels(&batch);
            assert_eq!(labels.seq, 15, "15 of 100 tokens in every row");
            assert_eq!(labels.weight, 1.0 / 15.0);
            for (at, (&class, &place)) in labels.classes.iter().zip(places).enumerate() {
                let row = at / labels.seq;
                let shown = batch.ids[row * batch.seq + place as usize];
                let original = encoded.get(batch.rows[row]).expect("a row");
                assert_eq!(class, original.ids[place as usize] as i32);
                chosen += 1;
                masks += usize::from(shown == MASK as i32);
                same += usize::from(shown == class);
            }
        }
        assert_eq!(chosen, 400 * 15);
        let share = |count: usize| count as f64 / f64::from(chosen);
        // Six thousand draws: five standard deviations are 0.026 and 0.02.
        assert!((share(masks) - 0.8).abs() < 0.03, "{}", share(masks));
        assert!((share(same) - 0.103).abs() < 0.03, "{}", share(same));
    }

    #[test]
    fn epochs_differ_and_each_comes_back() {
        let encoded = masked(&texts(8), false);
        let batch = |encoded: &Encoded| encoded.batch(8).expect("8").next().expect("a batch");
        let first = batch(&encoded.in_epoch(5, 0));
        assert_eq!(first, batch(&encoded.in_epoch(5, 0)));
        assert_ne!(first.ids, batch(&encoded.in_epoch(5, 1)).ids);
        assert_ne!(first.ids, batch(&encoded.in_epoch(6, 0)).ids);
        assert_eq!(batch(&encoded), batch(&encoded), "without an epoch: fixed");
        // The batch that an example is in does not matter.
        let alone = encoded.in_epoch(5, 0).batch(1).expect("1").nth(3);
        let alone = alone.expect("the fourth row");
        assert_eq!(alone, first.slice(3..4));
        assert_eq!(first.in_parts_of(1)[3].labels, first.labels.slice(3..4));
    }

    #[test]
    fn whole_words_are_hidden_together() {
        let encoded = masked(&texts(40), true);
        for batch in encoded.shuffle(1, 2).batch(8).expect("8") {
            let (labels, places) = labels(&batch);
            for row in 0..batch.size() {
                let own = row * labels.seq..(row + 1) * labels.seq;
                let of_row = labels.classes[own.clone()].iter().zip(&places[own]);
                let chosen: Vec<i32> = of_row
                    .filter(|(class, _)| **class != TokenLabels::IGNORED)
                    .map(|(_, place)| *place)
                    .collect();
                let Targets::Masked(words) = &encoded.get(batch.rows[row]).expect("a row").targets
                else {
                    panic!("no words");
                };
                for (at, word) in words.iter().enumerate() {
                    let is_in = chosen.contains(&(at as i32));
                    let of_word = chosen.iter().any(|&it| words[it as usize] == *word);
                    assert_eq!(is_in, *word != NO_WORD && of_word, "{chosen:?}");
                }
                assert!((5..=15).contains(&chosen.len()), "{chosen:?}");
            }
        }
        // A word that is longer than the share is hidden all the same.
        let one = masked(&Dataset::from_texts(["abcdefgh"]), true);
        let batch = one.batch(1).expect("1").next().expect("a batch");
        assert_eq!(labels(&batch).0.counted(), 8);
    }

    #[test]
    fn special_tokens_padding_and_empty_texts_are_left_alone() {
        let data = Dataset::from_texts(["", "ab", "abcdefghijklmnopqrst"]);
        let encoded = masked(&data, false);
        for epoch in 0..50 {
            let batch = encoded.in_epoch(0, epoch).batch(3).expect("3").next();
            let batch = batch.expect("a batch");
            let (labels, places) = labels(&batch);
            assert_eq!((labels.seq, labels.counted()), (3, 1 + 3));
            assert_eq!(labels.classes[..3], [TokenLabels::IGNORED; 3]);
            assert!(
                (1..=2).contains(&places[3]) && places[6..].iter().all(|at| (1..=20).contains(at))
            );
        }
        let nothing = masked(&Dataset::from_texts([""]), false);
        let batch = nothing.batch(1).expect("1").next().expect("a batch");
        assert_eq!(
            (labels(&batch).0.counted(), labels(&batch).0.weight),
            (0, 0.0)
        );
    }

    #[test]
    fn the_words_of_a_pair_are_apart() {
        let data = Dataset::from_pairs([("ab", "ab")]);
        let encoded = masked(&data, true);
        let Targets::Masked(words) = &encoded.get(0).expect("a row").targets else {
            panic!("no words");
        };
        assert_eq!(words[..], [NO_WORD, 0, 0, NO_WORD, 1, 1, NO_WORD]);
    }

    #[test]
    fn the_masks_of_a_text_are_its_blanks() {
        let data = Dataset::from_texts(["a*b*", "abc"]);
        let encoded = data.tokenize_blanks(&Letters, 64).expect("a mask");
        let batch = encoded.batch(2).expect("2").next().expect("a batch");
        let (labels, places) = labels(&batch);
        assert_eq!((labels.seq, places), (2, &[2, 4, 0, 0][..]));
        assert_eq!(labels.counted(), 0);
    }
}

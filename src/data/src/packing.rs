//! Texts joined into blocks of equal length, so that the batches of a masked language model have next to no padding. Source: the
//! function `group_texts` of Hugging Face's example for language models, which joins tokens; here texts are joined, so that
//! a block is an example like any other and can be read.

use stratoscope_diagnostics::Result;

use crate::dataset::Dataset;
use crate::example::Example;
use crate::problem;
use crate::tokenize::{Form, Tokenize, Tokenized};

/// A word of a text, with the space before it: where it ends in the text, and how many tokens it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word {
    end: usize,
    tokens: usize,
}

impl Dataset {
    /// The same texts, one after the other, in blocks that have `max_length` tokens or up to a word less, the last one
    /// excepted. A text that does not fit into the rest of a block goes on in the next one, cut between two words; a
    /// single word of more than `max_length` tokens is a block of its own, and truncated when it is used. The second text of
    /// a pair follows its first. A block has the row and the line of its first word, and no label.
    ///
    /// # Errors
    /// SC0914 if the texts have no tokens; SC0915 for a `max_length` that leaves no room beside the special tokens; SC0910 for
    /// a tokenizer that does not say where its tokens stand; SC0520 if it is interrupted.
    pub fn packed(&self, tokenizer: &dyn Tokenize, max_length: usize) -> Result<Self> {
        let Some((_, pieces)) = tokenizer.encode_pieces("a", None, usize::MAX) else {
            return Err(problem::no_places(&self.source));
        };
        let special = pieces.iter().filter(|piece| piece.is_none()).count();
        if max_length <= special {
            let expects = format!("at least {}", special + 1);
            let place = problem::call("packed");
            return Err(problem::bad_size(place, "max_length", max_length, &expects));
        }
        // The tokens of a word may depend on the space before it, which every word has here.
        let spaced = Self {
            examples: self.examples.iter().map(spaced).collect(),
            ..self.take(0)
        };
        let form = Form {
            pair: |_| None,
            ..Form::of_pieces(usize::MAX)
        };
        let of_text = |_: usize, _: &Example, whole: Tokenized| [words(&whole)];
        let (words, _) = spaced.encoded_by(tokenizer, &form, of_text)?;
        let mut blocks = Blocks::new(max_length - special);
        for (example, words) in spaced.examples.iter().zip(words) {
            blocks.add(example, &words);
        }
        let mut examples = blocks.finished();
        if examples.is_empty() {
            return Err(problem::empty(&self.source, "packed"));
        }
        let of = |text: &str| tokenizer.encode(text, None, usize::MAX);
        if of(" a") == of("a") {
            for example in &mut examples {
                // A block that begins within a text may begin with anything.
                if example.text.starts_with(' ') {
                    example.text.remove(0);
                }
            }
        }
        Ok(Self {
            examples,
            label_names: Vec::new(),
            ..self.take(0)
        })
    }
}

/// Both texts of an example as one that begins with a space.
fn spaced(example: &Example) -> Example {
    let mut text = String::new();
    // The text of a row of numbers is for reading.
    let of_text = example.features.is_empty().then_some(&example.text);
    for part in of_text.into_iter().chain(&example.pair) {
        text.push(' ');
        text.push_str(part);
    }
    Example {
        row: example.row,
        line: example.line,
        file: example.file.clone(),
        ..Example::new(text)
    }
}

/// The words of a text by its tokens.
fn words(text: &Tokenized) -> Vec<Word> {
    let mut words: Vec<(u32, Word)> = Vec::new();
    for piece in text.pieces.iter().flatten() {
        let end = piece.range.end;
        match words.last_mut() {
            Some((number, word)) if *number == piece.word => {
                word.end = word.end.max(end);
                word.tokens += 1;
            }
            _ => words.push((piece.word, Word { end, tokens: 1 })),
        }
    }
    words.into_iter().map(|(_, word)| word).collect()
}

/// Blocks of at most so many tokens, which are filled one after the other.
struct Blocks {
    room: usize,
    full: Vec<Example>,
    open: Option<(Example, usize)>,
}

impl Blocks {
    fn new(room: usize) -> Self {
        Self {
            room,
            full: Vec::new(),
            open: None,
        }
    }

    fn add(&mut self, text: &Example, words: &[Word]) {
        let mut start = 0;
        for word in words {
            if let Some((block, _)) = self
                .open
                .take_if(|(_, held)| *held + word.tokens > self.room)
            {
                self.full.push(block);
            }
            let (block, held) = self.open.get_or_insert_with(|| {
                let empty = Example {
                    text: String::new(),
                    ..text.clone()
                };
                (empty, 0)
            });
            block.text.push_str(&text.text[start..word.end]);
            *held += word.tokens;
            start = word.end;
        }
    }

    fn finished(mut self) -> Vec<Example> {
        self.full.extend(self.open.map(|(block, _)| block));
        self.full
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenize::letters::Letters;

    /// Of [`Letters`], whose words have the space before them as a token.
    fn packed(texts: &[&str], max_length: usize) -> Vec<String> {
        let data = Dataset::from_texts(texts.iter().copied());
        let blocks = data.packed(&Letters, max_length).expect("texts");
        blocks.examples.into_iter().map(|it| it.text).collect()
    }

    #[test]
    fn blocks_are_full_up_to_a_word_and_hold_every_word_once() {
        // Eight tokens beside the two special ones.
        assert_eq!(packed(&["abc de", "f", "ghi"], 10), [" abc de", " f ghi"]);
        assert_eq!(packed(&["ab cd ef gh ij"], 10), [" ab cd", " ef gh", " ij"]);
        assert_eq!(packed(&["a", "b", "c", "d", "e"], 10), [" a b c d", " e"]);
        // What is longer than a block has one of its own.
        assert_eq!(
            packed(&["a", "bcdefghijk", "l"], 10),
            [" a", " bcdefghijk", " l"]
        );
        let texts: Vec<String> = (0..200).map(|at| "word ".repeat(at % 7) + "end").collect();
        let data = Dataset::from_texts(texts.clone());
        let blocks = data.packed(&Letters, 34).expect("texts");
        let all: String = blocks.examples.iter().map(|it| it.text.as_str()).collect();
        assert_eq!(all, format!(" {}", texts.join(" ")));
        let encoded = blocks.tokenize(&Letters, 34).expect("texts");
        let report = encoded.report();
        assert_eq!(report.truncated_rows, 0);
        assert!(report.tokens > 30 * (report.rows - 1), "{report:?}");
    }

    #[test]
    fn a_block_tells_where_it_begins() {
        let mut data = Dataset::from_pairs([("ab", "cd"), ("ef", "gh"), ("", "ij")]);
        data.examples[1].line = Some(7);
        let blocks = data.packed(&Letters, 11).expect("texts");
        let of = |at: usize| {
            let block = &blocks.examples[at];
            (
                block.text.as_str(),
                block.row,
                block.line,
                block.pair.as_deref(),
            )
        };
        assert_eq!(of(0), (" ab cd ef", 0, None, None));
        assert_eq!(of(1), (" gh  ij", 1, Some(7), None));
        assert_eq!(blocks.len(), 2);
    }

    #[test]
    fn what_cannot_be_packed_is_refused() {
        let code =
            |data: &Dataset, length| data.packed(&Letters, length).expect_err("refused").code;
        let data = Dataset::from_texts(["abc"]);
        assert_eq!(code(&data, 2), "SC0915");
        assert_eq!(code(&data.take(0), 8), "SC0914");
    }
}

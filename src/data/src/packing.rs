//! Texts joined into blocks of equal length, so that the batches of a masked language model have next to no padding. Source: the
//! function `group_texts` of Hugging Face's example for language models, which joins tokens; here texts are joined, so that
//! a block is an example like any other and can be read.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde_json::json;
use stratoscope_diagnostics::Result;
use stratoscope_diagnostics::work::{Unit, Work};
use tempfile::NamedTempFile;

use crate::dataset::Dataset;
use crate::example::Example;
use crate::problem;
use crate::source::Columns;
use crate::stream::Stream;
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
    /// a pair follows its first. A block has the row and the line of its first word, no label, and no weight.
    ///
    /// # Errors
    /// SC0914 if the texts have no tokens; SC0915 for a `max_length` that leaves no room beside the special tokens; SC0910 for
    /// a tokenizer that does not say where its tokens stand; SC0520 if it is interrupted.
    pub fn packed(&self, tokenizer: &dyn Tokenize, max_length: usize) -> Result<Self> {
        let mut packer = Packer::new(tokenizer, max_length, &self.source)?;
        let spaced = Self {
            examples: self.examples.iter().map(spaced).collect(),
            ..self.take(0)
        };
        let of_text = |_: usize, _: &Example, whole: Tokenized| [words(&whole)];
        let (words, _) = spaced.encoded_by(tokenizer, &whole(), of_text)?;
        for (text, words) in spaced.examples.iter().zip(words) {
            packer.add(text, &words);
        }
        let examples = packer.finished();
        if examples.is_empty() {
            return Err(problem::empty(&self.source, "packed"));
        }
        Ok(Self {
            examples,
            label_names: Vec::new(),
            ..self.take(0)
        })
    }
}

impl Stream {
    /// The texts in full blocks, as [`Dataset::packed`] makes them, in a file of their own: JSON Lines, one block a line, which
    /// takes about the space of the texts. The file is read as a stream; a later session opens it with
    /// `Stream::jsonl_with(path, &Columns::new().unlabelled())`. An existing file is replaced once all blocks are written.
    ///
    /// # Errors
    /// As [`Dataset::packed`]; SC0908 if the file cannot be written, or is one of the stream's; SC0911 if a file of the stream has changed.
    pub fn packed(
        &self,
        tokenizer: &dyn Tokenize,
        max_length: usize,
        path: impl AsRef<Path>,
    ) -> Result<Self> {
        let path = path.as_ref();
        if self.reads(path) {
            let reason = "the texts are read from this file";
            return Err(problem::not_written(path, reason));
        }
        let mut packer = Packer::new(tokenizer, max_length, self.source())?;
        let mut file = BlockFile::beside(path)?;
        let verb = ("packing", "packed");
        let mut work = Work::begin(verb, self.len(), Unit::Things("text"));
        let mut done = 0;
        for portion in self.portions() {
            let portion = portion?;
            let texts = portion.examples.par_iter().map(spaced);
            let texts = texts
                .map(|text| {
                    let words = words(&whole().encode(tokenizer, &text)?);
                    Ok((text, words))
                })
                .collect::<Result<Vec<(Example, Vec<Word>)>>>()?;
            for (text, words) in &texts {
                packer.add(text, words);
            }
            file.add(packer.full())?;
            done += portion.len();
            work.reached(done)?;
        }
        work.finished();
        file.add(packer.finished())?;
        if file.blocks == 0 {
            return Err(problem::empty(self.source(), "packed"));
        }
        file.keep()?;
        Self::jsonl_with(path, &Columns::new().unlabelled())
    }
}

/// Blocks of a stream on their way to a file, which has its name once it is whole.
struct BlockFile<'a> {
    path: &'a Path,
    /// What the path leads to: a link stays one.
    target: PathBuf,
    to: BufWriter<NamedTempFile>,
    blocks: usize,
}

impl<'a> BlockFile<'a> {
    fn beside(path: &'a Path) -> Result<Self> {
        let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let folder = target.parent().filter(|it| !it.as_os_str().is_empty());
        let made = NamedTempFile::new_in(folder.unwrap_or(Path::new(".")));
        Ok(Self {
            path,
            target,
            to: BufWriter::new(made.map_err(|error| problem::not_written(path, error))?),
            blocks: 0,
        })
    }

    fn add(&mut self, blocks: impl IntoIterator<Item = Example>) -> Result<()> {
        let path = self.path;
        for block in blocks {
            let line = json!({ "text": block.text });
            writeln!(self.to, "{line}").map_err(|error| problem::not_written(path, error))?;
            self.blocks += 1;
        }
        Ok(())
    }

    fn keep(self) -> Result<()> {
        let written = self.to.into_inner().map_err(|error| error.into_error());
        let kept = written.and_then(|file| Ok(file.persist(self.target)?));
        kept.map_err(|error| problem::not_written(self.path, error))?;
        Ok(())
    }
}

/// Both texts of an example are one text here, which is not cut.
fn whole() -> Form {
    Form {
        pair: |_| None,
        ..Form::of_pieces(usize::MAX)
    }
}

/// Both texts of an example as one that begins with a space: the tokens of a word may depend on the space before it, which
/// every word has here.
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

/// Makes blocks of at most so many tokens, which are filled one after the other.
struct Packer {
    /// Tokens of a block beside the special ones.
    room: usize,
    /// Whether a space at the beginning of a text makes no token.
    drops_space: bool,
    full: Vec<Example>,
    /// The one that is being filled, and its tokens.
    open: Option<(Example, usize)>,
}

impl Packer {
    fn new(tokenizer: &dyn Tokenize, max_length: usize, source: &str) -> Result<Self> {
        let Some((_, pieces)) = tokenizer.encode_pieces("a", None, usize::MAX)? else {
            return Err(problem::no_places(source));
        };
        let special = pieces.iter().filter(|piece| piece.is_none()).count();
        if max_length <= special {
            let expects = format!("at least {}", special + 1);
            let place = problem::call("packed");
            return Err(problem::bad_size(place, "max_length", max_length, &expects));
        }
        let of = |text: &str| tokenizer.encode(text, None, usize::MAX);
        Ok(Self {
            room: max_length - special,
            drops_space: of(" a")? == of("a")?,
            full: Vec::new(),
            open: None,
        })
    }

    fn add(&mut self, text: &Example, words: &[Word]) {
        let mut start = 0;
        for word in words {
            let room = self.room;
            let full = (self.open).take_if(|(_, held)| *held + word.tokens > room);
            self.close(full);
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

    fn close(&mut self, block: Option<(Example, usize)>) {
        let Some((mut block, _)) = block else { return };
        // A block that begins within a text may begin with anything.
        if self.drops_space && block.text.starts_with(' ') {
            block.text.remove(0);
        }
        self.full.push(block);
    }

    /// The blocks that were filled since the last call.
    fn full(&mut self) -> impl Iterator<Item = Example> {
        std::mem::take(&mut self.full).into_iter()
    }

    /// The rest, with the block that is not full.
    fn finished(mut self) -> Vec<Example> {
        let open = self.open.take();
        self.close(open);
        self.full
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

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
    fn blocks_of_a_stream_are_those_of_a_data_set() {
        let folder = tempfile::tempdir().expect("a folder");
        let (texts, blocks) = (
            folder.path().join("texts.txt"),
            folder.path().join("blocks"),
        );
        // More than are read at a time.
        let lines: Vec<String> = (0..5000).map(|at| "word ".repeat(at % 7) + "end").collect();
        fs::write(&texts, lines.join("\n")).expect("a file");
        let stream = Stream::text(&texts).expect("texts");
        let packed = stream.packed(&Letters, 34, &blocks).expect("texts");
        let expected = Dataset::from_texts(lines)
            .packed(&Letters, 34)
            .expect("texts");
        let found = packed.first(packed.len()).expect("blocks");
        let texts_of = |data: &Dataset| -> Vec<String> {
            data.examples.iter().map(|it| it.text.clone()).collect()
        };
        assert_eq!(texts_of(&found), texts_of(&expected));
        // Another time the file is replaced.
        stream.packed(&Letters, 20, &blocks).expect("texts");
        let columns = Columns::new().unlabelled();
        let shorter = Stream::jsonl_with(&blocks, &columns).expect("blocks");
        assert!(shorter.len() > packed.len());
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2);
    }

    #[test]
    fn a_stream_is_not_packed_into_its_own_file_nor_where_none_can_be() {
        let folder = tempfile::tempdir().expect("a folder");
        let texts = folder.path().join("texts.txt");
        fs::write(&texts, "a text\n").expect("a file");
        let stream = Stream::text(&texts).expect("texts");
        for path in [texts.clone(), folder.path().join("nowhere/blocks")] {
            let refused = stream.packed(&Letters, 34, &path).expect_err("refused");
            assert_eq!(refused.code, "SC0908", "{}", path.display());
        }
        assert_eq!(fs::read_to_string(&texts).expect("a file"), "a text\n");
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

//! Column files of tagged words, as of the CoNLL shared tasks: a word a line, its columns separated by tabs or spaces,
//! the word first and the tag last; an empty line ends a sentence.

use std::io;

use stratoscope_diagnostics::Diagnostic;
use stratoscope_diagnostics::rules::RaggedRow;
use stratoscope_render::text;

use super::lines::Lines;
use super::raw::{At, Content, LONGEST_ROW, Limited, Raw};
use crate::problem;

/// Words of a sentence: a file without empty lines is one sentence, which is no sentence.
const MOST_WORDS: usize = 100_000;
/// Columns of CoNLL-U, the format of Universal Dependencies: the number of the word, the word, its lemma, its part of
/// speech (UPOS), and six more. Source: https://universaldependencies.org/format.html
const UNIVERSAL: usize = 10;
/// Distinct tags: a file whose last column is not a tag has a tag for each word.
const MOST_TAGS: usize = 4096;

/// The sentences of a file.
pub(super) struct Sentences {
    lines: Lines,
    reader: LineReader,
}

impl Sentences {
    pub(super) fn of(input: Limited, at: At) -> Self {
        Self {
            lines: Lines::of(input, at, true),
            reader: LineReader::default(),
        }
    }

    /// Where the line after the sentence that was read begins.
    pub(super) fn here(&self) -> At {
        self.lines.here()
    }

    pub(super) fn next(&mut self) -> io::Result<Option<Raw>> {
        let mut begin: Option<At> = None;
        let (mut words, mut tags) = (Vec::new(), Vec::new());
        while let Some(at) = self.lines.advance()? {
            let Some(row) = self.lines.text() else {
                let content = Content::NotText;
                return Ok(Some(Raw { at, content }));
            };
            match self.reader.read(at.line, row) {
                Ok(Line::End) if begin.is_some() => break,
                Ok(Line::End | Line::Comment) => {}
                Ok(Line::Word { word, tag }) => {
                    let begin = begin.get_or_insert(at).offset;
                    if !self.lines.is_row(self.lines.here().offset - begin) {
                        let most = LONGEST_ROW >> 20;
                        let reason = format!(
                            "a sentence is longer than {most} MiB: an empty line ends a sentence"
                        );
                        return Err(io::Error::other(reason));
                    }
                    words.push(word.to_owned());
                    tags.push(tag.to_owned());
                }
                Err(unfit) => {
                    let content = Content::Unfit(unfit);
                    return Ok(Some(Raw { at, content }));
                }
            }
        }
        let content = Content::Words(words, tags);
        Ok(begin.map(|at| Raw { at, content }))
    }
}

/// What a line is.
enum Line<'t> {
    /// It ends a sentence, if there was one: an empty line, or the begin of a document.
    End,
    /// A comment before a sentence.
    Comment,
    /// A word with its tag.
    Word { word: &'t str, tag: &'t str },
}

/// Why a line is none of these.
pub(super) enum Unfit {
    /// It has other columns than the lines before.
    Ragged {
        line: usize,
        expected: usize,
        fields: Vec<String>,
    },
    Other {
        line: usize,
        reason: String,
    },
}

impl Unfit {
    /// SC0912 and SC0911.
    pub(super) fn problem(self, call: &str, source: &str) -> Box<Diagnostic> {
        match self {
            Self::Ragged {
                line,
                expected,
                fields,
            } => {
                let rule = RaggedRow {
                    path: source.to_owned(),
                    line,
                    expected,
                    found: fields.len(),
                    text: text::excerpt(&fields.join(" ⇥ "), 80),
                    rows: 1,
                };
                problem::ragged_row(call, &rule)
            }
            Self::Other { line, reason } => problem::unreadable(call, source, Some(line), reason),
        }
    }
}

/// Reads lines, one after the other.
#[derive(Default)]
struct LineReader {
    /// The columns of the lines before.
    columns: Option<usize>,
    /// The line at which the present sentence begins, and its words so far; 0 before a sentence.
    begin: usize,
    words: usize,
}

impl LineReader {
    /// What a line is.
    ///
    /// # Errors
    /// If it is no word with its tag, or its sentence has no end.
    fn read<'t>(&mut self, line: usize, row: &'t str) -> std::result::Result<Line<'t>, Unfit> {
        if row.trim().is_empty() || row.starts_with("-DOCSTART-") {
            self.words = 0;
            return Ok(Line::End);
        }
        let is_first = self.words == 0;
        if is_first && row.starts_with("# ") {
            return Ok(Line::Comment);
        }
        let fields: Vec<&str> = match row.contains('\t') {
            true => row.split('\t').map(str::trim).collect(),
            false => row.split_whitespace().collect(),
        };
        let unfit = |reason| Err(Unfit::Other { line, reason });
        let is_universal =
            row.contains('\t') && fields.len() == UNIVERSAL && is_number_of_word(fields[0]);
        let (word, tag) = match fields[..] {
            // A word that is written together with the next, or one that is not written: its parts have lines.
            [number, ..] if is_universal && number.contains(['-', '.']) => {
                return Ok(Line::Comment);
            }
            [_, word, _, tag, ..] if is_universal => (word, tag),
            [word, .., tag] if !word.is_empty() && !tag.is_empty() => (word, tag),
            _ => {
                let shown = text::excerpt(row, 40);
                return unfit(format!("`{shown}` is not a word and its tag"));
            }
        };
        let expected = *self.columns.get_or_insert(fields.len());
        if fields.len() != expected {
            return Err(Unfit::Ragged {
                line,
                expected,
                fields: fields.into_iter().map(str::to_owned).collect(),
            });
        }
        if is_first {
            self.begin = line;
        }
        if self.words == MOST_WORDS {
            return unfit(format!(
                "the sentence of line {} has more than {} words: an empty line ends a sentence",
                self.begin,
                text::thousands(MOST_WORDS)
            ));
        }
        self.words += 1;
        Ok(Line::Word { word, tag })
    }
}

/// Whether the first column of a line of CoNLL-U: `7`, `7-8`, `7.1`.
fn is_number_of_word(column: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
    column.split(['-', '.']).all(is_part) && column.split(['-', '.']).count() <= 2
}

/// Why a column with so many different values is none of tags.
pub(super) fn too_many_tags(values: usize) -> Option<String> {
    (values > MOST_TAGS).then(|| {
        format!(
            "its last column has {} different values: that is no column of tags",
            text::thousands(values)
        )
    })
}

#[cfg(test)]
mod tests {
    use stratoscope_diagnostics::Result;

    use super::*;
    use crate::dataset::Dataset;

    fn read(content: &str) -> Result<Dataset> {
        Dataset::conll_text("words.conll", content)
    }

    #[test]
    fn sentences_end_at_empty_lines() {
        let content = "-DOCSTART- -X- O O\n\nAda NNP B-NP B-PER\nLovelace NNP I-NP I-PER\n\n\nit PRP B-NP O\n";
        let data = read(content).expect("it is readable");
        assert_eq!((data.len(), data[0].text.as_str()), (2, "Ada Lovelace"));
        assert_eq!(data.label_names, ["O", "B-PER", "I-PER"]);
        assert_eq!((data[0].line, data[1].line), (Some(3), Some(7)));
        let tags = |at: usize| -> Vec<_> {
            let words = data[at].words().expect("it has words");
            words
                .iter()
                .map(|word| (&data[at].text[word.range.clone()], word.tag))
                .collect()
        };
        assert_eq!(tags(0), [("Ada", Some(1)), ("Lovelace", Some(2))]);
        assert_eq!(tags(1), [("it", Some(0))]);
    }

    #[test]
    fn tabs_comments_and_words_with_spaces() {
        let data = read("# id = 7\nNew York\tB-LOC\nis\tO\n").expect("it is readable");
        assert_eq!(data[0].text, "New York is");
        assert_eq!(data[0].words().map(<[_]>::len), Some(2));
    }

    /// The begin of a file of Universal Dependencies.
    #[test]
    fn universal_dependencies_give_parts_of_speech() {
        let lines = [
            "# sent_id = 1",
            "# text = Vámonos al mar",
            "1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_",
            "1\tVamos\tir\tVERB\t_\tMood=Ind\t0\troot\t_\t_",
            "2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\tSpaceAfter=No",
            "2.1\tcopied\tcopy\tVERB\t_\t_\t_\t_\t_\t_",
            "3\tmar\tmar\tNOUN\t_\t_\t1\tobl\t_\t_",
            "",
            "",
        ];
        let data = read(&lines.join("\n")).expect("it is readable");
        assert_eq!(data[0].text, "Vamos nos mar");
        assert_eq!(data.label_names, ["NOUN", "PRON", "VERB"]);
        let tags = data[0].words().expect("words").iter().map(|word| word.tag);
        assert_eq!(tags.collect::<Vec<_>>(), [Some(2), Some(1), Some(0)]);
    }

    #[test]
    fn bad_lines_are_named() {
        let refused = |content: &str| {
            let problem = read(content).expect_err("it is refused");
            (problem.code.clone(), format!("{problem:?}"))
        };
        let (code, shown) = refused("Ada B-PER\nLovelace\n");
        assert!(
            code == "SC0911" && shown.contains("`Lovelace` is not a word and its tag"),
            "{shown}"
        );
        assert!(shown.contains('2'), "{shown}");
        let (code, shown) = refused("Ada B-PER\nof New O\n");
        assert!(
            code == "SC0912" && shown.contains("of ⇥ New ⇥ O"),
            "{shown}"
        );
        assert_eq!(refused("\n\n# only a comment\n").0, "SC0914");
        let distinct: String = (0..5000).map(|i| format!("word tag{i}\n\n")).collect();
        assert!(refused(&distinct).1.contains("no column of tags"));
        let endless = "word O\n".repeat(MOST_WORDS + 1);
        assert!(
            refused(&endless)
                .1
                .contains("an empty line ends a sentence")
        );
    }
}

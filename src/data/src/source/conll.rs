//! Column files of tagged words, as of the CoNLL shared tasks: a word a line, its columns separated by tabs or spaces,
//! the word first and the tag last; an empty line ends a sentence.

use std::path::Path;

use stratoscope_diagnostics::Result;
use stratoscope_diagnostics::rules::RaggedRow;
use stratoscope_render::text;

use super::{Reading, files, read_text};
use crate::dataset::{Dataset, index_of};
use crate::example::Example;
use crate::problem;
use crate::tags::sorted_tags;

const CALL: &str = "Dataset::conll";
/// Words of a sentence: a file without empty lines is one sentence, which is no sentence.
const MOST_WORDS: usize = 100_000;
/// Distinct tags: a file whose last column is not a tag has a tag for each word.
const MOST_TAGS: usize = 4096;

/// A sentence of a file: the line it begins at, and its words with their tags.
struct Sentence<'t> {
    line: usize,
    words: Vec<(&'t str, &'t str)>,
}

impl Dataset {
    /// Reads a file of tagged words. Lines that begin with `-DOCSTART-`, and lines of comment (`# …`) before a
    /// sentence, are skipped. The tags are numbered `O` first, then by entity.
    ///
    /// # Errors
    /// SC0911 if the file cannot be read as UTF-8, has a line with one column or a sentence without end, SC0912
    /// for a line with more or fewer columns than the first, SC0914 if there is no word.
    pub fn conll(path: impl AsRef<Path>) -> Result<Self> {
        files::read(CALL, path.as_ref(), |path| {
            let content = read_text(CALL, path)?;
            Self::conll_text(&path.display().to_string(), &content)
        })
    }

    /// [`Self::conll`] with the tags numbered by a list of names, such as that of the training split.
    ///
    /// # Errors
    /// As [`Self::conll`]; SC0913 for a tag that is not in the list.
    pub fn conll_with_labels(path: impl AsRef<Path>, label_names: &[String]) -> Result<Self> {
        Self::conll(path)?.with_label_names(label_names)
    }

    /// Reads text in memory; `source` names it in messages.
    pub(super) fn conll_text(source: &str, content: &str) -> Result<Self> {
        let sentences = sentences(source, content)?;
        if sentences.is_empty() {
            return Err(problem::empty(source, CALL));
        }
        let tags = sentences.iter().flat_map(|sentence| &sentence.words);
        let names = sorted_tags(tags.map(|(_, tag)| *tag));
        if names.len() > MOST_TAGS {
            let reason = format!(
                "its last column has {} different values: that is no column of tags",
                text::thousands(names.len())
            );
            return Err(problem::unreadable(CALL, source, None, reason));
        }
        let class_of = index_of(&names);
        let examples = sentences.iter().map(|sentence| {
            let words = sentence.words.iter();
            Example {
                line: Some(sentence.line),
                ..Example::of_words(words.map(|(word, tag)| (*word, class_of.get(tag).copied())))
            }
        });
        let examples: Vec<Example> = examples.collect();
        Ok(Self::from_examples(examples, names.clone(), source))
    }
}

/// The sentences of a file.
fn sentences<'t>(source: &str, content: &'t str) -> Result<Vec<Sentence<'t>>> {
    let mut sentences: Vec<Sentence<'t>> = Vec::new();
    let mut open = false;
    let mut columns = None;
    let mut reading = Reading::begin(content.len());
    let mut offset = 0;
    for (index, row) in content.lines().enumerate() {
        reading.row(offset)?;
        offset += row.len() + 1;
        let line = index + 1;
        if row.trim().is_empty() || row.starts_with("-DOCSTART-") {
            open = false;
            continue;
        }
        if !open && row.starts_with("# ") {
            continue;
        }
        let fields: Vec<&str> = match row.contains('\t') {
            true => row.split('\t').map(str::trim).collect(),
            false => row.split_whitespace().collect(),
        };
        let (Some(&word), Some(&tag)) = (fields.first(), fields.last()) else {
            continue;
        };
        if fields.len() < 2 || word.is_empty() || tag.is_empty() {
            let shown = text::excerpt(row, 40);
            let reason = format!("`{shown}` is not a word and its tag");
            return Err(problem::unreadable(CALL, source, Some(line), reason));
        }
        let expected = *columns.get_or_insert(fields.len());
        if fields.len() != expected {
            let rule = RaggedRow {
                path: source.to_owned(),
                line,
                expected,
                found: fields.len(),
                text: text::excerpt(&fields.join(" ⇥ "), 80),
                rows: 1,
            };
            return Err(problem::ragged_row(CALL, &rule));
        }
        if !open {
            sentences.push(Sentence {
                line,
                words: Vec::new(),
            });
            open = true;
        }
        if let Some(sentence) = sentences.last_mut() {
            if sentence.words.len() == MOST_WORDS {
                let reason = format!(
                    "the sentence of line {} has more than {} words: an empty line ends a sentence",
                    sentence.line,
                    text::thousands(MOST_WORDS)
                );
                return Err(problem::unreadable(CALL, source, Some(line), reason));
            }
            sentence.words.push((word, tag));
        }
    }
    reading.finished();
    Ok(sentences)
}

#[cfg(test)]
mod tests {
    use super::*;

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

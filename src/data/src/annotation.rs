//! [`Annotation`]: what an example is labeled with where one class or one number is not enough: tags of words,
//! answers in a text.

use std::ops::Range;
use std::sync::Arc;

use stratoscope_diagnostics::Result;

use crate::dataset::{Dataset, index_of};
use crate::example::Example;
use crate::problem;
use crate::tags::{TagScheme, sorted_tags};

/// What an example is labeled with beside a class or a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Annotation {
    /// The words of the text, in order, with their tags: for token classification.
    Words(Vec<Word>),
    /// The answers to the question that the text is, in the second text; none if that has none.
    Answers(Vec<Answer>),
    /// The classes that the text has, in order and each once; there may be none.
    Classes(Vec<usize>),
    /// The texts of which one goes with the text, in their order; the label is the number of the right one.
    Choices(Vec<String>),
}

/// An answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its bytes in the context.
    pub range: Range<usize>,
    /// What stood there when it was marked.
    pub(crate) text: Box<str>,
}

impl Answer {
    /// A text that begins at a byte of the context.
    pub(crate) fn at(start: usize, text: &str) -> Self {
        Self {
            range: start..start + text.len(),
            text: text.into(),
        }
    }

    /// Whether it stands there, in letters of either case.
    fn is_in(&self, context: &str) -> bool {
        let found = context.get(self.range.clone());
        found.is_some_and(|found| {
            *found == *self.text || found.to_lowercase() == self.text.to_lowercase()
        })
    }
}

/// A word of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// Its bytes in the text.
    pub range: Range<usize>,
    /// Its tag, an index into the data set's `label_names`; `None` where it has none.
    pub tag: Option<usize>,
}

impl Example {
    /// An example of words: the text is the words with a space between two of them.
    pub(crate) fn of_words<'w>(words: impl IntoIterator<Item = (&'w str, Option<usize>)>) -> Self {
        let (mut text, mut ranges) = (String::new(), Vec::new());
        for (word, tag) in words {
            if !text.is_empty() {
                text.push(' ');
            }
            let start = text.len();
            text.push_str(word);
            ranges.push(Word {
                range: start..text.len(),
                tag,
            });
        }
        Self {
            annotation: Some(Arc::new(Annotation::Words(ranges))),
            ..Self::new(text)
        }
    }

    /// Its words, if it has tagged ones.
    pub fn words(&self) -> Option<&[Word]> {
        match self.annotation.as_deref() {
            Some(Annotation::Words(words)) => Some(words),
            _ => None,
        }
    }
}

/// Whether words stand in a text as [`Example::of_words`] has put them there, one after the other with a space between.
fn are_in(words: &[Word], text: &str) -> bool {
    let mut end = 0;
    let are_in_order = words.iter().enumerate().all(|(at, word)| {
        let begin = end + usize::from(at > 0);
        let is_after_space = at == 0 || text.get(end..begin) == Some(" ");
        end = word.range.end;
        is_after_space && word.range.start == begin && text.is_char_boundary(end)
    });
    are_in_order && end == text.len()
}

/// What words and their tags have that they must not have.
pub(crate) fn unfit<W: AsRef<str>, T>(words: &[W], tags: &[T]) -> Option<String> {
    if words.len() != tags.len() {
        return Some(format!("{} words and {} tags", words.len(), tags.len()));
    }
    let mut words = words.iter();
    let has_empty = words.any(|word| word.as_ref().trim().is_empty());
    has_empty.then(|| "an empty word".to_owned())
}

impl Dataset {
    /// A data set of sentences as lists of words, each with a list of the words' tags. The tags are numbered
    /// `O` first, then by entity, `B-` before `I-`.
    ///
    /// ```
    /// use stratoscope_data::Dataset;
    ///
    /// # fn main() -> stratoscope_diagnostics::Result<()> {
    /// let data = Dataset::from_words([
    ///     (vec!["Ada", "Lovelace", "lived", "in", "London"], vec!["B-PER", "I-PER", "O", "O", "B-LOC"]),
    ///     (vec!["it", "rains"], vec!["O", "O"]),
    /// ])?;
    /// assert_eq!(data.label_names, ["O", "B-LOC", "B-PER", "I-PER"]);
    /// assert_eq!(data[0].text, "Ada Lovelace lived in London");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// SC0911 for a sentence with more or fewer tags than words, or an empty word; SC0914 if there is none.
    pub fn from_words<W: AsRef<str>, T: AsRef<str>>(
        sentences: impl IntoIterator<Item = (Vec<W>, Vec<T>)>,
    ) -> Result<Self> {
        const CALL: &str = "Dataset::from_words";
        let sentences: Vec<(Vec<W>, Vec<T>)> = sentences.into_iter().collect();
        let source = "words in memory";
        for (row, (words, tags)) in sentences.iter().enumerate() {
            if let Some(what) = unfit(words, tags) {
                let reason = format!("row {row} has {what}");
                return Err(problem::unreadable(CALL, source, None, reason));
            }
        }
        if sentences.is_empty() {
            return Err(problem::empty(source, CALL));
        }
        let tags = sentences.iter().flat_map(|(_, tags)| tags);
        let names = sorted_tags(tags.map(AsRef::as_ref));
        let class_of = index_of(&names);
        let examples = sentences.iter().map(|(words, tags)| {
            let tags = tags.iter().map(|tag| class_of.get(tag.as_ref()).copied());
            Example::of_words(words.iter().map(AsRef::as_ref).zip(tags))
        });
        Ok(Self::from_examples(
            examples.collect::<Vec<_>>(),
            names.clone(),
            source,
        ))
    }

    /// Whether answers and words stand where they were marked: their texts may have been changed since.
    ///
    /// # Errors
    /// SC0432 for an answer that does not, SC0911 for words.
    pub(crate) fn check_places(&self) -> Result<()> {
        for example in &self.examples {
            match example.annotation.as_deref() {
                Some(Annotation::Answers(answers)) => {
                    let context = example.pair.as_deref().unwrap_or_default();
                    if let Some(moved) = answers.iter().find(|answer| !answer.is_in(context)) {
                        return Err(problem::moved_answer(&self.source, example, moved));
                    }
                }
                Some(Annotation::Words(words)) if !are_in(words, &example.text) => {
                    return Err(problem::moved_words(&self.source, example));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether the examples are words with tags.
    pub fn is_tagged(&self) -> bool {
        self.examples
            .iter()
            .any(|example| example.words().is_some())
    }

    /// The same with `B-` at the begin of every entity and `I-` inside it, by the rule that a word which continues no
    /// entity begins one: IOB2 of IOB1, of `E-` and `S-`, or of tags without a prefix.
    ///
    /// # Errors
    /// SC0911 for data without tagged words.
    pub fn with_begin_tags(&self) -> Result<Self> {
        if !self.is_tagged() {
            let reason = "it has no words with tags".to_owned();
            return Err(problem::unreadable(
                "with_begin_tags",
                &self.source,
                None,
                reason,
            ));
        }
        let scheme = TagScheme::of(&self.label_names);
        let mut names = vec!["O".to_owned()];
        for of_type in scheme.types() {
            names.extend([format!("B-{of_type}"), format!("I-{of_type}")]);
        }
        let retagged = |example: &Example| {
            let mut words = example.words()?.to_vec();
            let tags: Vec<usize> = words
                .iter()
                .map(|word| word.tag.unwrap_or(usize::MAX))
                .collect();
            for word in words.iter_mut().filter(|word| word.tag.is_some()) {
                word.tag = Some(0);
            }
            for entity in scheme.entities(&tags) {
                for at in entity.words.clone() {
                    let inside = usize::from(at > entity.words.start);
                    words[at].tag = Some(1 + 2 * entity.of_type + inside);
                }
            }
            Some(Arc::new(Annotation::Words(words)))
        };
        let examples = self.examples.iter().map(|example| Example {
            annotation: retagged(example),
            ..example.clone()
        });
        let data = Self {
            examples: examples.collect(),
            label_names: names,
            source: self.source.clone(),
            skipped: self.skipped.clone(),
            remarks: self.remarks.clone(),
            auto_shard: self.auto_shard,
        };
        Ok(data.with_names_in_examples())
    }

    /// Renumbers the tags of the words of an example; the first one that `class_of` does not have, if there is one.
    pub(crate) fn renumber_words(
        example: &mut Example,
        class_of: impl Fn(usize) -> Option<usize>,
    ) -> Option<usize> {
        let words = example.words()?;
        let mut renumbered = words.to_vec();
        for word in &mut renumbered {
            let Some(tag) = word.tag else { continue };
            match class_of(tag) {
                Some(class) => word.tag = Some(class),
                None => return Some(tag),
            }
        }
        example.annotation = Some(Arc::new(Annotation::Words(renumbered)));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_begin_of_every_entity_is_written() {
        let words = || vec!["a", "b", "c", "d"];
        let retagged = |tags: Vec<&str>| {
            let data = Dataset::from_words([(words(), tags)]).expect("a tag for each word");
            let data = data.with_begin_tags().expect("it has words");
            let tags = data[0].words().expect("it has words").iter();
            let name = |word: &Word| data.label_names[word.tag.expect("a tag")].clone();
            tags.map(name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(retagged(vec!["I-X", "I-X", "O", "I-Y"]), "B-X I-X O B-Y");
        assert_eq!(retagged(vec!["S-X", "B-X", "E-X", "O"]), "B-X B-X I-X O");
        assert_eq!(retagged(vec!["X", "X", "Y", "O"]), "B-X I-X B-Y O");
        assert_eq!(
            Dataset::from_texts(["a"])
                .with_begin_tags()
                .expect_err("no words")
                .code,
            "SC0911"
        );
    }

    #[test]
    fn texts_that_change_must_leave_words_and_answers_in_their_places() {
        let change = |data: &Dataset, change: fn(&str) -> String| {
            let changed = data.map(|mut example| {
                example.pair = example.pair.as_deref().map(change);
                if example.words().is_some() {
                    example.text = change(&example.text);
                }
                example
            });
            let found = changed
                .check_places()
                .map_err(|problem| problem.code.clone());
            found.err()
        };
        let words = Dataset::from_words([(vec!["Ada", "\u{130}zmir"], vec!["O", "O"])]);
        let words = words.expect("a tag for each word");
        let questions = Dataset::from_questions([("who ?", "Zo\u{eb} wrote it", "wrote")]);
        let questions = questions.expect("it is in it");
        for (data, code) in [(&words, "SC0911"), (&questions, "SC0432")] {
            assert_eq!(change(data, str::to_owned), None);
            assert_eq!(change(data, |text| text.replace('a', "A")), None);
            assert_eq!(
                change(data, |text| format!(" {text}")).as_deref(),
                Some(code)
            );
            assert_eq!(
                change(data, |text| text[..4].to_owned()).as_deref(),
                Some(code)
            );
        }
        // Lower case of this letter has a byte more.
        let lower = change(&words, |text| text.to_lowercase());
        assert_eq!(lower.as_deref(), Some("SC0911"));
        assert_eq!(change(&questions, |text| text.to_uppercase()), None);
        let moved = change(&questions, |text| text.replace("wrote", "write"));
        assert_eq!(moved.as_deref(), Some("SC0432"));
    }

    #[test]
    fn as_many_tags_as_words() {
        let refused = |words: Vec<&str>, tags: Vec<&str>| {
            let problem = Dataset::from_words([(words, tags)]).expect_err("it is refused");
            (problem.code.clone(), format!("{problem:?}"))
        };
        let (code, shown) = refused(vec!["a", "b"], vec!["O"]);
        assert!(
            code == "SC0911" && shown.contains("row 0 has 2 words and 1 tags"),
            "{shown}"
        );
        assert!(
            refused(vec!["a", " "], vec!["O", "O"])
                .1
                .contains("an empty word")
        );
        let none: [(Vec<&str>, Vec<&str>); 0] = [];
        assert_eq!(
            Dataset::from_words(none).expect_err("nothing").code,
            "SC0914"
        );
    }
}

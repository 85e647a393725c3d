//! [`Row`]: what a row of a file is, as its [`Layout`](super::layout::Layout) reads it.

use std::sync::Arc;

use super::squad::Question;
use crate::annotation::Answer;
use crate::example::{Example, Label};

/// A row that can be read.
pub(super) struct Fields {
    pub(super) text: String,
    pub(super) pair: Option<String>,
    pub(super) label: Given,
    /// What its loss is multiplied with.
    pub(super) weight: f32,
}

impl Fields {
    /// Those of a text alone.
    fn of(text: String) -> Self {
        Self {
            text,
            pair: None,
            label: Given::Nothing,
            weight: 1.0,
        }
    }

    /// The example. `class` is the number of a class by what is written, and `names` are those of the numbers.
    ///
    /// `None` for something that is written and is no class.
    pub(super) fn example(
        self,
        class: impl Fn(&str) -> Option<usize>,
        names: &[Arc<str>],
    ) -> Option<Example> {
        let classes = |given: &[String]| -> Option<Vec<usize>> {
            given.iter().map(|name| class(name)).collect()
        };
        let mut example = Example::new(self.text);
        let label = match self.label {
            Given::Nothing => None,
            Given::Value(value) => Some(Label::Value(value)),
            Given::Class(name) => Some(Label::Class(class(&name)?)),
            Given::Several(given) => {
                example = example.with_classes(classes(&given)?);
                None
            }
            Given::Choice { choices, right } => {
                example = example.with_choices(choices);
                right.map(Label::Class)
            }
            Given::Answers(answers) => {
                example = example.with_answers(answers);
                None
            }
            Given::Tags { words, tags } => {
                let tags = classes(&tags)?.into_iter().map(Some);
                example = Example::of_words(words.iter().map(String::as_str).zip(tags));
                None
            }
        };
        let label_name = match (label, example.classes()) {
            (Some(Label::Class(class)), _) => names.get(class).cloned(),
            (_, Some(classes)) => {
                let own = classes.iter().filter_map(|&it| names.get(it));
                let own: Vec<&str> = own.map(|it| &**it).collect();
                Some(own.join(", ").into())
            }
            _ => None,
        };
        Some(Example {
            pair: self.pair,
            label,
            weight: self.weight,
            label_name,
            ..example
        })
    }
}

/// The label of a row as it is written.
pub(super) enum Given {
    Nothing,
    Class(String),
    Value(f32),
    /// The names of all labels that it has.
    Several(Vec<String>),
    /// A text of words, each of which has a tag.
    Tags {
        words: Vec<String>,
        tags: Vec<String>,
    },
    /// Texts to choose from, and the number of the right one.
    Choice {
        choices: Vec<String>,
        right: Option<usize>,
    },
    /// The answers to a question in the second text; none if that has none.
    Answers(Vec<Answer>),
}

/// What a row is.
pub(super) enum Row {
    Example(Fields),
    /// Left out for want of a label, as was asked for.
    Dropped,
    /// It has no label, and needs one.
    Unlabelled,
    /// A question and its context, in which an answer does not stand where the row says.
    Misplaced(Question, String),
    /// It cannot be read.
    Bad(Bad),
}

/// What is wrong with a row.
pub(super) enum Bad {
    /// Fields that are not as many as the columns.
    Ragged(Vec<String>),
    /// Something else, as a sentence about "it" and as one of a list.
    Other { reason: String, listed: String },
}

pub(super) fn tagged(words: Vec<String>, tags: Vec<String>) -> Row {
    let label = Given::Tags { words, tags };
    Row::Example(Fields {
        label,
        ..Fields::of(String::new())
    })
}

/// A text alone.
pub(super) fn unlabelled(text: String) -> Row {
    Row::Example(Fields::of(text))
}

/// A question, its context, and its answers, which come as JSON.
pub(super) fn question(line: usize, fields: &[String], columns: [usize; 3]) -> Row {
    let [text, context, answers] =
        columns.map(|column| fields.get(column).map_or("", String::as_str));
    match Question::written(text, answers) {
        Ok(asked) => of_question(asked, context.to_owned()),
        Err(reason) => wrong(line, reason),
    }
}

/// A question about a text.
pub(super) fn of_question(asked: Question, context: String) -> Row {
    match asked.placed(&context) {
        Ok(answers) => Row::Example(Fields {
            pair: Some(context),
            label: Given::Answers(answers),
            ..Fields::of(asked.text().to_owned())
        }),
        Err(_) => Row::Misplaced(asked, context),
    }
}

/// A row that cannot be read, for a reason that is a sentence about it.
pub(super) fn wrong(line: usize, reason: String) -> Row {
    let listed = format!("line {line}: {reason}");
    bad(reason, listed)
}

pub(super) fn bad(reason: impl Into<String>, listed: impl Into<String>) -> Row {
    Row::Bad(Bad::Other {
        reason: reason.into(),
        listed: listed.into(),
    })
}

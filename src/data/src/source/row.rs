//! [`Row`]: what a row of a file is, as its [`Layout`](super::layout::Layout) reads it.

use super::squad::Question;
use crate::annotation::Answer;

/// A row that can be read.
pub(crate) struct Fields {
    pub(crate) text: String,
    pub(crate) pair: Option<String>,
    pub(crate) label: Given,
    /// What its loss is multiplied with.
    pub(crate) weight: f32,
}

/// The label of a row as it is written.
pub(crate) enum Given {
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
pub(crate) enum Row {
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
pub(crate) enum Bad {
    /// Fields that are not as many as the columns.
    Ragged(Vec<String>),
    /// Something else, as a sentence about "it" and as one of a list.
    Other { reason: String, listed: String },
}

pub(crate) fn tagged(words: Vec<String>, tags: Vec<String>) -> Row {
    Row::Example(Fields {
        text: String::new(),
        pair: None,
        label: Given::Tags { words, tags },
        weight: 1.0,
    })
}

/// A question, its context, and its answers, which come as JSON.
pub(crate) fn question(line: usize, fields: &[String], columns: [usize; 3]) -> Row {
    let [text, context, answers] =
        columns.map(|column| fields.get(column).map_or("", String::as_str));
    match Question::written(text, answers) {
        Ok(asked) => of_question(asked, context.to_owned()),
        Err(reason) => {
            let listed = format!("line {line}: {reason}");
            bad(reason, listed)
        }
    }
}

/// A question about a text.
pub(crate) fn of_question(asked: Question, context: String) -> Row {
    match asked.placed(&context) {
        Ok(answers) => Row::Example(Fields {
            text: asked.text().to_owned(),
            pair: Some(context),
            label: Given::Answers(answers),
            weight: 1.0,
        }),
        Err(_) => Row::Misplaced(asked, context),
    }
}

pub(crate) fn bad(reason: impl Into<String>, listed: impl Into<String>) -> Row {
    Row::Bad(Bad::Other {
        reason: reason.into(),
        listed: listed.into(),
    })
}

//! What TensorFlow and Keras do with the same program, by version.
//!
//! Two tables: [`ARGUMENTS`], what each version does with an argument of a call, and [`SITUATIONS`], what it
//! does where a rule speaks. Cards and pages say nothing about TensorFlow but what they quote from
//! here: a [`Quote`] is made by this module alone.

mod arguments;
mod situations;

use crate::{Answer, Profile};

pub use arguments::{ARGUMENTS, ArgumentOf, Treatment, answer, refusal, treatment};
pub use situations::{Does, SITUATIONS, Situation};

/// A sentence of the tables, as a card shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote(String);

impl Quote {
    /// What the table says of the only situation of a rule.
    pub fn of(code: &str) -> Self {
        Self::case(code, "")
    }

    /// The same for a rule with several situations.
    pub fn case(code: &str, case: &str) -> Self {
        Self::with(code, case, &[])
    }

    /// The same with the facts of the card in place of their names: `{classes}`.
    pub fn with(code: &str, case: &str, facts: &[(&str, String)]) -> Self {
        let mut text = situation(code, case).map_or_else(String::new, |it| it.card.to_owned());
        for (name, value) in facts {
            text = text.replace(&format!("{{{name}}}"), value);
        }
        Self(text)
    }

    /// What the versions do with an argument of a call: `compile`, `fit`, `evaluate`, an optimizer.
    pub fn argument(call: &str, name: &str) -> Self {
        Self(arguments::sentence(call, name))
    }

    /// The sentence; empty where the tables say nothing.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// A row of the table of situations.
pub fn situation(code: &str, case: &str) -> Option<&'static Situation> {
    let mut rows = SITUATIONS.iter().copied().flatten();
    rows.find(|row| row.code == code && row.case == case)
}

/// What the page of a rule says about TensorFlow; empty where it has no counterpart.
pub const fn page(code: &str) -> &'static str {
    let mut group = 0;
    while group < SITUATIONS.len() {
        let rows = SITUATIONS[group];
        let mut index = 0;
        while index < rows.len() {
            if is_same(rows[index].code, code) && !rows[index].page.is_empty() {
                return rows[index].page;
            }
            index += 1;
        }
        group += 1;
    }
    ""
}

/// `==` of texts, for constants.
const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut index = 0;
    while index < a.len() {
        if a[index] != b[index] {
            return false;
        }
        index += 1;
    }
    true
}

/// The place of a version in the rows of the tables.
fn column(profile: Profile) -> usize {
    Profile::ALL
        .iter()
        .position(|other| *other == profile)
        .unwrap_or(0)
}

/// Versions that follow each other, as the subject of a sentence: `TensorFlow 2.3 and 2.4`.
fn versions(columns: &[usize]) -> String {
    match columns {
        [0, 1, 2, 3] => "every version".to_owned(),
        [0, 1, 2] => "Keras 2".to_owned(),
        [0, 1] => "TensorFlow 2.3 to 2.6".to_owned(),
        [1, 2] => "TensorFlow 2.4 to tf_keras 2.18".to_owned(),
        [0] => "TensorFlow 2.3".to_owned(),
        [1] => "TensorFlow 2.4 to 2.6".to_owned(),
        columns => {
            let titles = columns.iter().map(|&column| Profile::ALL[column].title());
            titles.collect::<Vec<_>>().join(" and ")
        }
    }
}

/// What a version does without a text of its own.
fn does(profile: Profile, text: impl Into<String>) -> Answer {
    Answer::does(profile, text)
}

impl From<Quote> for String {
    fn from(quote: Quote) -> Self {
        quote.0
    }
}

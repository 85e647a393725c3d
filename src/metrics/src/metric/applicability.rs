//! Which metric can measure which answers, and what is needed in place of one that cannot.

use super::Metric;

/// What the outputs of a model are to its metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// One number.
    Number,
    /// One number, by which two classes are distinguished.
    TwoClasses,
    /// One output a class.
    Classes(usize),
    /// One output a class, for each word.
    Words,
    /// A part of a text.
    Span,
    /// One output for each token of the vocabulary, for each hidden token.
    Tokens,
    /// One output a label, each decided by itself.
    Set,
}

/// Whether a metric can measure answers of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// It can.
    Yes,
    /// It cannot, for the reason that every other metric has that cannot.
    No,
    /// It cannot, and this is needed in its place.
    Instead(&'static str),
}

impl Fit {
    /// Whether it can.
    pub(super) fn when(can: bool) -> Self {
        if can { Self::Yes } else { Self::No }
    }

    /// Of a metric of two classes, F1 but for its words.
    pub(super) fn of_two_classes(answers: Answers, instead: &'static str) -> Self {
        match answers {
            Answers::TwoClasses | Answers::Classes(2) => Self::Yes,
            Answers::Classes(_) => Self::Instead(instead),
            _ => Self::No,
        }
    }
}

impl Answers {
    /// Whether each is one class of several.
    pub(super) fn are_classes(self) -> bool {
        matches!(self, Self::TwoClasses | Self::Classes(_))
    }

    /// What is needed in place of a metric that cannot measure such answers.
    fn instead(self) -> &'static str {
        match self {
            Self::Number => "a metric of numbers: `mae()`, `rmse()`, `pearson()` or `spearman()`",
            Self::TwoClasses | Self::Classes(_) => {
                "a metric of classes: `accuracy()` or `macro_f1()`"
            }
            Self::Words => {
                "`entity_f1()`, `entity_precision()`, `entity_recall()` or `accuracy()`: a word has a tag"
            }
            Self::Span => "`exact_match()` or `answer_f1()`: the answer is a part of a text",
            Self::Tokens => "`perplexity()` or `accuracy()`: a hidden token is predicted",
            Self::Set => {
                "`micro_f1()`, `macro_f1()`, `accuracy()` or `exact_match()`: a text has any of several labels"
            }
        }
    }
}

impl Metric {
    /// What is needed in its place, if it cannot measure such answers.
    pub fn objection(self, answers: Answers) -> Option<&'static str> {
        match self.ask(|metric| metric.fit(answers)) {
            Fit::Yes => None,
            Fit::No => Some(answers.instead()),
            Fit::Instead(words) => Some(words),
        }
    }
}

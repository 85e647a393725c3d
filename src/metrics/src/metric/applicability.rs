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

impl Metric {
    /// Whether it is of answers in texts.
    fn is_of_spans(self) -> bool {
        matches!(self, Self::ExactMatch | Self::AnswerF1)
    }

    /// Whether it is of entities.
    fn is_of_entities(self) -> bool {
        matches!(
            self,
            Self::EntityF1 | Self::EntityPrecision | Self::EntityRecall
        )
    }

    /// What is needed in its place, if it cannot measure such answers.
    pub fn objection(self, answers: Answers) -> Option<&'static str> {
        match (self, answers) {
            (Self::TopKAccuracy { k: 0 }, _) => Some("`k` ≥ 1"),
            (Self::Own(_), Answers::Set | Answers::Tokens | Answers::Span) => Some(
                "a metric of this head: `Metric::mean_of` is of classes, numbers, and tags of words",
            ),
            (Self::Own(_), _) => None,
            (Self::Accuracy | Self::ExactMatch | Self::MacroF1 | Self::MicroF1, Answers::Set) => {
                None
            }
            (_, Answers::Set) => Some(
                "`micro_f1()`, `macro_f1()`, `accuracy()` or `exact_match()`: a text has any of several labels",
            ),
            (Self::MicroF1, _) => Some(
                "another metric: `micro_f1` is of several labels a text (`from_pretrained_multi_label`)",
            ),
            (Self::Accuracy | Self::Perplexity, Answers::Tokens) => None,
            (_, Answers::Tokens) => {
                Some("`perplexity()` or `accuracy()`: a hidden token is predicted")
            }
            (Self::Perplexity, _) => {
                Some("another metric: perplexity is of hidden tokens (`BertForMaskedLM`)")
            }
            (_, Answers::Span) if self.is_of_spans() => None,
            (_, Answers::Span) => {
                Some("`exact_match()` or `answer_f1()`: the answer is a part of a text")
            }
            (_, Answers::Words) if self.is_of_entities() => None,
            (
                Self::Accuracy | Self::MacroF1 | Self::Mcc | Self::TopKAccuracy { .. },
                Answers::Words,
            ) => None,
            (_, Answers::Words) => Some(
                "`entity_f1()`, `entity_precision()`, `entity_recall()` or `accuracy()`: a word has a tag",
            ),
            (_, Answers::TwoClasses | Answers::Classes(_)) if self.is_of_entities() => Some(
                "a metric of classes: entities are made of tags of words (`BertForTokenClassification`)",
            ),
            (Self::TopKAccuracy { .. }, Answers::TwoClasses) => {
                Some("`accuracy()`, as one output decides between two classes")
            }
            (_, Answers::TwoClasses | Answers::Classes(_)) if self.is_of_spans() => Some(
                "a metric of classes: answers in texts are those of `BertForQuestionAnswering`",
            ),
            (_, Answers::Number) if self.is_of_classes() => {
                Some("a metric of numbers: `mae()`, `rmse()`, `pearson()` or `spearman()`")
            }
            (_, Answers::TwoClasses) if self.is_distance() => None,
            (_, Answers::TwoClasses | Answers::Classes(_)) if !self.is_of_classes() => {
                Some("a metric of classes: `accuracy()` or `macro_f1()`")
            }
            (_, Answers::Classes(2)) => None,
            (Self::F1, Answers::Classes(_)) => {
                Some("`macro_f1()`, as there are more than two classes")
            }
            (Self::Precision | Self::Recall | Self::Auc | Self::KerasAuc, Answers::Classes(_)) => {
                Some("`macro_f1()` or `accuracy()`: it is of two classes, and there are more")
            }
            _ => None,
        }
    }
}

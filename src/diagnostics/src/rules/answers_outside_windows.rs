//! SC0433 `answers-outside-windows`.

use crate::tensorflow;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Questions with answers, where no window contains a whole answer.
#[derive(Clone, Debug)]
pub struct AnswersOutsideWindows {
    /// Questions that have an answer.
    pub answered: usize,
    /// The first of them, and its answer.
    pub first: Option<(String, String)>,
    /// Tokens of a window.
    pub max_length: usize,
    /// Where the data comes from.
    pub source: String,
    /// The call: `fit`.
    pub call: String,
}

impl Rule for AnswersOutsideWindows {
    const PAGE: RulePage = RulePage {
        code: "SC0433",
        name: "answers-outside-windows",
        severity: Severity::Warning,
        stage: Stage::Data,
        finds: "Questions with answers, but no window contains a whole answer.",
        why: "A context is cut into windows of `max_length` tokens. A window without the whole answer has the target \"no answer\". If all windows have it, the model only learns not to answer.",
        bad: "let questions = Dataset::from_questions([(\n    \
                  \"what is it ?\",\n    \
                  \"it is a library of fonts and of sounds for games on the network\",\n    \
                  \"a library of fonts and of sounds for games on the network\",\n\
              )])?;\n\
              let answerer = BertForQuestionAnswering::from_pretrained(\"all-MiniLM-L6-v2\")?;\n\
              compile!(answerer, optimizer = AdamW::new(5e-5), loss = \"sparse_categorical_crossentropy\")?;\n\
              fit!(answerer, questions, max_length = 12)?;",
        good: "let questions = Dataset::from_questions([(\n    \
                   \"what is it ?\",\n    \
                   \"it is a library of fonts and of sounds for games on the network\",\n    \
                   \"a library of fonts and of sounds for games on the network\",\n\
               )])?;\n\
               let answerer = BertForQuestionAnswering::from_pretrained(\"all-MiniLM-L6-v2\")?;\n\
               compile!(answerer, optimizer = AdamW::new(5e-5), loss = \"sparse_categorical_crossentropy\")?;\n\
               fit!(answerer, questions)?;",
        tensorflow: tensorflow::page("SC0433"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let diagnostic = Self::start(format!(
            "{} with an answer, but no window of {} tokens contains a whole answer",
            text::count(self.answered, "question"),
            text::thousands(self.max_length)
        ))
        .label(
            Place::call(&self.call),
            format!("the answers of `{}`", self.source),
        )
        .why("the target of every window is \"no answer\", so that the model only learns not to answer");
        let diagnostic = match &self.first {
            Some((question, answer)) => diagnostic.evidence(
                "first question",
                format!(
                    "`{}`, answer `{}`",
                    text::excerpt(question, 60),
                    text::excerpt(answer, 60)
                ),
            ),
            None => diagnostic,
        };
        diagnostic.fix("raise `max_length`: a window has the question, the whole answer and three or four special tokens")
    }
}

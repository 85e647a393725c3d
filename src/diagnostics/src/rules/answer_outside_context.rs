//! SC0432 `answer-outside-context`.

use crate::tensorflow;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// An answer that is not in its context, or not where it should be.
#[derive(Clone, Debug)]
pub struct AnswerOutsideContext {
    /// Where the data comes from.
    pub source: String,
    /// The question's place in the data, counted from 0.
    pub row: usize,
    /// The question.
    pub question: String,
    /// The answer.
    pub answer: String,
    /// Where it should begin, in characters, if the data says it.
    pub start: Option<usize>,
    /// The text at this place; without a place, the beginning of the context.
    pub found: String,
    /// Characters of the context.
    pub length: usize,
    /// Where the answer really is, in characters.
    pub elsewhere: Option<usize>,
    /// Whether the answer was there before the context was changed.
    pub was_there: bool,
}

impl Rule for AnswerOutsideContext {
    const PAGE: RulePage = RulePage {
        code: "SC0432",
        name: "answer-outside-context",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "An answer that does not occur in its context, or not at its `answer_start`.",
        why: "The target of a question is where its answer begins and ends. A wrong position would teach the model \
              to mark other words. `answer_start` counts characters, not bytes or tokens.",
        bad: "let questions = Dataset::from_questions([(\"who wrote it ?\", \"Ada wrote it\", \"Grace\")])?;",
        good: "let questions = Dataset::from_questions([(\"who wrote it ?\", \"Ada wrote it\", \"Ada\")])?;",
        tensorflow: tensorflow::page("SC0432"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let answer = text::excerpt(&self.answer, 40);
        let message = match self.start {
            Some(start) if start >= self.length => format!(
                "the answer `{answer}` begins outside of its context: at character {} of {}",
                text::thousands(start),
                text::thousands(self.length)
            ),
            Some(start) => format!(
                "the answer `{answer}` is not at character {} of its context",
                text::thousands(start)
            ),
            None => format!("the answer `{answer}` is not in its context"),
        };
        let diagnostic = Self::start(message)
            .label(
                Place::file(&self.source, None),
                format!("question {} of the data", self.row),
            )
            .why("the target of a question is where its answer begins and ends")
            .evidence("question", text::excerpt(&self.question, 80))
            .evidence(
                match self.start {
                    Some(_) => "what stands there",
                    None => "context",
                },
                text::excerpt(&self.found, 80),
            );
        match self.elsewhere {
            _ if self.was_there => diagnostic
                .why("the context was changed after the data set was created, for example by `map`, but the position \
                      of the answer was not")
                .fix("change the texts first, then create the data set from them: `Dataset::from_questions(rows)?`"),
            Some(at) => diagnostic
                .evidence("the answer is at character", text::thousands(at))
                .fix("count `answer_start` in characters from the beginning of the context"),
            None => diagnostic.fix("correct the answer, or leave it empty if the context has none"),
        }
    }
}

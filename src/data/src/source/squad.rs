//! Questions about paragraphs in the JSON of SQuAD, 1.1 and 2.0.

use serde::Deserialize;
use serde_json::Value;
use stratoscope_diagnostics::Result;

use crate::annotation::Answer;
use crate::example::Example;
use crate::problem;

/// The columns of rows of questions, as Hugging Face's `datasets` has them.
pub(super) const COLUMNS: [&str; 3] = ["question", "context", "answers"];
/// What a row has of its answers: lists in one structure.
pub(super) const PARTS: [&str; 2] = ["text", "answer_start"];

/// A text with the questions about it.
#[derive(Deserialize)]
pub(super) struct Paragraph {
    pub(super) context: String,
    pub(super) qas: Vec<Question>,
}

#[derive(Deserialize)]
pub(super) struct Question {
    question: String,
    #[serde(default)]
    answers: Vec<Given>,
    #[serde(default)]
    is_impossible: bool,
}

/// A right answer, as a file has it.
#[derive(Deserialize)]
pub(super) struct Given {
    text: String,
    /// In characters.
    answer_start: usize,
}

impl Question {
    /// What is asked.
    pub(super) fn text(&self) -> &str {
        &self.question
    }

    /// A question whose answers are written as JSON: an object of two lists, or a list of objects; nothing is no answer.
    ///
    /// # Errors
    /// What is wrong with the answers.
    pub(super) fn written(question: &str, answers: &str) -> std::result::Result<Self, String> {
        let unfit = || {
            format!(
                "`{}` has no `{}` with their `{}`",
                COLUMNS[2], PARTS[0], PARTS[1]
            )
        };
        let value = match answers.trim().is_empty() {
            true => Value::Null,
            false => serde_json::from_str(answers).map_err(|_| unfit())?,
        };
        // Each part of all answers, a missing one empty.
        let [texts, starts] = PARTS.map(|part| match &value {
            Value::Null => Some(Vec::new()),
            Value::Object(lists) => match lists.get(part)? {
                Value::Array(values) => Some(values.iter().collect()),
                Value::Null => Some(Vec::new()),
                _ => None,
            },
            Value::Array(objects) => objects.iter().map(|it| it.get(part)).collect(),
            _ => None,
        });
        let (texts, starts) = texts.zip(starts).ok_or_else(unfit)?;
        if texts.len() != starts.len() {
            return Err(format!(
                "{} answers begin at {} places",
                texts.len(),
                starts.len()
            ));
        }
        let given = texts.into_iter().zip(starts).map(|(text, start)| {
            let start = start.as_u64().and_then(|start| usize::try_from(start).ok());
            Ok(Given {
                text: text.as_str().ok_or_else(unfit)?.to_owned(),
                answer_start: start.ok_or("an answer begins at no number of characters")?,
            })
        });
        Ok(Self {
            question: question.to_owned(),
            answers: given.collect::<std::result::Result<_, String>>()?,
            is_impossible: false,
        })
    }

    /// The answers by their bytes in a text.
    ///
    /// # Errors
    /// The one that does not stand where the file says.
    pub(super) fn placed(&self, context: &str) -> std::result::Result<Vec<Answer>, &Given> {
        if self.is_impossible {
            return Ok(Vec::new());
        }
        // One walk along the text for all of them.
        let mut ordered: Vec<usize> = (0..self.answers.len()).collect();
        ordered.sort_by_key(|&at| self.answers[at].answer_start);
        let places = context.char_indices().map(|(at, _)| at);
        let mut places = places.enumerate().peekable();
        let mut found = vec![None; self.answers.len()];
        for at in ordered {
            let given = &self.answers[at];
            while places.next_if(|it| it.0 < given.answer_start).is_some() {}
            let start = places.peek().filter(|it| it.0 == given.answer_start);
            found[at] = start.and_then(|&(_, start)| given.placed(context, start));
        }
        let answers = self.answers.iter().zip(found);
        answers.map(|(given, answer)| answer.ok_or(given)).collect()
    }

    /// The question about a text, as row `row` of a source.
    ///
    /// # Errors
    /// SC0432 for an answer that does not stand where the file says.
    pub(super) fn example(&self, source: &str, row: usize, context: &str) -> Result<Example> {
        match self.placed(context) {
            Ok(answers) => Ok(Example::of_question(&self.question, context, answers)),
            Err(given) => {
                let start = Some(given.answer_start);
                let (question, answer) = (&self.question, &given.text);
                Err(problem::outside(
                    source, row, question, answer, start, context,
                ))
            }
        }
    }
}

impl Given {
    /// The answer, if it stands at a byte of the text.
    fn placed(&self, context: &str, start: usize) -> Option<Answer> {
        let is_there = !self.text.is_empty() && context[start..].starts_with(&self.text);
        is_there.then(|| Answer::at(start, &self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Dataset;

    fn read(qas: &str) -> Result<Dataset> {
        let content = format!(
            "{{\"version\": \"2.0\", \"data\": [{{\"title\": \"t\", \"paragraphs\": [\n{{\"context\": \"Zoë wrote it\", \"qas\": [{qas}]}}]}}]}}"
        );
        Dataset::squad_text("dev.json", &content)
    }

    #[test]
    fn answers_are_counted_in_characters() {
        let data = read(
            r#"{"id": "1", "question": "who?", "answers": [{"text": "Zoë", "answer_start": 0}]},
               {"id": "2", "question": "what?", "answers": [{"text": "wrote it", "answer_start": 4}]},
               {"id": "3", "question": "when?", "answers": [], "is_impossible": true}"#,
        );
        let data = data.expect("it is SQuAD's");
        let ranges = data.examples.iter().map(|example| {
            let answers = example.answers().expect("answers");
            answers
                .iter()
                .map(|answer| answer.range.clone())
                .collect::<Vec<_>>()
        });
        let ranges: Vec<_> = ranges.flatten().collect();
        assert_eq!(ranges, [0..4, 5..13], "the third has no answer");
        assert_eq!(data[2].pair.as_deref(), Some("Zoë wrote it"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let outside =
            read(r#"{"question": "who?", "answers": [{"text": "Zoë", "answer_start": 40}]}"#);
        let problem = outside.expect_err("it is outside");
        assert!(
            problem.code == "SC0432" && format!("{problem:?}").contains("40"),
            "{problem:?}"
        );
        let moved =
            read(r#"{"question": "who?", "answers": [{"text": "Zoë", "answer_start": 1}]}"#);
        assert_eq!(moved.expect_err("it is elsewhere").code, "SC0432");
        let problem = read(r#"{"answers": []}"#).expect_err("no question");
        let shown = format!("{problem:?}");
        assert!(
            problem.code == "SC0911" && shown.contains("missing field `question`"),
            "{shown}"
        );
        assert_eq!(read("").expect_err("nothing").code, "SC0914");
    }
}

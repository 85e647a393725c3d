//! Questions about paragraphs in the JSON of SQuAD, 1.1 and 2.0.

use std::path::Path;

use serde::Deserialize;
use stratoscope_diagnostics::Result;

use super::{Reading, files, read_text};
use crate::annotation::Answer;
use crate::dataset::Dataset;
use crate::example::Example;
use crate::problem;

const CALL: &str = "Dataset::squad";

/// The file.
#[derive(Deserialize)]
struct File {
    data: Vec<Article>,
}

#[derive(Deserialize)]
struct Article {
    paragraphs: Vec<Paragraph>,
}

#[derive(Deserialize)]
struct Paragraph {
    context: String,
    qas: Vec<Question>,
}

#[derive(Deserialize)]
pub(super) struct Question {
    pub(super) question: String,
    #[serde(default)]
    pub(super) answers: Vec<Given>,
    #[serde(default)]
    pub(super) is_impossible: bool,
}

/// A right answer, as a file has it.
#[derive(Deserialize)]
pub(super) struct Given {
    pub(super) text: String,
    /// In characters.
    pub(super) answer_start: usize,
}

impl Dataset {
    /// Reads a file of SQuAD: articles of paragraphs with questions. A question that `is_impossible`, or has no answer, is
    /// one without an answer.
    ///
    /// # Errors
    /// SC0911 if the file cannot be read as such JSON, with its line; SC0432 for an answer that does not stand where
    /// `answer_start` says; SC0914 if there is no question.
    pub fn squad(path: impl AsRef<Path>) -> Result<Self> {
        files::read(CALL, path.as_ref(), |path| {
            let content = read_text(CALL, path)?;
            Self::squad_text(&path.display().to_string(), &content)
        })
    }

    pub(super) fn squad_text(source: &str, content: &str) -> Result<Self> {
        let file: File = serde_json::from_str(content).map_err(|error| {
            let reason = error.to_string();
            let reason = reason.split(" at line ").next().unwrap_or_default();
            let reason = format!(
                "it is no JSON of SQuAD: {reason} (column {})",
                error.column()
            );
            problem::unreadable(CALL, source, Some(error.line()), reason)
        })?;
        let paragraphs = file.data.iter().flat_map(|article| &article.paragraphs);
        let mut examples = Vec::new();
        let mut reading = Reading::begin(content.len());
        for paragraph in paragraphs {
            for asked in &paragraph.qas {
                // The parser does not say where it was: this many bytes at least.
                reading.row(examples.len() * asked.question.len() % content.len().max(1))?;
                let row = examples.len();
                examples.push(asked.example(source, row, &paragraph.context)?);
            }
        }
        reading.finished();
        if examples.is_empty() {
            return Err(problem::empty(source, CALL));
        }
        Ok(Self::from_examples(examples, Vec::new(), source))
    }
}

impl Question {
    /// The question about a text, as row `row` of a source.
    ///
    /// # Errors
    /// SC0432 for an answer that does not stand where the file says.
    pub(super) fn example(&self, source: &str, row: usize, context: &str) -> Result<Example> {
        let answer = |given: &Given| given.placed(source, row, self, context);
        let answers: Result<Vec<Answer>> = match self.is_impossible {
            true => Ok(Vec::new()),
            false => self.answers.iter().map(answer).collect(),
        };
        Ok(Example::of_question(&self.question, context, answers?))
    }
}

impl Given {
    /// The answer by its bytes.
    fn placed(&self, source: &str, row: usize, asked: &Question, context: &str) -> Result<Answer> {
        let start = context
            .char_indices()
            .map(|(at, _)| at)
            .nth(self.answer_start);
        let is_there =
            |start: &usize| !self.text.is_empty() && context[*start..].starts_with(&self.text);
        match start.filter(is_there) {
            Some(start) => Ok(Answer::at(start, &self.text)),
            None => {
                let at = Some(self.answer_start);
                Err(problem::outside(
                    source,
                    row,
                    &asked.question,
                    &self.text,
                    at,
                    context,
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

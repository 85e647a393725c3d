//! SC0409 `empty-texts`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Rows without a text.
#[derive(Clone, Debug)]
pub struct EmptyTexts {
    /// The first few rows, counted from 0, each with its line in the file where it has one.
    pub first: Vec<(usize, Option<usize>)>,
    /// How many rows.
    pub rows: usize,
    /// Rows in all.
    pub total: usize,
    /// The dataset's name: its file or variable.
    pub source: String,
    /// Name of the call without `!`.
    pub call: String,
}

impl Rule for EmptyTexts {
    const PAGE: RulePage = RulePage {
        code: "SC0409",
        name: "empty-texts",
        severity: Severity::Warning,
        stage: Stage::Data,
        finds: "Rows whose text is empty or white space. In a pair, one such text is enough.",
        why: "Such a row is `[CLS] [SEP]` with a label: the model learns to guess the class without a text. \
              Usual causes: a missing value in a table, or the wrong column.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              let data = Dataset::from_rows([\"a game of chess\", \"  \", \"a mail server\"], \
              [\"game\", \"game\", \"server\"])?;\n\
              fit!(model, data)?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               let data = Dataset::from_rows([\"a game of chess\", \"  \", \"a mail server\"], \
               [\"game\", \"game\", \"server\"])?;\n\
               fit!(model, data.filter(|example| !example.text.trim().is_empty()))?;",
        tensorflow: tensorflow::page("SC0409"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let is_asked = self.call == "predict";
        let message = match self.first.first() {
            _ if self.rows == 1 && self.total == 1 => "the text is empty".to_owned(),
            Some((row, _)) if self.rows == 1 => format!("the text of row {row} is empty"),
            _ => format!(
                "{} of {} texts are empty",
                text::thousands(self.rows),
                text::thousands(self.total)
            ),
        };
        let (label, why) = match is_asked {
            true => (
                "an answer without a text",
                "an empty text is [CLS] [SEP] alone: its answer only shows which class the model prefers",
            ),
            false => (
                "these rows have a label and no text",
                "an empty text is [CLS] [SEP] alone, and still counts in the loss and in every metric",
            ),
        };
        let name = |(row, line): &(usize, Option<usize>)| match line {
            Some(line) => format!("{row} (line {line})"),
            None => row.to_string(),
        };
        let shown: Vec<String> = self.first.iter().take(5).map(name).collect();
        let diagnostic = Self::start(message)
            .label(Place::call(&self.call), label)
            .why(why)
            .evidence("data", self.source.clone())
            .evidence(
                if self.rows > 5 {
                    "the first rows"
                } else {
                    "rows"
                },
                shown.join(", "),
            )
            .fix("remove them: `data.filter(|example| !example.text.trim().is_empty())`");
        match is_asked {
            true => diagnostic,
            false => diagnostic
                .fix("or read another column: `Columns::new().text(…)`")
                .tensorflow(Quote::of("SC0409")),
        }
    }
}

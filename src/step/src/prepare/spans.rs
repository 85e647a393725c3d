//! Questions before the first step: whether each has a text and an answer, or none on purpose, and whether answers become
//! targets. SC0431, SC0433.

use std::borrow::Cow;

use stratoscope_data::{Dataset, Encoded, Example, Targets};
use stratoscope_diagnostics::rules::{AnswersOutsideWindows, DataOfOtherHead};
use stratoscope_diagnostics::{Diagnostic, Result, Rule};

use stratoscope_network::Files;

/// Questions with a text and answers.
///
/// # Errors
/// SC0431 for data without.
pub(super) fn checked<'a>(
    files: &dyn Files,
    data: &'a Dataset,
    call: &str,
) -> Result<Cow<'a, Dataset>> {
    let is_question = |example: &Example| example.pair.is_some() && example.answers().is_some();
    let Some(first) = data.examples.iter().find(|example| !is_question(example)) else {
        return Ok(Cow::Borrowed(data));
    };
    let wants = "questions with answers";
    Err(other(
        files,
        data,
        (wants, "Dataset::squad(\"train.json\")?"),
        first,
        call,
    ))
}

/// SC0433: whether answers become targets.
pub(super) struct Targeted {
    rule: AnswersOutsideWindows,
    targets: usize,
}

impl Targeted {
    pub(super) fn new(source: &str, max_length: usize, call: &str) -> Self {
        let rule = AnswersOutsideWindows {
            answered: 0,
            first: None,
            max_length,
            source: source.to_owned(),
            call: call.to_owned(),
        };
        Self { rule, targets: 0 }
    }

    /// Counts some questions and their windows.
    pub(super) fn add(&mut self, data: &Dataset, encoded: &Encoded) {
        for example in &data.examples {
            let Some([answer, ..]) = example.answers() else {
                continue;
            };
            self.rule.answered += 1;
            self.rule.first.get_or_insert_with(|| {
                let context = example.pair.as_deref().unwrap_or_default();
                let answer = context.get(answer.range.clone()).unwrap_or_default();
                (example.text.clone(), answer.to_owned())
            });
        }
        let windows = (0..encoded.len()).filter_map(|at| encoded.get(at));
        // A window without the whole answer has its first token as target.
        let with_answer =
            windows.filter(|it| matches!(it.targets, Targets::Span([start, _]) if start > 0));
        self.targets += with_answer.count();
    }

    /// SC0433 where there are answers, and none of them is a target.
    pub(super) fn finding(&self) -> Option<Diagnostic> {
        (self.rule.answered > 0 && self.targets == 0).then(|| self.rule.diagnostic())
    }
}

/// SC0431 for a question without a text, to `predict`.
///
/// # Errors
/// SC0431.
pub fn asked(files: &dyn Files, data: &Dataset, call: &str) -> Result<()> {
    let wants = (
        "questions with texts",
        "Dataset::from_pairs([(question, text)])",
    );
    match data.examples.iter().find(|example| example.pair.is_none()) {
        Some(first) => Err(other(files, data, wants, first, call)),
        None => Ok(()),
    }
}

/// SC0431.
fn other(
    files: &dyn Files,
    data: &Dataset,
    (wants, reader): (&'static str, &'static str),
    first: &Example,
    call: &str,
) -> Box<Diagnostic> {
    let (has, fitting) = super::kind_of(data);
    let rule = DataOfOtherHead {
        model: files.model_name().to_owned(),
        wants,
        has,
        reader,
        fitting,
        row: first.row,
        source: data.source.clone(),
        call: call.to_owned(),
    };
    rule.error()
}

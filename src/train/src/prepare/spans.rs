//! Questions before the first step: whether each has a text and an answer, or none on purpose. SC0431.

use std::borrow::Cow;

use stratoscope_data::{Dataset, Example};
use stratoscope_diagnostics::rules::DataOfOtherHead;
use stratoscope_diagnostics::{Diagnostic, Result, Rule};

use crate::network::Files;

/// Questions with a text and answers.
///
/// # Errors
/// SC0431 for data without.
pub(super) fn checked<'a>(
    files: &impl Files,
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

/// SC0431 for a question without a text, to `predict`.
///
/// # Errors
/// SC0431.
pub(crate) fn asked(files: &impl Files, data: &Dataset, call: &str) -> Result<()> {
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
    files: &impl Files,
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

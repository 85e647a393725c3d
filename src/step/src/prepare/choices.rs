//! Multiple choice before the first step: whether each prompt has choices, as many as the model was made for, and a label
//! that is one of them. SC0103, SC0313, SC0431, SC0913.

use std::borrow::Cow;

use stratoscope_data::{Dataset, Example, Label, Stream};
use stratoscope_diagnostics::rules::{DataOfOtherHead, UnknownLabel};
use stratoscope_diagnostics::{Diagnostic, Result, Rule};
use stratoscope_render::text;

use stratoscope_diagnostics::problem;
use stratoscope_network::Files;

/// What the head takes, in words, and a call that reads it.
pub(super) const WANTED: &str = "prompts with choices";
pub(super) const READER: &str =
    "Dataset::from_choices([(\"a prompt\", vec![\"first\", \"second\"], 0)])?";

/// Prompts with as many choices as the model was made for.
///
/// # Errors
/// SC0431 for data without choices, SC0103 for another number of them, SC0313 for missing labels, SC0913 for a label that is
/// none of the choices.
pub(super) fn checked<'a>(
    files: &dyn Files,
    data: &'a Dataset,
    choices: usize,
    call: &str,
) -> Result<Cow<'a, Dataset>> {
    choosable(files, data, call)?;
    let is_other = |example: &&Example| count(example) != choices;
    let mut others = data.examples.iter().filter(is_other);
    if let Some(first) = others.next() {
        let given = format!("{} in row {}", counted(count(first)), first.row);
        let rows = (1 + others.count(), data.len());
        return Err(other_number(given, choices, rows, call));
    }
    let without = |example: &Example| !matches!(example.label, Some(Label::Class(_)));
    if data.examples.iter().any(without) {
        return Err(super::without_labels(data, "label"));
    }
    let too_large = |example: &&Example| example.class().is_some_and(|it| it >= choices);
    let mut outside = data.examples.iter().filter(too_large);
    if let Some(first) = outside.next() {
        let rule = UnknownLabel {
            label: first.class().unwrap_or_default().to_string(),
            path: data.source.clone(),
            line: first.line.unwrap_or(first.row + 1),
            known: (0..choices).map(|number| number.to_string()).collect(),
            rows: 1 + outside.count(),
        };
        return Err(rule.error());
    }
    Ok(Cow::Borrowed(data))
}

/// The same of a stream, whose first pass has seen that all prompts have equally many choices, and the label of each is one
/// of them.
///
/// # Errors
/// SC0103 for another number of choices, SC0313 for missing labels, SC0911 if a file has changed.
pub(super) fn checked_stream(data: &Stream, choices: usize, call: &str) -> Result<()> {
    let own = data.choices().unwrap_or_default();
    if own != choices {
        let given = format!("{} in each row", counted(own));
        return Err(other_number(given, choices, (data.len(), data.len()), call));
    }
    match data.class_counts().iter().sum::<usize>() == data.len() {
        true => Ok(()),
        false => Err(super::without_labels(&data.first(1)?, "label")),
    }
}

/// SC0103 for prompts that have another number of choices than the model was made for.
fn other_number(
    given: String,
    choices: usize,
    (rows, all): (usize, usize),
    call: &str,
) -> Box<Diagnostic> {
    let expects = format!("{} in each row", text::count(choices, "choice"));
    let rows = text::count(rows, "row");
    let problem = problem::bad_value(call, "data", given, expects);
    let why = format!(
        "the model was made for {choices}: `BertForMultipleChoice::from_pretrained(…, {choices})`; {rows} of {all} differ"
    );
    Box::new(problem.why(why))
}

/// Prompts with something to choose from, to `predict` too.
///
/// # Errors
/// SC0431 for data without choices, SC0103 for a prompt with fewer than two.
pub fn choosable(files: &dyn Files, data: &Dataset, call: &str) -> Result<()> {
    if let Some(first) = data.examples.iter().find(|it| it.choices().is_none()) {
        let (has, fitting) = super::kind_of(data);
        let rule = DataOfOtherHead {
            model: files.model_name().to_owned(),
            wants: WANTED,
            has,
            reader: READER,
            fitting: fitting.filter(|&it| it != files.model_name()),
            row: first.row,
            source: data.source.clone(),
            call: call.to_owned(),
        };
        return Err(rule.error());
    }
    match data.examples.iter().find(|it| count(it) < 2) {
        None => Ok(()),
        Some(first) => {
            let given = format!("{} in row {}", counted(count(first)), first.row);
            let expects = "at least two choices in each row";
            let problem = problem::bad_value(call, "data", given, expects);
            Err(Box::new(problem.why("there is nothing to choose")))
        }
    }
}

fn count(example: &Example) -> usize {
    example.choices().map_or(0, <[String]>::len)
}

/// `no choices`, `3 choices`
fn counted(choices: usize) -> String {
    match choices {
        0 => "no choices".to_owned(),
        count => text::count(count, "choice"),
    }
}

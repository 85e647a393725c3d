//! Pairs of texts with the similarity that they are to have, before the first step. SC0103, SC0313, SC0431.

use std::borrow::Cow;

use stratoscope_data::{Dataset, Example, Label, Stream};
use stratoscope_diagnostics::rules::DataOfOtherHead;
use stratoscope_diagnostics::{Diagnostic, Result, Rule};
use stratoscope_render::text;

use super::{stream, with_numbers};
use stratoscope_diagnostics::problem;
use stratoscope_network::Files;

pub(super) const WANTED: &str = "pairs of texts with their similarity, a number from −1 to 1";

/// Pairs whose labels are cosines.
///
/// # Errors
/// SC0431 for data without pairs or with other labels; SC0313 for missing ones; SC0103 for a label that no cosine can be, and
/// for a tokenizer that does not tell the texts of a pair apart.
pub(super) fn checked<'a>(
    files: &dyn Files,
    data: &'a Dataset,
    call: &str,
) -> Result<Cow<'a, Dataset>> {
    let is_other = super::is_of_other_head(data);
    let without = |example: &&Example| is_other || example.pair.is_none();
    if let Some(first) = data.examples.iter().find(without) {
        let (has, fitting) = super::kind_of(data);
        let rule = DataOfOtherHead {
            model: files.model_name().to_owned(),
            wants: WANTED,
            has,
            reader: "Dataset::tsv_with(\"pairs.tsv\", &Columns::new().text(\"first\").pair(\"second\").value(\"similarity\"))?",
            fitting,
            row: first.row,
            source: data.source.clone(),
            call: call.to_owned(),
        };
        return Err(rule.error());
    }
    has_segments(files, call)?;
    let data = with_numbers(data)?;
    match data.examples.iter().find(is_beyond) {
        None => Ok(data),
        Some(first) => {
            let rows = data.examples.iter().filter(is_beyond).count();
            Err(beyond(first, rows, call))
        }
    }
}

/// The same of a stream of pairs, by what its first pass has counted.
///
/// # Errors
/// As [`checked`]; SC0911 if a file has changed.
pub(super) fn checked_stream(files: &dyn Files, data: &Stream, call: &str) -> Result<Stream> {
    has_segments(files, call)?;
    let data = stream::with_numbers(data)?;
    let beyond_classes = data.class_counts().iter().skip(2).any(|&count| count > 0);
    let is_inside = |(low, high): (f32, f32)| low >= -1.0 && high <= 1.0;
    if data.value_range().is_none_or(is_inside) && !beyond_classes {
        return Ok(data);
    }
    let (first, rows) = stream::rows_that(&data, |example| is_beyond(&example))?;
    Err(beyond(&first, rows, call))
}

fn has_segments(files: &dyn Files, call: &str) -> Result<()> {
    if files.tokenizer().has_segments() {
        return Ok(());
    }
    let expects =
        "a checkpoint whose tokenizer gives the second text of a pair a segment of its own";
    let problem = problem::bad_value(call, "model", files.model_name(), expects);
    Err(Box::new(
        problem.why("nothing separates the two texts of a row"),
    ))
}

/// Whether a label is no cosine.
fn is_beyond(example: &&Example) -> bool {
    match example.label {
        Some(Label::Value(value)) => !(-1.0..=1.0).contains(&value),
        Some(Label::Class(class)) => class > 1,
        None => false,
    }
}

/// SC0103 for so many rows, by the first of them.
fn beyond(first: &Example, rows: usize, call: &str) -> Box<Diagnostic> {
    let label = match first.label {
        Some(Label::Value(value)) => value.to_string(),
        _ => first.class().unwrap_or_default().to_string(),
    };
    let given = format!("a label of {label} in row {}", first.row);
    let problem = problem::bad_value(call, "data", given, "numbers from −1 to 1, or two classes");
    Box::new(problem.why(format!(
        "a label is the cosine that the two vectors are to have, and {} {} beyond its range; divide scores by the \
         largest with `map`",
        text::count(rows, "row"),
        if rows == 1 { "is" } else { "are" },
    )))
}

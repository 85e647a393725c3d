//! Pairs of texts with the similarity that they are to have, before the first step. SC0103, SC0313, SC0431.

use std::borrow::Cow;

use stratoscope_data::{Dataset, Example, Label};
use stratoscope_diagnostics::rules::DataOfOtherHead;
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_render::text;

use crate::network::Files;
use crate::problem;

/// Pairs whose labels are cosines.
///
/// # Errors
/// SC0431 for data without pairs or with other labels; SC0313 for missing ones; SC0103 for a label that no cosine can be, and
/// for a tokenizer that does not tell the texts of a pair apart.
pub(super) fn checked<'a>(
    files: &impl Files,
    data: &'a Dataset,
    call: &str,
) -> Result<Cow<'a, Dataset>> {
    let is_other = super::is_of_other_head(data);
    let without = |example: &&Example| is_other || example.pair.is_none();
    if let Some(first) = data.examples.iter().find(without) {
        let (has, fitting) = super::kind_of(data);
        let rule = DataOfOtherHead {
            model: files.model_name().to_owned(),
            wants: "pairs of texts with their similarity, a number from −1 to 1",
            has,
            reader: "Dataset::tsv_with(\"pairs.tsv\", &Columns::new().text(\"first\").pair(\"second\").value(\"similarity\"))?",
            fitting,
            row: first.row,
            source: data.source.clone(),
            call: call.to_owned(),
        };
        return Err(rule.error());
    }
    if !files.tokenizer().has_segments() {
        let expects =
            "a checkpoint whose tokenizer gives the second text of a pair a segment of its own";
        let problem = problem::bad_value(call, "model", files.model_name(), expects);
        return Err(Box::new(
            problem.why("nothing separates the two texts of a row"),
        ));
    }
    let data = super::with_numbers(data)?;
    let beyond = |example: &&Example| match example.label {
        Some(Label::Value(value)) => !(-1.0..=1.0).contains(&value),
        Some(Label::Class(class)) => class > 1,
        None => false,
    };
    match data.examples.iter().find(beyond) {
        None => Ok(data),
        Some(first) => {
            let label = match first.label {
                Some(Label::Value(value)) => value.to_string(),
                _ => first.class().unwrap_or_default().to_string(),
            };
            let rows = data.examples.iter().filter(beyond).count();
            let given = format!("a label of {label} in row {}", first.row);
            let problem =
                problem::bad_value(call, "data", given, "numbers from −1 to 1, or two classes");
            Err(Box::new(problem.why(format!(
                "a label is the cosine that the two vectors are to have, and {} {} beyond its range; divide scores by the \
                 largest with `map`",
                text::count(rows, "row"),
                if rows == 1 { "is" } else { "are" },
            ))))
        }
    }
}

//! Several labels a text before the first step: whether each text has a set of them, and the model an output for each.
//! SC0301, SC0431, SC0913.

use std::borrow::Cow;

use stratoscope_data::{Dataset, Example};
use stratoscope_diagnostics::rules::{DataOfOtherHead, HeadWritten};
use stratoscope_diagnostics::{Result, Rule};

use super::are_generic;
use super::labels::LabelRange;
use stratoscope_network::Files;

/// Texts with sets of labels, numbered as the model's.
///
/// # Errors
/// SC0431 for data without such sets, SC0301 for a label without an output, SC0913 for a label that the model does not know
/// by that name.
pub(super) fn checked<'a>(
    files: &dyn Files,
    head: &HeadWritten,
    data: &'a Dataset,
    labels: usize,
    call: &str,
) -> Result<Cow<'a, Dataset>> {
    let without = data.examples.iter().find(|it| it.classes().is_none());
    if let Some(first) = without {
        let (has, fitting) = super::kind_of(data);
        let rule = DataOfOtherHead {
            model: files.model_name().to_owned(),
            wants: "a set of labels for each text, since it is multi-label",
            has,
            reader: "Dataset::from_label_sets([(\"a text\", vec![\"first\", \"second\"])])?",
            fitting: fitting.filter(|&it| it != files.model_name()),
            row: first.row,
            source: data.source.clone(),
            call: call.to_owned(),
        };
        return Err(rule.error());
    }
    let range = LabelRange {
        head,
        outputs: labels,
        largest,
        call,
    };
    range.check(data)?;
    let own = files.label_names();
    let mut names = own.iter().zip(&data.label_names);
    if names.all(|(own, name)| own == name) || are_generic(own) {
        return Ok(Cow::Borrowed(data));
    }
    Ok(Cow::Owned(data.clone().with_label_names(own)?))
}

/// The largest label of an example that has several.
pub(super) fn largest(example: &Example) -> Option<usize> {
    example.classes()?.last().copied()
}

//! Operators on values of ours: `preds > 0.5`, `train + extra`, and predictions that are compared with labels.

use stratoscope_cell_syntax::Syntax;

use super::super::slips;
use super::usage::{Form, Usage};
use super::{CellContext, type_of_name};
use crate::CellSpan;

/// The usage of an operator between two values: the first is the receiver, the name is `op >`, and the second stands as in brackets.
pub(super) fn at(cell: &Syntax, span: CellSpan) -> Option<Usage> {
    let found = slips::binary_at(cell, |operator, whole| operator == span || whole == span)?;
    Some(usage(cell.text(), found.operator, found.left, found.right))
}

fn usage(text: &str, operator: CellSpan, left: CellSpan, right: CellSpan) -> Usage {
    let text = |span: CellSpan| text.get(span.start..span.end).unwrap_or_default();
    Usage {
        receiver: Some(left),
        name: format!("op {}", text(operator)),
        named: CellSpan {
            start: left.start,
            end: right.end,
        },
        call: Some((vec![text(right).to_owned()], right.end)),
        ..Usage::default()
    }
}

/// The labels of a data set that are compared with predictions: the usage of the operator, whose receiver is the data set, its
/// form, what is written and why.
pub(super) fn with_predictions(
    cell: &Syntax,
    column: &Usage,
    context: &CellContext,
) -> Option<(Usage, Form, &'static str, &'static str)> {
    const COLUMNS: [&str; 8] = [
        "labels",
        "label",
        "targets",
        "target",
        "y",
        "[\"label\"]",
        "[\"labels\"]",
        "[\"target\"]",
    ];
    let index = column
        .index
        .as_ref()
        .map(|(inside, _)| format!("[{inside}]"));
    let name = match &index {
        Some(index) if column.name.is_empty() => index.as_str(),
        _ => column.name.as_str(),
    };
    if !COLUMNS.contains(&name) {
        return None;
    }
    let is_side = |side: CellSpan| side.start == column.named.start;
    let found = slips::binary_at(cell, |_, whole| {
        whole.start <= column.named.start && column.named.end <= whole.end
    })?;
    let other = match (is_side(found.left), is_side(found.right)) {
        (true, _) => found.right,
        (_, true) => found.left,
        _ => return None,
    };
    let text = cell.text();
    let operator = text.get(found.operator.start..found.operator.end)?;
    let predictions = text.get(other.start..other.end)?.trim_start_matches('&');
    // `predictions.argmax(axis = 1)` and `predictions.labels()` are of the same rows.
    let (head, rest) = predictions.split_once('.').unwrap_or((predictions, ""));
    let is_of_rows = ["argmax(", "labels", "classes", "predicted"]
        .iter()
        .any(|it| rest.starts_with(it));
    let predictions = if is_of_rows { head } else { predictions };
    let of_type = type_of_name(cell, predictions, context)?;
    let is_meant = of_type.ends_with("Predictions") && matches!(operator, "==" | "!=");
    if !is_meant {
        return None;
    }
    let whole = CellSpan {
        start: found.left.start,
        end: found.right.end,
    };
    let usage = Usage {
        receiver: column.receiver,
        name: format!("op {operator}"),
        named: whole,
        call: Some((vec![predictions.to_owned()], whole.end)),
        ..Usage::default()
    };
    let form = Form {
        text: String::new(),
        end: whole.end,
        takes_mark: false,
    };
    Some((
        usage,
        form,
        "{0}.rows.iter().zip(&{it}.examples).map(|(row, example)| row.class {op} example.class()).collect::<Vec<_>>()",
        "predictions are rows, and each example has its label; `evaluate!` counts the right ones",
    ))
}

/// What a loop over a data set goes over, where its pattern has two names: a place and an example, or a value and its label.
pub(super) fn of_pairs(cell: &Syntax, over: CellSpan) -> Option<&'static str> {
    let (first, _) = slips::pair_of_loop(cell, over)?;
    Some(match first.as_str() {
        "i" | "idx" | "index" | "step" | "batch_idx" | "n" | "k" => {
            "{it}.examples.iter().enumerate()"
        }
        it if ["text", "sent", "review", "doc", "title"]
            .iter()
            .any(|word| it.contains(word)) =>
        {
            "{it}.examples.iter().map(|example| (&example.text, example.class().expect(\"a label\")))"
        }
        _ => {
            "{it}.examples.iter().map(|example| (&example.features, example.class().expect(\"a label\")))"
        }
    })
}

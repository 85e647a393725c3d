//! What a `for` goes over, and pairs that are no pairs.

use super::usage::{Form, Usage};
use crate::{CellSpan, Diagnostic, Place};

/// What a loop goes over, where rustc says that it cannot.
pub(super) fn iterated(found: &Diagnostic, span: CellSpan) -> Option<CellSpan> {
    if is_pair_of(found, "Evaluation") {
        // What the pattern is given.
        let Place::Span(value) = found.labels.get(1)?.place else {
            return None;
        };
        return Some(value);
    }
    let is_loop = found.code == "E0277" && found.message.ends_with(" is not an iterator");
    is_loop.then_some(span)
}

pub(super) fn of_loop(text: &str, span: CellSpan, message: &str) -> Usage {
    let given = text.get(span.start..span.end).unwrap_or_default();
    let start = span.start + given.len() - given.trim_start_matches('&').len();
    let is_pair = !message.ends_with(" is not an iterator");
    Usage {
        receiver: Some(CellSpan {
            start,
            end: span.end,
        }),
        name: if is_pair { "(_, _)" } else { "for" }.to_owned(),
        named: span,
        ..Usage::default()
    }
}

pub(super) fn loop_form(usage: &Usage) -> Form {
    Form {
        text: usage.name.clone(),
        end: usage.named.end,
        takes_mark: false,
    }
}

/// Whether a value of this type is bound to a pattern of two names.
pub(super) fn is_pair_of(found: &Diagnostic, of_type: &str) -> bool {
    let label = found.labels.first();
    label.is_some_and(|it| {
        // rustc writes the path where the name alone may be another one.
        let is_pair = it.text.contains(", found `(_, _");
        let expected = it.text.split('`').nth(1).unwrap_or_default();
        is_pair && expected.rsplit("::").next() == Some(of_type)
    })
}

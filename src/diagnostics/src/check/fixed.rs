//! A fix is shown only if it was tried: it is applied to the cell in memory, and the result is parsed and checked again.

use super::{CellContext, cell, find};
use crate::render::apply;
use crate::{Diagnostic, Edit, Fix, FixKind, Severity};

/// Bytes of text that fixes are tried on for one answer. Trying a fix parses the whole cell, so a long cell with many mistakes
/// would take minutes: fixes beyond are not shown.
pub const MAX_TRIED_BYTES: usize = 1 << 18;

/// The diagnostic without the fixes that fail: edits after which the cell is no Rust, or has more errors. Fixes in words, and those
/// whose places are not known yet, stay.
pub fn only_tried(text: &str, diagnostic: Diagnostic, context: &CellContext) -> Diagnostic {
    only_tried_within(text, diagnostic, context, &mut { MAX_TRIED_BYTES })
}

/// The same as one of several answers, which share the bytes that are left.
pub fn only_tried_within(
    text: &str,
    mut diagnostic: Diagnostic,
    context: &CellContext,
    left: &mut usize,
) -> Diagnostic {
    if diagnostic.fixes.iter().any(|fix| !fix.edits.is_empty()) {
        match left.checked_sub(text.len()) {
            Some(rest) => *left = rest,
            None => {
                diagnostic.fixes.retain(|fix| fix.edits.is_empty());
                *left = 0;
            }
        }
    }
    if diagnostic.fixes.iter().any(|fix| !fix.edits.is_empty()) {
        let before = errors(text, context);
        diagnostic
            .fixes
            .retain(|fix| apply(text, fix).is_none_or(|fixed| holds(&fixed, before, context)));
    }
    let related = std::mem::take(&mut diagnostic.related);
    diagnostic.related = related
        .into_iter()
        .map(|other| only_tried_within(text, other, context, left))
        .collect();
    diagnostic
}

/// These edits if the cell after them is Rust and has no more errors than before, else none.
pub(super) fn tried(text: &str, edits: Vec<Edit>, context: &CellContext) -> Vec<Edit> {
    let fix = of(edits);
    let before = errors(text, context);
    match apply(text, &fix) {
        Some(fixed) if holds(&fixed, before, context) => fix.edits,
        _ => Vec::new(),
    }
}

/// The edits, with those that what is left to be found in the cell after them asks for.
pub(super) fn settled_by(text: &str, edits: Vec<Edit>, context: &CellContext) -> Vec<Edit> {
    let fix = of(edits);
    let Some(fixed) = apply(text, &fix) else {
        return Vec::new();
    };
    let done = super::syntax::settled(fixed.clone(), context);
    if !cell::with_room(|| Some(cell::is_rust(&done))).unwrap_or(false) {
        return Vec::new();
    }
    if done == fixed {
        fix.edits
    } else {
        vec![super::syntax::difference(text, &done)]
    }
}

fn of(edits: Vec<Edit>) -> Fix {
    Fix {
        kind: FixKind::Change,
        title: String::new(),
        edits,
    }
}

/// How many errors the text has; `None`: it is no Rust.
fn errors(text: &str, context: &CellContext) -> Option<usize> {
    let is_rust = cell::with_room(|| Some(cell::is_rust(text))).unwrap_or(false);
    let found = find(text, context);
    let errors = found.iter().filter(|it| it.severity == Severity::Error);
    is_rust.then(|| errors.count())
}

/// Whether a cell after a fix is Rust, where it was before, and has no more errors. Of one that was none, a fix may be one of
/// several.
fn holds(fixed: &str, before: Option<usize>, context: &CellContext) -> bool {
    match (before, errors(fixed, context)) {
        (Some(before), Some(after)) => after <= before,
        (Some(_), None) => false,
        (None, _) => true,
    }
}

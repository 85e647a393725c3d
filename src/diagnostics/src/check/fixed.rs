//! A fix is shown only if it was tried: it is applied to the cell in memory, and the result is parsed and checked again.

use std::cell::OnceCell;

use stratoscope_cell_syntax::{CellSyntax, Syntax};

use super::{CellContext, find};
use crate::render::apply;
use crate::{Diagnostic, Edit, Fix, FixKind, Severity};

/// Bytes of text that fixes are tried on for one answer. Trying a fix parses the whole cell, so a long cell with many mistakes
/// would take minutes: fixes beyond are not shown.
const MAX_TRIED_BYTES: usize = 1 << 18;

/// Tries the fixes of the findings in one cell.
pub struct Trial<'a> {
    cell: CellSyntax,
    context: &'a CellContext,
    /// As [`errors`] of the text: found with the first fix that is tried.
    before: OnceCell<Option<usize>>,
    /// Bytes that fixes may still be tried on.
    left: usize,
}

impl<'a> Trial<'a> {
    /// Of the fixes for this cell.
    pub fn new(cell: impl Into<CellSyntax>, context: &'a CellContext) -> Self {
        Self {
            cell: cell.into(),
            context,
            before: OnceCell::new(),
            left: MAX_TRIED_BYTES,
        }
    }

    /// The finding without the fixes that fail: edits after which the cell is no Rust, or has more errors. Fixes in words, and
    /// those whose places are not known yet, stay.
    #[must_use]
    pub fn passed(&mut self, mut finding: Diagnostic) -> Diagnostic {
        if finding.fixes.iter().any(|fix| !fix.edits.is_empty()) {
            let rest = self.left.checked_sub(self.cell.text().len());
            self.left = rest.unwrap_or(0);
            finding
                .fixes
                .retain(|fix| fix.edits.is_empty() || (rest.is_some() && self.holds(fix)));
        }
        let related = std::mem::take(&mut finding.related).into_iter();
        finding.related = related.map(|other| self.passed(other)).collect();
        finding
    }

    fn holds(&self, fix: &Fix) -> bool {
        let before = self.before.get_or_init(|| {
            let context = self.context.clone();
            self.cell.read(move |cell| errors(cell, &context))
        });
        let fixed = apply(self.cell.text(), fix);
        fixed.is_none_or(|fixed| holds(&fixed, *before, self.context))
    }
}

/// These edits if the cell after them is Rust and has no more errors than before, else none.
pub(super) fn tried(cell: &Syntax, edits: Vec<Edit>, context: &CellContext) -> Vec<Edit> {
    let fix = of(edits);
    let before = errors(cell, context);
    match apply(cell.text(), &fix) {
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
    if !Syntax::of(&done).is_rust() {
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
fn errors(cell: &Syntax, context: &CellContext) -> Option<usize> {
    if !cell.is_rust() {
        return None;
    }
    let found = find(cell, context);
    let errors = found.iter().filter(|it| it.severity == Severity::Error);
    Some(errors.count())
}

/// Whether a cell after a fix is Rust, where it was before, and has no more errors. Of one that was none, a fix may be one of
/// several.
fn holds(fixed: &str, before: Option<usize>, context: &CellContext) -> bool {
    let Some(before) = before else {
        return true;
    };
    let after = Syntax::with(fixed, |fixed| errors(fixed, context));
    after.is_some_and(|after| after <= before)
}

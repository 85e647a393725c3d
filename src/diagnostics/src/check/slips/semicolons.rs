//! All `;` that a cell lacks, where rustc reports one after the other.

use syn::parse::Parser;

use super::super::calls::span_of;
use super::{Answer, Slip, insert};

/// A cell has at most so many lines without a `;` for which all are put in at once.
const MAX_MISSING: usize = 40;

pub(super) fn answer(slip: &Slip) -> Option<Answer> {
    if !slip.message().starts_with("expected `;`") || slip.cell.is_rust() {
        return None;
    }
    let text = stratoscope_cell_syntax::blank_everywhere(slip.cell.text());
    let (mut done, mut edits) = (text.clone(), Vec::new());
    for index in 0..MAX_MISSING {
        let Err(error) = syn::Block::parse_within.parse_str(&done) else {
            let title = match edits.len() {
                0 => return None,
                1 => "add the missing `;`".to_owned(),
                count => format!("add the {count} missing `;`"),
            };
            return Some(Answer::of(edits).titled(title));
        };
        let found = span_of(error.span());
        let end = done.get(..found.start)?.trim_end().len();
        // A `;` on the same line as what follows is no forgotten one.
        let is_line = done[end..found.start].contains('\n');
        if !is_line || done[..end].ends_with([';', '{', '}', ',', '(']) {
            return None;
        }
        edits.push(insert(end - index, ";"));
        done.insert(end, ';');
    }
    None
}

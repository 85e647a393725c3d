//! All `;` that a cell lacks, where rustc reports one after the other.

use syn::parse::Parser;
use syn::{Block, Expr, Stmt};

use super::super::calls::span_of;
use super::tree::{find, is_in, place};
use super::{Answer, Slip, edit, insert};
use crate::Edit;

/// A cell has at most so many lines without a `;` for which all are put in at once.
const MAX_MISSING: usize = 40;

pub(super) fn answer(slip: &Slip) -> Option<Answer> {
    if let Some(answer) = in_a_branch(slip) {
        return Some(answer);
    }
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

/// `if a { "high"; } else { "low" }`, and the same in the arms of a `match`: the `;` drops the value of a branch.
fn in_a_branch(slip: &Slip) -> Option<Answer> {
    let message = slip.message();
    let is_branch = message.ends_with(" have incompatible types")
        && (message.starts_with("`if` and `else`") || message.starts_with("`match` arms"));
    let is_unit = slip.found.labels.iter().any(|it| it.text.contains("`()`"));
    // rustc has compared the types.
    let mut why = slip.found.why.iter();
    let is_dropped = why.any(|it| it.contains("removing this semicolon"));
    if !is_branch || !is_unit || !is_dropped {
        return None;
    }
    let edits: Vec<Edit> = find(slip.cell, |it| {
        let is_meant = is_in(slip.span, place(it));
        let edits: Vec<Edit> = match it {
            Expr::If(_) if is_meant => branches(it).into_iter().filter_map(dropped).collect(),
            Expr::Match(matched) if is_meant => {
                let blocks = matched.arms.iter().filter_map(|arm| match &*arm.body {
                    Expr::Block(block) => Some(&block.block),
                    _ => None,
                });
                blocks.filter_map(dropped).collect()
            }
            _ => return None,
        };
        (!edits.is_empty()).then_some(edits)
    })?;
    let title = match edits.len() {
        1 => "leave out the `;` at the end of the branch".to_owned(),
        count => format!("leave out the `;` at the end of {count} branches"),
    };
    Some(
        Answer::of(edits)
            .titled(title)
            .why("the last value of a branch is what it returns, unless a `;` follows")
            .instead("one branch has a value, and a `;` drops that of another"),
    )
}

/// The blocks of an `if` and of all its `else`.
fn branches(expression: &Expr) -> Vec<&Block> {
    match expression {
        Expr::If(chosen) => {
            let others = chosen.else_branch.iter();
            let others = others.flat_map(|(_, other)| branches(other));
            std::iter::once(&chosen.then_branch).chain(others).collect()
        }
        Expr::Block(block) => vec![&block.block],
        _ => Vec::new(),
    }
}

/// The edit that takes away the `;` behind the last value of a block.
fn dropped(block: &Block) -> Option<Edit> {
    match block.stmts.last()? {
        Stmt::Expr(value, Some(semicolon))
            if !matches!(value, Expr::Assign(_) | Expr::Return(_)) =>
        {
            let at = place(semicolon);
            Some(edit(at.start, at.end, ""))
        }
        _ => None,
    }
}

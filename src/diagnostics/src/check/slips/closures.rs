//! A closure that counts where it may only look: rustc's E0594 for a `Fn` closure.

use syn::{BinOp, Expr};

use super::tree::{find, is_in, place};
use super::{Answer, Slip, edit};
use crate::CellSpan;

/// `let mut n = 0; data.filter(|it| { n += 1; … });`: the number goes into a `Cell` while the closure uses it.
pub(super) fn answer(slip: &Slip) -> Option<Answer> {
    let is_counted = slip.code() == "E0594" && slip.message().contains("in a `Fn` closure");
    if !is_counted {
        return None;
    }
    let name = slip.message().split('`').nth(1)?.to_owned();
    let words = format!(
        "count in a loop `for … in …`, or keep `{name}` in a `std::cell::Cell`, which a closure may change"
    );
    Some(
        in_a_cell(slip, &name)
            .unwrap_or_else(|| Answer::words(words))
            .why("the closure may be called by several at once, so it must not change a variable"),
    )
}

fn in_a_cell(slip: &Slip, name: &str) -> Option<Answer> {
    let (sign, right) = find(slip.cell, |it| match it {
        Expr::Binary(binary) if place(it) == slip.span => {
            let sign = match binary.op {
                BinOp::AddAssign(_) => "+",
                BinOp::SubAssign(_) => "-",
                BinOp::MulAssign(_) => "*",
                _ => return None,
            };
            Some((sign, place(&binary.right)))
        }
        _ => None,
    })?;
    let closure = find(slip.cell, |it| match it {
        Expr::Closure(_) if is_in(slip.span, place(it)) => Some(place(it)),
        _ => None,
    })?;
    let inside = slip.text(closure);
    // More than this one change in the closure would have to be rewritten.
    if inside.matches(name).count() != 1 {
        return None;
    }
    let bound = slip.bound(name, slip.span.start)?;
    let value = bound.value_span?;
    // `mut ` before the name goes.
    let begin = bound.name.start - "mut ".len();
    let is_mut = slip.text(CellSpan {
        start: begin,
        end: bound.name.start,
    }) == "mut ";
    let statement = slip
        .cell
        .statements()?
        .iter()
        .map(place)
        .find(|it| is_in(closure, *it))?;
    if !is_mut || bound.of_type.is_some() || is_in(bound.name, statement) {
        return None;
    }
    let end = statement.end;
    let right = slip.text(right).to_owned();
    let first = slip.text(value).to_owned();
    let edits = vec![
        edit(begin, bound.name.start, ""),
        edit(
            value.start,
            value.end,
            format!("std::cell::Cell::new({first})"),
        ),
        edit(
            slip.span.start,
            slip.span.end,
            format!("{name}.set({name}.get() {sign} {right})"),
        ),
        edit(end, end, format!("\nlet {name} = {name}.get();")),
    ];
    Some(Answer::of(edits).titled(format!(
        "count in a `std::cell::Cell`: `{name}.set({name}.get() {sign} {right})`"
    )))
}

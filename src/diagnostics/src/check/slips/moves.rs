//! Values that are moved where a copy or a borrow is meant, and borrows that a cell cannot keep.

use stratoscope_cell_syntax::{CellSyntax, Syntax};
use syn::{Expr, Pat};

use super::items::derived;
use super::tree::{find, find_local, name_of, place};
use super::{Answer, Slip, edit, insert};
use crate::{CellSpan, Edit, Fix, FixKind, Place};

pub(super) fn answer(slip: &Slip) -> Option<Answer> {
    match slip.code() {
        "E0382" | "E0505" => moved(slip),
        "E0507" => out_of_an_index(slip),
        _ => None,
    }
}

/// A value that is used again after it was moved.
fn moved(slip: &Slip) -> Option<Answer> {
    // A fix of rustc's, such as a loop over a slice, keeps the value where it is.
    if slip.found.fixes.iter().any(|fix| !fix.edits.is_empty()) {
        return None;
    }
    let is_move =
        |text: &str| text.starts_with("value moved here") || text.starts_with("move out of");
    let labels = slip.found.labels.iter();
    let mut places = labels
        .filter(|it| is_move(&it.text))
        .filter_map(|it| match it.place {
            Place::Span(span) => Some(span),
            _ => None,
        });
    let first = places.next()?;
    let name = slip.text(first);
    let is_name = !name.is_empty() && name.chars().all(|it| it.is_alphanumeric() || it == '_');
    let is_at_its_value = find(slip.cell, |it| {
        (place(it) == first && name_of(it).is_some()).then_some(())
    });
    if !is_name || is_at_its_value.is_none() {
        return None;
    }
    let of_type = slip.found.why.iter().find_map(|it| it.split('`').nth(3));
    let why = match of_type {
        Some(it) if it.contains("ModelOf<") || it.ends_with("::Model") => {
            "`clone` makes another handle of the same model: what trains one trains both"
        }
        _ => "`clone` makes a copy, and the value stays where it is",
    };
    cloned(slip, first.end, why)
}

/// The clone of a value, with the `derive` that its type lacks. `None` where rustc says that it cannot be cloned.
fn cloned(slip: &Slip, end: usize, why: &str) -> Option<Answer> {
    let labels = slip.found.labels.iter().map(|it| it.text.as_str());
    let words = slip.found.why.iter().map(String::as_str).chain(labels);
    let mut types = words.filter_map(|it| {
        let (_, rest) = it.split_once("has type `")?;
        rest.split('`').next()
    });
    let derive = types.next().and_then(|it| derived(slip, it, "Clone"));
    let is_refused = slip
        .found
        .why
        .iter()
        .any(|it| it.contains("implemented `Clone`"));
    if is_refused && derive.is_none() {
        return None;
    }
    let edits = derive
        .into_iter()
        .chain([insert(end, ".clone()")])
        .collect();
    Some(Answer::of(edits).why(why))
}

/// `let first = data[0].text;`, of which rustc would have a borrow, which the next cell could not use.
fn out_of_an_index(slip: &Slip) -> Option<Answer> {
    let whole = find(slip.cell, |it| (place(it) == slip.span).then(|| place(it)))?;
    cloned(
        slip,
        whole.end,
        "`clone` makes a copy, and the list keeps its value",
    )
}

/// The fix for a variable that borrows: a value of its own, as an edit of its `let`. `None`: the text does not decide it.
pub fn owned(cell: impl Into<CellSyntax>, name: &str) -> Option<Fix> {
    let name = name.to_owned();
    cell.into().read(move |cell| {
        let (edits, written) = of_its_own(cell, &name)?;
        Some(Fix {
            kind: FixKind::Change,
            title: format!("keep a value of its own: `{written}`"),
            edits,
        })
    })
}

fn of_its_own(cell: &Syntax, name: &str) -> Option<(Vec<Edit>, String)> {
    let value = find_local(cell, |local| match &local.pat {
        Pat::Ident(bound) if bound.ident == name => Some((*local.init.as_ref()?.expr).clone()),
        _ => None,
    })?;
    let span = place(&value);
    let text = cell.text().get(span.start..span.end)?;
    let written = copied(cell, &value, text)?;
    let shown = format!("let {name} = {written};");
    Some((vec![edit(span.start, span.end, written)], shown))
}

/// The value without what borrows.
fn copied(cell: &Syntax, value: &Expr, text: &str) -> Option<String> {
    const OPTIONS: [&str; 8] = [
        "first", "last", "get", "max", "min", "max_by", "min_by", "find",
    ];
    const TEXTS: [&str; 8] = [
        "as_str",
        "trim",
        "trim_start",
        "trim_end",
        "as_slice",
        "trim_matches",
        "strip_prefix",
        "borrow",
    ];
    Some(match value {
        Expr::Reference(reference) => {
            let inner = text.trim_start_matches('&').trim_start();
            match &*reference.expr {
                Expr::Index(index) if matches!(&*index.index, Expr::Range(_)) => {
                    format!("{inner}.to_owned()")
                }
                Expr::Index(index) if is_list_of_numbers(cell, &index.expr) => inner.to_owned(),
                _ => format!("{inner}.clone()"),
            }
        }
        Expr::MethodCall(call) if call.method == "unwrap" || call.method == "expect" => {
            let (inner, outer) = (place(&call.receiver), place(value));
            let receiver = cell.text().get(inner.start..inner.end)?;
            let copied = copied(cell, &call.receiver, receiver)?;
            format!("{copied}{}", cell.text().get(inner.end..outer.end)?)
        }
        Expr::Try(inner) => {
            let at = place(&inner.expr);
            let receiver = cell.text().get(at.start..at.end)?;
            format!("{}?", copied(cell, &inner.expr, receiver)?)
        }
        Expr::MethodCall(call) if OPTIONS.iter().any(|it| call.method == it) => {
            format!("{text}.cloned()")
        }
        Expr::MethodCall(call) if TEXTS.iter().any(|it| call.method == it) => {
            format!("{text}.to_owned()")
        }
        _ => return None,
    })
}

/// Whether a name is bound to a list of numbers that is written out.
fn is_list_of_numbers(cell: &Syntax, expression: &Expr) -> bool {
    let Some(name) = name_of(expression) else {
        return false;
    };
    let value: Option<CellSpan> = find_local(cell, |local| match &local.pat {
        Pat::Ident(bound) if bound.ident == name => Some(place(&local.init.as_ref()?.expr)),
        _ => None,
    });
    let text = value.and_then(|it| cell.text().get(it.start..it.end));
    let inside = text.map(|it| it.trim_start_matches("vec!").trim());
    inside.is_some_and(|it| {
        it.starts_with('[')
            && it
                .chars()
                .all(|sign| sign.is_ascii_digit() || "[]., _-e;".contains(sign))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::apply;

    #[test]
    fn a_borrow_becomes_a_value_of_its_own() {
        for (cell, name, expected) in [
            (
                "let v = vec![0.9, 0.5];\nlet first = &v[0];",
                "first",
                Some("let first = v[0];"),
            ),
            (
                "let first = &names[0];",
                "first",
                Some("let first = names[0].clone();"),
            ),
            (
                "let part = &v[1..3];",
                "part",
                Some("let part = v[1..3].to_owned();"),
            ),
            (
                "let last = v.last().unwrap();",
                "last",
                Some("let last = v.last().cloned().unwrap();"),
            ),
            (
                "let short = text.trim();",
                "short",
                Some("let short = text.trim().to_owned();"),
            ),
            ("let row = &data;", "row", Some("let row = data.clone();")),
            ("let it = first(&v);", "it", None),
        ] {
            let fixed = owned(cell, name).and_then(|fix| apply(cell, &fix));
            let last = fixed.as_deref().and_then(|it| it.lines().last());
            assert_eq!(last, expected, "{cell}");
        }
    }
}

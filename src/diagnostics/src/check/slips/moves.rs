//! Values that are moved where a copy or a borrow is meant, and borrows that a cell cannot keep.

use std::collections::BTreeMap;

use stratoscope_cell_syntax::{CellSyntax, Syntax};
use syn::spanned::Spanned;
use syn::{Expr, Pat};

use super::borrows::{filled, owned_type};
use super::items::derived;
use super::itself::{is_not_cloned, itself};
use super::tree::{find, find_local, name_of, place};
use super::{Answer, Slip, edit, insert};
use crate::check::calls::span_of;
use crate::render::apply;
use crate::{CellSpan, Edit, Fix, FixKind, Place};
use stratoscope_render::text;

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

/// The fix for a variable that borrows: a value of its own, as an edit of its `let`, or the variable itself that it borrows
/// from, if that cannot be copied. `None`: the text does not decide it.
pub fn owned(
    cell: impl Into<CellSyntax>,
    name: &str,
    variables: &BTreeMap<String, String>,
) -> Option<Fix> {
    let (name, variables) = (name.to_owned(), variables.clone());
    cell.into().read(move |cell| {
        if let Some((owner, edits)) = itself(cell, &name)
            && variables.get(&owner).is_some_and(|it| is_not_cloned(it))
        {
            return Some(Fix {
                kind: FixKind::Change,
                title: format!("use `{owner}` itself, which cannot be copied: leave out `{name}`"),
                edits,
            });
        }
        let (edits, written) = of_its_own(cell, &name)?;
        Some(Fix {
            kind: FixKind::Change,
            title: format!("keep a value of its own: `{written}`"),
            edits,
        })
    })
}

fn of_its_own(cell: &Syntax, name: &str) -> Option<(Vec<Edit>, String)> {
    if let Some(found) = collected(cell, name).or_else(|| filled(cell, name)) {
        return Some(found);
    }
    let (value, of_type) = find_local(cell, |local| {
        let (pattern, of_type) = match &local.pat {
            Pat::Type(typed) => (&*typed.pat, Some(place(&typed.ty))),
            other => (other, None),
        };
        match pattern {
            Pat::Ident(bound) if bound.ident == name => {
                Some(((*local.init.as_ref()?.expr).clone(), of_type))
            }
            _ => None,
        }
    })?;
    let span = place(&value);
    let text = cell.text().get(span.start..span.end)?;
    let is_text = of_type.and_then(|it| cell.text().get(it.start..it.end)) == Some("&str");
    let written = match copied(cell, &value, text) {
        // Of a text `to_string` makes a `String`, whatever it is behind.
        Some(_) if is_text => format!("{}.to_string()", text.trim_start_matches('&')),
        copied => copied?,
    };
    let mut edits = vec![edit(span.start, span.end, written.clone())];
    let mut shown = format!("let {name} = {written};");
    if let Some(span) = of_type {
        let owned = owned_type(cell.text().get(span.start..span.end)?);
        shown = format!("let {name}: {owned} = {written};");
        edits.push(edit(span.start, span.end, owned));
    }
    Some((edits, text::excerpt(&shown, 100)))
}

/// `let words: Vec<&str> = text.split(' ').collect();`, whose items become values of their own.
fn collected(cell: &Syntax, name: &str) -> Option<(Vec<Edit>, String)> {
    let local = find_local(cell, |local| match &local.pat {
        Pat::Ident(bound) if bound.ident == name => Some(local.clone()),
        Pat::Type(typed) => match &*typed.pat {
            Pat::Ident(bound) if bound.ident == name => Some(local.clone()),
            _ => None,
        },
        _ => None,
    })?;
    let Expr::MethodCall(call) = &*local.init.as_ref()?.expr else {
        return None;
    };
    if call.method != "collect" {
        return None;
    }
    let to_owned = to_owned_items(&call.receiver)?;
    let whole = span_of(local.span());
    let at = place(&call.receiver).end;
    // The type of the variable, or of the call: without the sign of a borrow.
    let in_call = call.turbofish.as_ref().map(|it| span_of(it.span()));
    let of_variable = match &local.pat {
        Pat::Type(typed) => Some(span_of(typed.ty.span())),
        _ => None,
    };
    let mut edits = vec![insert(at, to_owned)];
    for span in [of_variable, in_call].into_iter().flatten() {
        let kind = cell.text().get(span.start..span.end)?;
        let owned = kind.replace("&str", "String").replace('&', "");
        if owned != kind {
            edits.push(edit(span.start, span.end, owned));
        }
    }
    let fix = Fix {
        kind: FixKind::Change,
        title: String::new(),
        edits: edits.clone(),
    };
    let fixed = apply(cell.text(), &fix)?;
    let behind = cell.text().len() - whole.end;
    let written = fixed.get(whole.start..fixed.len() - behind)?.to_owned();
    Some((edits, written))
}

/// Methods that divide a text into parts of it.
const PARTS: [&str; 7] = [
    "lines",
    "rsplit",
    "split",
    "split_ascii_whitespace",
    "split_terminator",
    "split_whitespace",
    "splitn",
];

/// What makes values of the items that a chain of methods lends: of parts of a text, or of a list's items.
fn to_owned_items(chain: &Expr) -> Option<&'static str> {
    // They hand on what they get.
    const PASS: [&str; 6] = ["filter", "rev", "skip", "step_by", "take", "take_while"];
    let Expr::MethodCall(call) = chain else {
        return None;
    };
    let method = call.method.to_string();
    match method.as_str() {
        "iter" | "keys" | "values" => Some(".cloned()"),
        it if PARTS.contains(&it) => Some(".map(str::to_owned)"),
        it if PASS.contains(&it) => to_owned_items(&call.receiver),
        _ => None,
    }
}

/// The value without what borrows.
fn copied(cell: &Syntax, value: &Expr, text: &str) -> Option<String> {
    const OPTIONS: [&str; 12] = [
        "first",
        "last",
        "get",
        "max",
        "min",
        "max_by",
        "max_by_key",
        "min_by",
        "min_by_key",
        "find",
        "next",
        "nth",
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
        // A part of a text is no item that could be cloned.
        Expr::MethodCall(call)
            if (call.method == "unwrap" || call.method == "expect")
                && is_part_of_text(&call.receiver) =>
        {
            format!("{text}.to_owned()")
        }
        Expr::Block(_) | Expr::If(_) | Expr::Match(_) => format!("{text}.to_owned()"),
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

/// Whether a chain of methods begins with the parts of a text: `text.split(' ').next()`.
fn is_part_of_text(chain: &Expr) -> bool {
    match chain {
        Expr::MethodCall(call) => {
            let method = call.method.to_string();
            PARTS.contains(&method.as_str()) || is_part_of_text(&call.receiver)
        }
        _ => false,
    }
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
            (
                "let words: Vec<&str> = text.split(' ').collect();",
                "words",
                Some("let words: Vec<String> = text.split(' ').map(str::to_owned).collect();"),
            ),
            (
                "let long = text.lines().filter(|it| it.len() > 3).collect::<Vec<&str>>();",
                "long",
                Some(
                    "let long = text.lines().filter(|it| it.len() > 3).map(str::to_owned).collect::<Vec<String>>();",
                ),
            ),
            (
                "let some: Vec<&f32> = v.iter().take(2).collect();",
                "some",
                Some("let some: Vec<f32> = v.iter().take(2).cloned().collect();"),
            ),
            (
                "let n: Vec<&str> = v.iter().map(|it| it.name()).collect();",
                "n",
                None,
            ),
            ("let it = first(&v);", "it", None),
            (
                "let longest: &str = words.iter().max_by_key(|w| w.len()).unwrap();",
                "longest",
                Some(
                    "let longest: String = words.iter().max_by_key(|w| w.len()).unwrap().to_string();",
                ),
            ),
            (
                "let first = text.split(' ').next().unwrap();",
                "first",
                Some("let first = text.split(' ').next().unwrap().to_owned();"),
            ),
            (
                "let best: &str = { let it = &words[0]; it };",
                "best",
                Some("let best: String = { let it = &words[0]; it }.to_string();"),
            ),
        ] {
            let fixed = owned(cell, name, &BTreeMap::new()).and_then(|fix| apply(cell, &fix));
            let last = fixed.as_deref().and_then(|it| it.lines().last());
            assert_eq!(last, expected, "{cell}");
        }
    }
}

//! What an item of the cell lacks: a `derive`, an arm, an import with the `mut` of what it makes.

use syn::spanned::Spanned;
use syn::{Expr, Item, Stmt};

use super::tree::{find, find_local, is_in, place};
use super::{Answer, Slip, edit, insert, without_mut};
use crate::{CellSpan, Edit, Place};

pub(super) fn answer(slip: &Slip) -> Option<Answer> {
    match slip.code() {
        "E0277" | "E0599" | "E0369" => without_derive(slip),
        "E0004" => without_arm(slip),
        "E0433" | "E0425" | "E0412" => collection(slip),
        _ => None,
    }
}

/// A type of the cell that cannot be printed, copied or compared.
fn without_derive(slip: &Slip) -> Option<Answer> {
    let message = slip.message();
    if let Some(of_type) = message
        .strip_suffix("` doesn't implement `std::fmt::Display`")
        .and_then(|it| it.strip_prefix('`'))
    {
        return displayed(slip, of_type);
    }
    let (wanted, of_type) = if let Some((of_type, rest)) = message.split_once("doesn't implement") {
        (
            rest.contains("Debug").then_some("Debug")?,
            of_type.split('`').nth(1)?,
        )
    } else if let Some((_, rest)) = message.split_once("no method named `clone` found for struct `")
    {
        ("Clone", rest.split('`').next()?)
    } else if message.starts_with("binary operation `==` cannot be applied to type `") {
        ("PartialEq", message.split('`').nth(3)?)
    } else {
        return None;
    };
    let edits: Vec<Edit> = derived(slip, of_type, wanted).into_iter().collect();
    let title = format!("give it the trait: `#[derive({wanted})]` above `{of_type}`");
    Some(Answer::of(edits).titled(title))
}

/// `println!("{}", config)` of a type of the cell: `{:?}` shows its fields.
fn displayed(slip: &Slip, of_type: &str) -> Option<Answer> {
    let item = item_of(slip, of_type)?;
    // The place of this value, if the text has one for each.
    let open = slip.cell.text()[..slip.span.start].rfind("{}")?;
    let inside = &slip.cell.text()[open..slip.span.start];
    let is_one = slip.cell.text()[..open].rfind("!(\"").is_some_and(|start| {
        !slip.cell.text()[start..open].contains('{') && !inside.contains('{')
            || inside.matches('{').count() == 1
    });
    let mut edits = vec![edit(open, open + 2, "{:?}")];
    edits.extend(derived(slip, of_type, "Debug"));
    let has_debug = edits.len() == 2 || slip.text(item).contains("Debug");
    (is_one && has_debug).then(|| {
        Answer::of(edits)
            .titled("show its fields: `{:?}` in the text, and `#[derive(Debug)]` above the type")
            .why("`{}` needs text that a type defines for itself by `impl std::fmt::Display`")
    })
}

/// The place of a type that the cell defines.
fn item_of(slip: &Slip, of_type: &str) -> Option<CellSpan> {
    slip.cell.statements()?.iter().find_map(|statement| {
        let Stmt::Item(item) = statement else {
            return None;
        };
        let name = match item {
            Item::Struct(it) => &it.ident,
            Item::Enum(it) => &it.ident,
            _ => return None,
        };
        (*name == of_type).then(|| place(&item.span()))
    })
}

/// The `derive` of a type of the cell that lacks it; `None` for any other type.
pub(super) fn derived(slip: &Slip, of_type: &str, wanted: &str) -> Option<Edit> {
    let item = item_of(slip, of_type)?;
    let has_it = slip.text(item).split('{').next()?.contains(wanted);
    (!has_it).then(|| insert(item.start, format!("#[derive({wanted})]\n")))
}

/// A `match` that does not have all values.
fn without_arm(slip: &Slip) -> Option<Answer> {
    let (end, is_open, other) = find(slip.cell, |it| match it {
        Expr::Match(matched)
            if is_in(slip.span, place(it)) && place(&matched.expr) == slip.span =>
        {
            let last = matched.arms.last()?;
            let needs_comma = last.comma.is_none() && !matches!(*last.body, Expr::Block(_));
            let other = match &*last.body {
                Expr::Lit(body) if matches!(body.lit, syn::Lit::Str(_)) => "\"other\"",
                Expr::Lit(body) if matches!(body.lit, syn::Lit::Int(_)) => "0",
                Expr::Lit(body) if matches!(body.lit, syn::Lit::Float(_)) => "0.0",
                _ => "todo!(\"all other values\")",
            };
            Some((place(last).end, needs_comma, other))
        }
        _ => None,
    })?;
    let text = slip.cell.text();
    let line = text[..end].rfind('\n').map_or(0, |at| at + 1);
    let indent = text[line..].len() - text[line..].trim_start().len();
    let comma = if is_open { "," } else { "" };
    let gap = if line > 0 {
        format!("\n{}", " ".repeat(indent))
    } else {
        " ".to_owned()
    };
    let arm = format!("{comma}{gap}_ => {other},");
    Some(
        Answer::of(vec![insert(end, arm)])
            .titled("add an arm for all other values: `_ => …`")
            .why(
                "a `match` has an arm for each value that there may be; `_` stands for all others",
            ),
    )
}

/// `HashMap::new()` without its import, and without the `mut` that filling it needs.
fn collection(slip: &Slip) -> Option<Answer> {
    const FILL: [&str; 6] = [
        "insert",
        "push",
        "push_back",
        "extend",
        "entry",
        "push_front",
    ];
    let import = slip.found.fixes.iter().find(|fix| {
        fix.edits
            .iter()
            .any(|it| it.replacement.starts_with("use std::"))
    })?;
    let name = find_local(slip.cell, |local| match &local.pat {
        syn::Pat::Ident(bound) if is_in(slip.span, place(local)) => Some(bound.ident.to_string()),
        _ => None,
    })?;
    let is_filled = find(slip.cell, |it| match it {
        Expr::MethodCall(call) if FILL.iter().any(|it| call.method == it) => {
            (super::tree::name_of(&call.receiver).as_deref() == Some(name.as_str())).then_some(())
        }
        _ => None,
    });
    is_filled?;
    let mutable = without_mut(slip.cell, &name, slip.span.end)?;
    let Place::Span(_) = mutable.place else {
        return None;
    };
    let mut edits = import.edits.clone();
    edits.push(mutable);
    Some(Answer::of(edits).titled(format!(
        "{}, and `let mut {name}`, since it is filled",
        import.title
    )))
}

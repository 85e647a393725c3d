//! Slips in what is declared: a callback with two parameters, a value of a struct without a field, a type parameter that is
//! computed with, a variable that is bound later.

use syn::{Expr, Pat};

use super::tree::{find, is_in, name_of, outermost, place};
use super::{Answer, Slip, edit, insert};
use crate::CellSpan;

/// `on_epoch_end(|epoch, logs| …)`.
pub(super) fn parameters(slip: &Slip) -> Option<Answer> {
    let text = slip.cell.text();
    let at = outermost(slip.cell, |it| {
        let Expr::Call(call) = it else {
            return None;
        };
        let name = name_of(&call.func)?;
        let Some(Expr::Closure(closure)) = call.args.first() else {
            return None;
        };
        let is_ours = [
            "on_epoch_end",
            "on_batch_end",
            "on_train_begin",
            "on_train_end",
        ]
        .contains(&name.as_str());
        let is_here = is_in(slip.span, place(it));
        (is_ours && is_here && closure.inputs.len() > 1).then(|| {
            let (first, last) = (
                place(closure.inputs.first()?),
                place(closure.inputs.last()?),
            );
            let names: Vec<String> = closure
                .inputs
                .iter()
                .map(|it| {
                    let at = place(it);
                    text[at.start..at.end].to_owned()
                })
                .collect();
            Some((name, first.start, last.end, names, place(&closure.body)))
        })?
    })?;
    let (name, start, end, names, body) = at;
    let reason = match name.as_str() {
        "on_epoch_end" => {
            "the record of an epoch has `epoch`, `loss`, `metrics`, `validation`, `learning_rate` and `seconds`"
        }
        "on_batch_end" => "the record has `step`, `loss` and `learning_rate`",
        "on_train_end" => "the value is the history",
        _ => "the value says what the run begins with",
    };
    let second = names.get(1).map_or("", String::as_str);
    let inside = text.get(body.start..body.end).unwrap_or_default();
    let is_used = |it: &str| !it.starts_with('_') && inside.contains(it);
    let message = format!("the closure of `{name}` gets one value");
    if is_used(second) {
        let first = names[0].as_str();
        return Some(
            Answer::words(format!(
                "take one record, as in `{name}(|{first}| println!(\"{{:?}}\", {first}))`"
            ))
            .why(reason)
            .instead(message),
        );
    }
    Some(
        Answer::of(vec![edit(start, end, names[0].clone())])
            .why(reason)
            .instead(message),
    )
}

/// `Experiment { lr, epochs: 2 }` without its list.
pub(super) fn empty_list(slip: &Slip) -> Option<Answer> {
    let mut missing = slip.message().split('`').skip(1).step_by(2);
    let field = missing.next()?.to_owned();
    let fields = slip.cell.statements()?.iter().find_map(|it| match it {
        syn::Stmt::Item(syn::Item::Struct(found)) => {
            let mut fields = found.fields.iter();
            let field = fields.find(|it| it.ident.as_ref().is_some_and(|it| *it == field))?;
            Some(slip.text(place(&field.ty)).to_owned())
        }
        _ => None,
    })?;
    let value = match fields.as_str() {
        it if it.starts_with("Vec<") => "Vec::new()",
        it if it.starts_with("Option<") => "None",
        "String" => "String::new()",
        _ => return None,
    };
    let at = find(slip.cell, |it| match it {
        Expr::Struct(made) if is_in(slip.span, place(it)) && made.rest.is_none() => {
            let last = made.fields.last()?;
            Some(place(last).end)
        }
        _ => None,
    })?;
    // Of several, each has its own line.
    (slip.message().matches('`').count() <= 4).then(|| {
        Answer::of(vec![insert(at, format!(", {field}: {value}"))])
            .why("a value of a struct has all of its fields")
    })
}

/// `fit!(later, data)?; let later = …;`
pub(super) fn bound_later(slip: &Slip) -> Option<Answer> {
    let name = slip.text(slip.span).to_owned();
    let is_name = !name.is_empty() && name.chars().all(|it| it.is_alphanumeric() || it == '_');
    if !is_name || !slip.message().starts_with("cannot find value ") {
        return None;
    }
    let at = super::tree::find_local(slip.cell, |local| {
        let pattern = match &local.pat {
            Pat::Type(typed) => &*typed.pat,
            other => other,
        };
        let Pat::Ident(bound) = pattern else {
            return None;
        };
        let at = place(&bound.ident);
        (bound.ident == name && at.start > slip.span.end).then_some(at)
    })?;
    let text = slip.cell.text();
    let line = |at: CellSpan| text[..at.start].matches('\n').count() + 1;
    let (here, there) = (line(slip.span), line(at));
    Some(
        Answer::words(format!("move line {there} above line {here}"))
            .why("a cell runs from top to bottom, and a variable is there from its `let` on")
            .instead(format!("`{name}` is bound only in line {there}")),
    )
}

/// `try { … } catch (e) { … }`.
pub(super) fn caught(slip: &Slip) -> Option<Answer> {
    if !slip
        .message()
        .starts_with("keyword `catch` cannot follow a `try` block")
    {
        return None;
    }
    Some(
        Answer::words("write `if let Err(error) = fit!(model, data) { println!(\"{error}\"); }`")
            .why("a call that can fail returns a `Result`: `Ok(value)`, or `Err(error)`")
            .instead("Rust has no `try` and `catch`"),
    )
}

/// `fn mean<T>(v: &[T]) -> T { … s / v.len() }`.
pub(super) fn generic_mean(slip: &Slip) -> Option<Answer> {
    let message = slip.message();
    let function = super::super::our_words::function_around(slip.cell, slip.span)?;
    let [syn::GenericParam::Type(parameter)] = function
        .sig
        .generics
        .params
        .iter()
        .collect::<Vec<_>>()
        .as_slice()
    else {
        return None;
    };
    let name = parameter.ident.to_string();
    let is_of_it =
        message.contains(&format!("`{name}`")) || message.contains(&format!("`&{name}`"));
    if !is_of_it || !parameter.bounds.is_empty() {
        return None;
    }
    Some(
        Answer::words(format!(
            "for numbers write `f64` in place of `{name}`, and leave `<{name}>` out: `fn {}(v: &[f64]) -> f64`",
            function.sig.ident
        ))
        .why("a length is converted by `v.len() as f64`")
        .instead(format!("`{name}` may be any type, also a text, which is not computed with")),
    )
}

//! Errors of rustc's about slips that it names in the words of its type system: a text that is compared with literals by `match`,
//! a `?` in a closure, a text and a number that are added, a comparison where an order is wanted.

use syn::{BinOp, Expr, Lit, Pat};

use super::signatures::{bound_later, caught, empty_list, generic_mean, parameters};
use super::tree::{find, is_in, name_of, place};
use super::{Answer, Slip, edit, insert};

pub(super) fn answer(slip: &Slip) -> Option<Answer> {
    match slip.code() {
        "E0308" => matched_text(slip)
            .or_else(|| order(slip))
            .or_else(|| float_of_an_integer(slip))
            .or_else(|| none(slip)),
        "E0277" => mark_in_a_closure(slip)
            .or_else(|| mark_of_an_option(slip))
            .or_else(|| shown(slip))
            .or_else(|| generic_mean(slip)),
        "E0369" => joined(slip)
            .or_else(|| option_in_a_product(slip))
            .or_else(|| generic_mean(slip)),
        "E0368" => generic_mean(slip),
        "E0593" => parameters(slip),
        "E0063" => empty_list(slip),
        "E0425" => bound_later(slip),
        "CompilationError" => caught(slip),
        _ => None,
    }
}

/// `match name { "a" => … }` of a `String`.
fn matched_text(slip: &Slip) -> Option<Answer> {
    let mut labels = slip.found.labels.iter();
    if !labels
        .any(|it| it.text.starts_with("expected `String`, found `&") && it.text.contains("str`"))
    {
        return None;
    }
    let value = find(slip.cell, |it| {
        let Expr::Match(found) = it else {
            return None;
        };
        let is_here = found
            .arms
            .iter()
            .any(|arm| is_in(slip.span, place(&arm.pat)));
        is_here.then(|| place(&found.expr))
    })?;
    Some(
        Answer::of(vec![insert(value.end, ".as_str()")])
            .why("the patterns are texts that are written out, `&str`, and the value is a `String`")
            .instead("a `String` is matched by `as_str()`"),
    )
}

/// `max_by(|a, b| a.score > b.score)`.
fn order(slip: &Slip) -> Option<Answer> {
    let mut labels = slip.found.labels.iter();
    if !labels.any(|it| it.text == "expected `Ordering`, found `bool`") {
        return None;
    }
    let (whole, left, right, is_turned) = find(slip.cell, |it| {
        let Expr::Binary(binary) = it else {
            return None;
        };
        let is_turned = match binary.op {
            BinOp::Gt(_) | BinOp::Ge(_) => false,
            BinOp::Lt(_) | BinOp::Le(_) => true,
            _ => return None,
        };
        is_in(place(it), slip.span).then(|| {
            (
                place(it),
                place(&binary.left),
                place(&binary.right),
                is_turned,
            )
        })
    })?;
    let (first, second) = (slip.text(left), slip.text(right));
    let (first, second) = if is_turned {
        (second, first)
    } else {
        (first, second)
    };
    let is_float = ["score", "loss", "accuracy", "probabilit"]
        .iter()
        .any(|it| first.contains(it));
    let written = if is_float {
        format!("{first}.total_cmp(&{second})")
    } else {
        format!("{first}.partial_cmp(&{second}).expect(\"a number\")")
    };
    Some(
        Answer::of(vec![edit(whole.start, whole.end, written)])
            .why("the closure says which of two is larger by an `Ordering`, not by `true` or `false`")
            .instead("an order is wanted here, and this is a comparison"),
    )
}

/// `let mut best = 0; if p.score > best { best = p.score; }`: the variable begins as an integer.
fn float_of_an_integer(slip: &Slip) -> Option<Answer> {
    let mut labels = slip.found.labels.iter();
    let is_mixed = labels.any(|it| {
        let text = it.text.trim_start_matches("expected ").replace('`', "");
        matches!(
            text.as_str(),
            "integer, found f64"
                | "f64, found integer"
                | "integer, found floating-point number"
                | "f64, found {integer}"
        )
    });
    if !is_mixed {
        return None;
    }
    let name = find(slip.cell, |it| match it {
        Expr::Binary(binary) if is_in(slip.span, place(it)) => {
            let sides = [&binary.left, &binary.right];
            let meant = sides.iter().find(|side| place(**side) == slip.span);
            meant.and_then(|it| name_of(it))
        }
        Expr::Assign(assign) if place(&assign.right) == slip.span => name_of(&assign.left),
        _ => None,
    })?;
    let bound = slip.bound(&name, slip.span.start)?;
    let value = bound.value?;
    let Expr::Lit(literal) = &value else {
        return None;
    };
    let Lit::Int(number) = &literal.lit else {
        return None;
    };
    if bound.of_type.is_some() || !number.suffix().is_empty() {
        return None;
    }
    Some(
        Answer::of(vec![insert(place(&value).end, ".0")])
            .why(format!(
                "`{name}` begins as `{number}`, and so it is an integer"
            ))
            .instead(format!("`{name}` is an integer, and is used as a float")),
    )
}

/// `let name: String = None;`
fn none(slip: &Slip) -> Option<Answer> {
    let mut labels = slip.found.labels.iter();
    let is_none = labels.any(|it| it.text.contains(", found `Option<_>`"));
    if !is_none || slip.text(slip.span) != "None" {
        return None;
    }
    let of_type = super::tree::find_local(slip.cell, |local| {
        let Pat::Type(typed) = &local.pat else {
            return None;
        };
        let value = &local.init.as_ref()?.expr;
        (place(value) == slip.span).then(|| place(&typed.ty))
    })?;
    Some(
        Answer::of(vec![
            insert(of_type.start, "Option<"),
            insert(of_type.end, ">"),
        ])
        .why("only an `Option` can be `None`: it is `Some(value)` or `None`")
        .instead(format!("a `{}` is never `None`", slip.text(of_type))),
    )
}

/// `paths.iter().map(|p| Dataset::csv(p)?.len()).collect()`.
fn mark_in_a_closure(slip: &Slip) -> Option<Answer> {
    let is_meant = slip
        .message()
        .starts_with("the `?` operator can only be used in a closure that returns");
    if !is_meant {
        return None;
    }
    const WHY: &str = "`?` would return from the closure, which returns no `Result`: `collect` makes one list of several `Result`s, or the first error";
    let of_list = find(slip.cell, |it| {
        let Expr::MethodCall(collect) = it else {
            return None;
        };
        let Expr::MethodCall(map) = &*collect.receiver else {
            return None;
        };
        let Some(Expr::Closure(closure)) = map.args.first() else {
            return None;
        };
        let is_here =
            collect.method == "collect" && map.method == "map" && is_in(slip.span, place(closure));
        let value = match &*closure.body {
            Expr::Block(block) => match block.block.stmts.last() {
                Some(syn::Stmt::Expr(value, None)) => place(value),
                _ => return None,
            },
            body => place(body),
        };
        let types = collect.turbofish.as_ref().map(place);
        is_here.then(|| (value, place(&collect.method), types, place(it)))
    });
    const RESULT: &str = "::<Result<Vec<_>, Box<dyn std::error::Error>>>";
    let (value, name, types, whole) = of_list?;
    let end = types.map_or(name.end, |it| it.end);
    let is_tried = slip.cell.text()[whole.end..].starts_with('?');
    let mut edits = vec![
        insert(value.start, "Ok("),
        insert(value.end, ")"),
        edit(name.end, end, RESULT),
    ];
    if !is_tried {
        edits.push(insert(whole.end, "?"));
    }
    Some(
        Answer::of(edits)
            .why(WHY)
            .instead("a `?` in a closure that returns no `Result`"),
    )
}

/// `fn load(path: &str) -> Option<Dataset> { Some(Dataset::csv(path)?) }`.
fn mark_of_an_option(slip: &Slip) -> Option<Answer> {
    let is_meant = slip.message().starts_with("the `?` operator on a `Result`")
        || slip
            .message()
            .contains("on `Result`s, in a function that returns `Option`")
        || slip
            .message()
            .contains("can only be used on `Option`s, not `Result`s");
    let mark = slip.text(slip.span);
    if !is_meant || !mark.ends_with('?') {
        return None;
    }
    Some(
        Answer::of(vec![insert(slip.span.end - 1, ".ok()")])
            .why("the function returns an `Option`, which has no place for an error: `.ok()` drops it, and a function that returns a `Result` passes it on")
            .instead("a `?` on a `Result` in a function that returns an `Option`"),
    )
}

/// `println!("{}", longest)` of an `Option`.
fn shown(slip: &Slip) -> Option<Answer> {
    let message = slip.message();
    let is_shown =
        message.contains("Option<") && message.ends_with("doesn't implement `std::fmt::Display`");
    if !is_shown {
        return None;
    }
    let inner = message.split_once("Option<")?.1.split_once('>')?.0;
    taken_out(slip, inner).map(|it| it.instead("an `Option` has no text for `{}`"))
}

/// The value of an `Option` of numbers, at the `let` of the variable that stands at the place, or there; `inner`: the type in it.
pub(super) fn taken_out(slip: &Slip, inner: &str) -> Option<Answer> {
    let number = |inner: &str| match inner {
        "f64" | "f32" => Some("f64::NAN"),
        "usize" | "i32" | "i64" | "u32" | "u64" => Some("0"),
        _ => None,
    };
    let none = number(inner.trim_start_matches('&'))?;
    let is_borrowed = inner.starts_with('&');
    let copied = if is_borrowed { ".copied()" } else { "" };
    let written = format!("{copied}.unwrap_or({none})");
    let given = slip.text(slip.span).trim();
    let is_in_braces = given.starts_with('{');
    let is_whole = given.ends_with(')') && given.matches('(').count() == given.matches(')').count();
    let name = given.trim_matches(['{', '}']).split(':').next()?.to_owned();
    let is_name = !name.is_empty() && name.chars().all(|it| it.is_alphanumeric() || it == '_');
    let bound = if is_name {
        slip.bound(&name, slip.span.start)
    } else {
        None
    };
    let end = match bound.and_then(|it| it.value_span) {
        Some(value) => value.end,
        None if !is_in_braces && (is_name || is_whole) => slip.span.end,
        None => return None,
    };
    let why = format!("an `Option` may be `None`, for which `{none}` stands here");
    Some(Answer::of(vec![insert(end, written)]).why(why))
}

/// `"accuracy: " + number`.
fn joined(slip: &Slip) -> Option<Answer> {
    let message = slip.message();
    if !message.starts_with("cannot add ")
        || !message.ends_with("to `&str`") && !message.ends_with("to `&'static str`")
    {
        return None;
    }
    let (whole, left, right) = find(slip.cell, |it| match it {
        Expr::Binary(binary) if place(&binary.op) == slip.span => {
            Some((place(it), place(&binary.left), place(&binary.right)))
        }
        _ => None,
    })?;
    let text = slip.text(left);
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let inner = inner.replace('{', "{{").replace('}', "}}");
    let written = format!("format!(\"{inner}{{}}\", {})", slip.text(right));
    Some(
        Answer::of(vec![edit(whole.start, whole.end, written)])
            .why("`format!` makes a text of values: `{}` is the place of one")
            .instead("a text and a value are not added"),
    )
}

/// `hist["accuracy"].last() * 100.0`.
fn option_in_a_product(slip: &Slip) -> Option<Answer> {
    let message = slip.message();
    let signs = ["cannot multiply ", "cannot divide ", "cannot subtract "];
    if !signs.iter().any(|it| message.starts_with(it)) || !message.contains("Option<") {
        return None;
    }
    let (left, right) = find(slip.cell, |it| match it {
        Expr::Binary(binary) if place(&binary.op) == slip.span => {
            Some((place(&binary.left), place(&binary.right)))
        }
        _ => None,
    })?;
    // "cannot subtract `A` from `B`": the other order.
    let mut quoted = message.split('`').skip(1).step_by(2);
    let (first, second) = (quoted.next()?, quoted.next()?);
    let of_left = if message.starts_with("cannot subtract ") {
        second
    } else {
        first
    };
    let (end, of_type) = if of_left.contains("Option<") {
        (left.end, of_left)
    } else {
        (right.end, if of_left == first { second } else { first })
    };
    let copied = if of_type.contains("Option<&") {
        ".copied()"
    } else {
        ""
    };
    Some(
        Answer::of(vec![insert(end, format!("{copied}.unwrap_or_default()"))]).why(
            "an `Option` may be `None`: `unwrap_or_default` takes 0 then, `expect(\"…\")` ends the cell",
        ),
    )
}

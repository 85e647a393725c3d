//! Values that are used as if they were others: an `Option` as what is in it, floats as if they had an order, seconds as a number.

use syn::visit::Visit;
use syn::{BinOp, Expr, Lit, Pat};

use super::tree::{find, is_in, name_of, place};
use super::{Answer, Slip, edit, insert};

pub(super) fn answer(slip: &Slip) -> Option<Answer> {
    match slip.code() {
        "E0369" => of_a_wrapper(slip),
        "E0599" => compared(slip),
        "E0277" => by_key(slip),
        "E0507" => behind_a_reference(slip),
        "E0382" => partly_moved(slip),
        "E0308" => seconds(slip)
            .or_else(|| floats_of_a_list(slip))
            .or_else(|| mean(slip)),
        "E0600" => below_zero(slip),
        "E0282" => map_entry(slip),
        "CompilationError" => joined(slip)
            .or_else(|| untyped_parameter(slip))
            .or_else(|| dictionary(slip)),
        _ => None,
    }
}

/// `Some(3) + 1`, `"5".parse() + 1`.
fn of_a_wrapper(slip: &Slip) -> Option<Answer> {
    let message = slip.message();
    let wrapped = message.rsplit('`').nth(1)?;
    let is_result = wrapped.starts_with("std::result::Result<");
    let is_option = wrapped.starts_with("std::option::Option<");
    if !message.starts_with("cannot ") || !(is_result || is_option) {
        return None;
    }
    find(slip.cell, |it| {
        let Expr::Binary(binary) = it else {
            return None;
        };
        if place(&binary.op) != slip.span {
            return None;
        }
        let end = place(&binary.left).end;
        let inner = wrapped
            .split_once('<')
            .and_then(|(_, it)| it.strip_suffix('>'));
        if is_option
            && name_of(&binary.left).is_some_and(|name| slip.bound(&name, end).is_some())
            && let Some(inner) = inner
        {
            let of_left = Slip {
                span: place(&binary.left),
                ..*slip
            };
            if let Some(answer) = super::plain_words::taken_out(&of_left, inner) {
                return Some(answer);
            }
        }
        let is_parsed = matches!(&*binary.left, Expr::MethodCall(call) if call.method == "parse" && call.turbofish.is_none());
        let answer = match &*binary.left {
            Expr::MethodCall(call) if is_parsed => {
                let kind = match &*binary.right {
                    Expr::Lit(literal) if matches!(literal.lit, Lit::Float(_)) => "f64",
                    _ => "i64",
                };
                let name = place(&call.method).end;
                Answer::of(vec![insert(name, format!("::<{kind}>")), insert(end, "?")])
                    .why("`parse` returns a `Result` of the type that is asked for")
            }
            _ if is_result => Answer::of(vec![insert(end, "?")])
                .why("`?` takes the value out of a `Result`, and ends the cell with its error"),
            _ => Answer::of(vec![insert(end, ".unwrap_or_default()")]).why(
                "an `Option` may be `None`: `unwrap_or_default` takes 0 then, `expect(\"…\")` ends the cell",
            ),
        };
        Some(answer)
    })
}

/// `a.loss.cmp(&b.loss)` of floats.
fn compared(slip: &Slip) -> Option<Answer> {
    let is_float = slip.message() == "`f64` is not an iterator"
        || slip.message() == "`f32` is not an iterator";
    find(slip.cell, |it| match it {
        Expr::MethodCall(call)
            if is_float && call.method == "cmp" && (is_in(slip.span, place(it))) =>
        {
            Some(place(&call.method))
        }
        _ => None,
    })
    .map(|at| {
        Answer::of(vec![edit(at.start, at.end, "total_cmp")])
            .why("floats are not in a full order, because of NaN; `total_cmp` is one")
            .instead("floats have no `cmp`")
    })
}

/// `min_by_key(|epoch| epoch.loss)` of floats.
fn by_key(slip: &Slip) -> Option<Answer> {
    let is_order = slip.message() == "the trait bound `f64: Ord` is not satisfied";
    let method = slip.text(slip.span).to_owned();
    let written = match method.as_str() {
        "min_by_key" => "min_by",
        "max_by_key" => "max_by",
        "sort_by_key" => "sort_by",
        _ => return None,
    };
    find(slip.cell, |it| {
        let Expr::MethodCall(call) = it else {
            return None;
        };
        if !is_order || place(&call.method) != slip.span {
            return None;
        }
        let Some(Expr::Closure(closure)) = call.args.first() else {
            return None;
        };
        let Some(Pat::Ident(parameter)) = closure.inputs.first() else {
            return None;
        };
        let name = parameter.ident.to_string();
        let key = slip.text(place(&closure.body)).to_owned();
        let with = |other: &str| {
            let rest = key.strip_prefix(name.as_str())?;
            (rest.starts_with('.') && !rest.contains(&name)).then(|| format!("{other}{rest}"))
        };
        let at = place(closure);
        let closure = format!("|a, b| {}.total_cmp(&{})", with("a")?, with("b")?);
        Some(vec![
            edit(slip.span.start, slip.span.end, written),
            edit(at.start, at.end, closure),
        ])
    })
    .map(|edits| {
        Answer::of(edits).why("floats are not in a full order, because of NaN; `total_cmp` is one")
    })
}

/// `epoch.validation.unwrap()` behind a reference.
fn behind_a_reference(slip: &Slip) -> Option<Answer> {
    let mut labels = slip.found.labels.iter();
    let is_option = labels.any(|it| it.text.contains("calling `.as_ref()`"));
    is_option.then(|| {
        Answer::of(vec![insert(slip.span.end, ".as_ref()")])
            .why("`as_ref` lends what is in the `Option`, and leaves it there")
            .instead(slip.message())
    })
}

/// `let labels = train.label_names;`, and `train` is used afterwards.
fn partly_moved(slip: &Slip) -> Option<Answer> {
    let mut labels = slip.found.labels.iter();
    let moved = labels.find(|it| it.text == "value partially moved here")?;
    let crate::Place::Span(at) = moved.place else {
        return None;
    };
    let is_field = slip.text(at).contains('.');
    is_field.then(|| {
        Answer::of(vec![insert(at.end, ".clone()")])
            .why("`clone` makes a copy, and the value keeps its part")
    })
}

/// `std::thread::sleep(1)`.
fn seconds(slip: &Slip) -> Option<Answer> {
    let label = slip
        .found
        .labels
        .iter()
        .find(|it| it.text.starts_with("expected `Duration`, found"))?;
    let crate::Place::Span(at) = label.place else {
        return None;
    };
    let of = if label.text.contains("floating") {
        "from_secs_f64"
    } else {
        "from_secs"
    };
    let is_number = label.text.ends_with("integer") || label.text.contains("floating");
    is_number.then(|| {
        Answer::of(vec![
            insert(at.start, format!("std::time::Duration::{of}(")),
            insert(at.end, ")"),
        ])
        .why("a time is a `Duration`; `sleep(1)` takes seconds, and listens to an interrupt")
    })
}

/// `let v: Vec<f32> = vec![1, 2, 3];`: rustc's suggestion is about the first number.
fn floats_of_a_list(slip: &Slip) -> Option<Answer> {
    let is_float = slip.found.labels.iter().any(|it| {
        matches!(
            it.text.as_str(),
            "expected `f32`, found integer" | "expected `f64`, found integer"
        )
    });
    if !is_float {
        return None;
    }
    struct Integers(Vec<usize>);
    impl<'ast> Visit<'ast> for Integers {
        fn visit_lit_int(&mut self, literal: &'ast syn::LitInt) {
            if literal.suffix().is_empty() {
                self.0.push(place(literal).end);
            }
        }
    }
    let lists = |it: &Expr| match it {
        Expr::Array(array) if is_in(slip.span, place(it)) => {
            let mut integers = Integers(Vec::new());
            integers.visit_expr_array(array);
            Some(integers.0)
        }
        Expr::Macro(called) if called.mac.path.is_ident("vec") && is_in(slip.span, place(it)) => {
            let parser = syn::punctuated::Punctuated::<Expr, syn::Token![,]>::parse_terminated;
            let elements = called.mac.parse_body_with(parser).ok()?;
            let mut integers = Integers(Vec::new());
            elements.iter().for_each(|it| integers.visit_expr(it));
            Some(integers.0)
        }
        _ => None,
    };
    let ends = find(slip.cell, lists)?;
    let edits = ends.into_iter().map(|at| insert(at, ".0")).collect();
    Some(Answer::of(edits).why("Rust does not make floats of integers by itself"))
}

/// `let mean: f64 = sum / list.len();`
fn mean(slip: &Slip) -> Option<Answer> {
    let is_mixed = slip
        .found
        .labels
        .iter()
        .any(|it| it.text == "expected `f64`, found `usize`");
    find(slip.cell, |it| match it {
        Expr::Binary(binary)
            if is_mixed && place(it) == slip.span && matches!(binary.op, BinOp::Div(_)) =>
        {
            let (left, right) = (place(&binary.left).end, place(&binary.right).end);
            Some(vec![insert(left, " as f64"), insert(right, " as f64")])
        }
        _ => None,
    })
    .map(|edits| Answer::of(edits).why("a division of integers is cut; of floats it is not"))
}

/// `let i: usize = -1;`
fn below_zero(slip: &Slip) -> Option<Answer> {
    let unsigned = slip
        .message()
        .strip_prefix("cannot apply unary operator `-` to type `")?;
    let unsigned = unsigned.trim_end_matches('`').to_owned();
    let signed = match unsigned.as_str() {
        "usize" | "u64" => "i64",
        "u32" => "i32",
        "u16" => "i16",
        "u8" => "i8",
        _ => return None,
    };
    super::tree::find_local(slip.cell, |local| {
        let Pat::Type(typed) = &local.pat else {
            return None;
        };
        let at = place(&typed.ty);
        let is_here = is_in(slip.span, place(local)) && slip.text(at) == unsigned;
        is_here.then(|| edit(at.start, at.end, signed))
    })
    .map(|edit| Answer::of(vec![edit]).why("types that begin with `u` have no numbers below 0"))
}

/// `map["a"] = 1;` of a map that is empty.
fn map_entry(slip: &Slip) -> Option<Answer> {
    if !slip.message().contains("`HashMap<") && !slip.message().contains("`BTreeMap<") {
        return None;
    }
    find(slip.cell, |it| {
        let Expr::Assign(assign) = it else {
            return None;
        };
        let Expr::Index(index) = &*assign.left else {
            return None;
        };
        let name = name_of(&index.expr)?;
        let (key, value) = (
            slip.text(place(&index.index)),
            slip.text(place(&assign.right)),
        );
        let at = place(it);
        let mut edits = vec![edit(
            at.start,
            at.end,
            format!("{name}.insert({key}, {value})"),
        )];
        edits.extend(
            slip.bound(&name, at.start)
                .and_then(|it| it.without_mut)
                .map(|at| insert(at, "mut ")),
        );
        Some(edits)
    })
    .map(|edits| {
        Answer::of(edits).why("`insert` puts a value into a map; an index reads one that is there")
    })
}

/// `println!("accuracy: " + value);`
fn joined(slip: &Slip) -> Option<Answer> {
    if slip.message() != "expected `,`, found `+`" || slip.text(slip.span) != "+" {
        return None;
    }
    let text = slip.cell.text();
    let before = text[..slip.span.start].trim_end();
    let is_one_text = before.ends_with('"');
    is_one_text.then(|| {
        Answer::of(vec![edit(
            before.len() - 1,
            slip.span.end,
            "{}\",".to_owned(),
        )])
        .why("a text has places for values, `{}`, and the values follow it")
    })
}

/// `fn f(x) { … }`.
fn untyped_parameter(slip: &Slip) -> Option<Answer> {
    let is_parameter = slip
        .message()
        .starts_with("expected one of `:`, `@`, or `|`, found `");
    is_parameter.then(|| {
        Answer::words("write the type of each parameter, such as `x: f64`")
            .why(
                "a function names the types of its parameters and, behind `->`, of what it returns",
            )
            .instead("a parameter lacks its type")
    })
}

/// `{"a": 1}`.
fn dictionary(slip: &Slip) -> Option<Answer> {
    if !slip.message().ends_with("found `:`") || slip.text(slip.span) != ":" {
        return None;
    }
    let text = slip.cell.text();
    let open = text[..slip.span.start].rfind('{')?;
    let close = slip.span.end + text[slip.span.end..].find('}')?;
    let pairs: Option<Vec<String>> = text[open + 1..close]
        .split(',')
        .map(str::trim)
        .filter(|it| !it.is_empty())
        .map(|pair| {
            let (key, value) = pair.split_once(':')?;
            let is_key = key.trim().starts_with('"');
            is_key.then(|| format!("({}, {})", key.trim(), value.trim()))
        })
        .collect();
    let map = format!("std::collections::HashMap::from([{}])", pairs?.join(", "));
    Some(
        Answer::of(vec![edit(open, close + 1, map)])
            .why("a map is made of pairs of keys and values"),
    )
}

//! A `?` behind what is no `Result`, and values whose type only the reader knows, at the end of a cell.

use syn::Expr;

use super::tree::{find, find_local, is_in, place};
use super::{Answer, Slip, edit, insert};

pub(super) fn answer(slip: &Slip) -> Option<Answer> {
    match slip.code() {
        "E0277" => no_result(slip)
            .or_else(|| last_value(slip))
            .or_else(|| label_as_index(slip)),
        "E0599" => array(slip),
        "E0529" => evaluation(slip),
        "E0369" => measure(slip),
        "E0061" => without_device(slip),
        "E0107" => without_rank(slip),
        "CompilationError" => colon(slip),
        _ => None,
    }
}

/// `Device::cuda(0)?`.
fn no_result(slip: &Slip) -> Option<Answer> {
    let is_of_a_value = slip
        .message()
        .starts_with("the `?` operator can only be applied to values that implement `Try`");
    let end = slip.span.end;
    let is_marked = slip.text(slip.span).ends_with('?');
    (is_of_a_value && is_marked).then(|| {
        Answer::of(vec![edit(end - 1, end, "")]).why(
            "`?` takes the value out of a `Result` or an `Option`, and this is the value itself",
        )
    })
}

/// `rows.iter().map(…).collect()` and `v.iter().sum()` as the last line: the kernel displays a value of any type, and so names
/// none.
fn last_value(slip: &Slip) -> Option<Answer> {
    let message = slip.message();
    let is_last =
        message.starts_with("a value of type `std::result::Result<_, Box<Diagnostic>>` cannot be ");
    let of_type = match slip.text(slip.span) {
        _ if !is_last => return None,
        "collect" => "Vec<_>".to_owned(),
        "sum" | "product" => {
            let (_, elements) = message.split_once("elements of type `")?;
            match elements.trim_end_matches('`').trim_start_matches('&') {
                "{float}" => "f64".to_owned(),
                "{integer}" => "i64".to_owned(),
                named => named.to_owned(),
            }
        }
        _ => return None,
    };
    let name = slip.text(slip.span);
    let what = if name == "collect" {
        "`collect` makes any kind of list, and the text does not say which"
    } else {
        "the sum has the type that is asked for, and the text asks for none"
    };
    Some(
        Answer::of(vec![insert(slip.span.end, format!("::<{of_type}>"))])
            .why(what)
            .instead(format!("the type that `{name}` returns is not known")),
    )
}

/// `let mut v = []; v.push(1);`
fn array(slip: &Slip) -> Option<Answer> {
    let is_array = slip.message().contains(" found for array `[");
    let is_change = [
        "push", "extend", "insert", "pop", "append", "remove", "retain",
    ]
    .contains(&slip.text(slip.span));
    if !(is_array && is_change) {
        return None;
    }
    let before = slip.cell.text()[..slip.span.start].strip_suffix('.')?;
    let name: String = before
        .rsplit(|it: char| !(it.is_alphanumeric() || it == '_'))
        .next()?
        .to_owned();
    let bound = slip.bound(&name, slip.span.start)?;
    let Expr::Array(array) = bound.value? else {
        return None;
    };
    let mutable = bound.without_mut.map(|at| insert(at, "mut "));
    let edits = mutable
        .into_iter()
        .chain([insert(place(&array).start, "vec!")]);
    Some(Answer::of(edits.collect()).why("an array has its length for good; a `Vec` grows"))
}

/// `let [loss, accuracy] = evaluate!(model, dev)?;`
fn evaluation(slip: &Slip) -> Option<Answer> {
    if !slip.message().ends_with("Evaluation`") {
        return None;
    }
    find_local(slip.cell, |local| {
        let syn::Pat::Slice(pattern) = &local.pat else {
            return None;
        };
        let value = &local.init.as_ref()?.expr;
        let (at, of_value) = (place(pattern), place(value));
        if !is_in(slip.span, at) || pattern.elems.len() != 2 {
            return None;
        }
        let whole = format!(
            "{{ let it = {}; (it.loss, it.metrics[0].value.unwrap_or(f64::NAN)) }}",
            slip.text(of_value)
        );
        Some(vec![
            edit(at.start, at.start + 1, "("),
            edit(at.end - 1, at.end, ")"),
            edit(of_value.start, of_value.end, whole),
        ])
    })
    .map(|edits| {
        Answer::of(edits).why(
            "an evaluation is one value: its field `loss`, and `metric(\"accuracy\")` or `metrics`",
        )
        .instead("`evaluate!` returns one value, not a list")
    })
}

/// `loss() > 2.0` as a condition of a run.
fn measure(slip: &Slip) -> Option<Answer> {
    let is_measure = slip
        .message()
        .starts_with("binary operation `>` cannot be applied to type `")
        && slip.message().ends_with("Measure`");
    if !is_measure {
        return None;
    }
    find(slip.cell, |it| match it {
        Expr::Binary(binary) if place(&binary.op) == slip.span || is_in(slip.span, place(it)) => {
            let is_larger = matches!(binary.op, syn::BinOp::Gt(_) | syn::BinOp::Ge(_));
            let (left, right) = (place(&binary.left), place(&binary.right));
            is_larger.then(|| {
                vec![
                    edit(left.end, right.start, ".above("),
                    insert(right.end, ")"),
                ]
            })
        }
        _ => None,
    })
    .map(|edits| Answer::of(edits).why("a condition of a run is made by `above`"))
}

/// `Tensor::<2>::zeros([2, 2])`.
fn without_device(slip: &Slip) -> Option<Answer> {
    const MAKE: [&str; 7] = [
        "zeros",
        "ones",
        "full",
        "empty",
        "random",
        "from_data",
        "from_floats",
    ];
    find(slip.cell, |it| {
        let Expr::Call(call) = it else {
            return None;
        };
        let path = slip.text(place(&call.func)).replace(' ', "");
        let name = path.rsplit("::").next()?;
        let needed = if matches!(name, "full" | "random") {
            2
        } else {
            1
        };
        let is_tensor = path.starts_with("Tensor::") && MAKE.contains(&name);
        let is_here = is_in(slip.span, place(it)) && call.args.len() == needed;
        // The number of dimensions, where the lengths are written out and nothing else says it.
        let lengths = match call.args.first() {
            Some(Expr::Array(lengths))
                if path == format!("Tensor::{name}") && name != "from_floats" =>
            {
                Some((
                    place(&call.func).start + "Tensor".len(),
                    lengths.elems.len(),
                ))
            }
            _ => None,
        };
        let end = place(call.args.last()?).end;
        (is_tensor && is_here).then_some((end, lengths))
    })
    .map(|(end, lengths)| {
        let rank = lengths.map(|(at, rank)| insert(at, format!("::<{rank}>")));
        let device = insert(end, ", &Device::flex()");
        Answer::of(rank.into_iter().chain([device]).collect()).why(
            "a tensor is made on a device: `Device::flex()` is the CPU, `Device::cuda(0)` a GPU",
        )
    })
}

/// `let x: Tensor = …`.
fn without_rank(slip: &Slip) -> Option<Answer> {
    (slip.text(slip.span) == "Tensor").then(|| {
        Answer::words("write how many dimensions it has: `Tensor<2>`")
            .instead("`Tensor` lacks its number of dimensions")
    })
}

/// `for i in 0..3: println!("{i}")`.
fn colon(slip: &Slip) -> Option<Answer> {
    let at = slip.span;
    if slip.message() != "expected `{`, found `:`" || slip.text(at) != ":" {
        return None;
    }
    let text = slip.cell.text();
    let start = text[..at.start].rfind('\n').map_or(0, |it| it + 1);
    let begins = text[start..].trim_start();
    let is_block = ["for ", "while ", "if ", "else"]
        .iter()
        .any(|it| begins.starts_with(it));
    let rest = text[at.end..].lines().next()?;
    if !is_block || rest.trim().is_empty() {
        return None;
    }
    let end = at.end + rest.trim_end().len();
    Some(
        Answer::of(vec![edit(at.start, at.end, " {"), insert(end, " }")])
            .why("a block stands in braces"),
    )
}

/// `train.label_names[train[3].label]`.
fn label_as_index(slip: &Slip) -> Option<Answer> {
    let is_label = slip
        .message()
        .starts_with("the type `[String]` cannot be indexed by")
        && slip.message().contains("prelude::Label>");
    if !is_label {
        return None;
    }
    find(slip.cell, |it| match it {
        Expr::Index(index) if is_in(slip.span, place(&index.index)) => {
            let base = slip.text(place(&index.expr));
            let label = slip.text(place(&index.index)).strip_suffix(".label")?;
            base.ends_with(".label_names").then(|| {
                let whole = place(it);
                edit(whole.start, whole.end, format!("{label}.label_name"))
            })
        }
        _ => None,
    })
    .map(|edit| {
        Answer::of(vec![edit]).why("an example has the name of its label, `None` without one")
    })
}

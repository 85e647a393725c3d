//! Numbers: of two types, of a type that is still open, sums and lists of a type that is not known.

use stratoscope_cell_syntax::Syntax;
use syn::{BinOp, Expr, ExprMethodCall, Lit, Local, Pat, UnOp};

use super::number_types::{Number, is_integer_call};
use super::tree::{find, find_local, is_in, name_of, place};
use super::{Answer, Slip, edit, insert};
use crate::{CellSpan, Edit};

const FLOAT_METHODS: [&str; 24] = [
    "abs", "acos", "asin", "atan", "atan2", "cbrt", "ceil", "clamp", "cos", "exp", "floor",
    "hypot", "ln", "log", "log10", "log2", "max", "min", "powf", "powi", "round", "sin", "sqrt",
    "tan",
];
const MORE_FLOAT_METHODS: [&str; 3] = ["tanh", "cosh", "sinh"];

pub(super) fn answer(slip: &Slip) -> Option<Answer> {
    match slip.code() {
        "E0283" | "E0282" | "E0284" => untyped_sum(slip).or_else(|| untyped_list(slip)),
        "E0689" | "E0599" => of_open_number(slip),
        "E0277" => mixed(slip).or_else(|| without_order(slip)),
        _ => None,
    }
}

/// `xs.iter().sum() / xs.len()`.
fn untyped_sum(slip: &Slip) -> Option<Answer> {
    let is_sum = |call: &ExprMethodCall| {
        (call.method == "sum" || call.method == "product") && call.turbofish.is_none()
    };
    let call = find(slip.cell, |it| match it {
        Expr::MethodCall(call) if is_sum(call) && touches(slip.span, call) => Some(call.clone()),
        _ => None,
    })?;
    let at = place(&call.method).end;
    let Some(of_type) = slip.element_of(&call.receiver) else {
        let method = &call.method;
        return Some(Answer::words(format!(
            "name the type: `{method}::<f64>()` for floats, `{method}::<i64>()` for whole numbers"
        )));
    };
    let mut edits = vec![insert(at, format!("::<{of_type}>"))];
    let whole = place(&call);
    // A mean: both numbers become floats.
    if let Some((operation, right)) = divided(slip, whole)
        && matches!(operation, BinOp::Div(_))
    {
        let is_length = is_integer_call(&right) || slip.number(&right) == Some(Number::Integer);
        if is_length {
            if !of_type.starts_with('f') {
                edits.push(insert(whole.end, " as f64"));
            }
            edits.push(insert(place(&right).end, " as f64"));
        } else if !of_type.starts_with('f') && slip.number(&right) == Some(Number::Float) {
            edits.push(insert(whole.end, " as f64"));
        }
    }
    Some(Answer::of(edits))
}

/// Whether rustc marks the method, or the `let` that its value is bound to.
fn touches(span: CellSpan, call: &ExprMethodCall) -> bool {
    let method = place(&call.method);
    is_in(span, place(call)) && span.end >= method.start || is_in(method, span)
}

/// The division whose left side ends with this place.
fn divided(slip: &Slip, left: CellSpan) -> Option<(BinOp, Expr)> {
    find(slip.cell, |it| match it {
        Expr::Binary(binary) if place(&binary.left) == left => {
            Some((binary.op, (*binary.right).clone()))
        }
        _ => None,
    })
}

/// `let roots = v.iter().map(…).collect();`
fn untyped_list(slip: &Slip) -> Option<Answer> {
    find_local(slip.cell, |local| {
        is_in(slip.span, place(local))
            .then(|| collected(local))
            .flatten()
    })
    .map(|edit| {
        Answer::of(vec![edit])
            .why("`collect` makes any kind of list, and the text does not say which")
    })
}

/// The type for a `collect` of the `let` around a place.
pub(in crate::check) fn list_around(cell: &Syntax, at: CellSpan) -> Option<Edit> {
    find_local(cell, |local| {
        is_in(at, place(local)).then(|| collected(local)).flatten()
    })
}

/// The type that the `collect` of an untyped `let` lacks.
fn collected(local: &Local) -> Option<Edit> {
    if matches!(local.pat, Pat::Type(_)) {
        return None;
    }
    let (mut value, mut is_tried) = (&*local.init.as_ref()?.expr, false);
    if let Expr::Try(inner) = value {
        (value, is_tried) = (&inner.expr, true);
    }
    match value {
        Expr::MethodCall(call) if call.method == "collect" && call.turbofish.is_none() => {
            let of_type = if is_tried {
                "Result<Vec<_>, _>"
            } else {
                "Vec<_>"
            };
            Some(insert(place(&call.method).end, format!("::<{of_type}>")))
        }
        _ => None,
    }
}

/// Whether a name at a place is a reference to a number: the parameter of a closure over `iter()`, or the variable of a loop over it.
pub(in crate::check) fn is_borrowed(cell: &Syntax, name: &str, at: CellSpan) -> bool {
    let is_name = |pattern: &Pat| matches!(pattern, Pat::Ident(it) if it.ident == name);
    let lends = |expression: &Expr| {
        let span = place(expression);
        let text = cell.text().get(span.start..span.end).unwrap_or_default();
        let owned = [".copied()", ".cloned()", ".into_iter()", ".map("];
        (text.contains(".iter()") || text.starts_with('&'))
            && !owned.iter().any(|it| text.contains(it))
    };
    let found = find(cell, |it| match it {
        Expr::MethodCall(call) if is_in(at, place(it)) => match call.args.first()? {
            Expr::Closure(closure) if closure.inputs.len() == 1 && is_name(&closure.inputs[0]) => {
                is_in(at, place(&closure.body)).then(|| lends(&call.receiver))
            }
            _ => None,
        },
        Expr::ForLoop(pass) if is_name(&pass.pat) && is_in(at, place(&pass.body)) => {
            Some(lends(&pass.expr))
        }
        _ => None,
    });
    found.unwrap_or(false)
}

/// `2.0.sqrt()`, `v.sqrt()` of a number whose type is still open, and `n.sqrt()` of an integer.
fn of_open_number(slip: &Slip) -> Option<Answer> {
    let name = slip.text(slip.span).to_owned();
    let is_known =
        FLOAT_METHODS.contains(&name.as_str()) || MORE_FLOAT_METHODS.contains(&name.as_str());
    let is_whole = name == "pow" || name == "abs";
    if !is_known && !is_whole {
        return None;
    }
    let call = find(slip.cell, |it| match it {
        Expr::MethodCall(call) if place(&call.method) == slip.span => Some(call.clone()),
        _ => None,
    })?;
    let message = slip.message();
    let is_open = message.contains("{float}") || message.contains("ambiguous numeric type");
    let receiver = slip.text(place(&call.receiver)).trim().to_owned();
    let operands = call.args.iter().map(|it| slip.text(place(it)));
    let operands: Vec<&str> = operands.collect();
    let whole = place(&call);
    if !is_open {
        return of_an_integer(slip, &receiver, place(&call.receiver));
    }
    let is_integer = message.contains("{integer}");
    let inner = receiver
        .strip_prefix('(')
        .and_then(|it| it.strip_suffix(')'))
        .filter(|it| !it.contains(['(', ')']))
        .unwrap_or(&receiver);
    let value = match (message.contains("`&"), is_integer && !is_whole) {
        (true, _) => format!("*{inner}"),
        (_, true) => match inner.parse::<i64>() {
            Ok(_) => format!("{inner}.0"),
            Err(_) => format!("{inner} as f64"),
        },
        _ => inner.to_owned(),
    };
    let of_type = if is_integer && is_whole { "i32" } else { "f64" };
    let values: Vec<&str> = [value.as_str()].into_iter().chain(operands).collect();
    let written = format!("{of_type}::{name}({})", values.join(", "));
    let mut edits = vec![edit(whole.start, whole.end, written)];
    edits.extend(list_around(slip.cell, whole));
    Some(Answer::of(edits).why(format!(
        "a number without a type of its own has no methods yet; `{of_type}::{name}` gives it one"
    )))
}

/// `n.sqrt()` of a whole number.
fn of_an_integer(slip: &Slip, receiver: &str, at: CellSpan) -> Option<Answer> {
    let message = slip.message();
    let types = ["`i32`", "`i64`", "`u32`", "`u64`", "`usize`", "`u8`"];
    let is_number = slip.code() == "E0599" && types.iter().any(|it| message.contains(it));
    let is_reference = message.contains("`&");
    if !is_number || is_reference {
        return None;
    }
    let written = format!("({receiver} as f64)");
    Some(
        Answer::of(vec![edit(at.start, at.end, written)])
            .why("whole numbers have no such method: floats have"),
    )
}

/// Numbers of two types in one operation.
fn mixed(slip: &Slip) -> Option<Answer> {
    let message = slip.message();
    let is_mixed = ["cannot ", "can't compare "]
        .iter()
        .any(|it| message.starts_with(it));
    if !is_mixed {
        return None;
    }
    let binary = find(slip.cell, |it| match it {
        Expr::Binary(binary) if operator(&binary.op) == slip.span => Some(binary.clone()),
        _ => None,
    })?;
    let (left, right) = slip.sides(&binary)?;
    let (whole, is_left) = match (left, right) {
        (Number::Integer, Number::Float) => (&*binary.left, true),
        (Number::Float, Number::Integer) => (&*binary.right, false),
        _ => return None,
    };
    let is_assigned = matches!(
        binary.op,
        BinOp::AddAssign(_) | BinOp::SubAssign(_) | BinOp::MulAssign(_) | BinOp::DivAssign(_)
    );
    let span = place(whole);
    let is_assigned = is_assigned || is_assigned_to_itself(slip, whole);
    if let Some(edit) = as_float_literal(whole) {
        return Some(Answer::of(vec![edit]));
    }
    // A variable that begins as `0` is to be a float.
    if let Some(name) = name_of(whole)
        && let Some(bound) = slip.bound(&name, span.start)
        && (is_assigned && is_left || slip.uses(&name) == 1)
        && bound.of_type.is_none()
        && let Some(value) = &bound.value
        && let Some(edit) = as_float_literal(value)
    {
        let at = place(value);
        let why = format!(
            "`{name}` is an integer, because it begins as `{}`",
            slip.text(at)
        );
        let mutable = bound.without_mut.filter(|_| is_assigned);
        let mutable = mutable.map(|at| insert(at, "mut "));
        return Some(Answer::of(mutable.into_iter().chain([edit]).collect()).why(why));
    }
    if is_assigned && is_left {
        return None;
    }
    // A borrowed number is read first.
    let is_reference = message
        .split('`')
        .skip(1)
        .step_by(2)
        .any(|it| it.starts_with("&") && !it.contains('f'));
    let text = slip.text(span);
    // The type of the other side.
    let mut quoted = message.split('`').skip(1).step_by(2);
    let is_single = quoted.any(|it| it.trim_start_matches('&') == "f32");
    let float = if is_single { "f32" } else { "f64" };
    let written = match whole {
        _ if is_reference => format!("(*{text} as {float})"),
        Expr::Binary(_) | Expr::Unary(_) | Expr::Range(_) => format!("(({text}) as {float})"),
        // `a as f64 < b` would begin a list of types.
        _ if is_left => format!("({text} as {float})"),
        _ => format!("{text} as {float}"),
    };
    Some(
        Answer::of(vec![edit(span.start, span.end, written)])
            .why("Rust does not convert numbers by itself"),
    )
}

fn operator(op: &BinOp) -> CellSpan {
    place(op)
}

/// Whether a variable gets the result of the operation that it is a part of: `sum = sum + x`.
fn is_assigned_to_itself(slip: &Slip, part: &Expr) -> bool {
    let (name, span) = (name_of(part), place(part));
    let found = find(slip.cell, |it| match it {
        Expr::Assign(assign) if is_in(span, place(&assign.right)) => {
            (name.is_some() && name_of(&assign.left) == name).then_some(())
        }
        _ => None,
    });
    found.is_some()
}

/// `1.0` in place of the literal `1`.
fn as_float_literal(expression: &Expr) -> Option<Edit> {
    let literal = match expression {
        Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => &*unary.expr,
        other => other,
    };
    match literal {
        Expr::Lit(it) => match &it.lit {
            Lit::Int(number)
                if number.suffix().is_empty() && !number.to_string().starts_with("0x") =>
            {
                Some(insert(place(literal).end, ".0"))
            }
            _ => None,
        },
        _ => None,
    }
}

/// `v.sort()` and `v.iter().max()` of floats.
fn without_order(slip: &Slip) -> Option<Answer> {
    let message = slip.message();
    let is_float = ["f64", "f32", "{float}"]
        .iter()
        .any(|it| message.contains(it));
    if !is_float
        || !message.contains(": Ord` is not satisfied") && !message.contains(": std::cmp::Ord`")
    {
        return None;
    }
    let name = slip.text(slip.span).to_owned();
    let call = find(slip.cell, |it| match it {
        Expr::MethodCall(call) if place(&call.method) == slip.span => Some(call.clone()),
        _ => None,
    })?;
    let (receiver, whole) = (slip.text(place(&call.receiver)).to_owned(), place(&call));
    let why = "floats are not in a full order, because of NaN; `total_cmp` is one";
    let written = match name.as_str() {
        "sort" | "sort_unstable" => format!("{receiver}.{name}_by(f64::total_cmp)"),
        "max" | "min" => {
            let copied = if receiver.ends_with(".iter()") {
                ".copied()"
            } else {
                ""
            };
            format!("{receiver}{copied}.reduce(f64::{name})")
        }
        _ => return None,
    };
    let title = format!("write `{written}`");
    let mut answer = Answer::of(vec![edit(whole.start, whole.end, written)])
        .titled(title.clone())
        .why(why);
    if name.starts_with("sort")
        && let Some(name) = name_of(&call.receiver)
        && let Some(at) = slip.bound(&name, whole.start).and_then(|it| it.without_mut)
    {
        answer.edits.push(insert(at, "mut "));
        answer.title = Some(format!(
            "{title}, and `let mut {name}`, since sorting changes it"
        ));
    }
    Some(answer)
}

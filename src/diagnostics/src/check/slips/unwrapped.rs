//! Values that are not taken out yet, or not yet what they are used as: a `Result` without its `?`, all epochs in place of the last,
//! an integer as an index, an `if` without its `else`.

use syn::Expr;

use super::tree::{find, is_in, name_of, place};
use super::{Answer, CellContext, Slip, edit, insert};
use crate::{CellSpan, Diagnostic};
use stratoscope_cell_syntax::Syntax;
use stratoscope_render::text;

/// A `Result` where an argument of a call of ours takes a value.
pub(in crate::check) fn in_a_call(
    cell: &Syntax,
    found: &Diagnostic,
    span: CellSpan,
    context: &CellContext,
) -> Option<Diagnostic> {
    let slip = Slip {
        cell,
        found,
        span,
        context,
    };
    slip.diagnostic(without_mark(&slip)?)
}

pub(super) fn answer(slip: &Slip) -> Option<Answer> {
    match slip.code() {
        "E0308" => last_epoch(slip).or_else(|| without_mark(slip)),
        "E0277" => index(slip).or_else(|| without_mark(slip)),
        "E0317" => without_else(slip),
        "E0284" | "E0283" | "E0282" => parsed(slip),
        "E0608" => parts(slip),
        "E0597" | "E0505" | "E0373" => thread(slip),
        _ => None,
    }
}

/// Whether a number is wanted where a list of numbers stands, of which one is meant.
pub(in crate::check) fn is_number_of_a_list(found: &Diagnostic) -> bool {
    let mut labels = found.labels.iter();
    labels.any(|it| it.text == "expected `f64`, found `Vec<f64>`")
}

/// `let loss: f64 = history["loss"];`
fn last_epoch(slip: &Slip) -> Option<Answer> {
    let is_index = find(slip.cell, |it| {
        (matches!(it, Expr::Index(_)) && place(it) == slip.span).then_some(())
    });
    (is_number_of_a_list(slip.found) && is_index.is_some()).then(|| {
        Answer::of(vec![
            insert(slip.span.start, "*"),
            insert(slip.span.end, ".last().expect(\"an epoch\")"),
        ])
        .why("a history has a value for each epoch; the last one is that of the last epoch")
    })
}

/// `let data = Dataset::csv("a.csv");`, `let n = "16".parse();`, and then a use of what is a `Result`.
fn without_mark(slip: &Slip) -> Option<Answer> {
    let labels = slip.found.labels.iter().map(|it| it.text.as_str());
    let words: Vec<&str> = labels.chain([slip.message()]).collect();
    if !words.iter().any(|it| it.contains("Result<")) {
        return None;
    }
    let name = find(slip.cell, |it| {
        let name = name_of(it)?;
        (place(it) == slip.span).then_some(name)
    });
    let operand = first_operand(slip);
    if name.is_none()
        && let Some((at, text)) = &operand
        && text.ends_with(')')
    {
        return Some(
            Answer::of(vec![insert(at.end, "?")])
                .why("`?` takes the value out of a `Result`, or ends the cell with its error")
                .instead(format!(
                    "`{}` returns a `Result`: it lacks its `?`",
                    text::excerpt(text, 60)
                )),
        );
    }
    let name = name.or_else(|| receiver_of(slip));
    let name = name.or_else(|| operand.map(|(_, text)| text))?;
    let bound = slip.bound(&name, slip.span.start)?;
    let (value, at) = (bound.value?, bound.value_span?);
    if bound.of_type.is_some() {
        return None;
    }
    let mut edits = vec![insert(at.end, "?")];
    match &value {
        Expr::MethodCall(call) if call.method == "parse" => {
            if call.turbofish.is_none() {
                let is_float = slip.text(place(&call.receiver)).contains('.');
                let number = if is_float { "::<f64>" } else { "::<usize>" };
                edits.insert(0, insert(place(&call.method).end, number));
            }
        }
        Expr::Call(_) | Expr::MethodCall(_) | Expr::Macro(_) => {}
        _ => return None,
    }
    Some(
        Answer::of(edits)
            .why("`?` takes the value out of a `Result`, or ends the cell with its error")
            .instead(format!("`{name}` is a `Result`: its `let` lacks the `?`")),
    )
}

/// The model or the strategy of a macro of ours, where rustc marks the macro or the operand: with its place.
fn first_operand(slip: &Slip) -> Option<(CellSpan, String)> {
    const WORDS: [&str; 2] = ["is not a", " found for enum `"];
    const CALLS: [&str; 5] = ["scope!", "compile!", "fit!", "evaluate!", "start!"];
    let message = slip.message();
    let text = slip.cell.text();
    if !WORDS.iter().any(|it| message.contains(it)) {
        return None;
    }
    let line = text[..slip.span.start]
        .rfind(['\n', ';'])
        .map_or(0, |at| at + 1);
    let end = slip.span.end.max(slip.span.start + 1).min(text.len());
    let here = text.get(line..end)?;
    let at = CALLS.iter().filter_map(|it| here.rfind(it)).max()? + line;
    let open = text[at..].find(['(', '{']).map(|it| at + it + 1)?;
    // To the comma outside of all brackets.
    let mut depth = 0_usize;
    let length = text[open..].find(|it: char| {
        match it {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth > 0 => depth -= 1,
            _ => return depth == 0 && matches!(it, ',' | ')'),
        }
        false
    })?;
    let whole = text.get(open..open + length)?;
    let operand = whole.trim().trim_start_matches('&');
    let start = open + whole.find(operand)?;
    let place = CellSpan {
        start,
        end: start + operand.len(),
    };
    let is_expression = operand.starts_with(char::is_alphabetic) && !operand.contains(['{', ';']);
    is_expression.then(|| (place, operand.to_owned()))
}

/// The variable whose method, field or index a `Result` does not have: `reviews` of `reviews.len()`. A method that is none of
/// what is in the `Result` either is another mistake.
fn receiver_of(slip: &Slip) -> Option<String> {
    let is_of_value = slip
        .found
        .why
        .iter()
        .any(|it| it.contains(" exists on the type `"));
    find(slip.cell, |it| match it {
        Expr::MethodCall(call) if is_of_value && place(&call.method) == slip.span => {
            name_of(&call.receiver)
        }
        Expr::Field(field) if slip.code() == "E0609" && place(&field.member) == slip.span => {
            name_of(&field.base)
        }
        Expr::Index(index) if slip.code() == "E0608" && is_in(slip.span, place(it)) => {
            name_of(&index.expr)
        }
        _ => None,
    })
}

/// `let n = "12".parse();`, of which nothing says what it makes.
fn parsed(slip: &Slip) -> Option<Answer> {
    let statements = slip.cell.statements()?.iter().map(place);
    let around = statements.into_iter().find(|it| is_in(slip.span, *it))?;
    let (at, number, is_tried) = find(slip.cell, |it| {
        let (call, is_tried) = match it {
            Expr::Try(tried) => (&*tried.expr, true),
            _ => (it, false),
        };
        let Expr::MethodCall(call) = call else {
            return None;
        };
        let is_meant = call.method == "parse" && call.turbofish.is_none();
        let receiver = slip.text(place(&call.receiver));
        let number = if receiver.contains('.') && receiver.starts_with('"') {
            "::<f64>"
        } else {
            "::<i64>"
        };
        (is_meant && is_in(place(it), around)).then(|| (place(&call.method).end, number, is_tried))
    })?;
    let end = slip.cell.text()[at..].find(')').map(|it| at + it + 1)?;
    let has_mark = is_tried || slip.cell.text()[end..].starts_with(['?', '.']);
    let mut edits = vec![insert(at, number)];
    if !has_mark {
        edits.push(insert(end, "?"));
    }
    Some(
        Answer::of(edits)
            .why("`parse` makes any type of number, and the text does not say which")
            .instead("the type that `parse` makes is not known"),
    )
}

/// `let words = text.split(' '); words[1]`: parts are an iterator until they are collected.
fn parts(slip: &Slip) -> Option<Answer> {
    let is_split = slip
        .message()
        .contains("cannot index into a value of type `")
        && slip.message().contains("Split");
    if !is_split {
        return None;
    }
    let name = find(slip.cell, |it| match it {
        Expr::Index(index) if is_in(slip.span, place(it)) => name_of(&index.expr),
        _ => None,
    })?;
    let at = slip.bound(&name, slip.span.start)?.value_span?;
    Some(
        Answer::of(vec![insert(at.end, ".map(str::to_owned).collect::<Vec<String>>()")])
            .why("`split` yields one part after the other; `collect` makes a list of them, which has an index")
            .instead("the parts of a text are no list yet"),
    )
}

/// `scores[i]` with an `i32`.
fn index(slip: &Slip) -> Option<Answer> {
    const INTEGERS: [&str; 9] = [
        "i8", "i16", "i32", "i64", "isize", "u8", "u16", "u32", "u64",
    ];
    let (_, of_type) = slip.message().split_once(" cannot be indexed by `")?;
    let of_type = of_type.trim_end_matches('`').trim_start_matches('&');
    if !slip.message().starts_with("the type `[") || !INTEGERS.contains(&of_type) {
        return None;
    }
    let text = slip.text(slip.span);
    let is_simple = text
        .chars()
        .all(|it| it.is_alphanumeric() || "_.()".contains(it));
    let written = if is_simple {
        format!("{text} as usize")
    } else {
        format!("({text}) as usize")
    };
    Some(
        Answer::of(vec![edit(slip.span.start, slip.span.end, written)])
            .why("an index is a `usize`")
            .instead(format!(
                "a list is indexed by a `usize`, and this is an `{of_type}`"
            )),
    )
}

/// `let size = if n > 50 { "big" };`
fn without_else(slip: &Slip) -> Option<Answer> {
    let whole = text::excerpt(slip.text(slip.span), 60);
    Some(
        Answer::words(format!("say what it is otherwise: `{whole} else {{ … }}`"))
            .why("an `if` that is a value has one for both cases")
            .instead("this `if` is a value, and has none where its condition does not hold"),
    )
}

/// `std::thread::spawn(|| … scores …)`: the closure takes a copy with it.
fn thread(slip: &Slip) -> Option<Answer> {
    let labels = slip.found.labels.iter().map(|it| it.text.as_str());
    let is_borrowed = labels
        .chain([slip.message()])
        .any(|it| it.contains("borrowed for `'static`") || it.contains("closure may outlive"));
    if !is_borrowed {
        return None;
    }
    let (closure, name) = find(slip.cell, |it| {
        let Expr::Closure(closure) = it else {
            return None;
        };
        let at = place(it);
        let named = slip.message().split('`').nth(1).unwrap_or_default();
        let is_meant = is_in(slip.span, at) && closure.capture.is_none();
        (is_meant && !named.is_empty()).then(|| (at, named.to_owned()))
    })?;
    let is_name = name.chars().all(|it| it.is_alphanumeric() || it == '_');
    is_name.then(|| {
        let copied = format!("{{ let {name} = {name}.clone(); move ");
        Answer::of(vec![
            insert(closure.start, copied),
            insert(closure.end, " }"),
        ])
        .why(
            "a thread may live longer than the cell: with `move` it owns what it uses, here a copy",
        )
    })
}

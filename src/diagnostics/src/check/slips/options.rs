//! An `Option` that is compared with a value: `p.class == 1`, `Some(p.class) != data[0].class()`, `example.label == "pos"`.

use syn::{BinOp, Expr};

use super::tree::{find, is_in, place};
use super::{Answer, Slip, edit, insert};
use crate::{CellSpan, Edit};
use stratoscope_cell_syntax::Syntax;

/// The two sides of a comparison, with their types as rustc names them.
struct Sides<'s> {
    left: (CellSpan, &'s str),
    right: (CellSpan, &'s str),
    /// The value in `Some(…)`, if a side is one.
    left_some: Option<CellSpan>,
    right_some: Option<CellSpan>,
}

pub(super) fn answer(slip: &Slip) -> Option<Answer> {
    if slip.message().starts_with("a value of type `Vec<") {
        return collected(slip);
    }
    let (left, right) = types(slip)?;
    if ![&left, &right].iter().any(|it| inner(it).is_some()) {
        return None;
    }
    let (edits, why) = find(slip.cell, |it| {
        let Expr::Binary(binary) = it else {
            return None;
        };
        let is_comparison = matches!(
            binary.op,
            BinOp::Eq(_) | BinOp::Ne(_) | BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_)
        );
        if !is_comparison || !is_in(slip.span, place(it)) {
            return None;
        }
        let sides = Sides {
            left: (place(&binary.left), left.as_str()),
            right: (place(&binary.right), right.as_str()),
            left_some: in_some(&binary.left),
            right_some: in_some(&binary.right),
        };
        sides.compared(slip)
    })?;
    Some(Answer::of(edits).why(why).instead(format!(
        "{} is compared with {}",
        named(&left),
        named(&right)
    )))
}

/// `filter_map` for the `map` whose closure is nothing but what becomes the class of a prediction or an example.
pub(in crate::check) fn filtered(cell: &Syntax, body: CellSpan, written: &str) -> Option<Edit> {
    if !(written.ends_with(".class") || written.ends_with(".class()")) {
        return None;
    }
    find(cell, |it| {
        let Expr::MethodCall(call) = it else {
            return None;
        };
        let Some(Expr::Closure(closure)) = call.args.first() else {
            return None;
        };
        let is_meant = call.method == "map" && place(&closure.body) == body;
        let at = place(&call.method);
        is_meant.then(|| edit(at.start, at.end, "filter_map"))
    })
}

/// `rows.iter().map(|row| row.class).collect::<Vec<usize>>()`.
fn collected(slip: &Slip) -> Option<Answer> {
    let mut quoted = slip.message().split('`').skip(1).step_by(2);
    let (list, element) = (quoted.next()?, quoted.next()?);
    let wanted = list.strip_prefix("Vec<")?.strip_suffix('>')?;
    let element = inner(element)?;
    let of_label = match wanted {
        _ if !element.ends_with("Label") => None,
        "usize" => Some(("filter_map", ".class()")),
        "String" => Some(("filter_map", ".label_name.clone()")),
        _ => None,
    };
    if slip.code() != "E0277" || (element != wanted && of_label.is_none()) {
        return None;
    }
    let (name, body) = find(slip.cell, |it| {
        let Expr::MethodCall(collect) = it else {
            return None;
        };
        let Expr::MethodCall(call) = &*collect.receiver else {
            return None;
        };
        let is_here = collect.method == "collect" && is_in(slip.span, place(it));
        let body = match call.args.first() {
            Some(Expr::Closure(closure)) => Some(place(&closure.body)),
            _ => None,
        };
        (is_here && call.method == "map").then(|| (place(&call.method), body))
    })?;
    if let Some((method, written)) = of_label {
        let end = body?.end;
        slip.text(body?).strip_suffix(".label")?;
        return Some(
            Answer::of(vec![
                edit(name.start, name.end, method),
                edit(end - ".label".len(), end, written),
            ])
            .why(WHY_LABEL)
            .instead(format!(
                "the items are `Option<Label>`, and a list of `{wanted}` is wanted"
            )),
        );
    }
    Some(
        Answer::of(vec![edit(name.start, name.end, "filter_map")])
            .why("`filter_map` takes the values out of each `Some`, and leaves out what is `None`")
            .instead(format!(
                "the items are `Option<{wanted}>`, and a list of `{wanted}` is wanted"
            )),
    )
}

/// The types of the two sides: of ``expected `A`, found `B` `` or ``can't compare `A` with `B` ``.
fn types(slip: &Slip) -> Option<(String, String)> {
    let message = slip.message();
    let words = match slip.code() {
        "E0277" if message.starts_with("can't compare ") => message,
        "E0308" => {
            let mut labels = slip.found.labels.iter();
            labels
                .find(|it| it.text.starts_with("expected "))?
                .text
                .as_str()
        }
        _ => return None,
    };
    let (first, second) = words
        .split_once(", found ")
        .or_else(|| words.split_once(" with "))?;
    let first = first
        .trim_start_matches("expected ")
        .trim_start_matches("can't compare ");
    let of_type = |text: &str| text.trim().trim_matches('`').to_owned();
    Some((of_type(first), of_type(second)))
}

/// `usize` of `Option<usize>`.
fn inner(of_type: &str) -> Option<&str> {
    let bare = of_type.trim_start_matches('&');
    let bare = bare.strip_prefix("std::option::").unwrap_or(bare);
    bare.strip_prefix("Option<")?.strip_suffix('>')
}

/// A type in a sentence.
fn named(of_type: &str) -> String {
    match of_type {
        "integer" | "{integer}" => "an integer".to_owned(),
        "floating-point number" | "{float}" => "a float".to_owned(),
        other => format!("`{}`", without_paths(other)),
    }
}

/// `Option<Label>` of `std::option::Option<stratoscope::prelude::Label>`.
fn without_paths(of_type: &str) -> String {
    let separates = |it: char| "<>(), &".contains(it);
    let mut short = String::new();
    let mut rest = of_type;
    while !rest.is_empty() {
        let end = rest.find(separates).unwrap_or(rest.len());
        let (path, behind) = rest.split_at(end);
        short.push_str(path.rsplit("::").next().unwrap_or(path));
        let sign = behind.chars().next().map_or(0, char::len_utf8);
        short.push_str(&behind[..sign]);
        rest = &behind[sign..];
    }
    short
}

/// The value of `Some(value)`.
fn in_some(value: &Expr) -> Option<CellSpan> {
    let Expr::Call(call) = value else {
        return None;
    };
    let is_some = matches!(&*call.func, Expr::Path(path) if path.path.is_ident("Some"));
    is_some.then(|| call.args.first().map(place)).flatten()
}

const WHY: &str = "an `Option` is `Some(value)` or `None`, and is compared with another `Option`";
const WHY_LABEL: &str = "`class()` is the number of an example's class and `label_name` its name, in an `Option`: there may be no label";

impl Sides<'_> {
    fn compared(&self, slip: &Slip) -> Option<(Vec<Edit>, &'static str)> {
        let ((left, of_left), (right, of_right)) = (self.left, self.right);
        // A mismatch in `Some(…)` itself: what is in it is an `Option` already.
        if inner(of_right).is_some() && self.right_some == Some(slip.span) {
            let value = slip.text(slip.span);
            return Some((vec![edit(right.start, right.end, value)], WHY));
        }
        match (inner(of_left), inner(of_right)) {
            (Some(wrapped), Some(_)) if inner(wrapped).is_some() => {
                let value = slip.text(self.left_some?);
                Some((vec![edit(left.start, left.end, value)], WHY))
            }
            (Some(first), Some(second)) => {
                // A class and a label.
                let label = match (first.ends_with("Label"), second.ends_with("Label")) {
                    (true, false) => left,
                    (false, true) => right,
                    _ => return None,
                };
                Some((vec![class_of(slip, label)?], WHY_LABEL))
            }
            (Some(wrapped), None) => self.value_on_the_right(slip, wrapped),
            (None, Some(wrapped)) => self.value_on_the_left(slip, wrapped),
            (None, None) => None,
        }
    }

    fn value_on_the_right(&self, slip: &Slip, wrapped: &str) -> Option<(Vec<Edit>, &'static str)> {
        let ((left, of_left), (right, of_right)) = (self.left, self.right);
        let is_text = of_right.ends_with("str") || of_right.ends_with("String");
        let some = |open: &str| vec![insert(right.start, open), insert(right.end, ")")];
        if wrapped.ends_with("Label") && is_text {
            let mut edits = vec![edit(
                left.end - ".label".len(),
                left.end,
                ".label_name.as_deref()",
            )];
            slip.text(left).strip_suffix(".label")?;
            edits.extend(self.text_in_some(slip, right, of_right));
            return Some((edits, WHY_LABEL));
        }
        if wrapped.ends_with("Label") {
            let mut edits = vec![class_of(slip, left)?];
            edits.extend(some("Some("));
            return Some((edits, WHY_LABEL));
        }
        if is_text {
            let mut edits = vec![insert(left.end, ".as_deref()")];
            edits.extend(self.text_in_some(slip, right, of_right));
            return Some((edits, WHY));
        }
        let open = if of_left.starts_with('&') {
            "&Some("
        } else {
            "Some("
        };
        Some((some(open), WHY))
    }

    fn value_on_the_left(&self, slip: &Slip, wrapped: &str) -> Option<(Vec<Edit>, &'static str)> {
        let ((left, of_left), (right, _)) = (self.left, self.right);
        let is_text = of_left.ends_with("str") || of_left.ends_with("String");
        let some = || vec![insert(left.start, "Some("), insert(left.end, ")")];
        if wrapped.ends_with("Label") {
            let is_label = slip.text(right).ends_with(".label");
            let start = right.end - ".label".len();
            return match (is_label, is_text) {
                (true, true) => {
                    let mut edits = self.text_in_some(slip, left, of_left);
                    edits.push(edit(start, right.end, ".label_name.as_deref()"));
                    Some((edits, WHY_LABEL))
                }
                (true, false) => {
                    let mut edits = some();
                    edits.push(edit(start, right.end, ".class()"));
                    Some((edits, WHY_LABEL))
                }
                _ => None,
            };
        }
        if is_text {
            let mut edits = self.text_in_some(slip, left, of_left);
            edits.push(insert(right.end, ".as_deref()"));
            return Some((edits, WHY));
        }
        // `p.class.unwrap() == example.class()`
        if let Some(option) = slip.text(left).strip_suffix(".unwrap()") {
            return Some((vec![edit(left.start + option.len(), left.end, "")], WHY));
        }
        Some((some(), WHY))
    }

    /// `Some("pos")`, `Some(name.as_str())`.
    fn text_in_some(&self, slip: &Slip, side: CellSpan, of_type: &str) -> Vec<Edit> {
        let is_owned = of_type.ends_with("String");
        let close = if is_owned { ".as_str())" } else { ")" };
        let borrowed = slip.text(side).starts_with('&') && is_owned;
        let start = side.start + usize::from(borrowed);
        vec![edit(side.start, start, "Some("), insert(side.end, close)]
    }
}

/// `.class()` in place of `.label`.
fn class_of(slip: &Slip, side: CellSpan) -> Option<Edit> {
    slip.text(side).strip_suffix(".label")?;
    Some(edit(side.end - ".label".len(), side.end, ".class()"))
}

//! The share of right answers, counted by hand: `np.mean(np.argmax(p, axis = 1) == labels)`, `(pred == y).float().mean()`,
//! `(pred == y).sum() / len(y)`.

use stratoscope_cell_syntax::Syntax;
use stratoscope_render::text;
use syn::{BinOp, Expr};

use super::super::{CellContext, fixed, slips};
use super::fill::data_set;
use super::receivers::type_of_name;
use crate::rules::NameOfAnotherLibrary;
use crate::{CellSpan, Diagnostic, Edit, Place, Rule};

/// Modules whose functions take arrays.
const MODULES: [&str; 6] = ["np", "numpy", "jnp", "tf", "torch", "K"];
/// Methods that make an array or a number of another type of what they are called on.
const CONVERSIONS: [&str; 16] = [
    "all", "astype", "cpu", "detach", "double", "flatten", "float", "int", "item", "long", "numpy",
    "reshape", "squeeze", "to", "tolist", "type",
];

/// What is compared.
struct Compared<'e> {
    predictions: &'e Expr,
    labels: &'e Expr,
}

/// SC0130 for a share of right answers that an error of rustc's stands in.
pub(super) fn answer(cell: &Syntax, span: CellSpan, context: &CellContext) -> Option<Diagnostic> {
    let text = cell.text();
    let found = slips::outermost(cell, |it| {
        let whole = slips::place(it);
        if !(whole.start <= span.start && span.end <= whole.end) {
            return None;
        }
        let share = share(it, &|name| is_predictions(cell, name, context))?;
        let parts = (slips::place(share.predictions), slips::place(share.labels));
        Some((whole, parts))
    });
    let (whole, (predictions, labels)) = found?;
    let part = |span: CellSpan| text.get(span.start..span.end).unwrap_or_default();
    let (predictions, labels) = (part(predictions), part(labels));
    let known = predicted(cell, predictions, context);
    let data = data_set(labels);
    let is_data = type_of_name(cell, data, context).is_some_and(|it| it.ends_with("Dataset"));
    let data = if is_data { data } else { "data" };
    let written = format!(
        "{}.assess(&{data})?.accuracy().value",
        known.as_deref().unwrap_or("predictions")
    );
    let place = Place::Span(whole);
    let edit = Edit {
        place: place.clone(),
        replacement: written.clone(),
    };
    let edits = match known {
        Some(_) if is_data => fixed::tried(cell, vec![edit], context),
        _ => Vec::new(),
    };
    let facts = NameOfAnotherLibrary {
        given: text::excerpt(part(whole), 60),
        written: Some(text::excerpt(&written, 100)),
        place,
        reason: "what `predict` returns is compared with the labels of its data set by `assess`: `accuracy()` has an interval; \
                 `evaluate!(model, data)?` counts the metrics of `compile!`"
            .to_owned(),
        edits,
        label: "the share of right answers",
    };
    Some(facts.diagnostic())
}

/// Whether a variable has predictions.
fn is_predictions(cell: &Syntax, name: &str, context: &CellContext) -> bool {
    let of_type = type_of_name(cell, name, context);
    of_type.is_some_and(|it| it.ends_with("Predictions"))
}

/// The predictions as they are written here, where their type is known: a variable, or `model.predict(&data)?`.
fn predicted(cell: &Syntax, value: &str, context: &CellContext) -> Option<String> {
    let value = value.trim_start_matches('&').trim();
    if is_predictions(cell, value, context) {
        return Some(value.to_owned());
    }
    let (model, _) = value.split_once(".predict(")?;
    let of_type = type_of_name(cell, model, context)?;
    let is_model = ["Model", "ModelOf<", "Sequential", "BertFor"]
        .iter()
        .any(|it| of_type.contains(it));
    let mark = if value.ends_with('?') { "" } else { "?" };
    is_model.then(|| format!("{value}{mark}"))
}

/// The share of right answers, as a mean or as a sum that is divided.
fn share<'e>(value: &'e Expr, is_known: &dyn Fn(&str) -> bool) -> Option<Compared<'e>> {
    match value {
        Expr::MethodCall(call) => {
            let name = call.method.to_string();
            match (name.as_str(), is_module(&call.receiver)) {
                ("mean" | "average" | "reduce_mean", true) => {
                    compared(call.args.first()?, is_known)
                }
                ("mean", false) => compared(&call.receiver, is_known),
                (it, false) if CONVERSIONS.contains(&it) => share(&call.receiver, is_known),
                _ => None,
            }
        }
        Expr::Call(call) if is_named(&call.func, &["accuracy_score"]) => {
            let (first, second) = (call.args.first()?, call.args.iter().nth(1)?);
            let of = |predictions: &'e Expr, labels: &'e Expr| {
                let predictions = classes(predictions, is_known)?;
                Some(Compared {
                    predictions,
                    labels,
                })
            };
            of(second, first).or_else(|| of(first, second))
        }
        Expr::Call(call) if is_named(&call.func, &["mean", "average"]) => {
            compared(call.args.first()?, is_known)
        }
        Expr::Binary(division) if matches!(division.op, BinOp::Div(_)) => {
            count(&division.left, is_known)
        }
        _ => share(inner(value)?, is_known),
    }
}

/// The number of right answers.
fn count<'e>(value: &'e Expr, is_known: &dyn Fn(&str) -> bool) -> Option<Compared<'e>> {
    match value {
        Expr::MethodCall(call) => {
            let name = call.method.to_string();
            match (name.as_str(), is_module(&call.receiver)) {
                ("sum" | "count_nonzero" | "reduce_sum", true) => {
                    compared(call.args.first()?, is_known)
                }
                ("sum", false) => compared(&call.receiver, is_known),
                (it, false) if CONVERSIONS.contains(&it) => count(&call.receiver, is_known),
                _ => None,
            }
        }
        Expr::Call(call) if is_named(&call.func, &["sum"]) => {
            compared(call.args.first()?, is_known)
        }
        _ => count(inner(value)?, is_known),
    }
}

/// `predictions == labels`, in either order.
fn compared<'e>(value: &'e Expr, is_known: &dyn Fn(&str) -> bool) -> Option<Compared<'e>> {
    let sides = |left: &'e Expr, right: &'e Expr| {
        let of = |predictions: &'e Expr, labels: &'e Expr| {
            let predictions = classes(predictions, is_known)?;
            Some(Compared {
                predictions,
                labels,
            })
        };
        of(left, right).or_else(|| of(right, left))
    };
    match value {
        Expr::Binary(binary) if matches!(binary.op, BinOp::Eq(_)) => {
            sides(&binary.left, &binary.right)
        }
        Expr::MethodCall(call) => {
            let name = call.method.to_string();
            let (first, second) = (call.args.first(), call.args.iter().nth(1));
            match (name.as_str(), is_module(&call.receiver)) {
                ("equal" | "eq", true) => sides(first?, second?),
                ("eq", false) => sides(&call.receiver, first?),
                ("cast" | "array" | "asarray", true) => compared(first?, is_known),
                (it, false) if CONVERSIONS.contains(&it) => compared(&call.receiver, is_known),
                _ => None,
            }
        }
        _ => compared(inner(value)?, is_known),
    }
}

/// What classes are made of: `p` of `np.argmax(p, axis = 1)`, `p.argmax(1)`, `p > 0.5`, or predictions themselves.
fn classes<'e>(value: &'e Expr, is_known: &dyn Fn(&str) -> bool) -> Option<&'e Expr> {
    match value {
        Expr::MethodCall(call) => {
            let name = call.method.to_string();
            match (name.as_str(), is_module(&call.receiver)) {
                ("argmax" | "round" | "rint", true) => call.args.first(),
                ("argmax" | "round" | "labels", false) => Some(&call.receiver),
                ("predict", false) => Some(value),
                (it, false) if CONVERSIONS.contains(&it) => classes(&call.receiver, is_known),
                _ => None,
            }
        }
        Expr::Binary(binary) if matches!(binary.op, BinOp::Gt(_) | BinOp::Ge(_)) => {
            Some(without_brackets(&binary.left))
        }
        Expr::Field(field) => classes(&field.base, is_known),
        Expr::Path(path) => {
            let name = path.path.get_ident()?.to_string();
            let is_meant = is_known(&name) || name.contains("pred") || name.ends_with("hat");
            is_meant.then_some(value)
        }
        Expr::Try(tried) if classes(&tried.expr, is_known).is_some() => Some(value),
        _ => classes(inner(value)?, is_known),
    }
}

/// What stands in brackets, behind a `&` or before an `as`.
fn inner(value: &Expr) -> Option<&Expr> {
    match value {
        Expr::Paren(it) => Some(&it.expr),
        Expr::Group(it) => Some(&it.expr),
        Expr::Reference(it) => Some(&it.expr),
        Expr::Cast(it) => Some(&it.expr),
        _ => None,
    }
}

fn without_brackets(value: &Expr) -> &Expr {
    match value {
        Expr::Paren(it) => without_brackets(&it.expr),
        _ => value,
    }
}

fn is_module(value: &Expr) -> bool {
    is_named(value, &MODULES)
}

fn is_named(value: &Expr, names: &[&str]) -> bool {
    match value {
        Expr::Path(path) => {
            (path.path.get_ident()).is_some_and(|it| names.iter().any(|name| it == name))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::apply;

    fn written(cell: &str) -> Option<(String, Option<String>)> {
        let context = CellContext::with_variables([
            ("p", "stratoscope::prelude::Predictions"),
            ("dev", "stratoscope::prelude::Dataset"),
            ("net", "stratoscope::prelude::ModelOf<Layers>"),
        ]);
        let whole = CellSpan {
            start: cell.find(['p', 'n', '(']).unwrap_or(0).max(10),
            end: cell.find(['p', 'n', '(']).unwrap_or(0).max(10),
        };
        let found = Syntax::with(cell, |cell| answer(cell, whole, &context))?;
        let fixed = apply(cell, found.fixes.first()?);
        Some((found.message, fixed))
    }

    #[test]
    fn a_share_of_right_answers_is_that_of_an_assessment() {
        for value in [
            "np.mean(np.argmax(p, axis = 1) == dev.labels)",
            "(p.argmax(1) == dev.labels).mean()",
            "(p == dev.labels).float().mean().item()",
            "np.mean(dev.labels == p.labels())",
            "tf.reduce_mean(tf.cast(tf.equal(tf.argmax(p, 1), dev.labels), tf.float32))",
            "(p.argmax(1) == dev[\"label\"]).sum().item() / len(dev)",
            "np.sum(np.argmax(p, axis = -1) == dev.y) / len(dev.y)",
            "torch.mean((p.argmax(1).eq(dev.labels)).float())",
            "accuracy_score(dev.labels, p)",
            "accuracy_score(p.argmax(1), dev.labels)",
        ] {
            let cell = format!("let acc = {value};");
            let (message, fixed) = written(&cell).expect("a share");
            assert!(
                message.contains(" is written `p.assess(&dev)?.accuracy().value`"),
                "{message}"
            );
            let expected = "let acc = p.assess(&dev)?.accuracy().value;";
            assert_eq!(fixed.as_deref(), Some(expected), "{value}");
        }
        let (_, fixed) =
            written("let acc = np.mean(np.argmax(net.predict(&dev), 1) == dev.labels);")
                .expect("a share");
        let expected = "let acc = net.predict(&dev)?.assess(&dev)?.accuracy().value;";
        assert_eq!(fixed.as_deref(), Some(expected));
    }

    #[test]
    fn without_the_data_set_it_is_shown_in_words() {
        for value in [
            "np.mean(np.argmax(logits, axis = 1) == labels)",
            "(y_pred == y_test).mean()",
            "(np.array(preds) == y).mean()",
        ] {
            let found = written(&format!("let acc = {value};"));
            if value.contains("array") {
                assert_eq!(found, None);
                continue;
            }
            let (message, fixed) = found.expect("a share");
            assert!(
                message.ends_with("use `predictions.assess(&data)?.accuracy().value`"),
                "{message}"
            );
            assert_eq!(fixed, None);
        }
        assert_eq!(written("let acc = np.mean(scores);"), None);
        assert_eq!(written("let n = (a == b) as usize / 2;"), None);
    }
}

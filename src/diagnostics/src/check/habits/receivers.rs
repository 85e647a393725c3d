//! What is known of the values that a usage is about: their types, and what they are called at their place.

use stratoscope_cell_syntax::Syntax;

use super::super::slips;
use super::CellContext;
use super::fill::Parts;
use super::usage::Usage;
use crate::rules::{A_COMMAND, A_NAME};

/// References of references: `let a = &b;`, `let b = &run;`.
const MAX_STEPS: usize = 4;

/// The type of a variable of the notebook or of the cell that stands before the dot or the index.
pub(super) fn type_of_receiver(
    cell: &Syntax,
    usage: &Usage,
    context: &CellContext,
) -> Option<String> {
    let receiver = usage.receiver?;
    let name = cell.text().get(receiver.start..receiver.end)?;
    if name.contains(".predict(") && name.ends_with(']') {
        return Some("Prediction".to_owned());
    }
    let bare = bare(name);
    let parameter = || slips::type_of_parameter(cell, bare, receiver);
    parameter().or_else(|| type_of_name(cell, bare, context))
}

/// The type of a name, through the references and copies of the cell: `let r = &run;`.
pub(super) fn type_of_name(cell: &Syntax, name: &str, context: &CellContext) -> Option<String> {
    let mut name = name.to_owned();
    for _ in 0..MAX_STEPS {
        if let Some(found) = slips::type_returned(cell, &name) {
            return Some(found);
        }
        // What the cell binds a name to hides the notebook's variable of that name.
        let value = slips::model_of(cell, &name);
        let other = value.map(|it| bare(it.trim_end_matches(".clone()")).to_owned());
        let is_name = |it: &String| it.chars().all(|it| it.is_alphanumeric() || it == '_');
        match other.filter(|it| is_name(it) && *it != name) {
            Some(other) => name = other,
            None => return context.variables.get(&name).cloned(),
        }
    }
    None
}

/// `run` of `(&run)` and `&mut run`.
fn bare(value: &str) -> &str {
    let inner = value.strip_prefix('(').and_then(|it| it.strip_suffix(')'));
    let value = inner.unwrap_or(value).trim_start_matches('&').trim();
    value.strip_prefix("mut ").unwrap_or(value).trim()
}

/// Which of two values are predictions: the second, as in scikit-learn, unless the types or the names say otherwise.
pub(super) fn predictions(usage: &Usage, context: &CellContext) -> usize {
    let is_data = |value: &String| {
        let name = value.trim_start_matches('&').split(['.', '[']).next();
        let of_type = name.and_then(|it| context.variables.get(it));
        of_type.is_some_and(|it| it.contains("Dataset"))
    };
    match usage.call.as_ref().map(|(values, _)| values.as_slice()) {
        Some([first, second]) if is_data(second) && !is_data(first) => 0,
        _ => 1,
    }
}

/// Whether two values in brackets are known as predictions and a data set.
pub(super) fn are_compared(parts: &Parts<'_>, context: &CellContext) -> bool {
    let Some(cell) = parts.cell else {
        return false;
    };
    let is_of = |template: &str, wanted: &str| {
        let name = parts.fill(template).unwrap_or_default();
        let of_type = type_of_name(cell, &name, context);
        of_type.is_some_and(|it| it.ends_with(wanted))
            || (wanted == "Predictions" && name.contains(".predict("))
    };
    is_of("{predictions}", "Predictions") && is_of("{data}", "Dataset")
}

/// The type of the numbers in a list: of the receiver, or of the variable that a function is called with.
pub(super) fn elements(
    of_type: Option<&str>,
    usage: &Usage,
    context: &CellContext,
) -> Option<String> {
    let of_value = usage.call.as_ref().and_then(|(values, _)| {
        let name = values.first()?.trim_start_matches('&');
        if let Some((base, _)) = name.split_once("[\"") {
            let of_type = context.variables.get(base)?;
            return of_type.ends_with("History").then_some("Vec<f64>");
        }
        context.variables.get(name).map(String::as_str)
    });
    number_in(of_type.or(of_value)?)
}

/// `f64` of `Vec<f64>` and `[f64; 3]`.
pub(in crate::check) fn number_in(of_type: &str) -> Option<String> {
    let inner = of_type.split_once(['<', '[']).map(|(_, inner)| inner)?;
    let inner = inner.split([';', '>', ']', ',']).next()?.trim();
    let is_number = inner.starts_with(['i', 'u', 'f']) && inner.len() < 6;
    is_number.then(|| inner.to_owned())
}

/// What a usage is called at its place: a name, an operator, an index, a line for the shell.
pub(super) fn label_of(usage: &Usage, template: &str) -> &'static str {
    let is_command = template.starts_with('!') && !template.contains('…');
    match usage.name.as_str() {
        _ if is_command => A_COMMAND,
        "for" => "a loop needs an iterator here",
        "(_, _)" => "one value, not two",
        name if name.starts_with("op ") => "this type has no such operator",
        "" if usage.call.is_some() => "a value, not a function",
        "" if usage.index.is_some() => "this type has no such index",
        _ => A_NAME,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_has_the_type_of_what_it_refers_to() {
        let context = CellContext::with_variables([
            ("run", "stratoscope::prelude::Run"),
            ("old", "stratoscope::prelude::History"),
        ]);
        for (cell, name, expected) in [
            ("let r = &run;", "r", Some("stratoscope::prelude::Run")),
            (
                "let a = &mut run; let b = &a;",
                "b",
                Some("stratoscope::prelude::Run"),
            ),
            (
                "let data = make_classification(8, 2, 2, 0)?; let d = data.clone();",
                "d",
                Some("Dataset"),
            ),
            ("let old = &run;", "old", Some("stratoscope::prelude::Run")),
            ("let a = &a;", "a", None),
            ("let a = run.step(1)?;", "a", None),
        ] {
            let found = Syntax::with(cell, |cell| type_of_name(cell, name, &context));
            assert_eq!(found.as_deref(), expected, "{cell}");
        }
    }

    #[test]
    fn a_label_says_what_stands_at_the_place() {
        let named = |name: &str| Usage {
            name: name.to_owned(),
            ..Usage::default()
        };
        let index = Usage {
            index: Some(("0".to_owned(), 3)),
            ..Usage::default()
        };
        for (usage, template, expected) in [
            (named("ls"), "!ls", A_COMMAND),
            (named("op >"), "x", "this type has no such operator"),
            (named("for"), "x", "a loop needs an iterator here"),
            (index, "x", "this type has no such index"),
            (named("shape"), "x", A_NAME),
        ] {
            assert_eq!(label_of(&usage, template), expected);
        }
    }

    #[test]
    fn brackets_and_references_are_left_out() {
        for value in ["run", "&run", "&mut run", "(&run)"] {
            assert_eq!(bare(value), "run");
        }
    }
}

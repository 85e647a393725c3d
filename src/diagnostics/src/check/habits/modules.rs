//! Paths that begin with a module of Python, and functions of numbers.

use super::fill::Parts;
use super::of_paths::{MODULES, Module};
use super::of_types::TYPES;
use super::usage::{Form, Usage, kind_of_literal};
use super::{finding, fixed, matching};
use crate::check::{CellContext, slips};
use crate::rules::{A_NAME, NameOfAnotherLibrary};
use crate::{Diagnostic, Edit, Place, Rule};
use stratoscope_render::text;

pub(super) fn module(name: &str) -> Option<&'static Module> {
    let mut modules = MODULES.iter().chain(TYPES);
    modules.find(|module| module.names.contains(&name))
}

/// Whether a name is one of a module that Python imports, or of a type that has another name here.
pub(in crate::check) fn is_module(name: &str) -> bool {
    module(name).is_some()
}

/// Whether a module of Python has the name of a crate, or of what a cell may import from one.
pub(super) fn is_a_crate_too(name: &str) -> bool {
    const CRATES: [&str; 8] = [
        "csv",
        "datasets",
        "glob",
        "itertools",
        "json",
        "logging",
        "time",
        "warnings",
    ];
    CRATES.contains(&name)
}

/// `np.mean(v)`, `tf.keras.layers.Dense(3)`.
pub(super) fn of_module(parts: &Parts<'_>, context: &CellContext) -> Option<Diagnostic> {
    let usage = parts.usage;
    let root = usage.path.first().unwrap_or(&usage.name);
    let module = module(root)?;
    if let Some(last) = without_path(parts, context) {
        return Some(last);
    }
    let alone = Usage {
        path: Vec::new(),
        ..usage.clone()
    };
    if let Some((form, habit)) = matching(module.habits, &alone, parts.text) {
        return Some(finding(parts, &form, habit.1, habit.2, Some(context)));
    }
    if let Some(found) = mathematics(parts, context) {
        return Some(found);
    }
    let form = alone.forms().into_iter().next()?;
    Some(finding(parts, &form, "", module.otherwise, Some(context)))
}

/// Names of the prelude that have no path here.
const PRELUDE: [&str; 30] = [
    "Adafactor",
    "Adam",
    "AdamW",
    "BinaryCrossentropy",
    "CategoricalCrossentropy",
    "CosineDecay",
    "Dense",
    "Dropout",
    "EarlyStopping",
    "Embedding",
    "ExponentialDecay",
    "Flatten",
    "GlobalAveragePooling1D",
    "Hinge",
    "Huber",
    "KlDivergence",
    "Lamb",
    "Lion",
    "LogCosh",
    "MeanAbsoluteError",
    "MeanSquaredError",
    "MirroredStrategy",
    "OneDeviceStrategy",
    "PolynomialDecay",
    "RMSprop",
    "SGD",
    "Sequential",
    "SparseCategoricalCrossentropy",
    "SquaredHinge",
    "TensorBoard",
];

/// `tf.keras.layers.Dense(3)`: a name of the prelude without its path.
fn without_path(parts: &Parts<'_>, context: &CellContext) -> Option<Diagnostic> {
    let usage = parts.usage;
    if usage.path.is_empty() || !PRELUDE.contains(&usage.name.as_str()) {
        return None;
    }
    let begin = usage.named.end - usage.name.len();
    let place = Place::span(usage.named.start, begin);
    let edit = Edit {
        place,
        replacement: String::new(),
    };
    let end = usage.call.as_ref().map_or(usage.named.end, |(_, end)| *end);
    let given = parts.text.get(usage.named.start..end)?;
    // A model without layers is no better than one with a path.
    let is_empty = usage
        .call
        .as_ref()
        .is_none_or(|(values, _)| values.is_empty());
    let fixed = if usage.name == "Sequential" && is_empty {
        Vec::new()
    } else {
        fixed::settled_by(parts.text, vec![edit], context)
    };
    let facts = NameOfAnotherLibrary {
        given: text::excerpt(given, 60),
        written: Some(text::excerpt(parts.text.get(begin..end)?, 60)),
        place: Place::Span(usage.named),
        reason: "names have no module here: all of them are in scope from the start".to_owned(),
        edits: fixed,
        label: A_NAME,
    };
    Some(facts.diagnostic())
}

/// `sqrt(2.0)`, `math.exp(x)`, `np.log(x)`: methods of floats.
pub(super) fn mathematics(parts: &Parts<'_>, context: &CellContext) -> Option<Diagnostic> {
    const METHODS: [(&str, &str); 18] = [
        ("acos", "acos"),
        ("asin", "asin"),
        ("atan", "atan"),
        ("ceil", "ceil"),
        ("cos", "cos"),
        ("cosh", "cosh"),
        ("exp", "exp"),
        ("fabs", "abs"),
        ("abs", "abs"),
        ("floor", "floor"),
        ("log", "ln"),
        ("log10", "log10"),
        ("log2", "log2"),
        ("round", "round"),
        ("sin", "sin"),
        ("sqrt", "sqrt"),
        ("tan", "tan"),
        ("tanh", "tanh"),
    ];
    let usage = parts.usage;
    let (values, end) = usage.call.as_ref()?;
    let [value] = values.as_slice() else {
        return None;
    };
    let (_, method) = METHODS.iter().find(|(name, _)| *name == usage.name)?;
    let written = match kind_of_literal(value) {
        Some("1.0") => format!("f64::{method}({{0}})"),
        Some("1") => format!("f64::{method}({value}.0)"),
        _ => match parts.cell {
            // The type of what an iterator lends may still be open.
            Some(cell) if slips::is_borrowed(cell, value, usage.named) => {
                format!("f64::{method}(*{{0}})")
            }
            _ => format!("{{0}}.{method}()"),
        },
    };
    let form = Form {
        text: String::new(),
        end: *end,
        takes_mark: true,
    };
    let reason = "functions of numbers are methods of floats";
    Some(finding(parts, &form, &written, reason, Some(context)))
}

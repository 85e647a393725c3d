//! Names of Keras, PyTorch, Hugging Face, NumPy, pandas and Python that rustc does not find, and what is written here: one
//! table by the type of the value, or for what stands alone.
//!
//! A row has forms, what is written in their place, and the reason. Forms are a field (`layers`), a call (`save(_)` with one
//! value, `save(..)` with any, `len("")` and `abs(1)` with one that is written out), an index (`history[_]`), an assignment
//! (`trainable = false`), `for` and `*`; the first row that has the most exact form of a usage is taken. What is written has
//! places for the parts of the usage (`fill.rs`). With `~` before it or `…` in it, it is shown and not put into the cell, as is
//! a magic. An empty text: there is nothing of the kind. Behind `in ` a form is what a `for` goes over, behind `data ` what stands
//! where `fit!` and others take the data set.

mod accuracy;
mod by_type;
mod fill;
mod keys;
mod loops;
mod modules;
mod of_data;
mod of_functions;
mod of_models;
mod of_paths;
mod of_predictions;
mod of_runs;
mod of_strategies;
mod of_tokenizers;
mod of_types;
mod of_values;
mod operators;
mod powers;
mod receivers;
mod usage;

use self::by_type::{functions_of, habits_of};
use self::fill::Parts;
use self::loops::{is_pair_of, iterated, loop_form, of_loop};
pub(super) use self::modules::is_module;
use self::modules::{mathematics, module, of_module};
pub(super) use self::receivers::number_in;
use self::receivers::{elements, label_of, predictions, type_of_name, type_of_receiver};
use self::usage::{Form, Usage};
use super::plain::Plain;
use super::{CellContext, fixed, slips};
use crate::rules::NameOfAnotherLibrary;
use crate::{CellSpan, Diagnostic, Edit, Place, Rule};
use stratoscope_cell_syntax::Syntax;
use stratoscope_render::text;

/// Forms, separated by ` | `; what is written in their place; why.
pub(super) struct Habit(&'static str, &'static str, &'static str);

/// What a name is looked for in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// The fields and methods of a value.
    Of(&'static [Habit]),
    /// What stands alone.
    Alone(&'static [Habit]),
    /// A module, or a type that a path begins with.
    Module,
}

impl PartialEq for Habit {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Habit {}

/// SC0130 in place of an error of rustc's at a name that has another one here.
pub(super) fn answer(
    cell: &Syntax,
    found: &Diagnostic,
    span: CellSpan,
    context: &CellContext,
) -> Option<Diagnostic> {
    let text = cell.text();
    let span = method_of(found).unwrap_or_else(|| name_of(text, found, span));
    if let Some(power) = powers::answer(cell, found, span, context) {
        return Some(power);
    }
    if let Some(share) = accuracy::answer(cell, span, context) {
        return Some(share);
    }
    let (subject, of_type) = subject(cell, found, span, context)?;
    let usage = match iterated(found, span) {
        _ if found.code == "E0369" => operators::at(cell, span)?,
        Some(receiver) => of_loop(text, receiver, &found.message),
        None if found.code == "E0618" => Usage::at(cell, span, false)?.of_called_value(),
        None => Usage::at(cell, span, subject == Subject::Module)?,
    };
    let known = of_type.clone();
    let known = known.or_else(|| type_of_receiver(cell, &usage, context));
    let usage = Usage {
        encoder: first_part(known.as_deref()),
        ..usage
    };
    let compared = operators::with_predictions(cell, &usage, context);
    if let Some((usage, form, written, reason)) = compared {
        let parts = Parts {
            text,
            cell: Some(cell),
            usage: &usage,
            elements: None,
            predictions: 0,
        };
        return Some(finding(&parts, &form, written, reason, Some(context)));
    }
    let of_type = of_type.or_else(|| type_of_receiver(cell, &usage, context));
    let elements = elements(of_type.as_deref(), &usage, context);
    let parts = Parts {
        text,
        cell: Some(cell),
        usage: &usage,
        elements,
        predictions: predictions(&usage, context),
    };
    let is_loop = iterated(found, span).is_some();
    let (form, habit) = match subject {
        Subject::Of(habits) if is_loop => (loop_form(&usage), row(habits, &usage.name)?),
        Subject::Of(habits) | Subject::Alone(habits) => match matching(habits, &usage, text) {
            Some(found) => found,
            None if matches!(subject, Subject::Alone(_)) => {
                return mathematics(&parts, context);
            }
            None => return None,
        },
        Subject::Module => return of_module(&parts, context),
    };
    // A method without its brackets is no unknown field.
    if found.code == "E0615" && form.text == "*" {
        return None;
    }
    // What is no name would be computed twice.
    let pairs = || operators::of_pairs(cell, span).filter(|_| habit.1 == "{it}.iter()");
    let template = if is_loop { pairs() } else { None };
    let template = template.unwrap_or(habit.1);
    let is_twice = template.matches("{it}").count() > 1 && is_computed(text, &usage);
    let written = if is_twice {
        let whole = template.replace("{it}", "it");
        match receiver_as_macro(text, &usage) {
            Some(called) => format!("{{ let it = {called}; {whole} }}"),
            None => format!("{{ let it = {{it}}; {whole} }}"),
        }
    } else {
        template.to_owned()
    };
    Some(finding(&parts, &form, &written, habit.2, Some(context)))
}

/// The beginning of the names of the variables of a model's first part.
fn first_part(of_type: Option<&str>) -> &'static str {
    match of_type {
        Some(it) if it.contains("Bert") || it.contains("Classification") => "bert",
        Some(it) if it.starts_with("stratoscope") && it.contains("<Layers>") => "dense",
        Some(it) if it.contains("ModelOf<") => "bert",
        _ => "dense",
    }
}

/// Whether the receiver is more than a name or a field.
fn is_computed(text: &str, usage: &Usage) -> bool {
    let receiver = usage.receiver.and_then(|it| text.get(it.start..it.end));
    receiver.is_some_and(|it| it.contains(['(', '!', '?']))
}

/// `evaluate!(net, rows)?` for the receiver `net.evaluate(&rows)?`.
fn receiver_as_macro(text: &str, usage: &Usage) -> Option<String> {
    let span = usage.receiver?;
    let called = text.get(span.start..span.end)?.trim_end_matches('?');
    let (model, rest) = called.split_once(".evaluate(")?;
    let data = rest.strip_suffix(')')?.trim_start_matches('&');
    let is_name = |it: &str| it.chars().all(|it| it.is_alphanumeric() || it == '_');
    (is_name(model) && is_name(data)).then(|| format!("evaluate!({model}, {data})?"))
}

/// SC0130 for a call of `print`, which the text shows: rustc knows a macro of that name.
pub(super) fn printed(text: &str, call: &Plain) -> Diagnostic {
    let values = call.operands.iter().map(|it| it.text.clone());
    let named = call.named.iter();
    let usage = Usage {
        name: call.name.clone(),
        named: call.name_span,
        call: Some((values.collect(), call.span.end)),
        keys: named
            .map(|it| (it.name.clone(), it.value.clone()))
            .collect(),
        ..Usage::default()
    };
    let parts = Parts {
        text,
        cell: None,
        usage: &usage,
        elements: None,
        predictions: 0,
    };
    let form = Form {
        text: String::new(),
        end: call.span.end,
        takes_mark: true,
    };
    let reason = "`println!` is a macro, with a text that has places for the values";
    finding(&parts, &form, "{print}", reason, None)
}

/// The name of a type that is called as a function, where rustc marks the whole call.
fn name_of(text: &str, found: &Diagnostic, span: CellSpan) -> CellSpan {
    let name = text.get(span.start..span.end).unwrap_or_default();
    let name = name.split('(').next().unwrap_or_default().trim_end();
    match found.code.as_str() {
        "E0423" => CellSpan {
            start: span.start,
            end: span.start + name.len(),
        },
        // The path of a function, of which the last name counts.
        "E0061" => CellSpan {
            start: span.start + name.rfind("::").map_or(0, |at| at + "::".len()),
            end: span.end,
        },
        _ => span,
    }
}

/// The name of the method whose operands are wrong: rustc marks these first.
fn method_of(found: &Diagnostic) -> Option<CellSpan> {
    let mut labels = found.labels.iter();
    let named = labels.find(|it| it.text.starts_with("arguments to this method"))?;
    match named.place {
        Place::Span(span) if found.code == "E0308" => Some(span),
        _ => None,
    }
}

/// The table for an error of rustc's, and the type that it names.
fn subject(
    cell: &Syntax,
    found: &Diagnostic,
    span: CellSpan,
    context: &CellContext,
) -> Option<(Subject, Option<String>)> {
    let (text, message) = (cell.text(), found.message.as_str());
    let after = |words: &str| {
        let (_, rest) = message.split_once(words)?;
        rest.split('`').nth(1).map(str::to_owned)
    };
    let of_value = |of_type: Option<String>| {
        let of_type = of_type?;
        Some((Subject::Of(habits_of(&of_type)?), Some(of_type)))
    };
    let name = text.get(span.start..span.end)?;
    match found.code.as_str() {
        "E0599" if message.contains("associated") => of_value(after(" found for ")),
        "E0599" if message.contains(" is not an iterator") => of_value(after("")),
        "E0599" => of_value(after(" found for ").or_else(|| after(" exists for "))),
        "E0618" => of_value(after("expected function, found ")),
        "E0369" => of_value(after(" cannot be applied to type ").or_else(|| after("cannot add "))),
        "E0308" if slips::is_number_of_a_list(found) => None,
        "E0609" | "E0615" => of_value(after(" on type ")),
        "E0608" => of_value(after(" value of type ")),
        "E0277" if message.ends_with(" is not an iterator") => of_value(after("")),
        "E0277" if message.starts_with("the type `str` cannot be indexed") => of_value(after("")),
        // Without a code.
        _ if message.starts_with("negative integers cannot be used to index on") => {
            of_value(after(" on a "))
        }
        "E0308" if is_pair_of(found, "Evaluation") => {
            Some((Subject::Of(of_models::EVALUATION), None))
        }
        // The receiver is a variable, or nothing is known.
        "E0308" | "E0061" | "E0616" => {
            let usage = Usage::at(cell, span, false)?;
            match type_of_receiver(cell, &usage, context) {
                Some(of_type) => of_value(Some(of_type)),
                None if context.defined.functions.contains(name) => None,
                None if let [of_type] = usage.path.as_slice()
                    && let Some(habits) = functions_of(of_type) =>
                {
                    Some((Subject::Of(habits), None))
                }
                None if usage.path == ["Sequential"] => Some((Subject::Of(of_models::MODEL), None)),
                None if found.code == "E0061"
                    && usage.receiver.is_none()
                    && usage.path.is_empty() =>
                {
                    Some((Subject::Alone(of_functions::FUNCTION), None))
                }
                None => None,
            }
        }
        // What a lost variable was, is known better.
        "E0425" if message.contains("in this scope:") => None,
        "E0425" | "E0412" if message.contains("find type") => {
            Some((Subject::Alone(of_functions::TYPE), None))
        }
        "E0425" if context.variables.contains_key(name) => None,
        "E0425" if message.contains("function") => {
            Some((Subject::Alone(of_functions::FUNCTION), None))
        }
        "E0425" if module(name).is_some() => Some((Subject::Module, None)),
        "E0425" => Some((Subject::Alone(of_functions::VALUE), None)),
        "E0423" => Some((Subject::Alone(of_functions::FUNCTION), None)),
        // Crates of Rust have these names, too.
        "E0432" | "E0433" if modules::is_a_crate_too(name) => None,
        "E0432" | "E0433" => Some((Subject::Module, None)),
        _ => None,
    }
}

/// Whether a column of a data set stands where `fit!` and others take the data set.
fn is_data_of_a_call(text: &str, start: usize) -> bool {
    let before = text[..start].trim_end().trim_end_matches('&').trim_end();
    let Some((call, model)) = before.strip_suffix(',').and_then(|it| it.rsplit_once('(')) else {
        return false;
    };
    let is_one = !model.contains(',');
    is_one
        && ["fit!", "start!", "evaluate!"]
            .iter()
            .any(|it| call.trim_end().ends_with(it))
}

fn row(habits: &'static [Habit], form: &str) -> Option<&'static Habit> {
    habits
        .iter()
        .find(|habit| habit.0.split(" | ").any(|it| it == form))
}

/// The row for the most exact form of a usage.
fn matching(habits: &'static [Habit], usage: &Usage, text: &str) -> Option<(Form, &'static Habit)> {
    let prefix = if usage.path.is_empty() { "" } else { "::" };
    let is_data = is_data_of_a_call(text, usage.named.start);
    usage.forms().into_iter().find_map(|form| {
        let of_loop = || row(habits, &format!("in {}", form.text)).filter(|_| usage.is_iterated);
        let of_data = || row(habits, &format!("data {}", form.text)).filter(|_| is_data);
        let habit = of_loop().or_else(of_data);
        let habit = habit.or_else(|| row(habits, &format!("{prefix}{}", form.text)))?;
        Some((form, habit))
    })
}

/// What else the cell needs with the edit: the type for a `collect` around it, and the `mut` of a list that it changes.
fn also_needed(cell: &Syntax, usage: &Usage, edit: &Edit, parts: &Parts<'_>) -> Vec<Edit> {
    const CHANGES: [&str; 5] = [".push(", ".push_str(", ".remove(", ".sort_by(", ".extend("];
    let Place::Span(span) = edit.place else {
        return Vec::new();
    };
    let is_within = |other: &Edit| matches!(other.place, Place::Span(it) if it.end < span.start || span.end < it.start);
    let list = slips::list_around(cell, span).filter(is_within);
    let list = list.or_else(|| slips::filtered(cell, span, &edit.replacement));
    let receiver = usage
        .receiver
        .and_then(|it| parts.text.get(it.start..it.end));
    let changes = receiver.is_some_and(|it| {
        let rest = edit.replacement.strip_prefix(it).unwrap_or_default();
        CHANGES.iter().any(|method| rest.starts_with(method))
    });
    let mutable = receiver
        .filter(|_| changes)
        .and_then(|name| slips::without_mut(cell, name, span.start));
    list.into_iter().chain(mutable).collect()
}

/// The edits for a method of `r` after `let r = &run;`: the next cell could not use a borrow, and a run cannot be copied.
fn of_a_reference(parts: &Parts<'_>, edit: &Edit, context: &CellContext) -> Option<Vec<Edit>> {
    let (cell, receiver) = (parts.cell?, parts.usage.receiver?);
    let name = parts.text.get(receiver.start..receiver.end)?;
    let of_type = type_of_name(cell, name, context)?;
    if !slips::is_not_cloned(&of_type) {
        return None;
    }
    slips::with_itself(cell, edit, name)
}

fn finding(
    parts: &Parts<'_>,
    form: &Form,
    template: &str,
    reason: &str,
    context: Option<&CellContext>,
) -> Diagnostic {
    let usage = parts.usage;
    let (left, is_changed) = keys::left(parts, template, form.end);
    let is_open = template.contains("{predictions}")
        && !context.is_some_and(|it| receivers::are_compared(parts, it));
    let is_advice =
        template.starts_with(['~', '%', '!']) || template.contains('…') || is_changed || is_open;
    let template = template.trim_start_matches('~');
    let filled = parts.fill(template).filter(|it| !it.is_empty());
    let start = usage.named.start;
    let mut end = form.end;
    if form.takes_mark && usage.is_tried_at(form.end) {
        end += parts.text[end..].find('?').map_or(0, |at| at + 1);
    }
    let given = text::excerpt(parts.text.get(start..form.end).unwrap_or_default(), 60);
    let edits = match &filled {
        Some(written) if !is_advice => {
            // What a loop or a list goes over is no operand of a method.
            let is_open = written.contains("..") && !written.ends_with([')', ']']);
            let replacement = if usage.goes_on && is_open {
                format!("({written})")
            } else {
                written.clone()
            };
            let edit = Edit {
                place: Place::span(start, end),
                replacement,
            };
            match (parts.cell, context) {
                (Some(cell), Some(context)) => {
                    let also = also_needed(cell, usage, &edit, parts);
                    let all = of_a_reference(parts, &edit, context)
                        .unwrap_or_else(|| std::iter::once(edit).chain(also).collect());
                    fixed::tried(cell, all, context)
                }
                _ => vec![edit],
            }
        }
        _ => Vec::new(),
    };
    let reason = parts.fill(reason).unwrap_or_else(|| reason.to_owned());
    let facts = NameOfAnotherLibrary {
        given,
        written: filled.map(|it| text::excerpt(&it, 100)),
        place: Place::span(start, form.end),
        reason: match left {
            Some(left) => format!("{reason}; {left}"),
            None => reason,
        },
        edits,
        label: label_of(usage, template),
    };
    facts.diagnostic()
}

//! Calls of functions and methods that are written as Keras has them: `model.fit(train, epochs = 3)`,
//! `Dense(10, activation = "relu")`, `Adam(1e-3)`, `MirroredStrategy()`. Rust has no named arguments,
//! so rustc's errors about them speak of variables that nobody meant.

use proc_macro2::{Delimiter, TokenTree};

use super::calls::{CallArgument, Found, Operand, inside_of, slice, span_of};
use super::constructors::{self, Built};
use super::segments::{self, Parts};
use super::{habits, kind, suggest};
use crate::rules::{EmptyDataset, KerasCallSyntax, NamedArgumentInCall};
use crate::{CellSpan, Diagnostic, Edit, Fix, Place, Rule, arguments};
use stratoscope_render::text;

/// A call of a function or a method.
#[derive(Debug)]
pub(super) struct Plain {
    pub name: String,
    pub name_span: CellSpan,
    /// What stands before the method's dot.
    pub receiver: Option<CellSpan>,
    /// The segment before the name's `::`.
    pub path: Option<String>,
    /// With the receiver or the path, to the closing bracket.
    pub span: CellSpan,
    pub inside: CellSpan,
    pub operands: Vec<Operand>,
    pub named: Vec<CallArgument>,
    /// Whether the last operand is a block.
    pub ends_in_block: bool,
    /// Whether a `?` follows.
    pub is_tried: bool,
}

/// Reads the call whose name stands at `index`, if it may be meant as one of ours.
pub(super) fn read(text: &str, trees: &[TokenTree], index: usize) -> Option<Plain> {
    let TokenTree::Ident(ident) = &trees[index] else {
        return None;
    };
    let Some(TokenTree::Group(group)) = trees.get(index + 1) else {
        return None;
    };
    let name = ident.to_string();
    let Parts {
        operands, named, ..
    } = segments::read(text, group, &|_| false);
    let is_ours = arguments::call(&name).is_some() || matches!(name.as_str(), "scope" | "print");
    let is_of_nothing = matches!(name.as_str(), "predict" | "embed") && is_nothing(&operands);
    let (receiver, path, start) = before(trees, index);
    let is_new = name == "new" && path.as_deref().is_some_and(constructors::is_one);
    if named.is_empty() && !is_ours && !is_of_nothing && !is_new && !constructors::is_one(&name) {
        return None;
    }
    let span = CellSpan {
        start: start.map_or(span_of(ident.span()).start, |tree| {
            span_of(tree.span()).start
        }),
        end: span_of(group.span()).end,
    };
    let receiver = receiver.map(|last| CellSpan {
        start: span.start,
        end: span_of(last.span()).end,
    });
    let ends_in_block = operands.last().is_some_and(|(_, tokens)| {
        matches!(tokens.as_slice(), [TokenTree::Group(block)] if block.delimiter() == Delimiter::Brace)
    });
    Some(Plain {
        name,
        name_span: span_of(ident.span()),
        receiver,
        path,
        span,
        inside: inside_of(group),
        operands: operands.into_iter().map(|(operand, _)| operand).collect(),
        named: named.into_iter().map(|(argument, _)| argument).collect(),
        ends_in_block,
        is_tried: matches!(trees.get(index + 2), Some(TokenTree::Punct(mark)) if mark.as_char() == '?'),
    })
}

/// Whether the only operand is an empty list, which has elements of no type: `[]`, `vec![]`, `&[]`.
fn is_nothing(operands: &[(Operand, Vec<TokenTree>)]) -> bool {
    let [(only, _)] = operands else {
        return false;
    };
    let list = only.text.trim_start_matches('&').trim_start();
    let list = list.strip_prefix("vec!").unwrap_or(list);
    list.split_whitespace().collect::<String>() == "[]"
}

/// What stands before a name: the last token of a method's receiver, the segment before a path's `::`,
/// and the first token of either.
fn before(
    trees: &[TokenTree],
    index: usize,
) -> (Option<&TokenTree>, Option<String>, Option<&TokenTree>) {
    let sign = |at: usize| match trees.get(at) {
        Some(TokenTree::Punct(sign)) => Some(sign.as_char()),
        _ => None,
    };
    let mut at = index;
    let mut receiver = None;
    let mut path = None;
    loop {
        if at >= 2 && sign(at - 1) == Some('.') && sign(at - 2) != Some('.') {
            receiver = receiver.or(Some(&trees[at - 2]));
            at -= 2;
        } else if at >= 3 && sign(at - 1) == Some(':') && sign(at - 2) == Some(':') {
            if at == index {
                path = Some(trees[at - 3].to_string());
            }
            at -= 3;
        } else {
            break;
        }
        // `f(x)?.name(…)`, `models[0].name(…)`: to the name that they begin with.
        while at > 0
            && (matches!(trees[at], TokenTree::Group(_)) || sign(at) == Some('?'))
            && matches!(&trees[at - 1], TokenTree::Ident(_) | TokenTree::Group(_))
        {
            at -= 1;
        }
    }
    (receiver, path, (at < index).then(|| &trees[at]))
}

/// What is to be said about a call.
pub(super) fn check(plain: &Plain, found: &Found) -> Option<Diagnostic> {
    let name = plain.name.as_str();
    if plain.receiver.is_none()
        && (found.defined.functions.contains(&plain.name)
            || found.defined.items.contains(&plain.name))
    {
        return None;
    }
    if let Some(table) = arguments::call(name) {
        let known = |argument: &CallArgument| {
            let names = table.arguments.iter().map(|known| known.name);
            arguments::find(table.arguments, &argument.name).is_some()
                || arguments::translated(name, &argument.name).is_some()
                || matches!(argument.name.as_str(), "x" | "y")
                || !suggest::similar(&argument.name, names).is_empty()
        };
        if plain.path.is_some() || !plain.named.iter().any(known) {
            return None;
        }
        return Some(match plain.receiver {
            Some(receiver) => of_a_method(&found.text, plain, receiver),
            None => without_its_mark(&found.text, plain),
        });
    }
    let is_bound = || found.text.contains("let print");
    if name == "print" && plain.receiver.is_none() && plain.path.is_none() && !is_bound() {
        return Some(habits::printed(&found.text, plain));
    }
    if plain.receiver.is_some() && plain.named.is_empty() && matches!(name, "predict" | "embed") {
        let facts = EmptyDataset {
            source: "an empty list".to_owned(),
            wanted_by: format!("`{name}`"),
        };
        let place = Place::Span(plain.operands.first()?.span);
        return Some(facts.diagnostic().label(place, "no example"));
    }
    let path = plain.path.as_ref();
    if path.is_some_and(|it| found.defined.items.contains(it)) {
        return None;
    }
    let Built { fix, notes } = constructors::written(&found.text, plain)?;
    let facts = KerasCallSyntax {
        given: shortened(&found.text, plain.span),
        written: fix.title.clone(),
        place: Place::Span(plain.name_span),
        reason: constructors::reason(path.filter(|_| name == "new").map_or(name, String::as_str))
            .to_owned(),
        edits: fix.edits,
    };
    let mut diagnostic = match plain.named.first() {
        Some(argument) => NamedArgumentInCall {
            callee: path
                .filter(|_| name == "new")
                .unwrap_or(&plain.name)
                .clone(),
            argument: argument.name.clone(),
            place: Place::Span(argument.span),
            written: facts.written,
            edits: facts.edits,
        }
        .diagnostic(),
        None => facts.diagnostic(),
    };
    diagnostic.why.extend(notes);
    Some(diagnostic)
}

/// The values of a call's named arguments in their order, for a function whose operands have no names.
pub(super) fn without_names(text: &str, plain: &Plain) -> Fix {
    let edits: Vec<Edit> = plain
        .named
        .iter()
        .map(|argument| Edit {
            place: Place::span(argument.span.start, argument.value_span.start),
            replacement: String::new(),
        })
        .collect();
    let operands = plain.operands.iter().map(|operand| operand.text.as_str());
    let values = plain.named.iter().map(|argument| argument.value.as_str());
    let all: Vec<&str> = operands.chain(values).collect();
    let callee = slice(
        text,
        CellSpan {
            start: plain.span.start,
            end: plain.name_span.end,
        },
    );
    Fix {
        kind: crate::FixKind::Change,
        title: text::excerpt(&format!("{callee}({})", all.join(", ")), 76),
        edits,
    }
}

/// `history = model.fit(…)`: the `let` and the `;` of a line of Python that assigns.
fn without_let(text: &str, call: CellSpan) -> Vec<Edit> {
    let line = text[..call.start].rfind('\n').map_or(0, |at| at + 1);
    let insert = |at: usize, replacement: &str| Edit {
        place: Place::span(at, at),
        replacement: replacement.to_owned(),
    };
    let Some(name) = text[line..call.start].trim_end().strip_suffix('=') else {
        return Vec::new();
    };
    let name = name.trim();
    let is_name = |it: char| it.is_alphanumeric() || it == '_';
    let is_bound = text[..line].contains(&format!("let mut {name}"));
    if name.is_empty() || !name.chars().all(is_name) || is_bound {
        return Vec::new();
    }
    let rest = text[call.end..].lines().next().unwrap_or_default().trim();
    let start = line + text[line..].len() - text[line..].trim_start().len();
    let mut edits = vec![insert(start, "let ")];
    if rest.is_empty() {
        edits.push(insert(call.end, ";"));
    }
    edits
}

/// A call of a method with its named values as calls of their own: settings are methods.
pub(super) fn as_methods(text: &str, plain: &Plain) -> Fix {
    let operands = plain.operands.iter().map(|operand| operand.text.as_str());
    let operands: Vec<&str> = operands.collect();
    let settings = plain
        .named
        .iter()
        .map(|it| format!(".{}({})", it.name, it.value));
    let rest = format!("{}){}", operands.join(", "), settings.collect::<String>());
    let callee = slice(
        text,
        CellSpan {
            start: plain.span.start,
            end: plain.inside.start,
        },
    );
    Fix {
        kind: crate::FixKind::Change,
        title: text::excerpt(&format!("{callee}{rest}"), 76),
        edits: vec![Edit {
            place: Place::span(plain.inside.start, plain.inside.end + ")".len()),
            replacement: rest,
        }],
    }
}

/// `compile(model, …)`, which lacks its `!`.
fn without_its_mark(text: &str, plain: &Plain) -> Diagnostic {
    let name = &plain.name;
    let insert = |at: usize, sign: &str| Edit {
        place: Place::span(at, at),
        replacement: sign.to_owned(),
    };
    let mut edits = vec![insert(plain.name_span.end, "!")];
    if !plain.is_tried {
        edits.push(insert(plain.span.end, "?"));
    }
    let inside = text::excerpt(slice(text, plain.inside).trim(), 50);
    KerasCallSyntax {
        given: format!("{name}(…)"),
        written: format!("{name}!({inside})?"),
        place: Place::Span(plain.name_span),
        reason: format!(
            "`{name}!` is a macro, which is called with a `!`: only macros have named arguments"
        ),
        edits,
    }
    .diagnostic()
}

fn is_integer(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|it| it.is_ascii_digit() || it == '_')
}

/// Values with the names of arguments that are given in this order; the rest as it is.
fn in_order<'v>(values: &'v [&str], names: &'v [&str]) -> impl Iterator<Item = String> + 'v {
    values
        .iter()
        .enumerate()
        .map(|(at, value)| match names.get(at) {
            Some(name) => format!("{name} = {value}"),
            None => (*value).to_owned(),
        })
}

/// What a method of Keras's is given as data, and what stands behind it in an order, with names.
fn data_of(plain: &Plain) -> Vec<String> {
    let name = &plain.name;
    let value = |name: &str| {
        let argument = plain.named.iter().find(|argument| argument.name == name);
        argument.map(|argument| argument.value.as_str())
    };
    let lent = |text: &str| -> String { text.trim_start_matches('&').trim_start().to_owned() };
    let operands: Vec<&str> = plain.operands.iter().map(|it| it.text.as_str()).collect();
    // `evaluate` has no epochs.
    let order = |of_fit: &'static [&'static str]| match name.as_str() {
        "fit" => of_fit,
        _ => &["batch_size"],
    };
    match (operands.as_slice(), value("x"), value("y")) {
        _ if name == "compile" => operands.iter().map(|it| (*it).to_owned()).collect(),
        // Numbers are no labels: epochs are meant, and the size of a batch.
        ([data, numbers @ ..], _, _)
            if !numbers.is_empty() && numbers.iter().all(|it| is_integer(it)) =>
        {
            let named = in_order(numbers, order(&["epochs", "batch_size"]));
            std::iter::once(lent(data)).chain(named).collect()
        }
        // The order of Keras.
        ([x, y, rest @ ..], _, _) => {
            let named = in_order(rest, order(&["batch_size", "epochs"]));
            let pair = kind::from_arrays(x, y);
            std::iter::once(pair).chain(named).collect()
        }
        ([x], _, Some(y)) => vec![kind::from_arrays(x, y)],
        ([data], ..) => vec![lent(data)],
        ([], Some(x), Some(y)) => vec![kind::from_arrays(x, y)],
        ([], Some(x), None) => vec![lent(x)],
        ([], _, _) => vec!["train".to_owned()],
    }
}

/// `model.fit(train, epochs = 3)`.
pub(super) fn of_a_method(text: &str, plain: &Plain, receiver: CellSpan) -> Diagnostic {
    let (name, model) = (&plain.name, slice(text, receiver));
    let data = data_of(plain);
    let named = plain
        .named
        .iter()
        .filter(|argument| name == "compile" || !matches!(argument.name.as_str(), "x" | "y"));
    let named = named.map(|argument| format!("{} = {}", argument.name, argument.value));
    let parts: Vec<String> = std::iter::once(model.to_owned())
        .chain(data)
        .chain(named)
        .collect();
    let written = format!("{name}!({})", parts.join(", "));
    let tried = if plain.is_tried { "" } else { "?" };
    // Lines stay as they are typed where nothing but the beginning changes.
    let edits = if name == "compile" {
        let end = plain.inside.start;
        let inside = slice(text, plain.inside);
        let comma = match inside.trim().is_empty() {
            true => "",
            false if inside.starts_with('\n') => ",",
            false => ", ",
        };
        vec![
            Edit {
                place: Place::span(plain.span.start, end),
                replacement: format!("compile!({model}{comma}"),
            },
            Edit {
                place: Place::span(plain.span.end, plain.span.end),
                replacement: tried.to_owned(),
            },
        ]
    } else {
        vec![Edit {
            place: Place::Span(plain.span),
            replacement: format!("{written}{tried}"),
        }]
    };
    let edits = edits.into_iter().filter(|edit| {
        edit.place != Place::span(plain.span.end, plain.span.end) || !edit.replacement.is_empty()
    });
    let edits = edits.chain(without_let(text, plain.span));
    KerasCallSyntax {
        given: format!("{}.{name}(…)", text::excerpt(model, 30)),
        written: text::excerpt(&format!("{written}?"), 76),
        place: Place::Span(plain.name_span),
        reason: format!("`{name}!` is a macro: the model goes inside the parentheses, first"),
        edits: edits.collect(),
    }
    .diagnostic()
}

/// A call without what stands between its brackets, if that is long.
fn shortened(text: &str, span: CellSpan) -> String {
    let whole = slice(text, span);
    if whole.chars().count() <= 40 && !whole.contains('\n') {
        return whole.to_owned();
    }
    let name = whole.split('(').next().unwrap_or_default();
    format!("{name}(…)")
}

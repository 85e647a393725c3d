//! What a value is, where its text shows it: `Adam::new(1e-3)` is an optimizer, whatever argument it is
//! written for. Names of the prelude only; anything else is left to the compiler.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::calls::{Call, CallArgument, Method, span_of};
use super::definitions::{self, DefinedNames};
use crate::arguments::{self, Accepts, Argument, IdentifierKind, Kind, METRICS};
use crate::{CellSpan, Edit, Fix, Place};
use stratoscope_render::text;

/// What an argument takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// Values of this kind.
    Kind(Kind),
    /// Numbers or flags: no kind at all.
    Plain,
}

/// What an argument takes, where that can be said.
pub(super) fn expected(argument: &Argument) -> Option<Expected> {
    Some(match argument.accepts {
        Accepts::Identifier(IdentifierKind::Optimizer) => Expected::Kind(Kind::Optimizer),
        Accepts::Identifier(IdentifierKind::Loss) => Expected::Kind(Kind::Loss),
        Accepts::Identifier(IdentifierKind::Metric) => Expected::Kind(Kind::Metric),
        Accepts::Value(Some(kind)) => Expected::Kind(kind),
        Accepts::Value(None) => return None,
        _ => Expected::Plain,
    })
}

/// Ways out for a value of another kind than `known` takes, best first: the argument that it is for, or how
/// this one is written.
pub(super) fn ways_out(
    call: &Call,
    known: &Argument,
    argument: &CallArgument,
    got: Option<Kind>,
) -> Vec<Fix> {
    let edit = |span, replacement: String| {
        vec![Edit {
            place: Place::Span(span),
            replacement,
        }]
    };
    let mut fixes = Vec::new();
    let table = arguments::call(&call.name).map_or(&[][..], |table| table.arguments);
    if let Some(name) = got.and_then(Kind::argument)
        && arguments::find(table, name).is_some()
        && call.argument(name).is_none()
    {
        let value = text::excerpt(&argument.value, 60);
        fixes.push(Fix {
            kind: crate::FixKind::Suggestion,
            title: format!("did you mean `{name} = {value}`?"),
            edits: edit(argument.name_span, name.to_owned()),
        });
    }
    fixes.push(match expected(known) {
        Some(Expected::Kind(Kind::Optimizer)) if got == Some(Kind::Schedule) => Fix {
            kind: crate::FixKind::Change,
            title: "a schedule is the optimizer's rate: `AdamW::new(…)`".to_owned(),
            edits: edit(
                argument.value_span,
                format!("AdamW::new({})", argument.value),
            ),
        },
        // A number in place of an optimizer is its rate.
        Some(Expected::Kind(Kind::Optimizer)) if argument.value.parse::<f64>().is_ok() => {
            let written = format!("AdamW::new({})", rate(&argument.value));
            Fix {
                kind: crate::FixKind::Change,
                title: format!("write `{} = {written}`", argument.name),
                edits: edit(argument.value_span, written),
            }
        }
        Some(Expected::Kind(kind)) => Fix {
            kind: crate::FixKind::Change,
            title: format!("write `{} = {}`", argument.name, kind.example()),
            edits: edit(argument.value_span, kind.example().to_owned()),
        },
        Some(Expected::Plain) | None => Fix {
            kind: crate::FixKind::Change,
            title: format!("pass {} as `{}`", known.expects, argument.name),
            edits: Vec::new(),
        },
    });
    fixes
}

/// A number as a rate, which is a float.
fn rate(text: &str) -> String {
    match text.parse::<u64>() {
        Ok(_) => format!("{text}.0"),
        Err(_) => text.to_owned(),
    }
}

/// The two elements of `(x, y)`, as text.
pub(super) fn arrays(text: &str) -> Option<[String; 2]> {
    let tokens: Vec<TokenTree> = text.parse::<TokenStream>().ok()?.into_iter().collect();
    let [TokenTree::Group(pair)] = tokens.as_slice() else {
        return None;
    };
    let elements: Vec<TokenTree> = pair.stream().into_iter().collect();
    let is_comma =
        |tree: &TokenTree| matches!(tree, TokenTree::Punct(sign) if sign.as_char() == ',');
    let parts: Vec<String> = elements
        .split(is_comma)
        .filter(|part| !part.is_empty())
        .filter_map(|part| {
            let (first, last) = (part.first()?, part.last()?);
            let (start, end) = (span_of(first.span()).start, span_of(last.span()).end);
            text.get(start..end).map(str::to_owned)
        })
        .collect();
    let parts = <[String; 2]>::try_from(parts).ok()?;
    (pair.delimiter() == Delimiter::Parenthesis).then_some(parts)
}

/// A dataset of two arrays, which may be borrowed, as code.
pub(super) fn from_arrays(x: &str, y: &str) -> String {
    format!("Dataset::from_arrays({x}, {y})?")
}

/// A dataset of texts and their labels, as code.
pub(super) fn from_rows(texts: &str, labels: &str) -> String {
    format!("Dataset::from_rows({texts}, {labels})?")
}

/// The way out for two arrays in place of a dataset.
pub(super) fn of_arrays([x, y]: &[String; 2], place: CellSpan) -> Fix {
    let written = from_arrays(x, y);
    Fix {
        kind: crate::FixKind::Change,
        title: format!("write `{written}`"),
        edits: vec![Edit {
            place: Place::Span(place),
            replacement: written,
        }],
    }
}

/// What the tokens of a value are. `defined`: names that the notebook itself defines, of which nothing is
/// known.
pub(super) fn of(text: &str, value: &[TokenTree], defined: &DefinedNames) -> Option<Kind> {
    let value = match value {
        [TokenTree::Punct(and), rest @ ..] if and.as_char() == '&' => rest,
        // A list is what all its elements are.
        [TokenTree::Group(list)] if list.delimiter() == Delimiter::Bracket => {
            let elements: Vec<TokenTree> = list.stream().into_iter().collect();
            let is_comma =
                |tree: &TokenTree| matches!(tree, TokenTree::Punct(sign) if sign.as_char() == ',');
            let elements = elements.split(is_comma).filter(|part| !part.is_empty());
            let kinds: Vec<Option<Kind>> = elements.map(|part| of(text, part, defined)).collect();
            let first = *kinds.first()?;
            return first.filter(|_| kinds.iter().all(|kind| *kind == first));
        }
        other => other,
    };
    let (path, rest) = path_of(value);
    let (at, is_type) = named(&path)?;
    let name = path[at].as_str();
    let is_own = defined.items.contains(name) || (!is_type && defined.functions.contains(name));
    if is_own || !definitions::may_be_ours(&path[..at], defined) {
        return None;
    }
    let is_called = matches!(rest.first(), Some(TokenTree::Group(group))
        if group.delimiter() == Delimiter::Parenthesis);
    let kind = if is_type {
        match name {
            _ if arguments::optimizer(name).is_some() && is_called => Kind::Optimizer,
            _ if arguments::LOSS_TYPES.contains(&name) => Kind::Loss,
            _ if name.ends_with("Decay") && is_called => Kind::Schedule,
            _ if name.ends_with("Strategy") && is_called => Kind::Strategy,
            "Dataset" if is_called => Kind::Dataset,
            "Sequential" if is_called => Kind::Model,
            _ if name.starts_with("BertFor") && is_called => Kind::Model,
            _ => return None,
        }
    } else {
        match name {
            _ if METRICS.contains(&name) && is_called => Kind::Metric,
            "warmup_linear" if is_called => Kind::Schedule,
            _ => return None,
        }
    };
    // `AdamW::new(5e-5).weight_decay(0.01)` is still one; `.something_else()` may be anything.
    let after = rest.get(1..).unwrap_or_default();
    let methods = super::calls::read_methods(text, after);
    let stays = |method: &Method| match kind {
        Kind::Optimizer => {
            method.name == "clone"
                || arguments::OPTIMIZERS
                    .iter()
                    .any(|optimizer| arguments::find(optimizer.arguments, &method.name).is_some())
        }
        _ => method.name == "clone",
    };
    let ends = match after.get(methods.len() * 3..).unwrap_or_default() {
        [] => true,
        // Strategies and datasets are made by fallible calls.
        [TokenTree::Punct(mark)] => mark.as_char() == '?',
        _ => false,
    };
    (ends && methods.iter().all(stays)).then_some(kind)
}

/// The kind of a type by its name, references and paths aside.
pub(super) fn of_type(name: &str) -> Option<Kind> {
    let name = name.trim_start_matches('&').trim_start_matches("mut ");
    let name = name.split('<').next().unwrap_or(name);
    let name = name.rsplit("::").next().unwrap_or(name);
    Some(match name {
        "Optimizer" => Kind::Optimizer,
        _ if arguments::optimizer(name).is_some() => Kind::Optimizer,
        "Loss" | "LabelSmoothing" => Kind::Loss,
        _ if arguments::LOSS_TYPES.contains(&name) => Kind::Loss,
        "Metric" => Kind::Metric,
        "Dataset" => Kind::Dataset,
        "Schedule" | "WarmupLinear" | "BertWarmup" => Kind::Schedule,
        _ if name.ends_with("Decay") => Kind::Schedule,
        _ if name.ends_with("Strategy") => Kind::Strategy,
        "Sequential" | "Model" | "ModelOf" => Kind::Model,
        _ if name.starts_with("BertFor") => Kind::Model,
        _ => return None,
    })
}

/// The segments of the path that the tokens begin with, and what follows it.
fn path_of(mut value: &[TokenTree]) -> (Vec<String>, &[TokenTree]) {
    let mut path = Vec::new();
    while let [TokenTree::Ident(segment), rest @ ..] = value {
        path.push(segment.to_string());
        value = rest;
        match value {
            [TokenTree::Punct(first), TokenTree::Punct(second), rest @ ..]
                if first.as_char() == ':' && second.as_char() == ':' =>
            {
                value = rest
            }
            _ => break,
        }
    }
    (path, value)
}

/// Which name of a path tells what it is, and whether that is a type: `AdamW` of `train::AdamW::new`,
/// `accuracy` of `metric::accuracy`.
fn named(path: &[String]) -> Option<(usize, bool)> {
    let is_type = |segment: &String| segment.starts_with(char::is_uppercase);
    let at = path
        .iter()
        .position(is_type)
        .or(path.len().checked_sub(1))?;
    Some((at, is_type(&path[at])))
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use super::*;

    fn check(text: &str, expected: Option<Kind>) {
        let tokens: Vec<TokenTree> = TokenStream::from_str(text)
            .expect("tokens")
            .into_iter()
            .collect();
        let defined = DefinedNames {
            items: ["Mine".to_owned()].into(),
            functions: ["auc".to_owned()].into(),
        };
        assert_eq!(of(text, &tokens, &defined), expected, "{text}");
    }

    #[test]
    fn values_of_the_prelude_are_known_by_their_names() {
        check("Adam::new(1e-3)", Some(Kind::Optimizer));
        check(
            "train::AdamW::new(5e-5).weight_decay(0.01).clone()",
            Some(Kind::Optimizer),
        );
        check(
            "SparseCategoricalCrossentropy { from_logits: true }",
            Some(Kind::Loss),
        );
        check("MeanSquaredError", Some(Kind::Loss));
        check("Huber { delta: 0.5 }", Some(Kind::Loss));
        check("top_k_accuracy(3)", Some(Kind::Metric));
        check("accuracy()", Some(Kind::Metric));
        check("[accuracy(), macro_f1()]", Some(Kind::Metric));
        check("warmup_linear(5e-5, 0.1)", Some(Kind::Schedule));
        check(
            "ExponentialDecay::new(3e-5, 1000, 0.96)",
            Some(Kind::Schedule),
        );
        check("MirroredStrategy::logical(2)?", Some(Kind::Strategy));
        check("&Dataset::tsv(\"a.tsv\")?", Some(Kind::Dataset));
    }

    #[test]
    fn of_anything_else_nothing_is_said() {
        for text in [
            "loss",
            "accuracy",
            "my::accuracy(1).into_loss()",
            "AdamW::new(5e-5).into_something()",
            "[accuracy(), other]",
            "[]",
            "Mine::new(1)",
            "mine::AdamW::new(1)",
            "crate::mine::accuracy()",
            "auc()",
            "3",
            "if a { b() } else { c() }",
            "AdamW",
            "f(AdamW::new(1.0))",
            "Dataset::tsv(a)?.len()",
        ] {
            check(text, None);
        }
    }
}

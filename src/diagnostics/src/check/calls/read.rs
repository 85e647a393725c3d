//! One call or chain of methods, read from its tokens.

use std::ops::Range;

use proc_macro2::{Delimiter, Group, Ident, Span, TokenTree};

use super::{Call, Chain, Method, ParsedCall};
use crate::check::segments::{self, Parts};
use crate::check::suggest;
use crate::{CellSpan, arguments};

/// A call of `compile!`, `fit!` or `evaluate!`.
pub(in crate::check) fn read_call(
    text: &str,
    name: &str,
    at: Span,
    group: &Group,
    in_scope: bool,
) -> ParsedCall {
    let name_span = span_of(at);
    let whole = span_of(group.span());
    let inside = inside_of(group);
    let table = arguments::call(name).map_or(&[][..], |call| call.arguments);
    let is_name = |name: &str| {
        let known = table.iter().map(|argument| argument.name);
        arguments::find(table, name).is_some() || !suggest::similar(name, known).is_empty()
    };
    let Parts {
        operands,
        named,
        slips,
    } = segments::read(text, group, &is_name);
    let (arguments, values) = named.into_iter().unzip();
    let (operands, operand_values) = operands.into_iter().unzip();
    let span = CellSpan {
        start: name_span.start,
        end: whole.end,
    };
    let name = name.to_owned();
    ParsedCall {
        call: Call {
            name,
            span,
            name_span,
            inside,
            in_scope,
            operands,
            arguments,
        },
        operands: operand_values,
        values,
        slips,
    }
}

/// An optimizer and the methods called on it.
pub(in crate::check) fn read_chain(
    text: &str,
    ident: &Ident,
    group: &Group,
    rest: &[TokenTree],
) -> Chain {
    let Parts {
        operands, named, ..
    } = segments::read(text, group, &|_| true);
    let methods = read_methods(text, rest);
    let after = span_of(group.span()).end;
    let start = span_of(ident.span()).start;
    let end = methods.last().map_or(after, |method| method.span.end);
    let values = operands.iter().map(|(operand, _)| operand.text.clone());
    let values = values.collect();
    let rate = operands.into_iter().next().map(|(rate, _)| rate);
    let rate_span = rate.as_ref().map(|operand| operand.span);
    let rate = rate.map(|operand| operand.text);
    Chain {
        optimizer: ident.to_string(),
        inside: inside_of(group),
        span: CellSpan { start, end },
        after,
        operands: values,
        rate: rate.unwrap_or_default(),
        rate_span,
        named: named.into_iter().map(|(argument, _)| argument).collect(),
        methods,
    }
}

/// The methods that are called on what stands before these tokens.
pub(in crate::check) fn read_methods(text: &str, mut rest: &[TokenTree]) -> Vec<Method> {
    let mut methods = Vec::new();
    while let [
        TokenTree::Punct(dot),
        TokenTree::Ident(name),
        TokenTree::Group(values),
        after @ ..,
    ] = rest
    {
        if dot.as_char() != '.' || values.delimiter() != Delimiter::Parenthesis {
            break;
        }
        methods.push(Method {
            name: name.to_string(),
            name_span: span_of(name.span()),
            span: CellSpan {
                start: span_of(dot.span()).start,
                end: span_of(values.span()).end,
            },
            value: slice(text, inside_of(values)).to_owned(),
            value_span: inside_of(values),
        });
        rest = after;
    }
    methods
}

/// Bytes of the cell.
pub(in crate::check) fn span_of(span: Span) -> CellSpan {
    let Range { start, end } = span.byte_range();
    CellSpan { start, end }
}

/// The bytes between the brackets of a group.
pub(in crate::check) fn inside_of(group: &Group) -> CellSpan {
    CellSpan {
        start: span_of(group.span_open()).end,
        end: span_of(group.span_close()).start,
    }
}

/// The text of a span; empty for one that is no part of the text.
pub(in crate::check) fn slice(text: &str, span: CellSpan) -> &str {
    text.get(span.start..span.end).unwrap_or_default()
}

//! The calls in a cell: `compile!`, `fit!` and `evaluate!` with their operands and arguments, and
//! the optimizers that are built by a chain of methods.
//!
//! Read from tokens, not from parsed expressions: so a call is found wherever it stands, in another
//! macro too, and one slip inside it does not hide the rest.

use std::ops::Range;

use proc_macro2::{Delimiter, Group, Ident, Spacing, Span, TokenStream, TokenTree};

use super::cell::{Header, with_tokens};
use crate::{CellSpan, arguments};

/// Groups nested deeper than this are not looked into.
pub(super) const DEEPEST: usize = 128;

/// A call of `compile!`, `fit!` or `evaluate!` in a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its name without `!`.
    pub name: String,
    /// From the name to the closing bracket.
    pub span: CellSpan,
    /// The name alone.
    pub name_span: CellSpan,
    /// Between the brackets.
    pub inside: CellSpan,
    /// Whether it stands in a `scope!` of this cell, or `%%scope` stands above it.
    pub in_scope: bool,
    /// What stands before the named arguments: the model, the data.
    pub operands: Vec<Operand>,
    /// The named arguments, in the order of the text.
    pub arguments: Vec<CallArgument>,
}

/// An operand without a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Its text.
    pub text: String,
    /// Where it stands.
    pub span: CellSpan,
}

/// `name = value` in a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallArgument {
    /// The name.
    pub name: String,
    /// The value's text; empty if there is none.
    pub value: String,
    /// The name alone.
    pub name_span: CellSpan,
    /// The value alone; empty if there is none.
    pub value_span: CellSpan,
    /// Name and value.
    pub span: CellSpan,
    /// What goes when the argument goes: a comma too, and its line if it stands alone on it.
    pub drop_span: CellSpan,
}

impl Call {
    /// The argument of a name, the first one if it is written twice.
    pub fn argument(&self, name: &str) -> Option<&CallArgument> {
        self.arguments.iter().find(|argument| argument.name == name)
    }
}

/// The calls in a cell, in the order of the text; none if the cell is no Rust.
pub fn calls(text: &str) -> Vec<Call> {
    if !arguments::CALLS.iter().any(|call| text.contains(call.name)) {
        return Vec::new();
    }
    with_tokens(text, |tokens, header| {
        Found::read(text, tokens, header)
            .calls
            .into_iter()
            .map(|call| call.call)
            .collect()
    })
    .unwrap_or_default()
}

/// All that the checker looks at, with tokens.
#[derive(Default)]
pub(super) struct Found {
    /// The cell.
    pub text: String,
    pub calls: Vec<ParsedCall>,
    pub chains: Vec<Chain>,
    /// Paths `Name::` whose first segment is a name that ends in `Strategy`.
    pub strategies: Vec<(String, CellSpan)>,
    /// Names that the cell itself defines: types and macros.
    pub defined: Vec<String>,
}

/// A call and the tokens of its values, in the order of its arguments.
pub(super) struct ParsedCall {
    pub call: Call,
    pub values: Vec<Vec<TokenTree>>,
}

/// `AdamW::new(5e-5).weight_decay(0.01)`.
pub(super) struct Chain {
    /// The type's name.
    pub optimizer: String,
    pub optimizer_span: CellSpan,
    /// Between the brackets of the constructor.
    pub inside: CellSpan,
    /// From the type's name to the last method.
    pub span: CellSpan,
    /// After the closing bracket of the constructor.
    pub after: usize,
    /// The text of the constructor's first operand: the rate.
    pub rate: String,
    /// Where that stands; nowhere if there is none.
    pub rate_span: Option<CellSpan>,
    /// `name = value` inside the constructor, the Python way.
    pub named: Vec<CallArgument>,
    /// The methods that follow.
    pub methods: Vec<Method>,
}

/// `.name(value)`.
pub(super) struct Method {
    pub name: String,
    pub name_span: CellSpan,
    /// From the dot to the closing bracket.
    pub span: CellSpan,
    /// The text between the brackets.
    pub value: String,
    /// Where that stands.
    pub value_span: CellSpan,
}

impl Found {
    pub(super) fn read(text: &str, tokens: TokenStream, header: Header) -> Self {
        let mut found = Self {
            text: text.to_owned(),
            ..Self::default()
        };
        found.walk(text, tokens, header.scope, 0);
        found
    }

    fn walk(&mut self, text: &str, tokens: TokenStream, in_scope: bool, depth: usize) {
        if depth > DEEPEST {
            return;
        }
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        let mut index = 0;
        while index < trees.len() {
            index += match &trees[index] {
                TokenTree::Group(group) => {
                    self.walk(text, group.stream(), in_scope, depth + 1);
                    1
                }
                TokenTree::Ident(_) => self.name(text, &trees[index..], in_scope, depth),
                _ => 1,
            };
        }
    }

    /// Looks at the tokens from a name on; returns how many it has dealt with.
    fn name(&mut self, text: &str, trees: &[TokenTree], in_scope: bool, depth: usize) -> usize {
        let TokenTree::Ident(ident) = &trees[0] else {
            return 1;
        };
        let name = ident.to_string();
        match (name.as_str(), &trees[1..]) {
            // What a macro's definition holds is no call yet.
            (
                "macro_rules",
                [
                    TokenTree::Punct(bang),
                    TokenTree::Ident(defined),
                    TokenTree::Group(_),
                    ..,
                ],
            ) if bang.as_char() == '!' => {
                self.defined.push(defined.to_string());
                4
            }
            (
                "struct" | "enum" | "type" | "trait" | "mod" | "as" | "union",
                [TokenTree::Ident(defined), ..],
            ) => {
                self.defined.push(defined.to_string());
                2
            }
            (_, [TokenTree::Punct(bang), TokenTree::Group(group), ..]) if bang.as_char() == '!' => {
                if arguments::call(&name).is_some() {
                    let call = read_call(text, &name, ident.span(), group, in_scope);
                    self.calls.push(call);
                }
                self.walk(text, group.stream(), in_scope || name == "scope", depth + 1);
                3
            }
            (_, [TokenTree::Punct(first), TokenTree::Punct(second), rest @ ..])
                if first.as_char() == ':' && second.as_char() == ':' =>
            {
                if name.ends_with("Strategy") {
                    self.strategies.push((name.clone(), span_of(ident.span())));
                }
                if arguments::optimizer(&name).is_some()
                    && let [TokenTree::Ident(new), TokenTree::Group(group), methods @ ..] = rest
                    && new == "new"
                    && group.delimiter() == Delimiter::Parenthesis
                {
                    self.chains.push(read_chain(text, ident, group, methods));
                }
                3
            }
            _ => 1,
        }
    }
}

pub(super) fn read_call(
    text: &str,
    name: &str,
    at: Span,
    group: &Group,
    in_scope: bool,
) -> ParsedCall {
    let name_span = span_of(at);
    let whole = span_of(group.span());
    let inside = inside_of(group);
    let (operands, named) = read_arguments(text, group);
    let (arguments, values) = named.into_iter().unzip();
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
        values,
    }
}

fn read_chain(text: &str, ident: &Ident, group: &Group, rest: &[TokenTree]) -> Chain {
    let (operands, named) = read_arguments(text, group);
    let methods = read_methods(text, rest);
    let after = span_of(group.span()).end;
    let start = span_of(ident.span()).start;
    let end = methods.last().map_or(after, |method| method.span.end);
    let rate = operands.into_iter().next();
    let rate_span = rate.as_ref().map(|operand| operand.span);
    let rate = rate.map(|operand| operand.text);
    Chain {
        optimizer: ident.to_string(),
        optimizer_span: span_of(ident.span()),
        inside: inside_of(group),
        span: CellSpan { start, end },
        after,
        rate: rate.unwrap_or_default(),
        rate_span,
        named: named.into_iter().map(|(argument, _)| argument).collect(),
        methods,
    }
}

/// The methods that are called on what stands before these tokens.
pub(super) fn read_methods(text: &str, mut rest: &[TokenTree]) -> Vec<Method> {
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

type Named = Vec<(CallArgument, Vec<TokenTree>)>;

/// The operands and the named arguments between brackets.
fn read_arguments(text: &str, group: &Group) -> (Vec<Operand>, Named) {
    let trees: Vec<TokenTree> = group.stream().into_iter().collect();
    let inside = inside_of(group);
    let mut operands = Vec::new();
    let mut named: Named = Vec::new();
    for Segment { tokens, comma } in segments(&trees) {
        let part = &trees[tokens.clone()];
        let (Some(first), Some(last)) = (part.first(), part.last()) else {
            continue;
        };
        let span = CellSpan {
            start: span_of(first.span()).start,
            end: span_of(last.span()).end,
        };
        let comma = comma.map(|index| span_of(trees[index].span()));
        match part {
            [TokenTree::Ident(name), TokenTree::Punct(sign), value @ ..] if is_equals(part) => {
                let value_span = match (value.first(), value.last()) {
                    (Some(first), Some(last)) => CellSpan {
                        start: span_of(first.span()).start,
                        end: span_of(last.span()).end,
                    },
                    _ => {
                        let end = span_of(sign.span()).end;
                        CellSpan { start: end, end }
                    }
                };
                let argument = CallArgument {
                    name: name.to_string(),
                    value: slice(text, value_span).to_owned(),
                    name_span: span_of(name.span()),
                    value_span,
                    span,
                    drop_span: drop_span(text, inside, span, comma),
                };
                named.push((argument, value.to_vec()));
            }
            // After the first name, a piece without one belongs to a value that has a comma of its own.
            _ if named.is_empty() => operands.push(Operand {
                text: slice(text, span).to_owned(),
                span,
            }),
            _ => {}
        }
    }
    (operands, named)
}

/// `name = …`, but not `name == …` or `name => …`.
fn is_equals(part: &[TokenTree]) -> bool {
    match part {
        [TokenTree::Ident(_), TokenTree::Punct(sign), rest @ ..] if sign.as_char() == '=' => {
            let double = matches!(rest.first(), Some(TokenTree::Punct(next))
                if sign.spacing() == Spacing::Joint && matches!(next.as_char(), '=' | '>'));
            !double
        }
        _ => false,
    }
}

struct Segment {
    /// Indices of its tokens.
    tokens: Range<usize>,
    /// The comma that ends it.
    comma: Option<usize>,
}

/// Splits at the commas that separate arguments: not at those of `::<A, B>` or of `|a, b|`.
fn segments(trees: &[TokenTree]) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut start = 0;
    let mut index = 0;
    while index < trees.len() {
        let sign = punct(trees, index);
        match sign {
            Some(',') => {
                segments.push(Segment {
                    tokens: start..index,
                    comma: Some(index),
                });
                start = index + 1;
            }
            Some('<')
                if index >= 2
                    && punct(trees, index - 1) == Some(':')
                    && punct(trees, index - 2) == Some(':') =>
            {
                index = end_of_generics(trees, index);
                continue;
            }
            Some('|') if begins_closure(trees, start, index) => {
                index = (index + 1..trees.len())
                    .find(|&next| punct(trees, next) == Some('|'))
                    .unwrap_or(index);
            }
            _ => {}
        }
        index += 1;
    }
    if start < trees.len() {
        segments.push(Segment {
            tokens: start..trees.len(),
            comma: None,
        });
    }
    segments
}

fn punct(trees: &[TokenTree], index: usize) -> Option<char> {
    match trees.get(index) {
        Some(TokenTree::Punct(punct)) => Some(punct.as_char()),
        _ => None,
    }
}

/// The index after the `>` that closes the `<` at `open`; after `open` if nothing closes it.
fn end_of_generics(trees: &[TokenTree], open: usize) -> usize {
    let mut depth = 0usize;
    for index in open..trees.len() {
        match punct(trees, index) {
            Some('<') => depth += 1,
            Some('>') if !matches!(punct(trees, index - 1), Some('-' | '=')) => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return index + 1;
        }
    }
    open + 1
}

/// A `|` opens a closure's parameters where an expression begins.
fn begins_closure(trees: &[TokenTree], start: usize, index: usize) -> bool {
    if index == start {
        return true;
    }
    match &trees[index - 1] {
        TokenTree::Punct(sign) => matches!(sign.as_char(), '=' | ',' | '('),
        TokenTree::Ident(word) => word == "move" || word == "async" || word == "static",
        _ => false,
    }
}

/// What goes when an argument goes.
fn drop_span(text: &str, inside: CellSpan, span: CellSpan, comma: Option<CellSpan>) -> CellSpan {
    let before = &text[inside.start..span.start];
    let Some(comma) = comma else {
        // The last one: the comma before it goes.
        let start = match before.trim_end().strip_suffix(',') {
            Some(rest) => inside.start + rest.len(),
            None => span.start,
        };
        return CellSpan {
            start,
            end: span.end,
        };
    };
    let line_start = text[..span.start]
        .rfind('\n')
        .map_or(0, |newline| newline + 1);
    let alone_before = text[line_start..span.start].trim().is_empty();
    let after = &text[comma.end..];
    let to_newline = after.find('\n').map(|newline| newline + 1);
    match to_newline {
        Some(length) if alone_before && after[..length].trim().is_empty() => CellSpan {
            start: line_start,
            end: comma.end + length,
        },
        _ => {
            let spaces = after.len() - after.trim_start_matches([' ', '\t']).len();
            CellSpan {
                start: span.start,
                end: comma.end + spaces,
            }
        }
    }
}

/// Bytes of the cell.
pub(super) fn span_of(span: Span) -> CellSpan {
    let Range { start, end } = span.byte_range();
    CellSpan { start, end }
}

fn inside_of(group: &Group) -> CellSpan {
    CellSpan {
        start: span_of(group.span_open()).end,
        end: span_of(group.span_close()).start,
    }
}

/// The text of a span; empty for one that is no part of the text.
pub(super) fn slice(text: &str, span: CellSpan) -> &str {
    text.get(span.start..span.end).unwrap_or_default()
}

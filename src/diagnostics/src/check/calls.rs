//! The calls in a cell: `compile!`, `fit!` and `evaluate!` with their operands and arguments, and
//! the optimizers that are built by a chain of methods.
//!
//! Read from tokens, not from parsed expressions: so a call is found wherever it stands, in another
//! macro too, and one slip inside it does not hide the rest.

use std::collections::BTreeMap;
use std::ops::Range;

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

use super::cell::{Header, with_tokens};
use super::kind::{self, Kind};
use super::plain::{self, Plain};
use super::scope::{self, Misplaced};
use super::segments::{self, Parts, Slip};
use super::suggest;
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
    /// The functions that it defines.
    pub functions: Vec<String>,
    /// Variables that the cell binds, and what they are where that is seen.
    pub bound: BTreeMap<String, Option<Kind>>,
    /// Calls of functions and methods that may be meant as ours.
    pub plain: Vec<Plain>,
    /// `scope!`s that are not written as they should be.
    pub scopes: Vec<Misplaced>,
}

/// A call and the tokens of its values, in the order of its arguments.
pub(super) struct ParsedCall {
    pub call: Call,
    /// Those of its operands.
    pub operands: Vec<Vec<TokenTree>>,
    pub values: Vec<Vec<TokenTree>>,
    /// What is not written as it should be.
    pub slips: Vec<Slip>,
}

/// `AdamW::new(5e-5).weight_decay(0.01)`.
pub(super) struct Chain {
    /// The type's name.
    pub optimizer: String,
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
                TokenTree::Ident(_) => self.name(text, &trees, index, in_scope, depth),
                _ => 1,
            };
        }
    }

    /// Looks at the tokens from a name on; returns how many it has dealt with.
    fn name(
        &mut self,
        text: &str,
        trees: &[TokenTree],
        index: usize,
        in_scope: bool,
        depth: usize,
    ) -> usize {
        let TokenTree::Ident(ident) = &trees[index] else {
            return 1;
        };
        let name = ident.to_string();
        match (name.as_str(), &trees[index + 1..]) {
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
            ("fn", [TokenTree::Ident(defined), ..]) => {
                self.functions.push(defined.to_string());
                2
            }
            ("let", rest) => {
                self.bind(text, rest);
                1
            }
            ("for", [TokenTree::Ident(variable), ..]) => {
                self.bound.insert(variable.to_string(), None);
                1
            }
            (_, [TokenTree::Punct(bang), TokenTree::Group(group), rest @ ..])
                if bang.as_char() == '!' =>
            {
                // What a macro of the cell makes of its operands is its own affair.
                if self.defined.contains(&name) {
                    return 3;
                }
                if arguments::call(&name).is_some() {
                    let call = read_call(text, &name, ident.span(), group, in_scope);
                    self.calls.push(call);
                }
                if name == "scope" {
                    self.scopes
                        .extend(scope::misplaced(text, ident, group, rest));
                }
                // What another macro makes of its tokens is not known.
                if CALLING.contains(&name.as_str()) || arguments::call(&name).is_some() {
                    self.walk(text, group.stream(), in_scope || name == "scope", depth + 1);
                }
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
            (_, [TokenTree::Group(group), ..]) if group.delimiter() == Delimiter::Parenthesis => {
                self.plain.extend(plain::read(text, trees, index));
                1
            }
            (_, [TokenTree::Punct(colon), ..]) if colon.as_char() == ':' => {
                // An operand of a function or a closure, or a field.
                self.bound.insert(name, None);
                1
            }
            _ => {
                if matches!(index.checked_sub(1).map(|before| &trees[before]),
                    Some(TokenTree::Punct(bar)) if bar.as_char() == '|')
                {
                    self.bound.insert(name, None);
                }
                1
            }
        }
    }

    /// Notes what a `let` binds, from behind that word on.
    fn bind(&mut self, text: &str, rest: &[TokenTree]) {
        let is_sign = |tree: &TokenTree, sign: char| matches!(tree, TokenTree::Punct(it) if it.as_char() == sign);
        let end = rest.iter().position(|tree| is_sign(tree, ';'));
        let statement = &rest[..end.unwrap_or(rest.len())];
        let equals = statement.iter().position(|tree| is_sign(tree, '='));
        let (pattern, value) = statement.split_at(equals.unwrap_or(statement.len()));
        let value = value.get(1..).unwrap_or_default();
        match pattern {
            [TokenTree::Ident(name)] => {
                let kind = kind::of(text, value, &self.defined);
                self.bound.insert(name.to_string(), kind);
            }
            [TokenTree::Ident(word), TokenTree::Ident(name)] if word == "mut" => {
                let kind = kind::of(text, value, &self.defined);
                self.bound.insert(name.to_string(), kind);
            }
            _ => self.bind_all(pattern),
        }
    }

    /// Of these variables nothing is known.
    fn bind_all(&mut self, pattern: &[TokenTree]) {
        for tree in pattern {
            match tree {
                TokenTree::Ident(name) => {
                    self.bound.insert(name.to_string(), None);
                }
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    self.bind_all(&inner);
                }
                _ => {}
            }
        }
    }
}

/// Macros whose operands are Rust, and run as it stands there.
const CALLING: [&str; 25] = [
    "assert",
    "assert_eq",
    "assert_ne",
    "dbg",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "eprint",
    "eprintln",
    "format",
    "format_args",
    "join",
    "matches",
    "panic",
    "print",
    "println",
    "scope",
    "thread_local",
    "todo",
    "try",
    "unimplemented",
    "unreachable",
    "vec",
    "write",
    "writeln",
];

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

fn read_chain(text: &str, ident: &Ident, group: &Group, rest: &[TokenTree]) -> Chain {
    let Parts {
        operands, named, ..
    } = segments::read(text, group, &|_| true);
    let methods = read_methods(text, rest);
    let after = span_of(group.span()).end;
    let start = span_of(ident.span()).start;
    let end = methods.last().map_or(after, |method| method.span.end);
    let rate = operands.into_iter().next().map(|(rate, _)| rate);
    let rate_span = rate.as_ref().map(|operand| operand.span);
    let rate = rate.map(|operand| operand.text);
    Chain {
        optimizer: ident.to_string(),
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

/// Bytes of the cell.
pub(super) fn span_of(span: Span) -> CellSpan {
    let Range { start, end } = span.byte_range();
    CellSpan { start, end }
}

pub(super) fn inside_of(group: &Group) -> CellSpan {
    CellSpan {
        start: span_of(group.span_open()).end,
        end: span_of(group.span_close()).start,
    }
}

/// The text of a span; empty for one that is no part of the text.
pub(super) fn slice(text: &str, span: CellSpan) -> &str {
    text.get(span.start..span.end).unwrap_or_default()
}

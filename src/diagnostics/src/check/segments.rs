//! What stands between the brackets of a call: operands, named arguments, and the slips in how they
//! are written.

use std::ops::Range;

use proc_macro2::{Delimiter, Group, Spacing, TokenTree};

use super::calls::{CallArgument, Operand, inside_of, slice, span_of};
use crate::CellSpan;

/// A part of a call that is not written as it should be.
pub(super) enum Slip {
    /// No comma between what ends at `after` and what stands at `before`.
    Comma { after: usize, before: CellSpan },
    /// `name: value`; the sign of the argument with this index.
    Colon { argument: usize, sign: CellSpan },
    /// A value without a name behind the named arguments.
    Unnamed(Operand, Vec<TokenTree>),
}

/// All that stands between the brackets.
#[derive(Default)]
pub(super) struct Parts {
    pub operands: Vec<(Operand, Vec<TokenTree>)>,
    pub named: Vec<(CallArgument, Vec<TokenTree>)>,
    pub slips: Vec<Slip>,
}

/// Words after which, and before which, an expression goes on.
const KEYWORDS: [&str; 30] = [
    "as", "async", "await", "box", "break", "const", "continue", "do", "dyn", "else", "enum", "fn",
    "for", "if", "impl", "in", "let", "loop", "match", "move", "mut", "raw", "ref", "return",
    "static", "struct", "unsafe", "where", "while", "yield",
];

/// Reads a group; `is_name` says which names may stand before a colon.
pub(super) fn read(text: &str, group: &Group, is_name: &dyn Fn(&str) -> bool) -> Parts {
    let trees: Vec<TokenTree> = group.stream().into_iter().collect();
    let inside = inside_of(group);
    let mut parts = Parts::default();
    let mut before: &[TokenTree] = &[];
    for segment in segments(&trees) {
        let part = &trees[segment.tokens.clone()];
        let (Some(first), Some(last)) = (part.first(), part.last()) else {
            continue;
        };
        let span = CellSpan {
            start: span_of(first.span()).start,
            end: span_of(last.span()).end,
        };
        if segment.is_apart {
            let after = before
                .last()
                .map_or(span.start, |it| span_of(it.span()).end);
            let before = span_of(first.span());
            parts.slips.push(Slip::Comma { after, before });
        }
        let comma = segment.comma.map(|index| span_of(trees[index].span()));
        match sign_of(part, is_name) {
            Some((sign, length)) => {
                let value = &part[1 + length..];
                let argument = argument(text, inside, span, part, sign, value, comma);
                if text[sign.start..sign.end].starts_with(':') {
                    let argument = parts.named.len();
                    parts.slips.push(Slip::Colon { argument, sign });
                }
                parts.named.push((argument, value.to_vec()));
            }
            None => {
                let operand = Operand {
                    text: slice(text, span).to_owned(),
                    span,
                };
                if parts.named.is_empty() {
                    parts.operands.push((operand, part.to_vec()));
                } else if !has_open_generics(before) {
                    parts.slips.push(Slip::Unnamed(operand, part.to_vec()));
                }
            }
        }
        before = part;
    }
    parts
}

/// `name = …`, but not `name == …` or `name => …`; and `name: …` of a known name.
fn sign_of(part: &[TokenTree], is_name: &dyn Fn(&str) -> bool) -> Option<(CellSpan, usize)> {
    let [TokenTree::Ident(name), TokenTree::Punct(sign), rest @ ..] = part else {
        return None;
    };
    let next = match rest.first() {
        Some(TokenTree::Punct(next)) if sign.spacing() == Spacing::Joint => Some(next),
        _ => None,
    };
    let span = span_of(sign.span());
    match (sign.as_char(), next.map(proc_macro2::Punct::as_char)) {
        ('=', Some('=' | '>')) | (':', Some(':')) => None,
        ('=', _) => Some((span, 1)),
        (':', Some('=')) if is_name(&name.to_string()) => {
            let end = next.map_or(span.end, |next| span_of(next.span()).end);
            let start = span.start;
            Some((CellSpan { start, end }, 2))
        }
        (':', _) if is_name(&name.to_string()) => Some((span, 1)),
        _ => None,
    }
}

fn argument(
    text: &str,
    inside: CellSpan,
    span: CellSpan,
    part: &[TokenTree],
    sign: CellSpan,
    value: &[TokenTree],
    comma: Option<CellSpan>,
) -> CallArgument {
    let value_span = match (value.first(), value.last()) {
        (Some(first), Some(last)) => CellSpan {
            start: span_of(first.span()).start,
            end: span_of(last.span()).end,
        },
        _ => CellSpan {
            start: sign.end,
            end: sign.end,
        },
    };
    CallArgument {
        name: part[0].to_string(),
        value: slice(text, value_span).to_owned(),
        name_span: span_of(part[0].span()),
        value_span,
        span,
        drop_span: drop_span(text, inside, span, comma),
    }
}

/// Whether a comma may belong to what stands before it: `x as Map<A, B>`.
fn has_open_generics(part: &[TokenTree]) -> bool {
    part.iter()
        .any(|tree| matches!(tree, TokenTree::Punct(sign) if sign.as_char() == '<'))
}

struct Segment {
    /// Indices of its tokens.
    tokens: Range<usize>,
    /// The comma that ends it.
    comma: Option<usize>,
    /// Whether no comma stands between it and the one before it.
    is_apart: bool,
}

/// Splits at the commas that separate arguments: not at those of `::<A, B>` or of `|a, b|`; and where a
/// comma is missing.
fn segments(trees: &[TokenTree]) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut start = 0;
    let mut index = 0;
    let mut is_apart = false;
    while index < trees.len() {
        match punct(trees, index) {
            Some(',') => {
                segments.push(Segment {
                    tokens: start..index,
                    comma: Some(index),
                    is_apart,
                });
                start = index + 1;
                is_apart = false;
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
            None if index > start && begins_anew(trees, index) => {
                segments.push(Segment {
                    tokens: start..index,
                    comma: None,
                    is_apart,
                });
                start = index;
                is_apart = true;
            }
            _ => {}
        }
        index += 1;
    }
    if start < trees.len() {
        segments.push(Segment {
            tokens: start..trees.len(),
            comma: None,
            is_apart,
        });
    }
    segments
}

/// Whether an expression ends before the token and another one begins with it: no Rust puts two side by
/// side.
fn begins_anew(trees: &[TokenTree], index: usize) -> bool {
    let is_word = |tree: &TokenTree| match tree {
        TokenTree::Ident(word) => !KEYWORDS.contains(&word.to_string().as_str()),
        _ => false,
    };
    let ends = match &trees[index - 1] {
        TokenTree::Literal(_) => true,
        TokenTree::Group(group) => group.delimiter() != Delimiter::None,
        TokenTree::Punct(sign) => sign.as_char() == '?',
        word => is_word(word),
    };
    let begins = matches!(trees[index], TokenTree::Literal(_)) || is_word(&trees[index]);
    // Of a lifetime, `'a`, the name is a token of its own.
    let is_lifetime = index >= 2 && punct(trees, index - 2) == Some('\'');
    ends && begins && !is_lifetime
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

//! Places inside of calls: the field of a value, the statement around a line.

use std::ops::Range;

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

use super::calls::{DEEPEST, span_of};
use crate::CellSpan;

/// The value of `field` in braces within `inside`: `false` of `L { from_logits: false }`.
pub(super) fn field(tokens: &TokenStream, inside: CellSpan, field: &str) -> Option<CellSpan> {
    within(tokens.clone(), inside, field, 0)
}

fn within(tokens: TokenStream, inside: CellSpan, field: &str, depth: usize) -> Option<CellSpan> {
    if depth > DEEPEST {
        return None;
    }
    for tree in tokens {
        let TokenTree::Group(group) = &tree else {
            continue;
        };
        let span = span_of(group.span());
        if span.end < inside.start || span.start > inside.end {
            continue;
        }
        let is_inside = inside.start <= span.start && span.end <= inside.end;
        let found = match is_inside && group.delimiter() == Delimiter::Brace {
            true => of_fields(group.stream(), field),
            false => None,
        };
        let found = found.or_else(|| within(group.stream(), inside, field, depth + 1));
        if found.is_some() {
            return found;
        }
    }
    None
}

fn of_fields(tokens: TokenStream, field: &str) -> Option<CellSpan> {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    let is_comma =
        |tree: &TokenTree| matches!(tree, TokenTree::Punct(sign) if sign.as_char() == ',');
    trees.split(is_comma).find_map(|part| match part {
        [
            TokenTree::Ident(name),
            TokenTree::Punct(colon),
            first,
            rest @ ..,
        ] if name == field && colon.as_char() == ':' && colon.spacing() == Spacing::Alone => {
            Some(CellSpan {
                start: span_of(first.span()).start,
                end: span_of(rest.last().unwrap_or(first).span()).end,
            })
        }
        _ => None,
    })
}

/// The bytes from `start` to the end of the statement that begins there: its `;`, or the bracket that
/// closes the block it stands in.
pub(super) fn statement(tokens: &TokenStream, start: usize) -> Range<usize> {
    start..end(tokens.clone(), start, 0).unwrap_or(usize::MAX)
}

fn end(tokens: TokenStream, start: usize, depth: usize) -> Option<usize> {
    if depth > DEEPEST {
        return None;
    }
    for tree in tokens {
        let span = span_of(tree.span());
        match &tree {
            TokenTree::Group(group) if span.start < start && span.end > start => {
                return end(group.stream(), start, depth + 1).or(Some(span.end));
            }
            TokenTree::Punct(sign) if sign.as_char() == ';' && span.start >= start => {
                return Some(span.end);
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use super::*;

    #[test]
    fn a_field_is_found_in_its_own_argument_only() {
        let text =
            "f!(m, loss = A { b: -1, from_logits: false }.c(0.1), other = B { from_logits: x })";
        let check = |argument: &str, expected: Option<&str>| {
            let tokens = TokenStream::from_str(text).expect("tokens");
            let start = text.find(argument).expect("in the text");
            let end = start + argument.len();
            let found = field(&tokens, CellSpan { start, end }, "from_logits");
            assert_eq!(found.map(|span| &text[span.start..span.end]), expected);
        };
        check("A { b: -1, from_logits: false }.c(0.1)", Some("false"));
        check("B { from_logits: x }", Some("x"));
        check("m", None);
    }

    #[test]
    fn a_statement_ends_at_its_semicolon_or_with_its_block() {
        let text = "scope!(s, { let a = [f(1; 2), g(3)]; h(4) });\nlet b = 1;";
        let check = |from: &str, expected: &str| {
            let tokens = TokenStream::from_str(text).expect("tokens");
            let found = statement(&tokens, text.find(from).expect("in the text"));
            assert_eq!(&text[found], expected);
        };
        check("let a", "let a = [f(1; 2), g(3)];");
        check("h(4)", "h(4) }");
        check("let b", "let b = 1;");
    }
}

//! `scope!` that is not written as it should be: `scope!(strategy) { … }`, `scope!(strategy { … })`, `scope!(strategy, value)`.

use proc_macro2::{Delimiter, Group, Ident, TokenTree};

use super::calls::{Found, inside_of, slice, span_of};
use super::plain::Plain;
use crate::rules::InvalidScopeSyntax;
use crate::{CellSpan, Diagnostic, Edit, Place, Rule};
use stratoscope_render::text;

/// One of them.
pub(super) struct Misplaced {
    /// The name of the macro.
    name: CellSpan,
    /// What it should be, shortened.
    written: String,
    edits: Vec<Edit>,
}

fn insert(at: usize, text: &str) -> Edit {
    Edit {
        place: Place::span(at, at),
        replacement: text.to_owned(),
    }
}

fn is_block(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}

fn is_comma(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Punct(sign) if sign.as_char() == ',')
}

/// What is wrong with `scope!` and this group, if something is; `rest` follows it.
pub(super) fn misplaced(
    text: &str,
    ident: &Ident,
    group: &Group,
    rest: &[TokenTree],
) -> Option<Misplaced> {
    let trees: Vec<TokenTree> = group.stream().into_iter().collect();
    if group.delimiter() != Delimiter::Parenthesis {
        return None;
    }
    let name = span_of(ident.span());
    if let Some(comma) = trees.iter().position(is_comma) {
        return without_braces(text, name, &trees[..comma], &trees[comma + 1..]);
    }
    let strategy = |span: CellSpan| text::excerpt(slice(text, span).trim(), 40);
    match (trees.as_slice(), rest) {
        // The block stands behind the brackets.
        ([_, ..], [block, after @ ..]) if is_block(block) && !trees.iter().any(is_block) => {
            let close = inside_of(group).end;
            let end = span_of(block.span()).end;
            let is_ended = matches!(after.first(), Some(TokenTree::Punct(sign))
                if matches!(sign.as_char(), ';' | '.' | '?'));
            let ending = if is_ended { ")" } else { ");" };
            let gap = Edit {
                place: Place::span(close, span_of(block.span()).start),
                replacement: ", ".to_owned(),
            };
            Some(Misplaced {
                name,
                written: format!("scope!({}, {{ … }});", strategy(inside_of(group))),
                edits: vec![gap, insert(end, ending)],
            })
        }
        // No comma before the block.
        ([strategies @ .., block], _) if is_block(block) && !strategies.is_empty() => {
            let last = strategies.last().map(|tree| span_of(tree.span()).end)?;
            let span = CellSpan {
                start: inside_of(group).start,
                end: last,
            };
            Some(Misplaced {
                name,
                written: format!("scope!({}, {{ … }});", strategy(span)),
                edits: vec![insert(last, ",")],
            })
        }
        // No strategy.
        ([block], _) if is_block(block) => Some(Misplaced {
            name,
            written: "scope!(strategy, { … });".to_owned(),
            edits: vec![insert(inside_of(group).start, "strategy, ")],
        }),
        _ => None,
    }
}

/// `scope!(strategy, Sequential([…])?)`: a value in the place of the block.
fn without_braces(
    text: &str,
    name: CellSpan,
    strategy: &[TokenTree],
    value: &[TokenTree],
) -> Option<Misplaced> {
    let (first, last) = (value.first()?, value.last()?);
    let is_closure = matches!(first, TokenTree::Punct(sign) if sign.as_char() == '|');
    if is_block(last) || is_closure || value.iter().any(is_comma) || strategy.is_empty() {
        return None;
    }
    let strategy = CellSpan {
        start: span_of(strategy.first()?.span()).start,
        end: span_of(strategy.last()?.span()).end,
    };
    let strategy = text::excerpt(slice(text, strategy), 40);
    Some(Misplaced {
        name,
        written: format!("scope!({strategy}, {{ … }});"),
        edits: vec![
            insert(span_of(first.span()).start, "{ "),
            insert(span_of(last.span()).end, " }"),
        ],
    })
}

impl Misplaced {
    /// The finding.
    pub(super) fn diagnostic(&self) -> Diagnostic {
        InvalidScopeSyntax {
            place: Place::Span(self.name),
            written: self.written.clone(),
            edits: self.edits.clone(),
        }
        .diagnostic()
    }
}

/// `scope(strategy, { … })`, which lacks its `!`, unless the notebook has a function or a closure of this name.
pub(super) fn without_its_mark(plain: &Plain, found: &Found) -> Option<Diagnostic> {
    let is_own = found.defined.functions.contains("scope") || found.bound.contains_key("scope");
    let is_one =
        plain.name == "scope" && plain.receiver.is_none() && plain.path.is_none() && !is_own;
    let [strategy, _] = plain.operands.as_slice() else {
        return None;
    };
    if !is_one || !plain.ends_in_block {
        return None;
    }
    let facts = InvalidScopeSyntax {
        place: Place::Span(plain.name_span),
        written: format!("scope!({}, {{ … }});", text::excerpt(&strategy.text, 40)),
        edits: vec![insert(plain.name_span.end, "!")],
    };
    Some(facts.diagnostic())
}

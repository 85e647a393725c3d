//! `2 ** 10` and `x ^ 2`: powers are methods.

use proc_macro2::{TokenStream, TokenTree};

use super::super::calls::{DEEPEST, slice, span_of};
use super::super::{CellContext, fixed};
use super::usage::{begin_of, kind_of_literal};
use crate::rules::NameOfAnotherLibrary;
use crate::{CellSpan, Diagnostic, Edit, Place, Rule};
use stratoscope_cell_syntax::Syntax;
use stratoscope_render::text;

/// A power as it was typed.
struct Power {
    base: CellSpan,
    exponent: CellSpan,
}

/// SC0130 for a power that is written as in Python or on paper.
pub(super) fn answer(
    cell: &Syntax,
    found: &Diagnostic,
    span: CellSpan,
    context: &CellContext,
) -> Option<Diagnostic> {
    let is_stars = found.code == "E0614" && found.message.ends_with("cannot be dereferenced");
    let is_hat = found.code == "E0277"
        && found.message.starts_with("no implementation for")
        && found.message.contains(" ^ ");
    if !is_stars && !is_hat {
        return None;
    }
    let text = cell.text();
    let power = at(cell.tokens()?, span, is_stars, 0)?;
    let (base, exponent) = (slice(text, power.base), slice(text, power.exponent));
    let kind = |value: &str| match kind_of_literal(value) {
        Some("1") => Some(Number::Integer),
        Some("1.0") => Some(Number::Float),
        _ => number(context.variables.get(value)?),
    };
    // rustc names the types of both sides of `^`.
    let named = is_hat.then(|| found.message.split('`').nth(1)).flatten();
    let named = named.and_then(|it| it.split(" ^ ").next());
    let is_open = named.is_some_and(|it| it == "{float}");
    let of_base = named.and_then(number).or_else(|| kind(base));
    let whole = kind_of_literal(exponent) == Some("1") && !exponent.starts_with('-');
    let is_literal = kind_of_literal(base).is_some() || is_open;
    let written = match (of_base, whole) {
        (Some(Number::Integer), true) if is_literal => {
            Some(format!("i32::pow({base}, {exponent})"))
        }
        (Some(Number::Integer), true) => Some(format!("{base}.pow({exponent})")),
        (Some(Number::Float), true) if is_literal => {
            Some(format!("f64::powi({}, {exponent})", bare(base)))
        }
        (Some(Number::Float), true) => Some(format!("{base}.powi({exponent})")),
        (Some(Number::Float), false) if is_literal => {
            Some(format!("f64::powf({}, {exponent})", bare(base)))
        }
        (Some(Number::Float), false) => Some(format!("{base}.powf({exponent})")),
        (Some(Number::Integer), false) => Some(format!("f64::powf({base} as f64, {exponent})")),
        _ => None,
    };
    let place = Place::span(power.base.start, power.exponent.end);
    let edits = written.as_ref().map(|written| Edit {
        place: place.clone(),
        replacement: written.clone(),
    });
    let edits = edits.map(|edit| fixed::tried(cell, vec![edit], context));
    let given = text.get(power.base.start..power.exponent.end)?;
    let facts = NameOfAnotherLibrary {
        given: text::excerpt(given, 60),
        written: Some(written.unwrap_or_else(|| if whole {
            format!("{base}.powi({exponent})")
        } else {
            format!("{base}.powf({exponent})")
        })),
        place,
        reason: "powers are methods: `powi` of floats with an integer, `powf` with a float, `pow` of integers; `^` compares bits"
            .to_owned(),
        edits: edits.unwrap_or_default(),
        label: "not a power in Rust",
    };
    Some(facts.diagnostic())
}

enum Number {
    Integer,
    Float,
}

fn number(of_type: &str) -> Option<Number> {
    let of_type = of_type.trim_start_matches('&');
    match of_type {
        "{float}" | "f32" | "f64" => Some(Number::Float),
        "{integer}" | "usize" | "isize" => Some(Number::Integer),
        _ if of_type.starts_with(['i', 'u']) && of_type[1..].parse::<u8>().is_ok() => {
            Some(Number::Integer)
        }
        _ => None,
    }
}

/// Without the brackets around all of it.
fn bare(base: &str) -> &str {
    let inner = base.strip_prefix('(').and_then(|it| it.strip_suffix(')'));
    inner.filter(|it| !it.contains(['(', ')'])).unwrap_or(base)
}

/// The power whose sign is at this place: `*10` of `2 ** 10`, the hat of `x ^ 2`.
fn at(tokens: TokenStream, span: CellSpan, is_stars: bool, depth: usize) -> Option<Power> {
    if depth > DEEPEST {
        return None;
    }
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    let sign = |at: usize, wanted: char| matches!(trees.get(at), Some(TokenTree::Punct(it)) if it.as_char() == wanted);
    for (index, tree) in trees.iter().enumerate() {
        let place = span_of(tree.span());
        let is_first = place.start == span.start;
        let is_sign = match is_stars {
            true => is_first && sign(index, '*') && index >= 2 && sign(index - 1, '*'),
            false => is_first && sign(index, '^') && index >= 1,
        };
        if is_sign {
            let last = if is_stars { index - 2 } else { index - 1 };
            let begin = begin_of(&trees, last);
            let mut end = index + 1;
            if sign(end, '-') {
                end += 1;
            }
            // What follows the exponent, as its index or its brackets, belongs to it.
            while matches!(trees.get(end + 1), Some(TokenTree::Group(_)))
                && matches!(
                    trees.get(end),
                    Some(TokenTree::Ident(_) | TokenTree::Group(_))
                )
            {
                end += 1;
            }
            let place_of = |from: usize, to: usize| {
                let (first, last) = (trees.get(from)?, trees.get(to)?);
                Some(CellSpan {
                    start: span_of(first.span()).start,
                    end: span_of(last.span()).end,
                })
            };
            return Some(Power {
                base: place_of(begin, last)?,
                exponent: place_of(index + 1, end)?,
            });
        }
        if let TokenTree::Group(group) = tree
            && place.start <= span.start
            && span.start < place.end
        {
            return at(group.stream(), span, is_stars, depth + 1);
        }
    }
    None
}

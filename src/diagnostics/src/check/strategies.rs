//! Which variable holds the strategy that a diagnostic speaks of. The process that runs a cell knows the variables of
//! earlier cells; those that the cell itself makes are read in its text.

use proc_macro2::{TokenStream, TokenTree};
use stratoscope_cell_syntax::{CellSyntax, Syntax};

use super::calls::{DEEPEST, span_of};
use crate::{Diagnostic, UnnamedStrategy};

/// The variables that a cell binds to a strategy it makes, in the order of the text:
/// `let mirrored = MirroredStrategy::logical(2)?;`.
pub(super) fn strategies_made_in(cell: &Syntax) -> Vec<String> {
    let mut names: Vec<String> = made_in(cell).into_iter().map(|made| made.name).collect();
    names.dedup();
    names
}

/// A `let` that makes a strategy.
struct Made {
    name: String,
    /// The lines of the statement up to its value, counted from 1.
    lines: (usize, usize),
}

fn made_in(cell: &Syntax) -> Vec<Made> {
    let mut made = Vec::new();
    if cell.text().contains("Strategy")
        && let Some(tokens) = cell.tokens()
    {
        find(tokens, cell.text(), 0, &mut made);
    }
    made
}

/// Replaces the labels of strategies that the cell makes by the names of their variables. A fix names one
/// without a variable `strategy`.
pub fn name_strategies(cell: impl Into<CellSyntax>, diagnostic: &mut Diagnostic) {
    name(&cell.into(), diagnostic);
}

fn name(cell: &CellSyntax, diagnostic: &mut Diagnostic) {
    let mut unnamed = std::mem::take(&mut diagnostic.unnamed);
    // `mirrored#1` is the beginning of `mirrored#12`.
    unnamed.sort_by_key(|it| std::cmp::Reverse(it.label.len()));
    if !unnamed.is_empty() {
        let made = cell.read(|cell| Some(made_in(cell)));
        let made = made.unwrap_or_default();
        for UnnamedStrategy { label, line } in &unnamed {
            let holds = |it: &&Made| (it.lines.0..=it.lines.1).contains(line);
            let name = made.iter().find(holds).map(|it| it.name.as_str());
            rename(diagnostic, label, name);
        }
    }
    for other in &mut diagnostic.related {
        name(cell, other);
    }
}

fn rename(diagnostic: &mut Diagnostic, label: &str, name: Option<&str>) {
    let replace = |text: &mut String, name: &str| *text = text.replace(label, name);
    if let Some(name) = name {
        replace(&mut diagnostic.message, name);
        diagnostic
            .labels
            .iter_mut()
            .for_each(|it| replace(&mut it.text, name));
        diagnostic.why.iter_mut().for_each(|it| replace(it, name));
        diagnostic
            .evidence
            .iter_mut()
            .for_each(|it| replace(&mut it.value, name));
    }
    let name = name.unwrap_or("strategy");
    for fix in &mut diagnostic.fixes {
        replace(&mut fix.title, name);
        fix.edits
            .iter_mut()
            .for_each(|it| replace(&mut it.replacement, name));
    }
}

fn find(tokens: TokenStream, text: &str, depth: usize, made: &mut Vec<Made>) {
    if depth > DEEPEST {
        return;
    }
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    let is_end = |tree: &TokenTree| matches!(tree, TokenTree::Punct(sign) if sign.as_char() == ';');
    for statement in trees.split(is_end) {
        for tree in statement {
            if let TokenTree::Group(group) = tree {
                find(group.stream(), text, depth + 1, made);
            }
        }
        let [
            TokenTree::Ident(word),
            TokenTree::Ident(name),
            TokenTree::Punct(equals),
            value @ ..,
        ] = statement
        else {
            continue;
        };
        let makes = |pair: &[TokenTree]| {
            matches!(pair, [TokenTree::Ident(kind), TokenTree::Punct(colon)]
                if kind.to_string().ends_with("Strategy") && colon.as_char() == ':')
        };
        if word == "let" && equals.as_char() == '=' && value.windows(2).any(makes) {
            let line = |at: usize| {
                1 + text.as_bytes()[..at]
                    .iter()
                    .filter(|&&it| it == b'\n')
                    .count()
            };
            let end = value.last().map_or(name.span(), TokenTree::span);
            made.push(Made {
                name: name.to_string(),
                lines: (line(span_of(word.span()).start), line(span_of(end).end)),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Severity;

    fn check(text: &str, expected: &[&str]) {
        let made = Syntax::with(text, |cell| Some(strategies_made_in(cell)));
        assert_eq!(made.unwrap_or_default(), expected, "{text}");
    }

    #[test]
    fn a_strategy_is_found_by_what_makes_it() {
        check(
            "let mirrored = MirroredStrategy::logical(2)?;\nlet x = 1;",
            &["mirrored"],
        );
        check(
            "{ let a = stratoscope::prelude::OneDeviceStrategy::new(cpu(0))?; }",
            &["a"],
        );
        check("let n = 1; // MirroredStrategy::", &[]);
        check("use MirroredStrategy as M; let n = 2;", &[]);
    }

    #[test]
    fn strategies_of_the_cell_get_the_names_of_their_variables() {
        let text = "let s1 = MirroredStrategy::logical(2)?;\nlet s2 =\n    MirroredStrategy::logical(4)?;\nf();";
        let finding = |lines: [usize; 2]| {
            let mut found = Diagnostic::new(
                "SC0201",
                Severity::Error,
                "in the scope of `mirrored#1`, not of `mirrored#12`",
            )
            .fix("write `scope!(mirrored#12, { … })`");
            let labels = ["mirrored#1", "mirrored#12"];
            let unnamed = labels.iter().zip(lines);
            found.unnamed = unnamed
                .map(|(label, line)| UnnamedStrategy {
                    label: (*label).to_owned(),
                    line,
                })
                .collect();
            found
        };
        let mut named = Diagnostic::new("SC0102", Severity::Error, "x").related(finding([1, 3]));
        name_strategies(text, &mut named);
        let named = &named.related[0];
        assert_eq!(named.message, "in the scope of `s1`, not of `s2`");
        assert_eq!(named.fixes[0].title, "write `scope!(s2, { … })`");
        let mut unknown = finding([4, 4]);
        name_strategies(text, &mut unknown);
        assert!(unknown.message.contains("`mirrored#12`"));
        assert_eq!(unknown.fixes[0].title, "write `scope!(strategy, { … })`");
    }
}

//! Where a pattern stands and no value: there `Name(…)` is no call.

use std::ops::Range;

use proc_macro2::{Delimiter, TokenTree};

/// The patterns of the arms of a `match` among these tokens, each up to its `=>` or its `if`.
pub(super) fn of_arms(trees: &[TokenTree]) -> Vec<Range<usize>> {
    let is_arrow = |at: &usize| sign(trees, *at) == Some('=') && sign(trees, at + 1) == Some('>');
    let arrows = (0..trees.len()).filter(is_arrow);
    let pattern = |arrow: usize| {
        let mut start = arrow;
        while start > 0 && !ends_arm(trees, start - 1, arrow) {
            start -= 1;
        }
        let guard = (start..arrow).find(|&at| is_word(trees, at, "if"));
        start..guard.unwrap_or(arrow)
    };
    arrows.map(pattern).collect()
}

/// Whether what ends with the token at `at` is no part of the pattern before the `=>` at `arrow`.
fn ends_arm(trees: &[TokenTree], at: usize, arrow: usize) -> bool {
    match &trees[at] {
        TokenTree::Punct(punct) => match punct.as_char() {
            ',' | ';' => true,
            '>' => at > 0 && sign(trees, at - 1) == Some('='),
            _ => false,
        },
        // A block, behind which the arm needs no comma. A pattern with fields goes on, or ends at the `=>`.
        TokenTree::Group(group) => {
            let goes_on =
                at + 1 == arrow || sign(trees, at + 1) == Some('|') || is_word(trees, at + 1, "if");
            let is_body =
                at >= 2 && sign(trees, at - 1) == Some('>') && sign(trees, at - 2) == Some('=');
            group.delimiter() == Delimiter::Brace && (is_body || !goes_on)
        }
        _ => false,
    }
}

/// Whether the `Name(…)` at an index can only be a pattern: `for Name(n) in`, `|Name(n)|`, `Name(n): T`.
pub(super) fn is_one(trees: &[TokenTree], index: usize) -> bool {
    let before = index.checked_sub(1);
    let is_typed = sign(trees, index + 2) == Some(':') && sign(trees, index + 3) != Some(':');
    let is_of_a_loop = before.is_some_and(|at| is_word(trees, at, "for"));
    let is_of_a_closure = before.is_some_and(|at| opens_closure(trees, at))
        && matches!(sign(trees, index + 2), Some('|' | ','));
    is_typed || is_of_a_loop || is_of_a_closure
}

/// Whether the bar at an index is the first one of a closure: a closure's value follows the second.
fn opens_closure(trees: &[TokenTree], at: usize) -> bool {
    let is_bar = sign(trees, at) == Some('|');
    let stands_first = at.checked_sub(1).is_none_or(|before| {
        matches!(sign(trees, before), Some(',' | '=')) || is_word(trees, before, "move")
    });
    is_bar && stands_first
}

fn sign(trees: &[TokenTree], at: usize) -> Option<char> {
    match trees.get(at) {
        Some(TokenTree::Punct(punct)) => Some(punct.as_char()),
        _ => None,
    }
}

fn is_word(trees: &[TokenTree], at: usize, word: &str) -> bool {
    matches!(trees.get(at), Some(TokenTree::Ident(it)) if it == word)
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use proc_macro2::TokenStream;

    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let tokens = TokenStream::from_str(text).expect("tokens");
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        let patterns = of_arms(&trees).into_iter().map(|pattern| {
            let words: Vec<String> = trees[pattern].iter().map(ToString::to_string).collect();
            words.join(" ")
        });
        assert_eq!(patterns.collect::<Vec<_>>(), expected, "{text}");
    }

    #[test]
    fn a_closure_has_patterns_between_its_bars_alone() {
        for (text, expected) in [
            ("|Adam(r)| r", true),
            ("f = |Adam(r), x| r", true),
            ("3, move |Adam(r)| r", true),
            ("|r| Adam(r), 3", false),
            ("|| Adam(1e-3), 3", false),
            ("0..5, |seed| Adam(seed),", false),
        ] {
            let tokens = TokenStream::from_str(text).expect("tokens");
            let trees: Vec<TokenTree> = tokens.into_iter().collect();
            let adam = (0..trees.len()).find(|&at| is_word(&trees, at, "Adam"));
            assert_eq!(
                is_one(&trees, adam.expect("it is there")),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn the_patterns_of_a_match() {
        check("A(n) => 1, B | C => 2", &["A (n)", "B | C"]);
        check("A => { 1 } B(n) if n > 2 => 3,", &["A", "B (n)"]);
        check("P => {} Q => {}", &["P", "Q"]);
        check("a = b; c >= d", &[]);
        check("| A => {} | B => {}", &["| A", "| B"]);
    }
}

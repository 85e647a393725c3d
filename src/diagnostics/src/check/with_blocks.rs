//! SC0128 for `with strategy.scope() { … }`: Python's statement with the braces of Rust.

use super::scan::closing_brace;
use crate::rules::InvalidScopeSyntax;
use crate::{Diagnostic, Edit, Place, Rule};
use stratoscope_render::text;

/// In `code` texts and comments are blank.
pub(super) fn answer(cell: &str, code: &str) -> Option<Diagnostic> {
    const WORD: &str = "with ";
    let start = code.match_indices(WORD).map(|(at, _)| at).find(|&at| {
        let is_first = code[..at].trim_end_matches([' ', '\t']).is_empty()
            || code[..at]
                .trim_end_matches([' ', '\t'])
                .ends_with(['\n', ';', '{', '}']);
        let line = code[at..].lines().next().unwrap_or_default();
        is_first && line.contains(".scope()")
    })?;
    let end_of_scope = start + code[start..].find(".scope()")?;
    let strategy = code[start + WORD.len()..end_of_scope].trim();
    let is_name =
        !strategy.is_empty() && strategy.chars().all(|it| it.is_alphanumeric() || it == '_');
    if !is_name {
        return None;
    }
    let behind = end_of_scope + ".scope()".len();
    let open = behind + code[behind..].find('{')?;
    // `with strategy.scope() as s {`, with a `:`, or nothing.
    if code[behind..open].contains(['\n', ';']) {
        return None;
    }
    let close = closing_brace(code, open)?;
    let is_ended = code[close + 1..].trim_start().starts_with(';');
    let ending = if is_ended { "})" } else { "});" };
    let facts = InvalidScopeSyntax {
        place: Place::span(start, behind),
        written: format!("scope!({}, {{ … }});", text::excerpt(strategy, 40)),
        edits: vec![
            Edit {
                place: Place::span(start, open + 1),
                replacement: format!("scope!({strategy}, {{"),
            },
            Edit {
                place: Place::span(close, close + 1),
                replacement: ending.to_owned(),
            },
        ],
    };
    cell.get(start..close)?;
    Some(facts.diagnostic())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::apply;

    #[test]
    fn a_with_block_becomes_a_scope() {
        for (cell, expected) in [
            (
                "let s = f()?;\nwith s.scope() {\n    let a = { 1 };\n}\na",
                "let s = f()?;\nscope!(s, {\n    let a = { 1 };\n});\na",
            ),
            (
                "with s.scope(): {\n    g();\n};",
                "scope!(s, {\n    g();\n});",
            ),
        ] {
            let found = answer(cell, cell).expect("a block");
            assert_eq!(apply(cell, &found.fixes[0]).as_deref(), Some(expected));
        }
        assert_eq!(
            answer("let with_it = s.scope();", "let with_it = s.scope();"),
            None
        );
        assert_eq!(
            answer("with s.scope():\n    g()", "with s.scope():\n    g()"),
            None
        );
    }
}

//! From the text of a cell to Rust tokens whose spans are bytes of that text.
//!
//! A cell is not quite Rust: `:dep`, `%magic` and `!cmd` are lines for the kernel. They are blanked,
//! byte for byte, so that every position stays what it is.

use std::str::FromStr;

use proc_macro2::TokenStream;
use syn::parse::Parser;

use crate::deep_stack::on_deep_stack;

/// Longer texts are checked by their tokens alone: syn descends once per operator.
pub(super) const MOST_PARSED: usize = 32 * 1024;
/// Longer texts are not looked at.
const MOST_READ: usize = 1024 * 1024;
/// Room for the deepest nesting that fits into `MOST_PARSED` bytes.
const STACK: usize = 128 * 1024 * 1024;

/// What the lines for the kernel say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    /// `%%scope` stands above the cell.
    pub scope: bool,
}

/// Hands the cell's tokens to `read`, on a thread of its own: its stack holds any nesting, and the
/// source map that spans point into goes when it ends. `None` where the text is no Rust.
pub(super) fn with_tokens<R: Send>(
    text: &str,
    read: impl FnOnce(TokenStream, Header) -> R + Send,
) -> Option<R> {
    if text.len() > MOST_READ {
        return None;
    }
    with_room(|| {
        let (tokens, header) = tokens(text)?;
        Some(read(tokens, header))
    })
}

fn tokens(text: &str) -> Option<(TokenStream, Header)> {
    // A line that begins with `%` or `!` can be the rest of an expression; only if the cell is no Rust
    // with such lines left in are they taken for the kernel's.
    let head = parse(&blank(text, Lines::AtTheTop));
    let tokens = head.or_else(|| parse(&blank(text, Lines::Everywhere)))?;
    let scope = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .and_then(|line| line.strip_prefix("%%scope"))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace));
    Some((tokens, Header { scope }))
}

/// The text with all lines for the kernel replaced by spaces.
pub(super) fn blank_everywhere(text: &str) -> String {
    blank(text, Lines::Everywhere)
}

/// Whether a text is Rust. To be asked where there is room for its nesting: within [`with_room`].
pub(super) fn is_rust(text: &str) -> bool {
    tokens(text).is_some()
}

/// Reads a text that may be no Rust, on a thread whose stack holds any nesting.
pub(super) fn with_room<R: Send>(read: impl FnOnce() -> Option<R> + Send) -> Option<R> {
    // After a panic there is no finding: rustc tells.
    on_deep_stack("cell-check", STACK, read)
}

fn parse(text: &str) -> Option<TokenStream> {
    let tokens = TokenStream::from_str(text).ok()?;
    if text.len() > MOST_PARSED {
        return Some(tokens);
    }
    let statements = syn::Block::parse_within.parse2(tokens.clone()).is_ok();
    (statements || syn::parse2::<syn::File>(tokens.clone()).is_ok()).then_some(tokens)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Lines {
    AtTheTop,
    Everywhere,
}

/// The text with lines for the kernel replaced by as many spaces as they have bytes.
fn blank(text: &str, lines: Lines) -> String {
    let mut blanked = String::with_capacity(text.len());
    let mut top = true;
    for line in text.split_inclusive('\n') {
        let code = line.trim_start_matches('\u{feff}').trim();
        let for_kernel = is_for_kernel(code);
        if for_kernel && (top || lines == Lines::Everywhere) {
            blanked.extend(
                line.bytes()
                    .map(|byte| if byte == b'\n' { '\n' } else { ' ' }),
            );
        } else if let Some(rest) = line.strip_prefix('\u{feff}') {
            // The lexer would drop the mark and shift every span.
            blanked.push_str("   ");
            blanked.push_str(rest);
        } else {
            blanked.push_str(line);
        }
        top &= for_kernel || code.is_empty() || code.starts_with("//");
    }
    blanked
}

fn is_for_kernel(code: &str) -> bool {
    let mut chars = code.chars();
    match chars.next() {
        Some(':') => chars.next().is_some_and(|c| c.is_ascii_alphabetic()),
        Some('%' | '!') => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let blanked = blank(text, Lines::Everywhere);
        assert_eq!(blanked.len(), text.len());
        assert_eq!(blanked, expected);
    }

    #[test]
    fn lines_for_the_kernel_become_spaces() {
        check(":dep ü\nlet x = 1;", "       \nlet x = 1;");
        check("let x = 1;\n%time\n", "let x = 1;\n     \n");
        check("::std::mem::drop(1)", "::std::mem::drop(1)");
        check("\u{feff}x", "   x");
    }

    #[test]
    fn a_continued_expression_is_left_alone() {
        let text = "let a = 7\n    % 3;";
        assert_eq!(
            with_tokens(text, |tokens, _| tokens.to_string()).as_deref(),
            Some("let a = 7 % 3 ;")
        );
    }

    #[test]
    fn the_scope_of_a_whole_cell_is_seen() {
        for (text, expected) in [
            ("%%scope mirrored\nlet x = 1;", true),
            ("\n%%scope s", true),
            ("%%scoped s", false),
            ("let x = 1;", false),
        ] {
            let header = with_tokens(text, |_, header| header);
            assert_eq!(header, Some(Header { scope: expected }), "{text}");
        }
    }

    #[test]
    fn nothing_ends_the_process() {
        let deep = "(".repeat(15_000) + &")".repeat(15_000);
        let prefix = "!".repeat(32_000) + "x";
        let assigned = "a=".repeat(16_000) + "a";
        for text in [
            deep.as_str(),
            &prefix,
            &assigned,
            "compile!(",
            "\"",
            "'",
            "\u{0}",
        ] {
            let _ = with_tokens(text, |tokens, _| tokens.is_empty());
        }
    }
}

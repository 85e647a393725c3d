//! From the text of a cell to Rust tokens and statements whose spans are bytes of that text.
//!
//! A cell is not quite Rust: `:dep`, `%magic` and `!cmd` are lines for the kernel. They are blanked,
//! byte for byte, so that every position stays what it is.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use proc_macro2::TokenStream;
use syn::parse::Parser;
use syn::{Block, Stmt};

use crate::deep_stack::on_deep_stack;

/// Longer texts have tokens alone: syn descends once per operator.
pub const MAX_PARSED_BYTES: usize = 32 * 1024;
/// Longer texts are not looked at.
const MAX_READ_BYTES: usize = 1024 * 1024;
/// Room for the deepest nesting that fits into [`MAX_PARSED_BYTES`].
pub const STACK_BYTES: usize = 128 * 1024 * 1024;

/// See [`parsed_texts`].
static PARSED_TEXTS: AtomicU64 = AtomicU64::new(0);

/// How many texts this process has parsed. Tests ask whether that of a cell is parsed once.
pub fn parsed_texts() -> u64 {
    PARSED_TEXTS.load(Ordering::Relaxed)
}

/// What is parsed.
#[derive(Clone)]
pub(crate) struct Source {
    pub text: Arc<str>,
    /// Before this byte there is no Rust.
    pub head: usize,
}

/// What a parser makes of a text.
pub struct Syntax {
    text: Arc<str>,
    in_scope: bool,
    is_as_typed: bool,
    parsed: Parsed,
}

/// A text that was parsed as it stands.
#[derive(Default)]
struct Parsed {
    is_rust: bool,
    tokens: Option<TokenStream>,
    statements: Option<Vec<Stmt>>,
    error: Option<syn::Error>,
}

impl Syntax {
    /// Parses a text. To be called where there is room for its nesting: by whatever reads a `Syntax`, or within
    /// [`Syntax::with`].
    pub fn of(text: &str) -> Self {
        Self::read(Source {
            text: text.into(),
            head: 0,
        })
    }

    /// What `read` makes of a text that nobody else reads, such as a cell after a fix, on a thread of its own.
    pub fn with<R: Send>(text: &str, read: impl FnOnce(&Self) -> Option<R> + Send) -> Option<R> {
        on_deep_stack("cell-syntax", STACK_BYTES, || read(&Self::of(text)))
    }

    pub(crate) fn read(Source { text, head }: Source) -> Self {
        let in_scope = is_in_scope(&text);
        if text.len() > MAX_READ_BYTES {
            return Self {
                text,
                in_scope,
                is_as_typed: false,
                parsed: Parsed::default(),
            };
        }
        // A line that begins with `%` or `!` can be the rest of an expression; only if the cell is no Rust
        // with such lines left in are they taken for the kernel's.
        let rust = without_head(&text, head);
        let mut blanked = blank(&rust, Lines::AtTheTop);
        let mut parsed = Parsed::of(&blanked);
        if !parsed.is_rust {
            let everywhere = blank(&rust, Lines::Everywhere);
            // The same text would have the same error.
            if everywhere != blanked {
                parsed = Parsed::of(&everywhere);
                blanked = everywhere;
            }
        }
        let is_as_typed = blanked == without_marks(&rust);
        Self {
            text,
            in_scope,
            is_as_typed,
            parsed,
        }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is Rust, apart from its lines for the kernel.
    pub fn is_rust(&self) -> bool {
        self.parsed.is_rust
    }

    /// Whether `%%scope` stands above the cell.
    pub fn in_scope(&self) -> bool {
        self.in_scope
    }

    /// The tokens; `None` where the text is no Rust.
    pub fn tokens(&self) -> Option<TokenStream> {
        let tokens = self.parsed.tokens.as_ref();
        tokens.filter(|_| self.parsed.is_rust).cloned()
    }

    /// The tokens of a text that is no Rust, and why it is none; `None` where it is Rust, or has no tokens.
    pub fn broken(&self) -> Option<(&TokenStream, &syn::Error)> {
        let error = self.parsed.error.as_ref();
        let error = error.filter(|_| !self.parsed.is_rust)?;
        Some((self.parsed.tokens.as_ref()?, error))
    }

    /// The statements. `None` where the text is no Rust, is longer than [`MAX_PARSED_BYTES`], or has attributes of a whole file.
    pub fn statements(&self) -> Option<&[Stmt]> {
        self.parsed.statements.as_deref()
    }

    /// The statements if they are all that the text has: no line among them was taken for the kernel's.
    pub fn statements_as_typed(&self) -> Option<&[Stmt]> {
        self.statements().filter(|_| self.is_as_typed)
    }
}

impl Parsed {
    fn of(text: &str) -> Self {
        PARSED_TEXTS.fetch_add(1, Ordering::Relaxed);
        let Ok(tokens) = TokenStream::from_str(text) else {
            return Self::default();
        };
        let mut parsed = Self {
            is_rust: true,
            tokens: Some(tokens.clone()),
            ..Self::default()
        };
        if text.trim_start().len() > MAX_PARSED_BYTES {
            return parsed;
        }
        match Block::parse_within.parse2(tokens.clone()) {
            Ok(statements) => parsed.statements = Some(statements),
            Err(error) => {
                parsed.is_rust = syn::parse2::<syn::File>(tokens).is_ok();
                parsed.error = Some(error);
            }
        }
        parsed
    }
}

/// Whether `%%scope` stands above the cell.
fn is_in_scope(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty());
    let rest = first.and_then(|line| line.strip_prefix("%%scope"));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
}

/// The text with all lines for the kernel replaced by spaces.
pub fn blank_everywhere(text: &str) -> String {
    blank(text, Lines::Everywhere)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Lines {
    AtTheTop,
    Everywhere,
}

/// The text with spaces for everything before a byte: comments there belong to no statement.
fn without_head(text: &str, head: usize) -> String {
    let (before, rust) = text.split_at(head);
    let blank = |byte| if byte == b'\n' { '\n' } else { ' ' };
    before.bytes().map(blank).chain(rust.chars()).collect()
}

/// The text with lines for the kernel replaced by as many spaces as they have bytes.
fn blank(text: &str, lines: Lines) -> String {
    let mut blanked = String::with_capacity(text.len());
    let mut top = true;
    for line in text.split_inclusive('\n') {
        let code = line.trim_start_matches(MARK).trim();
        let for_kernel = is_for_kernel(code);
        if for_kernel && (top || lines == Lines::Everywhere) {
            blanked.extend(
                line.bytes()
                    .map(|byte| if byte == b'\n' { '\n' } else { ' ' }),
            );
        } else {
            push_without_mark(line, &mut blanked);
        }
        top &= for_kernel || code.is_empty() || code.starts_with("//");
    }
    blanked
}

/// The byte order mark, which the lexer would drop, shifting every span.
const MARK: char = '\u{feff}';

fn push_without_mark(line: &str, text: &mut String) {
    match line.strip_prefix(MARK) {
        Some(rest) => *text += &("   ".to_owned() + rest),
        None => text.push_str(line),
    }
}

fn without_marks(text: &str) -> String {
    let mut found = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        push_without_mark(line, &mut found);
    }
    found
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
        let tokens = Syntax::with(text, |syntax| Some(syntax.tokens()?.to_string()));
        assert_eq!(tokens.as_deref(), Some("let a = 7 % 3 ;"));
    }

    #[test]
    fn the_scope_of_a_whole_cell_is_seen() {
        for (text, expected) in [
            ("%%scope mirrored\nlet x = 1;", true),
            ("\n%%scope s", true),
            ("%%scoped s", false),
            ("let x = 1;", false),
        ] {
            let in_scope = Syntax::with(text, |syntax| Some(syntax.in_scope()));
            assert_eq!(in_scope, Some(expected), "{text}");
        }
    }

    #[test]
    fn statements_are_those_of_the_code_as_it_stands() {
        let places = |text: &str, head: usize| {
            let source = Source {
                text: text.into(),
                head,
            };
            on_deep_stack("test", STACK_BYTES, || {
                let syntax = Syntax::read(source);
                let statements = syntax.statements_as_typed()?.iter();
                let spans = statements.map(|it| syn::spanned::Spanned::span(it).byte_range());
                let spans = spans.map(|it| (it.start, it.end));
                Some(spans.collect::<Vec<_>>())
            })
        };
        assert_eq!(places("ü(); f();", 0), Some(vec![(0, 5), (6, 10)]));
        // A comment above the code is none of a statement.
        assert_eq!(places("// ü\n/// a\nf();", 12), Some(vec![(12, 16)]));
        assert_eq!(places("%a\nf();", 0), None, "the line is still there");
        assert_eq!(places("f();\n%a", 0), None);
        assert_eq!(places("f(", 0), None);
    }

    #[test]
    fn a_text_that_is_no_rust_is_parsed_once_and_has_an_error() {
        let end = Syntax::with("let x = ", |syntax| {
            let (tokens, error) = syntax.broken()?;
            assert!(!syntax.is_rust() && syntax.tokens().is_none());
            Some((tokens.clone().into_iter().count(), error.to_string()))
        });
        let (tokens, error) = end.expect("tokens");
        assert_eq!(tokens, 3);
        assert!(error.starts_with("unexpected end of input"), "{error}");
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
            let _ = Syntax::with(text, |syntax| Some(syntax.is_rust()));
        }
    }
}

//! The tokens of Rust code, by rustc's own lexer: text in strings and comments is never taken for code, however
//! far a cell that is being typed is from compiling.

use std::ops::Range;

use ra_ap_rustc_lexer::{FrontmatterAllowed, LiteralKind, TokenKind, tokenize};

/// What a token is, as far as brackets, completion and limits of nesting need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `(`, `[` or `{`.
    Open,
    /// `)`, `]` or `}`.
    Close,
    /// `,`
    Comma,
    /// `;`
    Semicolon,
    /// An operator that a chain of expressions is made of: `+`, `.`, `?` and the like.
    Operator,
    /// A string literal of any kind. `is_closed`: its closing quote is there.
    Text {
        /// See [`Kind::Text`].
        is_closed: bool,
    },
    /// A comment to the end of the line, without the line end.
    LineComment,
    /// A block comment, which may contain others.
    BlockComment {
        /// Its end is there.
        is_closed: bool,
    },
    /// White space.
    Space,
    /// Names, numbers, characters, lifetimes and all other signs.
    Other,
}

/// A token and the bytes that it consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Its place in the text. A string with a prefix (`b"…"`, `c"…"`) begins at its quote, a raw string at its `r`.
    pub range: Range<usize>,
}

/// The tokens of `code[from..to]`, with places in `code`. Together they cover all of it, prefixes of strings aside.
pub fn tokens(code: &str, range: Range<usize>) -> Vec<Token> {
    each_token(code, range).collect()
}

/// As [`tokens`], read one by one.
pub fn each_token(code: &str, range: Range<usize>) -> impl Iterator<Item = Token> {
    let mut at = range.start;
    let text = &code[range];
    tokenize(text, FrontmatterAllowed::No).map(move |token| {
        let start = at;
        at += token.len as usize;
        let prefix = match token.kind {
            TokenKind::Literal { kind, .. } => prefix_bytes(kind),
            _ => 0,
        };
        Token {
            kind: kind_of(token.kind),
            range: start + prefix..at,
        }
    })
}

fn kind_of(kind: TokenKind) -> Kind {
    match kind {
        TokenKind::OpenParen | TokenKind::OpenBracket | TokenKind::OpenBrace => Kind::Open,
        TokenKind::CloseParen | TokenKind::CloseBracket | TokenKind::CloseBrace => Kind::Close,
        TokenKind::Comma => Kind::Comma,
        TokenKind::Semi => Kind::Semicolon,
        TokenKind::Whitespace => Kind::Space,
        TokenKind::LineComment { .. } => Kind::LineComment,
        TokenKind::BlockComment { terminated, .. } => Kind::BlockComment {
            is_closed: terminated,
        },
        TokenKind::Plus
        | TokenKind::Minus
        | TokenKind::Star
        | TokenKind::Slash
        | TokenKind::And
        | TokenKind::Or
        | TokenKind::Bang
        | TokenKind::Dot
        | TokenKind::Percent
        | TokenKind::Caret
        | TokenKind::Lt
        | TokenKind::Question => Kind::Operator,
        TokenKind::Literal { kind, .. } => match is_closed(kind) {
            Some(is_closed) => Kind::Text { is_closed },
            None => Kind::Other,
        },
        _ => Kind::Other,
    }
}

/// Whether a string literal has its closing quote; `None`: it is no string.
fn is_closed(kind: LiteralKind) -> Option<bool> {
    match kind {
        LiteralKind::Str { terminated }
        | LiteralKind::ByteStr { terminated }
        | LiteralKind::CStr { terminated } => Some(terminated),
        LiteralKind::RawStr { n_hashes }
        | LiteralKind::RawByteStr { n_hashes }
        | LiteralKind::RawCStr { n_hashes } => Some(n_hashes.is_some()),
        _ => None,
    }
}

fn prefix_bytes(kind: LiteralKind) -> usize {
    match kind {
        LiteralKind::ByteStr { .. }
        | LiteralKind::CStr { .. }
        | LiteralKind::RawByteStr { .. }
        | LiteralKind::RawCStr { .. } => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_in_comments_and_brackets_in_strings_are_no_code() {
        let open = |code: &str| {
            let tokens = tokens(code, 0..code.len());
            tokens.iter().filter(|it| it.kind == Kind::Open).count()
        };
        for (code, expected) in [
            ("/* ( /* [ */ { */ f(1)", 1),
            ("f(\"(\", b\"(\", c\"(\", r#\"(\"(\"#, '(', '\\'')", 1),
            ("// (\nf(", 1),
            ("let x: &'a str = [", 1),
            ("/* (", 0),
        ] {
            assert_eq!(open(code), expected, "{code}");
        }
    }

    #[test]
    fn places_are_those_of_the_whole_text() {
        let code = "!ls\nf(b\"é\")";
        let text = tokens(code, 4..code.len())
            .into_iter()
            .find(|it| matches!(it.kind, Kind::Text { .. }))
            .expect("a string");
        assert_eq!(&code[text.range], "\"é\"");
    }
}

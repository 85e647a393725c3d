//! Where in a cell a cursor is: in which call, in which argument, at which word. The text is being
//! typed, so nothing here needs it to be whole.

use std::ops::Range;

/// What stands around byte `cursor` of a cell.
#[derive(Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The brackets that are open at the cursor, innermost last.
    pub open: Vec<Bracket<'a>>,
    /// The name that the cursor is in or behind; empty between two others.
    pub word: Range<usize>,
    /// The cursor is in a text that begins at this byte, its quote included.
    pub text: Option<usize>,
    /// The cursor is in a comment.
    pub comment: bool,
}

/// A bracket that is open at the cursor.
#[derive(Debug, PartialEq, Eq)]
pub struct Bracket<'a> {
    /// `fit!`, `new` or `weight_decay` before it; empty where nothing is called.
    pub called: &'a str,
    /// The first byte of the element that the cursor is in.
    pub element: usize,
    /// How many elements come before that one.
    pub index: usize,
    /// The names in `name = value` of all its elements but the cursor's, those behind it included.
    pub given: Vec<&'a str>,
}

/// A piece of a cell that brackets, commas, texts and comments are told from.
enum Token {
    Open,
    Close,
    Comma,
    /// Whether it has an end, behind which the cursor is outside.
    Text {
        ends: bool,
    },
    /// As a text; a line's comment goes on where the line does.
    Comment {
        ends: bool,
    },
}

impl Token {
    /// Whether it is one that a cursor behind its last byte is outside of.
    fn ends(&self) -> bool {
        !matches!(
            self,
            Self::Text { ends: false } | Self::Comment { ends: false }
        )
    }
}

/// Looks around byte `cursor`, which is on a character's border.
pub fn find(code: &str, cursor: usize) -> Place<'_> {
    let tokens = tokens(code);
    let inside = |kind: fn(&Token) -> bool| {
        tokens.iter().find(|(token, range)| {
            kind(token)
                && range.start < cursor
                && (cursor < range.end || (cursor == range.end && !token.ends()))
        })
    };
    let text = inside(|token| matches!(token, Token::Text { .. })).map(|(_, range)| range.start);
    let comment = inside(|token| matches!(token, Token::Comment { .. })).is_some();
    let mut open: Vec<(usize, Bracket<'_>)> = Vec::new();
    for (token, range) in tokens.iter().take_while(|(_, range)| range.start < cursor) {
        match token {
            Token::Open => {
                let bracket = Bracket {
                    called: name_before(code, range.start),
                    element: range.end,
                    index: 0,
                    given: Vec::new(),
                };
                open.push((range.end, bracket));
            }
            Token::Close => drop(open.pop()),
            Token::Comma => {
                if let Some((_, bracket)) = open.last_mut() {
                    bracket.element = range.end;
                    bracket.index += 1;
                }
            }
            Token::Text { .. } | Token::Comment { .. } => {}
        }
    }
    Place {
        open: open
            .into_iter()
            .map(|(start, bracket)| Bracket {
                given: given(code, &tokens, start, bracket.element),
                ..bracket
            })
            .collect(),
        word: word(code, cursor),
        text,
        comment,
    }
}

/// The names of the elements of the bracket whose inside begins at `start`, without the element `but`.
fn given<'a>(
    code: &'a str,
    tokens: &[(Token, Range<usize>)],
    start: usize,
    but: usize,
) -> Vec<&'a str> {
    let mut names = Vec::new();
    let mut element = start;
    let mut depth = 0_usize;
    let mut take = |element: usize| {
        if element != but {
            names.extend(name_of(&code[element..]));
        }
    };
    for (token, range) in tokens.iter().filter(|(_, range)| range.start >= start) {
        match token {
            Token::Open => depth += 1,
            Token::Close if depth == 0 => break,
            Token::Close => depth -= 1,
            Token::Comma if depth == 0 => {
                take(element);
                element = range.end;
            }
            _ => {}
        }
    }
    take(element);
    names
}

/// The name of an element `name = value`.
pub fn name_of(element: &str) -> Option<&str> {
    let element = element.trim_start();
    let end = element.find(|it: char| !is_name(it))?;
    let rest = element[end..].trim_start();
    let assigns = rest.starts_with('=') && !rest.starts_with("==") && !rest.starts_with("=>");
    (end > 0 && assigns).then_some(&element[..end])
}

/// The name, with its `!`, that ends at byte `end`.
fn name_before(code: &str, end: usize) -> &str {
    let before = code[..end].trim_end();
    let bare = before.strip_suffix('!').unwrap_or(before);
    let start = bare
        .char_indices()
        .rev()
        .take_while(|(_, it)| is_name(*it))
        .last();
    start.map_or("", |(start, _)| &before[start..])
}

/// The name around byte `cursor`.
pub fn word(code: &str, cursor: usize) -> Range<usize> {
    let before = code[..cursor].chars().rev().take_while(|it| is_name(*it));
    let after = code[cursor..].chars().take_while(|it| is_name(*it));
    let length = |names: &mut dyn Iterator<Item = char>| names.map(char::len_utf8).sum::<usize>();
    cursor - length(&mut before.into_iter())..cursor + length(&mut after.into_iter())
}

/// Whether a name may contain it.
pub fn is_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn tokens(code: &str) -> Vec<(Token, Range<usize>)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(character) = code[at..].chars().next() {
        let rest = &code[at..];
        let (token, length) = match character {
            '(' | '[' | '{' => (Some(Token::Open), 1),
            ')' | ']' | '}' => (Some(Token::Close), 1),
            ',' => (Some(Token::Comma), 1),
            '/' if rest.starts_with("//") => {
                let end = rest.find('\n');
                let ends = end.is_some();
                (
                    Some(Token::Comment { ends }),
                    end.map_or(rest.len(), |end| end + 1),
                )
            }
            '/' if rest.starts_with("/*") => {
                let end = rest[2..].find("*/");
                let ends = end.is_some();
                (
                    Some(Token::Comment { ends }),
                    end.map_or(rest.len(), |end| end + 4),
                )
            }
            '"' => {
                let end = text_end(rest);
                let ends = end.is_some();
                (Some(Token::Text { ends }), end.unwrap_or(rest.len()))
            }
            // `r"…"` and `r#"…"#`, but not a name that ends in r.
            'r' if !code[..at].ends_with(is_name) => match raw_text(rest) {
                Some(end) => {
                    let ends = end.is_some();
                    (Some(Token::Text { ends }), end.unwrap_or(rest.len()))
                }
                None => (None, 1),
            },
            '\'' => (None, character_length(rest)),
            other => (None, other.len_utf8()),
        };
        if let Some(token) = token {
            found.push((token, at..at + length));
        }
        at += length;
    }
    found
}

/// The end of a text that begins with a quote, if it has one.
fn text_end(rest: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The end of `r#"…"#`, if it has one; the outer `None`: it is no such text.
fn raw_text(rest: &str) -> Option<Option<usize>> {
    let hashes = rest[1..].bytes().take_while(|&byte| byte == b'#').count();
    let inside = rest[1 + hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let start = rest.len() - inside.len();
    Some(inside.find(&end).map(|at| start + at + end.len()))
}

/// `'a'` and `'\n'`; a lifetime is one byte long, its name is a name.
fn character_length(rest: &str) -> usize {
    let mut characters = rest.char_indices().skip(1);
    let Some((_, first)) = characters.next() else {
        return 1;
    };
    if first == '\\' {
        return rest[2..].find('\'').map_or(1, |at| at + 3);
    }
    match characters.next() {
        Some((at, '\'')) => at + 1,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cursor is at `|`.
    fn at(marked: &str) -> (String, usize) {
        let cursor = marked.find('|').expect("a cursor");
        (marked.replacen('|', "", 1), cursor)
    }

    #[test]
    fn the_innermost_call_and_its_element_are_found() {
        for (marked, called, index, given, word) in [
            ("fit!(model, data, ep|)", "fit!", 2, vec![], "ep"),
            (
                "fit!(model, data, epochs = 3, |)",
                "fit!",
                3,
                vec!["epochs"],
                "",
            ),
            (
                "fit!(m, d, ba|, epochs = 3)",
                "fit!",
                2,
                vec!["epochs"],
                "ba",
            ),
            (
                "fit!(m, f(1, 2), x = [1, 2], ep|",
                "fit!",
                3,
                vec!["x"],
                "ep",
            ),
            ("compile!(m, metrics = [acc|])", "", 0, vec![], "acc"),
            ("compile!(m, /* a, ( */ lo|", "compile!", 1, vec![], "lo"),
            (
                "fit!(m, \"a, (\", ')', r#\"(\"#, ep|",
                "fit!",
                4,
                vec![],
                "ep",
            ),
            ("AdamW::new(5e-5|", "new", 0, vec![], "5e"),
        ] {
            let (code, cursor) = at(marked);
            let place = find(&code, cursor);
            let bracket = place.open.last().expect("a bracket");
            assert_eq!(bracket.called, called, "{marked}");
            assert_eq!((bracket.index, &bracket.given), (index, &given), "{marked}");
            if !word.is_empty() && !word.starts_with('5') {
                assert_eq!(&code[place.word], word, "{marked}");
            }
        }
    }

    #[test]
    fn texts_and_comments_are_told_from_code() {
        for (marked, text, comment) in [
            ("f(\"ab|", true, false),
            ("f(\"ab|\")", true, false),
            ("f(\"ab\"|", false, false),
            ("f(\"ab\\\"|", true, false),
            ("x // note|", false, true),
            ("x // note\n|y", false, false),
            ("x /* a */ |y", false, false),
            ("&'a str|", false, false),
            ("'\\''|", false, false),
            ("|", false, false),
        ] {
            let (code, cursor) = at(marked);
            let place = find(&code, cursor);
            assert_eq!(
                (place.text.is_some(), place.comment),
                (text, comment),
                "{marked}"
            );
        }
    }

    #[test]
    fn every_cursor_of_odd_texts_has_a_place() {
        for code in [
            "'",
            "'\\",
            "\"\\",
            "r#\"",
            "r#",
            "fit!((((",
            "))]",
            "/*",
            "größe𝄞 = 'ß",
            "fit!(a = b == c)",
        ] {
            for cursor in (0..=code.len()).filter(|&at| code.is_char_boundary(at)) {
                find(code, cursor);
            }
        }
    }
}

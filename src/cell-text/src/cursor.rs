//! Where in a cell a cursor is: in which call, in which argument, at which word. The text is being typed, so it need not
//! be complete.

use std::ops::Range;

use crate::ParsedCell;
use crate::tokens::{Kind, Token};

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

/// Looks around byte `cursor`, which is on a character's border.
pub fn find(code: &str, cursor: usize) -> Place<'_> {
    let tokens = ParsedCell::of(code).tokens;
    let around = tokens.iter().find(|token| contains(token, cursor));
    let text = around.filter(|token| matches!(token.kind, Kind::Text { .. }));
    let text = text.map(|token| token.range.start);
    let comment = around.is_some() && text.is_none();
    let mut open: Vec<(usize, Bracket<'_>)> = Vec::new();
    for Token { kind, range } in tokens.iter().take_while(|it| it.range.start < cursor) {
        match kind {
            Kind::Open => {
                let bracket = Bracket {
                    called: name_before(code, range.start),
                    element: range.end,
                    index: 0,
                    given: Vec::new(),
                };
                open.push((range.end, bracket));
            }
            Kind::Close => drop(open.pop()),
            Kind::Comma => {
                if let Some((_, bracket)) = open.last_mut() {
                    bracket.element = range.end;
                    bracket.index += 1;
                }
            }
            _ => {}
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

/// Whether a cursor is inside a string or a comment. One that has its end does not contain a cursor behind it.
fn contains(token: &Token, cursor: usize) -> bool {
    let is_open_at_its_end = match token.kind {
        Kind::Text { is_closed } | Kind::BlockComment { is_closed } => !is_closed,
        Kind::LineComment => true,
        _ => return false,
    };
    let Range { start, end } = token.range;
    start < cursor && (cursor < end || (cursor == end && is_open_at_its_end))
}

/// The names of the elements of the bracket whose inside begins at `start`, without the element `but`.
fn given<'a>(code: &'a str, tokens: &[Token], start: usize, but: usize) -> Vec<&'a str> {
    let mut names = Vec::new();
    let mut element = start;
    let mut depth = 0_usize;
    let mut take = |element: usize| {
        if element != but {
            names.extend(name_of(&code[element..]));
        }
    };
    for Token { kind, range } in tokens.iter().filter(|it| it.range.start >= start) {
        match kind {
            Kind::Open => depth += 1,
            Kind::Close if depth == 0 => break,
            Kind::Close => depth -= 1,
            Kind::Comma if depth == 0 => {
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
    fn strings_and_comments_are_distinguished_from_code() {
        for (marked, text, comment) in [
            ("f(\"ab|", true, false),
            ("f(\"ab|\")", true, false),
            ("f(\"ab\"|", false, false),
            ("f(\"ab\\\"|", true, false),
            ("x // note|", false, true),
            ("x // note\n|y", false, false),
            ("x /* a */ |y", false, false),
            ("x /* a /* b */ |c */ y", false, true),
            ("!echo it's\nf(\"a|", true, false),
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

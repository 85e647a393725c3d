//! What rust-analyzer is asked instead of the cell as it is typed.
//!
//! - A name where a value can stand is asked about in a statement of its own, `let x: i32 = ke` as `let x: i32 = {();ke;}`:
//!   where rust-analyzer knows the type that is expected, it searches for whole expressions of that type, which takes
//!   seconds and panics in the version that evcxr brings. evcxr has no setting for it.
//! - A member is asked about without the part that is typed: the list of all members shows what type they are of
//!   ([`super::members`]).

use std::ops::Range;

use stratoscope_cell_text::ParsedCell;
use stratoscope_cell_text::cursor::{self, is_name};
use stratoscope_cell_text::rewrite::parse_deep;
use stratoscope_cell_text::tokens::Kind;

/// What stands at the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Something behind a dot.
    Member,
    /// Something behind `::`.
    Path,
    /// A name where a value can stand.
    Value,
    /// Anything else: a type, a pattern, the name of what is defined.
    Other,
}

/// See the module.
#[derive(Debug)]
pub struct Question {
    /// What stands at the cursor.
    pub asked: Asked,
    /// The text for rust-analyzer.
    pub text: String,
    /// The byte of it to complete at.
    pub cursor: usize,
    /// The name at the cursor, in the cell.
    pub word: Range<usize>,
    /// The cursor in the cell.
    pub typed_to: usize,
}

/// Before a name in a statement of its own. Behind the brace alone an empty name would still be the initializer's.
const ALONE: &str = "{();";

/// What may follow a value until what is around it is complete.
const TAILS: [&str; 3] = [";", "", " {}"];

/// Words behind which a value begins. Behind another name or a closing bracket none does.
const BEFORE_VALUES: [&str; 8] = [
    "break", "else", "if", "in", "match", "move", "return", "while",
];

impl Question {
    /// About byte `cursor` of `code`, a cell without its magics.
    pub fn at(code: &str, cursor: usize) -> Self {
        let word = cursor::word(code, cursor);
        let before = &code[..word.start];
        let asked = if before.ends_with("::") {
            Asked::Path
        } else if before.ends_with('.') && !before.ends_with("..") {
            Asked::Member
        } else if !code[word.end..].starts_with('!') && is_value(code, &word) {
            Asked::Value
        } else {
            Asked::Other
        };
        match asked {
            Asked::Member | Asked::Path => Self {
                asked,
                text: format!("{before}{}", &code[word.end..]),
                cursor: word.start,
                word,
                typed_to: cursor,
            },
            Asked::Value => Self::about_value(code, cursor),
            Asked::Other => Self::in_place(code, cursor),
        }
    }

    /// The cell as it is typed.
    pub fn in_place(code: &str, cursor: usize) -> Self {
        Self {
            asked: Asked::Other,
            text: code.to_owned(),
            cursor,
            word: cursor::word(code, cursor),
            typed_to: cursor,
        }
    }

    /// The name at the cursor in a statement of its own.
    pub fn about_value(code: &str, cursor: usize) -> Self {
        let word = cursor::word(code, cursor);
        let (before, behind) = (&code[..word.start], &code[word.end..]);
        Self {
            asked: Asked::Value,
            text: format!("{before}{ALONE}{};}}{behind}", &code[word.clone()]),
            cursor: cursor + ALONE.len(),
            word,
            typed_to: cursor,
        }
    }
}

/// Whether a value can stand in place of the word: whether the cell up to there parses with a block in its place.
fn is_value(code: &str, word: &Range<usize>) -> bool {
    let parsed = ParsedCell::of(code);
    let body = parsed.body();
    let Some(before) = code.get(body.start..word.start) else {
        return false;
    };
    if !may_precede_value(before) {
        return false;
    }
    let mut closing = Vec::new();
    for token in parsed
        .tokens
        .iter()
        .skip_while(|it| it.range.start < body.start)
    {
        if token.range.start >= word.start {
            break;
        }
        match (token.kind, code.get(token.range.clone())) {
            (Kind::Open, Some("(")) => closing.push(')'),
            (Kind::Open, Some("[")) => closing.push(']'),
            (Kind::Open, _) => closing.push('}'),
            (Kind::Close, _) => drop(closing.pop()),
            _ => {}
        }
    }
    let closing: String = closing.into_iter().rev().collect();
    let parses = |text: &str| {
        let parsed = syn::parse::Parser::parse_str(syn::Block::parse_within, text);
        parsed.is_ok()
    };
    let any = parse_deep(before, |before| {
        TAILS.iter().any(|tail| {
            let text = format!("{before}{{x;}}{tail}{closing}");
            parses(&text) || parses(&(text + ";"))
        })
    });
    any.unwrap_or(false)
}

fn may_precede_value(before: &str) -> bool {
    let before = before.trim_end();
    let last: String = before.chars().rev().take_while(|it| is_name(*it)).collect();
    let last: String = last.chars().rev().collect();
    if last.is_empty() {
        return !before.ends_with([')', ']', '"', '\'', '#']);
    }
    BEFORE_VALUES.contains(&&*last)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cursor is at `|`, also in what is asked.
    fn check(marked: &str, asked: Asked, expected: &str) {
        let cursor = marked.find('|').expect("a cursor");
        let code = marked.replacen('|', "", 1);
        let question = Question::at(&code, cursor);
        let mut text = question.text;
        text.insert(question.cursor, '|');
        assert_eq!((question.asked, &*text), (asked, expected), "{marked}");
    }

    #[test]
    fn a_value_is_asked_about_where_no_type_is_expected() {
        for (marked, expected) in [
            ("let x: i32 = |", "let x: i32 = {();|;}"),
            ("let n: usize = ke|", "let n: usize = {();ke|;}"),
            ("return |", "return {();|;}"),
            ("let v = keep; v|", "let v = keep; {();v|;}"),
            ("ke|", "{();ke|;}"),
            ("f(1, |)", "f(1, {();|;})"),
            ("f(1, g[ke|", "f(1, g[{();ke|;}"),
            ("if ke| > 1 { f() }", "if {();ke|;} > 1 { f() }"),
            ("for i in ke|", "for i in {();ke|;}"),
            ("match ke|", "match {();ke|;}"),
            ("match a { 1 => ke|", "match a { 1 => {();ke|;}"),
            ("let p = P { x: ke|", "let p = P { x: {();ke|;}"),
            (
                "fn f() -> u8 {\n    ke|\n}",
                "fn f() -> u8 {\n    {();ke|;}\n}",
            ),
            ("println!(\"{}\", ke|)", "println!(\"{}\", {();ke|;})"),
            (
                "// größe\nlet x = ke|\n\n",
                "// größe\nlet x = {();ke|;}\n\n",
            ),
        ] {
            check(marked, Asked::Value, expected);
        }
    }

    #[test]
    fn types_patterns_and_names_are_asked_about_in_their_places() {
        for marked in [
            "let x: i3|",
            "let ke|",
            "fn f(x: u|",
            "struct P|",
            "impl Cl|",
            "x as u|",
            "use st|",
            "prin|!(1)",
            "let v: Vec<u|",
            "match a { So|",
            "#[der|",
            "fn f() wh|",
            "let (a, b|",
        ] {
            check(marked, Asked::Other, marked);
        }
    }

    #[test]
    fn members_are_asked_about_as_a_whole() {
        check("net.pl|.x", Asked::Member, "net.|.x");
        check("größe.|", Asked::Member, "größe.|");
        check("Vec::<u8>::wi|(3)", Asked::Path, "Vec::<u8>::|(3)");
        check("for i in 0..ke|", Asked::Value, "for i in 0..{();ke|;}");
    }
}

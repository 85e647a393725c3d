//! A look at a cell that is no Rust, character by character: which brackets and texts have no end, which
//! texts stand in single quotes, where comments of Python begin.

use crate::CellSpan;

/// What has no other half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// A bracket that is opened and never closed; the bracket that stands where its other half is expected.
    Unclosed {
        at: usize,
        bracket: char,
        found: Option<(usize, char)>,
    },
    /// A closing bracket that closes nothing.
    Unopened { at: usize, bracket: char },
    /// A text that begins here.
    Text { at: usize },
    /// A comment `/*` that begins here.
    Comment { at: usize },
}

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// The first flaw.
    pub flaw: Option<Flaw>,
    /// `'several letters'`.
    pub quoted: Vec<CellSpan>,
    /// `# …` up to the end of its line.
    pub comments: Vec<CellSpan>,
    /// `f"…"` and the like: the letter.
    pub prefixed: Vec<CellSpan>,
    /// The text with blanks, byte for byte, for what stands in texts and comments.
    pub code: String,
}

/// The other half of a bracket.
pub(super) fn closing(bracket: char) -> char {
    match bracket {
        '(' => ')',
        '[' => ']',
        _ => '}',
    }
}

/// The brace that closes the one at `open`. Texts and comments are blank.
pub(super) fn closing_brace(code: &str, open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, sign) in code[open..].char_indices() {
        match sign {
            '{' => depth += 1,
            '}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(open + at);
        }
    }
    None
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    open: Vec<(usize, char)>,
    /// Brackets whose other half begins a line that is not indented as theirs.
    crooked: Option<(usize, char)>,
    scan: Scan,
}

/// Reads a cell.
pub(super) fn scan(text: &str) -> Scan {
    let mut scanner = Scanner {
        text,
        at: 0,
        open: Vec::new(),
        crooked: None,
        scan: Scan::default(),
    };
    scanner.run();
    let Scanner {
        open,
        crooked,
        mut scan,
        ..
    } = scanner;
    if scan.flaw.is_none()
        && let Some(&(at, bracket)) = open.last()
    {
        // A bracket further in may have taken the other half of this one.
        let (at, bracket) = crooked
            .filter(|(other, _)| *other > at)
            .unwrap_or((at, bracket));
        scan.flaw = Some(Flaw::Unclosed {
            at,
            bracket,
            found: None,
        });
    }
    scan
}

impl Scanner<'_> {
    fn run(&mut self) {
        while let Some(character) = self.rest().chars().next() {
            if self.scan.flaw.is_some() {
                // The rest is not looked at, but stays for those who look for words.
                let rest = self.rest().to_owned();
                self.scan.code.push_str(&rest);
                return;
            }
            match character {
                '/' if self.rest().starts_with("//") => self.blank(self.line_length()),
                '/' if self.rest().starts_with("/*") => self.comment(),
                '#' if self.is_comment_of_python() => {
                    let length = self.line_length();
                    self.scan.comments.push(self.span(length));
                    self.blank(length);
                }
                '"' => self.text(),
                '\'' => self.quote(),
                'r' if self.is_raw() => self.raw(),
                'f' if self.begins_word() && self.rest().starts_with("f\"") => {
                    self.scan.prefixed.push(self.span(1));
                    self.keep(1);
                }
                'f' if self.begins_word() && self.rest().starts_with("f'") => {
                    self.scan.prefixed.push(self.span(1));
                    self.keep(1);
                }
                '(' | '[' | '{' => {
                    self.open.push((self.at, character));
                    self.keep(1);
                }
                ')' | ']' | '}' => self.close(character),
                _ => self.keep(character.len_utf8()),
            }
        }
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn span(&self, length: usize) -> CellSpan {
        CellSpan {
            start: self.at,
            end: self.at + length,
        }
    }

    fn line_length(&self) -> usize {
        self.rest().find('\n').unwrap_or(self.rest().len())
    }

    fn keep(&mut self, length: usize) {
        self.scan
            .code
            .push_str(&self.text[self.at..self.at + length]);
        self.at += length;
    }

    fn blank(&mut self, length: usize) {
        for byte in self.text[self.at..self.at + length].bytes() {
            self.scan.code.push(if byte == b'\n' { '\n' } else { ' ' });
        }
        self.at += length;
    }

    /// Whether the character before this one is no part of a word.
    fn begins_word(&self) -> bool {
        let before = self.text[..self.at].chars().next_back();
        !before.is_some_and(|it| it.is_alphanumeric() || it == '_')
    }

    fn is_comment_of_python(&self) -> bool {
        let before = self.text[..self.at].chars().next_back();
        let follows = self.rest()[1..].chars().next();
        // An attribute of Rust.
        let is_attribute = matches!(follows, Some('[' | '!' | '"' | '#'));
        before.is_none_or(char::is_whitespace) && !is_attribute
    }

    fn comment(&mut self) {
        let mut depth = 0_usize;
        let mut at = 0;
        let rest = self.rest();
        while at < rest.len() {
            if rest[at..].starts_with("/*") {
                depth += 1;
                at += 2;
            } else if rest[at..].starts_with("*/") {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return self.blank(at);
                }
            } else {
                at += rest[at..].chars().next().map_or(1, char::len_utf8);
            }
        }
        self.scan.flaw = Some(Flaw::Comment { at: self.at });
    }

    /// A text in double quotes: the quotes stay.
    fn text(&mut self) {
        let mut escaped = false;
        let end = self.rest()[1..].char_indices().find(|&(_, character)| {
            let is_end = character == '"' && !escaped;
            escaped = character == '\\' && !escaped;
            is_end
        });
        let Some((end, _)) = end else {
            self.scan.flaw = Some(Flaw::Text { at: self.at });
            return;
        };
        self.keep(1);
        self.blank(end);
        self.keep(1);
    }

    fn is_raw(&self) -> bool {
        let rest = &self.rest()[1..];
        let hashes = rest.len() - rest.trim_start_matches('#').len();
        self.begins_word() && rest[hashes..].starts_with('"')
    }

    fn raw(&mut self) {
        let rest = &self.rest()[1..];
        let hashes = rest.len() - rest.trim_start_matches('#').len();
        let end = format!("\"{}", "#".repeat(hashes));
        let begin = 2 + hashes;
        match self.rest()[begin..].find(&end) {
            Some(length) => self.blank(begin + length + end.len()),
            None => self.scan.flaw = Some(Flaw::Text { at: self.at }),
        }
    }

    /// A character, a lifetime, or a text in single quotes.
    fn quote(&mut self) {
        let rest = self.rest();
        let inner = &rest[1..];
        let line = &inner[..inner.find('\n').unwrap_or(inner.len())];
        let character_length = match inner.chars().next() {
            Some('\\') => line[1..].find('\'').map(|end| 1 + end),
            Some('\'') | None => None,
            Some(character) => inner[character.len_utf8()..]
                .starts_with('\'')
                .then_some(character.len_utf8()),
        };
        if let Some(length) = character_length
            && length <= 12
        {
            return self.blank(length + 2);
        }
        let name = inner
            .find(|it: char| !it.is_alphanumeric() && it != '_')
            .unwrap_or(inner.len());
        let before = self.text[..self.at].trim_end().chars().next_back();
        // `f'…'`.
        let is_prefixed = self
            .scan
            .prefixed
            .last()
            .is_some_and(|it| it.end == self.at);
        let is_value = is_prefixed || matches!(before, Some('(' | '=' | '[' | '{' | ':' | ','));
        let after_name = inner[name..].chars().next();
        let is_lifetime = !is_value
            || (before == Some(',') || before == Some(':') || before == Some('{'))
                && matches!(after_name, Some('>' | ',' | ':' | '+'));
        match line.find('\'') {
            Some(length) if after_name == Some('\'') || !is_lifetime => {
                let span = self.span(length + 2);
                self.scan.quoted.push(span);
                self.keep(1);
                self.blank(length);
                self.keep(1);
            }
            _ => self.keep(1),
        }
    }

    fn close(&mut self, character: char) {
        let at = self.at;
        match self.open.last().copied() {
            None => {
                self.scan.flaw = Some(Flaw::Unopened {
                    at,
                    bracket: character,
                });
            }
            Some((opened, bracket)) if closing(bracket) != character => {
                self.scan.flaw = Some(Flaw::Unclosed {
                    at: opened,
                    bracket,
                    found: Some((at, character)),
                });
            }
            Some(opened) => {
                let before = &self.text[..at];
                let line = &before[before.rfind('\n').map_or(0, |newline| newline + 1)..];
                let is_first = line.trim().is_empty() && before[opened.0..].contains('\n');
                if is_first && self.crooked.is_none() && line.len() != self.indent_of(opened.0) {
                    self.crooked = Some(opened);
                }
                self.open.pop();
                self.keep(1);
            }
        }
    }

    /// Bytes of space before the line of a place.
    fn indent_of(&self, at: usize) -> usize {
        let start = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let line = &self.text[start..];
        line.len() - line.trim_start_matches([' ', '\t']).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<Flaw>) {
        let seen = scan(text);
        assert_eq!(seen.flaw, expected, "{text}");
        assert_eq!(seen.code.len().max(text.len()), text.len(), "{text}");
    }

    fn unclosed(text: &str, bracket: char, found: Option<char>) {
        let Some(Flaw::Unclosed {
            at,
            bracket: seen,
            found: other,
        }) = scan(text).flaw
        else {
            panic!("{text}: {:?}", scan(text));
        };
        assert_eq!((seen, other.map(|(_, it)| it)), (bracket, found), "{text}");
        assert!(text[at..].starts_with(bracket), "{text}");
    }

    #[test]
    fn brackets_and_texts_without_their_other_half() {
        check("let v = [1, (2), {3}];", None);
        check(
            "let a = \"(\"; let b = '('; // (\n/* ( /* */ */ r#\"(\"#",
            None,
        );
        check(
            "fn f<'a>(x: &'a str, y: &'a str) -> &'a str { 'b: loop { break 'b } }",
            None,
        );
        unclosed("let v = vec![1, 2, 3;", '[', None);
        unclosed("println!(\"{}\", v[0);", '[', Some(')'));
        unclosed("fn f() { if x { }", '{', None);
        unclosed("f(g(1);\n", '(', None);
        check(
            "let x = 1);",
            Some(Flaw::Unopened {
                at: 9,
                bracket: ')',
            }),
        );
        check("let s = \"hello;", Some(Flaw::Text { at: 8 }));
        check("let s = \"a\\\";", Some(Flaw::Text { at: 8 }));
        check("1 /* x", Some(Flaw::Comment { at: 2 }));
    }

    #[test]
    fn of_nested_brackets_the_one_is_meant_that_took_anothers_end() {
        let text = "compile!(model,\n    optimizer = AdamW::new(5e-5,\n    loss = x,\n)?;";
        let Some(Flaw::Unclosed { at, .. }) = scan(text).flaw else {
            panic!("{:?}", scan(text));
        };
        assert_eq!(&text[..at], "compile!(model,\n    optimizer = AdamW::new");
    }

    #[test]
    fn strings_in_single_quotes_are_not_lifetimes() {
        for (text, expected) in [
            ("let a = 'hello';", vec!["'hello'"]),
            ("f('a b', 'c d')", vec!["'a b'", "'c d'"]),
            ("metrics = ['accuracy', 'mae']", vec!["'accuracy'", "'mae'"]),
            ("let c = ['a', '\\n', '\\u{1F600}', 'ß'];", vec![]),
            ("fn f<'a, 'b>(x: &'a str, y: &'b str) {}", vec![]),
            ("struct S<'a, T: 'a>(&'a T);", vec![]),
            ("'outer: loop { break 'outer; }", vec![]),
        ] {
            let seen = scan(text);
            let quoted: Vec<&str> = seen
                .quoted
                .iter()
                .map(|it| &text[it.start..it.end])
                .collect();
            assert_eq!(quoted, expected, "{text}");
        }
    }

    #[test]
    fn comments_of_python_are_no_attributes() {
        let text =
            "# load (the data\nx = 1  # here's it\n#[derive(Debug)]\nstruct S;\n#![allow(x)]";
        let seen = scan(text);
        assert_eq!(seen.comments.len(), 2);
        assert_eq!(seen.flaw, None);
    }
}

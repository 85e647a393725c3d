//! How deep a cell is nested. Parsers and the trees that they make recurse; a cell of nothing but
//! brackets or operators would use up the stack of the kernel itself, so it is refused before.

/// Brackets inside brackets.
const DEEPEST: usize = 200;
/// Operators one behind the other, with nothing that ends an expression between them.
const LONGEST: usize = 3000;

/// Why a cell is nested too deep, and on which line. `None`: it is not.
pub fn too_deep(code: &str) -> Option<(usize, String)> {
    // How many operators there are in the present expression, for each bracket around it.
    let mut operators = vec![0_usize];
    for (at, byte) in Code::of(code) {
        let (what, most, fix) = match byte {
            b'(' | b'[' | b'{' => {
                operators.push(0);
                if operators.len() <= DEEPEST {
                    continue;
                }
                ("brackets", DEEPEST, "give the inner parts names with `let`")
            }
            b')' | b']' | b'}' => {
                if operators.len() > 1 {
                    operators.pop();
                }
                if let (b'}', Some(count)) = (byte, operators.last_mut()) {
                    *count = 0;
                }
                continue;
            }
            b';' | b',' => {
                if let Some(count) = operators.last_mut() {
                    *count = 0;
                }
                continue;
            }
            b'+' | b'-' | b'*' | b'/' | b'&' | b'|' | b'!' | b'.' | b'%' | b'^' | b'<' | b'?' => {
                if let Some(count) = operators.last_mut() {
                    *count += 1;
                }
                if operators.iter().sum::<usize>() <= LONGEST {
                    continue;
                }
                ("operators", LONGEST, "divide the expression with `let`")
            }
            _ => continue,
        };
        let line = crate::rewrite::line_of(code, at);
        return Some((
            line,
            format!("more than {most} {what} inside each other, which no compiler takes; {fix}"),
        ));
    }
    None
}

/// The bytes of the code outside of texts and comments.
struct Code<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Code<'a> {
    fn of(text: &'a str) -> Self {
        let text = text.as_bytes();
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'a [u8] {
        &self.text[self.at.min(self.text.len())..]
    }

    /// Goes on behind the next `end`, or at the end of the text.
    fn skip_to(&mut self, end: &[u8]) {
        let found = self.rest().windows(end.len()).position(|it| it == end);
        self.at += found.map_or(self.rest().len(), |it| it + end.len());
    }

    fn skip_text(&mut self) {
        self.at += 1;
        while let Some(&byte) = self.rest().first() {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == b'"' {
                return;
            }
        }
    }

    fn skip_block_comment(&mut self) {
        let mut depth = 0;
        while !self.rest().is_empty() {
            if self.rest().starts_with(b"/*") {
                depth += 1;
                self.at += 2;
            } else if self.rest().starts_with(b"*/") {
                depth -= 1;
                self.at += 2;
                if depth == 0 {
                    return;
                }
            } else {
                self.at += 1;
            }
        }
    }

    /// `r"…"`, `r#"…"#` and so on, if it is one.
    fn skip_raw_text(&mut self) -> bool {
        let is_in_a_word = self.at > 0 && {
            let before = self.text[self.at - 1];
            before != b'b' && before != b'c' && (before.is_ascii_alphanumeric() || before == b'_')
        };
        let hashes = self.rest()[1..]
            .iter()
            .take_while(|it| **it == b'#')
            .count();
        if is_in_a_word || self.rest().get(1 + hashes) != Some(&b'"') {
            return false;
        }
        self.at += 2 + hashes;
        let end = [b"\"".as_slice(), &vec![b'#'; hashes]].concat();
        self.skip_to(&end);
        true
    }

    /// `'('`, if it is one, and no lifetime.
    fn skip_character(&mut self) {
        match self.rest() {
            [_, b'\\', _, ..] => {
                self.at += 3;
                self.skip_to(b"'");
            }
            [_, _, b'\'', ..] => self.at += 3,
            _ => self.at += 1,
        }
    }
}

impl Iterator for Code<'_> {
    type Item = (usize, u8);

    fn next(&mut self) -> Option<(usize, u8)> {
        loop {
            match self.rest() {
                [] => return None,
                [b'/', b'/', ..] => self.skip_to(b"\n"),
                [b'/', b'*', ..] => self.skip_block_comment(),
                [b'"', ..] => self.skip_text(),
                [b'\'', ..] => self.skip_character(),
                [b'r', ..] if self.skip_raw_text() => {}
                [byte, ..] => {
                    self.at += 1;
                    return Some((self.at - 1, *byte));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_no_compiler_takes_is_refused() {
        let check = |code: &str, expected: Option<usize>| {
            let found = too_deep(code).map(|(line, _)| line);
            let begin: String = code.chars().take(60).collect();
            assert_eq!(found, expected, "{begin}");
        };
        check("", None);
        check("f(\")\", ')', '\\'', r#\"(\"#) // (((", None);
        for open in ["(", "[", "{", "x[", "f(a, "] {
            check(&open.repeat(50_000), Some(1));
            check(&open.repeat(150), None);
            check(&format!("\n// {}\n", open.repeat(50_000)), None);
            check(&format!("let x = \"{}\";", open.repeat(50_000)), None);
            check(&format!("/* {} /* */ */", open.repeat(50_000)), None);
        }
        for operator in ["-", "!", "&", "x + ", "x.y()", "a || "] {
            check(&format!("\n{}1", operator.repeat(50_000)), Some(2));
            check(&format!("{}1", operator.repeat(1000)), None);
        }
        check(&"let x = a + b;\n".repeat(5000), None);
        check(&format!("vec![{}]", "-1.5, ".repeat(9000)), None);
        check(&"if a { b } else ".repeat(3000), None);
        check(&format!("'{}", "é".repeat(3)), None);
    }
}

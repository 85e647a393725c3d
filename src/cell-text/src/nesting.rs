//! How deep a cell is nested. Parsers and the trees that they make recurse; a cell of nothing but
//! brackets or operators would overflow the stack of the kernel itself, so it is refused before.

use crate::tokens::{Kind, Token};

/// Brackets inside brackets.
const MAX_BRACKETS: usize = 200;
/// Operators one behind the other, with nothing that ends an expression between them.
const MAX_OPERATORS: usize = 3000;
/// Calls and indices of one another, as in `f()()` and `a[0].b[0]`, and signs one behind the other, as in `--a` and `a??`.
/// rust-analyzer, which infers their types, takes a time that grows with the square of the number, and does not listen to
/// an interrupt.
const MAX_LINKS: usize = 250;

/// What a `?` counts among them: two traits decide its type.
const LINKS_OF_QUESTION_MARK: usize = 3;

/// What was counted between two brackets.
#[derive(Default)]
struct Level {
    operators: usize,
    /// See [`MAX_LINKS`].
    links: usize,
}

/// The line on which a cell is nested too deep, and the message. `None`: it is not.
pub fn too_deep(code: &str, tokens: &[Token]) -> Option<(usize, String)> {
    // The present expression, for each bracket around it.
    let mut levels = vec![Level::default()];
    let mut before: Option<&Token> = None;
    for token in tokens {
        if matches!(
            token.kind,
            Kind::Space | Kind::LineComment | Kind::BlockComment { .. }
        ) {
            continue;
        }
        let follows = before.filter(|before| ends_value(code, before));
        before = Some(token);
        let (what, most, fix) = match over(code, &mut levels, token, follows) {
            Some(Limit::Brackets) => (
                "brackets inside each other",
                MAX_BRACKETS,
                "give the inner parts names with `let`",
            ),
            Some(Limit::Operators) => (
                "operators inside each other",
                MAX_OPERATORS,
                "divide the expression with `let`",
            ),
            Some(Limit::Links) => (
                "calls, indices or signs one behind the other",
                MAX_LINKS,
                "divide the expression with `let`",
            ),
            None => continue,
        };
        let line = crate::rewrite::line_of(code, token.range.start);
        let message = format!("more than {most} {what}, which no compiler takes; {fix}");
        return Some((line, message));
    }
    None
}

enum Limit {
    Brackets,
    Operators,
    Links,
}

/// Counts a token; the limit that it exceeds. `follows`: the end of a value that stands before it.
fn over(
    code: &str,
    levels: &mut Vec<Level>,
    token: &Token,
    follows: Option<&Token>,
) -> Option<Limit> {
    let level = levels.last_mut()?;
    match token.kind {
        Kind::Open => {
            let is_index = &code[token.range.clone()] == "[";
            match follows.map(|it| it.kind) {
                None => level.links = 0,
                // The call of a method: its name makes the type known, or not.
                Some(Kind::Other) if !is_index => {}
                Some(_) => level.links += 1,
            }
            if level.links > MAX_LINKS {
                return Some(Limit::Links);
            }
            levels.push(Level::default());
            (levels.len() > MAX_BRACKETS).then_some(Limit::Brackets)
        }
        Kind::Close => {
            if levels.len() > 1 {
                levels.pop();
            }
            if let ("}", Some(level)) = (&code[token.range.clone()], levels.last_mut()) {
                *level = Level::default();
            }
            None
        }
        Kind::Semicolon | Kind::Comma => {
            *level = Level::default();
            None
        }
        Kind::Operator => {
            level.operators += 1;
            match (&code[token.range.clone()], follows) {
                (".", _) => {}
                ("?", _) => level.links += LINKS_OF_QUESTION_MARK,
                // `--a`: no value stands before the second sign.
                (_, None) => level.links += 1,
                _ => level.links = 0,
            }
            if level.links > MAX_LINKS {
                return Some(Limit::Links);
            }
            let operators: usize = levels.iter().map(|it| it.operators).sum();
            (operators > MAX_OPERATORS).then_some(Limit::Operators)
        }
        _ => None,
    }
}

/// Whether a value may end with a token, so that a bracket behind it calls or indexes that value.
fn ends_value(code: &str, token: &Token) -> bool {
    let text = &code[token.range.clone()];
    match token.kind {
        Kind::Close => text != "}",
        Kind::Operator => text == "?",
        Kind::Text { .. } => true,
        // A name, a number or a character.
        Kind::Other => text.starts_with(|it: char| it.is_alphanumeric() || it == '_' || it == '\''),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::ParsedCell;

    #[test]
    fn only_what_no_compiler_takes_is_refused() {
        let check = |code: &str, expected: Option<usize>| {
            let found = ParsedCell::of(code).too_deep().map(|(line, _)| line);
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
        for operator in ["x + ", "x.y()", "a || "] {
            check(&format!("\n{}1", operator.repeat(50_000)), Some(2));
            check(&format!("{}1", operator.repeat(1000)), None);
        }
        for sign in ["-", "!", "&", "*"] {
            check(&format!("\n{}1", sign.repeat(50_000)), Some(2));
            check(&format!("{}1", sign.repeat(240)), None);
        }
        check(&format!("a{}", "?".repeat(100)), Some(1));
        check(&format!("a{}", ".b()?".repeat(80)), None);
        check(&"a + -b - !c && &d;\n".repeat(1000), None);
        check(&format!("{}1", "a? + ".repeat(1000)), None);
        check(&format!("s{}", " + \"a\"".repeat(1000)), None);
        check(&format!("{}d", "c == 'a' || ".repeat(1000)), None);
        check(&format!("{}d", "x == -1 || ".repeat(700)), None);
        check(
            &format!("match x {{ 0{} => 1 }}", " | 1".repeat(1000)),
            None,
        );
        for link in ["()", "[0]", ".b[0]", "[0]?", "()?", ".b()[0]", " /* */ [0]"] {
            check(&format!("\nlet x = f{};", link.repeat(4000)), Some(2));
            check(&format!("let x = f{};", link.repeat(60)), None);
        }
        check(&format!("let x = {}0;", "a[0] + ".repeat(1000)), None);
        check(&format!("[{}]", "a[0], ".repeat(1000)), None);
        check(&"let x = a[0];\n".repeat(1000), None);
        check(&"#[inline] (a) ".repeat(100), None);
        check(&"let x = a + b;\n".repeat(5000), None);
        check(&format!("vec![{}]", "-1.5, ".repeat(9000)), None);
        check(&"if a { b } else ".repeat(3000), None);
        check(&format!("'{}", "é".repeat(3)), None);
    }
}

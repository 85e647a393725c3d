//! How deep a cell is nested. Parsers and the trees that they make recurse; a cell of nothing but
//! brackets or operators would overflow the stack of the kernel itself, so it is refused before.

use crate::tokens::{Kind, Token};

/// Brackets inside brackets.
const DEEPEST: usize = 200;
/// Operators one behind the other, with nothing that ends an expression between them.
const LONGEST: usize = 3000;

/// The line on which a cell is nested too deep, and the message. `None`: it is not.
pub fn too_deep(code: &str, tokens: &[Token]) -> Option<(usize, String)> {
    // How many operators there are in the present expression, for each bracket around it.
    let mut operators = vec![0_usize];
    for token in tokens {
        let at = token.range.start;
        let (what, most, fix) = match token.kind {
            Kind::Open => {
                operators.push(0);
                if operators.len() <= DEEPEST {
                    continue;
                }
                ("brackets", DEEPEST, "give the inner parts names with `let`")
            }
            Kind::Close => {
                if operators.len() > 1 {
                    operators.pop();
                }
                if let ("}", Some(count)) = (&code[token.range.clone()], operators.last_mut()) {
                    *count = 0;
                }
                continue;
            }
            Kind::Semicolon | Kind::Comma => {
                if let Some(count) = operators.last_mut() {
                    *count = 0;
                }
                continue;
            }
            Kind::Operator => {
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

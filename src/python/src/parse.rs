//! From text to the model, within limits: the size of the text, the depth of its nesting, and a thread of its own whose stack
//! holds what is left. A text that is no Python, or too much of it, is `None`.

use ruff_python_ast::Mod;
use ruff_python_ast::token::TokenKind;
use ruff_python_parser::{Mode, ParseOptions, parse};
use ruff_text_size::Ranged;
use stratoscope_diagnostics::{CellSpan, on_deep_stack};

use crate::lower::Lowering;
use crate::model::Statement;

/// Longer texts are not looked at.
pub(crate) const MOST_READ: usize = 256 * 1024;
/// The parser makes its own room; what it returns is read and dropped by recursion, a few hundred bytes a level.
pub(crate) const STACK: usize = 512 * 1024 * 1024;

/// A Python text, read.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its statements.
    pub statements: Vec<Statement>,
    /// Its comments, `#` included.
    pub comments: Vec<CellSpan>,
}

/// Reads a text. `None` where it is no Python, or longer than is looked at.
pub fn program(text: &str) -> Option<Program> {
    if text.len() > MOST_READ || text.trim().is_empty() {
        return None;
    }
    on_deep_stack("python", STACK, || read(text))
}

fn read(text: &str) -> Option<Program> {
    let parsed = parse(text, ParseOptions::from(Mode::Ipython)).ok()?;
    let comments = parsed
        .tokens()
        .iter()
        .filter(|token| token.kind() == TokenKind::Comment)
        .map(span)
        .collect();
    let Mod::Module(module) = parsed.syntax() else {
        return None;
    };
    let statements = Lowering::new(text).block(&module.body);
    Some(Program {
        statements,
        comments,
    })
}

/// Where something stands.
pub(crate) fn span(it: &impl Ranged) -> CellSpan {
    CellSpan {
        start: it.start().to_usize(),
        end: it.end().to_usize(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_are_no_python_are_nothing() {
        for text in [
            "",
            "  \n",
            "let x = 1;",
            "fn f() {}",
            "x = ",
            "\u{0}",
            "def f(:",
        ] {
            assert!(program(text).is_none(), "{text}");
        }
        assert!(program(&"x = 1\n".repeat(100_000)).is_none());
    }

    #[test]
    fn no_nesting_ends_the_process() {
        let deep = 20_000;
        for text in [
            "(".repeat(deep) + &")".repeat(deep),
            "[".repeat(deep) + &"]".repeat(deep),
            "-".repeat(deep) + "1",
            "not ".repeat(deep) + "x",
            "x".to_owned() + &"+x".repeat(deep),
            "x".to_owned() + &".x".repeat(deep),
            "x".to_owned() + &"(1)".repeat(deep),
            "x".to_owned() + &"[1]".repeat(deep),
            "lambda: ".repeat(deep) + "1",
            "x if y else ".repeat(deep) + "z",
            "x = ".repeat(deep) + "1",
            (0..90)
                .map(|depth| format!("{}if x:\n", " ".repeat(depth)))
                .collect::<String>()
                + &" ".repeat(90)
                + "pass",
        ] {
            let _ = program(&text);
        }
    }
}

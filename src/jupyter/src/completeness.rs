//! Whether a cell that is being typed is finished, for consoles (`is_complete_request`).
//!
//! Delimiters decide most cells: an open one makes a cell incomplete, one that closes nothing makes it invalid.
//! When they are balanced, `syn` decides.

use stratoscope_cell_text::rewrite::parse_deep;
use stratoscope_cell_text::tokens::{Kind, tokens};

use super::message::IsCompleteReply;

/// Spaces a level.
const INDENT: usize = 4;

/// Whether the text of a cell is complete, incomplete or invalid.
pub fn is_complete(code: &str) -> IsCompleteReply {
    let code = without_commands(code);
    let incomplete = |depth: usize| IsCompleteReply::Incomplete {
        indent: " ".repeat(depth * INDENT),
    };
    match balance(&code) {
        Balance::Open { depth } => return incomplete(depth),
        Balance::Mismatched => return IsCompleteReply::Invalid,
        Balance::Closed => {}
    }
    // Code that some continuation makes valid is incomplete; anything else is invalid.
    let verdict = parse_deep(&code, |code| match parses(code) {
        true => IsCompleteReply::Complete,
        false
            if CONTINUATIONS
                .iter()
                .any(|more| parses(&format!("{code}{more}"))) =>
        {
            incomplete(usize::from(continues_a_line(code)))
        }
        false => IsCompleteReply::Invalid,
    });
    // A cell that is too long to be parsed is taken as complete; rustc checks it.
    verdict.unwrap_or(IsCompleteReply::Complete)
}

/// One of these finishes a cell that lacks only its end.
const CONTINUATIONS: [&str; 9] = [
    " x;",
    " x",
    " {}",
    " x {}",
    ": x;",
    " = x;",
    "x",
    " => x",
    " fn x() {}",
];

/// Statements and items, the last of them perhaps an expression.
fn parses(code: &str) -> bool {
    let block = format!("{{{code}\n}}");
    syn::parse_str::<syn::Block>(&block).is_ok()
}

/// The line after `let x =` is indented; the one after an attribute or a lone `fn` is not.
fn continues_a_line(code: &str) -> bool {
    let end = code.trim_end();
    end.ends_with(['=', '+', '-', '*', '/', ',', '|', '&', '.', '(', '>'])
}

/// The text with the kernel's own commands (`%time`, `:dep`, `!ls`) blanked out, line by line.
fn without_commands(code: &str) -> String {
    let is_command = |line: &str| {
        let line = line.trim_start();
        line.starts_with(['%', ':', '!']) && !line.starts_with("::")
    };
    let mut statement_open = false;
    let mut kept = String::with_capacity(code.len());
    for line in code.split_inclusive('\n') {
        if !statement_open && is_command(line) {
            kept.push('\n');
            continue;
        }
        kept.push_str(line);
        statement_open = !matches!(balance(&kept), Balance::Closed);
    }
    kept
}

#[derive(Debug, PartialEq, Eq)]
enum Balance {
    Closed,
    /// Brackets, a string or a comment are still open; `depth` counts the brackets.
    Open {
        depth: usize,
    },
    /// A bracket closes what is not open.
    Mismatched,
}

/// Matches brackets outside of strings, characters and comments.
fn balance(code: &str) -> Balance {
    let mut open: Vec<u8> = Vec::new();
    for token in tokens(code, 0..code.len()) {
        let sign = code.as_bytes()[token.range.start];
        match token.kind {
            Kind::Open => open.push(sign),
            Kind::Close => {
                let opening = match sign {
                    b')' => b'(',
                    b']' => b'[',
                    _ => b'{',
                };
                if open.pop() != Some(opening) {
                    return Balance::Mismatched;
                }
            }
            Kind::Text { is_closed: false } | Kind::BlockComment { is_closed: false } => {
                return Balance::Open { depth: 0 };
            }
            _ => {}
        }
    }
    match open.len() {
        0 => Balance::Closed,
        depth => Balance::Open { depth },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(code: &str) {
        assert_eq!(is_complete(code), IsCompleteReply::Complete, "{code}");
    }

    fn incomplete(code: &str, indent: usize) {
        let expected = IsCompleteReply::Incomplete {
            indent: " ".repeat(indent),
        };
        assert_eq!(is_complete(code), expected, "{code}");
    }

    fn invalid(code: &str) {
        assert_eq!(is_complete(code), IsCompleteReply::Invalid, "{code}");
    }

    #[test]
    fn finished_cells() {
        complete("");
        complete("1 + 1");
        complete("let x = 1;");
        complete("fn f() -> u8 { 1 }\nf()");
        complete("use std::fmt;\nstruct S;");
        complete("let s = \"({[\"; // ({[");
        complete(
            "let s = r#\"a\"b({\"#; let t = br\"(\"; let c = '{'; let d = '\\''; let e = 'é';",
        );
        complete("fn f<'a>(x: &'a str) -> &'a str { x }");
        complete("/* ( /* nested */ */ 1");
        complete("scope!(strategy, { let m = model()?; });");
        complete("compile!(model, optimizer = AdamW::new(5e-5), metrics = [accuracy()])?;");
        complete("%vars\n:dep rand = \"0.8\"\nlet x = 1;");
        complete("%%time\nlet x = 1;");
        complete("// only a comment");
        complete("let größe = \"日本\";");
    }

    #[test]
    fn unfinished_cells() {
        incomplete("fn f() {", 4);
        incomplete("fn f() {\n    if true {", 8);
        incomplete("let v = vec![1,", 4);
        incomplete("let s = \"abc", 0);
        incomplete("let s = r#\"abc\"", 0);
        incomplete("/* abc", 0);
        incomplete("let x =", 4);
        incomplete("1 +", 4);
        incomplete("let x = 1", 0);
        incomplete("#[derive(Debug)]", 0);
        incomplete("scope!(strategy, {", 8);
    }

    #[test]
    fn wrong_cells() {
        invalid("fn f() }");
        invalid("(]");
        invalid("let let x = 1;");
        invalid("fn 1() {}");
        invalid("let x = ;");
    }

    #[test]
    fn hostile_text_never_panics() {
        for code in [
            "'", "'\\", "\"\\", "r", "r#", "/*/", "\u{0}", "'é", "b'", "br#\"", "%", "{}}",
        ] {
            is_complete(code);
        }
        is_complete(&"(".repeat(200_000));
        is_complete(&["(".repeat(100_000), ")".repeat(100_000)].concat());
        is_complete(&["(".repeat(16_000), ")".repeat(16_000)].concat());
        is_complete(&"-".repeat(32 << 10));
    }
}

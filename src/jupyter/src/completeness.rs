//! Whether a cell that is being typed is finished, for consoles (`is_complete_request`).
//!
//! Delimiters decide most cells: an open one makes a cell incomplete, one that closes nothing makes it invalid.
//! When they are balanced, `syn` decides.

use stratoscope_cell_text::magic::MagicLine;
use stratoscope_cell_text::rewrite::parse_deep;
use stratoscope_cell_text::tokens::{Kind, Token, each_token};

use super::message::IsCompleteReply;

/// Spaces a level.
const INDENT: usize = 4;

/// Whether the text of a cell is complete, incomplete or invalid.
pub fn is_complete(code: &str) -> IsCompleteReply {
    let first = code.lines().find(|line| !line.trim().is_empty());
    if first
        .and_then(MagicLine::of)
        .is_some_and(|it| it.takes_text())
    {
        return of_text(code);
    }
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

/// A text of several lines ends with an empty one, as Python's blocks do in a console.
fn of_text(code: &str) -> IsCompleteReply {
    let last = code.split('\n').next_back().unwrap_or_default();
    match last.trim().is_empty() && !code.trim().is_empty() {
        true => IsCompleteReply::Complete,
        false => IsCompleteReply::Incomplete {
            indent: String::new(),
        },
    }
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

/// The text with the kernel's own commands (`%time`, `:dep`, `!ls`) blanked out, line by line. Each token is read once.
fn without_commands(code: &str) -> String {
    let mut kept = String::with_capacity(code.len());
    let mut start = 0;
    while start < code.len() {
        if is_command(&code[start..]) {
            kept.push('\n');
            start = end_of_line(code, start);
            continue;
        }
        let end = next_command(code, start).unwrap_or(code.len());
        kept.push_str(&code[start..end]);
        start = end;
    }
    kept
}

fn is_command(line: &str) -> bool {
    let line = line.trim_start_matches([' ', '\t']);
    line.starts_with(['%', ':', '!']) && !line.starts_with("::")
}

/// Behind the line that contains `start`.
fn end_of_line(code: &str, start: usize) -> usize {
    code[start..]
        .find('\n')
        .map_or(code.len(), |at| start + at + 1)
}

/// Where the next line of a command begins: behind `start`, with nothing open before it.
fn next_command(code: &str, start: usize) -> Option<usize> {
    let mut brackets = Brackets::default();
    for token in each_token(code, start..code.len()) {
        if !brackets.read(code, &token) {
            return None;
        }
        let text = &code[token.range.clone()];
        if token.kind == Kind::Space
            && brackets.open.is_empty()
            && let Some(last) = text.rfind('\n')
        {
            let line = token.range.start + last + 1;
            if is_command(&code[line..]) {
                return Some(line);
            }
        }
    }
    None
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
    let mut brackets = Brackets::default();
    for token in each_token(code, 0..code.len()) {
        if !brackets.read(code, &token) {
            return Balance::Mismatched;
        }
        if let Kind::Text { is_closed: false } | Kind::BlockComment { is_closed: false } =
            token.kind
        {
            return Balance::Open { depth: 0 };
        }
    }
    match brackets.open.len() {
        0 => Balance::Closed,
        depth => Balance::Open { depth },
    }
}

/// Those that are open, outermost first.
#[derive(Default)]
struct Brackets {
    open: Vec<u8>,
}

impl Brackets {
    /// Takes the next token; `false`: it closes what is not open.
    fn read(&mut self, code: &str, token: &Token) -> bool {
        let sign = code.as_bytes()[token.range.start];
        match token.kind {
            Kind::Open => self.open.push(sign),
            Kind::Close => {
                let opening = match sign {
                    b')' => b'(',
                    b']' => b'[',
                    _ => b'{',
                };
                return self.open.pop() == Some(opening);
            }
            _ => {}
        }
        true
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
        complete("%%bash\nls (\n");
    }

    #[test]
    fn commands_are_left_out_where_nothing_is_open() {
        for (code, expected) in [
            ("!echo it's \"\nf(", "\nf("),
            ("a;\n\n  %vars (\n:dep b\nc", "a;\n\n\n\nc"),
            ("f(\n%a\n)\n!b", "f(\n%a\n)\n\n"),
            ("\"\n%a\n\"\n%b\nc", "\"\n%a\n\"\n\nc"),
            (")\n%a", ")\n%a"),
            ("::a();\n::b();", "::a();\n::b();"),
            ("%a", "\n"),
            ("// (\n%a\n", "// (\n\n"),
        ] {
            assert_eq!(without_commands(code), expected, "{code}");
        }
    }

    /// In quadratic time these texts take minutes.
    #[test]
    fn long_text_takes_linear_time() {
        complete(&"let a = 1;\n".repeat(200_000));
        complete(&"%vars\nlet a = 1;\n".repeat(100_000));
        complete(&"!ls (\n".repeat(200_000));
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
        incomplete("%%bash", 0);
        incomplete("%%bash\nif true; then", 0);
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

//! The cells of a notebook as one program: items at its top level, statements in one function, in the order of the notebook.
//!
//! - A last expression without `;` becomes `show!(…);`, which prints it.
//! - A call of the DSL without `?` gets one, as in a cell ([`crate::rewrite`]).
//! - `%%scope strategy` becomes `scope!(strategy, { … });`.
//! - Lines for the kernel (magics, commands of the shell), cells that are no Rust and cells that fail in the notebook stay as comments,
//!   and are listed. `:dep` lines become dependencies.
//!
//! Nothing is formatted: a string over several lines keeps its blanks.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use stratoscope_cell_syntax::Syntax;
use syn::spanned::Spanned;
use syn::{Expr, Macro, Stmt};

use crate::header::Header;
use crate::magic::MagicLine;
use crate::rewrite::shape::opened_scope;
use crate::rewrite::unhandled::calls::is_ours;

/// What prints a value at the end of a cell.
pub const SHOW: &str = "show!";
/// Macros that have no value to show.
const SILENT: [&str; 12] = [
    "println",
    "print",
    "eprintln",
    "eprint",
    "assert",
    "assert_eq",
    "assert_ne",
    "panic",
    "todo",
    "unimplemented",
    "unreachable",
    "macro_rules",
];

/// A cell as it stands in the notebook.
#[derive(Clone, Copy, Debug)]
pub struct NotebookCell<'a> {
    /// Its text.
    pub code: &'a str,
    /// The name of the error that it ends with, by its outputs.
    pub error: Option<&'a str>,
}

/// The parts of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Functions, types, imports: what stands at the top level.
    pub items: String,
    /// The statements of all cells.
    pub body: String,
    /// Lines of `[dependencies]`.
    pub dependencies: Vec<String>,
    /// What is only a comment.
    pub left_out: Vec<LeftOut>,
}

/// A line or a cell that is a comment in the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The number of the code cell, from 1.
    pub cell: usize,
    /// The line, of a cell its first one.
    pub line: String,
    /// Why, to follow "it".
    pub why: String,
}

/// Makes a program of cells.
pub fn of_cells<'a>(cells: impl IntoIterator<Item = NotebookCell<'a>>) -> Program {
    let mut making = Making::default();
    for (index, cell) in cells.into_iter().enumerate() {
        making.add(index + 1, cell);
    }
    making.program
}

#[derive(Default)]
struct Making {
    program: Program,
    imports: HashSet<String>,
}

/// A statement with what stands before it.
struct Piece {
    before: String,
    text: String,
    is_item: bool,
    is_import: bool,
}

impl Making {
    fn add(&mut self, number: usize, NotebookCell { code, error }: NotebookCell<'_>) {
        if code.trim().is_empty() {
            return;
        }
        self.program.body += &format!("// Cell {number}\n");
        if let Some(error) = error {
            return self.leave_out(number, code, format!("ends with {error} in the notebook"));
        }
        let first = code.lines().find(|line| !line.trim().is_empty());
        let magic = first.and_then(MagicLine::of);
        if magic.is_some_and(|magic| magic.takes_text()) {
            return self.leave_out(number, code, "is a text, and no Rust".to_owned());
        }
        let pieces = Syntax::with(code, |syntax| Some(pieces(code, syntax.statements()?)));
        let Some(Pieces { found, rest, lines }) = pieces else {
            return self.leave_out(number, code, "is no Rust".to_owned());
        };
        let header = Header::of(code);
        let strategy = header.scope.map(|range| &code[range]);
        for line in &lines {
            self.name(number, line, strategy.is_some());
        }
        let mut body = String::new();
        for piece in found {
            if !piece.is_item {
                body += &format!("{}{}\n", piece.before, piece.text);
            } else if !piece.is_import || self.imports.insert(piece.text.clone()) {
                self.program.items += &format!("{}{}\n", piece.before, piece.text);
            }
        }
        body += &rest;
        self.program.body += &match strategy {
            Some(strategy) => format!("scope!({strategy}, {{\n{body}}});\n\n"),
            None => format!("{body}\n"),
        };
    }

    /// The whole cell is a comment.
    fn leave_out(&mut self, number: usize, code: &str, why: String) {
        let lines = code.lines().filter(|line| !line.trim().is_empty());
        let line = lines.clone().next().unwrap_or_default().trim().to_owned();
        let comments: String = code.lines().map(|line| format!("// {line}\n")).collect();
        self.program.body += &format!("// It {why}:\n{comments}\n");
        let cell = number;
        self.program.left_out.push(LeftOut { cell, line, why });
    }

    /// Lists a line for the kernel, or makes a dependency of it.
    fn name(&mut self, cell: usize, line: &str, in_scope: bool) {
        let dependency = (line.strip_prefix(":dep ")).or_else(|| line.strip_prefix("%dep "));
        if let Some(dependency) = dependency {
            let dependency = dependency.trim();
            self.program
                .dependencies
                .push(match dependency.contains('=') {
                    true => dependency.to_owned(),
                    false => format!("{dependency} = \"*\""),
                });
            return;
        }
        let magic = MagicLine::of(line);
        if in_scope && magic.is_some_and(|it| it.is_of_cell && it.name == "scope") {
            return;
        }
        let why = match line.starts_with('!') {
            true => "is a command of the shell",
            false => "is for the kernel",
        };
        let (line, why) = (line.to_owned(), why.to_owned());
        self.program.left_out.push(LeftOut { cell, line, why });
    }
}

/// A cell in its parts.
struct Pieces {
    found: Vec<Piece>,
    /// What stands behind the last statement.
    rest: String,
    /// The lines for the kernel.
    lines: Vec<String>,
}

fn pieces(code: &str, statements: &[Stmt]) -> Pieces {
    let mut lines = Vec::new();
    let mut found: Vec<Piece> = Vec::new();
    let mut end = 0;
    for (index, statement) in statements.iter().enumerate() {
        let range = statement.span().byte_range();
        let (behind, mut before) = gap(code, end..range.start, &mut lines);
        match found.last_mut() {
            Some(last) => last.text += &behind,
            None => before = first_line(&behind) + &before,
        }
        found.push(Piece {
            before,
            text: text_of(
                statement,
                &code[range.clone()],
                index + 1 == statements.len(),
            ),
            is_item: matches!(statement, Stmt::Item(_)),
            is_import: matches!(statement, Stmt::Item(syn::Item::Use(_))),
        });
        end = range.end;
    }
    let (behind, mut rest) = gap(code, end..code.len(), &mut lines);
    match found.last_mut() {
        Some(last) => last.text += &behind,
        None => rest = first_line(&behind) + &rest,
    }
    Pieces { found, rest, lines }
}

/// What stands on the first line of a cell, as a line.
fn first_line(text: &str) -> String {
    match text.trim() {
        "" => String::new(),
        text => format!("{text}\n"),
    }
}

/// What stands between two statements: behind the first one on its line, and the lines below, those for the kernel as comments.
fn gap(code: &str, range: Range<usize>, lines: &mut Vec<String>) -> (String, String) {
    let mut as_rust = |line: &str| {
        let text = line.trim();
        let is_command = text.starts_with(':') && !text.starts_with("::");
        if !(is_command || text.starts_with(['%', '!'])) {
            return line.trim_end().to_owned();
        }
        lines.push(text.to_owned());
        format!("// {text}")
    };
    let mut found = code[range].split('\n');
    let first = found.next().map(&mut as_rust).unwrap_or_default();
    let behind = match first.trim() {
        "" => String::new(),
        text => format!(" {text}"),
    };
    let below = found.map(as_rust).filter(|line| !line.trim().is_empty());
    (behind, below.map(|line| line + "\n").collect())
}

/// The text of a statement; the last one of a cell shows its value.
fn text_of(statement: &Stmt, text: &str, is_last: bool) -> String {
    let (called, has_semicolon) = match statement {
        Stmt::Macro(statement) => (Some(&statement.mac), statement.semi_token.is_some()),
        Stmt::Expr(Expr::Macro(expression), semicolon) => {
            (Some(&expression.mac), semicolon.is_some())
        }
        Stmt::Expr(_, semicolon) => (None, semicolon.is_some()),
        Stmt::Local(_) | Stmt::Item(_) => return text.to_owned(),
    };
    let asks = if called.is_some_and(|it| is_ours(&it.path, &BTreeSet::new())) {
        "?"
    } else {
        ""
    };
    if has_semicolon {
        return match asks {
            "" => text.to_owned(),
            asks => format!("{}{asks};", text.trim_end_matches(';').trim_end()),
        };
    }
    let shows = match (statement, called) {
        _ if !is_last => false,
        (_, Some(called)) => has_value(called),
        (Stmt::Expr(expression, _), None) => !matches!(
            expression,
            Expr::ForLoop(_) | Expr::While(_) | Expr::Loop(_) | Expr::Return(_) | Expr::Assign(_)
        ),
        _ => false,
    };
    match (shows, called) {
        (true, _) => format!("{SHOW}({text}{asks});"),
        (false, Some(_)) => format!("{text}{asks};"),
        (false, None) => text.to_owned(),
    }
}

/// Whether a call of a macro at the end of a cell has a value to show.
fn has_value(called: &Macro) -> bool {
    let last = called.path.segments.last();
    let is_silent = last.is_some_and(|last| SILENT.iter().any(|name| last.ident == name));
    let opens = opened_scope(called).is_some_and(|scope| !scope.is_value());
    !is_silent && !opens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(cells: &[&str]) -> Program {
        of_cells(cells.iter().map(|code| NotebookCell { code, error: None }))
    }

    #[track_caller]
    fn check(cells: &[&str], items: &str, body: &str) {
        let found = program(cells);
        assert_eq!(found.items.trim(), items);
        let lines = found.body.lines().filter(|line| !line.is_empty());
        let lines: Vec<_> = lines.collect();
        assert_eq!(lines.join("\n"), body);
    }

    #[test]
    fn statements_stay_in_order_and_items_go_to_the_top() {
        check(
            &[
                "use std::fmt;\nlet a = 1; // one\n/// Doubles.\nfn twice(x: i32) -> i32 { 2 * x }\n// then\nlet b = twice(a);\nb",
                "use std::fmt;\nprintln!(\"{b}\")",
            ],
            "use std::fmt;\n/// Doubles.\nfn twice(x: i32) -> i32 { 2 * x }",
            "// Cell 1\nlet a = 1; // one\n// then\nlet b = twice(a);\nshow!(b);\n// Cell 2\nprintln!(\"{b}\");",
        );
    }

    #[test]
    fn calls_of_the_dsl_ask() {
        check(
            &["compile!(m, optimizer = o);\nlet h = fit!(m, d)?;\nfit!(m, d)?;\nevaluate!(m, d)"],
            "",
            "// Cell 1\ncompile!(m, optimizer = o)?;\nlet h = fit!(m, d)?;\nfit!(m, d)?;\nshow!(evaluate!(m, d)?);",
        );
    }

    #[test]
    fn scopes_and_control_flow_are_not_shown() {
        check(
            &[
                "scope!(s, { let m = 1; })",
                "for i in 0..2 { f(i); }",
                "if a { 1 } else { 2 }",
                "x = 3",
                "let t = \"a\n  b\";",
            ],
            "",
            "// Cell 1\nscope!(s, { let m = 1; });\n// Cell 2\nfor i in 0..2 { f(i); }\n// Cell 3\nshow!(if a { 1 } else { 2 });\n\
             // Cell 4\nx = 3\n// Cell 5\nlet t = \"a\n  b\";",
        );
    }

    #[test]
    fn lines_for_the_kernel_are_comments_and_are_named() {
        let found = program(&[
            "%profile tf-2.3\nlet a = 1;",
            "%%scope strategy\nlet m = 1;\nm",
            "%%bash\nls | wc",
            "!ls größe\nlet z = 1;",
            ":dep regex = \"1\"\n%dep rand\nlet r = 1;",
            "def f(x):\n    return x",
        ]);
        assert_eq!(
            found.body,
            "// Cell 1\n// %profile tf-2.3\nlet a = 1;\n\n// Cell 2\nscope!(strategy, {\n// %%scope strategy\nlet m = 1;\nshow!(m);\n});\n\n\
             // Cell 3\n// It is a text, and no Rust:\n// %%bash\n// ls | wc\n\n// Cell 4\n// !ls größe\nlet z = 1;\n\n\
             // Cell 5\n// :dep regex = \"1\"\n// %dep rand\nlet r = 1;\n\n\
             // Cell 6\n// It is no Rust:\n// def f(x):\n//     return x\n\n"
        );
        assert_eq!(found.dependencies, ["regex = \"1\"", "rand = \"*\""]);
        let named: Vec<_> = found
            .left_out
            .iter()
            .map(|it| (it.cell, it.line.as_str()))
            .collect();
        assert_eq!(
            named,
            [
                (1, "%profile tf-2.3"),
                (3, "%%bash"),
                (4, "!ls größe"),
                (6, "def f(x):")
            ]
        );
    }

    #[test]
    fn a_cell_that_fails_in_the_notebook_is_a_comment() {
        let code = "let a = broken()?;";
        let found = of_cells([NotebookCell {
            code,
            error: Some("SC0101"),
        }]);
        assert_eq!(
            found.body,
            "// Cell 1\n// It ends with SC0101 in the notebook:\n// let a = broken()?;\n\n"
        );
        assert_eq!(found.left_out[0].why, "ends with SC0101 in the notebook");
    }
}

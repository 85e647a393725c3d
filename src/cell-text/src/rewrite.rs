//! Rewrites the text of a cell to the source that evcxr gets, with a map back to the text as typed.
//!
//! - `begin(number)` comes first, and a mark before each statement ([`statement`]), which becomes
//!   `at(line, last_line)?`: variables, errors and panics then have a line, and an interrupted cell
//!   stops there.
//! - A `return` at the top level of the cell ends it as a `?` does, but without an error.
//! - Items without a name get one ([`items`]), so that a cell can run again, and statics get a symbol,
//!   so that all cells share them.
//! - Calls of the notebook's macros that stand for items become these items (`written_out`).
//! - `scope!(strategy, { … });` as a statement becomes `enter`, its statements and `leave`, since
//!   evcxr keeps only the variables of top-level `let`s. `%%scope strategy` does the same for a whole
//!   cell. As an expression it becomes a block with a guard, whose type rust-analyzer can infer.
//! - A last expression without `;` is shown by `__result!`, which needs one run of rustc; evcxr's own
//!   way needs two.
//! - A result of the DSL that a statement drops gets a `?`, or is looked at ([`unhandled`]).
//! - Items, `use`, `:dep` lines and text that `syn` cannot parse stay as they are; rustc explains the
//!   latter better.
//!
//! Every copied piece is recorded, so that positions in messages of rustc lead back to the cell.
//! Nothing is formatted or reordered.

use std::collections::BTreeSet;
use std::ops::Range;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Expr, Stmt};

use crate::definitions::Definitions;
use crate::header::Header;
use crate::macro_rules::Macros;
use crate::magic::{Clock, Repeats, Replacement};
use crate::{ParsedCell, Rewriting};

mod deep_stack;
pub mod items;
pub mod places;
pub(crate) mod shape;
pub mod statement;
mod text;
pub mod unhandled;
mod written_out;

pub use deep_stack::parse_deep;
use shape::{
    Scope, first_rust_line, in_braces, is_program, names, never_returns, opened_scope, runs,
};
use statement::Facts;
use text::{Bound, Edit, apply};
pub use text::{Rewritten, line_of};
use unhandled::results::{Names, asks};
use unhandled::{LOOKS, Text, Use};
use written_out::WrittenOut;

/// See [`ParsedCell::rewrite`].
pub(crate) fn rewrite_cell(cell: &ParsedCell<'_>, number: u64, silent: bool) -> Rewriting {
    let (code, header) = (cell.syntax.code().clone(), cell.header.clone());
    let macros = cell.session_macros.clone();
    let lines = match cell.is_debugged {
        true => places::lines(cell),
        false => Vec::new(),
    };
    let rewriting = cell.syntax.read(move |syntax| {
        let stmts = syntax.statements_as_typed().unwrap_or_default();
        let cell = (number, silent);
        Some(rewrite_here(&code, &header, &macros, stmts, cell, &lines))
    });
    rewriting.unwrap_or_else(|| Rewriting {
        rewritten: apply(cell.code, Vec::new(), Bound::default(), true),
        definitions: Definitions::default(),
        macros: Macros::default(),
        written_out: Vec::new(),
        is_program: false,
    })
}

/// Rewrites the text of cell `number`.
pub fn rewrite(code: &str, number: u64, silent: bool) -> Rewritten {
    ParsedCell::of(code).rewrite(number, silent).rewritten
}

/// On the thread that has the syntax. `statements`: none where the cell does not parse. `lines`: those that are marked for
/// the debugger.
fn rewrite_here(
    code: &str,
    header: &Header,
    session_macros: &Macros,
    statements: &[Stmt],
    (number, silent): (u64, bool),
    lines: &[places::Line],
) -> Rewriting {
    let mut editor = Editor {
        code,
        silent,
        starts: BTreeSet::new(),
        edits: Vec::new(),
        bound: Bound::default(),
        functions: 0,
        known: Names::of(statements, session_macros.names()),
        written_out: WrittenOut::of(session_macros, statements, number),
    };
    let runs = runs(header, &code[header.end..]);
    if runs {
        // What the lines stand for runs in the cell, behind its beginning.
        let start = first_rust_line(header).unwrap_or(header.end);
        editor.prologue(number, header.scope.as_ref(), start);
    }
    editor.header_lines(header);
    if runs {
        editor.body(header, statements, number);
        editor.places(lines, statements, number);
    }
    let Editor {
        edits,
        bound,
        mut written_out,
        ..
    } = editor;
    written_out.add(statements, code);
    Rewriting {
        rewritten: apply(code, edits, bound, runs),
        definitions: written_out.definitions,
        macros: written_out.defined,
        written_out: written_out.texts,
        is_program: is_program(statements),
    }
}

/// Around what `%timeit` repeats; the `?`s of its code are those of the closure.
fn timeit(Repeats { loops, runs }: Repeats) -> (String, &'static str) {
    let call = format!("::stratoscope::cell::timeit({loops:?}, {runs:?}, || ");
    let before = "{ let _ = ::std::hint::black_box({";
    (call + before, "\n}); Ok(()) })?;")
}

/// Collects what is to be changed.
struct Editor<'a> {
    code: &'a str,
    silent: bool,
    edits: Vec<Edit>,
    bound: Bound,
    /// How many closures and the like are around what is visited.
    functions: usize,
    /// Where statements and items begin.
    starts: BTreeSet<usize>,
    known: Names,
    written_out: WrittenOut,
}

impl Editor<'_> {
    /// Replaces the magics above the code. A command of evcxr's begins its line; anything else is a statement of
    /// that line.
    fn header_lines(&mut self, header: &Header) {
        for (range, replacement) in &header.lines {
            let text = match replacement {
                Replacement::Rust(rust) => {
                    let line = line_of(self.code, range.start);
                    format!("{}{rust}", at(line, line, &Facts::of_text(rust)))
                }
                Replacement::Command(command) => command.clone(),
                Replacement::Nothing => String::new(),
            };
            self.replace(range.clone(), text);
        }
    }

    /// The statements, with the clock or the scope around them.
    fn body(&mut self, header: &Header, statements: &[Stmt], number: u64) {
        let (start, end) = (header.end, self.code.len());
        if header.clock == Some(Clock::Often) {
            let lines = (line_of(self.code, start), line_of(self.code, end));
            self.insert(start, at(lines.0, lines.1, &Facts::default()));
            let (before, behind) = timeit(header.repeats);
            self.insert(start, before);
            let edits = self.text().of_repeated(statements);
            self.edits.extend(edits);
            self.insert(end, behind);
            return;
        }
        if header.clock == Some(Clock::Once) {
            self.insert(start, "::stratoscope::cell::clock();");
        }
        self.statements(statements, true);
        self.items(statements, number);
        if header.clock == Some(Clock::Once) {
            self.insert(end, "\n::stratoscope::cell::clocked();");
        }
        if header.scope.is_some() {
            self.insert(end, "\n::stratoscope::cell::leave();");
        }
    }

    fn prologue(&mut self, number: u64, scope: Option<&Range<usize>>, head: usize) {
        // No leading `::`: evcxr takes a first line that begins with a colon for a command.
        let begin = format!(
            "stratoscope::cell::begin({number});{}",
            statement::UNCHECKED
        );
        let Some(strategy) = scope else {
            self.insert(head, begin);
            return;
        };
        // The line of `%%scope` itself: everything but the strategy is replaced.
        let line_start = self.code[..strategy.start]
            .rfind('\n')
            .map_or(0, |at| at + 1);
        let line = line_of(self.code, strategy.start);
        self.replace(
            line_start..strategy.start,
            format!(
                "{begin}{}::stratoscope::cell::enter(&(",
                at(line, line, &Facts::default())
            ),
        );
        self.insert(strategy.end, "))?;");
    }

    /// `shows`: the value of the last expression is the value of the cell.
    fn statements(&mut self, statements: &[Stmt], shows: bool) {
        for (index, statement) in statements.iter().enumerate() {
            let is_last = index + 1 == statements.len();
            self.statement(statement, is_last, shows);
        }
    }

    fn statement(&mut self, statement: &Stmt, is_last: bool, shows: bool) {
        self.starts.insert(statement.span().byte_range().start);
        if matches!(statement, Stmt::Item(_)) {
            return self.unhandled(statement, Use::Elsewhere);
        }
        let range = statement.span().byte_range();
        if let Some(items) = self.written_out.items_of(statement) {
            return self.replace(range, items);
        }
        let (first, last) = self.lines(&range);
        if let Stmt::Local(local) = statement {
            let known = self.bound.names.len();
            names(&local.pat, &mut self.bound.names);
            for name in &self.bound.names[known..] {
                self.bound.lines.insert(name.clone(), last);
            }
        }
        let (called, has_semicolon) = match statement {
            Stmt::Macro(statement) => (Some(&statement.mac), statement.semi_token.is_some()),
            Stmt::Expr(Expr::Macro(expression), semicolon) => {
                (Some(&expression.mac), semicolon.is_some())
            }
            Stmt::Expr(_, semicolon) => (None, semicolon.is_some()),
            _ => (None, true),
        };
        if let Some(scope) = called.and_then(opened_scope) {
            self.open(&scope, &range, shows && is_last && !has_semicolon);
            return;
        }
        let mut facts = Facts::of(statement);
        facts.makes_items = self.written_out.makes_items(statement);
        self.insert(range.start, at(first, last, &facts));
        if asks(&self.code[range.clone()]) {
            self.insert(range.start, LOOKS);
        }
        let shown = is_last && !has_semicolon;
        let is_value = shows && !never_returns(statement) && !called.is_some_and(in_braces);
        if shown && is_value {
            let show = if self.silent {
                "let _ = &("
            } else {
                "::stratoscope::__result!("
            };
            self.insert(range.start, show);
        }
        // Between the two insertions: edits at one place keep their order.
        let tail = match (shown, is_value) {
            (false, _) => Use::Elsewhere,
            (true, true) => Use::Good,
            (true, false) => Use::Dropped,
        };
        self.unhandled(statement, tail);
        self.visit_stmt(statement);
        if shown {
            self.insert(range.end, if is_value { ");" } else { ";" });
        }
    }

    /// Looks at results that the statement drops.
    fn unhandled(&mut self, statement: &Stmt, tail: Use) {
        let edits = self.text().of_statement(statement, tail);
        self.edits.extend(edits);
    }

    fn text(&self) -> Text<'_> {
        Text {
            code: self.code,
            names: &self.known,
        }
    }

    /// `scope!(strategy, { … })` as a value → `{ let _scope = guard(&(strategy))?; … }`
    fn guard(&mut self, scope: &Scope, whole: &Range<usize>) {
        let strategy = scope.strategy.span().byte_range();
        let braces = scope.block.brace_token.span;
        let opening = braces.open().byte_range();
        let closing = braces.close().byte_range();
        self.replace(
            whole.start..strategy.start,
            "{ let _scope = ::stratoscope::cell::guard(&(",
        );
        self.replace(strategy.end..opening.end, "))?;");
        for statement in &scope.block.stmts {
            self.visit_stmt(statement);
        }
        self.replace(closing.start..whole.end, "}");
    }

    /// `scope!(strategy, { statements; })` within a block, which keeps what the `let`s bind →
    /// `let _scope_7 = guard(&(strategy))?; statements; drop(_scope_7)`
    fn open_in_block(&mut self, scope: &Scope, whole: &Range<usize>) {
        let strategy = scope.strategy.span().byte_range();
        let braces = scope.block.brace_token.span;
        let (opening, closing) = (braces.open().byte_range(), braces.close().byte_range());
        // By its place, since scopes may be within each other.
        let guard = format!("_scope_{}", whole.start);
        let enter = format!("let {guard} = ::stratoscope::cell::guard(&(");
        self.replace(whole.start..strategy.start, enter);
        self.replace(strategy.end..opening.end, "))?;");
        for statement in &scope.block.stmts {
            self.visit_stmt(statement);
        }
        let leave = format!("::core::mem::drop({guard})");
        self.replace(closing.start..whole.end, leave);
    }

    /// `scope!(strategy, { statements })` → `enter(&(strategy))?; statements leave();`
    fn open(&mut self, scope: &Scope, statement: &Range<usize>, shows: bool) {
        let strategy = scope.strategy.span().byte_range();
        let braces = scope.block.brace_token.span;
        let opening = braces.open().byte_range();
        let closing = braces.close().byte_range();
        let (first, _) = self.lines(statement);
        let (_, last) = self.lines(&strategy);
        self.replace(
            statement.start..strategy.start,
            format!(
                "{}::stratoscope::cell::enter(&(",
                at(first, last, &Facts::default())
            ),
        );
        self.replace(strategy.end..opening.end, "))?;");
        self.statements(&scope.block.stmts, shows);
        self.replace(
            closing.start..statement.end,
            "::stratoscope::cell::leave();",
        );
    }

    /// Names items that evcxr would otherwise add again at each run of the cell.
    /// The same for statics, which are to keep their values.
    fn items(&mut self, statements: &[Stmt], number: u64) {
        let mut inserted = items::named(statements, self.code);
        inserted.extend(items::exported(statements));
        for (place, text) in inserted {
            self.insert(place, text);
        }
        for (index, span) in items::statics(statements).into_iter().enumerate() {
            let symbol = items::symbol(number, index);
            let place = span.byte_range().start;
            self.insert(place, items::exports_as(&symbol));
        }
    }

    /// Visits what has a `return` of its own.
    fn inside(&mut self, visit: impl FnOnce(&mut Self)) {
        self.functions += 1;
        visit(self);
        self.functions -= 1;
    }

    fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.replace(at..at, text);
    }

    fn replace(&mut self, range: Range<usize>, text: impl Into<String>) {
        let text = text.into();
        self.edits.push(Edit { range, text });
    }

    fn lines(&self, range: &Range<usize>) -> (usize, usize) {
        (
            line_of(self.code, range.start),
            line_of(self.code, range.end),
        )
    }
}

/// Finds the `scope!`s that are values, wherever they stand, and each `return` of the cell's own.
impl<'ast> Visit<'ast> for Editor<'_> {
    fn visit_expr_macro(&mut self, expression: &'ast syn::ExprMacro) {
        match opened_scope(&expression.mac) {
            Some(scope) => {
                let whole = expression.span().byte_range();
                self.guard(&scope, &whole);
            }
            None => visit::visit_expr_macro(self, expression),
        }
    }

    fn visit_stmt_macro(&mut self, statement: &'ast syn::StmtMacro) {
        if let Some(scope) = opened_scope(&statement.mac) {
            let whole = statement.mac.span().byte_range();
            match scope.is_value() {
                true => self.guard(&scope, &whole),
                false => self.open_in_block(&scope, &whole),
            }
        }
    }

    fn visit_expr_return(&mut self, expression: &'ast syn::ExprReturn) {
        if let (Some(value), 0) = (&expression.expr, self.functions) {
            let range = value.span().byte_range();
            self.insert(range.start, "::stratoscope::cell::evcxr::early(");
            self.visit_expr(value);
            self.insert(range.end, ")");
        } else {
            visit::visit_expr_return(self, expression);
        }
    }

    fn visit_expr_closure(&mut self, expression: &'ast syn::ExprClosure) {
        self.inside(|editor| visit::visit_expr_closure(editor, expression));
    }

    fn visit_expr_async(&mut self, expression: &'ast syn::ExprAsync) {
        self.inside(|editor| visit::visit_expr_async(editor, expression));
    }

    fn visit_item(&mut self, _: &'ast syn::Item) {
        // A function's `?` is its own: there the macro does it.
    }
}

/// What stands before a statement on these lines. rust-analyzer sees a number, which takes it no time;
/// rustc is given a call of `at` in its place.
fn at(first: usize, last: usize, facts: &Facts) -> String {
    statement::mark(first, last, facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Leaves out what [`statement`] and [`unhandled`] test.
    fn without_facts(text: &str) -> String {
        let text = text.replace(statement::UNCHECKED, "");
        let text = text.replace(unhandled::LOOKED_AT.0, "");
        let text = text.replace(
            &format!("{}{}", unhandled::LOOKED_AT.1, unhandled::ENDS),
            "",
        );
        let mut parts = text.split("0/*at ");
        let mut result = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (facts, rest) = part.split_once("*/").expect("a whole mark");
            let (lines, _) = facts.split_once(':').expect("a whole mark");
            result += &format!("§at({lines}){rest}");
        }
        result
    }

    /// Shortens what is written around a cell, to keep the expectations readable.
    fn check(cell: &str, expected: &str) {
        let rewritten = rewrite(cell, 7, false);
        let text = without_facts(&rewritten.text)
            .replace("::stratoscope::cell::", "§")
            .replace("stratoscope::cell::", "§")
            .replace("::stratoscope::__result!", "§show");
        assert_eq!(text, expected);
        // Every character of the cell that is still there leads back to itself.
        for piece in &rewritten.pieces {
            let back = &cell[piece.original..piece.original + piece.length];
            assert_eq!(&rewritten.text[piece.rewritten..][..piece.length], back);
            assert_eq!(rewritten.start_of(piece.rewritten), piece.original);
        }
    }

    #[test]
    fn magic_lines_become_statements() {
        check(
            "%reset a",
            "§begin(7);§at(1, 1);let a = ::std::boxed::Box::new(a);drop(a);",
        );
        check(
            "!ls\n%env A=1\na",
            "§begin(7);§at(1, 1);§shell(\"ls\")?;\n§at(2, 2);§environment(\"A=1\");\n§at(3, 3);§show(a);",
        );
        check("%dep itoa = \"1\"", ":dep itoa = \"1\"");
        check(
            "%dep itoa = \"1\"\nf()",
            ":dep itoa = \"1\"\n§begin(7);§at(2, 2);§show(f());",
        );
        check(
            "%time f()",
            "§begin(7);§clock(); §at(1, 1);§show(f());\n§clocked();",
        );
        check(
            "%%time\nlet a = 1;",
            "§begin(7);§clock();\n§at(2, 2);let a = 1;\n§clocked();",
        );
        check(
            "%timeit f(a)?",
            "§begin(7);§at(1, 1);§timeit(None, None, || { let _ = ::std::hint::black_box({ f(a)?\n}); Ok(()) })?;",
        );
    }

    #[test]
    fn statements_are_marked_and_the_last_expression_is_shown() {
        check(
            "let a = 1;\na + 1",
            "§begin(7);§at(1, 1);let a = 1;\n§at(2, 2);§show(a + 1);",
        );
        check("1; // one", "§begin(7);§at(1, 1);1; // one");
        check("x // is shown", "§begin(7);§at(1, 1);§show(x); // is shown");
        check(
            "for i in 0..3 { f(i) }\n",
            "§begin(7);§at(1, 1);§show(for i in 0..3 { f(i) });\n",
        );
        check(
            "if a { b() }\nc();",
            "§begin(7);§at(1, 1);if a { b() }\n§at(2, 2);c();",
        );
        check("panic!(\"no\")", "§begin(7);§at(1, 1);panic!(\"no\");");
        check(
            "let s = \"ü\";\ns",
            "§begin(7);§at(1, 1);let s = \"ü\";\n§at(2, 2);§show(s);",
        );
    }

    #[test]
    fn items_commands_and_comments_stay() {
        check(
            "use a::b;\nfn f() -> u8 { 1 }",
            "§begin(7);use a::b;\nfn f() -> u8 { 1 }",
        );
        check(
            ":dep x = \"1\"\n\nf();",
            ":dep x = \"1\"\n\n§begin(7);§at(3, 3);f();",
        );
        check("// nothing\n", "// nothing\n");
        check(":vars", ":vars");
        check("::std::f();", "§begin(7);§at(1, 1);::std::f();");
    }

    #[test]
    fn a_return_of_the_cells_own_ends_it() {
        check(
            "if a { return Ok(()); }",
            "§begin(7);§at(1, 1);§show(if a { return §evcxr::early(Ok(())); });",
        );
        check("return;", "§begin(7);§at(1, 1);return;");
        check(
            "let f = || { return 3; };",
            "§begin(7);§at(1, 1);let f = || { return 3; };",
        );
        check(
            "fn f() -> u8 { return 3; }",
            "§begin(7);fn f() -> u8 { return 3; }",
        );
    }

    #[test]
    fn scopes_are_opened_up() {
        check(
            "scope!(s, {\n    let m = f()?;\n    g(m);\n});\nm",
            "§begin(7);§at(1, 1);§enter(&(s))?;\n    §at(2, 2);let m = f()?;\n    §at(3, 3);g(m);\n\
             §leave();\n§at(5, 5);§show(m);",
        );
        check(
            "scope!(a, { scope!(b, { let x = 1; }); x })",
            "§begin(7);§at(1, 1);§enter(&(a))?; §at(1, 1);§enter(&(b))?; §at(1, 1);let x = 1; \
             §leave(); §at(1, 1);§show(x); §leave();",
        );
        check(
            "scope!(a, { 1 });",
            "§begin(7);§at(1, 1);§enter(&(a))?; §at(1, 1);1; §leave();",
        );
        check(
            "let m = scope!(a, { scope!(b, { f() }) });",
            "§begin(7);§at(1, 1);let m = { let _scope = §guard(&(a))?; { let _scope = \
             §guard(&(b))?; f() } };",
        );
        check(
            "if x { scope!(a, { f() }) } else { 2 }",
            "§begin(7);§at(1, 1);§show(if x { { let _scope = §guard(&(a))?; f() } } else { 2 });",
        );
        check(
            "if x { scope!(a, { let m = f(); }); g(m); }",
            "§begin(7);§at(1, 1);§show(if x { let _scope_7 = §guard(&(a))?; let m = f(); \
             ::core::mem::drop(_scope_7); g(m); });",
        );
        check(
            "static A: u8 = 1;",
            "§begin(7);#[unsafe(export_name = \"stratoscope_static_000000_7_0\")] static A: u8 = 1;",
        );
        check(
            "fn f() { scope!(a, { 1 }) }",
            "§begin(7);fn f() { scope!(a, { 1 }) }",
        );
        check(
            "%%scope s\ns",
            "§begin(7);§at(1, 1);§enter(&(s))?;\n§at(2, 2);§show(s);\n§leave();",
        );
        check(
            "%%scope a.b()\nlet x = 1;",
            "§begin(7);§at(1, 1);§enter(&(a.b()))?;\n§at(2, 2);let x = 1;\n§leave();",
        );
    }

    #[test]
    fn what_cannot_be_parsed_is_left_to_rustc() {
        check("let x = ;", "§begin(7);let x = ;");
        check("#![feature(x)]\nlet y = 1;", "#![feature(x)]\nlet y = 1;");
    }

    /// Read twice at each operator, the first of them would take longer than any test.
    #[test]
    fn long_expressions_take_no_longer_than_their_length() {
        for (part, end) in [
            ("b + ", "b;"),
            ("f(b) * (2 - ", ""),
            ("!", "b;"),
            ("a == b && ", "b;"),
        ] {
            rewrite(&format!("let x = {}{end}", part.repeat(150)), 1, false);
        }
        for link in [".b()", "()", "[0]", ".b[0]", "?"] {
            rewrite(&format!("let x = f{};", link.repeat(250)), 1, false);
        }
    }

    #[test]
    fn a_program_is_recognized() {
        let is_program = |code: &str| ParsedCell::of(code).rewrite(1, false).is_program;
        assert!(is_program(
            "use std::fmt;\nfn main() { println!(\"hello\"); }"
        ));
        assert!(is_program(
            "async fn main() -> Result<(), String> { Ok(()) }"
        ));
        for code in [
            "fn main() {}\nmain();",
            "fn f() {}",
            "fn main(a: i32) {}",
            "1",
            "",
        ] {
            assert!(!is_program(code), "{code}");
        }
    }

    #[test]
    fn silent_cells_show_nothing() {
        let text = rewrite("a", 1, true).text;
        assert!(text.ends_with("let _ = &(a);"), "{text}");
    }

    #[test]
    fn places_lead_back_to_the_cell() {
        let cell = "let ü = 1;\nscope!(s, { ü + \"a\" });";
        let rewritten = rewrite(cell, 1, false);
        let column = |needle: &str, line: usize| {
            let content = rewritten.text.lines().nth(line - 1).expect("the line");
            let byte = content.find(needle).expect("the needle");
            content[..byte].chars().count() + 1
        };
        let start = column("\"a\"", 2);
        let range = rewritten.original_range((2, start), (2, start + 3));
        assert_eq!(&cell[range], "\"a\"");
        let start = column("ü = 1", 1);
        let range = rewritten.original_range((1, start), (1, start + 1));
        assert_eq!(&cell[range], "ü");
        assert!(rewritten.original_range((99, 1), (99, 2)).end <= cell.len());
        assert_eq!(rewritten.bindings, ["ü"]);
        assert_eq!(rewritten.binding_lines.get("ü"), Some(&1));
    }

    #[test]
    fn any_text_is_survived() {
        for text in [
            "",
            "\n",
            "%%scope",
            "%%scope\n",
            "scope!(",
            "}",
            "\u{0}",
            "let",
            "'",
            "é\"",
            "scope!(a, {",
        ] {
            let rewritten = rewrite(text, 1, false);
            for offset in 0..=rewritten.text.len() + 1 {
                assert!(rewritten.original_offset(offset) <= text.len());
            }
        }
    }
}

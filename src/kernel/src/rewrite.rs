//! A cell as its author typed it, turned into what evcxr is given, and the way back.
//!
//! - `begin(number)` comes first, `at(line, last_line)` before each statement: a variable, an
//!   error and a panic then know their line.
//! - `scope!(strategy, { … });` as a statement becomes `enter`, its statements and `leave`, since
//!   evcxr only keeps what top-level `let`s bind. `%%scope strategy` does it to a whole cell. As
//!   an expression it becomes a block with a guard, which rust-analyzer can see through.
//! - A last expression without `;` is shown by `__result!`, which needs one run of rustc where
//!   evcxr's own way needs two.
//! - Items, `use`, `:dep` lines and what `syn` cannot parse stay as they are; rustc explains the
//!   latter better.
//!
//! What was copied is remembered piece by piece, so that every place rustc talks about can be
//! found in the cell again. Nothing is formatted or reordered.

use std::ops::Range;

use proc_macro2::Span;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Block, Expr, Macro, MacroDelimiter, Pat, Stmt, Token};

use crate::magic::{self, Timed};

/// What evcxr is given.
#[derive(Clone, Debug)]
pub struct Rewritten {
    /// The text.
    pub text: String,
    /// The names that the cell's top-level `let`s bind, in order.
    pub bindings: Vec<String>,
    /// Whether there is anything to run: not only commands and comments.
    pub runs: bool,
    pieces: Vec<Piece>,
    original_length: usize,
}

/// A stretch of the cell that was copied.
#[derive(Clone, Copy, Debug)]
struct Piece {
    rewritten: usize,
    original: usize,
    length: usize,
}

/// Longer cells are handed over as they are: syn descends once per operator, and nobody types them.
const MOST_PARSED: usize = 32 << 10;
/// Room for the deepest nesting of that many bytes.
const STACK_BYTES: usize = 128 << 20;

/// Rewrites cell `number`. A `silent` cell does not show its last expression.
pub fn rewrite(code: &str, number: u64, silent: bool) -> Rewritten {
    on_deep_stack(|| rewrite_here(code, number, silent))
        .unwrap_or_else(|| apply(code, Vec::new(), Vec::new(), true))
}

/// Reads a cell with syn, on a thread whose stack is deep enough; `None`: it is too long for that.
pub fn parse_deep<T: Send>(code: &str, read: impl FnOnce(&str) -> T + Send) -> Option<T> {
    (code.len() <= MOST_PARSED).then(|| on_deep_stack(|| read(code)))?
}

fn on_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|threads| {
        std::thread::Builder::new()
            .name("rewrite".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(threads, work)
            .ok()
            .and_then(|thread| thread.join().ok())
    })
}

/// On a thread whose stack is deep enough, and with which what proc-macro2 remembers of the text
/// goes.
fn rewrite_here(code: &str, number: u64, silent: bool) -> Rewritten {
    let Head {
        end: head,
        scope: whole_cell_scope,
        lines,
        timed,
    } = head(code);
    let body = &code[head..];
    let mut editor = Editor {
        code,
        base: head,
        silent,
        edits: Vec::new(),
        bindings: Vec::new(),
    };
    let has_code = body
        .lines()
        .any(|line| !line.trim().is_empty() && !line.trim_start().starts_with("//"));
    let inner_attribute = body
        .lines()
        .any(|line| line.trim_start().starts_with("#!["));
    let runs = has_code || whole_cell_scope.is_some();
    let is_rust = |(_, rust): &&(Range<usize>, String)| !is_command(rust);
    let first_line = lines.iter().find(is_rust).map(|(range, _)| range.start);
    let runs = runs || first_line.is_some();
    let runs = runs && !inner_attribute;
    if runs {
        // What the lines stand for runs in the cell, behind its beginning.
        let start = first_line.unwrap_or(head);
        editor.prologue(number, whole_cell_scope.as_ref(), start);
    }
    for (range, rust) in lines {
        editor.replace(range, rust);
    }
    if runs {
        if timed == Some(Timed::Often) {
            editor.insert(head, TIMEIT.0);
            editor.insert(code.len(), TIMEIT.1);
            let Editor {
                edits, bindings, ..
            } = editor;
            return apply(code, edits, bindings, runs);
        }
        if timed == Some(Timed::Once) {
            editor.insert(head, "::stratoscope::cell::clock();");
        }
        let parsed = (body.len() <= MOST_PARSED).then(|| Block::parse_within.parse_str(body));
        if let Some(Ok(statements)) = parsed {
            editor.statements(&statements, true);
        }
        if timed == Some(Timed::Once) {
            editor.insert(code.len(), "\n::stratoscope::cell::clocked();");
        }
        if whole_cell_scope.is_some() {
            editor.insert(code.len(), "\n::stratoscope::cell::leave();");
        }
    }
    let Editor {
        edits, bindings, ..
    } = editor;
    apply(code, edits, bindings, runs)
}

impl Rewritten {
    /// The place in the cell that byte `offset` of the rewritten text stands for. What was not
    /// copied stands for the end of what was copied before it.
    pub fn original_offset(&self, offset: usize) -> usize {
        let after = self
            .pieces
            .partition_point(|piece| piece.rewritten <= offset);
        match after.checked_sub(1).map(|index| self.pieces[index]) {
            Some(piece) => piece.original + (offset - piece.rewritten).min(piece.length),
            None => self.pieces.first().map_or(0, |piece| piece.original),
        }
        .min(self.original_length)
    }

    /// The bytes of the cell that these of the rewritten text are a copy of; `None`: they are not, or not all
    /// of them.
    pub fn copied_from(&self, range: Range<usize>) -> Option<Range<usize>> {
        let after = self
            .pieces
            .partition_point(|piece| piece.rewritten <= range.start);
        // Where one piece ends and the next begins, an insertion stands at the beginning.
        let piece = self.pieces[after.checked_sub(1)?];
        let start = range.start - piece.rewritten;
        let end = range.end.checked_sub(piece.rewritten)?;
        (end <= piece.length).then(|| piece.original + start..piece.original + end)
    }

    /// The bytes of the cell between two places of the rewritten text, each given as a line and a
    /// column in characters, counted from 1.
    pub fn original_range(&self, start: (usize, usize), end: (usize, usize)) -> Range<usize> {
        let from = self.start_of(offset_of(&self.text, start));
        let to = self.original_offset(offset_of(&self.text, end));
        from..to.max(from)
    }

    /// As [`Self::original_offset`], but a place where one piece ends and the next begins stands
    /// for the beginning.
    fn start_of(&self, offset: usize) -> usize {
        let next = self
            .pieces
            .partition_point(|piece| piece.rewritten < offset);
        match self.pieces.get(next) {
            Some(piece) if piece.rewritten == offset => piece.original,
            _ => self.original_offset(offset),
        }
    }
}

/// Byte offset of a line and a column in characters, counted from 1; the text's end if there is
/// no such place.
pub fn offset_of(text: &str, (line, column): (usize, usize)) -> usize {
    let mut start = 0;
    for (index, content) in text.split_inclusive('\n').enumerate() {
        if index + 1 == line {
            let within = content
                .char_indices()
                .nth(column.saturating_sub(1))
                .map_or(content.trim_end_matches('\n').len(), |(byte, _)| byte);
            return start + within;
        }
        start += content.len();
    }
    text.len()
}

/// The line of byte `offset`, counted from 1.
pub fn line_of(text: &str, offset: usize) -> usize {
    let offset = offset.min(text.len());
    1 + text.as_bytes()[..offset]
        .iter()
        .filter(|&&byte| byte == b'\n')
        .count()
}

/// What stands above a cell's Rust code.
#[derive(Default)]
struct Head {
    /// Where the Rust code starts.
    end: usize,
    /// The strategy of `%%scope`.
    scope: Option<Range<usize>>,
    /// Lines that stand for Rust, and that Rust.
    lines: Vec<(Range<usize>, String)>,
    /// `%time` or `%timeit` stands before the code.
    timed: Option<Timed>,
}

/// Around what `%timeit` repeats; the `?`s of its code are those of the closure.
const TIMEIT: (&str, &str) = (
    "::stratoscope::cell::timeit(|| { let _ = ::std::hint::black_box({",
    "\n}); Ok(()) })?;",
);

/// Whether a line is for evcxr, and not Rust, which may begin with `::`.
fn is_command(line: &str) -> bool {
    line.starts_with(':') && !line.starts_with("::")
}

/// Passes over evcxr's command lines and the magics.
fn head(code: &str) -> Head {
    let mut head = Head::default();
    for line in code.split_inclusive('\n') {
        let start = head.end;
        let content = line.trim();
        if let Some(strategy) = content.strip_prefix("%%scope") {
            let strategy = strategy.trim();
            // From behind: the name of the strategy may be a part of the magic's.
            let from = start + line.rfind(strategy).unwrap_or(0);
            head.end = start + line.len();
            head.scope = (!strategy.is_empty()).then(|| from..from + strategy.len());
            return head;
        }
        if let Some((timed, length)) = magic::timed(line) {
            head.lines.push((start..start + length, String::new()));
            head.end = start + length;
            head.timed = Some(timed);
            return head;
        }
        if let Some(rust) = magic::rust_of_line(content) {
            let from = start + line.len() - line.trim_start().len();
            let number = line_of(code, from);
            // A command of evcxr's begins its line; anything else is a statement of this line.
            let rust = match is_command(&rust) {
                true => rust,
                false => format!("{}{rust}", at(number, number)),
            };
            head.lines.push((from..from + content.len(), rust));
        } else if !(is_command(line.trim_start_matches(' '))
            || content.is_empty()
            || content.starts_with("//"))
        {
            break;
        }
        head.end += line.len();
    }
    head
}

/// Collects what is to be changed.
struct Editor<'a> {
    code: &'a str,
    base: usize,
    silent: bool,
    edits: Vec<Edit>,
    bindings: Vec<String>,
}

/// Bytes of the cell and what replaces them.
struct Edit {
    range: Range<usize>,
    text: String,
}

impl Editor<'_> {
    fn prologue(&mut self, number: u64, scope: Option<&Range<usize>>, head: usize) {
        // No leading `::`: evcxr takes a first line that begins with a colon for a command.
        let begin = format!("stratoscope::cell::begin({number});");
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
            format!("{begin}{}::stratoscope::cell::enter(&(", at(line, line)),
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
        if matches!(statement, Stmt::Item(_)) {
            return;
        }
        let range = self.range(statement.span());
        let (first, last) = self.lines(&range);
        if let Stmt::Local(local) = statement {
            names(&local.pat, &mut self.bindings);
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
        self.insert(range.start, at(first, last));
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
        self.visit_stmt(statement);
        if shown {
            self.insert(range.end, if is_value { ");" } else { ";" });
        }
    }

    /// `scope!(strategy, { … })` as a value → `{ let _scope = guard(&(strategy))?; … }`
    fn guard(&mut self, scope: &Scope, whole: &Range<usize>) {
        let strategy = self.range(scope.strategy.span());
        let braces = scope.block.brace_token.span;
        let opening = self.range(braces.open());
        let closing = self.range(braces.close());
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

    /// `scope!(strategy, { statements })` → `enter(&(strategy))?; statements leave();`
    fn open(&mut self, scope: &Scope, statement: &Range<usize>, shows: bool) {
        let strategy = self.range(scope.strategy.span());
        let braces = scope.block.brace_token.span;
        let opening = self.range(braces.open());
        let closing = self.range(braces.close());
        let (first, _) = self.lines(statement);
        let (_, last) = self.lines(&strategy);
        self.replace(
            statement.start..strategy.start,
            format!("{}::stratoscope::cell::enter(&(", at(first, last)),
        );
        self.replace(strategy.end..opening.end, "))?;");
        self.statements(&scope.block.stmts, shows);
        self.replace(
            closing.start..statement.end,
            "::stratoscope::cell::leave();",
        );
    }

    fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.replace(at..at, text);
    }

    fn replace(&mut self, range: Range<usize>, text: impl Into<String>) {
        let text = text.into();
        self.edits.push(Edit { range, text });
    }

    fn range(&self, span: Span) -> Range<usize> {
        let range = span.byte_range();
        self.base + range.start..self.base + range.end
    }

    fn lines(&self, range: &Range<usize>) -> (usize, usize) {
        (
            line_of(self.code, range.start),
            line_of(self.code, range.end),
        )
    }
}

/// Finds the `scope!`s that are values, wherever they stand.
impl<'ast> Visit<'ast> for Editor<'_> {
    fn visit_expr_macro(&mut self, expression: &'ast syn::ExprMacro) {
        match opened_scope(&expression.mac) {
            Some(scope) => {
                let whole = self.range(expression.span());
                self.guard(&scope, &whole);
            }
            None => visit::visit_expr_macro(self, expression),
        }
    }

    fn visit_stmt_macro(&mut self, statement: &'ast syn::StmtMacro) {
        // Inside a block: its `let`s live no longer than the block anyway.
        if let Some(scope) = opened_scope(&statement.mac) {
            let whole = self.range(statement.mac.span());
            self.guard(&scope, &whole);
        }
    }

    fn visit_item(&mut self, _: &'ast syn::Item) {
        // A function's `?` is its own: there the macro does it.
    }
}

fn at(first: usize, last: usize) -> String {
    format!("::stratoscope::cell::at({first}, {last});")
}

/// The operands of `scope!`.
struct Scope {
    strategy: Expr,
    block: Block,
}

/// The operands of `called` if it is `scope!(strategy, { … })`.
fn opened_scope(called: &Macro) -> Option<Scope> {
    if called.path.segments.last()?.ident != "scope" {
        return None;
    }
    let operands = |input: ParseStream<'_>| {
        let strategy = input.parse()?;
        input.parse::<Token![,]>()?;
        let block = input.parse()?;
        input.parse::<Option<Token![,]>>()?;
        Ok(Scope { strategy, block })
    };
    operands.parse2(called.tokens.clone()).ok()
}

/// `name! { … }` at the end of a cell defines things more often than it is a value.
fn in_braces(called: &Macro) -> bool {
    matches!(called.delimiter, MacroDelimiter::Brace(_))
}

/// Expressions of type `!`, whose value nobody can see.
fn never_returns(statement: &Stmt) -> bool {
    const MACROS: [&str; 4] = ["panic", "todo", "unimplemented", "unreachable"];
    const FUNCTIONS: [&str; 3] = ["exit", "abort", "resume_unwind"];
    let last_is = |path: &syn::Path, names: &[&str]| {
        let last = path.segments.last();
        last.is_some_and(|segment| names.iter().any(|name| segment.ident == name))
    };
    match statement {
        Stmt::Macro(statement) => last_is(&statement.mac.path, &MACROS),
        Stmt::Expr(Expr::Macro(expression), _) => last_is(&expression.mac.path, &MACROS),
        Stmt::Expr(Expr::Call(call), _) => {
            matches!(&*call.func, Expr::Path(function) if last_is(&function.path, &FUNCTIONS))
        }
        Stmt::Expr(expression, _) => {
            matches!(
                expression,
                Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) | Expr::Loop(_)
            ) || matches!(expression, Expr::Block(block)
            if block.block.stmts.last().is_some_and(never_returns))
        }
        _ => false,
    }
}

/// The names a pattern binds.
fn names(pattern: &Pat, into: &mut Vec<String>) {
    match pattern {
        Pat::Ident(pattern) => {
            into.push(pattern.ident.to_string());
            if let Some((_, inner)) = &pattern.subpat {
                names(inner, into);
            }
        }
        Pat::Type(pattern) => names(&pattern.pat, into),
        Pat::Paren(pattern) => names(&pattern.pat, into),
        Pat::Reference(pattern) => names(&pattern.pat, into),
        Pat::Tuple(pattern) => pattern.elems.iter().for_each(|inner| names(inner, into)),
        Pat::TupleStruct(pattern) => pattern.elems.iter().for_each(|inner| names(inner, into)),
        Pat::Slice(pattern) => pattern.elems.iter().for_each(|inner| names(inner, into)),
        Pat::Struct(pattern) => pattern
            .fields
            .iter()
            .for_each(|field| names(&field.pat, into)),
        _ => {}
    }
}

fn apply(code: &str, mut edits: Vec<Edit>, bindings: Vec<String>, runs: bool) -> Rewritten {
    // Stable: insertions at one place keep the order in which they were made.
    edits.sort_by_key(|edit| edit.range.start);
    let mut text = String::with_capacity(code.len() + 64 * edits.len());
    let mut pieces = Vec::new();
    let mut position = 0;
    for edit in edits {
        // An edit that would undo another cannot come from nested statements; leave the text be.
        if edit.range.start < position {
            continue;
        }
        copy(code, position..edit.range.start, &mut text, &mut pieces);
        text.push_str(&edit.text);
        position = edit.range.end;
    }
    copy(code, position..code.len(), &mut text, &mut pieces);
    Rewritten {
        text,
        bindings,
        runs,
        pieces,
        original_length: code.len(),
    }
}

fn copy(code: &str, range: Range<usize>, text: &mut String, pieces: &mut Vec<Piece>) {
    if range.is_empty() {
        return;
    }
    pieces.push(Piece {
        rewritten: text.len(),
        original: range.start,
        length: range.len(),
    });
    text.push_str(&code[range]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shortens what is written around a cell, to keep the expectations readable.
    fn check(cell: &str, expected: &str) {
        let rewritten = rewrite(cell, 7, false);
        let text = rewritten
            .text
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
        check("%reset a", "§begin(7);§at(1, 1);drop(a);");
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
            "§begin(7);§timeit(|| { let _ = ::std::hint::black_box({ f(a)?\n}); Ok(()) })?;",
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

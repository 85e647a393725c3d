//! What statements are, as far as they are rewritten in different ways.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::parse::{ParseStream, Parser};
use syn::{Block, Expr, Macro, MacroDelimiter, Pat, Stmt, Token};

use crate::header::Header;
use crate::magic::Replacement;

/// The operands of `scope!`.
pub struct Scope {
    pub strategy: Expr,
    pub block: Block,
}

impl Scope {
    /// Whether the body ends with a value, as a block does; otherwise it is a list of statements.
    pub fn is_value(&self) -> bool {
        match self.block.stmts.last() {
            Some(Stmt::Expr(_, semicolon)) => semicolon.is_none(),
            Some(Stmt::Macro(statement)) => statement.semi_token.is_none(),
            Some(Stmt::Local(_) | Stmt::Item(_)) => false,
            None => true,
        }
    }
}

/// The operands of `called` if it is `scope!(strategy, { … })`.
pub fn opened_scope(called: &Macro) -> Option<Scope> {
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

/// The block of `sweep!(… => { … })`.
pub fn sweep_body(called: &Macro) -> Option<Block> {
    if called.path.segments.last()?.ident != "sweep" {
        return None;
    }
    let last = called.tokens.clone().into_iter().last()?;
    let is_block = matches!(&last, TokenTree::Group(it) if it.delimiter() == Delimiter::Brace);
    is_block.then(|| syn::parse2(TokenStream::from(last)).ok())?
}

/// `name! { … }` at the end of a cell defines things more often than it is a value.
pub fn in_braces(called: &Macro) -> bool {
    matches!(called.delimiter, MacroDelimiter::Brace(_))
}

/// Expressions of type `!`, which have no value to show.
pub fn never_returns(statement: &Stmt) -> bool {
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
pub fn names(pattern: &Pat, into: &mut Vec<String>) {
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

/// Whether the cell is a program of Rust: items only, with a `main` that nothing calls.
pub(super) fn is_program(statements: &[Stmt]) -> bool {
    let is_main = |statement: &Stmt| match statement {
        Stmt::Item(syn::Item::Fn(function)) => {
            function.sig.ident == "main" && function.sig.inputs.is_empty()
        }
        _ => false,
    };
    let all_items = statements.iter().all(|it| matches!(it, Stmt::Item(_)));
    all_items && statements.iter().any(is_main)
}

/// Whether there is anything to run: Rust code, a line that stands for it, or a scope.
pub(super) fn runs(header: &Header, body: &str) -> bool {
    let is_code = |line: &str| !line.is_empty() && !line.starts_with("//");
    let has_code = body.lines().any(|line| is_code(line.trim()));
    let has_inner_attribute = body
        .lines()
        .any(|line| line.trim_start().starts_with("#!["));
    let runs = has_code || header.scope.is_some() || first_rust_line(header).is_some();
    runs && !has_inner_attribute
}

/// Where the first line begins that stands for Rust code.
pub(super) fn first_rust_line(header: &Header) -> Option<usize> {
    let mut lines = header.lines.iter();
    let found = lines.find(|(_, replacement)| !matches!(replacement, Replacement::Command(_)));
    found.map(|(range, _)| range.start)
}

//! Cells that end before their last statement does: without its `;`, its block, or the rest of it.

use stratoscope_cell_syntax::Syntax;
use syn::parse::Parser;
use syn::{Expr, Stmt};

use super::calls::span_of;
use super::syntax::checked;
use super::{CellContext, habits};
use crate::rules::UnfinishedCode;
use crate::{Diagnostic, Edit, Fix, FixKind, Place, Rule, Severity};

/// A cell that ends in the middle of a statement.
pub(super) fn answer(cell: &Syntax, code: &str, context: &CellContext) -> Option<Diagnostic> {
    let (text, (tokens, error)) = (cell.text(), cell.broken()?);
    let diagnostic = error.to_string();
    let expected = diagnostic.strip_prefix("unexpected end of input, ");
    let expected = expected.or_else(|| diagnostic.strip_prefix("expected `;`").and(Some("`;`")))?;
    // Where a group ends early, the place is its bracket; of the cell itself there is none.
    if !error.span().byte_range().is_empty() {
        return None;
    }
    let end = tokens
        .clone()
        .into_iter()
        .last()
        .map(|last| span_of(last.span()).end)?;
    let start = text[..end]
        .char_indices()
        .next_back()
        .map_or(0, |(at, _)| at);
    let place = Place::span(start, end);
    let insert = |sign: &str| Edit {
        place: Place::span(end, end),
        replacement: sign.to_owned(),
    };
    let (message, label, fix) = if expected.contains("`;`") {
        if let Some(found) = of_another_library(text, end, context) {
            return Some(found);
        }
        // Without the `?` the variable would be a `Result`, and an error would be no error of the cell.
        let end = if ends_in_our_call(code) { "?;" } else { ";" };
        let fix = Fix {
            kind: FixKind::Change,
            title: format!("put a `{end}` at its end"),
            edits: vec![insert(end)],
        };
        (
            "the last statement has no `;` at its end",
            "`;` is missing after this",
            fix,
        )
    } else if expected.contains("curly braces") || expected.contains('{') {
        let fix = Fix {
            kind: FixKind::Change,
            title: "add the block: `{ … }`".to_owned(),
            edits: Vec::new(),
        };
        (
            "the cell ends before the block `{ … }` of its last statement",
            "a block is missing after this",
            fix,
        )
    } else {
        let fix = Fix {
            kind: FixKind::Change,
            title: "complete the statement, or remove it".to_owned(),
            edits: Vec::new(),
        };
        (
            "the cell ends in the middle of a statement",
            "something is missing after this",
            fix,
        )
    };
    let facts = UnfinishedCode {
        message: message.to_owned(),
        labels: vec![(place, label.to_owned())],
        fix: Some(if fix.edits.is_empty() {
            fix
        } else {
            checked(text, fix)
        }),
    };
    Some(facts.diagnostic())
}

/// SC0130: `let data = pd.read_csv("a.csv")` lacks its `;`, and with it rustc would not know `pd`.
fn of_another_library(text: &str, end: usize, context: &CellContext) -> Option<Diagnostic> {
    let semicolon = Edit {
        place: Place::span(end, end),
        replacement: ";".to_owned(),
    };
    let whole = Syntax::of(&format!("{};{}", &text[..end], &text[end..]));
    let root = match whole.statements()?.last()? {
        Stmt::Local(local) => root_of(&local.init.as_ref()?.expr)?,
        _ => return None,
    };
    let span = span_of(root.span());
    let name = root.to_string();
    let is_bound = context.variables.contains_key(&name) || text[..span.start].contains(&name);
    if is_bound || !habits::is_module(&name) {
        return None;
    }
    let message = format!("cannot find value `{name}` in this scope");
    let unknown = Diagnostic::new("E0425", Severity::Error, message).label(Place::Span(span), "");
    let mut found = habits::answer(&whole, &unknown, span, context)?;
    for fix in found.fixes.iter_mut().filter(|fix| !fix.edits.is_empty()) {
        fix.edits.push(semicolon.clone());
    }
    Some(found)
}

/// The name that a chain of calls, fields and indices begins with.
fn root_of(value: &Expr) -> Option<&syn::Ident> {
    match value {
        Expr::MethodCall(call) => root_of(&call.receiver),
        Expr::Field(field) => root_of(&field.base),
        Expr::Index(index) => root_of(&index.expr),
        Expr::Call(call) => root_of(&call.func),
        Expr::Try(tried) => root_of(&tried.expr),
        Expr::Path(path) => path.path.get_ident(),
        _ => None,
    }
}

/// Whether the value of the last statement, which lacks its `;`, is a call of the DSL.
fn ends_in_our_call(code: &str) -> bool {
    let whole = format!("{code};");
    let statements = syn::Block::parse_within.parse_str(&whole);
    let value = match statements.ok().and_then(|mut it| it.pop()) {
        Some(Stmt::Local(local)) => local.init.map(|it| *it.expr),
        Some(Stmt::Expr(Expr::Assign(assign), _)) => Some(*assign.right),
        Some(Stmt::Expr(expression, _)) => Some(expression),
        _ => None,
    };
    let Some(Expr::Macro(called)) = value else {
        return false;
    };
    let name = called
        .mac
        .path
        .segments
        .last()
        .map(|it| it.ident.to_string());
    name.is_some_and(|name| {
        ["compile", "fit", "start", "evaluate", "sweep"].contains(&name.as_str())
    })
}

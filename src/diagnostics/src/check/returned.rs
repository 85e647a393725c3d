//! A function that gets a `?`: it has to return a `Result`, and its calls hand the error on.

use stratoscope_cell_syntax::Syntax;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::calls::span_of;
use super::our_words::function_around;
use super::slips;
use super::syntax::difference;
use crate::render::apply;
use crate::{CellSpan, Diagnostic, Edit, Fix, Place};

/// The finding with fixes that leave no `?` in a function that returns no `Result`: they change the function as well.
pub(super) fn settled(cell: &Syntax, mut found: Diagnostic) -> Diagnostic {
    for fix in &mut found.fixes {
        if let Some((edits, function)) = with_functions(cell, fix) {
            fix.title = format!("{}, and let `{function}` return a `Result`", fix.title);
            fix.edits = edits;
        }
    }
    found
}

/// The fix with the changes of the function around the `?` that it brings, and the function's name.
fn with_functions(cell: &Syntax, fix: &Fix) -> Option<(Vec<Edit>, String)> {
    if !fix.edits.iter().any(|it| it.replacement.contains('?')) {
        return None;
    }
    let fixed = apply(cell.text(), fix)?;
    let marks = marks_in(fix);
    let (done, name) = Syntax::with(fixed.as_str(), |cell| {
        let mut tries = Tries(Vec::new());
        for statement in cell.statements()? {
            tries.visit_stmt(statement);
        }
        let mark = marks.into_iter().find(|at| tries.0.contains(at))?;
        let at = CellSpan {
            start: mark,
            end: mark + 1,
        };
        let function = function_around(cell, at)?;
        let returns = match &function.sig.output {
            syn::ReturnType::Default => "",
            syn::ReturnType::Type(_, of_type) => {
                let at = span_of(of_type.span());
                cell.text().get(at.start..at.end)?
            }
        };
        if returns.contains("Result") || returns.contains("Option") {
            return None;
        }
        let done = apply(cell.text(), &with_result(cell, &function))?;
        Some((done, function.sig.ident.to_string()))
    })?;
    let is_rust = Syntax::with(done.as_str(), |cell| Some(cell.is_rust()));
    is_rust
        .unwrap_or(false)
        .then(|| (vec![difference(cell.text(), &done)], name))
}

/// The places of each `?` that a fix brings, in the text after it.
fn marks_in(fix: &Fix) -> Vec<usize> {
    let spans = fix.edits.iter().filter_map(|it| match it.place {
        Place::Span(span) => Some((span, it.replacement.as_str())),
        _ => None,
    });
    let mut spans: Vec<(CellSpan, &str)> = spans.collect();
    spans.sort_by_key(|(span, _)| (span.start, span.end));
    let (mut written, mut removed, mut marks) = (0, 0, Vec::new());
    for (span, replacement) in spans {
        let start = span.start + written - removed;
        marks.extend(replacement.match_indices('?').map(|(at, _)| start + at));
        written += replacement.len();
        removed += span.end - span.start;
    }
    marks
}

/// Where a `?` stands that returns from a function, and not from a closure.
struct Tries(Vec<usize>);

impl<'ast> Visit<'ast> for Tries {
    fn visit_expr_try(&mut self, tried: &'ast syn::ExprTry) {
        self.0.push(span_of(tried.question_token.span()).start);
        visit::visit_expr_try(self, tried);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        if let Ok(values) = called.parse_body_with(
            syn::punctuated::Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated,
        ) {
            values.iter().for_each(|it| self.visit_expr(it));
        }
    }

    fn visit_expr_closure(&mut self, _: &'ast syn::ExprClosure) {}

    fn visit_expr_async(&mut self, _: &'ast syn::ExprAsync) {}
}

/// A `?` behind each call of a function of the cell that stands in no other function and no closure.
fn marks_of_calls(cell: &Syntax, name: &str) -> Vec<Edit> {
    struct Calls<'a>(&'a str, Vec<usize>);
    impl<'ast> Visit<'ast> for Calls<'_> {
        fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
            if matches!(&*call.func, syn::Expr::Path(path) if path.path.is_ident(self.0)) {
                self.1.push(span_of(call.span()).end);
            }
            visit::visit_expr_call(self, call);
        }

        fn visit_macro(&mut self, called: &'ast syn::Macro) {
            if let Ok(values) = called.parse_body_with(
                syn::punctuated::Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated,
            ) {
                values.iter().for_each(|it| self.visit_expr(it));
            }
        }

        fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
            if function.sig.ident == self.0 {
                visit::visit_item_fn(self, function);
            }
        }

        fn visit_item_impl(&mut self, _: &'ast syn::ItemImpl) {}

        fn visit_expr_closure(&mut self, _: &'ast syn::ExprClosure) {}
    }
    let mut calls = Calls(name, Vec::new());
    for statement in cell.statements().unwrap_or_default() {
        calls.visit_stmt(statement);
    }
    let text = cell.text();
    let open = calls.1.into_iter();
    let open = open.filter(|at| !text[*at..].trim_start().starts_with('?'));
    open.map(|at| Edit {
        place: Place::span(at, at),
        replacement: "?".to_owned(),
    })
    .collect()
}

/// The type of the errors of a function that had none.
const ERROR: &str = "Box<dyn std::error::Error>";

/// The function as one that returns a `Result`; in words where more than its two ends would change.
pub(super) fn with_result(cell: &Syntax, function: &syn::ImplItemFn) -> Fix {
    let text = cell.text();
    let edit = |start: usize, end: usize, replacement: String| Edit {
        place: Place::span(start, end),
        replacement,
    };
    let name = &function.sig.ident;
    if let Some(value) = untyped_value(function) {
        return with_type_of_value(cell, function, value);
    }
    let mut edits = Vec::new();
    let kind = match &function.sig.output {
        syn::ReturnType::Default => {
            let at = span_of(function.sig.paren_token.span.close()).end;
            edits.push(edit(at, at, format!(" -> Result<(), {ERROR}>")));
            "()".to_owned()
        }
        syn::ReturnType::Type(_, kind) => {
            let CellSpan { start, end } = span_of(kind.span());
            let written = text[start..end].to_owned();
            edits.push(edit(start, end, format!("Result<{written}, {ERROR}>")));
            written
        }
    };
    let title = format!(
        "let `{name}` return a `Result`: `-> Result<{kind}, {ERROR}>`, and end with `Ok(…)`"
    );
    let close = span_of(function.block.brace_token.span.close()).start;
    match function.block.stmts.last() {
        Some(syn::Stmt::Expr(value, None)) if kind != "()" => {
            let CellSpan { start, end } = span_of(value.span());
            edits.push(edit(start, start, "Ok(".to_owned()));
            edits.push(edit(end, end, ")".to_owned()));
        }
        Some(last) if kind == "()" => {
            let end = span_of(last.span()).end;
            let is_open = match last {
                syn::Stmt::Expr(value, None) => !matches!(
                    value,
                    syn::Expr::If(_)
                        | syn::Expr::ForLoop(_)
                        | syn::Expr::While(_)
                        | syn::Expr::Loop(_)
                        | syn::Expr::Match(_)
                        | syn::Expr::Block(_)
                ),
                syn::Stmt::Macro(called) => called.semi_token.is_none(),
                _ => false,
            };
            let mark = if is_open { ";" } else { "" };
            let gap = if text[end..close].contains('\n') {
                "\n    "
            } else {
                " "
            };
            edits.push(edit(end, end, format!("{mark}{gap}Ok(())")));
        }
        _ => edits.clear(),
    }
    // Each `return` would have to change as well.
    if has_return(&function.block) {
        edits.clear();
    }
    if !edits.is_empty() {
        edits.splice(0..0, marks_of_calls(cell, &name.to_string()));
    }
    Fix {
        kind: crate::FixKind::Change,
        title,
        edits,
    }
}

/// The function with a `Result` of the type of the value that it ends with, if the text shows that.
fn with_type_of_value(cell: &Syntax, function: &syn::ImplItemFn, value: &syn::Expr) -> Fix {
    let (text, name) = (cell.text(), &function.sig.ident);
    let edit = |start: usize, end: usize, replacement: String| Edit {
        place: Place::span(start, end),
        replacement,
    };
    let CellSpan { start, end } = span_of(value.span());
    let value = &text[start..end];
    if let Some(of_type) = slips::type_returned(cell, value)
        && !has_return(&function.block)
    {
        let at = span_of(function.sig.paren_token.span.close()).end;
        let mut edits = marks_of_calls(cell, &name.to_string());
        edits.push(edit(at, at, format!(" -> Result<{of_type}, {ERROR}>")));
        edits.push(edit(start, end, format!("Ok({value})")));
        return Fix {
            kind: crate::FixKind::Change,
            title: format!(
                "let `{name}` return a `Result`: `-> Result<{of_type}, {ERROR}>`, and end with `Ok({value})`"
            ),
            edits,
        };
    }
    Fix {
        kind: crate::FixKind::Change,
        title: format!(
            "let `{name}` return a `Result` with the type of `{value}`: `-> Result<…, {ERROR}>`, and end with `Ok({value})`"
        ),
        edits: Vec::new(),
    }
}

/// The value that a function ends with although its signature has no type for it.
fn untyped_value(function: &syn::ImplItemFn) -> Option<&syn::Expr> {
    match function.block.stmts.last()? {
        syn::Stmt::Expr(value @ (syn::Expr::Path(_) | syn::Expr::Lit(_)), None)
            if matches!(function.sig.output, syn::ReturnType::Default) =>
        {
            Some(value)
        }
        _ => None,
    }
}

fn has_return(block: &syn::Block) -> bool {
    struct Returns(bool);
    impl<'ast> Visit<'ast> for Returns {
        fn visit_expr_return(&mut self, _: &'ast syn::ExprReturn) {
            self.0 = true;
        }
    }
    let mut returns = Returns(false);
    returns.visit_block(block);
    returns.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FixKind;

    #[test]
    fn a_fix_that_brings_a_mark_changes_the_function_and_its_calls() {
        for (text, old, new, expected) in [
            (
                "fn once(it: &Run) { it.step(); }\nonce(&run);",
                "it.step()",
                "it.step(1)?",
                Some(
                    "fn once(it: &Run) -> Result<(), Box<dyn std::error::Error>> { it.step(1)?; Ok(()) }\nonce(&run)?;",
                ),
            ),
            (
                "fn f() -> usize { g() }\nprintln!(\"{}\", f());",
                "g()",
                "g()?",
                Some(
                    "fn f() -> Result<usize, Box<dyn std::error::Error>> { Ok(g()?) }\nprintln!(\"{}\", f()?);",
                ),
            ),
            ("fn f() -> Result<usize> { g() }", "g()", "g()?", None),
            ("let c = || { g() };", "g()", "g()?", None),
            ("g();", "g()", "g()?", None),
            ("fn f() { g(\"a\") }", "\"a\"", "\"a?\"", None),
        ] {
            let start = text.find(old).expect("stands there");
            let fix = Fix {
                kind: FixKind::Change,
                title: String::new(),
                edits: vec![Edit {
                    place: Place::span(start, start + old.len()),
                    replacement: new.to_owned(),
                }],
            };
            let fixed = Syntax::with(text, |cell| {
                let (edits, _) = with_functions(cell, &fix)?;
                apply(
                    text,
                    &Fix {
                        edits,
                        ..fix.clone()
                    },
                )
            });
            assert_eq!(fixed.as_deref(), expected, "{text}");
        }
    }
}

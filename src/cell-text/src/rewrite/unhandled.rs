//! Results that a statement drops. Rust only warns of them, but a run that has failed without a word looks like one that
//! has worked, so the text of a cell is completed:
//!
//! - A call of the DSL ([`calls`]) at the top level of the cell, also in a loop, a condition or a block there, gets a `?` where
//!   its value is dropped, bound, shown or used as the good value: `fit!(model, data);` and `let _ = fit!(…)`, but also
//!   `let history = fit!(…);`. A variable that the cell asks for an error (`match`, `.is_err()`, `?`) stays a `Result`.
//! - In a closure or a function, whose `?` is its own, a dropped call is given to `dropped`, which ends the cell.
//! - A dropped call of a function, or of a method that may return a result of ours, is looked at by `Unused`, which
//!   knows its type.
//!
//! All other errors of the DSL are watched while the cell runs (`stratoscope_diagnostics::unhandled`). Statements and
//! functions that ask a `Result` what it is say so by a call of `looks` ([`asks`]).

use std::ops::Range;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Block, Expr, Local, Macro, Pat, Stmt};

use super::Edit;
use super::shape::{opened_scope, sweep_body};

pub mod calls;
pub mod question_mark;
pub mod results;

use calls::{is_fallible_function, is_fallible_method, is_ours};
use results::{Names, asks, is_of_results, may_be_an_error, says_result};

/// Around an expression of a type that only the compiler knows. The tuple is for calls of type `!`, of which a variable would
/// have no type. The value is the expression's again, so that rustc still warns of one that must be used.
pub(super) const LOOKED_AT: (&str, &str) = (
    "(match (",
    ",) { #[allow(unreachable_code)] value => { #[allow(unused_imports)] \
     use ::stratoscope::cell::unused::{Ours as _, Other as _}; \
     (&::stratoscope::cell::unused::Unused(&value.0))",
);
/// What is done where a `?` is the cell's own, and elsewhere.
pub(super) const ENDS: &str = ".ends()?; value.0 } })";
const RAISES: &str = ".raises(); value.0 } })";

/// Before a result of the DSL that a closure or a function drops.
const DROPPED: &str = "::stratoscope::cell::dropped(";

/// In a statement or a function that asks a `Result` what it is.
pub const LOOKS: &str = "::stratoscope::cell::looks();";

/// What happens to the value of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Nothing.
    Dropped,
    /// It is bound or shown, as a value that is there.
    Good,
    /// It is looked at, passed on or returned: its error is not lost here.
    Elsewhere,
}

/// What a `?` is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// It ends the cell.
    Cell,
    /// It ends a closure whose errors are ours: a trial of `sweep!`, what `%timeit` repeats.
    Trial,
    /// It is the function's or the closure's own.
    Function,
}

/// Where code is looked at.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    pub code: &'a str,
    pub names: &'a Names,
}

impl Text<'_> {
    /// What is inserted for a statement of the cell itself. `tail`: what happens to its value without a `;`.
    pub fn of_statement(self, statement: &Stmt, tail: Use) -> Vec<Edit> {
        let mut finder = Finder::new(self, Level::Cell);
        finder.statement(statement, tail);
        finder.edits
    }

    /// The same for what `%timeit` repeats.
    pub fn of_repeated(self, statements: &[Stmt]) -> Vec<Edit> {
        let mut finder = Finder::new(self, Level::Trial);
        finder.statements(statements, Use::Dropped);
        finder.edits
    }
}

struct Finder<'a> {
    text: Text<'a>,
    level: Level,
    edits: Vec<Edit>,
}

impl<'a> Finder<'a> {
    fn new(text: Text<'a>, level: Level) -> Self {
        Self {
            text,
            level,
            edits: Vec::new(),
        }
    }

    fn replace(&mut self, range: Range<usize>, text: impl Into<String>) {
        let text = text.into();
        self.edits.push(Edit { range, text });
    }

    fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.replace(at..at, text);
    }

    fn at_level(&mut self, level: Level, visit: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.level, level);
        visit(self);
        self.level = outer;
    }

    /// The body of a function or a closure.
    fn function(&mut self, visit: impl FnOnce(&mut Self)) {
        self.at_level(Level::Function, visit);
    }

    fn is_ours(&self, called: &Macro) -> bool {
        is_ours(&called.path, &self.text.names.macros)
    }

    /// The call of the DSL that the expression is.
    fn call<'e>(&self, expression: &'e Expr) -> Option<&'e Macro> {
        match expression {
            Expr::Paren(inner) => self.call(&inner.expr),
            Expr::Macro(called) if self.is_ours(&called.mac) => Some(&called.mac),
            _ => None,
        }
    }

    fn statements(&mut self, statements: &[Stmt], tail: Use) {
        for (index, statement) in statements.iter().enumerate() {
            let is_last = index + 1 == statements.len();
            self.statement(statement, if is_last { tail } else { Use::Elsewhere });
        }
    }

    /// `tail`: what happens to the value of an expression without a `;`.
    fn statement(&mut self, statement: &Stmt, tail: Use) {
        match statement {
            Stmt::Local(local) => self.local(local),
            Stmt::Expr(expression, semicolon) => {
                let is_dropped = semicolon.is_some();
                self.expression(expression, if is_dropped { Use::Dropped } else { tail });
            }
            Stmt::Macro(statement) => {
                let is_dropped = statement.semi_token.is_some();
                self.called(&statement.mac, if is_dropped { Use::Dropped } else { tail });
            }
            Stmt::Item(item) => self.visit_item(item),
        }
    }

    fn local(&mut self, local: &Local) {
        let Some(init) = &local.init else { return };
        let bound = match &local.pat {
            _ if init.diverge.is_some() => Use::Elsewhere,
            Pat::Wild(_) => Use::Dropped,
            Pat::Type(typed) if says_result(&typed.ty) => Use::Elsewhere,
            pattern if self.text.names.is_result(pattern) => Use::Elsewhere,
            _ => Use::Good,
        };
        self.expression(&init.expr, bound);
        if let Some((_, otherwise)) = &init.diverge {
            self.visit_expr(otherwise);
        }
    }

    fn expression(&mut self, expression: &Expr, used: Use) {
        match expression {
            Expr::Macro(called) => self.called(&called.mac, used),
            Expr::Paren(inner) => self.expression(&inner.expr, used),
            Expr::Block(inner) => self.block(&inner.block, used),
            Expr::Unsafe(inner) => self.block(&inner.block, used),
            Expr::If(condition) => {
                self.visit_expr(&condition.cond);
                self.block(&condition.then_branch, used);
                if let Some((_, otherwise)) = &condition.else_branch {
                    self.expression(otherwise, used);
                }
            }
            Expr::Match(matched) => {
                self.visit_expr(&matched.expr);
                for arm in &matched.arms {
                    if let Some((_, guard)) = &arm.guard {
                        self.visit_expr(guard);
                    }
                    self.expression(&arm.body, used);
                }
            }
            Expr::Reference(inner) if used == Use::Good => self.expression(&inner.expr, used),
            Expr::Tuple(items) if used == Use::Good => {
                items.elems.iter().for_each(|it| self.expression(it, used));
            }
            Expr::Array(items) if used == Use::Good => {
                items.elems.iter().for_each(|it| self.expression(it, used));
            }
            Expr::Assign(assign) => {
                let used = match &*assign.left {
                    Expr::Infer(_) => Use::Dropped,
                    left if self.text.names.is_result_place(left) => Use::Elsewhere,
                    _ => Use::Good,
                };
                self.visit_expr(&assign.left);
                self.expression(&assign.right, used);
            }
            Expr::Field(field) => self.good_part(&field.base),
            Expr::Index(index) => {
                self.good_part(&index.expr);
                self.visit_expr(&index.index);
            }
            Expr::MethodCall(call) => self.method(call, used),
            Expr::Call(call) => self.function_call(call, used),
            _ => visit::visit_expr(self, expression),
        }
    }

    /// What a field, an element or a method of the good value is asked of.
    fn good_part(&mut self, expression: &Expr) {
        let used = match self.call(expression) {
            Some(_) => Use::Good,
            None => Use::Elsewhere,
        };
        self.expression(expression, used);
    }

    fn method(&mut self, call: &syn::ExprMethodCall, used: Use) {
        let name = call.method.to_string();
        let receiver = call.receiver.span().byte_range();
        let rest = receiver.end..call.span().byte_range().end;
        // `fit!(…).ok();` says no more than `fit!(…);`.
        let asks_in_vain = used == Use::Dropped && may_be_an_error(&name);
        let is_ours = self.call(&call.receiver).is_some();
        if asks_in_vain && is_ours && call.args.is_empty() {
            self.expression(&call.receiver, used);
            return self.replace(rest, "");
        }
        let is_looked_at = match &*call.receiver {
            _ if is_ours || used != Use::Dropped => false,
            Expr::MethodCall(inner) if asks_in_vain => {
                self.look_at(&receiver, is_fallible_method(&inner.method.to_string()))
            }
            Expr::Call(inner) if asks_in_vain => {
                self.look_at(&receiver, is_fallible_function(&inner.func))
            }
            _ => false,
        };
        let is_whole = used == Use::Dropped && is_fallible_method(&name) && call.attrs.is_empty();
        let whole = receiver.start..rest.end;
        let is_whole = !is_looked_at && self.look_at(&whole, is_whole);
        match is_of_results(&name) {
            true => self.visit_expr(&call.receiver),
            false => self.good_part(&call.receiver),
        }
        if is_looked_at {
            self.end_look(receiver.end);
        }
        call.args
            .iter()
            .for_each(|operand| self.visit_expr(operand));
        if is_whole {
            self.end_look(whole.end);
        }
    }

    fn function_call(&mut self, call: &syn::ExprCall, used: Use) {
        let whole = call.span().byte_range();
        let is_drop = matches!(&*call.func, Expr::Path(path) if path.path.is_ident("drop"));
        if is_drop && let Some(dropped) = call.args.first() {
            return self.expression(dropped, Use::Dropped);
        }
        let may_fail = used == Use::Dropped && is_fallible_function(&call.func);
        let is_looked_at = self.look_at(&whole, may_fail && call.attrs.is_empty());
        visit::visit_expr_call(self, call);
        if is_looked_at {
            self.end_look(whole.end);
        }
    }

    /// Begins what [`Self::end_look`] ends.
    fn look_at(&mut self, range: &Range<usize>, is_wanted: bool) -> bool {
        if is_wanted {
            self.insert(range.start, LOOKED_AT.0);
        }
        is_wanted
    }

    fn end_look(&mut self, end: usize) {
        let done = match self.level {
            Level::Cell => ENDS,
            Level::Trial | Level::Function => RAISES,
        };
        self.insert(end, format!("{}{done}", LOOKED_AT.1));
    }

    fn called(&mut self, called: &Macro, used: Use) {
        if let Some(scope) = opened_scope(called) {
            self.visit_expr(&scope.strategy);
            return self.block(&scope.block, used);
        }
        if !self.is_ours(called) {
            return;
        }
        let range = called.span().byte_range();
        let is_given = self.level == Level::Function && used == Use::Dropped;
        if is_given {
            self.insert(range.start, DROPPED);
        }
        if let Some(body) = sweep_body(called) {
            self.at_level(Level::Trial, |finder| finder.block(&body, Use::Elsewhere));
        }
        if is_given {
            self.insert(range.end, ")");
        } else if self.level != Level::Function && used != Use::Elsewhere {
            self.insert(range.end, "?");
        }
    }

    fn block(&mut self, block: &Block, tail: Use) {
        self.statements(&block.stmts, tail);
    }

    /// The body of a function that asks a result what it is says so when it runs.
    fn function_block(&mut self, block: &Block) {
        let braces = block.brace_token.span;
        let (start, end) = (
            braces.open().byte_range().end,
            braces.close().byte_range().start,
        );
        if self.text.code.get(start..end).is_some_and(asks) {
            self.insert(start, LOOKS);
        }
        self.block(block, Use::Elsewhere);
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_expr(&mut self, expression: &'ast Expr) {
        self.expression(expression, Use::Elsewhere);
    }

    fn visit_block(&mut self, block: &'ast Block) {
        self.block(block, Use::Elsewhere);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        self.called(called, Use::Elsewhere);
    }

    fn visit_expr_closure(&mut self, closure: &'ast syn::ExprClosure) {
        self.function(|finder| match &*closure.body {
            Expr::Block(body) => finder.function_block(&body.block),
            body => finder.visit_expr(body),
        });
    }

    fn visit_expr_async(&mut self, block: &'ast syn::ExprAsync) {
        self.function(|finder| finder.function_block(&block.block));
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if item.sig.constness.is_none() {
            self.function(|finder| finder.function_block(&item.block));
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if item.sig.constness.is_none() {
            self.function(|finder| finder.function_block(&item.block));
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let (Some(body), None) = (&item.default, item.sig.constness) {
            self.function(|finder| finder.function_block(body));
        }
    }

    // What is computed while the cell compiles calls nothing of ours.
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_item_macro(&mut self, _: &'ast syn::ItemMacro) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_pat(&mut self, _: &'ast Pat) {}
}

#[cfg(test)]
mod tests;

//! Looks through all expressions of a cell, those in the brackets of macros too.

use proc_macro2::TokenStream;
use stratoscope_cell_syntax::Syntax;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Expr, Local, Pat, Token};

use super::super::calls::span_of;
use super::super::our_words::function_around;
use super::{Slip, insert};
use crate::{CellSpan, Edit};

/// Calls a closure with each expression and another with each `let`.
struct Walk<'a> {
    on_expression: &'a mut dyn FnMut(&Expr),
    on_local: &'a mut dyn FnMut(&Local),
}

impl<'ast> Visit<'ast> for Walk<'_> {
    fn visit_expr(&mut self, expression: &'ast Expr) {
        (self.on_expression)(expression);
        visit::visit_expr(self, expression);
    }

    fn visit_local(&mut self, local: &'ast Local) {
        (self.on_local)(local);
        visit::visit_local(self, local);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        for inner in in_macro(&called.tokens) {
            self.visit_expr(&inner);
        }
    }
}

/// The values between the brackets of a macro, if they are values.
fn in_macro(tokens: &TokenStream) -> Vec<Expr> {
    let values = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(tokens.clone());
    values.map_or_else(|_| Vec::new(), |it| it.into_iter().collect())
}

/// The place of a piece of the tree.
pub(in crate::check) fn place(piece: &impl Spanned) -> CellSpan {
    span_of(piece.span())
}

fn walk(cell: &Syntax, mut on_expression: impl FnMut(&Expr), mut on_local: impl FnMut(&Local)) {
    let mut walk = Walk {
        on_expression: &mut on_expression,
        on_local: &mut on_local,
    };
    for statement in cell.statements().unwrap_or_default() {
        walk.visit_stmt(statement);
    }
}

/// The last expression that `read` makes something of: the innermost one of several that contain each other.
pub(super) fn find<T>(cell: &Syntax, read: impl Fn(&Expr) -> Option<T>) -> Option<T> {
    let mut found = None;
    walk(
        cell,
        |it| {
            if let Some(made) = read(it) {
                found = Some(made);
            }
        },
        |_| {},
    );
    found
}

/// All expressions of the cell, those around others first.
pub(in crate::check) fn visit_all(cell: &Syntax, on_expression: impl FnMut(&Expr)) {
    walk(cell, on_expression, |_| {});
}

/// The first expression that `read` makes something of: the outermost one of several that contain each other.
pub(in crate::check) fn outermost<T>(
    cell: &Syntax,
    read: impl Fn(&Expr) -> Option<T>,
) -> Option<T> {
    let mut found = None;
    walk(
        cell,
        |it| {
            if found.is_none() {
                found = read(it);
            }
        },
        |_| {},
    );
    found
}

/// The `let` that `read` makes something of, the last one.
pub(super) fn find_local<T>(cell: &Syntax, read: impl Fn(&Local) -> Option<T>) -> Option<T> {
    let mut found = None;
    walk(
        cell,
        |_| {},
        |it| {
            if let Some(made) = read(it) {
                found = Some(made);
            }
        },
    );
    found
}

/// An operator and what stands on its two sides.
pub(in crate::check) struct Binary {
    pub operator: CellSpan,
    pub left: CellSpan,
    pub right: CellSpan,
}

/// The innermost operation whose operator and whole place are the meant ones.
pub(in crate::check) fn binary_at(
    cell: &Syntax,
    is_meant: impl Fn(CellSpan, CellSpan) -> bool,
) -> Option<Binary> {
    find(cell, |it| match it {
        Expr::Binary(binary) if is_meant(place(&binary.op), place(it)) => Some(Binary {
            operator: place(&binary.op),
            left: place(&binary.left),
            right: place(&binary.right),
        }),
        _ => None,
    })
}

/// The two names of the pattern of the `for` that goes over what stands at a place.
pub(in crate::check) fn pair_of_loop(cell: &Syntax, over: CellSpan) -> Option<(String, String)> {
    find(cell, |it| {
        let Expr::ForLoop(found) = it else {
            return None;
        };
        let Pat::Tuple(pattern) = &*found.pat else {
            return None;
        };
        let names: Vec<String> = pattern
            .elems
            .iter()
            .filter_map(|it| match it {
                Pat::Ident(name) => Some(name.ident.to_string()),
                _ => None,
            })
            .collect();
        match names.as_slice() {
            [first, second] if place(&found.expr) == over => Some((first.clone(), second.clone())),
            _ => None,
        }
    })
}

/// Whether a place lies in another one.
pub(super) fn is_in(inner: CellSpan, outer: CellSpan) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// A variable's name, if the expression is nothing else.
pub(super) fn name_of(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Path(path) => Some(path.path.get_ident()?.to_string()),
        Expr::Paren(inner) => name_of(&inner.expr),
        Expr::Reference(inner) => name_of(&inner.expr),
        _ => None,
    }
}

/// A `let` of one name.
pub(super) struct Bound {
    /// The name's place.
    pub name: CellSpan,
    /// Where the `mut` would stand, if there is none.
    pub without_mut: Option<usize>,
    /// The type, as it is written.
    pub of_type: Option<CellSpan>,
    /// The value.
    pub value: Option<Expr>,
    /// The place of the value.
    pub value_span: Option<CellSpan>,
}

/// The `mut` that the `let` of a name lacks.
pub(in crate::check) fn without_mut(cell: &Syntax, name: &str, before: usize) -> Option<Edit> {
    let at = bound(cell, name, before)?.without_mut?;
    Some(insert(at, "mut "))
}

/// The last `let` of a name before a place.
fn bound(cell: &Syntax, name: &str, before: usize) -> Option<Bound> {
    find_local(cell, |local| {
        let (pattern, of_type) = match &local.pat {
            Pat::Type(typed) => (&*typed.pat, Some(place(&typed.ty))),
            other => (other, None),
        };
        let Pat::Ident(bound) = pattern else {
            return None;
        };
        let at = place(&bound.ident);
        if bound.ident != name || at.start > before {
            return None;
        }
        let value = local.init.as_ref().map(|it| (*it.expr).clone());
        Some(Bound {
            name: at,
            without_mut: bound.mutability.is_none().then_some(at.start),
            of_type,
            value_span: value.as_ref().map(place),
            value,
        })
    })
}

/// The type of a parameter of the function around a place, as it is written.
pub(in crate::check) fn type_of_parameter(
    cell: &Syntax,
    name: &str,
    at: CellSpan,
) -> Option<String> {
    let function = function_around(cell, at)?;
    let mut inputs = function.sig.inputs.iter();
    let typed = inputs.find_map(|it| match it {
        syn::FnArg::Typed(typed) => match &*typed.pat {
            Pat::Ident(ident) if ident.ident == name => Some(place(&typed.ty)),
            _ => None,
        },
        syn::FnArg::Receiver(_) => None,
    })?;
    let text = cell.text().get(typed.start..typed.end)?;
    Some(text.to_owned())
}

impl Slip<'_> {
    /// The last `let` of a name before a place.
    pub fn bound(&self, name: &str, before: usize) -> Option<Bound> {
        bound(self.cell, name, before)
    }

    /// The type of a name at a place, as it is written: of a parameter, of a `let`, of a variable of the notebook.
    pub fn type_of(&self, name: &str, at: CellSpan) -> Option<String> {
        if let Some(of_parameter) = type_of_parameter(self.cell, name, at) {
            return Some(of_parameter);
        }
        if let Some(bound) = self.bound(name, at.start) {
            return bound.of_type.map(|it| self.text(it).to_owned());
        }
        self.context.variables.get(name).cloned()
    }
}

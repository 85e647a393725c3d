//! A borrow whose lifetime has no name: in what a function returns, and in the fields of a type.

use syn::visit::{self, Visit};
use syn::{Expr, Fields, Item, Stmt, Type};

use super::borrows::owned_type;
use super::tree::{is_in, place, visit_all};
use super::{Answer, Slip, edit, insert};
use crate::{CellSpan, Edit};

pub(super) fn answer(slip: &Slip) -> Option<Answer> {
    if slip.code() != "E0106" {
        return None;
    }
    slip.cell.statements()?.iter().find_map(|it| match it {
        Stmt::Item(Item::Fn(function)) => returned(slip, function),
        Stmt::Item(Item::Struct(found)) => field(slip, found),
        _ => None,
    })
}

/// `fn longest(a: &str, b: &str) -> &str`: one lifetime for all that is borrowed.
fn returned(slip: &Slip, function: &syn::ItemFn) -> Option<Answer> {
    let signature = &function.sig;
    let returns = place(&signature.output);
    if !is_in(slip.span, returns) {
        return None;
    }
    let mut borrows = Borrows::default();
    signature
        .inputs
        .iter()
        .for_each(|it| borrows.visit_fn_arg(it));
    let parameters = borrows.ends.len();
    borrows.visit_return_type(&signature.output);
    if parameters == 0 {
        return of_its_own(slip, function);
    }
    let has_lifetimes = signature.generics.lifetimes().next().is_some();
    if has_lifetimes || borrows.is_hidden {
        return None;
    }
    let generics = &signature.generics;
    let name = match generics.lt_token {
        Some(open) => insert(place(&open).end, "'a, "),
        None => insert(place(&signature.ident).end, "<'a>"),
    };
    let ends = borrows.ends.iter();
    let edits = ends.map(|at| insert(*at, "'a ")).chain([name]).collect();
    Some(Answer::of(edits).why(
        "`'a` says that what the function returns may be borrowed from any of these parameters",
    ))
}

/// `fn name() -> &str`: there is nothing that it could borrow from.
fn of_its_own(slip: &Slip, function: &syn::ItemFn) -> Option<Answer> {
    let syn::ReturnType::Type(_, of_type) = &function.sig.output else {
        return None;
    };
    let at = place(&**of_type);
    let Some(Stmt::Expr(value, None)) = function.block.stmts.last() else {
        return None;
    };
    let is_literal = matches!(value, Expr::Lit(it) if matches!(it.lit, syn::Lit::Str(_)));
    let is_text = slip.text(at) == "&str";
    if is_literal && is_text {
        return Some(
            Answer::of(vec![edit(at.start, at.end, "&'static str")])
                .why("a text that is written in the program lives as long as the program"),
        );
    }
    let value = place(value);
    let is_borrowed = slip.text(value).starts_with('&');
    let written = slip.text(value).trim_start_matches('&').to_owned();
    (is_text && is_borrowed).then(|| {
        Answer::of(vec![
            edit(at.start, at.end, "String"),
            edit(value.start, value.end, format!("{written}.to_string()")),
        ])
        .why("a function cannot return a borrow of what ends with it; a `String` is a value of its own")
    })
}

/// `struct Row { text: &str }`: the type gets a value of its own, which other cells can keep.
fn field(slip: &Slip, found: &syn::ItemStruct) -> Option<Answer> {
    let Fields::Named(fields) = &found.fields else {
        return None;
    };
    let is_meant = |it: &&syn::Field| matches!(it.ty, Type::Reference(_));
    let borrowed: Vec<&syn::Field> = fields.named.iter().filter(is_meant).collect();
    if !borrowed.iter().any(|it| is_in(slip.span, place(&it.ty))) {
        return None;
    }
    let mut edits: Vec<Edit> = Vec::new();
    let mut texts = Vec::new();
    for it in &borrowed {
        let at = place(&it.ty);
        let owned = owned_type(slip.text(at));
        if owned == "String" {
            texts.push(it.ident.as_ref()?.to_string());
        }
        edits.push(edit(at.start, at.end, owned));
    }
    // What the cell puts into these fields.
    let name = found.ident.to_string();
    visit_all(slip.cell, |it| {
        let Expr::Struct(made) = it else {
            return;
        };
        if !made.path.is_ident(&name) {
            return;
        }
        for value in &made.fields {
            let is_text = matches!(&value.member, syn::Member::Named(it) if texts.iter().any(|name| it == name));
            if is_text && value.colon_token.is_some() {
                edits.push(insert(place(&value.expr).end, ".to_string()"));
            }
        }
    });
    Some(Answer::of(edits).why(
        "a type with a borrow needs a lifetime, and ends with its cell; a `String` is a value of its own",
    ))
}

/// Where a lifetime would stand behind each `&` that has none.
#[derive(Default)]
struct Borrows {
    ends: Vec<usize>,
    /// A type may borrow without a `&`: `Chars`, `impl Iterator`.
    is_hidden: bool,
}

impl<'ast> Visit<'ast> for Borrows {
    fn visit_type_reference(&mut self, of_type: &'ast syn::TypeReference) {
        if of_type.lifetime.is_none() {
            let CellSpan { end, .. } = place(&of_type.and_token);
            self.ends.push(end);
        }
        visit::visit_type_reference(self, of_type);
    }

    fn visit_type_impl_trait(&mut self, _: &'ast syn::TypeImplTrait) {
        self.is_hidden = true;
    }

    fn visit_type_bare_fn(&mut self, _: &'ast syn::TypeBareFn) {}
}

#[cfg(test)]
mod tests {
    use crate::check::{CellContext, in_our_words};
    use crate::render::apply;
    use crate::{Diagnostic, Place, Severity};

    #[test]
    fn a_borrow_gets_a_lifetime_or_becomes_a_value() {
        for (text, at, expected) in [
            (
                "fn longest(a: &str, b: &str) -> &str { a }",
                "-> &",
                Some("fn longest<'a>(a: &'a str, b: &'a str) -> &'a str { a }"),
            ),
            (
                "fn first<T>(a: &[T], b: &T) -> &T { b }",
                "-> &",
                Some("fn first<'a, T>(a: &'a [T], b: &'a T) -> &'a T { b }"),
            ),
            (
                "fn name() -> &str { \"x\" }",
                "-> &",
                Some("fn name() -> &'static str { \"x\" }"),
            ),
            (
                "struct Row { text: &str, n: u8 }\nlet row = Row { text: \"a\", n: 1 };",
                ": &",
                Some(
                    "struct Row { text: String, n: u8 }\nlet row = Row { text: \"a\".to_string(), n: 1 };",
                ),
            ),
            ("fn f<'b>(a: &'b str, b: &str) -> &str { a }", "-> &", None),
        ] {
            let end = text.find(at).expect("stands there") + at.len();
            let found = Diagnostic::new("E0106", Severity::Error, "missing lifetime specifier")
                .label(Place::span(end - 1, end), "");
            let found = in_our_words(text, &found, &CellContext::default());
            let fixed = found.and_then(|it| apply(text, it.fixes.first()?));
            assert_eq!(fixed.as_deref(), expected, "{text}");
        }
    }
}

//! Text that treats a value as a `Result`: it has seen that there may be an error.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Expr, Macro, Pat, Stmt, Type, UseTree};

use crate::tokens::{Kind, tokens};

/// Methods of `Result`.
const OF_RESULTS: [&str; 32] = [
    "and",
    "and_then",
    "as_deref",
    "as_mut",
    "as_ref",
    "copied",
    "err",
    "expect",
    "expect_err",
    "flatten",
    "inspect",
    "inspect_err",
    "into_iter",
    "is_err",
    "is_err_and",
    "is_ok",
    "is_ok_and",
    "iter",
    "iter_mut",
    "map",
    "map_err",
    "map_or",
    "map_or_else",
    "ok",
    "or",
    "or_else",
    "transpose",
    "unwrap",
    "unwrap_err",
    "unwrap_or",
    "unwrap_or_default",
    "unwrap_or_else",
];

/// Methods of `Result`, after which its error is no error any more.
const ASKING: [&str; 16] = [
    "err",
    "expect_err",
    "flatten",
    "is_err",
    "is_err_and",
    "is_ok",
    "is_ok_and",
    "map_or",
    "map_or_else",
    "ok",
    "or",
    "or_else",
    "unwrap_err",
    "unwrap_or",
    "unwrap_or_default",
    "unwrap_or_else",
];

/// Whether it is a method of `Result`.
pub fn is_of_results(method: &str) -> bool {
    OF_RESULTS.binary_search(&method).is_ok()
}

/// Methods that turn a result into what its error is, or into what is there without it: a statement that drops that has not
/// asked.
pub fn may_be_an_error(method: &str) -> bool {
    ["err", "is_err", "is_ok", "ok"].contains(&method)
}

/// Whether a piece of code asks any `Result` what it is: by a method, or by a pattern with `Ok` or `Err`.
pub fn asks(code: &str) -> bool {
    let is_code = |kind: Kind| {
        !matches!(
            kind,
            Kind::Space | Kind::LineComment | Kind::BlockComment { .. } | Kind::Text { .. }
        )
    };
    let all = tokens(code, 0..code.len()).into_iter();
    let words: Vec<&str> = all
        .filter(|token| is_code(token.kind))
        .map(|token| &code[token.range])
        .collect();
    words.iter().enumerate().any(|(index, word)| {
        let before = index.checked_sub(1).map_or("", |before| words[before]);
        match *word {
            "Err" => true,
            "Ok" => before == "let" || is_pattern(&words[index + 1..]),
            word => (before == "." || before == ":") && ASKING.binary_search(&word).is_ok(),
        }
    })
}

/// Whether the words behind an `Ok` make a pattern of it: `(…) =>`, `(…) |`.
fn is_pattern(words: &[&str]) -> bool {
    let mut depth = 0_usize;
    for (index, word) in words.iter().enumerate() {
        match *word {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return match words[index + 1..] {
                ["=", ">", ..] | ["=>", ..] => true,
                ["|", ..] => words.get(index + 2) != Some(&"|"),
                _ => false,
            };
        }
    }
    false
}

/// Whether a type is written as a `Result`.
pub fn says_result(kind: &Type) -> bool {
    let Type::Path(path) = kind else { return false };
    let last = path.path.segments.last();
    last.is_some_and(|it| it.ident.to_string().ends_with("Result"))
}

/// What a cell calls its results, and the macros that are not ours.
#[derive(Default)]
pub struct Names {
    results: BTreeSet<String>,
    /// Macros that the notebook defines.
    pub macros: BTreeSet<String>,
}

impl Names {
    /// `earlier`: the macros of earlier cells.
    pub fn of<'m>(statements: &[Stmt], earlier: impl Iterator<Item = &'m str>) -> Self {
        let mut macros = macros_in(statements);
        macros.extend(earlier.map(str::to_owned));
        let mut reader = Reader::default();
        statements.iter().for_each(|it| reader.visit_stmt(it));
        Self {
            results: reader.results,
            macros,
        }
    }

    /// Whether the pattern takes a result apart, or binds a variable that is asked for its error.
    pub fn is_result(&self, pattern: &Pat) -> bool {
        let mut bound = Vec::new();
        super::super::shape::names(pattern, &mut bound);
        has_variant(pattern) || bound.iter().any(|name| self.results.contains(name))
    }

    /// The same for what is assigned to.
    pub fn is_result_place(&self, left: &Expr) -> bool {
        variable(left).is_some_and(|name| self.results.contains(&name))
    }
}

/// Finds the variables that are used as results.
#[derive(Default)]
struct Reader {
    results: BTreeSet<String>,
}

impl Reader {
    fn note(&mut self, expression: &Expr) {
        self.results.extend(variable(expression));
    }

    fn tokens(&mut self, tokens: TokenStream, is_asking: bool) {
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        for (index, tree) in trees.iter().enumerate() {
            match tree {
                TokenTree::Group(group) => {
                    let is_asked = is_asking || follows_matches(&trees[..index]);
                    self.tokens(group.stream(), is_asked);
                }
                TokenTree::Ident(name) if is_asking || is_asked(&trees[index + 1..]) => {
                    self.results.insert(name.to_string());
                }
                _ => {}
            }
        }
    }
}

/// Whether the tokens end with `matches!`.
fn follows_matches(before: &[TokenTree]) -> bool {
    let [.., TokenTree::Ident(name), TokenTree::Punct(sign)] = before else {
        return false;
    };
    name.to_string().ends_with("matches") && sign.as_char() == '!'
}

/// Whether what follows a name in the operands of a macro is a `?` or a method of `Result`.
fn is_asked(rest: &[TokenTree]) -> bool {
    match rest {
        [TokenTree::Punct(sign), ..] if sign.as_char() == '?' => true,
        [TokenTree::Punct(sign), TokenTree::Ident(method), ..] if sign.as_char() == '.' => {
            is_of_results(&method.to_string())
        }
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_expr_try(&mut self, asked: &'ast syn::ExprTry) {
        self.note(&asked.expr);
        visit::visit_expr_try(self, asked);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if is_of_results(&call.method.to_string()) {
            self.note(&call.receiver);
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_match(&mut self, matched: &'ast syn::ExprMatch) {
        if matched.arms.iter().any(|arm| has_variant(&arm.pat)) {
            self.note(&matched.expr);
        }
        visit::visit_expr_match(self, matched);
    }

    fn visit_expr_let(&mut self, condition: &'ast syn::ExprLet) {
        if has_variant(&condition.pat) {
            self.note(&condition.expr);
        }
        visit::visit_expr_let(self, condition);
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if let (true, Some(init)) = (has_variant(&local.pat), &local.init) {
            self.note(&init.expr);
        }
        visit::visit_local(self, local);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        let name = called.path.segments.last().map(|it| it.ident.to_string());
        let is_asking = name.is_some_and(|name| name.ends_with("matches"));
        self.tokens(called.tokens.clone(), is_asking);
    }
}

/// Whether a pattern names `Ok` or `Err`.
fn has_variant(pattern: &Pat) -> bool {
    match pattern {
        Pat::TupleStruct(it) => {
            let last = it.path.segments.last();
            last.is_some_and(|it| it.ident == "Ok" || it.ident == "Err")
        }
        Pat::Or(cases) => cases.cases.iter().any(has_variant),
        Pat::Paren(inner) => has_variant(&inner.pat),
        Pat::Reference(inner) => has_variant(&inner.pat),
        Pat::Ident(bound) => bound
            .subpat
            .as_ref()
            .is_some_and(|(_, inner)| has_variant(inner)),
        _ => false,
    }
}

/// The variable that an expression is, or refers to.
fn variable(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Path(path) if path.qself.is_none() => Some(path.path.get_ident()?.to_string()),
        Expr::Reference(inner) => variable(&inner.expr),
        Expr::Paren(inner) => variable(&inner.expr),
        _ => None,
    }
}

/// The macros that these statements define, and the names that they import from elsewhere, which may be macros.
fn macros_in(statements: &[Stmt]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for statement in statements {
        match statement {
            Stmt::Item(syn::Item::Macro(item)) => {
                names.extend(item.ident.as_ref().map(ToString::to_string));
            }
            Stmt::Item(syn::Item::Use(item)) => imported(&item.tree, &mut names),
            _ => {}
        }
    }
    names
}

fn imported(tree: &UseTree, names: &mut BTreeSet<String>) {
    match tree {
        UseTree::Path(path) if path.ident != "stratoscope" => imported(&path.tree, names),
        UseTree::Group(group) => group.items.iter().for_each(|item| imported(item, names)),
        UseTree::Rename(name) => names.extend([name.rename.to_string()]),
        UseTree::Name(name) => names.extend([name.ident.to_string()]),
        UseTree::Path(_) | UseTree::Glob(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_cell_defines_are_not_ours() {
        let block: syn::Block = syn::parse_quote! {{
            macro_rules! start { () => {} }
            use std::{assert_eq as fit, fmt::{self, Debug}};
            use stratoscope::prelude::evaluate;
        }};
        let names = macros_in(&block.stmts);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(names, ["Debug", "fit", "self", "start"]);
    }

    #[test]
    fn code_that_asks_is_known() {
        for code in [
            "match f() { Ok(it) => it, Err(_) => 0 }",
            "match f() { Ok((a, b)) => a + b, _ => 0 }",
            "if let Ok(it) = f() {}",
            "f().is_err()",
            "v.into_iter().filter_map(Result::ok)",
            "f().unwrap_or_default()",
            "matches!(f(), Err(_))",
        ] {
            assert!(asks(code), "{code}");
        }
        for code in [
            "fit!(model, data); Ok(())",
            "Ok(f(1)?)",
            "let ok = 3; ok + 1",
            "println!(\"Err(_)\"); // .is_err()",
            "f().unwrap()",
            "Ok(1) || x",
        ] {
            assert!(!asks(code), "{code}");
        }
    }

    #[test]
    fn lists_are_sorted_for_their_search() {
        assert!(OF_RESULTS.is_sorted() && ASKING.is_sorted());
        assert!(ASKING.iter().all(|it| is_of_results(it)));
    }
}

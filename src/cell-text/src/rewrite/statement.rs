//! The mark before each statement of a cell, which says where it stands, and what
//! the crate `compile` has to know of it to run it by itself: which variables it binds, and which it
//! may move. rust-analyzer, whose time grows faster than a cell with what it has to check, sees a
//! number with a comment.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Expr, Macro, Pat, Path, Stmt};

/// What is known of a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The variables it binds, and whether they are `mut`.
    pub binds: Vec<(String, bool)>,
    /// The variables it may move.
    pub moves: BTreeSet<String>,
    /// The variables it assigns to.
    pub assigns: BTreeSet<String>,
    /// It calls a macro that makes items, which end with a closure or block around them.
    pub makes_items: bool,
    /// It waits for a future, and so can only run inside an asynchronous block.
    pub waits: bool,
    /// It cannot run inside a closure or block of its own: it declares what a later one assigns.
    pub is_bound_to_its_place: bool,
}

/// Around a mark.
const BEGIN: &str = "0/*at ";
const END: &str = "*/;";

/// evcxr has rust-analyzer check that each variable can be kept, by a call of this name. rustc checks
/// it better; rust-analyzer, which would look through all unfinished checks at each call, sees that it
/// is no function. evcxr takes no variable of this name, in this form of a `let`, for one of the
/// cell's. It is not for rustc.
pub const UNCHECKED: &str = "let (evcxr_variable_store) = \"\";";

/// What stands before a statement.
pub fn mark(first: usize, last: usize, facts: &Facts) -> String {
    format!("{BEGIN}{first}, {last}:{}{END}", facts.list())
}

/// Reads a line that is a [`mark`]: the operands of `at`, and the rest.
pub fn read_mark(line: &str) -> Option<(&str, Facts)> {
    let inside = line.trim().strip_prefix(BEGIN)?.strip_suffix(END)?;
    let (lines, facts) = inside.split_once(':')?;
    Some((lines, Facts::read(facts)?))
}

impl Facts {
    /// Those of a statement.
    pub fn of(statement: &Stmt) -> Self {
        let mut facts = Self::default();
        if let Stmt::Local(local) = statement {
            let has_else = local.init.as_ref().is_some_and(|it| it.diverge.is_some());
            bound(&local.pat, has_else, &mut facts.binds);
            facts.is_bound_to_its_place = local.init.is_none();
        }
        let mut reader = Reader { facts };
        reader.visit_stmt(statement);
        reader.facts
    }

    /// Those of a few statements that are run as one.
    pub fn of_text(code: &str) -> Self {
        let statements = syn::parse::Parser::parse_str(syn::Block::parse_within, code);
        let mut facts = Self::default();
        for one in statements.iter().flatten().map(Self::of) {
            facts.binds.extend(one.binds);
            facts.moves.extend(one.moves);
            facts.assigns.extend(one.assigns);
            facts.makes_items |= one.makes_items;
            facts.waits |= one.waits;
            facts.is_bound_to_its_place |= one.is_bound_to_its_place;
        }
        facts
    }

    /// As a text.
    fn list(&self) -> String {
        let binds = self
            .binds
            .iter()
            .map(|(name, is_mutable)| match is_mutable {
                true => format!("+mut {name}"),
                false => format!("+{name}"),
            });
        let moves = self.moves.iter().map(|name| format!("-{name}"));
        let assigns = self.assigns.iter().map(|name| format!("={name}"));
        let items = self.makes_items.then(|| "#".to_owned());
        let waits = self.waits.then(|| "~".to_owned());
        let place = self.is_bound_to_its_place.then(|| "!".to_owned());
        let flags = items.into_iter().chain(waits).chain(place);
        let parts: Vec<String> = binds.chain(moves).chain(assigns).chain(flags).collect();
        parts.join(",")
    }

    /// Reads [`Self::list`].
    fn read(text: &str) -> Option<Self> {
        let mut facts = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (kind, rest) = part.split_at_checked(1)?;
            match (kind, rest.strip_prefix("mut ")) {
                ("+", Some(name)) => facts.binds.push((name.to_owned(), true)),
                ("+", None) => facts.binds.push((rest.to_owned(), false)),
                ("-", _) => drop(facts.moves.insert(rest.to_owned())),
                ("=", _) => drop(facts.assigns.insert(rest.to_owned())),
                ("#", _) => facts.makes_items = true,
                ("~", _) => facts.waits = true,
                ("!", _) => facts.is_bound_to_its_place = true,
                _ => return None,
            }
        }
        Some(facts)
    }
}

/// The names a pattern binds, the last binding of each, and whether they are `mut`. A pattern that may fail can have
/// constants and variants without fields in it, such as `None`; in another, `EPOCHS` and `X_train` are variables.
fn bound(pattern: &Pat, may_fail: bool, into: &mut Vec<(String, bool)>) {
    struct Names<'a> {
        may_fail: bool,
        found: &'a mut Vec<(String, bool)>,
    }
    impl<'ast> Visit<'ast> for Names<'_> {
        fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
            let name = pattern.ident.to_string();
            let is_constant = self.may_fail && name.starts_with(char::is_uppercase);
            if !is_constant && !self.found.iter().any(|(other, _)| *other == name) {
                self.found.push((name, pattern.mutability.is_some()));
            }
            visit::visit_pat_ident(self, pattern);
        }
        fn visit_expr(&mut self, _: &'ast Expr) {}
    }
    let mut names = Names {
        may_fail,
        found: into,
    };
    names.visit_pat(pattern);
}

/// Macros whose operands are only looked at.
const BORROWING: [&str; 24] = [
    "print",
    "println",
    "eprint",
    "eprintln",
    "format",
    "write",
    "writeln",
    "panic",
    "assert",
    "assert_eq",
    "assert_ne",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "todo",
    "unimplemented",
    "unreachable",
    "compile",
    "fit",
    "evaluate",
    "start",
    "summary",
    "matches",
    "stringify",
];

/// Methods that take what they are called on, by the beginnings of their names.
const TAKING: [&str; 8] = [
    "into_", "unwrap", "expect", "ok_or", "and_then", "map_err", "collect", "join",
];
const TAKING_ALL: [&str; 3] = ["map", "into", "ok"];

/// Looks for variables in the places of values.
struct Reader {
    facts: Facts,
}

impl Reader {
    /// An expression whose value is taken.
    fn value(&mut self, expression: &Expr) {
        match variable(expression) {
            Some(name) => {
                self.facts.moves.insert(name);
            }
            None => self.visit_expr(expression),
        }
    }

    /// An expression that is only looked at.
    fn place(&mut self, expression: &Expr) {
        match expression {
            Expr::Field(field) => self.place(&field.base),
            Expr::Index(index) => {
                self.place(&index.expr);
                self.value(&index.index);
            }
            Expr::Paren(inner) => self.place(&inner.expr),
            _ if variable(expression).is_some() => {}
            _ => self.visit_expr(expression),
        }
    }

    fn operands(&mut self, called: &Macro) {
        self.facts.waits |= has_await(called.tokens.clone());
        let name = called.path.segments.last().map(|it| it.ident.to_string());
        if !name.is_some_and(|name| BORROWING.contains(&&*name)) {
            self.words(called.tokens.clone());
        }
    }

    /// Every word of a macro whose way with its operands is not known.
    fn words(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    self.facts.moves.insert(name.to_string());
                }
                TokenTree::Group(group) => self.words(group.stream()),
                _ => {}
            }
        }
    }

    fn assigned(&mut self, left: &Expr) {
        match variable(left) {
            Some(name) => {
                self.facts.assigns.insert(name);
            }
            None => self.place(left),
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_expr(&mut self, expression: &'ast Expr) {
        match expression {
            Expr::Reference(inner) => self.place(&inner.expr),
            Expr::Field(_) | Expr::Index(_) => self.place(expression),
            Expr::MethodCall(call) => {
                let method = call.method.to_string();
                let takes = TAKING.iter().any(|it| method.starts_with(it))
                    || TAKING_ALL.contains(&&*method);
                match takes {
                    true => self.value(&call.receiver),
                    false => self.place(&call.receiver),
                }
                call.args.iter().for_each(|operand| self.value(operand));
            }
            Expr::Call(call) => {
                self.place(&call.func);
                call.args.iter().for_each(|operand| self.value(operand));
            }
            Expr::Binary(binary) => {
                // `+=` and `==` look at their operands, or need `Copy`. Each is visited once: twice at every operator
                // of a sum would take time that doubles with each of them.
                for operand in [&binary.left, &binary.right] {
                    if compares_or_assigns(&binary.op) {
                        self.place(operand);
                    } else {
                        self.value(operand);
                    }
                }
            }
            Expr::Assign(assign) => {
                self.assigned(&assign.left);
                self.value(&assign.right);
            }
            Expr::Macro(called) => self.operands(&called.mac),
            Expr::Await(_) => {
                self.facts.waits = true;
                visit::visit_expr(self, expression);
            }
            Expr::Path(_) => self.value_of_path(expression),
            _ => visit::visit_expr(self, expression),
        }
    }

    fn visit_stmt_macro(&mut self, statement: &'ast syn::StmtMacro) {
        self.operands(&statement.mac);
    }

    fn visit_item(&mut self, _: &'ast syn::Item) {}

    fn visit_pat(&mut self, _: &'ast Pat) {}
}

impl Reader {
    /// Wherever it is not known to be only looked at.
    fn value_of_path(&mut self, expression: &Expr) {
        if let Some(name) = variable(expression) {
            self.facts.moves.insert(name);
        }
    }
}

/// Whether there is an `.await` among the operands of a macro.
fn has_await(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(name) => name == "await",
        TokenTree::Group(group) => has_await(group.stream()),
        _ => false,
    })
}

fn compares_or_assigns(operator: &syn::BinOp) -> bool {
    use syn::BinOp::{
        AddAssign, BitAndAssign, BitOrAssign, BitXorAssign, DivAssign, Eq, Ge, Gt, Le, Lt,
        MulAssign, Ne, RemAssign, ShlAssign, ShrAssign, SubAssign,
    };
    matches!(
        operator,
        Eq(_)
            | Ne(_)
            | Lt(_)
            | Le(_)
            | Gt(_)
            | Ge(_)
            | AddAssign(_)
            | SubAssign(_)
            | MulAssign(_)
            | DivAssign(_)
            | RemAssign(_)
            | BitAndAssign(_)
            | BitOrAssign(_)
            | BitXorAssign(_)
            | ShlAssign(_)
            | ShrAssign(_)
    )
}

/// The name, if that is all the expression is.
fn variable(expression: &Expr) -> Option<String> {
    let Expr::Path(path) = expression else {
        return None;
    };
    let name = |path: &Path| Some(path.get_ident()?.to_string());
    path.qself.is_none().then(|| name(&path.path))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(statement: &str, expected: &str) {
        let parsed = syn::parse::Parser::parse_str(syn::Block::parse_within, statement);
        let parsed = parsed.expect("a statement");
        let facts = Facts::of(&parsed[0]);
        assert_eq!(facts.list(), expected, "{statement}");
        let mark = mark(3, 4, &facts);
        assert_eq!(read_mark(&mark), Some(("3, 4", facts)));
    }

    #[test]
    fn what_is_bound_is_known() {
        check("let x = 1;", "+x");
        check("let (mut a, Some(b)) = f() else { panic!() };", "+mut a,+b");
        check("let P { x, y: [c, ..], .. } = p;", "+x,+c,-p");
        check("let EPOCHS = 1;", "+EPOCHS");
        check("let (X_train, y_train) = f();", "+X_train,+y_train");
        check("let None = f() else { return };", "");
        check("let late;", "+late,!");
        check("f();", "");
    }

    #[test]
    fn what_may_be_moved_is_known() {
        check("let y = f(x, &z, v[i].len());", "+y,-i,-x");
        check("x.push(y.len());", "");
        check("x.into_iter();", "-x");
        check("if x == y && z.is_empty() { g(z) }", "-z");
        check("println!(\"{x}\", y);", "");
        check("vec![x; n];", "-n,-x");
        check("x + &y;", "-x");
        check("x = f(x)?;", "-x,=x");
        check("n += m;", "");
        check("let c = move || x;", "+c,-x");
        check("f().await;", "~");
        check("let x = f(y).await?;", "+x,-y,~");
        check("println!(\"{}\", f().await);", "~");
        check("fit!(model, data, epochs = 3)?;", "");
        check("P { x, y: z };", "-x,-z");
    }
}

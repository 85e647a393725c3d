//! Variables that cannot live between cells: the messages of evcxr and rustc about them, as diagnostics.
//!
//! evcxr passes a variable on by the name of its type, as rust-analyzer writes it. A type without a name (a closure's, an
//! `impl Trait`, `!`) or one that the next cell cannot name cannot be passed on.

use std::collections::BTreeMap;

use evcxr::CompilationError;
use stratoscope_compile::evcxr_contract as contract;
use stratoscope_compile::generated;
use stratoscope_diagnostics::rules::VariableNotKept;
use stratoscope_diagnostics::{CellSpan, Diagnostic, Place, Rule, check};

use super::closures;
use stratoscope_cell_syntax::CellSyntax;
use stratoscope_cell_text::rewrite::Rewritten;

/// A variable that cannot be handed on to the next cell.
pub struct Refused {
    /// The variable.
    pub name: String,
    /// Its own cell uses it, and can run with it: it then ends with the cell.
    pub can_end: bool,
    /// What it is, for a later cell that asks for it: `a closure`.
    pub ends_as: &'static str,
    /// What is wrong, where the cell does nothing with it but bind it.
    pub card: Diagnostic,
}

/// A closure that its own cell calls: no later cell can have it.
pub fn called_closure(cell: &CellSyntax) -> Option<String> {
    let name = closure_in(cell)?;
    let is_used = word_positions(cell.code(), &name).nth(1).is_some();
    is_used.then_some(name)
}

/// What keeps variables of this cell from being handed on, if that is what these errors are about.
pub fn refused(
    errors: &[CompilationError],
    rewritten: &Rewritten,
    cell: &CellSyntax,
    variables: &BTreeMap<String, String>,
) -> Option<Refused> {
    let refused =
        |error: &CompilationError| not_persistent(&error.message(), rewritten, cell, variables);
    if let Some(found) = errors.iter().find_map(refused) {
        return Some(found);
    }
    let unnamed = |error: &CompilationError| {
        let spans = error.json["spans"].as_array()?;
        let (name, kind) = spans
            .iter()
            .find_map(|span| generated::named_type(span["text"][0]["text"].as_str()?))?;
        // A type that nobody can name has a reason of its own.
        let obstacle = match Obstacle::of_type(kind) {
            Obstacle::Named(kind) => Obstacle::OfCell(kind),
            other => other,
        };
        refuse(name, obstacle, rewritten, cell, variables)
    };
    if let Some(found) = errors.iter().find_map(unnamed) {
        return Some(found);
    }
    // rustc would have it moved, and then it would be refused as well.
    if let Some(name) = errors
        .iter()
        .find_map(|error| borrowing(error, rewritten, cell))
    {
        return refuse(&name, Obstacle::Closure, rewritten, cell, variables);
    }
    // evcxr's own code does not compile. That of the cell may be wrong as well: then it comes first.
    // Warnings about it are among the errors.
    let is_of_the_cell =
        |error: &CompilationError| error.level() == "error" && error.is_from_user_code();
    if errors.iter().any(is_of_the_cell) {
        return None;
    }
    if let Some(name) = closure_in(cell) {
        // Where a variable borrows, that hides from evcxr that another is a closure.
        return refuse(&name, Obstacle::Closure, rewritten, cell, variables);
    }
    errors.iter().find_map(|error| {
        let spans = error.json["spans"].as_array()?;
        let (name, kind) = spans
            .iter()
            .find_map(|span| handed_on(span["text"][0]["text"].as_str()?))?;
        refuse(name, Obstacle::of_type(kind), rewritten, cell, variables)
    })
}

/// The variable that is bound to the closure of which rustc says that it borrows from this cell, or that
/// its types are not known: with these it would be refused as well.
fn borrowing(error: &CompilationError, rewritten: &Rewritten, cell: &CellSyntax) -> Option<String> {
    let name = closure_in(cell)?;
    if !matches!(error.code(), Some("E0282" | "E0283" | "E0284" | "E0373")) {
        return None;
    }
    let primary = error.spanned_messages().iter().find(|it| it.is_primary)?;
    let span = primary.span?;
    let place = rewritten.original_range(
        (span.start_line, span.start_column),
        (span.end_line, span.end_column),
    );
    let before = cell.code().get(..place.start)?;
    let statement = &before[before.rfind("let ")?..];
    let (bound, value) = statement.split_once('=')?;
    let is_value = value.trim().is_empty() || value.trim_start().starts_with(['|', 'm']);
    let bound = bound.split(':').next()?.trim_start_matches("let ").trim();
    let bound = bound.trim_start_matches("mut ").trim();
    (bound == name && is_value && !value.contains(';')).then_some(name)
}

/// evcxr's messages about variables that cannot live between cells, as diagnostics.
pub fn not_persistent(
    message: &str,
    rewritten: &Rewritten,
    cell: &CellSyntax,
    variables: &BTreeMap<String, String>,
) -> Option<Refused> {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let name = quoted.next()?;
    let obstacle = if message.contains(contract::IS_A_CLOSURE) {
        Obstacle::Closure
    } else if message.contains(contract::UNKNOWN_TYPE) {
        Obstacle::Unknown
    } else if message.contains(contract::BORROWS) {
        Obstacle::Reference
    } else if message.contains(contract::CANNOT_PERSIST) {
        Obstacle::of_type(quoted.next().unwrap_or_default())
    } else {
        return None;
    };
    refuse(name, obstacle, rewritten, cell, variables)
}

/// The variable and its type in the line by which evcxr hands it on.
fn handed_on(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.split_once(contract::PUT)?;
    let (kind, rest) = rest.split_once(contract::NAME)?;
    let (name, _) = rest.split_once(')')?;
    Some((name, kind))
}

/// Why a variable cannot be handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Obstacle<'a> {
    Closure,
    /// It borrows.
    Reference,
    /// rust-analyzer does not know the type, or cannot write it.
    Unknown,
    /// `impl Trait` is part of the type, or all of it; so are closures, as rust-analyzer writes them.
    Opaque(&'a str),
    /// `!` is part of the type.
    Never(&'a str),
    /// A type that is defined among the statements of the cell, as by a macro.
    OfCell(&'a str),
    /// A type that the next cell cannot name for another reason.
    Named(&'a str),
}

impl<'a> Obstacle<'a> {
    fn of_type(kind: &'a str) -> Self {
        let separates = |character: char| "<>()[], ;&".contains(character);
        if kind.contains("impl ") {
            Self::Opaque(kind)
        } else if kind.split(separates).any(|part| part == "!") {
            Self::Never(kind)
        } else {
            Self::Named(kind)
        }
    }

    /// What is wrong, to follow the variable's name, and what to type instead, best first.
    fn explanation(
        self,
        name: &str,
        cell: &CellSyntax,
        variables: &BTreeMap<String, String>,
    ) -> (String, Vec<String>) {
        let block = "keep it inside a block `{ … }`, then it need not live longer".to_owned();
        match self {
            Self::Closure => {
                let problem = "is a closure, which cannot live between cells";
                (
                    problem.to_owned(),
                    closures::ways_out(name, cell, variables),
                )
            }
            Self::Reference if is_guard(name, cell) => {
                let again = "take it again in each cell that needs it, inside a block `{ … }`";
                let problem = "borrows from another variable, which may be used in other cells";
                (problem.to_owned(), vec![again.to_owned()])
            }
            Self::Reference => {
                let (problem, owned) = of_a_borrow(name, cell);
                (problem, vec![owned, block])
            }
            Self::Unknown => {
                let mut fixes = vec![format!("give it a type: `let {name}: Type = …;`"), block];
                if is_adapted(name, cell) {
                    let collected = "keep what it yields: end it with `.collect::<Vec<_>>()`";
                    fixes.insert(0, collected.to_owned());
                }
                ("has a type that could not be inferred".to_owned(), fixes)
            }
            Self::Opaque(kind) => {
                let mut fixes = Vec::new();
                let yields = kind.starts_with("impl ") && kind.contains("Iterator");
                if yields || is_adapted(name, cell) {
                    fixes
                        .push("keep what it yields: end it with `.collect::<Vec<_>>()`".to_owned());
                }
                if let Some(bounds) = kind.strip_prefix("impl ") {
                    let boxed = if bounds.contains("Future<") {
                        format!("let {name}: std::pin::Pin<Box<dyn {bounds}>> = Box::pin(…);")
                    } else {
                        format!("let {name}: Box<dyn {bounds}> = Box::new(…);")
                    };
                    fixes.push(format!("box it, then it has a type: `{boxed}`"));
                } else if let Some(bounds) = kind.strip_prefix("Box<impl ") {
                    fixes.push(format!(
                        "give it a type: `let {name}: Box<dyn {bounds} = …;`"
                    ));
                }
                fixes.push(block);
                let problem = format!("has a type without a name, `{kind}`");
                (problem, fixes)
            }
            Self::Never(kind) => {
                let unit = kind.replace('!', "()");
                let typed = format!(
                    "give it the type of something that returns: `let {name}: {unit} = …;`"
                );
                let problem = format!(
                    "has the type `{kind}`, and stable Rust has no name for `!`, the type of what never \
                     returns"
                );
                (problem, vec![typed, block])
            }
            Self::OfCell(kind) => {
                let (problem, written) = of_cell(kind);
                (problem, vec![written, block])
            }
            Self::Named(kind) => {
                let boxed =
                    format!("box it as a trait: `let {name}: Box<dyn Trait> = Box::new(…);`");
                let problem = format!("has the type `{kind}`, which the next cell cannot name");
                (problem, vec![boxed, block])
            }
        }
    }
}

/// What is wrong with a variable that borrows, and what to do.
fn of_a_borrow(name: &str, cell: &CellSyntax) -> (String, String) {
    let lent = lent(name, cell);
    let owner = lent.as_ref().map(|it| format!("`{}`", it.owner));
    let owner = owner.unwrap_or_else(|| "a value of its cell".to_owned());
    let owned = match lent.is_some_and(|it| it.is_iterator) {
        true => "keep the items: end it with `.cloned().collect::<Vec<_>>()`".to_owned(),
        false if method_of(name, cell, |call| call.method == "collect") => {
            "keep items of their own, such as a `String` for each `&str`".to_owned()
        }
        false => format!("keep a copy: `let {name} = ….to_owned();`"),
    };
    let problem = format!("borrows from {owner}, and a borrow cannot outlive its cell");
    (problem, owned)
}

/// What is wrong with a variable of a type that ends with its cell, and what to do.
fn of_cell(kind: &str) -> (String, String) {
    let problem = format!(
        "has the type `{kind}`, which a macro of this cell makes and the next cell cannot name"
    );
    let written = format!(
        "write the definition of `{kind}` in the cell, or let a macro of the notebook make nothing but items"
    );
    (problem, written)
}

fn refuse(
    name: &str,
    obstacle: Obstacle<'_>,
    rewritten: &Rewritten,
    cell: &CellSyntax,
    variables: &BTreeMap<String, String>,
) -> Option<Refused> {
    if !rewritten.bindings.iter().any(|binding| binding == name) {
        return None;
    }
    let (problem, mut fixes) = obstacle.explanation(name, cell, variables);
    let first = match obstacle {
        Obstacle::Reference if !is_guard(name, cell) => check::owned(cell, name, variables),
        Obstacle::Closure => closures::as_function(name, cell, variables),
        _ => None,
    };
    if first.is_some() {
        // The same in words.
        fixes.remove(0);
    }
    let mut places = word_positions(cell.code(), name);
    let is_used = places.clone().nth(1).is_some();
    let place = places.next().map(|start| {
        Place::Span(CellSpan {
            start,
            end: start + name.len(),
        })
    });
    let rule = VariableNotKept {
        name: name.to_owned(),
        place,
        problem,
        fixes,
        first,
    };
    let is_certain = !matches!(obstacle, Obstacle::Unknown | Obstacle::Never(_));
    Some(Refused {
        can_end: is_used && is_certain,
        ends_as: match obstacle {
            Obstacle::Closure => "a closure",
            Obstacle::Reference => "a borrow",
            _ => "of a type without a name",
        },
        name: name.to_owned(),
        card: rule.diagnostic(),
    })
}

/// What `read` makes of a `let` at the top of the cell, of its name and its value; the first that it
/// makes something of.
fn local<T: Send + 'static>(
    cell: &CellSyntax,
    read: impl Fn(&syn::Ident, &syn::Expr) -> Option<T> + Send + 'static,
) -> Option<T> {
    cell.read(move |syntax| {
        let mut statements = syntax.statements_as_typed()?.iter();
        statements.find_map(|statement| {
            let syn::Stmt::Local(local) = statement else {
                return None;
            };
            let pattern = match &local.pat {
                syn::Pat::Type(typed) => &typed.pat,
                pattern => pattern,
            };
            let syn::Pat::Ident(name) = pattern else {
                return None;
            };
            read(&name.ident, &local.init.as_ref()?.expr)
        })
    })
}

/// The variable that a cell binds to a closure, if it does so in plain sight.
fn closure_in(cell: &CellSyntax) -> Option<String> {
    local(cell, |name, value| {
        matches!(value, syn::Expr::Closure(_)).then(|| name.to_string())
    })
}

/// Whether the variable is bound to `….map(|x| …)` or the like.
fn is_adapted(name: &str, cell: &CellSyntax) -> bool {
    let is_closure = |operand: &syn::Expr| matches!(operand, syn::Expr::Closure(_));
    method_of(name, cell, move |call| call.args.iter().any(is_closure))
}

/// Whether it is bound to what a lock or a cell lends.
fn is_guard(name: &str, cell: &CellSyntax) -> bool {
    const LENDS: [&str; 5] = ["lock", "read", "write", "borrow", "borrow_mut"];
    method_of(name, cell, |call| {
        LENDS.iter().any(|method| call.method == method)
    })
}

/// What a borrow is of.
struct Lent {
    /// The variable.
    owner: String,
    /// It is an iterator over the variable's items.
    is_iterator: bool,
}

/// The variable that the value of `name` borrows from, where the text shows it: `w` in `&w[0]`, `w.iter()`.
fn lent(name: &str, cell: &CellSyntax) -> Option<Lent> {
    const ITERATORS: [&str; 8] = [
        "iter", "keys", "values", "windows", "chunks", "chars", "lines", "split",
    ];
    let name = name.to_owned();
    local(cell, move |ident, value| {
        if *ident != name {
            return None;
        }
        let method = match value {
            syn::Expr::MethodCall(call) => call.method.to_string(),
            _ => String::new(),
        };
        let mut place = value;
        loop {
            place = match place {
                syn::Expr::Reference(inner) => &inner.expr,
                syn::Expr::Paren(inner) => &inner.expr,
                syn::Expr::Try(inner) => &inner.expr,
                syn::Expr::Index(inner) => &inner.expr,
                syn::Expr::Field(inner) => &inner.base,
                syn::Expr::MethodCall(inner) => &inner.receiver,
                syn::Expr::Path(path) => {
                    return Some(Lent {
                        owner: path.path.get_ident()?.to_string(),
                        is_iterator: ITERATORS.contains(&method.as_str()),
                    });
                }
                _ => return None,
            };
        }
    })
}

/// Whether the last call of what the variable is bound to is so, but for a `?` or `unwrap()`.
fn method_of(
    name: &str,
    cell: &CellSyntax,
    is_so: impl Fn(&syn::ExprMethodCall) -> bool + Send + 'static,
) -> bool {
    let name = name.to_owned();
    let found = local(cell, move |ident, value| {
        let mut value = value;
        loop {
            match value {
                _ if *ident != name => return None,
                syn::Expr::Try(inner) => value = &inner.expr,
                syn::Expr::MethodCall(call) if is_so(call) => return Some(()),
                syn::Expr::MethodCall(call) if call.method == "unwrap" => value = &call.receiver,
                _ => return None,
            }
        }
    });
    found.is_some()
}

fn word_positions<'a>(code: &'a str, name: &'a str) -> impl Iterator<Item = usize> + Clone + 'a {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    code.match_indices(name)
        .map(|(at, _)| at)
        .filter(move |&at| {
            let before = code[..at].chars().next_back();
            let after = code[at + name.len()..].chars().next();
            !before.is_some_and(is_word) && !after.is_some_and(is_word)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_tells_what_is_in_the_way() {
        for (kind, expected) in [
            ("impl Fn(u8) -> u8", Obstacle::Opaque("impl Fn(u8) -> u8")),
            (
                "Map<Iter<'_, u8>, impl FnMut(&u8) -> u8>",
                Obstacle::Opaque("Map<Iter<'_, u8>, impl FnMut(&u8) -> u8>"),
            ),
            ("JoinHandle<!>", Obstacle::Never("JoinHandle<!>")),
            ("!", Obstacle::Never("!")),
            ("(u8, !)", Obstacle::Never("(u8, !)")),
            ("m::Hidden", Obstacle::Named("m::Hidden")),
        ] {
            assert_eq!(Obstacle::of_type(kind), expected, "{kind}");
        }
    }

    #[test]
    fn the_line_that_hands_a_variable_on_is_read() {
        let line =
            "evcxr_variable_store.put_variable::<std::thread::JoinHandle<!>>(stringify!(h), h);";
        assert_eq!(handed_on(line), Some(("h", "std::thread::JoinHandle<!>")));
        assert_eq!(handed_on("put(h)"), None);
    }

    #[test]
    fn a_borrow_names_its_owner() {
        for (value, expected) in [
            ("&w[0]", Some(("w", false))),
            ("&w[1..3]", Some(("w", false))),
            ("(&w.field).as_str()", Some(("w", false))),
            ("w.iter()", Some(("w", true))),
            ("w.first().unwrap()", Some(("w", false))),
            ("first(&w)", None),
        ] {
            let lent = lent("part", &CellSyntax::of(&format!("let part = {value};")));
            let found = lent.as_ref().map(|it| (it.owner.as_str(), it.is_iterator));
            assert_eq!(found, expected, "{value}");
        }
        let (problem, fix) = of_a_borrow("part", &CellSyntax::of("let part = w.iter();"));
        assert_eq!(
            problem,
            "borrows from `w`, and a borrow cannot outlive its cell"
        );
        assert!(fix.ends_with("`.cloned().collect::<Vec<_>>()`"), "{fix}");
    }

    #[test]
    fn an_iterator_is_known_by_its_closure() {
        let code =
            CellSyntax::of("let numbers = vec![1];\nlet doubled = numbers.iter().map(|n| 2 * n);");
        assert!(is_adapted("doubled", &code) && !is_adapted("numbers", &code));
        assert_eq!(
            closure_in(&CellSyntax::of("let f = |x: u8| x;")).as_deref(),
            Some("f")
        );
        assert_eq!(closure_in(&code), None);
        let code = CellSyntax::of(
            "let a = m.lock()?; let b = c.borrow_mut(); let d = m.lock().unwrap(); let e = f();",
        );
        let guards = ["a", "b", "d", "e"].map(|name| is_guard(name, &code));
        assert_eq!(guards, [true, true, true, false]);
    }
}

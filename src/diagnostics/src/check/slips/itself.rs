//! A reference to a variable that cannot be copied: `let r = &run;`. The variable itself is used instead.

use stratoscope_cell_syntax::Syntax;
use syn::{Expr, Pat, Stmt, UnOp};

use super::edit;
use super::tree::{is_in, name_of, place, visit_all};
use crate::{CellSpan, Edit};

/// Types without `clone`, by their last names.
const NOT_CLONED: [&str; 14] = [
    "AtomicBool",
    "AtomicI64",
    "AtomicUsize",
    "Child",
    "File",
    "JoinHandle",
    "Mutex",
    "Receiver",
    "RefMut",
    "Run",
    "RwLock",
    "Server",
    "TcpListener",
    "TcpStream",
];

/// Whether values of a type cannot be copied.
pub(in crate::check) fn is_not_cloned(of_type: &str) -> bool {
    let name = of_type.split('<').next().unwrap_or(of_type);
    let name = name.rsplit("::").next().unwrap_or(name);
    NOT_CLONED.contains(&name)
}

/// The edits that leave out `let r = &run;` and write `run` for each `r`, and the name of that variable. `None`: it is bound to
/// something else, or used in a way that the edits may not fit.
pub(in crate::check) fn itself(cell: &Syntax, name: &str) -> Option<(String, Vec<Edit>)> {
    let statements = cell.statements()?;
    let (statement, owner) = statements.iter().find_map(|it| {
        let Stmt::Local(local) = it else {
            return None;
        };
        let Pat::Ident(bound) = &local.pat else {
            return None;
        };
        let Expr::Reference(reference) = &*local.init.as_ref()?.expr else {
            return None;
        };
        let is_bare = matches!(&*reference.expr, Expr::Path(_));
        let owner = name_of(&reference.expr).filter(|_| is_bare)?;
        (bound.ident == name).then(|| (place(it), owner))
    })?;
    let text = cell.text();
    let mut edits = vec![without_line(text, statement)];
    let mut bare: Vec<CellSpan> = Vec::new();
    let is_it = |it: &Expr| matches!(it, Expr::Path(path) if path.path.is_ident(name));
    let mut used: Vec<CellSpan> = Vec::new();
    visit_all(cell, |it| {
        let at = place(it);
        if at.start < statement.end {
            return;
        }
        let inner = match it {
            Expr::MethodCall(call) => &*call.receiver,
            Expr::Field(field) => &*field.base,
            Expr::Index(index) => &*index.expr,
            Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) && is_it(&unary.expr) => {
                used.push(at);
                bare.push(place(&*unary.expr));
                return;
            }
            _ if is_it(it) => {
                used.push(at);
                return;
            }
            _ => return,
        };
        if is_it(inner) {
            bare.push(place(inner));
        }
    });
    for at in used {
        let is_deref = text.get(at.start..at.end)?.starts_with('*');
        if !is_deref && bare.contains(&at) {
            // Inside of `*r`, which is replaced as a whole.
            let is_part = text[..at.start].ends_with('*');
            if !is_part {
                edits.push(edit(at.start, at.end, owner.clone()));
            }
        } else {
            let written = if is_deref {
                owner.clone()
            } else {
                format!("&{owner}")
            };
            edits.push(edit(at.start, at.end, written));
        }
    }
    let is_in_text = text.contains(&format!("{{{name}}}")) || text.contains(&format!("{{{name}:"));
    (!is_in_text).then_some((owner, edits))
}

/// The edit that takes away a statement, with its line if nothing else stands there.
fn without_line(text: &str, statement: CellSpan) -> Edit {
    let start = text[..statement.start].rfind('\n').map_or(0, |at| at + 1);
    let is_alone = text[start..statement.start].trim().is_empty();
    let rest = &text[statement.end..];
    let line = rest.find('\n').map_or(rest.len(), |at| at + 1);
    if is_alone && rest[..line].trim().is_empty() {
        edit(start, statement.end + line, "")
    } else {
        let blanks = rest.len() - rest.trim_start_matches(' ').len();
        edit(statement.start, statement.end + blanks, "")
    }
}

/// An edit, and those that write the variable itself for the reference that the edit is about: `r.step(1)?` becomes `run.step(1)?`.
pub(in crate::check) fn with_itself(cell: &Syntax, edit: &Edit, name: &str) -> Option<Vec<Edit>> {
    let crate::Place::Span(span) = edit.place else {
        return None;
    };
    let (owner, edits) = itself(cell, name)?;
    let rest = edit.replacement.strip_prefix(name)?;
    let own = Edit {
        place: edit.place.clone(),
        replacement: format!("{owner}{rest}"),
    };
    let others = edits
        .into_iter()
        .filter(|it| !matches!(it.place, crate::Place::Span(at) if is_in(at, span)));
    Some(others.chain([own]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::apply;
    use crate::{Fix, FixKind};

    #[test]
    fn the_variable_is_used_itself() {
        for (text, expected) in [
            ("let r = &run;\nr.step(1)?;", Some("run.step(1)?;")),
            (
                "let r = &mut run; f(r); r.report()?",
                Some("f(&run); run.report()?"),
            ),
            ("let r = &n;\nlet m = *r + 1;", Some("let m = n + 1;")),
            ("let r = &run;", Some("")),
            ("let r = &v[0];\nr.len()", None),
            ("let r = &n;\nprintln!(\"{r}\");", None),
        ] {
            let fixed = Syntax::with(text, |cell| {
                let (_, edits) = itself(cell, "r")?;
                let fix = Fix {
                    kind: FixKind::Change,
                    title: String::new(),
                    edits,
                };
                apply(text, &fix)
            });
            assert_eq!(fixed.as_deref(), expected, "{text}");
        }
        assert!(is_not_cloned("stratoscope::prelude::Run") && !is_not_cloned("Vec<Run>"));
    }
}

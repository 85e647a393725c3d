//! A variable that gets borrowed values after its `let`, as in a loop: `let mut longest: &str = "";`, `longest = word;`,
//! `words.push(word)`. Each value becomes one of its own.

use stratoscope_cell_syntax::Syntax;
use syn::{BinOp, Expr, Pat};

use super::tree::{find_local, place, visit_all};
use super::{edit, insert};
use crate::render::apply;
use crate::{CellSpan, Edit, Fix, FixKind};

/// The edits for a variable, and its `let` after them. `None`: nothing is put into it later, or the text does not decide it.
pub(super) fn filled(cell: &Syntax, name: &str) -> Option<(Vec<Edit>, String)> {
    let text = cell.text();
    let (whole, of_type, value) = find_local(cell, |local| {
        let (pattern, of_type) = match &local.pat {
            Pat::Type(typed) => (&*typed.pat, Some(place(&typed.ty))),
            other => (other, None),
        };
        let value = local.init.as_ref().map(|it| (*it.expr).clone());
        match pattern {
            Pat::Ident(bound) if bound.ident == name => Some((place(local), of_type, value)),
            _ => None,
        }
    })?;
    let is_literal = matches!(&value, Some(Expr::Lit(it)) if matches!(it.lit, syn::Lit::Str(_)));
    let is_text = of_type
        .and_then(|it| text.get(it.start..it.end))
        .is_some_and(|it| it.contains("str"));
    // Of a text `to_string` makes a `String`, whatever it is behind.
    let copy = if is_literal || is_text {
        ".to_string()"
    } else {
        ".to_owned()"
    };
    let uses = Uses::of(cell, name, whole.end, copy);
    if uses.edits.is_empty() || uses.is_open {
        return None;
    }
    let mut edits = uses.edits;
    if uses.is_assigned {
        edits.extend(uses.of_texts);
    }
    if let Some(span) = of_type {
        let written = text.get(span.start..span.end)?;
        let owned = owned_type(written);
        if owned != written {
            edits.push(edit(span.start, span.end, owned));
        }
    }
    if let Some(value) = value.filter(|_| uses.is_assigned) {
        let at = place(&value);
        edits.push(match text.get(at.start..at.end)? {
            "\"\"" => edit(at.start, at.end, "String::new()"),
            _ => insert(at.end, copy),
        });
    }
    let fix = Fix {
        kind: FixKind::Change,
        title: String::new(),
        edits: edits.clone(),
    };
    let fixed = apply(text, &fix)?;
    let line = fixed.get(whole.start..)?.split(['\n', ';']).next()?;
    Some((edits, format!("{};", line.trim())))
}

/// `String` of `&str`, `Vec<String>` of `Vec<&str>`, `Vec<f64>` of `&[f64]`.
pub(super) fn owned_type(written: &str) -> String {
    let written = written
        .replace("&'static str", "String")
        .replace("&str", "String");
    match written
        .strip_prefix("&[")
        .and_then(|it| it.strip_suffix(']'))
    {
        Some(element) => format!("Vec<{element}>"),
        None => written.replace('&', ""),
    }
}

/// What is done with a variable after its `let`.
#[derive(Default)]
struct Uses {
    edits: Vec<Edit>,
    /// A new value is assigned to it.
    is_assigned: bool,
    /// It is used in a way that the edits may not fit.
    is_open: bool,
    /// What else changes where it is a `String` then: comparisons, and functions that take a `&str`.
    of_texts: Vec<Edit>,
    /// What makes a value of its own.
    copy: &'static str,
}

impl Uses {
    fn of(cell: &Syntax, name: &str, after: usize, copy: &'static str) -> Self {
        let mut uses = Self {
            copy,
            ..Self::default()
        };
        visit_all(cell, |it| {
            if place(it).start >= after {
                uses.note(cell, it, name);
            }
        });
        uses
    }

    fn note(&mut self, cell: &Syntax, it: &Expr, name: &str) {
        let is_it = |it: &Expr| matches!(it, Expr::Path(path) if path.path.is_ident(name));
        match it {
            Expr::Assign(assign) if is_it(&assign.left) => {
                match owned(cell, &assign.right, self.copy) {
                    Some(edits) => {
                        self.is_assigned = true;
                        self.edits.extend(edits);
                    }
                    None => self.is_open = true,
                }
            }
            Expr::MethodCall(call) if is_it(&call.receiver) => {
                let fills = ["push", "insert", "entry", "push_back", "extend"];
                if !fills.iter().any(|it| call.method == it) {
                    return;
                }
                // The key of a map, or the element of a list.
                match call.args.first().and_then(|it| owned(cell, it, self.copy)) {
                    Some(edits) if call.method != "extend" => self.edits.extend(edits),
                    _ => self.is_open = true,
                }
            }
            Expr::Binary(binary) if is_comparison(&binary.op) => {
                for side in [&binary.left, &binary.right] {
                    if is_it(side) {
                        self.of_texts.push(insert(place(&**side).end, ".as_str()"));
                    }
                }
            }
            Expr::Call(call) => {
                for value in call.args.iter().filter(|it| is_it(it)) {
                    self.of_texts.push(insert(place(value).start, "&"));
                }
            }
            _ => {}
        }
    }
}

fn is_comparison(operator: &BinOp) -> bool {
    matches!(
        operator,
        BinOp::Eq(_) | BinOp::Ne(_) | BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_)
    )
}

/// The edits that make a value of its own of what is assigned.
fn owned(cell: &Syntax, value: &Expr, copy: &str) -> Option<Vec<Edit>> {
    let at: CellSpan = place(value);
    match value {
        Expr::Path(_) | Expr::Field(_) | Expr::MethodCall(_) | Expr::Lit(_) | Expr::Index(_) => {
            Some(vec![insert(at.end, copy)])
        }
        Expr::Reference(reference) => {
            let inner = place(&*reference.expr);
            let text = cell.text().get(inner.start..inner.end)?;
            Some(vec![edit(at.start, at.end, format!("{text}{copy}"))])
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_into_a_variable_becomes_a_value_of_its_own() {
        for (cell, name, expected) in [
            (
                "let mut longest: &str = \"\";\nfor w in &words { if w.len() > longest.len() { longest = w; } }",
                "longest",
                Some(
                    "let mut longest: String = String::new();\nfor w in &words { if w.len() > longest.len() { longest = w.to_string(); } }",
                ),
            ),
            (
                "let mut best = words[0].as_str();\nfor w in &words { best = &w[..2]; }",
                "best",
                Some(
                    "let mut best = words[0].as_str().to_owned();\nfor w in &words { best = w[..2].to_owned(); }",
                ),
            ),
            (
                "let mut all: Vec<&str> = Vec::new();\nfor w in text.split(' ') { all.push(w); }",
                "all",
                Some(
                    "let mut all: Vec<String> = Vec::new();\nfor w in text.split(' ') { all.push(w.to_string()); }",
                ),
            ),
            (
                "let mut counts: HashMap<&str, i32> = HashMap::new();\nfor w in text.split(' ') { *counts.entry(w).or_insert(0) += 1; }",
                "counts",
                Some(
                    "let mut counts: HashMap<String, i32> = HashMap::new();\nfor w in text.split(' ') { *counts.entry(w.to_string()).or_insert(0) += 1; }",
                ),
            ),
            ("let first = &v[0];\nfirst.len();", "first", None),
        ] {
            let fixed = Syntax::with(cell, |syntax| {
                let (edits, _) = filled(syntax, name)?;
                apply(
                    syntax.text(),
                    &Fix {
                        kind: FixKind::Change,
                        title: String::new(),
                        edits,
                    },
                )
            });
            assert_eq!(fixed.as_deref(), expected, "{cell}");
        }
        for (written, expected) in [
            ("&str", "String"),
            ("&'static str", "String"),
            ("Vec<&str>", "Vec<String>"),
            ("&[f64]", "Vec<f64>"),
            ("Option<&str>", "Option<String>"),
        ] {
            assert_eq!(owned_type(written), expected);
        }
    }
}

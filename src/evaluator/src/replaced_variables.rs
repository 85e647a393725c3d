//! Variables that a later cell has given a value of another type. When a method, a field or an index is not found on one, the
//! error says which cell replaced the value, and what it was before.

use std::collections::BTreeMap;

use stratoscope_cell_syntax::{CellSyntax, Syntax};
use stratoscope_diagnostics::{Diagnostic, Fix, FixKind, Place};
use syn::visit::{self, Visit};

/// What a variable was before.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Earlier {
    of_type: String,
    made_in: u64,
    replaced_in: u64,
}

/// By name.
#[derive(Clone, Default)]
pub struct ReplacedVariables(BTreeMap<String, Earlier>);

impl ReplacedVariables {
    /// Cell `cell` has replaced the variable, which was of type `before` and made in cell `made_in`. A value of the same type is no
    /// other one.
    pub fn note(&mut self, name: &str, before: &str, after: &str, made_in: u64, cell: u64) {
        let (before, after) = (without_path(before), without_path(after));
        // A `Result` has none of the methods that are looked for.
        if before == after || before.starts_with("Result<") {
            return;
        }
        // What it was at first is no longer replaced.
        if self.0.get(name).is_some_and(|it| it.of_type == after) {
            self.0.remove(name);
            return;
        }
        let earlier = Earlier {
            of_type: before,
            made_in,
            replaced_in: cell,
        };
        self.0.insert(name.to_owned(), earlier);
    }

    /// Only those that there are.
    pub fn retain(&mut self, is_there: impl Fn(&str) -> bool) {
        self.0.retain(|name, _| is_there(name));
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// rustc's error about a variable that was another one, with what it was; `None`: it is about something else.
    pub fn explain(&self, found: &Diagnostic, cell: &CellSyntax) -> Option<Diagnostic> {
        if !matches!(
            found.code.as_str(),
            "E0599" | "E0609" | "E0608" | "E0614" | "E0618"
        ) {
            return None;
        }
        let code = cell.code();
        let name = variable_at(found, code)?;
        let Earlier {
            of_type,
            made_in,
            replaced_in,
        } = self.0.get(name)?;
        // The cell that says it gives it a new value. What a `let` within a macro binds is seen in the text alone.
        let is_in_text =
            code.contains(&format!("let {name}")) || code.contains(&format!("let mut {name}"));
        let owned = name.to_owned();
        if is_in_text || cell.read(move |cell| Some(binds(cell, &owned)))? {
            return None;
        }
        let mut found = found.clone();
        found.message = format!(
            "{}: In[{replaced_in}] replaced `{name}`, which was `{of_type}`",
            found.message
        );
        let again = if *made_in > 0 && made_in != replaced_in {
            format!(
                "run In[{made_in}] again, which made it, and use another name in In[{replaced_in}]"
            )
        } else {
            format!("make `{name}` again, and use another name in In[{replaced_in}]")
        };
        found.fixes = vec![Fix {
            kind: FixKind::Change,
            title: again,
            edits: Vec::new(),
        }];
        Some(found)
    }
}

/// Whether a pattern of the cell binds this name: of a `let`, a closure, a function, a loop or a `match`.
fn binds(cell: &Syntax, name: &str) -> bool {
    struct Patterns<'a> {
        name: &'a str,
        is_bound: bool,
    }
    impl<'ast> Visit<'ast> for Patterns<'_> {
        fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
            self.is_bound |= pattern.ident == self.name;
            visit::visit_pat_ident(self, pattern);
        }
    }
    let mut patterns = Patterns {
        name,
        is_bound: false,
    };
    for statement in cell.statements().unwrap_or_default() {
        patterns.visit_stmt(statement);
    }
    patterns.is_bound
}

/// rustc's error about a call of something that is no function, where a variable of the notebook hides the function.
pub fn hides_a_function(
    found: &Diagnostic,
    code: &str,
    is_variable: impl Fn(&str) -> bool,
) -> Option<Diagnostic> {
    let Place::Span(span) = found.labels.first()?.place else {
        return None;
    };
    let name = code.get(span.start..span.end)?;
    if found.code != "E0618" || !is_variable(name) {
        return None;
    }
    let mut found = found.clone();
    found.labels.truncate(1);
    found.labels[0].text = format!("the variable `{name}`");
    found.message = format!("{}: `{name}` is a variable here", found.message);
    let fix = Fix {
        kind: FixKind::Change,
        title: format!(
            "if a function is meant: give the variable another name, such as `{name}_value`, and restart the kernel"
        ),
        edits: Vec::new(),
    };
    found.fixes = vec![fix];
    Some(found)
}

/// The variable before the dot or the bracket that an error marks.
fn variable_at<'a>(found: &Diagnostic, code: &'a str) -> Option<&'a str> {
    let Place::Span(span) = found.labels.first()?.place else {
        return None;
    };
    let is_name = |it: char| it.is_alphanumeric() || it == '_';
    let marked = code.get(span.start..span.end)?;
    // An index is marked with what it is of.
    let whole = marked.split(['[', '(', '.']).next()?;
    if span.start < span.end && !whole.is_empty() && marked.len() > whole.len() {
        return whole.chars().all(is_name).then_some(whole);
    }
    let before = code[..span.start].trim_end();
    let before = before.strip_suffix('.').unwrap_or(before).trim_end();
    let start = before.trim_end_matches(is_name).len();
    let is_alone = !before[..start].ends_with(['.', ':']);
    (is_alone && start < before.len()).then(|| &before[start..])
}

/// A type without the modules of its names.
fn without_path(of_type: &str) -> String {
    let mut text = String::new();
    for part in of_type.split_inclusive(|it: char| !(it.is_alphanumeric() || it == '_')) {
        if part.ends_with(':') {
            continue;
        }
        text.push_str(part);
    }
    text
}

#[cfg(test)]
mod tests {
    use stratoscope_diagnostics::Severity;

    use super::*;

    #[test]
    fn a_variable_that_hides_a_function_is_named() {
        let code = "metrics = [accuracy()]";
        let found = Diagnostic::new("E0618", Severity::Error, "expected function, found `f64`")
            .label(Place::span(11, 19), "");
        let said = hides_a_function(&found, code, |name| name == "accuracy").expect("it hides one");
        assert_eq!(
            said.message,
            "expected function, found `f64`: `accuracy` is a variable here"
        );
        assert_eq!(hides_a_function(&found, code, |_| false), None);
    }

    fn explained(code: &str, error: &str, at: &str) -> Option<String> {
        let mut replaced = ReplacedVariables::default();
        replaced.note(
            "model",
            "stratoscope::train::ModelOf<Layers>",
            "&str",
            21,
            22,
        );
        replaced.note("n", "i32", "i32", 1, 2);
        let start = code.rfind(at).expect("stands in the cell");
        let message = "no method named `summary` found for reference `&str`";
        let found = Diagnostic::new(error, Severity::Error, message)
            .label(Place::span(start, start + at.len()), "");
        let cell = CellSyntax::of(code);
        replaced.explain(&found, &cell).map(|it| it.message)
    }

    #[test]
    fn the_cell_that_replaced_it_is_named() {
        let message = explained("model.summary()", "E0599", "summary").expect("it was replaced");
        assert!(
            message.ends_with("In[22] replaced `model`, which was `ModelOf<Layers>`"),
            "{message}"
        );
        assert!(explained("model[0]", "E0608", "[0]").is_some());
        for (code, error, at) in [
            ("n.summary()", "E0599", "summary"),
            ("a.model.summary()", "E0599", "summary"),
            ("let model = 1; model.summary()", "E0599", "summary"),
            ("rows.map(|model| model.summary())", "E0599", "summary"),
            (
                "for (_, model) in rows { model.summary(); }",
                "E0599",
                "summary",
            ),
            ("fn f(model: &str) { model.summary() }", "E0599", "summary"),
            ("model.summary()", "E0425", "model"),
        ] {
            assert_eq!(explained(code, error, at), None, "{code}");
        }
    }

    #[test]
    fn what_it_was_at_first_is_not_replaced() {
        let mut replaced = ReplacedVariables::default();
        replaced.note("a", "Dataset", "&str", 1, 2);
        replaced.note("a", "&str", "Dataset", 2, 3);
        assert!(replaced.0.is_empty());
    }
}

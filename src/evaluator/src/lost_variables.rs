//! Variables that were lost. When a later cell names one, the error says in which cell it was lost, why, and how to
//! get it back, in addition to rustc's "cannot find value".

use std::collections::BTreeMap;

use stratoscope_diagnostics::{Diagnostic, Fix};

/// Why a variable was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// With the process that held it.
    ProcessEnded,
    /// With the process, which was ended because the cell did not listen to an interrupt.
    Interrupted,
    /// The cell moved it and then failed.
    MovedAndFailed,
    /// The cell bound it again and then failed.
    BoundAgain,
    /// The cell moved it.
    Moved,
    /// It could not be kept: what it was, such as `a borrow`.
    Ended(&'static str),
    /// The cell redefined its type.
    TypeRedefined,
    /// It never existed: the cell that binds it failed.
    NotMade,
    /// It never existed: the cell returned before the line that binds it.
    Returned,
}

/// What is known of a lost variable.
#[derive(Clone, Debug)]
struct Loss {
    cause: Cause,
    /// The cell that lost it.
    cell: u64,
    /// The cell that had made it.
    made_in: Option<u64>,
}

/// By name.
#[derive(Clone, Default)]
pub struct LostVariables(BTreeMap<String, Loss>);

impl LostVariables {
    /// Cell `cell` cost the variable `name`, which cell `made_in` had made.
    pub fn note(&mut self, name: &str, cause: Cause, cell: u64, made_in: Option<u64>) {
        let loss = Loss {
            cause,
            cell,
            made_in,
        };
        self.0.insert(name.to_owned(), loss);
    }

    /// The same, unless it is known where the variable went before. Of several cells that were to make it, the last one counts.
    pub fn note_if_new(&mut self, name: &str, cause: Cause, cell: u64) {
        let loss = Loss {
            cause,
            cell,
            made_in: Some(cell),
        };
        match self.0.get_mut(name) {
            Some(known) if known.cause == Cause::NotMade => *known = loss,
            Some(_) => {}
            None => drop(self.0.insert(name.to_owned(), loss)),
        }
    }

    /// Forgets those of which `is_lost` does not hold.
    pub fn retain(&mut self, is_lost: impl Fn(&str) -> bool) {
        self.0.retain(|name, _| is_lost(name));
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Whether rustc's error is about a variable that was lost, also when it has been explained.
    pub fn knows(&self, found: &Diagnostic) -> bool {
        unknown_name(found).is_some_and(|name| self.0.contains_key(name))
    }

    /// Adds to rustc's error about a name that is not there what is known of it.
    pub fn explain(&self, mut found: Diagnostic) -> Diagnostic {
        let known =
            unknown_name(&found).and_then(|name| Some((name.to_owned(), self.0.get(name)?)));
        let Some((name, loss)) = known else {
            return found;
        };
        let (what, way_back) = loss.explanation(&name);
        found.message = format!("{}: {what}; {}", found.message, way_back[0]);
        let ways = way_back.into_iter().map(|title| Fix {
            kind: stratoscope_diagnostics::FixKind::Change,
            title,
            edits: Vec::new(),
        });
        // A name that looks like it is not what was meant.
        let is_similar = |text: &str| text.contains("with a similar name exists");
        found.why.retain(|it| !is_similar(it));
        found.fixes.retain(|it| !is_similar(&it.title));
        found.fixes.splice(0..0, ways);
        found
    }
}

/// The names that the lines of a cell bind, one that is no Rust among them.
pub fn bound_in(code: &str) -> impl Iterator<Item = &str> {
    let is_name = |it: char| it.is_alphanumeric() || it == '_';
    let bindings = code
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("let "));
    let names = bindings.flat_map(move |rest| {
        let pattern = rest.split(['=', ':', ';']).next().unwrap_or_default();
        pattern.split(move |it: char| !is_name(it))
    });
    names.filter(|name| {
        // `Some` and `Ok` are no names.
        let is_type = name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase);
        !name.is_empty() && (!is_type || name.contains('_')) && !["_", "mut", "ref"].contains(name)
    })
}

/// The name in ``cannot find value `name` in this scope``.
fn unknown_name(found: &Diagnostic) -> Option<&str> {
    let rest = found.message.strip_prefix("cannot find value `")?;
    let (name, _) = rest.split_once('`')?;
    (found.code == "E0425").then_some(name)
}

impl Loss {
    /// What happened, and what to do, best first.
    fn explanation(&self, name: &str) -> (String, Vec<String>) {
        let cell = self.cell;
        let what = match self.cause {
            Cause::ProcessEnded => format!("it was lost when the process ended in cell {cell}"),
            Cause::Interrupted => {
                format!("it was lost when cell {cell} was interrupted and did not listen")
            }
            Cause::MovedAndFailed => format!("cell {cell} had moved it when it failed"),
            Cause::BoundAgain => format!("cell {cell} had bound it again when it failed"),
            Cause::Moved => format!("cell {cell} moved it"),
            Cause::Ended(what) => format!("it was {what}, and ended with cell {cell}"),
            Cause::TypeRedefined => format!("it was lost when cell {cell} redefined its type"),
            Cause::NotMade => format!("cell {cell}, which binds it, failed before it was kept"),
            Cause::Returned => format!("cell {cell} returned before the line that binds it"),
        };
        let mut ways = Vec::new();
        match (self.cause, self.made_in) {
            (Cause::Ended(_), _) => ways.extend([
                "bind it in this cell, too".to_owned(),
                format!("or let cell {cell} keep a value of its own: a function, a copy, the items of an iterator"),
            ]),
            (Cause::NotMade, _) => ways.push(format!("correct cell {cell} and run it again")),
            (Cause::Returned, _) => {
                ways.push(format!("bind it before the `return` of cell {cell}"))
            }
            (_, Some(made)) if made != cell => ways.push(format!("run cell {made} again")),
            _ => ways.push("run the cell again that made it".to_owned()),
        }
        if matches!(self.cause, Cause::Moved | Cause::MovedAndFailed) {
            ways.push(format!(
                "let cell {cell} borrow it, `&{name}`, or give it a copy, `{name}.clone()`"
            ));
        }
        (what, ways)
    }
}

#[cfg(test)]
mod tests {
    use stratoscope_diagnostics::Severity;

    use super::*;

    fn check(lost: &LostVariables, name: &str, expected: &str) {
        let message = format!("cannot find value `{name}` in this scope");
        let found = lost.explain(Diagnostic::new("E0425", Severity::Error, message.clone()));
        let added = found.message.strip_prefix(&message).expect("stays");
        assert_eq!(added, expected);
    }

    #[test]
    fn the_error_about_a_lost_variable_says_why_and_how_to_get_it_back() {
        let mut lost = LostVariables::default();
        lost.note("a", Cause::ProcessEnded, 5, Some(3));
        lost.note("b", Cause::Moved, 4, Some(2));
        lost.note("c", Cause::NotMade, 6, None);
        lost.note("d", Cause::ProcessEnded, 6, None);
        lost.note("f", Cause::BoundAgain, 7, Some(2));
        check(
            &lost,
            "a",
            ": it was lost when the process ended in cell 5; run cell 3 again",
        );
        check(&lost, "b", ": cell 4 moved it; run cell 2 again");
        check(
            &lost,
            "c",
            ": cell 6, which binds it, failed before it was kept; correct cell 6 and run it again",
        );
        check(
            &lost,
            "d",
            ": it was lost when the process ended in cell 6; run the cell again that made it",
        );
        check(&lost, "e", "");
        check(
            &lost,
            "f",
            ": cell 7 had bound it again when it failed; run cell 2 again",
        );
        // The last of two cells that were to make it.
        lost.note_if_new("c", Cause::NotMade, 8);
        check(
            &lost,
            "c",
            ": cell 8, which binds it, failed before it was kept; correct cell 8 and run it again",
        );
        lost.note_if_new("d", Cause::NotMade, 9);
        check(
            &lost,
            "d",
            ": it was lost when the process ended in cell 6; run the cell again that made it",
        );
        lost.retain(|name| name != "a");
        check(&lost, "a", "");
        let other = Diagnostic::new(
            "E0423",
            Severity::Error,
            "cannot find value `b` in this scope",
        );
        assert_eq!(lost.explain(other.clone()), other);
    }

    #[test]
    fn a_cell_binds_names_though_it_is_no_rust() {
        let code = "let mut n = (1;\nlet (X_train, _dev): (A, B) = f()?;\n  let Some(x) = y else { return };\nn = 3;";
        let names: Vec<&str> = bound_in(code).collect();
        assert_eq!(names, ["n", "X_train", "_dev", "x"]);
    }
}

//! Variables that are gone: a later cell that names one is told where it went and how it comes back,
//! and not only that there is no such name.

use std::collections::BTreeMap;

use stratoscope_diagnostics::{Diagnostic, Fix};

/// How a variable went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// With the process that held it.
    ProcessEnded,
    /// With the process, which was ended because the cell did not listen to an interrupt.
    Interrupted,
    /// The cell moved it and then failed.
    MovedAndFailed,
    /// The cell moved it.
    Moved,
    /// The cell defined its type anew.
    TypeRedefined,
    /// It never came: the cell that binds it failed.
    NotMade,
    /// It never came: the cell returned before the line that binds it.
    Returned,
}

/// What is known of one that is gone.
#[derive(Clone, Debug)]
struct Loss {
    how: How,
    /// The cell that did it.
    cell: u64,
    /// The cell that had made it.
    made_in: Option<u64>,
}

/// By name.
#[derive(Clone, Default)]
pub struct Gone(BTreeMap<String, Loss>);

impl Gone {
    /// Cell `cell` cost the variable `name`, which cell `made_in` had made.
    pub fn note(&mut self, name: &str, how: How, cell: u64, made_in: Option<u64>) {
        let loss = Loss { how, cell, made_in };
        self.0.insert(name.to_owned(), loss);
    }

    /// The same, unless it is known where the variable went before.
    pub fn note_if_new(&mut self, name: &str, how: How, cell: u64) {
        let loss = Loss {
            how,
            cell,
            made_in: Some(cell),
        };
        self.0.entry(name.to_owned()).or_insert(loss);
    }

    /// Only those stay gone of which `is_gone` holds.
    pub fn retain(&mut self, is_gone: impl Fn(&str) -> bool) {
        self.0.retain(|name, _| is_gone(name));
    }

    /// Nothing was there.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds to rustc's error about a name that is not there what is known of it.
    pub fn explain(&self, mut found: Diagnostic) -> Diagnostic {
        let known =
            unknown_name(&found).and_then(|name| Some((name.to_owned(), self.0.get(name)?)));
        let Some((name, loss)) = known else {
            return found;
        };
        let (what, way_back) = loss.told(&name);
        found.message = format!("{}: {what}; {}", found.message, way_back[0]);
        let ways = way_back.into_iter().map(|title| Fix {
            title,
            edits: Vec::new(),
        });
        found.fixes.splice(0..0, ways);
        found
    }
}

/// The name in ``cannot find value `name` in this scope``.
fn unknown_name(found: &Diagnostic) -> Option<&str> {
    let rest = found.message.strip_prefix("cannot find value `")?;
    let (name, _) = rest.split_once('`')?;
    (found.code == "E0425").then_some(name)
}

impl Loss {
    /// Where it went, in a few words, and what to do, best first.
    fn told(&self, name: &str) -> (String, Vec<String>) {
        let cell = self.cell;
        let what = match self.how {
            How::ProcessEnded => format!("it was lost when the process ended in cell {cell}"),
            How::Interrupted => {
                format!("it was lost when cell {cell} was interrupted and did not listen")
            }
            How::MovedAndFailed => format!("cell {cell} had moved it when it failed"),
            How::Moved => format!("cell {cell} moved it"),
            How::TypeRedefined => format!("it was lost when cell {cell} defined its type anew"),
            How::NotMade => format!("cell {cell}, which binds it, failed before it was kept"),
            How::Returned => format!("cell {cell} returned before the line that binds it"),
        };
        let mut ways = Vec::new();
        match (self.how, self.made_in) {
            (How::NotMade, _) => ways.push(format!("correct cell {cell} and run it again")),
            (How::Returned, _) => ways.push(format!("bind it before the `return` of cell {cell}")),
            (_, Some(made)) if made != cell => ways.push(format!("run cell {made} again")),
            _ => ways.push("run the cell again that made it".to_owned()),
        }
        if matches!(self.how, How::Moved | How::MovedAndFailed) {
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

    fn check(gone: &Gone, name: &str, expected: &str) {
        let message = format!("cannot find value `{name}` in this scope");
        let found = gone.explain(Diagnostic::new("E0425", Severity::Error, message.clone()));
        let told = found.message.strip_prefix(&message).expect("stays");
        assert_eq!(told, expected);
    }

    #[test]
    fn a_name_that_is_gone_is_told_where_and_how_it_comes_back() {
        let mut gone = Gone::default();
        gone.note("a", How::ProcessEnded, 5, Some(3));
        gone.note("b", How::Moved, 4, Some(2));
        gone.note("c", How::NotMade, 6, None);
        gone.note("d", How::ProcessEnded, 6, None);
        check(
            &gone,
            "a",
            ": it was lost when the process ended in cell 5; run cell 3 again",
        );
        check(&gone, "b", ": cell 4 moved it; run cell 2 again");
        check(
            &gone,
            "c",
            ": cell 6, which binds it, failed before it was kept; correct cell 6 and run it again",
        );
        check(
            &gone,
            "d",
            ": it was lost when the process ended in cell 6; run the cell again that made it",
        );
        check(&gone, "e", "");
        gone.retain(|name| name != "a");
        check(&gone, "a", "");
        let other = Diagnostic::new(
            "E0423",
            Severity::Error,
            "cannot find value `b` in this scope",
        );
        assert_eq!(gone.explain(other.clone()), other);
    }
}

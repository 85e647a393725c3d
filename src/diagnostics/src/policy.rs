//! What is done with a warning or a note: shown, silenced by its code, or made an error.
//!
//! A warning is shown in every cell in which its condition holds, once for each place: a loop does not
//! repeat it. A note, and a warning whose rule says so ([`Rule::ONCE`](crate::Rule::ONCE)), is shown once a
//! session.
//!
//! The policy is a value that gets what was found and answers what to do. The kernel holds one for a
//! notebook (`%warnings`), the training crate one for the process it runs in.

use std::collections::{BTreeMap, BTreeSet};

use crate::rules::explain;
use crate::{Diagnostic, Place, Severity};

/// What was decided about a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Its warnings are not shown.
    Silenced,
    /// Its warnings are errors.
    Denied,
}

/// What to do with a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Show it.
    Show,
    /// It was shown before, word for word, in this cell or in the session.
    Repeated,
    /// Its code is silenced.
    Silenced,
    /// Its code is denied: it is an error.
    Denied,
}

/// Code and message.
type Key = (String, String);

/// Decisions by code, and what was found so far.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    levels: BTreeMap<String, Level>,
    /// How often each was found.
    found: BTreeMap<Key, usize>,
    /// What is shown once more, although it was shown.
    forgotten: BTreeSet<Key>,
    /// What the present cell has shown, and where: the place and the line of the statement.
    in_this_cell: Vec<(Key, Option<Place>, Option<usize>)>,
}

/// Whether what has this code is shown once a session.
fn once(found: &Diagnostic) -> bool {
    // What rustc warns of has no page: it is about the text, which is known by then.
    explain(&found.code).is_none_or(|entry| entry.once)
}

impl Policy {
    /// A cell begins, or a call of a plain program: what was found before may be shown again.
    pub fn begin(&mut self) {
        self.in_this_cell.clear();
    }

    /// What to do with a diagnostic that was just found, by the statement at `line` of a cell. An error is
    /// always shown.
    pub fn judge(&mut self, found: &Diagnostic, line: Option<usize>) -> Verdict {
        if found.severity == Severity::Error {
            return Verdict::Show;
        }
        let key = (found.code.clone(), found.message.clone());
        let times = self.found.entry(key.clone()).or_insert(0);
        *times += 1;
        let was_found = *times > 1;
        let was_forgotten = self.forgotten.remove(&key);
        let place = found.labels.first().map(|label| label.place.clone());
        let shown = (key, place, line);
        let in_this_cell = self.in_this_cell.contains(&shown);
        let shown_before = !was_forgotten && (in_this_cell || was_found && once(found));
        if !in_this_cell {
            self.in_this_cell.push(shown);
        }
        match self.levels.get(&found.code) {
            Some(Level::Silenced) => Verdict::Silenced,
            Some(Level::Denied) => Verdict::Denied,
            None if shown_before => Verdict::Repeated,
            None => Verdict::Show,
        }
    }

    /// Decides about a code; `None` takes the decision back, and what it has shown is shown again.
    pub fn set(&mut self, code: &str, level: Option<Level>) {
        let code = canonical(code);
        match level {
            Some(level) => {
                self.levels.insert(code, level);
            }
            None => {
                self.levels.remove(&code);
                self.forget(|known| known == code);
            }
        }
    }

    /// Shows everything once more.
    pub fn again(&mut self) {
        self.forget(|_| true);
    }

    fn forget(&mut self, of: impl Fn(&str) -> bool) {
        let keys = self.found.keys().filter(|(code, _)| of(code));
        self.forgotten.extend(keys.cloned());
    }

    /// What was decided about a code.
    pub fn level(&self, code: &str) -> Option<Level> {
        self.levels.get(&canonical(code)).copied()
    }

    /// The codes of a level, sorted.
    pub fn codes(&self, level: Level) -> Vec<String> {
        let decided = self.levels.iter().filter(|(_, it)| **it == level);
        decided.map(|(code, _)| code.clone()).collect()
    }

    /// Every code that was decided about or was found: how often, and its last message.
    pub fn summary(&self) -> Vec<(&str, usize, Option<&str>)> {
        let mut rows: BTreeMap<&str, (usize, Option<&str>)> = BTreeMap::new();
        for code in self.levels.keys() {
            rows.entry(code).or_default();
        }
        for ((code, message), times) in &self.found {
            let row = rows.entry(code).or_default();
            *row = (row.0 + times, Some(message));
        }
        let rows = rows.into_iter();
        rows.map(|(code, (times, message))| (code, times, message))
            .collect()
    }
}

/// Ours may be typed in small letters; rustc's lints are written in them.
fn canonical(code: &str) -> String {
    let is_ours = code
        .get(..2)
        .is_some_and(|it| it.eq_ignore_ascii_case("SC"));
    match is_ours {
        true => code.to_ascii_uppercase(),
        false => code.to_owned(),
    }
}

/// The error that a denied warning becomes.
pub fn denied(mut warning: Diagnostic) -> Diagnostic {
    warning.severity = Severity::Error;
    let code = warning.code.clone();
    warning.why(format!("`{code}` is denied, so this warning is an error"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(code: &str, message: &str) -> Diagnostic {
        Diagnostic::new(code, Severity::Warning, message)
    }

    #[test]
    fn our_codes_may_be_small_and_lints_are() {
        let mut policy = Policy::default();
        for (typed, found) in [
            ("sc0410", "SC0410"),
            ("unused_variables", "unused_variables"),
        ] {
            policy.set(typed, Some(Level::Silenced));
            assert_eq!(policy.judge(&warning(found, "x"), None), Verdict::Silenced);
        }
    }

    #[test]
    fn a_note_is_shown_once_a_session_and_again_when_asked() {
        let mut policy = Policy::default();
        let check = |policy: &mut Policy, message: &str, expected| {
            policy.begin();
            let verdict = policy.judge(&warning("SC0410", message), None);
            assert_eq!(verdict, expected, "{message}");
        };
        check(&mut policy, "34 of 128", Verdict::Show);
        check(&mut policy, "34 of 128", Verdict::Repeated);
        check(&mut policy, "12 of 128", Verdict::Show);
        policy.again();
        check(&mut policy, "34 of 128", Verdict::Show);
        check(&mut policy, "34 of 128", Verdict::Repeated);
        policy.set("SC0410", None);
        check(&mut policy, "12 of 128", Verdict::Show);
        assert_eq!(policy.summary().len(), 1);
        assert_eq!(policy.summary()[0].1, 6);
    }

    #[test]
    fn a_warning_is_shown_in_every_cell_and_once_for_a_place() {
        let mut policy = Policy::default();
        let mut check = |line: usize, expected| {
            let found = warning("SC0302", "logits").label(Place::call("compile"), "here");
            assert_eq!(policy.judge(&found, Some(line)), expected, "line {line}");
            if line == 9 {
                policy.begin();
            }
        };
        check(2, Verdict::Show);
        // A loop comes by again; another call of the cell is another place.
        check(2, Verdict::Repeated);
        check(5, Verdict::Show);
        check(9, Verdict::Show);
        check(2, Verdict::Show);
    }

    #[test]
    fn a_code_is_silenced_denied_and_taken_back() {
        let mut policy = Policy::default();
        let found = warning("SC0701", "41 texts in both");
        policy.set("sc0701", Some(Level::Silenced));
        assert_eq!(policy.judge(&found, None), Verdict::Silenced);
        policy.set("SC0701", Some(Level::Denied));
        assert_eq!(policy.judge(&found, None), Verdict::Denied);
        assert_eq!(
            policy.judge(&found, None),
            Verdict::Denied,
            "an error repeats"
        );
        assert_eq!(policy.codes(Level::Denied), ["SC0701"]);
        policy.set("SC0701", None);
        assert_eq!(policy.judge(&found, None), Verdict::Show);
        assert_eq!(denied(found).severity, Severity::Error);
    }

    #[test]
    fn errors_are_no_business_of_the_policy() {
        let mut policy = Policy::default();
        policy.set("SC0201", Some(Level::Silenced));
        let error = Diagnostic::new("SC0201", Severity::Error, "outside");
        assert_eq!(policy.judge(&error, None), Verdict::Show);
        assert_eq!(policy.judge(&error, None), Verdict::Show);
    }
}

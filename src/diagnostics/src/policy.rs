//! What is done with a warning or a note: shown once, silenced by its code, or made an error.
//!
//! A value that is told what was found and answers what to do. The kernel holds one for a notebook
//! (`%warnings`), the training crate one for the process it runs in.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Diagnostic, Severity};

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
    /// It was shown before, word for word.
    Repeated,
    /// Its code is silenced.
    Silenced,
    /// Its code is denied: it is an error.
    Denied,
}

/// Decisions by code, and what was told so far.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    levels: BTreeMap<String, Level>,
    /// Code and message → how often it was found.
    told: BTreeMap<(String, String), usize>,
    /// What is shown once more, although it was told.
    forgotten: BTreeSet<(String, String)>,
}

impl Policy {
    /// What to do with a diagnostic that was just found. An error is always shown.
    pub fn judge(&mut self, found: &Diagnostic) -> Verdict {
        if found.severity == Severity::Error {
            return Verdict::Show;
        }
        let key = (found.code.clone(), found.message.clone());
        let times = self.told.entry(key.clone()).or_insert(0);
        *times += 1;
        let shown_before = *times > 1 && !self.forgotten.remove(&key);
        match self.levels.get(&found.code) {
            Some(Level::Silenced) => Verdict::Silenced,
            Some(Level::Denied) => Verdict::Denied,
            None if shown_before => Verdict::Repeated,
            None => Verdict::Show,
        }
    }

    /// Decides about a code; `None` takes the decision back, and what it has told is shown again.
    pub fn set(&mut self, code: &str, level: Option<Level>) {
        let code = canonical(code);
        match level {
            Some(level) => {
                self.levels.insert(code, level);
            }
            None => {
                self.levels.remove(&code);
                self.forget(|told| told == code);
            }
        }
    }

    /// Shows everything once more.
    pub fn again(&mut self) {
        self.forget(|_| true);
    }

    fn forget(&mut self, of: impl Fn(&str) -> bool) {
        let keys = self.told.keys().filter(|(code, _)| of(code));
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

    /// Every code that was decided about or has been told: how often, and its last message.
    pub fn summary(&self) -> Vec<(&str, usize, Option<&str>)> {
        let mut rows: BTreeMap<&str, (usize, Option<&str>)> = BTreeMap::new();
        for code in self.levels.keys() {
            rows.entry(code).or_default();
        }
        for ((code, message), times) in &self.told {
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
    warning.why(format!(
        "`{code}` is denied: it stops here instead of going on with a warning"
    ))
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
            assert_eq!(policy.judge(&warning(found, "x")), Verdict::Silenced);
        }
    }

    #[test]
    fn a_warning_is_shown_once_and_again_when_asked() {
        let mut policy = Policy::default();
        let check = |policy: &mut Policy, message: &str, expected| {
            let verdict = policy.judge(&warning("SC0410", message));
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
    fn a_code_is_silenced_denied_and_taken_back() {
        let mut policy = Policy::default();
        let found = warning("SC0701", "41 texts in both");
        policy.set("sc0701", Some(Level::Silenced));
        assert_eq!(policy.judge(&found), Verdict::Silenced);
        policy.set("SC0701", Some(Level::Denied));
        assert_eq!(policy.judge(&found), Verdict::Denied);
        assert_eq!(policy.judge(&found), Verdict::Denied, "an error repeats");
        assert_eq!(policy.codes(Level::Denied), ["SC0701"]);
        policy.set("SC0701", None);
        assert_eq!(policy.judge(&found), Verdict::Show);
        assert_eq!(denied(found).severity, Severity::Error);
    }

    #[test]
    fn errors_are_no_business_of_the_policy() {
        let mut policy = Policy::default();
        policy.set("SC0201", Some(Level::Silenced));
        let error = Diagnostic::new("SC0201", Severity::Error, "outside");
        assert_eq!(policy.judge(&error), Verdict::Show);
        assert_eq!(policy.judge(&error), Verdict::Show);
    }
}

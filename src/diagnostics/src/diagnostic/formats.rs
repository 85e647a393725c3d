//! A diagnostic as text, for `{}` and `{:?}`.

use std::fmt;

use super::{Diagnostic, Severity};
use crate::{raise, unhandled};

impl fmt::Display for Diagnostic {
    /// `SC0102: message`, one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.watch.looked_at();
        write!(f, "{}: {}", self.code, self.one_line())
    }
}

impl fmt::Debug for Diagnostic {
    /// In a notebook and in a panic one line, as [`Display`](fmt::Display): there the card says the rest. A panic is
    /// formatted by an `.unwrap()` or `.expect()`, and has this diagnostic for its cause. All fields elsewhere.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let panics = std::thread::panicking();
        if panics && self.severity == Severity::Error {
            raise::note(self);
        }
        if panics || unhandled::is_in_notebook() {
            return fmt::Display::fmt(self, f);
        }
        self.watch.looked_at();
        f.debug_struct("Diagnostic")
            .field("code", &self.code)
            .field("severity", &self.severity)
            .field("message", &self.message)
            .field("labels", &self.labels)
            .field("why", &self.why)
            .field("evidence", &self.evidence)
            .field("arguments", &self.arguments)
            .field("fixes", &self.fixes)
            .field("tensorflow", &self.tensorflow)
            .field("answers", &self.answers)
            .field("profile", &self.profile)
            .field("figure", &self.figure)
            .field("related", &self.related)
            .finish()
    }
}

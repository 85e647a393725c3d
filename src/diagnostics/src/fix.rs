//! Fixes: what to do about a diagnostic, in words and as edits of the cell.

use serde::{Deserialize, Serialize};

use crate::Place;

/// A replacement of part of the cell's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// What is replaced; empty ranges insert.
    pub place: Place,
    /// What stands there afterwards.
    pub replacement: String,
}

/// What a fix is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FixKind {
    /// A change of the cell, or advice in words.
    #[default]
    Change,
    /// A similar name in place of the one that was written: "did you mean …?". The first one is a part of the error's
    /// one-line form; of several, the changed lines are shown for the first only.
    Suggestion,
}

impl FixKind {
    fn is_change(&self) -> bool {
        *self == Self::Change
    }
}

/// A fix, best first in [`Diagnostic::fixes`](crate::Diagnostic::fixes).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fix {
    /// What it is; not written to JSON for [`FixKind::Change`].
    #[serde(default, skip_serializing_if = "FixKind::is_change")]
    pub kind: FixKind,
    /// What to do, in a few words: ``did you mean `metrics`?``.
    pub title: String,
    /// The same as edits, where it can be said as edits.
    pub edits: Vec<Edit>,
}

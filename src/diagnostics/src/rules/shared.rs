//! What several rules tell in the same words.

use crate::{Diagnostic, Place};
use stratoscope_render::text;

/// An argument whose name the call does not know: the facts of SC0101, SC0114 and SC0115 alike.
pub(super) struct Unknown<'a> {
    /// Name of the call without `!`.
    pub call: &'a str,
    /// The name as typed.
    pub given: &'a str,
    /// Where the name stands.
    pub place: &'a Place,
    /// What goes when the argument goes.
    pub drop: &'a Place,
    /// Known names that look like it, best first.
    pub similar: &'a [String],
    /// What the name means elsewhere, a sentence, where that is known.
    pub hint: Option<&'a str>,
    /// What the call accepts.
    pub known: Vec<&'static str>,
}

/// Adds label, reason and fixes to `diagnostic`.
pub(super) fn unknown_argument(diagnostic: Diagnostic, facts: Unknown<'_>) -> Diagnostic {
    let mut told = diagnostic.label(facts.place.clone(), "unknown argument");
    told = match facts.hint {
        Some(hint) => told.why(hint),
        None => told.why(
            "an argument that is not in the table is never ignored: its default would stay in \
             force unseen",
        ),
    };
    if facts.similar.is_empty() && facts.hint.is_none() {
        let known = text::names(&facts.known, 20);
        told = told.why(format!("`{}!` accepts {known}", facts.call));
    }
    for name in facts.similar.iter().take(3) {
        told = told.fix_edit(
            format!("did you mean `{name}`?"),
            facts.place.clone(),
            name.clone(),
        );
    }
    if facts.similar.is_empty() {
        told = told.fix_edit(format!("drop `{}`", facts.given), facts.drop.clone(), "");
    }
    told
}

//! What is said of the errors of a cell that does not compile, and what is left out.

use stratoscope_diagnostics::{CellSpan, Diagnostic, Label, Place};

/// What is said of an error of rustc's.
pub(super) enum Said {
    /// In our words, on a card.
    Card(Diagnostic),
    /// In rustc's words.
    Text(Diagnostic),
}

impl Said {
    /// In rustc's words: on a card, where a fix has edits that a button can apply.
    pub fn of(found: Diagnostic) -> Self {
        if found.has_edits() {
            Self::Card(found)
        } else {
            Self::Text(found)
        }
    }

    pub fn diagnostic(&self) -> &Diagnostic {
        match self {
            Self::Card(found) | Self::Text(found) => found,
        }
    }
}

/// Drops what only follows from another mistake: the named arguments of a method that is not there, what rustc says of the values
/// in a call that a fix writes again or of what stands behind it, and the value of a function that is to return a `Result`.
pub(super) fn without_consequences(mut said: Vec<Said>) -> Vec<Said> {
    let span_of = |found: &Diagnostic| match found.labels.first()?.place {
        Place::Span(span) => Some(span),
        _ => None,
    };
    let spans_of = |code: &str| -> Vec<CellSpan> {
        let found = said.iter().map(Said::diagnostic);
        found
            .filter(|it| it.code == code)
            .filter_map(span_of)
            .collect()
    };
    let (unknown, is_to_return) = (spans_of("SC0130"), !spans_of("SC1014").is_empty());
    let rewritten: Vec<CellSpan> = said.iter().flat_map(rewritten).collect();
    said.retain(|it| {
        let found = it.diagnostic();
        let is_inside = |span: CellSpan| {
            let mut around = unknown.iter();
            around.any(|it| it.start <= span.start && span.end <= it.end)
        };
        let is_named = found.code == "SC0125" && span_of(found).is_some_and(is_inside);
        let follows = |span: CellSpan| {
            let mut around = rewritten.iter();
            around.any(|it| it.start <= span.start && span.start <= it.end)
        };
        let is_of_rustc = !found.code.starts_with("SC") && span_of(found).is_some_and(follows);
        // What a fix writes again has no fix of its own.
        let is_part = self::rewritten(it).first().is_some_and(|part| {
            let is_around = |it: &CellSpan| it.start <= part.start && part.end <= it.end;
            rewritten.iter().any(|it| it != part && is_around(it))
        });
        let is_unit = |it: &Label| it.text.starts_with("expected `()`");
        let is_returned = found.code == "E0308" && found.labels.iter().any(is_unit);
        !(is_named || is_of_rustc || is_part || is_to_return && is_returned)
    });
    said
}

/// The parts of the cell that the first fix of a card of ours writes again.
fn rewritten(said: &Said) -> Vec<CellSpan> {
    let found = said.diagnostic();
    let is_ours = matches!(found.code.as_str(), "SC0125" | "SC0126" | "SC0130");
    let edits = found.fixes.first().map_or(&[][..], |fix| &fix.edits);
    let spans = edits.iter().filter_map(|edit| match edit.place {
        Place::Span(span) if is_ours && span.start < span.end => Some(span),
        _ => None,
    });
    spans.collect()
}

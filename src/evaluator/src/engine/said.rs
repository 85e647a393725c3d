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
/// in a call that a fix writes again or of what stands behind it, the value of a function that is to return a `Result`, and what
/// rustc says of a variable whose `let` a fix changes.
pub(super) fn without_consequences(mut said: Vec<Said>, cell: &str) -> Vec<Said> {
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
    let changed: Vec<(String, usize)> = said
        .iter()
        .filter_map(|it| variable_of(it.diagnostic(), cell))
        .collect();
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
        // What has a fix of its own is no mere consequence.
        let is_of_a_variable = matches!(it, Said::Text(_))
            && !found.code.starts_with("SC")
            && span_of(found).is_some_and(|span| {
                let mut changed = changed.iter();
                changed.any(|(name, end)| *end <= span.start && is_about(cell, span, name))
            });
        !(is_named || is_of_rustc || is_part || is_of_a_variable || is_to_return && is_returned)
    });
    said
}

/// The variable that the first fix changes the value of, and where its statement ends.
fn variable_of(found: &Diagnostic, cell: &str) -> Option<(String, usize)> {
    let edits = &found.fixes.first()?.edits;
    let Place::Span(edit) = edits.first()?.place else {
        return None;
    };
    let before = cell.get(..edit.start)?;
    let start = before.rfind(['\n', ';', '{']).map_or(0, |at| at + 1);
    let bound = before[start..].trim_start().strip_prefix("let ")?;
    let bound = bound.trim_start();
    let bound = bound.strip_prefix("mut ").unwrap_or(bound).trim_start();
    let is_part = |it: char| it.is_alphanumeric() || it == '_';
    let end = bound.find(|it| !is_part(it))?;
    let is_a_value = bound.contains('=');
    let behind = cell.get(edit.end..)?;
    let end_of_statement = edit.end + behind.find(';')?;
    (end > 0 && is_a_value).then(|| (bound[..end].to_owned(), end_of_statement))
}

/// Whether a place is a use of a variable, or a method, a field or an index of it.
fn is_about(cell: &str, span: CellSpan, name: &str) -> bool {
    let is_part = |it: char| it.is_alphanumeric() || it == '_';
    let before = cell.get(..span.start).unwrap_or_default();
    let given = cell.get(span.start..span.end).unwrap_or_default();
    let is_whole = |before: &str| !before.ends_with(is_part) && !before.ends_with('.');
    let of_it = before
        .strip_suffix('.')
        .and_then(|it| it.strip_suffix(name));
    let rest = given.trim_start_matches('&').strip_prefix(name);
    of_it.is_some_and(is_whole)
        || is_whole(before) && rest.is_some_and(|it| it.is_empty() || it.starts_with(['[', '.']))
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

#[cfg(test)]
mod tests {
    use super::*;
    use stratoscope_diagnostics::{Edit, Fix, FixKind, Severity};

    fn found(cell: &str, code: &str, at: &str, has_edit: bool) -> Diagnostic {
        let start = cell.find(at).expect("stands in the cell");
        let place = Place::span(start, start + at.len());
        let mut found = Diagnostic::new(code, Severity::Error, at).label(place.clone(), "");
        if has_edit {
            found.fixes.push(Fix {
                kind: FixKind::Change,
                title: String::new(),
                edits: vec![Edit {
                    place,
                    replacement: "x".to_owned(),
                }],
            });
        }
        found
    }

    #[test]
    fn what_follows_from_the_value_of_a_variable_is_left_out() {
        let cell =
            "let small = train[..16];\nprintln!(\"{}\", small.len());\nlet n: u8 = other.size();";
        let said = vec![
            Said::Card(found(cell, "SC0130", "train[..16]", true)),
            Said::Text(found(cell, "E0599", "len", false)),
            Said::Text(found(cell, "E0599", "size", false)),
        ];
        let rest = without_consequences(said, cell);
        let codes: Vec<&str> = rest
            .iter()
            .map(|it| it.diagnostic().message.as_str())
            .collect();
        assert_eq!(codes, ["train[..16]", "size"]);
        // Two errors that the same value causes stay.
        let cell = "let mut best = 0;\nif score > best { best = score; }";
        let mut first = found(cell, "E0308", "best {", true);
        first.fixes[0].edits[0].place = Place::span(15, 16);
        let rest = without_consequences(vec![Said::Card(first)], cell);
        assert_eq!(rest.len(), 1);
    }
}

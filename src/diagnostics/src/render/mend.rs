//! A fix applied: the whole text for whoever replaces it, the changed lines for the eye.

use super::place::lines;
use crate::{CellSpan, Fix, Place};

/// The text after a fix. `None` if the fix is in words only, or its edits overlap or lie outside.
pub fn apply(text: &str, fix: &Fix) -> Option<String> {
    let mut mended = text.to_owned();
    for (span, replacement) in sorted(fix)?.into_iter().rev() {
        text.get(span.start..span.end)?;
        mended.replace_range(span.start..span.end, replacement);
    }
    Some(mended)
}

fn sorted(fix: &Fix) -> Option<Vec<(CellSpan, &str)>> {
    let mut edits = Vec::new();
    for edit in &fix.edits {
        let Place::Span(span) = edit.place else {
            return None;
        };
        edits.push((span, edit.replacement.as_str()));
    }
    edits.sort_by_key(|(span, _)| (span.start, span.end));
    let apart = edits
        .windows(2)
        .all(|pair| pair[0].0.end <= pair[1].0.start);
    (apart && !edits.is_empty()).then_some(edits)
}

/// The lines that a fix changes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mended {
    /// Lines that go: their numbers, their text.
    pub removed: Vec<(usize, String)>,
    /// Lines that come in their place.
    pub added: Vec<(usize, String)>,
}

/// What a fix changes, as lines before and after.
pub(super) fn mended(text: &str, fix: &Fix) -> Option<Mended> {
    /// A change of more lines is not shown.
    const MOST: usize = 8;
    let after = apply(text, fix)?;
    let (old, new) = (lines(text), lines(&after));
    let head = old
        .iter()
        .zip(&new)
        .take_while(|(old, new)| old.text == new.text)
        .count();
    let most = old.len().min(new.len()) - head;
    let tail = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take(most)
        .take_while(|(old, new)| old.text == new.text)
        .count();
    let part = |lines: &[super::place::Line<'_>]| -> Vec<(usize, String)> {
        lines[head..lines.len() - tail]
            .iter()
            .map(|line| (line.number, line.text.to_owned()))
            .collect()
    };
    let mended = Mended {
        removed: part(&old),
        added: part(&new),
    };
    (mended.removed.len() + mended.added.len() <= MOST).then_some(mended)
}

/// Whether the changed lines of a fix are worth their room: the first of several names, and whatever is
/// no mere name.
pub(super) fn shows_lines(fixes: &[Fix], index: usize) -> bool {
    index == 0 || !fixes[index].title.starts_with("did you mean")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Edit;

    fn fix(edits: &[(usize, usize, &str)]) -> Fix {
        let edits = edits
            .iter()
            .map(|&(start, end, replacement)| Edit {
                place: Place::span(start, end),
                replacement: replacement.to_owned(),
            })
            .collect();
        Fix {
            title: "x".into(),
            edits,
        }
    }

    #[test]
    fn edits_apply_from_the_end_and_never_overlap() {
        assert_eq!(
            apply("ä b c", &fix(&[(3, 4, "B"), (0, 2, "A")])).as_deref(),
            Some("A B c")
        );
        assert_eq!(apply("abc", &fix(&[(0, 2, ""), (1, 3, "")])), None);
        assert_eq!(apply("ä", &fix(&[(0, 1, "")])), None, "inside a character");
        assert_eq!(apply("a", &fix(&[(0, 9, "")])), None);
        assert_eq!(apply("a", &fix(&[])), None);
    }

    #[test]
    fn only_changed_lines_are_shown() {
        let shown = mended("a\nb\nc", &fix(&[(2, 3, "x")]));
        let expected = Mended {
            removed: vec![(2, "b".into())],
            added: vec![(2, "x".into())],
        };
        assert_eq!(shown, Some(expected));
        let shown = mended("a\nb\nc", &fix(&[(2, 4, "")]));
        assert_eq!(
            shown,
            Some(Mended {
                removed: vec![(2, "b".into())],
                added: vec![]
            })
        );
    }
}

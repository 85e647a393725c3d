//! A fix applied to the text of a cell: the new text, and the lines that change.

use std::ops::Range;

use super::place::{Line, lines};
use crate::{CellSpan, Fix, FixKind, Place};

/// The text after a fix. `None` if the fix is in words only, or its edits overlap or lie outside.
pub fn apply(text: &str, fix: &Fix) -> Option<String> {
    let mut fixed = text.to_owned();
    for (span, replacement) in sorted(fix)?.into_iter().rev() {
        text.get(span.start..span.end)?;
        fixed.replace_range(span.start..span.end, replacement);
    }
    Some(fixed)
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
    let are_disjoint = edits
        .windows(2)
        .all(|pair| pair[0].0.end <= pair[1].0.start);
    (are_disjoint && !edits.is_empty()).then_some(edits)
}

/// Whole lines that a fix replaces. Other lines may change before it is applied.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LineChange<'a> {
    /// Where they begin, in bytes.
    pub start: usize,
    /// Their text. Empty where lines are only added.
    pub before: &'a str,
    /// What stands there after the fix.
    pub after: String,
}

/// The lines that a fix replaces: from the first one that changes to the last one.
pub(super) fn line_change<'a>(text: &'a str, fix: &Fix) -> Option<LineChange<'a>> {
    let edits = sorted(fix)?;
    let fixed = apply(text, fix)?;
    let (first, last) = (edits.first()?.0.start, edits.last()?.0.end);
    let start = text[..first].rfind('\n').map_or(0, |at| at + 1);
    let end = text[last..].find('\n').map_or(text.len(), |at| last + at);
    let after = fixed[start..fixed.len() - (text.len() - end)].to_owned();
    Some(LineChange {
        start,
        before: &text[start..end],
        after,
    })
}

/// A removed or added line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Changed {
    pub number: usize,
    pub text: String,
    /// The bytes that change; empty if the whole line does.
    pub parts: Vec<Range<usize>>,
}

/// The lines that a fix changes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ChangedLines {
    /// Removed lines.
    pub removed: Vec<Changed>,
    /// Added lines.
    pub added: Vec<Changed>,
}

/// What a fix changes, as lines before and after.
pub(super) fn changed_lines(text: &str, fix: &Fix) -> Option<ChangedLines> {
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
    let (mut removed, mut added, mut shift) = (Vec::new(), Vec::new(), 0_isize);
    for (span, replacement) in sorted(fix)? {
        let start = span.start.saturating_add_signed(shift);
        removed.push(span.start..span.end);
        added.push(start..start + replacement.len());
        shift += replacement.len() as isize - (span.end - span.start) as isize;
    }
    let part = |lines: &[Line<'_>], edits: &[Range<usize>]| -> Vec<Changed> {
        let lines = lines[head..lines.len() - tail].iter();
        lines.map(|line| changed(line, edits)).collect()
    };
    let fixed = ChangedLines {
        removed: part(&old, &removed),
        added: part(&new, &added),
    };
    (fixed.removed.len() + fixed.added.len() <= MOST).then_some(fixed)
}

fn changed(line: &Line<'_>, edits: &[Range<usize>]) -> Changed {
    let inside = |edit: &Range<usize>| {
        let start = edit.start.max(line.start) - line.start;
        let end = edit.end.min(line.start + line.text.len());
        start..end.saturating_sub(line.start)
    };
    let parts = edits
        .iter()
        .map(inside)
        .filter(|part| part.start < part.end && !line.text[part.clone()].trim().is_empty())
        .filter(|part| line.text[part.clone()].trim() != line.text.trim())
        .collect();
    Changed {
        number: line.number,
        text: line.text.to_owned(),
        parts,
    }
}

/// Whether the changed lines of a fix are shown: not for the second and later suggestions of a name.
pub(super) fn shows_lines(fixes: &[Fix], index: usize) -> bool {
    index == 0 || fixes[index].kind != FixKind::Suggestion
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
            kind: FixKind::Change,
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
    fn a_change_has_whole_lines() {
        for (text, edits, expected) in [
            ("a\nb c\nd", vec![(4, 5, "x")], (2, "b c", "b x")),
            (
                "a\nb\nc\nd",
                vec![(4, 5, "y"), (2, 3, "x")],
                (2, "b\nc", "x\ny"),
            ),
            (
                "ä b",
                vec![(0, 2, "a"), (3, 4, "c\nd")],
                (0, "ä b", "a c\nd"),
            ),
            (
                "a\nb",
                vec![(0, 0, "%%scope s\n")],
                (0, "a", "%%scope s\na"),
            ),
            ("a\n", vec![(2, 2, "b")], (2, "", "b")),
            ("a\nb\n", vec![(2, 4, "")], (2, "b\n", "")),
        ] {
            let fix = fix(&edits);
            let found = line_change(text, &fix).expect("edits");
            assert_eq!((found.start, found.before, found.after.as_str()), expected);
            let mut fixed = text.to_owned();
            fixed.replace_range(found.start..found.start + found.before.len(), &found.after);
            assert_eq!(Some(fixed), apply(text, &fix));
        }
    }

    /// Each line as `number sign text`, with bars around the parts that change.
    fn check(text: &str, fix: &Fix, expected: &[&str]) {
        let fixed = changed_lines(text, fix).expect("a change of a few lines");
        let show = |sign: char, line: &Changed| {
            let mut text = line.text.clone();
            for part in line.parts.iter().rev() {
                text.insert(part.end, '|');
                text.insert(part.start, '|');
            }
            format!("{} {sign} {text}", line.number)
        };
        let removed = fixed.removed.iter().map(|line| show('-', line));
        let added = fixed.added.iter().map(|line| show('+', line));
        let found: Vec<String> = removed.chain(added).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn only_changed_lines_are_shown_and_in_them_what_changes() {
        check("a\nb\nc", &fix(&[(2, 3, "x")]), &["2 - b", "2 + x"]);
        check("a\nb\nc", &fix(&[(2, 4, "")]), &["2 - b"]);
        check(
            "f(ä), b = 2)",
            &fix(&[(5, 12, ""), (4, 4, "x")]),
            &["1 - f(ä)|, b = 2|)", "1 + f(ä|x|))"],
        );
        check(
            "a b\nc",
            &fix(&[(2, 3, "x\ny")]),
            &["1 - a |b|", "1 + a |x|", "2 + y"],
        );
    }
}

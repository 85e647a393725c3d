//! Where in the cell: lines, columns, and the labels that touch a line.

use std::ops::Range;

use crate::{CellSpan, Diagnostic, Place};

/// A line of the cell, without its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    /// Counted from 1.
    pub number: usize,
    /// Its first byte.
    pub start: usize,
    pub text: &'a str,
}

/// A label on one line. A label over several lines has one on each.
#[derive(Clone, Debug)]
pub(super) struct Mark<'a> {
    /// The line's number.
    pub line: usize,
    /// Bytes of the line's text.
    pub bytes: Range<usize>,
    /// What is said; empty on all lines of a label but its first.
    pub text: &'a str,
    /// Whether it is the diagnostic's first label.
    pub primary: bool,
}

/// The lines of a text; at least one.
pub(super) fn lines(text: &str) -> Vec<Line<'_>> {
    let mut start = 0;
    let mut lines = Vec::new();
    for (index, line) in text.split('\n').enumerate() {
        lines.push(Line {
            number: index + 1,
            start,
            text: line.strip_suffix('\r').unwrap_or(line),
        });
        start += line.len() + 1;
    }
    lines
}

/// Line and column of a byte, both from 1; the column in characters, as Jupyter counts.
pub(super) fn position(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (
        before.matches('\n').count() + 1,
        before[line_start..].chars().count() + 1,
    )
}

/// The labels by lines, in the order of the text.
pub(super) fn marks<'a>(diagnostic: &'a Diagnostic, lines: &[Line<'_>]) -> Vec<Mark<'a>> {
    /// A label over more lines is marked on these alone.
    const MOST_LINES: usize = 6;
    let mut marks = Vec::new();
    for (index, label) in diagnostic.labels.iter().enumerate() {
        let Place::Span(CellSpan { start, end }) = label.place else {
            continue;
        };
        let touched = lines.iter().filter(|line| {
            let line_end = line.start + line.text.len();
            (line.start < end && start < line_end)
                || (start == end && line.start <= start && start <= line_end)
        });
        for (nth, line) in touched.take(MOST_LINES).enumerate() {
            let from = start.saturating_sub(line.start);
            let to = (end - line.start).min(line.text.len());
            // Indentation inside a label is no part of it.
            let indent = line.text.len() - line.text.trim_start().len();
            let from = if nth == 0 { from } else { indent.min(to) };
            let text = if nth == 0 { label.text.as_str() } else { "" };
            marks.push(Mark {
                line: line.number,
                bytes: from..to,
                text,
                primary: index == 0,
            });
        }
    }
    marks.sort_by_key(|mark| (mark.line, mark.bytes.start));
    marks
}

/// Line and column of the first label in the cell.
pub(super) fn primary(diagnostic: &Diagnostic, text: &str) -> Option<(usize, usize)> {
    diagnostic
        .labels
        .iter()
        .find_map(|label| match label.place {
            Place::Span(span) => Some(position(text, span.start)),
            _ => None,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        assert_eq!(position("", 0), (1, 1));
        assert_eq!(position("größe = 1", 7), (1, 6));
        assert_eq!(position("a\nüb", 4), (2, 2));
        assert_eq!(position("a\n", 2), (2, 1));
    }
}

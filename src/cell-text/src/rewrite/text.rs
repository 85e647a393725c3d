//! The rewritten text, and the way back from it to the cell.

use std::collections::BTreeMap;
use std::ops::Range;

/// What the top-level `let`s bind.
#[derive(Default)]
pub(super) struct Bound {
    pub(super) names: Vec<String>,
    pub(super) lines: BTreeMap<String, usize>,
}

/// Bytes of the cell and what replaces them.
pub(super) struct Edit {
    pub(super) range: Range<usize>,
    pub(super) text: String,
}

/// What evcxr is given.
#[derive(Clone, Debug)]
pub struct Rewritten {
    /// The text.
    pub text: String,
    /// The names that the cell's top-level `let`s bind, in order.
    pub bindings: Vec<String>,
    /// The line on which the `let` ends that binds each of them last.
    pub binding_lines: BTreeMap<String, usize>,
    /// Whether there is anything to run: not only commands and comments.
    pub runs: bool,
    pub(super) pieces: Vec<Piece>,
    pub(super) original_length: usize,
}

/// A stretch of the cell that was copied.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) rewritten: usize,
    pub(super) original: usize,
    pub(super) length: usize,
}

impl Rewritten {
    /// The place in the cell that byte `offset` of the rewritten text stands for. What was not
    /// copied stands for the end of what was copied before it.
    pub fn original_offset(&self, offset: usize) -> usize {
        let after = self
            .pieces
            .partition_point(|piece| piece.rewritten <= offset);
        match after.checked_sub(1).map(|index| self.pieces[index]) {
            Some(piece) => piece.original + (offset - piece.rewritten).min(piece.length),
            None => self.pieces.first().map_or(0, |piece| piece.original),
        }
        .min(self.original_length)
    }

    /// As [`Self::original_offset`] for the beginning of something: what was not copied stands for the beginning of what is
    /// copied behind it.
    pub fn original_start(&self, offset: usize) -> usize {
        let end = |piece: &Piece| piece.rewritten + piece.length;
        let next = self.pieces.partition_point(|piece| end(piece) <= offset);
        match self.pieces.get(next) {
            Some(piece) if piece.rewritten > offset => piece.original,
            _ => self.original_offset(offset),
        }
    }

    /// The bytes of the cell that these of the rewritten text are a copy of; `None`: they are not, or not all
    /// of them.
    pub fn copied_from(&self, range: Range<usize>) -> Option<Range<usize>> {
        let after = self
            .pieces
            .partition_point(|piece| piece.rewritten <= range.start);
        // Where one piece ends and the next begins, an insertion stands at the beginning.
        let piece = self.pieces[after.checked_sub(1)?];
        let start = range.start - piece.rewritten;
        let end = range.end.checked_sub(piece.rewritten)?;
        (end <= piece.length).then(|| piece.original + start..piece.original + end)
    }

    /// The bytes of the cell between two places of the rewritten text, each given as a line and a
    /// column in characters, counted from 1.
    pub fn original_range(&self, start: (usize, usize), end: (usize, usize)) -> Range<usize> {
        let from = self.start_of(offset_of(&self.text, start));
        let to = self.original_offset(offset_of(&self.text, end));
        from..to.max(from)
    }

    /// As [`Self::original_offset`], but a place where one piece ends and the next begins stands
    /// for the beginning.
    pub(super) fn start_of(&self, offset: usize) -> usize {
        let next = self
            .pieces
            .partition_point(|piece| piece.rewritten < offset);
        match self.pieces.get(next) {
            Some(piece) if piece.rewritten == offset => piece.original,
            _ => self.original_offset(offset),
        }
    }
}

/// Byte offset of a line and a column in characters, counted from 1; the text's end if there is
/// no such place.
pub fn offset_of(text: &str, (line, column): (usize, usize)) -> usize {
    let mut start = 0;
    for (index, content) in text.split_inclusive('\n').enumerate() {
        if index + 1 == line {
            let within = content
                .char_indices()
                .nth(column.saturating_sub(1))
                .map_or(content.trim_end_matches('\n').len(), |(byte, _)| byte);
            return start + within;
        }
        start += content.len();
    }
    text.len()
}

/// The line of byte `offset`, counted from 1.
pub fn line_of(text: &str, offset: usize) -> usize {
    let offset = offset.min(text.len());
    1 + text.as_bytes()[..offset]
        .iter()
        .filter(|&&byte| byte == b'\n')
        .count()
}

/// Changes the cell, and remembers what was copied.
pub(super) fn apply(code: &str, mut edits: Vec<Edit>, bound: Bound, runs: bool) -> Rewritten {
    // Stable: insertions at one place keep the order in which they were made.
    edits.sort_by_key(|edit| edit.range.start);
    let mut text = String::with_capacity(code.len() + 64 * edits.len());
    let mut pieces = Vec::new();
    let mut position = 0;
    for edit in edits {
        // An edit that would undo another cannot come from nested statements; leave the text be.
        if edit.range.start < position {
            continue;
        }
        copy(code, position..edit.range.start, &mut text, &mut pieces);
        text.push_str(&edit.text);
        position = edit.range.end;
    }
    copy(code, position..code.len(), &mut text, &mut pieces);
    Rewritten {
        text,
        bindings: bound.names,
        binding_lines: bound.lines,
        runs,
        pieces,
        original_length: code.len(),
    }
}

fn copy(code: &str, range: Range<usize>, text: &mut String, pieces: &mut Vec<Piece>) {
    if range.is_empty() {
        return;
    }
    pieces.push(Piece {
        rewritten: text.len(),
        original: range.start,
        length: range.len(),
    });
    text.push_str(&code[range]);
}

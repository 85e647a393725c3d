//! Lines that are longer than a terminal is wide: cut around what is meant.

use std::ops::Range;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Stands for what was cut.
const CUT: char = '…';

/// Some columns of a line of code.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// What is shown, with `…` where something was cut.
    pub shown: String,
    /// How many columns further left than in the line a character stands, unless it was cut.
    pub shift: usize,
}

/// At most `columns` columns of a line, those of `meant` and what is around them.
pub(super) fn window(line: &str, meant: &Range<usize>, columns: usize) -> Window {
    let all = line.width();
    if all <= columns {
        return Window {
            shown: line.to_owned(),
            shift: 0,
        };
    }
    // One sign at each end.
    let room = columns.saturating_sub(2).max(1);
    let from = match meant.end < room {
        // The beginning of a line says most about it.
        true => 0,
        false => {
            let context = room.saturating_sub(meant.len()) / 2;
            meant.start.saturating_sub(context).min(all - room)
        }
    };
    let mut shown = String::new();
    let (mut column, mut first) = (0, None);
    for c in line.chars() {
        let width = c.width().unwrap_or_default();
        if column >= from && column + width <= from + room {
            first.get_or_insert(column);
            shown.push(c);
        }
        column += width;
    }
    let first = first.unwrap_or(0);
    if first > 0 {
        shown.insert(0, CUT);
    }
    if first + room < all {
        shown.push(CUT);
    }
    Window {
        shown,
        shift: first.saturating_sub(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, meant: Range<usize>, columns: usize, expected: &str, under: &str) {
        let window = window(line, &meant, columns);
        assert_eq!(window.shown, expected);
        assert!(window.shown.width() <= columns);
        let at: String = window
            .shown
            .chars()
            .skip(meant.start - window.shift)
            .take(under.chars().count())
            .collect();
        assert_eq!(at, under);
    }

    #[test]
    fn the_marked_part_is_visible() {
        check("abcdef", 1..3, 6, "abcdef", "bc");
        check("abcdefghij", 1..3, 6, "abcd…", "bc");
        check("abcdefghij", 8..9, 6, "…ghij", "i");
        check("abcdefghijklmnop", 7..9, 8, "…fghijk…", "hi");
    }

    #[test]
    fn what_is_wider_than_the_window_is_seen_from_its_beginning() {
        check("abcdefghijklmnop", 2..14, 8, "…cdefgh…", "cdefgh");
    }

    #[test]
    fn no_half_of_a_wide_character() {
        let window = window("日本語日本語x", &(12..13), 8);
        assert_eq!(window.shown, "…本語x");
        assert_eq!(window.shift, 7);
    }
}

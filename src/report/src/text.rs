//! Tables in a terminal.

use std::fmt::Write;

/// What a terminal is taken to be wide.
pub const COLUMNS: usize = 100;

/// Names above rows of numbers, all written from the right, a line each. Where that is wider than [`COLUMNS`],
/// names of two words stand on two lines.
pub fn table(columns: &[String], rows: &[Vec<String>]) -> String {
    let one_line = [columns.to_vec()];
    let widths = widths(&one_line, rows);
    if widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1) <= COLUMNS {
        return text(&one_line, rows, &widths);
    }
    let (above, below): (Vec<_>, Vec<_>) = columns
        .iter()
        .map(|name| name.split_once(' ').unwrap_or(("", name)))
        .map(|(above, below)| (above.to_owned(), below.to_owned()))
        .unzip();
    let two_lines = [above, below];
    let widths = self::widths(&two_lines, rows);
    text(&two_lines, rows, &widths)
}

fn widths(head: &[Vec<String>], rows: &[Vec<String>]) -> Vec<usize> {
    let count = head.first().map_or(0, Vec::len);
    let width = |index: usize| {
        let cells = head.iter().chain(rows).filter_map(|row| row.get(index));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    (0..count).map(width).collect()
}

fn text(head: &[Vec<String>], rows: &[Vec<String>], widths: &[usize]) -> String {
    let mut text = String::new();
    for row in head.iter().chain(rows) {
        for (index, (cell, width)) in row.iter().zip(widths).enumerate() {
            let space = if index == 0 { "" } else { "  " };
            // Writing to a string cannot fail.
            let _ = write!(text, "{space}{cell:>width$}");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(columns: &[&str], row: &[&str], expected: &str) {
        let owned = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
        let columns: Vec<String> = owned(columns);
        assert_eq!(table(&columns, &[owned(row)]), expected);
    }

    #[test]
    fn names_of_two_words_stand_on_two_lines_where_one_is_too_wide() {
        check(
            &["epoch", "val loss"],
            &["1", "0.75"],
            "epoch  val loss\n    1      0.75\n",
        );
        let long = "m".repeat(95);
        check(
            &[&long, "val loss"],
            &["1", "0.75"],
            &format!("{0:95}   val\n{long}  loss\n{1:>95}  0.75\n", "", "1"),
        );
    }
}

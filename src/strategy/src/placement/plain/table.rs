//! Columns of text.

use std::fmt::Write;

/// Of names that would make the table wider than the page, the end stays: it tells them apart.
pub(super) fn shorten(rows: &mut [Vec<String>], page: usize) {
    let others: usize = widths(rows).iter().skip(1).map(|width| width + 2).sum();
    let most = page.saturating_sub(others).max(18);
    for name in rows.iter_mut().filter_map(|row| row.first_mut()) {
        let length = name.chars().count();
        if length > most {
            let sign: String = name
                .chars()
                .take_while(|sign| matches!(sign, '✗' | '≠' | ' '))
                .collect();
            let kept = most.saturating_sub(1 + sign.chars().count());
            let end: String = name.chars().skip(length - kept).collect();
            *name = format!("{sign}…{end}");
        }
    }
}

/// Columns two spaces apart, or one where the page would not hold them; numbers to the right, the columns
/// in `left` to the left.
pub(super) fn table(out: &mut String, rows: &[Vec<String>], left: &[usize], page: usize) {
    let widths = widths(rows);
    let wide: usize = widths.iter().map(|width| width + 2).sum();
    let gap = if wide.saturating_sub(2) > page { 1 } else { 2 };
    for row in rows {
        for (column, text) in row.iter().enumerate() {
            let width = widths[column];
            let _ = if left.contains(&column) {
                write!(out, "{text:<width$}")
            } else {
                write!(out, "{text:>width$}")
            };
            let _ = write!(out, "{:gap$}", "");
        }
        out.push('\n');
    }
}

/// The width of each column: that of its longest text.
fn widths(rows: &[Vec<String>]) -> Vec<usize> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|text| text.chars().count())
            .max()
    };
    (0..columns)
        .map(|column| width(column).unwrap_or(0))
        .collect()
}

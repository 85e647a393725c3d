//! A table as plain text that is not wider than a terminal.

use unicode_width::UnicodeWidthStr;

use crate::text::wrap_hard;

/// Spaces between two columns.
const GAP: usize = 2;

/// The lines of each row, at most `columns` columns wide. A cell that does not fit is wrapped: the widest column
/// is narrowed first, and words stay whole as long as possible.
pub fn lines<const N: usize>(rows: &[[String; N]], columns: usize) -> Vec<Vec<String>> {
    let widest = |of: &dyn Fn(&str) -> usize| -> [usize; N] {
        std::array::from_fn(|column| {
            let cells = rows.iter().map(|row| of(&row[column]));
            cells.max().unwrap_or_default()
        })
    };
    let mut widths = widest(&|text| text.width());
    let words = widest(&|text| text.split(' ').map(str::width).max().unwrap_or_default());
    let room = columns.saturating_sub(GAP * N.saturating_sub(1));
    while widths.iter().sum::<usize>() > room {
        let by_width = |column: &usize| widths[*column];
        let whole = (0..N).filter(|column| widths[*column] > words[*column]);
        // If every column is as narrow as its longest word, words are broken in columns wider than 8.
        let any = (0..N).filter(|column| widths[*column] > 8);
        match whole.max_by_key(by_width).or(any.max_by_key(by_width)) {
            Some(column) => widths[column] -= 1,
            None => break,
        }
    }
    rows.iter().map(|row| self::row(row, widths)).collect()
}

fn row<const N: usize>(row: &[String; N], widths: [usize; N]) -> Vec<String> {
    let cells: Vec<Vec<String>> = row
        .iter()
        .zip(widths)
        .map(|(text, width)| wrap_hard(text, width))
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or_default();
    (0..height)
        .map(|nth| {
            let mut line = String::new();
            for (cell, width) in cells.iter().zip(widths) {
                let text = cell.get(nth).map_or("", String::as_str);
                line += text;
                line += &" ".repeat(width - text.width().min(width) + GAP);
            }
            line.trim_end().to_owned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rows: &[[&str; 3]], columns: usize, expected: &[&str]) {
        let rows: Vec<[String; 3]> = rows.iter().map(|row| row.map(str::to_owned)).collect();
        let found: Vec<String> = lines(&rows, columns).concat();
        assert_eq!(found, expected);
        assert!(found.iter().all(|line| line.width() <= columns));
    }

    #[test]
    fn the_widest_column_is_narrowed_first() {
        check(&[["a", "b", "c"]], 20, &["a  b  c"]);
        check(
            &[["name", "x", "x"], ["a", "two words of text here", "1"]],
            20,
            &[
                "name  x            x",
                "a     two words    1",
                "      of text",
                "      here",
            ],
        );
    }

    #[test]
    fn a_word_without_spaces_is_broken_after_punctuation() {
        check(
            &[["loss", "Sparse::new(from_logits)", "–"]],
            22,
            &["loss  Sparse::new(   –", "      from_logits)"],
        );
        check(
            &[["a", "abcdefghijkl", "b"]],
            14,
            &["a  abcdefgh  b", "   ijkl"],
        );
    }
}

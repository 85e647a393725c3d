//! A table of texts that is not wider than a terminal.

use unicode_width::UnicodeWidthStr;

use crate::words::wrap;

/// Between two columns.
const GAP: usize = 2;

/// The lines of each row, at most `columns` columns wide. What does not fit goes on in the row's next line; the
/// widest column gives way first, and words stay whole as long as they can.
pub(super) fn lines<const N: usize>(rows: &[[String; N]], columns: usize) -> Vec<Vec<String>> {
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
        // Else words are broken, in columns that have room for more than a short one.
        let any = (0..N).filter(|column| widths[*column] > 8);
        match whole.max_by_key(by_width).or(any.max_by_key(by_width)) {
            Some(column) => widths[column] -= 1,
            None => break,
        }
    }
    rows.iter().map(|row| one(row, widths)).collect()
}

fn one<const N: usize>(row: &[String; N], widths: [usize; N]) -> Vec<String> {
    let cells: Vec<Vec<String>> = row
        .iter()
        .zip(widths)
        .map(|(text, width)| wrapped(text, width))
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

/// Lines of at most `columns` columns, broken between words and, where one is too wide, in it.
pub(super) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let lines = wrap(text, columns).into_iter();
    lines.flat_map(|line| broken(&line, columns)).collect()
}

/// A word that is wider than its column, in pieces: after a sign where there is one.
fn broken(line: &str, columns: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = line;
    while rest.width() > columns {
        let mut end = 0;
        let mut after_sign = 0;
        for (at, c) in rest.char_indices() {
            let next = at + c.len_utf8();
            if end > 0 && rest[..next].width() > columns {
                break;
            }
            end = next;
            if !c.is_alphanumeric() && c != '_' {
                after_sign = next;
            }
        }
        let end = if after_sign > 0 { after_sign } else { end };
        pieces.push(rest[..end].trim_end().to_owned());
        rest = rest[end..].trim_start();
    }
    pieces.push(rest.to_owned());
    pieces
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
    fn the_widest_column_gives_way() {
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
    fn a_word_without_spaces_is_broken_after_a_sign() {
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

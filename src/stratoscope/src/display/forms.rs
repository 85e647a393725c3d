//! More forms of display: formulas, pictures, data, tables.

use std::fmt::Display;

use serde_json::Value;
use stratoscope_render::html::{data_table, escape};
use stratoscope_wire::MimeBundle;

use super::{IntoBundle, html_and_plain, plain, with};

/// A formula as LaTeX, without the dollar signs.
#[derive(Clone, Debug)]
pub struct Latex<T: AsRef<str>>(pub T);

/// A picture as the bytes of a PNG file.
#[derive(Clone, Debug)]
pub struct Png<T: AsRef<[u8]>>(pub T);

/// A value as JSON: front ends draw a tree that can be opened.
#[derive(Clone, Debug)]
pub struct Json(pub Value);

/// A table: titles, and rows of as many cells.
///
/// # Example
/// ```
/// # use stratoscope::display::Table;
/// let table = Table::new(["step", "loss"]).row([1.0, 0.7]).row([2.0, 0.5]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Table {
    titles: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new<T: Display>(titles: impl IntoIterator<Item = T>) -> Self {
        Self {
            titles: texts(titles),
            rows: Vec::new(),
        }
    }

    /// The table with one more row. Missing cells are empty; extra cells have no title.
    #[must_use]
    pub fn row<T: Display>(mut self, cells: impl IntoIterator<Item = T>) -> Self {
        self.push(cells);
        self
    }

    /// As [`Self::row`], for loops.
    pub fn push<T: Display>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(texts(cells));
    }
}

fn texts<T: Display>(cells: impl IntoIterator<Item = T>) -> Vec<String> {
    cells.into_iter().map(|cell| cell.to_string()).collect()
}

impl<T: AsRef<str>> IntoBundle for Latex<T> {
    fn bundle(&self) -> MimeBundle {
        let formula = self.0.as_ref();
        let mut bundle = with("text/latex", format!("$\\displaystyle {formula}$"));
        bundle.extend(plain(formula));
        bundle
    }
}

impl<T: AsRef<[u8]>> IntoBundle for Png<T> {
    fn bundle(&self) -> MimeBundle {
        let bytes = self.0.as_ref();
        let mut bundle = with("image/png", base64(bytes));
        bundle.extend(plain(format!("a picture (PNG, {} bytes)", bytes.len())));
        bundle
    }
}

impl IntoBundle for Json {
    fn bundle(&self) -> MimeBundle {
        let mut bundle = plain(format!("{:#}", self.0));
        bundle.insert("application/json".to_owned(), self.0.clone());
        bundle
    }
}

impl IntoBundle for Table {
    fn bundle(&self) -> MimeBundle {
        let columns = self.rows.iter().chain([&self.titles]).map(Vec::len).max();
        let columns = columns.unwrap_or(0);
        let cell = |row: &Vec<String>, column: usize| row.get(column).cloned().unwrap_or_default();
        let width = |column: usize| {
            let rows = self.rows.iter().chain([&self.titles]);
            rows.map(|row| cell(row, column).chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in [&self.titles].into_iter().chain(&self.rows) {
            let cells: Vec<String> = widths
                .iter()
                .enumerate()
                .map(|(column, width)| format!("{:width$}", cell(row, column)))
                .collect();
            text += cells.join("  ").trim_end();
            text.push('\n');
        }
        let tags = |row: &Vec<String>, tag: &str| -> String {
            let cells = (0..columns).map(|column| escape(&cell(row, column)));
            let cells: String = cells.map(|cell| format!("<{tag}>{cell}</{tag}>")).collect();
            format!("<tr>{cells}</tr>")
        };
        let body: String = self.rows.iter().map(|row| tags(row, "td")).collect();
        let html = format!(
            "{}<thead>{}</thead><tbody>{body}</tbody></table>",
            data_table(""),
            tags(&self.titles, "th")
        );
        html_and_plain(html, text.trim_end())
    }
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let value = bits >> (18 - 6 * digit) & 63;
            text.push(match digit <= chunk.len() {
                true => char::from(DIGITS[value as usize]),
                false => '=',
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_has_a_text() {
        assert_eq!(Latex("x^2").bundle()["text/plain"], "x^2");
        assert_eq!(Latex("x^2").bundle()["text/latex"], "$\\displaystyle x^2$");
        assert_eq!(
            Png(b"abcd").bundle()["text/plain"],
            "a picture (PNG, 4 bytes)"
        );
        let json = Json(serde_json::json!({"a": 1})).bundle();
        assert_eq!(json["application/json"]["a"], 1);
    }

    #[test]
    fn tables_are_aligned_and_escaped() {
        let bundle = Table::new(["a", "größe"])
            .row(["1", "<b>"])
            .row(["22"])
            .bundle();
        assert_eq!(bundle["text/plain"], "a   größe\n1   <b>\n22");
        let html = bundle["text/html"].as_str().unwrap_or_default();
        assert!(html.contains("<td>&lt;b&gt;</td>"), "{html}");
        assert!(html.contains("<tr><td>22</td><td></td></tr>"), "{html}");
    }

    #[test]
    fn bytes_become_letters() {
        for (bytes, expected) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"foobar", "Zm9vYmFy"),
            (b"\xff\xfe\xfd", "//79"),
        ] {
            assert_eq!(base64(bytes), expected);
        }
    }
}

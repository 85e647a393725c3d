//! A grid with a name for each row and column: which class is taken for which, which word attends to which.

use std::fmt::Write;

use super::elements::{CENTERED, INK, SERIES, TO_THE_LEFT, picture, text};
use crate::html::attribute;

/// Letters of a name that are shown.
const MAX_LETTERS: usize = 18;
/// Names and numbers of cells. A letter of this size is about [`LETTER`] pixels wide: the width of a text is not known here.
const SIZE: f64 = 11.0;
const LETTER: f64 = 6.6;
/// The share above which the usual ink cannot be read on a cell, and the style of a text that can.
const FILLED: f64 = 0.6;
const ON_FILLED: &str = " style=\"fill:#ffffff\"";

/// A grid of cells. Each cell is filled by its share between 0 and 1, in another color by one between −1 and 0.
pub struct Grid<'a> {
    /// The names of the rows, on the left.
    pub rows: &'a [String],
    /// The names of the columns, above.
    pub columns: &'a [String],
    /// The share of a cell, and its text: shown if `has_texts`, and read out where the cell is pointed at.
    pub cell: &'a dyn Fn(usize, usize) -> (f64, String),
    /// Whether cells are large enough for their texts.
    pub has_texts: bool,
    /// What the grid shows, to be read out.
    pub title: &'a str,
}

impl Grid<'_> {
    /// The picture.
    pub fn svg(&self) -> String {
        let side = match (self.has_texts, self.rows.len()) {
            (true, _) => 38.0,
            (false, 0..24) => 20.0,
            (false, _) => 14.0,
        };
        let (left, above) = (margin(self.rows), margin(self.columns));
        let mut body = String::new();
        for (row, name) in self.rows.iter().enumerate() {
            let y = above + row as f64 * side;
            let middle = y + side / 2.0 + 4.0;
            text(
                &mut body,
                (left - 6.0, middle),
                SIZE,
                TO_THE_LEFT,
                &shown(name),
            );
            for (column, other) in self.columns.iter().enumerate() {
                let (share, words) = (self.cell)(row, column);
                let share = if share.is_finite() { share } else { 0.0 };
                let x = left + column as f64 * side;
                // Writing to a string cannot fail.
                let _ = write!(
                    body,
                    "<rect x=\"{x:.0}\" y=\"{y:.0}\" width=\"{side}\" height=\"{side}\" fill=\"{}\" \
                     fill-opacity=\"{:.2}\" stroke=\"{INK}\" stroke-opacity=\"0.25\"><title>{}</title></rect>",
                    if share < 0.0 { SERIES[1] } else { SERIES[0] },
                    share.abs().min(1.0),
                    attribute(&format!("{name} → {other}: {words}"))
                );
                if self.has_texts {
                    let ink = if share.abs() > FILLED { ON_FILLED } else { "" };
                    let more = format!("{CENTERED}{ink}");
                    text(&mut body, (x + side / 2.0, middle), SIZE, &more, &words);
                }
            }
        }
        for (column, name) in self.columns.iter().enumerate() {
            let (x, y) = (left + (column as f64 + 0.5) * side + 4.0, above - 6.0);
            let upright = format!(" transform=\"rotate(-90 {x:.1} {y:.1})\"");
            text(&mut body, (x, y), SIZE, &upright, &shown(name));
        }
        let width = left + self.columns.len() as f64 * side + 2.0;
        let height = above + self.rows.len() as f64 * side + 2.0;
        picture((width, height), self.title, &body)
    }
}

/// Room for the longest name.
fn margin(names: &[String]) -> f64 {
    let lengths = names.iter().map(|name| name.chars().count());
    lengths.max().unwrap_or(0).min(MAX_LETTERS) as f64 * LETTER + 10.0
}

fn shown(name: &str) -> String {
    crate::text::excerpt(name, MAX_LETTERS)
}

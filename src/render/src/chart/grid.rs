//! A grid with a name for each row and column: which class is taken for which, which word attends to which.

use std::fmt::Write;

use super::elements::{CENTERED, INK, SERIES, TO_THE_LEFT, picture, text};
use crate::html::attribute;

/// Letters of a name that are shown.
const MAX_LETTERS: usize = 18;
/// Names and numbers of cells. A letter of this size is about [`LETTER`] pixels wide: the width of a text is not known here.
const SIZE: f64 = 11.0;
const LETTER: f64 = 6.6;
/// The inks of a text on a cell: that which differs more from the cell in luminance is taken.
const INKS: [&str; 2] = ["#000000", "#ffffff"];

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
        if self.has_texts {
            // The ground of the page is not known, and the ink of a text is chosen by its cell.
            let (width, height) = (
                self.columns.len() as f64 * side,
                self.rows.len() as f64 * side,
            );
            let _ = write!(
                body,
                "<path d=\"M{left:.0} {above:.0}h{width}v{height}h-{width}z\" fill=\"#ffffff\"/>"
            );
        }
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
                let color = if share < 0.0 { SERIES[1] } else { SERIES[0] };
                let strength = share.abs().min(1.0);
                // Writing to a string cannot fail.
                let _ = write!(
                    body,
                    "<rect x=\"{x:.0}\" y=\"{y:.0}\" width=\"{side}\" height=\"{side}\" fill=\"{color}\" \
                     fill-opacity=\"{strength:.2}\" stroke=\"{INK}\" stroke-opacity=\"0.25\"><title>{}</title></rect>",
                    attribute(&format!("{name} → {other}: {words}"))
                );
                if self.has_texts {
                    let ink = ink_on(&on_white(color, strength));
                    let more = format!("{CENTERED} style=\"fill:{ink}\"");
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

/// A color of this strength on white.
pub(super) fn on_white(color: &str, strength: f64) -> String {
    let part = |at: usize| (255.0 + (part(color, at) - 255.0) * strength).round() as u8;
    format!("#{:02x}{:02x}{:02x}", part(0), part(1), part(2))
}

/// The ink that is read best on a color.
pub(super) fn ink_on(color: &str) -> &'static str {
    let [dark, light] = INKS;
    if contrast(dark, color) >= contrast(light, color) {
        dark
    } else {
        light
    }
}

/// Red, green or blue of `#rrggbb`, from 0 to 255.
fn part(color: &str, at: usize) -> f64 {
    let digits = color.get(1 + 2 * at..3 + 2 * at).unwrap_or("00");
    u8::from_str_radix(digits, 16).map_or(0.0, f64::from)
}

/// The ratio of two colors as WCAG 2.1 computes it: from 1 to 21, and at least 4.5 for texts.
pub(super) fn contrast(one: &str, other: &str) -> f64 {
    let luminance = |color: &str| {
        let linear = |at: usize| match part(color, at) / 255.0 {
            low if low <= 0.03928 => low / 12.92,
            part => ((part + 0.055) / 1.055).powf(2.4),
        };
        0.2126 * linear(0) + 0.7152 * linear(1) + 0.0722 * linear(2)
    };
    let (one, other) = (luminance(one) + 0.05, luminance(other) + 0.05);
    one.max(other) / one.min(other)
}

/// Room for the longest name.
fn margin(names: &[String]) -> f64 {
    let lengths = names.iter().map(|name| name.chars().count());
    lengths.max().unwrap_or(0).min(MAX_LETTERS) as f64 * LETTER + 10.0
}

fn shown(name: &str) -> String {
    crate::text::excerpt(name, MAX_LETTERS)
}

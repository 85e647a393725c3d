//! Boxes in rows, each below the box that it is a part of, as in a flame graph.

use std::fmt::Write;

use super::elements::{INK, SERIES, picture, text};
use crate::html::attribute;

/// The height of a row, and the size of a name in it. A letter of this size is about [`LETTER`] pixels wide.
const ROW: f64 = 19.0;
const SIZE: f64 = 11.0;
const LETTER: f64 = 6.6;
/// Boxes that are narrower are not drawn.
const MIN_WIDTH: f64 = 0.8;
/// Boxes that a picture has at most.
const MAX_BOXES: usize = 2000;

/// Boxes in rows.
#[derive(Debug)]
pub struct Boxes {
    width: f64,
    title: String,
    body: String,
    rows: usize,
    drawn: usize,
}

impl Boxes {
    /// None yet. `title` is read out.
    pub fn new(width: f64, title: &str) -> Self {
        Self {
            width,
            title: title.to_owned(),
            body: String::new(),
            rows: 0,
            drawn: 0,
        }
    }

    /// A box: where it begins and how wide it is, both as shares of the picture, and its row, counted from 0. `color` is that of a series of
    /// a chart, the ink if there is none. `words` are shown where the box is pointed at. A box that is too narrow to be seen is left out.
    pub fn add(
        &mut self,
        (begin, share, row): (f64, f64, usize),
        color: Option<usize>,
        name: &str,
        words: &str,
    ) {
        let (x, width) = (begin * self.width, share * self.width);
        if !(x.is_finite() && width >= MIN_WIDTH) || self.drawn == MAX_BOXES {
            return;
        }
        self.drawn += 1;
        self.rows = self.rows.max(row + 1);
        let y = row as f64 * ROW;
        let fill = color.map_or(INK, |color| SERIES[color % SERIES.len()]);
        // Writing to a string cannot fail.
        let _ = write!(
            self.body,
            "<rect x=\"{x:.1}\" y=\"{y:.0}\" width=\"{:.1}\" height=\"{:.0}\" fill=\"{fill}\" fill-opacity=\"0.3\" \
             stroke=\"{fill}\" stroke-opacity=\"0.6\"><title>{}</title></rect>",
            (width - 1.0).max(MIN_WIDTH),
            ROW - 2.0,
            attribute(words)
        );
        let letters = ((width - 8.0) / LETTER).floor();
        if letters >= 3.0 {
            let shown = crate::text::excerpt(name, letters as usize);
            text(&mut self.body, (x + 4.0, y + 13.0), SIZE, "", &shown);
        }
    }

    /// The picture.
    pub fn svg(&self) -> String {
        let height = self.rows.max(1) as f64 * ROW;
        picture((self.width, height), &self.title, &self.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_escaped_and_narrow_ones_left_out() {
        let mut boxes = Boxes::new(100.0, "a <title>");
        boxes.add((0.0, 1.0, 0), None, "whole", "all of it");
        boxes.add((0.0, 0.5, 1), Some(1), "<half>", "\"half\" & more");
        boxes.add((0.5, 0.001, 1), Some(1), "narrow", "unseen");
        boxes.add((f64::NAN, 0.5, 1), Some(1), "nowhere", "unseen");
        let svg = boxes.svg();
        assert_eq!(svg.matches("<rect").count(), 2);
        assert!(
            svg.contains("height=\"38\"") && !svg.contains("unseen"),
            "{svg}"
        );
        assert!(
            svg.contains("&lt;half&gt;") && svg.contains("&amp; more"),
            "{svg}"
        );
        assert!(
            svg.contains(SERIES[1]) && svg.contains("a &lt;title&gt;"),
            "{svg}"
        );
    }
}

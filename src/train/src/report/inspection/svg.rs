//! Small pictures: a histogram, a grid of colored cells, a cloud of points. They have no ground of their own and colors of
//! middle lightness, so that they can be seen on a light and on a dark page; each has a title that is read out.

use std::fmt::Write;

use stratoscope_render::html::{attribute, escape};

use super::statistics::{Bin, Statistics};

/// Texts and axes.
pub(super) const INK: &str = "#7a7a7a";
/// What is drawn.
pub(super) const BLUE: &str = "#2a7fc0";
/// What is to be seen among it.
pub(super) const ORANGE: &str = "#c8641e";
/// Powers of two on each side of 0; what is smaller is drawn in the column next to 0.
const SIDE: usize = 20;
/// Width of a column and height of a histogram.
const COLUMN: usize = 3;
const HEIGHT: f64 = 26.0;

/// A picture of this size with a title. The title is text, the body is SVG.
pub(super) fn picture(width: f64, height: f64, title: &str, body: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" font-family=\"sans-serif\" aria-label=\"{}\">\
         <title>{}</title>{body}</svg>",
        attribute(title),
        // A dollar in an element of its own would be no text of a title.
        escape(title).replace("<span>$</span>", "$"),
    )
}

/// Text in a picture.
pub(super) fn text(x: f64, y: f64, size: f64, attributes: &str, content: &str) -> String {
    let content = escape(content).replace("<span>$</span>", "$");
    format!(
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" fill=\"{INK}\" {attributes}>{content}</text>"
    )
}

/// The distribution by sign and size: a column for each power of two, negative elements on the left, zeros in the middle.
/// Returns the picture and what it shows in words.
pub(super) fn histogram(name: &str, statistics: &Statistics) -> (String, String) {
    let columns = columns(&statistics.histogram());
    let words = match statistics.min.is_nan() {
        true => format!("{name}: no finite element"),
        false => format!(
            "{name}: histogram by powers of two, from {} to {}, {} zero",
            super::number(statistics.min),
            super::number(statistics.max),
            super::percent(statistics.zeros, statistics.elements)
        ),
    };
    let most = columns.iter().copied().max().unwrap_or(0).max(1) as f64;
    let column = |(index, &count): (usize, &u64)| {
        // What occurs is seen.
        let height = (HEIGHT * count as f64 / most).max(if count > 0 { 1.0 } else { 0.0 });
        (count > 0).then(|| {
            format!(
                "M{} {HEIGHT}v-{height:.1}h{COLUMN}v{height:.1}z",
                index * COLUMN
            )
        })
    };
    let path: String = columns.iter().enumerate().filter_map(column).collect();
    let middle = SIDE * COLUMN;
    let width = (2 * SIDE + 1) * COLUMN;
    let body = format!(
        "<path d=\"M0 {HEIGHT}h{width}M{middle}.5 {HEIGHT}v3\" stroke=\"{INK}\" fill=\"none\"/>\
         <path d=\"{path}\" fill=\"{BLUE}\"/>"
    );
    (picture(width as f64, HEIGHT + 4.0, &words, &body), words)
}

/// The counts of the columns from left to right.
fn columns(bins: &[Bin]) -> Vec<u64> {
    let size = |bin: &Bin| bin.low.abs().max(bin.high.abs());
    let largest = bins.iter().map(size).fold(0.0, f64::max);
    let mut columns = vec![0; 2 * SIDE + 1];
    for bin in bins {
        let place = match size(bin) {
            0.0 => 0,
            own => {
                let below = (largest / own).log2().round() as usize;
                SIDE - below.min(SIDE - 1)
            }
        };
        let index = match bin.low < 0.0 {
            true => SIDE - place,
            false => SIDE + place,
        };
        columns[index] += bin.count;
    }
    columns
}

/// A grid of cells, each filled by its share between 0 and 1, with names of rows on the left and of columns above.
pub(super) struct Grid<'a> {
    pub rows: &'a [String],
    pub columns: &'a [String],
    /// The share of a cell, and the text that is shown where there is room and read out where the cell is pointed at.
    pub cell: &'a dyn Fn(usize, usize) -> (f64, String),
    /// Whether cells are large enough for their texts.
    pub has_texts: bool,
    pub title: &'a str,
}

impl Grid<'_> {
    pub(super) fn draw(&self) -> String {
        const LETTER: f64 = 6.6;
        let side = match (self.has_texts, self.rows.len()) {
            (true, _) => 38.0,
            (false, 0..24) => 20.0,
            (false, _) => 14.0,
        };
        let longest = |names: &[String]| {
            let lengths = names.iter().map(|name| name.chars().count());
            lengths.max().unwrap_or(0).min(18) as f64
        };
        let left = longest(self.rows) * LETTER + 10.0;
        let above = longest(self.columns) * LETTER + 10.0;
        let mut body = String::new();
        // Writing to a string cannot fail.
        for (row, name) in self.rows.iter().enumerate() {
            let y = above + (row as f64 + 0.5) * side + 4.0;
            body += &text(left - 6.0, y, 11.0, "text-anchor=\"end\"", &excerpt(name));
            for column in 0..self.columns.len() {
                let (share, words) = (self.cell)(row, column);
                let share = if share.is_finite() {
                    share.clamp(0.0, 1.0)
                } else {
                    0.0
                };
                let (x, y) = (left + column as f64 * side, above + row as f64 * side);
                let named = format!("{} → {}: {words}", name, self.columns[column]);
                let named = escape(&named).replace("<span>$</span>", "$");
                let _ = write!(
                    body,
                    "<rect x=\"{x:.0}\" y=\"{y:.0}\" width=\"{side}\" height=\"{side}\" fill=\"{BLUE}\" \
                     fill-opacity=\"{share:.2}\" stroke=\"{INK}\" stroke-opacity=\"0.25\"><title>{named}</title></rect>"
                );
                if self.has_texts {
                    let at = "text-anchor=\"middle\"";
                    body += &text(x + side / 2.0, y + side / 2.0 + 4.0, 11.0, at, &words);
                }
            }
        }
        for (column, name) in self.columns.iter().enumerate() {
            let x = left + (column as f64 + 0.5) * side + 4.0;
            let turned = format!("transform=\"rotate(-90 {x:.1} {:.1})\"", above - 6.0);
            body += &text(x, above - 6.0, 11.0, &turned, &excerpt(name));
        }
        let width = left + self.columns.len() as f64 * side + 2.0;
        let height = above + self.rows.len() as f64 * side + 2.0;
        picture(width, height, self.title, &body)
    }
}

fn excerpt(name: &str) -> String {
    stratoscope_render::text::excerpt(name, 18)
}

/// Points of two kinds in a square from 0 to `right` and from 0 to 1, with the names of the axes.
pub(super) fn cloud(
    points: &[(f64, f64, bool)],
    right: f64,
    axes: (&str, &str),
    title: &str,
) -> String {
    const SIDE: f64 = 300.0;
    const LEFT: f64 = 46.0;
    const TOP: f64 = 10.0;
    let path = |kind: bool| -> String {
        let own = points.iter().filter(|point| point.2 == kind);
        let own = own.filter(|(x, y, _)| x.is_finite() && y.is_finite());
        own.map(|(x, y, _)| {
            let x = LEFT + SIDE * (x / right).clamp(0.0, 1.0);
            let y = TOP + SIDE * (1.0 - y.clamp(0.0, 1.0));
            format!("M{x:.1} {y:.1}h0")
        })
        .collect()
    };
    let bottom = TOP + SIDE;
    let mut body =
        format!("<path d=\"M{LEFT} {TOP}V{bottom}h{SIDE}\" stroke=\"{INK}\" fill=\"none\"/>");
    for (kind, color) in [(false, BLUE), (true, ORANGE)] {
        let _ = write!(
            body,
            "<path d=\"{}\" stroke=\"{color}\" stroke-width=\"5\" stroke-linecap=\"round\" stroke-opacity=\"0.65\" \
             fill=\"none\"/>",
            path(kind)
        );
    }
    for share in [0.0, 0.5, 1.0] {
        let (x, y) = (LEFT + SIDE * share, bottom - SIDE * share);
        let number = |value: f64| format!("{value:.2}");
        body += &text(
            LEFT - 4.0,
            y + 4.0,
            12.5,
            "text-anchor=\"end\"",
            &number(share),
        );
        body += &text(
            x,
            bottom + 16.0,
            12.5,
            "text-anchor=\"middle\"",
            &number(right * share),
        );
    }
    let (x, y) = (LEFT + SIDE / 2.0, bottom + 34.0);
    body += &text(x, y, 12.5, "text-anchor=\"middle\"", axes.0);
    let y = TOP + SIDE / 2.0;
    let turned = format!("text-anchor=\"middle\" transform=\"rotate(-90 12 {y:.0})\"");
    body += &text(12.0, y, 12.5, &turned, axes.1);
    picture(LEFT + SIDE + 20.0, bottom + 42.0, title, &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_has_zeros_in_the_middle_and_small_numbers_beside() {
        let statistics = Statistics::of(&[0.0, 0.0, 1.0, -1.0, 1e-30, 0.5]);
        let columns = columns(&statistics.histogram());
        let at = |offset: isize| columns[(SIDE as isize + offset) as usize];
        assert_eq!((at(0), at(1), at(19), at(20), at(-20)), (2, 1, 1, 1, 1));
        assert_eq!(columns.iter().sum::<u64>(), 6);
        let (svg, words) = histogram("w<1>", &statistics);
        assert!(
            svg.contains("<title>w&lt;1&gt;: histogram") && !svg.contains("w<1>"),
            "{svg}"
        );
        assert!(words.contains("from -1.000 to 1.000, 33 % zero"), "{words}");
    }

    #[test]
    fn what_is_not_finite_is_not_drawn() {
        let (svg, words) = histogram("w", &Statistics::of(&[f32::NAN, f32::INFINITY]));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert_eq!(words, "w: no finite element");
        let svg = cloud(
            &[(f64::NAN, 0.5, true), (0.1, 0.5, false)],
            0.5,
            ("x", "y"),
            "t",
        );
        assert!(!svg.contains("NaN"), "{svg}");
        let names = ["a".to_owned()];
        let grid = Grid {
            rows: &names,
            columns: &names,
            cell: &|_, _| (f64::NAN, "n".to_owned()),
            has_texts: true,
            title: "t",
        };
        assert!(!grid.draw().contains("NaN"));
    }
}

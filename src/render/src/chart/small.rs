//! Small drawings without axes, for a cell of a table or a line of a card.

use std::fmt::Write;

use super::Series;
use super::elements::{ALARM, INK, SERIES, picture, text};

/// Width of a bar and height of the highest one.
const BAR: usize = 3;
const BAR_HEIGHT: f64 = 26.0;

/// Bars beside one another, the highest one as high as the drawing. The bar `middle` is marked below. `title` is read out.
pub fn bars(counts: &[u64], middle: usize, title: &str) -> String {
    let highest = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
    let bar = |(index, &count): (usize, &u64)| {
        // A count above 0 is visible, however small it is.
        let height = (BAR_HEIGHT * count as f64 / highest).max(1.0);
        let x = index * BAR;
        (count > 0).then(|| format!("M{x} {BAR_HEIGHT}v-{height:.1}h{BAR}v{height:.1}z"))
    };
    let path: String = counts.iter().enumerate().filter_map(bar).collect();
    let (width, middle) = (counts.len() * BAR, middle * BAR);
    let body = format!(
        "<path d=\"M0 {BAR_HEIGHT}h{width}M{middle}.5 {BAR_HEIGHT}v3\" stroke=\"{INK}\" fill=\"none\"/>\
         <path d=\"{path}\" fill=\"{}\"/>",
        SERIES[0]
    );
    picture((width as f64, BAR_HEIGHT + 4.0), title, &body)
}

/// A line without axes.
pub struct Sparkline<'a> {
    /// What is drawn; values that are no finite numbers are left out. Its name is shown above the line if it has one.
    pub series: &'a Series,
    /// Width and height.
    pub size: (f64, f64),
    /// The number of its color, counted from 0, as of the series of a chart.
    pub color: usize,
    /// The last point is planned and has not happened: it is a ring beside the line, or a cross if it is no finite number.
    pub is_last_planned: bool,
    /// What the line shows, to be read out.
    pub title: &'a str,
}

impl Sparkline<'_> {
    /// The picture.
    pub fn svg(&self) -> String {
        const SIDE: f64 = 5.0;
        const TEXT_SIZE: f64 = 12.5;
        let (width, height) = self.size;
        let mut body = String::new();
        let name = &self.series.name;
        let above = if name.is_empty() { 0.0 } else { 16.0 };
        if !name.is_empty() {
            text(&mut body, (SIDE, 12.0), TEXT_SIZE, "", name);
        }
        let points = &self.series.points;
        let finite: Vec<(f64, f64)> = self.series.finite().collect();
        let (x, y) = (
            ends(points, |point| point.0),
            ends(&finite, |point| point.1),
        );
        let (top, bottom) = (above + SIDE, height - SIDE);
        let place = |point: (f64, f64)| {
            (
                SIDE + share(x, point.0) * (width - 2.0 * SIDE),
                bottom - share(y, point.1) * (bottom - top),
            )
        };
        let is_last_finite = points.last() == finite.last();
        let drawn = match self.is_last_planned && is_last_finite {
            true => finite.len().saturating_sub(1),
            false => finite.len(),
        };
        let line = finite[..drawn].iter().map(|&point| place(point));
        let line: Vec<String> = line.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let color = SERIES[self.color % SERIES.len()];
        // Writing to a string cannot fail.
        if line.len() > 1 {
            let _ = write!(
                body,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"1.5\"/>",
                line.join(" ")
            );
        }
        body += &match (self.is_last_planned, finite.last().copied().map(place)) {
            (true, Some((x, y))) if is_last_finite => format!(
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"none\" stroke=\"{ALARM}\" stroke-width=\"2\"/>"
            ),
            (true, _) => format!(
                "<path d=\"M{:.1} {top:.1}l8 8m0 -8l-8 8\" stroke=\"{ALARM}\" stroke-width=\"2\"/>",
                width - SIDE - 8.0
            ),
            (false, Some((x, y))) => {
                format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2\" fill=\"{color}\"/>")
            }
            (false, None) => String::new(),
        };
        picture(self.size, self.title, &body)
    }
}

fn ends(points: &[(f64, f64)], of: impl Fn(&(f64, f64)) -> f64) -> (f64, f64) {
    let values = points.iter().map(of);
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    })
}

/// Where a value lies between the ends; in the middle if they are equal.
fn share((low, high): (f64, f64), value: f64) -> f64 {
    if high > low {
        // Halves, so that the distance of the largest numbers is finite.
        (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0)
    } else {
        0.5
    }
}

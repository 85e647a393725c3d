//! Charts as SVG.

use std::fmt::Write;

use super::axis::{Axis, Scale};
use super::elements::{
    CENTERED, GRID, INK, SERIES, TEXT_SIZE, TITLE_SIZE, TO_THE_LEFT, picture, text,
};
use super::{Bar, Chart, Content, Marker, Series, cells};

/// Room around the drawing: left, top, right, bottom.
const MARGINS: (f64, f64, f64, f64) = (66.0, 34.0, 18.0, 46.0);
/// Height of a row of the legend, which is above the drawing.
const LEGEND: f64 = 20.0;

/// A line is thinned out to the lowest and the highest point of this many columns.
const COLUMNS: usize = 700;
/// Of more points, every nth is drawn.
const MAX_MARKS: usize = 4000;

/// Where the drawing is, and its axes.
pub(super) struct Frame {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
    /// The lower end of the picture.
    height: f64,
    x: Axis,
    y: Axis,
}

impl Frame {
    /// In a picture of this size, with room for a scale `beside` it and a legend `above` it.
    pub fn new((width, height): (f64, f64), (x, y): (Axis, Axis), room: (f64, f64)) -> Self {
        let (left, top, right, bottom) = MARGINS;
        let (beside, above) = room;
        Self {
            left,
            top: top + above,
            right: width - right - beside,
            bottom: height - bottom,
            height,
            x,
            y,
        }
    }

    fn across(&self, value: f64) -> f64 {
        self.left + self.x.share(value) * (self.right - self.left)
    }

    fn up(&self, value: f64) -> f64 {
        self.bottom - self.y.share(value) * (self.bottom - self.top)
    }
}

/// The picture of a chart.
pub(super) fn draw(chart: &Chart) -> String {
    picture(chart.size, &chart.summary(), &body(chart))
}

/// What is in the picture of a chart.
pub(super) fn body(chart: &Chart) -> String {
    let mut out = String::new();
    match &chart.content {
        Content::Lines(series) => {
            let frame = framed(chart, series, 0.03, &mut out);
            markers(&chart.markers, &frame, &mut out);
            for (each, color) in series.iter().zip(SERIES.iter().cycle()) {
                line(each, color, &frame, &mut out);
            }
        }
        Content::Points(series) => {
            let frame = framed(chart, series, 0.06, &mut out);
            for (each, color) in series.iter().zip(SERIES.iter().cycle()) {
                dots(each, color, &frame, &mut out);
            }
        }
        Content::Bars { bars, .. } => draw_bars(chart, bars, &mut out),
        Content::Cells(rows) => cells::draw(chart, rows, &mut out),
    }
    out
}

/// Axes, grid, legend and words for points.
fn framed(chart: &Chart, series: &[Series], room: f64, out: &mut String) -> Frame {
    let points = || series.iter().flat_map(Series::finite);
    let x = Axis::new(chart.x_scale, points().map(|point| point.0), room);
    let y = Axis::new(chart.y_scale, points().map(|point| point.1), 0.1);
    let (left, _, right, _) = MARGINS;
    let legend = legend(series, &chart.markers, chart.size.0 - left - right);
    let above = LEGEND * legend.last().map_or(0, |entry| entry.row + 1) as f64;
    let frame = Frame::new(chart.size, (x, y), (0.0, above));
    scales(&frame, out);
    words(chart, &frame, out);
    draw_legend(&legend, &frame, out);
    frame
}

/// The numbers at the axes, with the lines of the grid.
fn scales(frame: &Frame, out: &mut String) {
    let Frame {
        left,
        top,
        right,
        bottom,
        ..
    } = frame;
    for &tick in &frame.x.ticks {
        let at = frame.across(tick);
        let _ = write!(
            out,
            "<path d=\"M{at:.1} {top}V{bottom}\" stroke=\"{GRID}\"/>"
        );
        let number = frame.x.number(tick);
        text(out, (at, bottom + 17.0), TEXT_SIZE, CENTERED, &number);
    }
    for &tick in &frame.y.ticks {
        let at = frame.up(tick);
        let _ = write!(
            out,
            "<path d=\"M{left} {at:.1}H{right}\" stroke=\"{GRID}\"/>"
        );
        let number = frame.y.number(tick);
        text(out, (left - 7.0, at + 4.5), TEXT_SIZE, TO_THE_LEFT, &number);
    }
    let _ = write!(
        out,
        "<path d=\"M{left} {top}V{bottom}H{right}\" stroke=\"{INK}\" fill=\"none\"/>"
    );
}

/// The title and the names of the axes.
pub(super) fn words(chart: &Chart, frame: &Frame, out: &mut String) {
    let middle = (frame.left + frame.right) / 2.0;
    if !chart.title.is_empty() {
        text(out, (middle, 20.0), TITLE_SIZE, CENTERED, &chart.title);
    }
    if !chart.x.is_empty() {
        text(
            out,
            (middle, frame.height - 9.0),
            TEXT_SIZE,
            CENTERED,
            &chart.x,
        );
    }
    if !chart.y.is_empty() {
        let upright = (frame.top + frame.bottom) / 2.0;
        let turned = format!("{CENTERED} transform=\"rotate(-90 15 {upright:.1})\"");
        text(out, (15.0, upright), TEXT_SIZE, &turned, &chart.y);
    }
}

/// Points in a form that `points` of a polyline has.
fn places(points: &[(f64, f64)], frame: &Frame) -> String {
    let places = points.iter().map(|&(x, y)| {
        let (x, y) = (frame.across(x), frame.up(y));
        format!("{x:.1},{y:.1}")
    });
    places.collect::<Vec<_>>().join(" ")
}

fn line(series: &Series, color: &str, frame: &Frame, out: &mut String) {
    let points = thinned(&series.points);
    for piece in points.split(|(x, y)| !x.is_finite() || !y.is_finite()) {
        if piece.len() > 1 {
            let _ = write!(
                out,
                "<polyline points=\"{}\" stroke=\"{color}\" stroke-width=\"2\" stroke-linejoin=\"round\" fill=\"none\"/>",
                places(piece, frame)
            );
        }
        // A line of one point cannot be seen.
        if series.has_marks || piece.len() == 1 {
            for &(x, y) in piece {
                let (x, y) = (frame.across(x), frame.up(y));
                let _ = write!(
                    out,
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{color}\"/>"
                );
            }
        }
    }
}

/// The lowest and the highest point of each column, in their order; what is missing stays.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if points.len() <= 2 * COLUMNS {
        return points.to_vec();
    }
    let mut kept = Vec::new();
    for chunk in points.chunks(points.len().div_ceil(COLUMNS)) {
        let by_height = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let finite = || chunk.iter().filter(|point| point.1.is_finite());
        let (Some(low), Some(high)) = (finite().min_by(by_height), finite().max_by(by_height))
        else {
            kept.extend(chunk.first());
            continue;
        };
        kept.extend(match low.0 <= high.0 {
            true => [*low, *high],
            false => [*high, *low],
        });
    }
    kept
}

/// A dot at each point: the round ends of strokes without a length, which take a quarter of the bytes of circles.
fn dots(series: &Series, color: &str, frame: &Frame, out: &mut String) {
    let points: Vec<(f64, f64)> = series.finite().collect();
    let every = points.len().div_ceil(MAX_MARKS).max(1);
    let mut path = String::new();
    for &(x, y) in points.iter().step_by(every) {
        let _ = write!(path, "M{:.1} {:.1}h0", frame.across(x), frame.up(y));
    }
    let _ = write!(
        out,
        "<path d=\"{path}\" stroke=\"{color}\" stroke-width=\"6\" stroke-linecap=\"round\" stroke-opacity=\"0.7\" \
         fill=\"none\"/>"
    );
}

/// Dashed lines at the markers that are on the axis.
fn markers(markers: &[Marker], frame: &Frame, out: &mut String) {
    for marker in markers {
        let is_seen = (frame.x.low..=frame.x.high).contains(&marker.at);
        if is_seen {
            let (x, color) = (frame.across(marker.at), marker.kind.color());
            let _ = write!(
                out,
                "<path d=\"M{x:.1} {}V{}\" stroke=\"{color}\" stroke-dasharray=\"4 3\" fill=\"none\"/>",
                frame.top, frame.bottom
            );
        }
    }
}

/// An entry of a legend: its place, its color, whether its line is dashed, its name.
struct Entry {
    row: usize,
    left: f64,
    color: &'static str,
    is_dashed: bool,
    name: String,
}

/// The names of several series and of markers, in rows of this width.
fn legend(series: &[Series], markers: &[Marker], width: f64) -> Vec<Entry> {
    let is_named = series.len() > 1 && series.iter().any(|each| !each.name.is_empty());
    let series = series.iter().zip(SERIES);
    let series = series.filter(|(each, _)| is_named && each.has_points());
    let mut names: Vec<_> = series
        .map(|(each, color)| (crate::text::excerpt(&each.name, 24), color, false))
        .collect();
    for marker in markers {
        let name = marker.kind.name();
        if names.iter().all(|entry| entry.0 != name) {
            names.push((name.to_owned(), marker.kind.color(), true));
        }
    }
    let (mut row, mut left) = (0, 0.0);
    let entries = names.into_iter().map(|(name, color, is_dashed)| {
        // The width of a text is not known here: letters of this size are about 7.5 pixels wide.
        let own = 44.0 + 7.5 * name.chars().count() as f64;
        // Behind the last name of a row there is no gap.
        if left > 0.0 && left + own - 22.0 > width {
            (row, left) = (row + 1, 0.0);
        }
        left += own;
        Entry {
            row,
            left: left - own,
            color,
            is_dashed,
            name,
        }
    });
    entries.collect()
}

fn draw_legend(legend: &[Entry], frame: &Frame, out: &mut String) {
    let rows = legend.last().map_or(0, |entry| entry.row + 1);
    for entry in legend {
        let x = frame.left + entry.left;
        let y = frame.top - 11.0 - LEGEND * (rows - 1 - entry.row) as f64;
        let dashes = if entry.is_dashed {
            " stroke-dasharray=\"4 3\""
        } else {
            ""
        };
        let _ = write!(
            out,
            "<path d=\"M{x:.1} {y:.1}h16\" stroke=\"{}\" stroke-width=\"2\"{dashes}/>",
            entry.color
        );
        text(out, (x + 22.0, y + 4.5), TEXT_SIZE, "", &entry.name);
    }
}

fn draw_bars(chart: &Chart, bars: &[Bar], out: &mut String) {
    let ends = bars.iter().flat_map(|bar| [bar.low, bar.high]);
    let counts = bars.iter().map(|bar| bar.count as f64);
    let axes = (
        Axis::new(Scale::Values, ends, 0.02),
        Axis::from_zero(counts.chain([0.0]), 0.0),
    );
    let frame = Frame::new(chart.size, axes, (0.0, 0.0));
    scales(&frame, out);
    words(chart, &frame, out);
    for bar in bars.iter().filter(|bar| bar.count > 0) {
        let (left, right) = (frame.across(bar.low), frame.across(bar.high));
        let top = frame.up(bar.count as f64);
        let _ = write!(
            out,
            "<rect x=\"{left:.2}\" y=\"{top:.1}\" width=\"{:.2}\" height=\"{:.1}\" fill=\"{}\" fill-opacity=\"0.85\"/>",
            (right - left - 1.0).max(0.5),
            frame.bottom - top,
            SERIES[0]
        );
    }
}

//! Charts as SVG.

use std::fmt::Write;

use super::axis::{Axis, short};
use super::{Bar, Chart, Content, Series};
use crate::html::attribute;

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 320.0;
/// Room around the drawing: left, top, right, bottom.
const MARGINS: (f64, f64, f64, f64) = (66.0, 34.0, 18.0, 46.0);
/// Beside a grid of cells: its scale.
const SCALE: f64 = 76.0;
/// Above lines and points of several names: the names.
const LEGEND: f64 = 20.0;

/// Texts and axes: 4.2 to 1 on white, 4.4 to 1 on JupyterLab's dark ground.
const INK: &str = "#7a7a7a";
const GRID: &str = "rgba(128,128,128,0.25)";
const SERIES: [&str; 6] = [
    "#2a7fc0", "#c8641e", "#3a9a5b", "#9a5fb4", "#b58900", "#c0504d",
];
/// The colors of cells from the lowest to the highest value; lightness grows all along.
const COLORS: [(f64, f64, f64); 5] = [
    (48.0, 18.0, 92.0),
    (52.0, 84.0, 150.0),
    (34.0, 144.0, 140.0),
    (108.0, 200.0, 96.0),
    (250.0, 228.0, 60.0),
];

/// A line is thinned out to the lowest and the highest point of so many columns.
const COLUMNS: usize = 700;
/// Of more points, every nth is drawn.
const MOST_MARKS: usize = 4000;
/// Of more rows or columns, neighbors are averaged.
pub(super) const MOST_CELLS: usize = 64;

/// Where the drawing is, and its axes.
struct Frame {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
    x: Axis,
    y: Axis,
}

impl Frame {
    /// With room for a scale `beside` it and a legend `above` it.
    fn new(x: Axis, y: Axis, (beside, above): (f64, f64)) -> Self {
        let (left, top, right, bottom) = MARGINS;
        Self {
            left,
            top: top + above,
            right: WIDTH - right - beside,
            bottom: HEIGHT - bottom,
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
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"13\" role=\"img\"><title>{}</title>",
        attribute(&chart.summary())
    );
    match &chart.content {
        Content::Lines(series) => {
            let frame = framed(chart, series, 0.03, &mut out);
            for (number, each) in series.iter().enumerate() {
                line(each, SERIES[number % SERIES.len()], &frame, &mut out);
            }
            legend(series, &frame, &mut out);
        }
        Content::Points(series) => {
            let frame = framed(chart, series, 0.06, &mut out);
            for (number, each) in series.iter().enumerate() {
                marks(each, SERIES[number % SERIES.len()], &frame, &mut out);
            }
            legend(series, &frame, &mut out);
        }
        Content::Bars { bars, .. } => draw_bars(chart, bars, &mut out),
        Content::Cells(rows) => draw_cells(chart, rows, &mut out),
    }
    out += "</svg>";
    out
}

/// Axes, grid and words for points.
fn framed(chart: &Chart, series: &[Series], room: f64, out: &mut String) -> Frame {
    let points = || series.iter().flat_map(Series::finite);
    let x = Axis::of(points().map(|point| point.0), room);
    let y = Axis::of(points().map(|point| point.1), 0.1);
    let above = if has_legend(series) { LEGEND } else { 0.0 };
    let frame = Frame::new(x, y, (0.0, above));
    scales(&frame, out);
    words(chart, &frame, out);
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
    for tick in frame.x.ticks() {
        let (at, below) = (frame.across(tick), bottom + 17.0);
        let number = frame.x.number(tick);
        let _ = write!(
            out,
            "<path d=\"M{at:.1} {top}V{bottom}\" stroke=\"{GRID}\"/>\
             <text x=\"{at:.1}\" y=\"{below}\" fill=\"{INK}\" text-anchor=\"middle\">{number}</text>"
        );
    }
    for tick in frame.y.ticks() {
        let (at, beside) = (frame.up(tick), left - 7.0);
        let number = frame.y.number(tick);
        let _ = write!(
            out,
            "<path d=\"M{left} {at:.1}H{right}\" stroke=\"{GRID}\"/>\
             <text x=\"{beside}\" y=\"{:.1}\" fill=\"{INK}\" text-anchor=\"end\">{number}</text>",
            at + 4.5
        );
    }
    let _ = write!(
        out,
        "<path d=\"M{left} {top}V{bottom}H{right}\" stroke=\"{INK}\" fill=\"none\"/>"
    );
}

/// The title and the names of the axes.
fn words(chart: &Chart, frame: &Frame, out: &mut String) {
    let middle = (frame.left + frame.right) / 2.0;
    let mut word = |text: &str, place: String, size: u32| {
        if !text.is_empty() {
            let text = attribute(text);
            let _ = write!(
                out,
                "<text {place} fill=\"{INK}\" font-size=\"{size}\" text-anchor=\"middle\">{text}</text>"
            );
        }
    };
    word(&chart.title, format!("x=\"{middle:.1}\" y=\"20\""), 15);
    let bottom = HEIGHT - 9.0;
    word(&chart.x, format!("x=\"{middle:.1}\" y=\"{bottom}\""), 13);
    let upright = (frame.top + frame.bottom) / 2.0;
    let turned = format!("transform=\"translate(15 {upright:.1}) rotate(-90)\"");
    word(&chart.y, turned, 13);
}

fn line(series: &Series, color: &str, frame: &Frame, out: &mut String) {
    let points = thinned(&series.points);
    let mut path = String::new();
    let mut alone = Vec::new();
    for piece in points.split(|(x, y)| !x.is_finite() || !y.is_finite()) {
        for (index, &(x, y)) in piece.iter().enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{command}{:.1} {:.1}", frame.across(x), frame.up(y));
        }
        if let [(x, y)] = piece {
            alone.push((*x, *y));
        }
    }
    let _ = write!(
        out,
        "<path d=\"{path}\" stroke=\"{color}\" stroke-width=\"2\" stroke-linejoin=\"round\" fill=\"none\"/>"
    );
    // A line of one point cannot be seen.
    for (x, y) in alone {
        mark(frame.across(x), frame.up(y), color, out);
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

fn marks(series: &Series, color: &str, frame: &Frame, out: &mut String) {
    let points: Vec<(f64, f64)> = series.finite().collect();
    let every = points.len().div_ceil(MOST_MARKS).max(1);
    for (x, y) in points.into_iter().step_by(every) {
        mark(frame.across(x), frame.up(y), color, out);
    }
}

fn mark(x: f64, y: f64, color: &str, out: &mut String) {
    let _ = write!(
        out,
        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{color}\" fill-opacity=\"0.75\"/>"
    );
}

fn has_legend(series: &[Series]) -> bool {
    series.len() > 1 && series.iter().any(|each| !each.name.is_empty())
}

/// The names of several series, in a row above the drawing.
fn legend(series: &[Series], frame: &Frame, out: &mut String) {
    if !has_legend(series) {
        return;
    }
    let (mut x, y) = (frame.left, frame.top - 11.0);
    for (number, each) in series.iter().enumerate().take(SERIES.len()) {
        let color = SERIES[number];
        let name = crate::text::excerpt(&each.name, 24);
        let _ = write!(
            out,
            "<path d=\"M{x:.1} {y:.1}h16\" stroke=\"{color}\" stroke-width=\"3\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"{INK}\">{}</text>",
            x + 22.0,
            y + 4.5,
            attribute(&name)
        );
        // The width of a text is not known here: letters of this size are about 7.5 pixels wide.
        x += 44.0 + 7.5 * name.chars().count() as f64;
    }
}

fn draw_bars(chart: &Chart, bars: &[Bar], out: &mut String) {
    let ends = bars.iter().flat_map(|bar| [bar.low, bar.high]);
    let counts = bars.iter().map(|bar| bar.count as f64);
    let frame = Frame::new(Axis::of(ends, 0.02), Axis::from_zero(counts), (0.0, 0.0));
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

fn draw_cells(chart: &Chart, rows: &[Vec<f64>], out: &mut String) {
    let cells = averaged(rows);
    let columns = cells.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let all = || cells.iter().flatten().copied();
    let values = Axis::of(all(), 0.0);
    let count = |count: usize| Axis::of([0.0, count as f64].into_iter(), 0.0);
    let frame = Frame::new(count(columns), count(cells.len()), (SCALE, 0.0));
    words(chart, &frame, out);
    let width = (frame.right - frame.left) / columns as f64;
    let height = (frame.bottom - frame.top) / cells.len().max(1) as f64;
    for (row, line) in cells.iter().enumerate() {
        for (column, value) in line.iter().enumerate().filter(|it| it.1.is_finite()) {
            let (x, y) = (
                frame.left + column as f64 * width,
                frame.top + row as f64 * height,
            );
            let color = color(values.share(*value));
            let _ = write!(
                out,
                "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{:.2}\" height=\"{:.2}\" fill=\"{color}\" shape-rendering=\"crispEdges\"/>",
                width + 0.2,
                height + 0.2
            );
        }
    }
    indices(&frame, rows.len(), columns_of(rows), out);
    scale_of_colors(&frame, values, out);
}

/// The numbers of the first and the last row and column.
fn indices(frame: &Frame, rows: usize, columns: usize, out: &mut String) {
    let mut number = |x: f64, y: f64, anchor: &str, number: usize| {
        let _ = write!(
            out,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{INK}\" text-anchor=\"{anchor}\">{number}</text>"
        );
    };
    let (beside, below) = (frame.left - 7.0, frame.bottom + 17.0);
    number(beside, frame.top + 11.0, "end", 0);
    number(frame.left + 4.0, below, "middle", 0);
    if rows > 1 {
        number(beside, frame.bottom - 1.0, "end", rows - 1);
    }
    if columns > 1 {
        number(frame.right - 4.0, below, "middle", columns - 1);
    }
}

/// Which value has which color.
fn scale_of_colors(frame: &Frame, values: Axis, out: &mut String) {
    const STEPS: usize = 40;
    let left = frame.right + 12.0;
    let height = (frame.bottom - frame.top) / STEPS as f64;
    for step in 0..STEPS {
        let y = frame.bottom - (step + 1) as f64 * height;
        let color = color((step as f64 + 0.5) / STEPS as f64);
        let _ = write!(
            out,
            "<rect x=\"{left:.1}\" y=\"{y:.2}\" width=\"12\" height=\"{:.2}\" fill=\"{color}\"/>",
            height + 0.2
        );
    }
    for (value, y) in [(values.high, frame.top + 10.0), (values.low, frame.bottom)] {
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{y:.1}\" fill=\"{INK}\" font-size=\"12\">{}</text>",
            left + 16.0,
            short(value)
        );
    }
}

fn columns_of(rows: &[Vec<f64>]) -> usize {
    rows.iter().map(Vec::len).max().unwrap_or(0)
}

/// At most [`MOST_CELLS`] rows and columns, each the mean of neighbors.
pub(super) fn averaged(rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let columns = columns_of(rows);
    let (by_row, by_column) = (
        rows.len().div_ceil(MOST_CELLS).max(1),
        columns.div_ceil(MOST_CELLS).max(1),
    );
    if by_row == 1 && by_column == 1 {
        return rows.to_vec();
    }
    let mean = |block: &[Vec<f64>], column: usize| {
        let values = block.iter().flat_map(|row| {
            let row = row.iter().skip(column * by_column).take(by_column);
            row.copied().filter(|value| value.is_finite())
        });
        let (sum, count) = values.fold((0.0, 0.0), |(sum, count), it| (sum + it, count + 1.0));
        sum / count
    };
    let blocks = rows.chunks(by_row);
    blocks
        .map(|block| {
            (0..columns.div_ceil(by_column))
                .map(|at| mean(block, at))
                .collect()
        })
        .collect()
}

/// The color of a share between 0 and 1.
fn color(share: f64) -> String {
    let place = share.clamp(0.0, 1.0) * (COLORS.len() - 1) as f64;
    let at = (place as usize).min(COLORS.len() - 2);
    let (a, b, rest) = (COLORS[at], COLORS[at + 1], place - at as f64);
    let mix = |a: f64, b: f64| (a + (b - a) * rest).round() as u8;
    format!(
        "#{:02x}{:02x}{:02x}",
        mix(a.0, b.0),
        mix(a.1, b.1),
        mix(a.2, b.2)
    )
}

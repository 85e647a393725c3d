//! A grid of colored cells, one for each number.

use std::fmt::Write;

use super::Chart;
use super::axis::{Axis, short};
use super::elements::{CENTERED, TEXT_SIZE, TO_THE_LEFT, text};
use super::svg::{Frame, words};

/// Room beside the grid, for its scale.
const SCALE: f64 = 76.0;
/// The colors of cells from the lowest to the highest value; lightness grows all along.
const COLORS: [(f64, f64, f64); 5] = [
    (48.0, 18.0, 92.0),
    (52.0, 84.0, 150.0),
    (34.0, 144.0, 140.0),
    (108.0, 200.0, 96.0),
    (250.0, 228.0, 60.0),
];
/// Of more rows or columns, neighbors are averaged.
pub(super) const MAX_CELLS: usize = 64;

pub(super) fn draw(chart: &Chart, rows: &[Vec<f64>], out: &mut String) {
    let cells = averaged(rows);
    let columns = columns_of(&cells).max(1);
    let values = Axis::of(cells.iter().flatten().copied(), 0.0);
    let count = |count: usize| Axis::of([0.0, count as f64].into_iter(), 0.0);
    let axes = (count(columns), count(cells.len()));
    let frame = Frame::new(chart.size, axes, (SCALE, 0.0));
    words(chart, &frame, out);
    let width = (frame.right - frame.left) / columns as f64;
    let height = (frame.bottom - frame.top) / cells.len().max(1) as f64;
    for (row, line) in cells.iter().enumerate() {
        for (column, value) in line.iter().enumerate().filter(|it| it.1.is_finite()) {
            let x = frame.left + column as f64 * width;
            let y = frame.top + row as f64 * height;
            let _ = write!(
                out,
                "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{:.2}\" height=\"{:.2}\" fill=\"{}\" shape-rendering=\"crispEdges\"/>",
                width + 0.2,
                height + 0.2,
                color(values.share(*value))
            );
        }
    }
    indices(&frame, rows.len(), columns_of(rows), out);
    scale_of_colors(&frame, &values, out);
}

/// The numbers of the first and the last row and column.
fn indices(frame: &Frame, rows: usize, columns: usize, out: &mut String) {
    let mut number = |x: f64, y: f64, anchor: &str, number: usize| {
        text(out, (x, y), TEXT_SIZE, anchor, &number.to_string());
    };
    let (beside, below) = (frame.left - 7.0, frame.bottom + 17.0);
    number(beside, frame.top + 11.0, TO_THE_LEFT, 0);
    number(frame.left + 4.0, below, CENTERED, 0);
    if rows > 1 {
        number(beside, frame.bottom - 1.0, TO_THE_LEFT, rows - 1);
    }
    if columns > 1 {
        number(frame.right - 4.0, below, CENTERED, columns - 1);
    }
}

/// Which value has which color.
fn scale_of_colors(frame: &Frame, values: &Axis, out: &mut String) {
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
        text(out, (left + 16.0, y), 12.0, "", &short(value));
    }
}

fn columns_of(rows: &[Vec<f64>]) -> usize {
    rows.iter().map(Vec::len).max().unwrap_or(0)
}

/// At most [`MAX_CELLS`] rows and columns, each the mean of neighbors.
pub(super) fn averaged(rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let columns = columns_of(rows);
    let (by_row, by_column) = (
        rows.len().div_ceil(MAX_CELLS).max(1),
        columns.div_ceil(MAX_CELLS).max(1),
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

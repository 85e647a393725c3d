//! Charts as text, for terminals and for readers without pictures.

use super::axis::{Axis, short};
use super::{Bar, Chart, Content, Marker, Series};
use crate::text::{count, excerpt, thousands};

/// Columns of a drawing.
const COLUMNS: usize = 60;
/// Lines of a scatter plot.
const LINES: usize = 16;
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
const MARKS: [char; 6] = ['•', '+', '×', 'o', '*', '#'];

pub(super) fn draw(chart: &Chart) -> String {
    let mut lines = Vec::new();
    let axes = [("x", &chart.x), ("y", &chart.y)];
    let axes = axes.iter().filter(|(_, name)| !name.is_empty());
    let axes: Vec<String> = axes.map(|(axis, name)| format!("{axis}: {name}")).collect();
    if !chart.title.is_empty() {
        lines.push(chart.title.clone());
    }
    if !axes.is_empty() {
        lines.push(axes.join(", "));
    }
    match &chart.content {
        Content::Lines(series) => {
            lines.extend(series.iter().flat_map(sparkline));
            let markers: Vec<String> = chart.markers.iter().map(Marker::words).collect();
            lines.extend((!markers.is_empty()).then(|| excerpt(&markers.join(", "), COLUMNS)));
        }
        Content::Points(series) => lines.extend(scatter(series)),
        Content::Bars { bars, missing } => {
            lines.extend(histogram(bars));
            lines.extend(left_out(*missing));
        }
        Content::Cells(rows) => lines.extend(heatmap(rows)),
    }
    let shown = lines.iter().map(|line| crate::text::visible_line(line));
    shown.collect::<Vec<_>>().join("\n")
}

fn left_out(missing: usize) -> Option<String> {
    let are = if missing == 1 {
        "is no number"
    } else {
        "are no numbers"
    };
    (missing > 0).then(|| format!("{} {are} and left out", count(missing, "value")))
}

/// The heights of a line in a row of blocks, and its ends in numbers.
fn sparkline(series: &Series) -> Vec<String> {
    let finite: Vec<(f64, f64)> = series.finite().collect();
    let axis = Axis::of(finite.iter().map(|point| point.1), 0.0);
    let chunk = finite.len().div_ceil(COLUMNS).max(1);
    let blocks = finite.chunks(chunk).map(|chunk| {
        let mean = chunk.iter().map(|point| point.1 / chunk.len() as f64).sum();
        let height = axis.share(mean).clamp(0.0, 1.0) * (HEIGHTS.len() - 1) as f64;
        HEIGHTS[height.round() as usize]
    });
    let name = match series.name.is_empty() {
        true => String::new(),
        false => format!("{}: ", excerpt(&series.name, 30)),
    };
    let values = || finite.iter().map(|point| point.1);
    let [low, high] = [values().reduce(f64::min), values().reduce(f64::max)];
    let number = |value: Option<f64>| value.map_or_else(String::new, short);
    let last = number(finite.last().map(|point| point.1));
    let words = format!(
        "{name}{}, lowest {}, highest {}, last {last}",
        count(series.points.len(), "point"),
        number(low),
        number(high),
    );
    let mut lines = vec![words, blocks.collect()];
    lines.extend(left_out(series.points.len() - finite.len()));
    lines
}

fn scatter(series: &[Series]) -> Vec<String> {
    let all = || series.iter().flat_map(Series::finite);
    let x = Axis::of(all().map(|point| point.0), 0.0);
    let y = Axis::of(all().map(|point| point.1), 0.0);
    let mut grid = vec![vec![' '; COLUMNS]; LINES];
    for (number, each) in series.iter().enumerate() {
        for point in each.finite() {
            let place = |share: f64, most: usize| {
                (share.clamp(0.0, 1.0) * (most - 1) as f64).round() as usize
            };
            let (column, line) = (
                place(x.share(point.0), COLUMNS),
                place(y.share(point.1), LINES),
            );
            grid[LINES - 1 - line][column] = MARKS[number % MARKS.len()];
        }
    }
    let mut lines: Vec<String> = grid
        .into_iter()
        .map(|line| format!("│{}", line.into_iter().collect::<String>().trim_end()))
        .collect();
    lines.push(format!("└{}", "─".repeat(COLUMNS)));
    let range = |axis: &Axis| format!("{} to {}", short(axis.low), short(axis.high));
    lines.push(format!("x from {}, y from {}", range(&x), range(&y)));
    if series.len() > 1 {
        let names = series.iter().enumerate();
        let names = names
            .map(|(at, each)| format!("{} {}", MARKS[at % MARKS.len()], excerpt(&each.name, 20)));
        lines.push(names.collect::<Vec<_>>().join(", "));
    }
    let points: usize = series.iter().map(|each| each.points.len()).sum();
    lines.extend(left_out(points - all().count()));
    lines
}

fn histogram(bars: &[Bar]) -> Vec<String> {
    let most = bars.iter().map(|bar| bar.count).max().unwrap_or(0).max(1);
    let ranges = bars.iter().enumerate().map(|(at, bar)| {
        let end = if at + 1 == bars.len() { ']' } else { ')' };
        format!("[{}, {}{end}", short(bar.low), short(bar.high))
    });
    let ranges: Vec<String> = ranges.collect();
    let width = ranges
        .iter()
        .map(|range| range.chars().count())
        .max()
        .unwrap_or(0);
    let lines = bars.iter().zip(ranges).map(|(bar, range)| {
        let blocks = "█".repeat((40 * bar.count).div_ceil(most));
        let bar = format!("{blocks} {}", thousands(bar.count));
        format!("{range:<width$} {}", bar.trim_start())
    });
    lines.collect()
}

fn heatmap(rows: &[Vec<f64>]) -> Vec<String> {
    let cells = super::cells::averaged(rows);
    let values = || cells.iter().flatten().copied().filter(|it| it.is_finite());
    let axis = Axis::of(values(), 0.0);
    let shade = |value: &f64| match value.is_finite() {
        true => {
            let place = axis.share(*value).clamp(0.0, 1.0) * (SHADES.len() - 1) as f64;
            SHADES[place.round() as usize]
        }
        false => '?',
    };
    let lines = cells
        .iter()
        .map(|row| row.iter().map(shade).collect::<String>());
    let mut lines: Vec<String> = lines.map(|line| format!("│{line}│")).collect();
    let number = |value: Option<f64>| value.map_or_else(String::new, short);
    lines.push(format!(
        "{} × {}, from {} (' ') to {} ('█')",
        rows.len(),
        rows.iter().map(Vec::len).max().unwrap_or(0),
        number(values().reduce(f64::min)),
        number(values().reduce(f64::max)),
    ));
    let missing = rows.iter().flatten().filter(|it| !it.is_finite()).count();
    lines.extend(left_out(missing));
    lines
}

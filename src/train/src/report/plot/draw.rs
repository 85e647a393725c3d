//! Panels as SVG. A picture has no ground of its own, so that it lies on a light and on a dark page; its
//! colors are of middle lightness and can be distinguished from both. (An image cannot know the theme of a notebook,
//! and JupyterLab removes style sheets.)

use plotters::coord::ranged1d::Ranged;
use plotters::prelude::*;

use super::{Curve, Panel};

/// Size of a panel in pixels.
const PANEL: (u32, u32) = (400, 270);
/// Texts and axes: 4.2 to 1 on white, 4.4 to 1 on JupyterLab's dark ground.
pub(super) const INK: RGBColor = RGBColor(0x7a, 0x7a, 0x7a);
/// The lines behind the curves.
const GRID: RGBAColor = RGBAColor(0x80, 0x80, 0x80, 0.25);
/// A change of the run.
const EDIT: RGBColor = RGBColor(0x9a, 0x5f, 0xb4);
/// The training curve.
pub(super) const TRAINING: RGBColor = RGBColor(0x2a, 0x7f, 0xc0);
/// The validation curve.
pub(super) const VALIDATION: RGBColor = RGBColor(0xc8, 0x64, 0x1e);
/// Sizes of text, which plotters divides by 1.24: 13 and 15 pixels.
const TEXT: f64 = 13.0 * 1.24;
const TITLE: f64 = 15.0 * 1.24;

/// The panels side by side, two in a row.
pub(super) fn together(panels: &[Panel]) -> String {
    let columns = (panels.len() as u32).clamp(1, 2);
    let rows = (panels.len() as u32).div_ceil(columns).max(1);
    drawn(panels, rows, columns)
}

/// A panel alone.
pub(super) fn alone(panel: &Panel) -> String {
    drawn(std::slice::from_ref(panel), 1, 1)
}

fn drawn(panels: &[Panel], rows: u32, columns: u32) -> String {
    let mut svg = String::new();
    let outcome = {
        let size = (PANEL.0 * columns, PANEL.1 * rows);
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        draw(&area, panels, (rows as usize, columns as usize))
    };
    if outcome.is_err() {
        // Drawing into a string fails only on ranges that are not numbers, which are left out.
        svg.clear();
    }
    svg
}

type Failure = Box<dyn std::error::Error>;
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn draw(area: &Area<'_>, panels: &[Panel], grid: (usize, usize)) -> Result<(), Failure> {
    for (panel, area) in panels.iter().zip(area.split_evenly(grid)) {
        draw_panel(panel, &area)?;
    }
    area.present().map_err(|error| error.to_string())?;
    Ok(())
}

fn draw_panel(panel: &Panel, area: &Area<'_>) -> Result<(), Failure> {
    let text = ("sans-serif", TEXT).into_font().color(&INK);
    let mut chart = ChartBuilder::on(area)
        .margin(10)
        .margin_right(20)
        .caption(&panel.title, ("sans-serif", TITLE).into_font().color(&INK))
        .x_label_area_size(42)
        .y_label_area_size(62)
        .build_cartesian_2d(panel.steps(), panel.values())?;
    chart
        .configure_mesh()
        .x_desc("optimizer step")
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(INK)
        .label_style(text.clone())
        .axis_desc_style(text.clone())
        .draw()?;
    let heights = panel.values().range();
    let steps = panel.steps().range();
    for &step in panel.edits.iter().filter(|step| steps.contains(step)) {
        let ends = [(step, heights.start), (step, heights.end)];
        let line = DashedLineSeries::new(ends, 4, 3, EDIT.stroke_width(1));
        chart.draw_series(line)?;
    }
    for curve in &panel.curves {
        let Curve { color, points, .. } = curve;
        let color = *color;
        let line = LineSeries::new(points.iter().copied(), color.stroke_width(2));
        let drawn = chart.draw_series(line)?;
        if !curve.name.is_empty() {
            drawn.label(&curve.name).legend(move |(x, y)| {
                PathElement::new([(x, y), (x + 16, y)], color.stroke_width(2))
            });
        }
        // A line of one point cannot be seen.
        if curve.marked || points.len() == 1 {
            let marks = points.iter();
            let marks = marks.map(|&point| Circle::new(point, 3, color.filled()));
            chart.draw_series(marks)?;
        }
    }
    if panel.curves.len() > 1 {
        // Losses fall and metrics rise: where the curves are not.
        let position = match panel.title.as_str() {
            "loss" => SeriesLabelPosition::UpperRight,
            _ => SeriesLabelPosition::LowerRight,
        };
        chart
            .configure_series_labels()
            .position(position)
            .background_style(TRANSPARENT)
            .border_style(TRANSPARENT)
            .label_font(text)
            .draw()?;
    }
    Ok(())
}

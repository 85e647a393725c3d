//! The curves of a run as a picture: loss, metrics, learning rate, one panel each.

use std::fmt::Write;

use plotters::prelude::*;

use crate::history::History;
use crate::schedule::RatePlan;

/// A picture and what front ends without pictures show.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The picture.
    pub svg: String,
    /// The same in words.
    pub plain: String,
}

/// Size of a panel in pixels.
const PANEL: (u32, u32) = (430, 270);
/// The training curve; blue that holds on white.
const TRAINING: RGBColor = RGBColor(0x1f, 0x77, 0xb4);
/// The validation curve.
const VALIDATION: RGBColor = RGBColor(0xd6, 0x5f, 0x0e);

/// A line of a panel: its name, its points (optimizer step, value).
struct Curve {
    name: String,
    colour: RGBColor,
    points: Vec<(f64, f64)>,
    /// Points that are few are marked.
    marked: bool,
}

struct Panel {
    title: String,
    curves: Vec<Curve>,
}

impl History {
    /// The curves of loss, metrics and learning rate over the optimizer steps. The picture has a
    /// white ground of its own, so that it reads the same in a dark notebook.
    pub fn picture(&self) -> Picture {
        Picture {
            svg: drawn(&self.panels()),
            plain: self.to_plain(),
        }
    }

    fn panels(&self) -> Vec<Panel> {
        let training = |points: Vec<(f64, f64)>, marked| Curve {
            name: "training".to_owned(),
            colour: TRAINING,
            points,
            marked,
        };
        let validation = |points: Vec<(f64, f64)>| Curve {
            name: "validation".to_owned(),
            colour: VALIDATION,
            points,
            marked: true,
        };
        // The step at the end of each epoch.
        let end = |epoch: u64| {
            let of_epoch = self
                .executions
                .iter()
                .filter(|record| record.epoch == epoch);
            of_epoch.map(|record| record.step).max().unwrap_or(0) as f64
        };
        let losses = self
            .executions
            .iter()
            .map(|record| (record.step as f64, record.loss));
        let validated = self
            .epochs
            .iter()
            .filter_map(|record| Some((end(record.epoch), record.validation.as_ref()?.loss)));
        let mut panels = vec![Panel {
            title: "loss".to_owned(),
            curves: vec![
                training(losses.collect(), false),
                validation(validated.collect()),
            ],
        }];
        let metrics = self
            .epochs
            .first()
            .map_or(&[][..], |record| &record.metrics);
        for (index, metric) in metrics.iter().enumerate() {
            let trained = self
                .epochs
                .iter()
                .filter_map(|record| Some((end(record.epoch), record.metrics.get(index)?.value?)));
            let validated = self.epochs.iter().filter_map(|record| {
                let metrics = &record.validation.as_ref()?.metrics;
                Some((end(record.epoch), metrics.get(index)?.value?))
            });
            panels.push(Panel {
                title: metric.name.to_owned(),
                curves: vec![
                    training(trained.collect(), true),
                    validation(validated.collect()),
                ],
            });
        }
        let rates = self
            .executions
            .iter()
            .map(|record| (record.step as f64, record.learning_rate));
        panels.push(Panel {
            title: "learning rate".to_owned(),
            curves: vec![alone(rates.collect())],
        });
        let norms = self
            .executions
            .iter()
            .filter_map(|record| Some((record.step as f64, record.gradient_norm?)));
        panels.push(Panel {
            title: "gradient norm before clipping".to_owned(),
            curves: vec![alone(norms.collect())],
        });
        for panel in &mut panels {
            for curve in &mut panel.curves {
                curve.points.retain(|(x, y)| x.is_finite() && y.is_finite());
            }
            panel.curves.retain(|curve| !curve.points.is_empty());
        }
        panels.retain(|panel| !panel.curves.is_empty());
        panels
    }
}

impl RatePlan {
    /// The rate over the optimizer steps of the run, before the run.
    pub fn picture(&self) -> Picture {
        let points = self.points(400).into_iter();
        let points = points.map(|(step, rate)| (step as f64, rate)).collect();
        let panel = Panel {
            title: self.schedule.to_string(),
            curves: vec![alone(points)],
        };
        Picture {
            svg: drawn(&[panel]),
            plain: format!("{}: {self}", self.schedule),
        }
    }
}

/// The only curve of its panel, which needs no name.
fn alone(points: Vec<(f64, f64)>) -> Curve {
    Curve {
        name: String::new(),
        colour: TRAINING,
        points,
        marked: false,
    }
}

/// The panels side by side, as SVG.
fn drawn(panels: &[Panel]) -> String {
    let columns = (panels.len() as u32).clamp(1, 2);
    let rows = (panels.len() as u32).div_ceil(columns).max(1);
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

fn draw(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    panels: &[Panel],
    grid: (usize, usize),
) -> std::result::Result<(), Failure> {
    area.fill(&WHITE).map_err(|error| error.to_string())?;
    for (panel, area) in panels.iter().zip(area.split_evenly(grid)) {
        draw_panel(panel, &area)?;
    }
    area.present().map_err(|error| error.to_string())?;
    Ok(())
}

fn draw_panel(
    panel: &Panel,
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
) -> std::result::Result<(), Failure> {
    let points = || panel.curves.iter().flat_map(|curve| &curve.points);
    let (x, y) = (
        range(points().map(|point| point.0)),
        range(points().map(|point| point.1)),
    );
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .caption(&panel.title, ("sans-serif", 15))
        .x_label_area_size(32)
        .y_label_area_size(54)
        .build_cartesian_2d(x.0..x.1, y.0..y.1)?;
    chart
        .configure_mesh()
        .x_desc("optimizer step")
        .x_labels(5)
        .y_labels(5)
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(225, 225, 225))
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| number(*y))
        .label_style(("sans-serif", 12))
        .draw()?;
    for curve in &panel.curves {
        let colour = curve.colour;
        let line = LineSeries::new(curve.points.iter().copied(), colour.stroke_width(2));
        let drawn = chart.draw_series(line)?;
        if !curve.name.is_empty() {
            drawn.label(&curve.name).legend(move |(x, y)| {
                PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2))
            });
        }
        if curve.marked {
            let marks = curve
                .points
                .iter()
                .map(|&point| Circle::new(point, 3, colour.filled()));
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
            .background_style(WHITE.mix(0.85))
            .border_style(RGBColor(200, 200, 200))
            .label_font(("sans-serif", 12))
            .draw()?;
    }
    Ok(())
}

/// From the smallest to the largest, with some room; never empty.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    let room = match high - low {
        0.0 => high.abs().max(1.0) * 0.1,
        width => width * 0.05,
    };
    (low - room, high + room)
}

/// A number at an axis.
fn number(value: f64) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = match value.abs() {
        0.0 => write!(text, "0"),
        0.01..1000.0 => write!(text, "{value:.2}"),
        _ => write!(text, "{value:.1e}"),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{EpochRecord, ExecutionRecord, Measured};

    fn history(losses: &[f64]) -> History {
        let mut history = History::new("cpu:0".to_owned());
        for (index, &loss) in losses.iter().enumerate() {
            history.executions.push(ExecutionRecord {
                epoch: 0,
                first_batch: index as u64,
                batches: 1,
                optimizer_steps: 1,
                step: index as u64 + 1,
                loss,
                learning_rate: 5e-5,
                gradient_norm: None,
                seconds: 0.1,
            });
        }
        history.epochs.push(EpochRecord {
            epoch: 0,
            loss: 1.0,
            metrics: vec![Measured {
                name: "accuracy",
                value: Some(0.5),
            }],
            validation: None,
            learning_rate: 5e-5,
            seconds: 1.0,
            sequences_per_second: 1.0,
        });
        history
    }

    #[test]
    fn a_panel_for_everything_that_was_measured() {
        let svg = history(&[2.0, 1.5, 1.0]).picture().svg;
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        for title in ["loss", "accuracy", "learning rate"] {
            assert!(svg.contains(title), "{title}");
        }
        assert!(!svg.contains("macro_f1"));
    }

    #[test]
    fn the_rates_of_a_run_to_come() {
        use crate::schedule::{IntoSchedule, warmup_linear};
        let picture = warmup_linear(5e-5, 0.1).plan(189).picture();
        assert!(picture.svg.contains("warmup_linear(5e-5, 0.1)"));
        assert_eq!(
            picture.plain,
            "warmup_linear(5e-5, 0.1): 0 at step 0, 5e-5 at 18, 2.778e-5 at 94, 2.924e-7 at 188"
        );
        assert!(!1e-3.plan(0).picture().svg.contains("NaN"));
    }

    #[test]
    fn values_that_are_not_numbers_are_left_out() {
        let svg = history(&[f64::NAN, f64::INFINITY]).picture().svg;
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert!(!History::new(String::new()).picture().svg.contains("NaN"));
    }
}

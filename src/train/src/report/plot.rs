//! The curves of a run as a picture: loss, metrics, learning rate, one panel each.

use plotters::style::RGBColor;

use crate::report::history::History;
use crate::schedule::{RatePlan, short};

mod axis;
mod draw;

use axis::Axis;
use draw::{TRAINING, VALIDATION};

/// A picture and what front ends without pictures show.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The picture as SVG; empty if there is nothing to draw.
    pub svg: String,
    /// Each of its panels alone, for pages that arrange them by their own width.
    pub panels: Vec<String>,
    /// The same in words.
    pub plain: String,
}

/// A curve of more points is thinned out: no picture is wide enough to show more.
const MOST_POINTS: usize = 400;

/// A line of a panel: its name, its points (optimizer step, value).
struct Curve {
    name: String,
    color: RGBColor,
    points: Vec<(f64, f64)>,
    /// Points that are few are marked.
    marked: bool,
}

/// Curves over the same steps.
struct Panel {
    title: String,
    curves: Vec<Curve>,
    /// Whether the axis begins at 0.
    from_zero: bool,
    /// The steps after which the run was changed.
    edits: Vec<f64>,
}

impl Panel {
    fn points(&self) -> impl Iterator<Item = &(f64, f64)> {
        self.curves.iter().flat_map(|curve| &curve.points)
    }

    fn steps(&self) -> Axis {
        Axis::of_steps(self.points().map(|point| point.0))
    }

    fn values(&self) -> Axis {
        let values = self.points().map(|point| point.1);
        match self.from_zero {
            true => Axis::from_zero(values),
            false => Axis::of_values(values),
        }
    }

    fn of(title: &str, curves: Vec<Curve>) -> Self {
        Self {
            title: title.to_owned(),
            curves,
            from_zero: false,
            edits: Vec::new(),
        }
    }

    /// The rates of a run. A rate that never changes is named.
    fn of_rates(title: &str, rates: Vec<(f64, f64)>) -> Self {
        let title = match rates.first() {
            Some(&(_, first)) if rates.iter().all(|(_, rate)| *rate == first) => {
                format!("learning rate: constant {}", short(first))
            }
            _ => title.to_owned(),
        };
        Self {
            title,
            curves: vec![alone(rates)],
            from_zero: true,
            edits: Vec::new(),
        }
    }
}

/// Points of a curve: optimizer step and value.
type Points = Vec<(f64, f64)>;

impl History {
    /// The curves of loss, metrics and learning rate over the optimizer steps.
    pub fn picture(&self) -> Picture {
        picture(self.panels(), self.to_plain())
    }

    fn panels(&self) -> Vec<Panel> {
        let training = |points: Vec<(f64, f64)>, marked| Curve {
            name: "training".to_owned(),
            color: TRAINING,
            points,
            marked,
        };
        let validation = |points: Vec<(f64, f64)>| Curve {
            name: "validation".to_owned(),
            color: VALIDATION,
            points,
            marked: true,
        };
        let (losses, rates) = self.of_steps();
        let validated = self
            .epochs
            .iter()
            .filter_map(|record| Some((self.end(record.epoch), record.validation.as_ref()?.loss)));
        let mut panels = vec![Panel::of(
            "loss",
            vec![
                training(averaged(losses), false),
                validation(validated.collect()),
            ],
        )];
        let metrics = self
            .epochs
            .first()
            .map_or(&[][..], |record| &record.metrics);
        for (index, metric) in metrics.iter().enumerate() {
            let trained = self.epochs.iter().filter_map(|record| {
                Some((self.end(record.epoch), record.metrics.get(index)?.value?))
            });
            let validated = self.epochs.iter().filter_map(|record| {
                let metrics = &record.validation.as_ref()?.metrics;
                Some((self.end(record.epoch), metrics.get(index)?.value?))
            });
            let curves = vec![
                training(trained.collect(), true),
                validation(validated.collect()),
            ];
            panels.push(Panel::of(metric.name, curves));
        }
        panels.push(Panel::of_rates("learning rate", picked(rates)));
        let norms = self
            .executions
            .iter()
            .filter_map(|record| Some((record.step as f64, record.gradient_norm?)));
        let norms = vec![alone(averaged(norms.collect()))];
        panels.push(Panel::of("gradient norm before clipping", norms));
        for panel in &mut panels {
            panel.edits = self.edits.iter().map(|edit| edit.step as f64).collect();
        }
        panels
    }

    /// The step at the end of an epoch.
    fn end(&self, epoch: u64) -> f64 {
        let of_epoch = self
            .executions
            .iter()
            .filter(|record| record.epoch == epoch);
        of_epoch.map(|record| record.step).max().unwrap_or(0) as f64
    }

    /// Losses and rates by step; by execution where no step was recorded.
    fn of_steps(&self) -> (Points, Points) {
        let by_step = self
            .steps
            .iter()
            .map(|it| (it.step, it.loss, it.learning_rate));
        let by_execution = self
            .executions
            .iter()
            .map(|it| (it.step, it.loss, it.learning_rate));
        let samples: Vec<(u64, f64, f64)> = match self.steps.is_empty() {
            true => by_execution.collect(),
            false => by_step.collect(),
        };
        let losses = samples.iter().map(|it| (it.0 as f64, it.1));
        let rates = samples.iter().map(|it| (it.0 as f64, it.2));
        (losses.collect(), rates.collect())
    }
}

/// The training losses of two runs in one panel.
pub(crate) fn losses_beside(histories: [&History; 2], names: [&str; 2], plain: String) -> Picture {
    let curves = histories.iter().zip(names).zip([TRAINING, VALIDATION]);
    let curves = curves.map(|((history, name), color)| Curve {
        name: name.to_owned(),
        color,
        points: averaged(history.of_steps().0),
        marked: false,
    });
    picture(vec![Panel::of("loss", curves.collect())], plain)
}

impl RatePlan {
    /// The rate over the optimizer steps of the run, before the run.
    pub fn picture(&self) -> Picture {
        let points = self.points(MOST_POINTS as u64).into_iter();
        let points = points.map(|(step, rate)| (step as f64, rate)).collect();
        let panel = Panel::of_rates(&self.schedule.to_string(), points);
        let plain = match self.schedule.is_constant() {
            true => self.to_string(),
            false => format!("{}: {self}", self.schedule),
        };
        picture(vec![panel], plain)
    }
}

/// The picture of all panels that have a point. What is not a number is left out.
fn picture(mut panels: Vec<Panel>, plain: String) -> Picture {
    for panel in &mut panels {
        for curve in &mut panel.curves {
            curve.points.retain(|(x, y)| x.is_finite() && y.is_finite());
        }
        panel.curves.retain(|curve| !curve.points.is_empty());
    }
    panels.retain(|panel| !panel.curves.is_empty());
    let svg = match panels.is_empty() {
        true => String::new(),
        false => draw::together(&panels),
    };
    Picture {
        svg,
        panels: panels.iter().map(draw::alone).collect(),
        plain,
    }
}

/// The only curve of its panel, which needs no name.
fn alone(points: Vec<(f64, f64)>) -> Curve {
    Curve {
        name: String::new(),
        color: TRAINING,
        points,
        marked: false,
    }
}

/// Each point the mean of as many neighbors as are needed for [`MOST_POINTS`].
fn averaged(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    if points.len() <= MOST_POINTS {
        return points;
    }
    let chunks = points.chunks(points.len().div_ceil(MOST_POINTS));
    let mean = |chunk: &[(f64, f64)]| {
        let values = chunk.iter().map(|point| point.1).sum::<f64>();
        let last = chunk.last().map_or(0.0, |point| point.0);
        (last, values / chunk.len() as f64)
    };
    chunks.map(mean).collect()
}

/// Some of the points, the first and the last among them; none is changed.
fn picked(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    if points.len() <= MOST_POINTS {
        return points;
    }
    let last = points.len() - 1;
    let index = |nth: usize| nth * last / (MOST_POINTS - 1);
    (0..MOST_POINTS).map(|nth| points[index(nth)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::history::{EpochRecord, ExecutionRecord, Measured, StepRecord};

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
        let constant = 5e-5.plan(125).picture();
        assert_eq!(constant.plain, "constant 5e-5");
        assert!(constant.svg.contains("constant 5e-5"));
    }

    #[test]
    fn values_that_are_not_numbers_are_left_out() {
        let svg = history(&[f64::NAN, f64::INFINITY]).picture().svg;
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        let empty = History::new(String::new()).picture();
        assert!(empty.svg.is_empty() && empty.panels.is_empty());
    }

    /// The `y` of every point of the polylines.
    fn heights(svg: &str) -> Vec<f64> {
        let lines = svg.split("<polyline").skip(1);
        let points = lines.flat_map(|line| {
            let points = line.split("points=\"").nth(1).unwrap_or_default();
            points.split('"').next().unwrap_or_default().split(' ')
        });
        let heights = points.filter_map(|point| point.split_once(',')?.1.parse().ok());
        heights.collect()
    }

    #[test]
    fn a_constant_rate_is_a_line_at_its_value() {
        let picture = history(&[2.0, 1.5, 1.0]).picture();
        let rates = picture.panels.iter();
        let rates: Vec<_> = rates.filter(|svg| svg.contains("learning rate")).collect();
        let [svg] = rates.as_slice() else {
            panic!("one panel of rates: {}", picture.svg)
        };
        assert!(svg.contains("learning rate: constant 5e-5"), "{svg}");
        // The axis has the value, and no number below 0.
        assert!(svg.contains(">\n5e-5\n<"), "{svg}");
        assert!(!svg.contains(">\n-"), "{svg}");
        let heights = heights(svg);
        let drawn = heights.iter().rev().take(3).collect::<Vec<_>>();
        assert!(drawn.iter().all(|y| *y == drawn[0]), "{drawn:?}");
        assert!((60.0..180.0).contains(drawn[0]), "{drawn:?}");
    }

    #[test]
    fn a_warm_up_is_seen_whatever_an_execution_holds() {
        let mut history = history(&[]);
        for step in 1..=32 {
            history.steps.push(StepRecord {
                step,
                loss: 1.0 / step as f64,
                learning_rate: step.min(8) as f64 * 1e-5,
            });
        }
        let (_, rates) = history.of_steps();
        assert_eq!(rates.len(), 32);
        assert_eq!((rates[0], rates[31]), ((1.0, 1e-5), (32.0, 8e-5)));
        assert!(!history.picture().svg.contains("constant"));
    }

    #[test]
    fn long_runs_are_thinned_out() {
        let points: Vec<_> = (0..10_001).map(|step| (step as f64, step as f64)).collect();
        let some = picked(points.clone());
        assert_eq!(
            (some.len(), some[0], some[399]),
            (400, (0.0, 0.0), (10_000.0, 10_000.0))
        );
        let means = averaged(points);
        assert!(means.len() <= MOST_POINTS, "{}", means.len());
        assert_eq!(means[0], (25.0, 12.5));
    }

    /// The ratio of two colors as WCAG computes it.
    fn contrast(one: RGBColor, other: RGBColor) -> f64 {
        let luminance = |color: RGBColor| {
            let linear = |part: u8| match f64::from(part) / 255.0 {
                low if low <= 0.03928 => low / 12.92,
                part => ((part + 0.055) / 1.055).powf(2.4),
            };
            0.2126 * linear(color.0) + 0.7152 * linear(color.1) + 0.0722 * linear(color.2)
        };
        let (one, other) = (luminance(one) + 0.05, luminance(other) + 0.05);
        one.max(other) / one.min(other)
    }

    /// The grounds of JupyterLab, of nbconvert and of VS Code. WCAG asks for 3 to 1 of what is drawn; no ink
    /// has more than 4.35 to 1 on white and on JupyterLab's dark ground.
    #[test]
    fn every_color_is_seen_on_light_and_on_dark_ground() {
        for ground in [(255, 255, 255), (0x11, 0x11, 0x11), (0x1e, 0x1e, 0x1e)] {
            let ground = RGBColor(ground.0, ground.1, ground.2);
            assert!(contrast(draw::INK, ground) > 3.8, "{ground:?}");
            for color in [TRAINING, VALIDATION] {
                assert!(contrast(color, ground) > 3.8, "{color:?} {ground:?}");
            }
        }
        let svg = history(&[2.0, 1.0]).picture().svg;
        // No ground of its own.
        assert!(!svg.contains("#FFFFFF") && !svg.contains("<rect"), "{svg}");
    }

    #[test]
    fn texts_are_large_enough() {
        let svg = history(&[2.0, 1.0]).picture().svg;
        let sizes = svg.split("font-size=\"").skip(1);
        let sizes = sizes.filter_map(|rest| rest.split('"').next()?.parse::<f64>().ok());
        let sizes: Vec<f64> = sizes.collect();
        assert!(
            !sizes.is_empty() && sizes.iter().all(|size| *size >= 12.5),
            "{sizes:?}"
        );
    }
}

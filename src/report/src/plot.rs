//! The curves of a run as charts: loss, metrics, learning rate, one chart each.

use stratoscope_optim::schedule::{RatePlan, short};
use stratoscope_render::chart::{Chart, Content, Figure, Marker, MarkerKind, Scale, Series};

use crate::history::History;

/// A picture and what front ends without pictures show.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The picture as SVG; empty if there is nothing to draw.
    pub svg: String,
    /// The same for a page, as HTML: an image for each chart, side by side as far as the page is wide.
    pub html: String,
    /// The same in words.
    pub plain: String,
}

/// A curve of more points is thinned out: no picture is wide enough to show more.
const MAX_POINTS: usize = 400;
/// Width and height of a chart in pixels. Three stand side by side in a notebook on a wide screen.
const SIZE: (f64, f64) = (400.0, 270.0);

/// Points of a curve: optimizer step and value.
type Points = Vec<(f64, f64)>;

impl History {
    /// The curves of loss, metrics and learning rate over the optimizer steps. Dashed lines mark changes of the run and the
    /// best epoch.
    pub fn picture(&self) -> Picture {
        picture(self.charts(), "curves of the run", self.to_plain())
    }

    fn charts(&self) -> Vec<Chart> {
        let (losses, rates) = self.of_steps();
        let mut charts = self.of_epochs(averaged(losses));
        charts.push(chart_of_rates("learning rate", picked(rates)));
        let norms = self
            .executions
            .iter()
            .filter_map(|record| Some((record.step as f64, record.gradient_norm?)));
        let norms = Series::new("", averaged(norms.collect()));
        charts.push(chart("gradient norm before clipping", vec![norms]));
        let changes = self.edits.iter().map(|edit| Marker {
            at: edit.step as f64,
            kind: MarkerKind::Change,
        });
        for chart in &mut charts {
            chart.markers.extend(changes.clone());
        }
        charts
    }

    /// Loss and metrics, of training and of validation, with a mark at the best epoch.
    fn of_epochs(&self, losses: Points) -> Vec<Chart> {
        let validated = self
            .epochs
            .iter()
            .filter_map(|record| Some((self.end(record.epoch), record.validation.as_ref()?.loss)));
        let mut charts = vec![measured(
            "loss",
            Series::new("training", losses),
            validated.collect(),
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
            let trained = Series::new("training", trained.collect()).marked();
            charts.push(measured(metric.name, trained, validated.collect()));
        }
        let best = self.best_epoch.map(|epoch| Marker {
            at: self.end(epoch),
            kind: MarkerKind::Best,
        });
        for chart in &mut charts {
            chart.markers.extend(best);
        }
        charts
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

/// The training losses of two runs in one chart.
pub fn losses_beside(histories: [&History; 2], names: [&str; 2], plain: String) -> Picture {
    let curves = histories.iter().zip(names);
    let curves = curves.map(|(history, name)| Series::new(name, averaged(history.of_steps().0)));
    let charts = vec![chart("loss", curves.collect())];
    picture(charts, "the losses of the runs", plain)
}

/// The rate over the optimizer steps of a run, before the run.
pub fn rates(plan: &RatePlan) -> Picture {
    let points = plan.points(MAX_POINTS as u64).into_iter();
    let points = points.map(|(step, rate)| (step as f64, rate)).collect();
    let chart = chart_of_rates(&plan.schedule.to_string(), points);
    let plain = match plan.schedule.is_constant() {
        true => plan.to_string(),
        false => format!("{}: {plan}", plan.schedule),
    };
    picture(vec![chart], "the learning rate over the run", plain)
}

/// Training and, where it was measured, validation.
fn measured(title: &str, training: Series, validation: Points) -> Chart {
    let mut curves = vec![training];
    if !validation.is_empty() {
        curves.push(Series::new("validation", validation).marked());
    }
    chart(title, curves)
}

/// A chart over the optimizer steps, of the finite values.
fn chart(title: &str, mut curves: Vec<Series>) -> Chart {
    for curve in &mut curves {
        curve.points.retain(|(x, y)| x.is_finite() && y.is_finite());
    }
    Chart {
        title: title.to_owned(),
        x: "optimizer step".to_owned(),
        x_scale: Scale::Steps,
        size: SIZE,
        ..Chart::of(Content::Lines(curves))
    }
}

/// The rates of a run. The title names a rate that never changes.
fn chart_of_rates(title: &str, rates: Points) -> Chart {
    let title = match rates.first() {
        Some(&(_, first)) if rates.iter().all(|(_, rate)| *rate == first) => {
            format!("learning rate: constant {}", short(first))
        }
        _ => title.to_owned(),
    };
    Chart {
        y_scale: Scale::FromZero,
        ..chart(&title, vec![Series::new("", rates)])
    }
}

/// The picture of all charts that have a point.
fn picture(mut charts: Vec<Chart>, title: &str, plain: String) -> Picture {
    charts.retain(Chart::has_points);
    let figure = Figure(charts);
    Picture {
        svg: figure.svg(title),
        html: figure.html(),
        plain,
    }
}

/// Each point the mean of as many neighbors as are needed for [`MAX_POINTS`].
fn averaged(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    if points.len() <= MAX_POINTS {
        return points;
    }
    let chunks = points.chunks(points.len().div_ceil(MAX_POINTS));
    let mean = |chunk: &[(f64, f64)]| {
        let values = chunk.iter().map(|point| point.1).sum::<f64>();
        let last = chunk.last().map_or(0.0, |point| point.0);
        (last, values / chunk.len() as f64)
    };
    chunks.map(mean).collect()
}

/// Some of the points, the first and the last among them; none is changed.
fn picked(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    if points.len() <= MAX_POINTS {
        return points;
    }
    let last = points.len() - 1;
    let index = |nth: usize| nth * last / (MAX_POINTS - 1);
    (0..MAX_POINTS).map(|nth| points[index(nth)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Edit, EpochRecord, ExecutionRecord, Measured, StepRecord};

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
        use stratoscope_optim::schedule::{IntoSchedule, warmup_linear};
        let picture = super::rates(&warmup_linear(5e-5, 0.1).plan(189));
        assert!(picture.svg.contains("warmup_linear(5e-5, 0.1)"));
        assert_eq!(
            picture.plain,
            "warmup_linear(5e-5, 0.1): 0 at step 0, 5e-5 at 18, 2.778e-5 at 94, 2.924e-7 at 188"
        );
        assert!(!super::rates(&1e-3.plan(0)).svg.contains("NaN"));
        let constant = super::rates(&5e-5.plan(125));
        assert_eq!(constant.plain, "constant 5e-5");
        assert!(constant.svg.contains("constant 5e-5"));
    }

    #[test]
    fn values_that_are_not_numbers_are_left_out() {
        let svg = history(&[f64::NAN, f64::INFINITY]).picture().svg;
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        let empty = History::new(String::new()).picture();
        assert!(empty.svg.is_empty() && empty.html.is_empty());
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
        let charts = history(&[2.0, 1.5, 1.0]).charts().into_iter();
        let rates = charts.filter(|chart| chart.title.contains("learning rate"));
        let rates: Vec<_> = rates.map(|chart| chart.svg()).collect();
        let [svg] = rates.as_slice() else {
            panic!("one chart of rates: {rates:?}")
        };
        assert!(svg.contains("learning rate: constant 5e-5"), "{svg}");
        // The axis has the value, and no number below 0.
        assert!(svg.contains(">5e-5<"), "{svg}");
        assert!(!svg.contains(">-"), "{svg}");
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
        assert!(means.len() <= MAX_POINTS, "{}", means.len());
        assert_eq!(means[0], (25.0, 12.5));
    }

    #[test]
    fn the_best_epoch_and_changes_are_marked() {
        let mut history = history(&[2.0, 1.0]);
        let unmarked = history.picture().svg;
        assert!(!unmarked.contains("stroke-dasharray"), "{unmarked}");
        history.best_epoch = Some(0);
        let markers = |history: &History| {
            let charts = history.charts().into_iter();
            charts.map(|chart| chart.markers.len()).collect::<Vec<_>>()
        };
        // Loss and accuracy, not the rate and the norm.
        assert_eq!(markers(&history), [1, 1, 0, 0]);
        history.edits.push(Edit {
            step: 1,
            what: "learning rate 1e-5 from here on".to_owned(),
        });
        assert_eq!(markers(&history), [2, 2, 1, 1]);
        let html = history.picture().html;
        let alt = "alt=\"loss: 1 line of 2 points; training from 2 to 1; best at 2; change at 1\"";
        assert!(html.contains(alt), "{html}");
    }
}

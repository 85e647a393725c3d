//! [`RateCurve`]: losses of a short run whose learning rate grows from step to step, and the rates that they speak for. Source:
//! Smith 2017, "Cyclical Learning Rates for Training Neural Networks", section 3.3; the smoothing and the two suggestions are those
//! of fastai's `lr_find` (`steep` and `minimum`).

use std::fmt;

use stratoscope_optim::schedule::short;
use stratoscope_render::chart::{Chart, Content, Figure, Series};
use stratoscope_render::html::prose;
use stratoscope_render::text;

use crate::inspection::{notes_html, title_html};

/// What a smoothed loss keeps of the one before.
const SMOOTHING: f64 = 0.98;
/// Losses that are this many times the lowest one end a ramp.
const DIVERGED: f64 = 4.0;
/// The share of the first loss by which the smoothed one has to fall for a rate to be suggested.
const MIN_FALL: f64 = 0.01;

/// A step of the ramp.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatePoint {
    /// The learning rate of the step.
    pub rate: f64,
    /// The mean loss over the examples of the step, before its update.
    pub loss: f64,
    /// The exponential moving average of the losses to this step, corrected for its begin.
    pub smoothed: f64,
}

/// Why the ramp ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RampEnd {
    /// All steps were made.
    Complete,
    /// The smoothed loss was more than four times the lowest one.
    Diverged,
    /// A loss, a gradient or a weight was not finite.
    NotFinite,
}

/// The losses of a ramp of learning rates.
#[derive(Clone, PartialEq)]
pub struct RateCurve {
    /// The steps that were made, in their order.
    pub points: Vec<RatePoint>,
    /// How many were planned.
    pub planned: usize,
    /// Why it ended.
    pub end: RampEnd,
    /// The model: `BertForSequenceClassification`.
    pub model: String,
    /// The optimizer with the schedule of `compile!`.
    pub optimizer: String,
}

impl RateCurve {
    /// A curve without a step.
    pub fn new(model: String, optimizer: String, planned: usize) -> Self {
        Self {
            points: Vec::new(),
            planned,
            end: RampEnd::Complete,
            model,
            optimizer,
        }
    }

    /// Adds the loss of a step. Whether the ramp has diverged.
    pub fn add(&mut self, rate: f64, loss: f64) -> bool {
        let steps = self.points.len() as i32 + 1;
        // The average before the correction.
        let before = self.points.last().map_or(0.0, |last| {
            last.smoothed * (1.0 - SMOOTHING.powi(steps - 1))
        });
        let average = SMOOTHING * before + (1.0 - SMOOTHING) * loss;
        let smoothed = average / (1.0 - SMOOTHING.powi(steps));
        self.points.push(RatePoint {
            rate,
            loss,
            smoothed,
        });
        let lowest = self.lowest().map_or(f64::INFINITY, |it| it.smoothed);
        smoothed > DIVERGED * lowest
    }

    /// The step with the lowest smoothed loss.
    pub fn lowest(&self) -> Option<RatePoint> {
        let points = self.points.iter().copied();
        points.min_by(|a, b| a.smoothed.total_cmp(&b.smoothed))
    }

    /// The rate at which the smoothed loss falls fastest, by the logarithm of the rate. The first tenth of the steps is left out:
    /// there the average is of few losses. `None` where it never falls.
    pub fn steepest(&self) -> Option<f64> {
        let slope = |pair: &[RatePoint]| {
            let run = pair[1].rate.ln() - pair[0].rate.ln();
            (pair[1].smoothed - pair[0].smoothed) / run
        };
        let pairs = self.points.windows(2).skip(self.points.len() / 10);
        let steepest = pairs.min_by(|a, b| slope(a).total_cmp(&slope(b)))?;
        (slope(steepest) < 0.0).then(|| steepest[0].rate)
    }

    /// A tenth of the rate of the lowest smoothed loss.
    pub fn tenth_of_lowest(&self) -> Option<f64> {
        Some(self.lowest()?.rate / 10.0)
    }

    /// The lower one of [`steepest`](Self::steepest) and [`tenth_of_lowest`](Self::tenth_of_lowest): a rate to begin with. `None`
    /// where the smoothed loss fell by less than a hundredth of the first one.
    pub fn suggestion(&self) -> Option<f64> {
        let (first, lowest) = (self.points.first()?, self.lowest()?);
        let has_fallen = first.smoothed - lowest.smoothed > MIN_FALL * first.smoothed.abs();
        let (steepest, tenth) = (self.steepest()?, self.tenth_of_lowest()?);
        has_fallen.then(|| steepest.min(tenth))
    }

    fn title(&self) -> String {
        let ends = [self.points.first(), self.points.last()];
        let ramp = match ends {
            [Some(first), Some(last)] => format!(
                ", {} from {} to {}",
                text::count(self.points.len(), "step"),
                short(first.rate),
                short(last.rate)
            ),
            _ => String::new(),
        };
        format!("learning rates of {}{ramp}", self.model)
    }

    fn sentence(&self) -> String {
        match self.suggestion() {
            Some(rate) => format!("suggested: `{}`", rounded(rate)),
            None => "no rate is suggested: the loss did not fall by a hundredth".to_owned(),
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let (Some(steepest), Some(tenth), Some(lowest)) =
            (self.steepest(), self.tenth_of_lowest(), self.lowest())
        {
            notes.push(format!(
                "the loss falls fastest at {}; it is lowest, {:.4}, at {}, a tenth of which is {}",
                rounded(steepest),
                lowest.smoothed,
                rounded(lowest.rate),
                rounded(tenth)
            ));
        }
        let made = format!(
            "{} of {}",
            self.points.len(),
            text::count(self.planned, "step")
        );
        notes.extend(match self.end {
            RampEnd::Complete => None,
            RampEnd::Diverged => Some(format!(
                "it ended after {made}: the smoothed loss was four times the lowest one"
            )),
            RampEnd::NotFinite => Some(format!(
                "it ended after {made}: the next one had numbers that are not finite"
            )),
        });
        notes.push(format!(
            "the steps were made by a copy of the model, with `{}` and these rates instead of its own; the model is unchanged",
            self.optimizer
        ));
        notes
    }

    /// Loss and smoothed loss over the logarithm of the rate.
    pub fn chart(&self) -> Chart {
        let points = |value: fn(&RatePoint) -> f64| {
            let points = self.points.iter();
            points.map(|it| (it.rate.log10(), value(it))).collect()
        };
        Chart {
            title: "loss by learning rate".to_owned(),
            x: "log₁₀ of the learning rate".to_owned(),
            y: "loss".to_owned(),
            ..Chart::of(Content::Lines(vec![
                Series::new("loss", points(|it| it.loss)),
                Series::new("smoothed", points(|it| it.smoothed)),
            ]))
        }
    }

    /// As text.
    pub fn to_plain(&self) -> String {
        self.to_string()
    }

    /// As static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        let answer = format!(
            "<div style=\"font-size:13px;margin:2px 0\">{}</div>",
            prose(&self.sentence())
        );
        let chart = match self.points.is_empty() {
            true => String::new(),
            false => Figure(vec![self.chart()]).html(),
        };
        title_html(&self.title()) + &answer + &chart + &notes_html(&self.notes())
    }
}

/// Two digits: a ramp tells no more.
fn rounded(rate: f64) -> String {
    let two: f64 = format!("{rate:.1e}").parse().unwrap_or(rate);
    format!("{two:e}")
}

impl fmt::Display for RateCurve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title())?;
        writeln!(f, "{}", self.sentence())?;
        if !self.points.is_empty() {
            writeln!(f, "{}", self.chart().plain().trim_end())?;
        }
        let notes: Vec<String> = self.notes().iter().map(|it| format!("- {it}")).collect();
        f.write_str(&notes.join("\n"))
    }
}

impl fmt::Debug for RateCurve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A curve that falls to a rate of 0.1 and rises beyond.
    fn curve(loss: impl Fn(f64) -> f64, steps: usize) -> RateCurve {
        let mut curve = RateCurve::new("Two".to_owned(), "SGD::new(0.01)".to_owned(), steps);
        for step in 0..steps {
            let power = -6.0 + 7.0 * step as f64 / (steps - 1) as f64;
            if curve.add(10_f64.powf(power), loss(power)) {
                curve.end = RampEnd::Diverged;
                break;
            }
        }
        curve
    }

    #[test]
    fn the_average_is_that_of_the_definition() {
        let losses = [3.0, 1.0, 4.0, 1.0, 5.0];
        let mut curve = RateCurve::new(String::new(), String::new(), 5);
        for (at, loss) in losses.into_iter().enumerate() {
            curve.add(1e-3 * (at + 1) as f64, loss);
            // Σ 0.98^(n − i) · loss i over the sum of these weights.
            let weights: Vec<f64> = (0..=at)
                .rev()
                .map(|age| 0.98_f64.powi(age as i32))
                .collect();
            let sum: f64 = weights
                .iter()
                .zip(losses)
                .map(|(weight, it)| weight * it)
                .sum();
            let expected = sum / weights.iter().sum::<f64>();
            let found = curve.points[at].smoothed;
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
    }

    #[test]
    fn a_rate_is_suggested_where_the_loss_has_fallen() {
        // Steepest at 1e-3, lowest shortly before it explodes.
        let loss = |power: f64| match power < 0.0 {
            true => 1.0 + 1.0 / (1.0 + (4.0 * (power + 3.0)).exp()),
            false => 2.0 + 1000.0 * power,
        };
        let curve = curve(loss, 400);
        assert_eq!(curve.end, RampEnd::Diverged);
        assert!(curve.points.len() < 400);
        let steepest = curve.steepest().expect("it falls");
        assert!((3e-4..1e-2).contains(&steepest), "{steepest}");
        let tenth = curve.tenth_of_lowest().expect("it has points");
        assert_eq!(curve.suggestion(), Some(steepest.min(tenth)));
        let shown = curve.to_string();
        for words in ["suggested: `", "fastest at", "four times", "is unchanged"] {
            assert!(shown.contains(words), "{shown}");
        }
        let html = curve.to_html();
        assert!(html.contains("<img") && !html.contains("<script"), "{html}");
    }

    #[test]
    fn nothing_is_suggested_for_a_loss_that_does_not_fall() {
        let flat = curve(|power| 2.0 + 1e-6 * power, 50);
        assert_eq!((flat.suggestion(), flat.end), (None, RampEnd::Complete));
        assert!(flat.to_string().contains("did not fall"), "{flat}");
        let none = RateCurve::new("<b>".to_owned(), String::new(), 10);
        assert_eq!((none.suggestion(), none.lowest()), (None, None));
        assert!(none.to_html().contains("&lt;b&gt;"));
        assert!(!none.to_string().is_empty());
    }
}

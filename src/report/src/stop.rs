//! [`Stop`]: where a run of `start!` has stopped, and why. At a breakpoint it is a card: the condition, the numbers of
//! the step that was not made, the latest steps as a picture, and what to look at next.

use std::fmt::{self, Write};

use serde::Serialize;
use stratoscope_render::chart::{Series, Sparkline};
use stratoscope_render::html::{DATA_TABLE_STYLE, escape, picture, prose};
use stratoscope_render::text;

use super::run_report::{Position, StepNumbers, StepPoint, html, latest};
use crate::html::rate;

/// Why a run stopped.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum StopReason {
    /// It made the steps that it was asked for.
    Reached,
    /// It was interrupted.
    Interrupted,
    /// A condition of `break_when` holds for the coming step.
    Breakpoint(Box<Hit>),
    /// There are no more steps.
    Complete,
}

/// A condition that holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hit {
    /// The condition as written: `spike(4.0)`.
    pub condition: String,
    /// Why it holds.
    pub why: String,
    /// The step that was not made.
    pub step: StepNumbers,
}

/// A run that has stopped: where, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stop {
    /// What a fork is called: `fork 1`; empty for a run that is none.
    pub run: String,
    /// Why.
    pub reason: StopReason,
    /// Where it stands.
    pub position: Position,
    /// The latest steps, at most 20.
    pub recent: Vec<StepPoint>,
}

/// So many rows of a batch, and layers, are listed.
const LISTED: usize = 12;
const LAYERS: usize = 3;

impl Stop {
    /// A stop after these latest steps; the run has no name yet.
    pub fn new(
        reason: StopReason,
        position: Position,
        recent: impl IntoIterator<Item = StepPoint>,
    ) -> Self {
        Self {
            run: String::new(),
            reason,
            position,
            recent: recent.into_iter().collect(),
        }
    }

    /// The loss of the latest step that was made.
    pub fn loss(&self) -> Option<f64> {
        self.recent.last().map(|step| step.loss)
    }

    /// The condition that holds, at a breakpoint.
    pub fn hit(&self) -> Option<&Hit> {
        match &self.reason {
            StopReason::Breakpoint(hit) => Some(hit),
            _ => None,
        }
    }

    /// Where and why, with the name of the run.
    pub fn headline(&self) -> String {
        let position = &self.position;
        let what = self.what(position);
        match self.run.as_str() {
            "" => what,
            run => format!("{run}, {what}"),
        }
    }

    /// Where and why, without the name of the run.
    pub(super) fn what(&self, position: &Position) -> String {
        match &self.reason {
            StopReason::Reached if position.batch == 0 && position.epoch > 0 => format!(
                "stands after epoch {} of {}, next: {position}",
                position.epoch, position.epochs
            ),
            StopReason::Reached => format!("next: {position}"),
            StopReason::Interrupted => format!("interrupted, next: {position}"),
            StopReason::Breakpoint(hit) => {
                format!("`{}` stopped it before {position}", hit.condition)
            }
            StopReason::Complete if position.step < position.steps => {
                // Steps were left out, or it was stopped early.
                let made = text::thousands(usize::try_from(position.step).unwrap_or(usize::MAX));
                format!("no steps are left after step {made}; `run.finish()?` ends the run")
            }
            StopReason::Complete => {
                let steps = text::thousands(usize::try_from(position.steps).unwrap_or(usize::MAX));
                format!("all {steps} steps are done; `run.finish()?` ends the run")
            }
        }
    }

    /// As plain text.
    pub fn to_plain(&self) -> String {
        let mut lines = vec![self.headline()];
        if let Some(hit) = self.hit() {
            lines.push(hit.why.clone());
            let rows = hit.rows();
            let width = rows.iter().map(|(name, _)| name.chars().count()).max();
            let width = width.unwrap_or(0);
            lines.extend(
                rows.iter()
                    .map(|(name, value)| format!("  {name:width$}  {value}")),
            );
            lines.extend(
                self.sparkline()
                    .map(|line| format!("  {:width$}  {line}", "losses")),
            );
            lines.push("look next:".to_owned());
            lines.extend(hit.look_next().iter().map(|next| format!("  {next}")));
        } else {
            lines.extend(latest(&self.recent, &self.position));
        }
        lines.join("\n")
    }

    /// As HTML without scripts or style sheets.
    pub fn to_html(&self) -> String {
        let Some(hit) = self.hit() else {
            let lines = [self.headline()].into_iter();
            let lines: Vec<String> = lines.chain(latest(&self.recent, &self.position)).collect();
            return html(&lines);
        };
        let mut card = format!(
            "<div style=\"border-left:4px solid #c98a1b;padding:2px 12px;margin:4px 0;font-size:13px\">\
             <div style=\"font-weight:600\">{}</div><div style=\"margin:2px 0\">{}</div>\
             <table style=\"{DATA_TABLE_STYLE}\">",
            prose(&self.headline()),
            prose(&hit.why)
        );
        // Writing to a string cannot fail.
        for (name, value) in hit.rows() {
            let _ = write!(
                card,
                "<tr><td style=\"padding:1px 12px 1px 0;text-align:left;opacity:0.75\">{}</td>\
                 <td style=\"padding:1px 0;text-align:left\">{}</td></tr>",
                escape(&name),
                escape(&value)
            );
        }
        card.push_str("</table>");
        card.push_str(&self.curves(hit));
        card.push_str("<ul style=\"margin:2px 0;padding-left:18px\">");
        for next in hit.look_next() {
            let _ = write!(card, "<li>{}</li>", prose(&next));
        }
        card.push_str("</ul></div>");
        card
    }

    /// The losses as a line of blocks, the step that was not made at its end.
    fn sparkline(&self) -> Option<String> {
        const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let hit = self.hit()?;
        let losses = self.recent.iter().map(|step| step.loss);
        let losses: Vec<f64> = losses.chain([hit.step.loss]).collect();
        let finite = || losses.iter().copied().filter(|loss| loss.is_finite());
        let (low, high) = finite().fold((f64::MAX, f64::MIN), |(low, high), loss| {
            (low.min(loss), high.max(loss))
        });
        let block = |loss: &f64| match loss.is_finite() {
            true if high > low => BLOCKS[(7.0 * (loss - low) / (high - low)).round() as usize],
            true => BLOCKS[0],
            false => '✕',
        };
        (losses.len() > 1).then(|| losses.iter().map(block).collect())
    }

    /// Two small curves over the steps, loss and gradient norm, as images. The step that was not made is a ring.
    fn curves(&self, hit: &Hit) -> String {
        let losses = self.recent.iter().map(|step| step.loss);
        let norms = self.recent.iter().map(|step| step.gradient_norm);
        let norm = hit.step.gradient_norm.unwrap_or(f64::NAN);
        let curves: [(&str, Vec<f64>); 2] = [
            ("loss", losses.chain([hit.step.loss]).collect()),
            ("gradient norm", norms.chain([norm]).collect()),
        ];
        let images = curves.iter().enumerate().map(|(color, (name, values))| {
            let title =
                format!("{name} of the latest steps; the step that was not made is the last point");
            let points = values.iter().enumerate();
            let points = points.map(|(index, value)| (index as f64, *value));
            let sparkline = Sparkline {
                series: &Series::new(with_ends(name, values), points.collect()),
                size: (300.0, 84.0),
                color,
                is_last_planned: true,
                title: &title,
            };
            picture(&sparkline.svg(), &title)
        });
        format!("<div>{}</div>", images.collect::<String>())
    }
}

/// `loss, 1.2e0 to 3.4e0`.
fn with_ends(name: &str, values: &[f64]) -> String {
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    match (finite().reduce(f64::min), finite().reduce(f64::max)) {
        (Some(low), Some(high)) => format!("{name}, {low:.3e} to {high:.3e}"),
        _ => name.to_owned(),
    }
}

impl Hit {
    /// Names and values for the table of the card.
    fn rows(&self) -> Vec<(String, String)> {
        let step = &self.step;
        let row = |name: &str, value: String| (name.to_owned(), value);
        let mut rows = vec![row("loss", format!("{:.4}", step.loss))];
        rows.extend(
            step.gradient_norm
                .map(|norm| row("gradient norm", format!("{norm:.3e}"))),
        );
        rows.push(row("learning rate", rate(step.learning_rate)));
        rows.extend(
            step.accuracy
                .map(|it| row("accuracy of the batch", format!("{it:.3}"))),
        );
        let mut layers = step.update_ratios.clone();
        layers.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
        for layer in layers.iter().take(LAYERS) {
            let name = format!("update / weights of {}", layer.layer);
            rows.push((name, format!("{:.2e}", layer.ratio)));
        }
        let listed: Vec<String> = step
            .rows
            .iter()
            .take(LISTED)
            .map(usize::to_string)
            .collect();
        let more = match step.rows.len() > LISTED {
            true => ", …",
            false => "",
        };
        let examples = text::count(step.rows.len(), "example");
        let batch = format!(
            "batch {} of epoch {}, {examples}: rows {}{more}",
            step.batch + 1,
            step.epoch + 1,
            listed.join(", ")
        );
        rows.push(row("examples", batch));
        rows
    }

    /// What to look at next.
    fn look_next(&self) -> Vec<String> {
        let mut next = Vec::new();
        if self.step.non_finite.is_some() {
            next.push(
                "`run.why()?` replays the step and names the first output that is not finite"
                    .to_owned(),
            );
        }
        next.push("`run.batch()?` shows the texts and labels of this step".to_owned());
        if self.step.gradient_norm.is_some() {
            next.push(
                "`run.gradients()?` and `run.updates()?` show which layers it would change"
                    .to_owned(),
            );
        }
        next.push(
            "`run.step(1)?` tries the step again and stops again while the condition holds; after \
             `run.clear_breakpoints()?` it is made"
                .to_owned(),
        );
        next
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

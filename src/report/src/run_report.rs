//! What a run of `start!` says of itself: where it stands ([`RunReport`]), and the numbers of its steps.

use std::fmt;

use serde::Serialize;
use stratoscope_optim::schedule::short;
use stratoscope_render::html::prose;
use stratoscope_render::text;
use stratoscope_strategy::placement::bytes;

use crate::history::History;
use crate::stop::Stop;

/// One optimizer step, with what is known of it without more work.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StepPoint {
    /// Its number in the run, counted from 1.
    pub step: u64,
    /// The mean loss over its examples, before the update.
    pub loss: f64,
    /// The norm over all gradients, before clipping.
    pub gradient_norm: f64,
    /// The rate of its update.
    pub learning_rate: f64,
    /// The share of its examples that were answered right; `None` where outputs are numbers.
    pub accuracy: Option<f64>,
}

/// Where a run stands: always before an optimizer step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Position {
    /// Optimizer steps that are made.
    pub step: u64,
    /// Optimizer steps of the whole run.
    pub steps: u64,
    /// The epoch, counted from 0.
    pub epoch: u64,
    /// Epochs of the whole run.
    pub epochs: u64,
    /// Batches of the epoch that are done.
    pub batch: u64,
    /// Batches of an epoch.
    pub batches: u64,
    /// The rate of the coming step.
    pub learning_rate: f64,
}

impl fmt::Display for Position {
    /// The step that comes next: `step 12 of 94 (epoch 1, batch 12)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let thousands = |number: u64| text::thousands(number as usize);
        if self.step >= self.steps {
            return write!(f, "the end, after step {}", thousands(self.step));
        }
        write!(
            f,
            "step {} of {} (epoch {}, batch {})",
            thousands(self.step + 1),
            thousands(self.steps),
            self.epoch + 1,
            thousands(self.batch + 1)
        )
    }
}

/// The numbers of an optimizer step that is not made yet, as a condition sees them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepNumbers {
    /// Its number in the run, counted from 1.
    pub step: u64,
    /// The epoch, counted from 0.
    pub epoch: u64,
    /// Its first batch in the epoch, counted from 0.
    pub batch: u64,
    /// The mean loss over its examples.
    pub loss: f64,
    /// The norm over all gradients, before clipping; `None` where the loss is not finite, so that there are none.
    pub gradient_norm: Option<f64>,
    /// The rate that its update would have.
    pub learning_rate: f64,
    /// The share of its examples that are answered right; `None` where outputs are numbers.
    pub accuracy: Option<f64>,
    /// The best accuracy that ten steps in a row had.
    pub best_accuracy: Option<f64>,
    /// How much it would change each layer, where a condition or the card asks.
    pub update_ratios: Vec<LayerRatio>,
    /// What is infinite or no number.
    pub non_finite: Option<String>,
    /// The rows of its examples in the data set, counted from 0.
    pub rows: Vec<usize>,
}

/// How much an update changes a layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayerRatio {
    /// The layer: `bert.encoder.layer.3`.
    pub layer: String,
    /// The norm of the change as a share of the norm of the weights.
    pub ratio: f64,
}

/// The latest losses, the gradient norm of the last step, and the rate of the next.
pub(super) fn latest(recent: &[StepPoint], position: &Position) -> Option<String> {
    const LOSSES: usize = 5;
    let last = recent.last()?;
    let first = recent.len().saturating_sub(LOSSES);
    let losses = recent[first..]
        .iter()
        .map(|step| format!("{:.4}", step.loss));
    let losses: Vec<String> = losses.collect();
    Some(format!(
        "last losses {}; gradient norm {:.3e}; rate of the next step {}",
        losses.join(", "),
        last.gradient_norm,
        short(position.learning_rate)
    ))
}

pub(super) fn html(lines: &[String]) -> String {
    let lines: Vec<String> = lines
        .iter()
        .map(|line| {
            format!(
                "<div style=\"font-size:13px;margin:2px 0\">{}</div>",
                prose(line)
            )
        })
        .collect();
    lines.concat()
}

/// From where a run was forked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ForkOf {
    /// What it is called: `fork 1`; a fork of that one `fork 1.1`.
    pub label: String,
    /// The steps that the run had made.
    pub step: u64,
    /// What it takes of memory beside that run at most: weights, what the optimizer keeps, counts.
    pub bytes: u64,
}

/// What a run shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunReport {
    /// The model: `BertForSequenceClassification`.
    pub model: String,
    /// From where it was forked.
    pub fork: Option<ForkOf>,
    /// Replicas and devices in words.
    pub devices: String,
    /// Where it stands.
    pub position: Position,
    /// It is finished.
    pub is_over: bool,
    /// The latest steps, at most 20.
    pub recent: Vec<StepPoint>,
    /// Where and why the latest call left it.
    pub stop: Option<Stop>,
    /// The snapshots that it can be turned back to, in words.
    pub snapshots: Option<String>,
    /// What was measured so far.
    pub history: History,
}

impl RunReport {
    fn lines(&self) -> Vec<String> {
        let stands = match (self.is_over, &self.stop) {
            (true, _) => "finished".to_owned(),
            (false, Some(stop)) => stop.what(&stop.position),
            (false, None) => format!("next: {}", self.position),
        };
        let run = match &self.fork {
            None => "run".to_owned(),
            Some(fork) => format!("{}, made after step {},", fork.label, fork.step),
        };
        let mut lines = vec![format!(
            "{run} of {} on {}: {stands}",
            self.model, self.devices
        )];
        lines.extend(self.fork.as_ref().map(|fork| {
            format!(
                "weights and optimizer state of its own: {} when both have stepped; data and snapshots are shared",
                bytes(fork.bytes)
            )
        }));
        lines.extend(latest(&self.recent, &self.position).filter(|_| !self.is_over));
        lines.extend(self.snapshots.clone().filter(|_| !self.is_over));
        lines
    }

    /// As HTML without scripts or style sheets.
    pub fn to_html(&self) -> String {
        html(&self.lines())
    }

    /// As plain text.
    pub fn to_plain(&self) -> String {
        self.lines().join("\n")
    }
}

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

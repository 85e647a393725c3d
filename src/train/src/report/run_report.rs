//! What a run of `start!` says of itself: where it stands ([`RunReport`]), and why it stopped there ([`Stop`]).

use std::fmt;

use serde::Serialize;
use stratoscope_render::html::prose;
use stratoscope_render::text;

use crate::report::history::History;
use crate::schedule::short;

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
    /// `before step 12 of 94: epoch 1 of 2, 11 of 47 batches`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let thousands = |number: u64| text::thousands(number as usize);
        match self.step < self.steps {
            true => write!(f, "before step {}", thousands(self.step + 1))?,
            false => write!(f, "behind step {}", thousands(self.step))?,
        }
        write!(
            f,
            " of {}: epoch {} of {}, {} of {} batches",
            thousands(self.steps),
            self.epoch + 1,
            self.epochs,
            thousands(self.batch),
            thousands(self.batches)
        )
    }
}

/// Why a run stopped.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum StopReason {
    /// It made the steps that it was asked for.
    Reached,
    /// It was interrupted.
    Interrupted,
    /// There are no more steps.
    Complete,
}

/// A run that has stopped: where, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stop {
    /// Why.
    pub reason: StopReason,
    /// Where it stands.
    pub position: Position,
    /// The latest steps, at most 20.
    pub recent: Vec<StepPoint>,
}

impl Stop {
    pub(crate) fn new<'a>(
        reason: StopReason,
        position: Position,
        recent: impl IntoIterator<Item = &'a StepPoint>,
    ) -> Self {
        Self {
            reason,
            position,
            recent: recent.into_iter().copied().collect(),
        }
    }

    /// The loss of the latest step.
    pub fn loss(&self) -> Option<f64> {
        self.recent.last().map(|step| step.loss)
    }

    fn lines(&self) -> Vec<String> {
        let position = &self.position;
        let first = match self.reason {
            StopReason::Reached => format!("stands {position}"),
            StopReason::Interrupted => {
                format!("interrupted {position}; the next call goes on from here")
            }
            StopReason::Complete => {
                format!("all steps are made, {position}; `run.finish()?` ends the run")
            }
        };
        let mut lines = vec![first];
        lines.extend(latest(&self.recent, position));
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

/// Loss and gradient norm of the latest step, and the rate of the next.
fn latest(recent: &[StepPoint], position: &Position) -> Option<String> {
    let last = recent.last()?;
    Some(format!(
        "last step: loss {:.4}, gradient norm {:.3e}; rate of the next {}",
        last.loss,
        last.gradient_norm,
        short(position.learning_rate)
    ))
}

fn html(lines: &[String]) -> String {
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

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

/// What a run shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunReport {
    /// The model: `BertForSequenceClassification`.
    pub model: String,
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
            (false, Some(stop)) => stop.lines().swap_remove(0),
            (false, None) => format!("stands {}", self.position),
        };
        let mut lines = vec![format!(
            "run of {} on {}: {stands}",
            self.model, self.devices
        )];
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

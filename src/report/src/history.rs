//! [`History`]: what a run measured, by epoch and by execution.

use std::fmt::{self, Write};

use serde::Serialize;
use stratoscope_metrics::metric::Predicted;
use stratoscope_render::html::{DATA_TABLE_STYLE, data_table};
use stratoscope_render::text;

use crate::counters::Counters;
use crate::html::{CELL, HEAD, escape, prose};
use crate::text::{COLUMNS, table};

mod evaluation;
mod named;
mod records;
mod scores;

pub use evaluation::{CutTexts, OtherLength};
use named::Columns;
pub use records::Records;

/// The value of a metric; `None` where it is undefined, as F1 is without any positive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// The metric's name: `macro_f1`.
    pub name: &'static str,
    /// Its value.
    pub value: Option<f64>,
}

/// The style of a line below a table.
const NOTE: &str = "font-size:13px;opacity:0.8";

/// The note below a table lists this many of the latest requests; all are in the field `requests`.
const MAX_LISTED_REQUESTS: usize = 8;

/// Loss and metrics of a data set, without dropout.
#[derive(Clone, PartialEq, Serialize)]
pub struct Evaluation {
    /// The mean loss over the examples; of tagged words and hidden tokens, over these.
    pub loss: f64,
    /// The metrics over all examples.
    pub metrics: Vec<Measured>,
    /// How many examples.
    pub examples: usize,
    /// How often each class is a label, and how often it was predicted.
    pub predictions: Predicted,
    /// How long it took.
    pub seconds: f64,
    /// The metrics of which low values are good.
    #[serde(skip)]
    pub low_is_good: Vec<&'static str>,
    /// The texts that were cut, if any were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<CutTexts>,
    /// Where another `max_length` was asked for than that of the training.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_length: Option<OtherLength>,
}

/// One execution: what happened between two returns to the host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExecutionRecord {
    /// The epoch, counted from 0.
    pub epoch: u64,
    /// Its first batch in the epoch, counted from 0.
    pub first_batch: u64,
    /// How many batches it ran.
    pub batches: u64,
    /// How many optimizer steps it made; 0 while gradients are still being accumulated.
    pub optimizer_steps: u64,
    /// Optimizer steps of the run at its end, those of the epochs before `initial_epoch` included.
    pub step: u64,
    /// The mean loss over its examples, with dropout, before the updates.
    pub loss: f64,
    /// The rate of its last optimizer step; of the next one where it made none.
    pub learning_rate: f64,
    /// The norm over all gradients at its last optimizer step, before clipping; `None` where it made
    /// no step.
    pub gradient_norm: Option<f64>,
    /// How long it took.
    pub seconds: f64,
}

/// One optimizer step: a point of the curves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StepRecord {
    /// Its number in the run, counted from 1; steps of the epochs before `initial_epoch` are counted.
    pub step: u64,
    /// The mean loss over its examples, with dropout, before the update.
    pub loss: f64,
    /// The rate of its update.
    pub learning_rate: f64,
}

/// A change that was made to a run while it went on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Edit {
    /// Optimizer steps that were made before it.
    pub step: u64,
    /// What was changed, in words.
    pub what: String,
}

impl fmt::Display for Edit {
    /// `after step 40: learning rate 1e-5 from here on`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after step {}: {}", self.step, self.what)
    }
}

/// A request that reached a run from outside of its cells, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RequestRecord {
    /// Optimizer steps that were made before it.
    pub step: u64,
    /// How it came: `comm` or `socket`.
    pub from: String,
    /// The action with its arguments: `set_learning_rate {"rate":1e-5}`.
    pub request: String,
    /// What was done, or why it was refused.
    pub outcome: String,
}

impl fmt::Display for RequestRecord {
    /// `after step 40, by socket: skip_batch: batch 41 of epoch 1 left out`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            step,
            from,
            request,
            outcome,
        } = self;
        write!(f, "after step {step}, by {from}: {request}: {outcome}")
    }
}

/// One epoch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EpochRecord {
    /// Its number, counted from 0.
    pub epoch: u64,
    /// The mean loss over its examples, with dropout, while the weights changed.
    pub loss: f64,
    /// The metrics over its examples, likewise.
    pub metrics: Vec<Measured>,
    /// Loss and metrics of the validation data after it.
    pub validation: Option<Evaluation>,
    /// The rate of its last optimizer step.
    pub learning_rate: f64,
    /// How long training took, validation not counted.
    pub seconds: f64,
    /// Examples per second.
    pub sequences_per_second: f64,
}

/// What `fit!` returns.
#[derive(Clone, PartialEq, Serialize)]
pub struct History {
    /// The epochs that ended.
    pub epochs: Vec<EpochRecord>,
    /// Every execution.
    pub executions: Vec<ExecutionRecord>,
    /// Every optimizer step, whatever the number of steps in an execution.
    pub steps: Vec<StepRecord>,
    /// The changes that were made on the way.
    pub edits: Vec<Edit>,
    /// The requests that reached it by a comm or a socket, the oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestRecord>,
    /// What was counted.
    pub counters: Counters,
    /// The run was stopped; `fit!(…, resume = true)` goes on.
    pub interrupted: bool,
    /// Where and why a run of `start!` stands that is not finished.
    pub paused: Option<String>,
    /// Nothing had got better for as many epochs as `early_stopping` allows, or a callback stopped it.
    pub stopped_early: bool,
    /// The best epoch, counted from 0: the one with the lowest validation loss, or by what early
    /// stopping monitors.
    pub best_epoch: Option<u64>,
    /// What the best epoch is the best by: `validation loss`.
    pub best_by: String,
    /// The newest complete checkpoint (`every`).
    pub complete_checkpoint: Option<String>,
    /// Where `checkpoint` saved the weights.
    pub checkpoint: Option<String>,
    /// The model has the weights of that epoch, not of the last one.
    pub restored_best: bool,
    /// The model has the moving averages of its weights (`use_ema`), not those of the last step.
    pub averaged_weights: bool,
    /// What the loss was multiplied with in the end, under `mixed_float16`.
    pub loss_scale: Option<f64>,
    /// Replicas and devices in words.
    pub devices: String,
    /// The metrics of which low values are good.
    #[serde(skip)]
    pub low_is_good: Vec<&'static str>,
    /// For `history["loss"]`.
    #[serde(skip)]
    named: Columns,
}

impl History {
    /// Of a run that has not begun. `devices`: replicas and devices in words.
    pub fn new(devices: String) -> Self {
        Self {
            epochs: Vec::new(),
            executions: Vec::new(),
            steps: Vec::new(),
            edits: Vec::new(),
            requests: Vec::new(),
            counters: Counters::default(),
            interrupted: false,
            paused: None,
            stopped_early: false,
            best_epoch: None,
            best_by: "validation loss".to_owned(),
            complete_checkpoint: None,
            checkpoint: None,
            restored_best: false,
            averaged_weights: false,
            loss_scale: None,
            devices,
            low_is_good: Vec::new(),
            named: Columns::default(),
        }
    }

    /// Names no checkpoints any more: a fork writes none.
    pub fn forget_checkpoints(&mut self) {
        (self.complete_checkpoint, self.checkpoint) = (None, None);
    }

    /// Seconds of training, validation not counted.
    pub fn seconds(&self) -> f64 {
        self.executions.iter().map(|record| record.seconds).sum()
    }

    /// What is to be known beside the table, a sentence each.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = vec![format!("{} on {}", self.counters, self.devices)];
        if let Some(best) = self.best_epoch {
            let kept = if self.restored_best {
                "; the model has its weights"
            } else {
                ""
            };
            notes.push(format!(
                "best {} after epoch {}{kept}",
                self.best_by,
                best + 1
            ));
        }
        if let Some(scale) = self.loss_scale {
            let Counters {
                optimizer_steps,
                skipped_steps,
                ..
            } = self.counters;
            let skipped = match skipped_steps {
                0 => "no step was skipped".to_owned(),
                skipped => format!(
                    "{skipped} of {} were skipped, because a gradient was infinite",
                    text::count((optimizer_steps + skipped) as usize, "step")
                ),
            };
            // The CPU has no products of float16.
            let on_gpu = ["wgpu", "cuda"].iter().any(|it| self.devices.contains(it));
            let way = if on_gpu { "" } else { ", emulated" };
            notes.push(format!(
                "mixed_float16{way}: {skipped}; the loss is scaled by {scale:.0} now"
            ));
        }
        if self.averaged_weights {
            notes.push(
                "the model has the moving averages of its weights (`use_ema`); losses and metrics above \
                 were measured with the weights themselves"
                    .to_owned(),
            );
        }
        if self.stopped_early {
            notes.push(format!(
                "stopped early after {}",
                text::count(self.epochs.len(), "epoch")
            ));
        }
        if let Some(folder) = &self.checkpoint {
            let best = match self.best_epoch {
                Some(_) => format!(", of the best in `{folder}/best`"),
                None => String::new(),
            };
            notes.push(format!(
                "weights of the last epoch in `{folder}/last`{best}"
            ));
        }
        if let Some(stop) = &self.paused {
            notes.push(stop.clone());
        }
        if !self.edits.is_empty() {
            let edits: Vec<String> = self.edits.iter().map(Edit::to_string).collect();
            notes.push(format!("changed on the way: {}", edits.join("; ")));
        }
        notes.extend(self.requests_in_words());
        if let Some(path) = &self.complete_checkpoint {
            notes.push(format!(
                "newest complete checkpoint in `{path}`: `resume_from` goes on from it"
            ));
        }
        if self.interrupted {
            notes.push(match self.counters.batches {
                0 => "interrupted before the first batch: the model is as it was".to_owned(),
                _ => "interrupted: `fit!(…, resume = true)` goes on from here".to_owned(),
            });
        }
        notes
    }

    /// The latest requests from outside.
    fn requests_in_words(&self) -> Option<String> {
        let first = self.requests.len().saturating_sub(MAX_LISTED_REQUESTS);
        let latest: Vec<String> = (self.requests.get(first..)?.iter())
            .map(RequestRecord::to_string)
            .collect();
        let earlier = match first {
            0 => String::new(),
            count => format!("{} and then ", text::count(count, "request")),
        };
        (!latest.is_empty())
            .then(|| format!("requested from outside: {earlier}{}", latest.join("; ")))
    }

    /// A row an epoch, as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        let columns = records::columns(&self.epochs);
        let columns: Vec<String> = columns.iter().map(|name| escape(name)).collect();
        html_table(&columns, records::rows(&self.epochs), &self.notes())
    }

    /// A row an epoch, as text.
    pub fn to_plain(&self) -> String {
        let rows: Vec<_> = records::rows(&self.epochs).collect();
        table(&records::columns(&self.epochs), &rows) + &lines(&self.notes())
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

/// Notes below a table, each wrapped at a terminal's width.
fn lines(notes: &[String]) -> String {
    let lines = notes.iter().flat_map(|note| text::wrap(note, COLUMNS));
    lines.map(|line| line + "\n").collect()
}

fn html_table(
    columns: &[String],
    rows: impl Iterator<Item = Vec<String>>,
    notes: &[String],
) -> String {
    let mut html = data_table(DATA_TABLE_STYLE) + "<tr>";
    // Writing to a string cannot fail.
    for column in columns {
        let _ = write!(html, "<th style=\"{HEAD}\">{column}</th>");
    }
    html.push_str("</tr>");
    for row in rows {
        html.push_str("<tr>");
        for cell in row {
            let _ = write!(html, "<td style=\"{CELL}\">{}</td>", escape(&cell));
        }
        html.push_str("</tr>");
    }
    html.push_str("</table>");
    for note in notes {
        let _ = write!(html, "<div style=\"{NOTE}\">{}</div>", prose(note));
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn history() -> History {
        let metric = |value| Measured {
            name: "accuracy",
            value,
        };
        let validation = Evaluation {
            predictions: Predicted::default(),
            loss: 0.75,
            metrics: vec![metric(None)],
            examples: 5,
            seconds: 0.1,
            low_is_good: Vec::new(),
            cut: None,
            other_length: None,
        };
        let record = EpochRecord {
            epoch: 0,
            loss: 1.5,
            metrics: vec![metric(Some(0.25))],
            validation: Some(validation),
            learning_rate: 5e-5,
            seconds: 2.0,
            sequences_per_second: 12.0,
        };
        let mut history = History::new("cpu:0 (2 cores)".to_owned());
        history.epochs.push(record);
        history.best_epoch = Some(0);
        history.interrupted = true;
        history.counters.batches = 6;
        history
    }

    #[test]
    fn a_row_an_epoch() {
        let expected = "\
epoch    loss  accuracy  val loss  val accuracy     rate  seq/s   time
    1  1.5000    0.2500    0.7500     undefined  5.00e-5   12.0  2.0 s
0 executions, 0 optimizer steps, 0 all-reduces on cpu:0 (2 cores)
best validation loss after epoch 1
interrupted: `fit!(…, resume = true)` goes on from here
";
        assert_eq!(history().to_plain(), expected);
    }

    #[test]
    fn the_latest_requests_are_listed() {
        let mut history = history();
        for step in 0..10 {
            history.requests.push(RequestRecord {
                step,
                from: "socket".to_owned(),
                request: "skip_batch".to_owned(),
                outcome: "refused: all steps are done".to_owned(),
            });
        }
        let note = history.requests_in_words().expect("ten requests");
        assert!(note.starts_with("requested from outside: 2 requests and then after step 2, by socket: skip_batch: refused"));
        assert_eq!(note.matches("after step").count(), MAX_LISTED_REQUESTS);
        assert!(
            history
                .to_plain()
                .replace('\n', " ")
                .contains("by socket: skip_batch")
        );
    }

    #[test]
    fn html_has_inline_styles_only() {
        let html = history().to_html();
        let html = html.replace(" class=\"stratoscope-rows\"", "");
        assert!(!html.contains("<style") && !html.contains("class=") && !html.contains("var("));
        assert_eq!(html.matches("<tr>").count(), 2);
    }

    #[test]
    fn a_run_without_an_epoch_can_be_shown() {
        let history = History::new("cpu:0".to_owned());
        assert!(history.to_plain().starts_with("epoch  loss\n"));
    }
}

//! What the stages of a pipeline have, and what they did in the last step: when each computed and when it waited, how many
//! micro-batches it kept, what it sent.
//!
//! Times are those of the stages' threads. On logical devices all stages share one processor, and a stage that computes slows
//! the others down; then the measured waiting says little about devices of their own.

use std::fmt::{self, Write};

use stratoscope_render::html::{NOTE_STYLE, TITLE_STYLE, escape, picture};
use stratoscope_render::{text, units};
use stratoscope_strategy::strategy::{html_of, text_of};

/// A pass of a micro-batch through a stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PassTime {
    /// The micro-batch, counted from 0.
    pub micro_batch: usize,
    /// Forward or backward.
    pub is_forward: bool,
    /// Seconds since the step began.
    pub start: f64,
    /// Seconds since the step began.
    pub end: f64,
}

/// What a stage did in a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StageStep {
    /// Its passes, in their order.
    pub passes: Vec<PassTime>,
    /// Of how many micro-batches it kept activations at most.
    pub kept: usize,
    /// The bytes of these activations, estimated from the sizes of its layers; `None` where that is not known.
    pub kept_bytes: Option<u64>,
    /// Bytes that it sent to its neighbors: activations and their gradients.
    pub sent_bytes: u64,
}

impl StageStep {
    /// Seconds in which it computed.
    pub fn busy(&self) -> f64 {
        self.passes.iter().map(|it| it.end - it.start).sum()
    }
}

/// The forward and backward passes of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct PipelineStep {
    /// Micro-batches of the batch.
    pub micro_batches: usize,
    /// What each stage did, those of one replica after the other.
    pub stages: Vec<StageStep>,
}

impl PipelineStep {
    /// Seconds from the first pass to the end of the last.
    pub fn seconds(&self) -> f64 {
        let passes = || self.stages.iter().flat_map(|stage| &stage.passes);
        let start = passes().map(|it| it.start).fold(f64::INFINITY, f64::min);
        let end = passes().map(|it| it.end).fold(0.0, f64::max);
        (end - start).max(0.0)
    }

    /// The share of their time in which stages waited: idle time of all stages / (stages · time of the step).
    pub fn bubble(&self) -> f64 {
        let all = self.seconds() * self.stages.len() as f64;
        let busy: f64 = self.stages.iter().map(StageStep::busy).sum();
        match all > 0.0 {
            true => (1.0 - busy / all).max(0.0),
            false => 0.0,
        }
    }
}

/// What a stage has.
#[derive(Clone, Debug, PartialEq)]
pub struct StageRow {
    /// Its device.
    pub device: String,
    /// Its layers, in words.
    pub has: String,
    /// Bytes of its weights.
    pub weights: u64,
    /// Its share of the cost of all stages.
    pub share: f64,
}

/// The stages of a model, and its last step.
#[derive(Clone, Debug, PartialEq)]
pub struct PipelineReport {
    /// The strategy, in words.
    pub title: String,
    /// Replicas, each with all stages.
    pub replicas: usize,
    /// The stages, in their order, those of one replica after the other.
    pub stages: Vec<StageRow>,
    /// Micro-batches of a batch.
    pub micro_batches: usize,
    /// The share of their time in which stages of equal cost wait: (p − 1)/(m + p − 1).
    pub predicted: f64,
    /// The last step, if there was one.
    pub step: Option<PipelineStep>,
}

/// Columns of the timeline as text.
const COLUMNS: usize = 60;
/// The size of the drawing.
const WIDTH: f64 = 720.0;
const ROW: f64 = 26.0;
/// The width of a label, and of one that names a replica too.
const LABEL: f64 = 60.0;
const LABEL_OF_REPLICA: f64 = 130.0;

impl PipelineReport {
    /// The replica and the stage of a row.
    fn place(&self, row: usize) -> (usize, usize) {
        let each = (self.stages.len() / self.replicas.max(1)).max(1);
        (row / each, row % each)
    }

    /// A row in words: `stage 1`, or with several replicas `replica 0, stage 1`.
    fn label(&self, row: usize) -> String {
        let (replica, stage) = self.place(row);
        match self.replicas {
            0 | 1 => format!("stage {stage}"),
            _ => format!("replica {replica}, stage {stage}"),
        }
    }

    fn table(&self) -> Vec<Vec<String>> {
        let mut heads = vec!["stage", "device", "has", "weights", "cost"];
        if self.replicas > 1 {
            heads.insert(0, "replica");
        }
        if self.step.is_some() {
            heads.extend(["kept", "activations", "sent", "waited"]);
        }
        let heads = heads.into_iter().map(str::to_owned).collect();
        let seconds = self.step.as_ref().map_or(0.0, PipelineStep::seconds);
        let row = |(index, stage): (usize, &StageRow)| {
            let (replica, number) = self.place(index);
            let replica = (self.replicas > 1).then(|| replica.to_string());
            let mut row: Vec<String> = replica.into_iter().collect();
            row.extend([
                number.to_string(),
                stage.device.clone(),
                stage.has.clone(),
                units::bytes(stage.weights),
                percent(stage.share),
            ]);
            if let Some(did) = self.step.as_ref().and_then(|it| it.stages.get(index)) {
                let kept = did.kept_bytes;
                row.extend([
                    format!("{} of {}", did.kept, self.step_micro_batches()),
                    kept.map_or_else(|| "–".to_owned(), |it| format!("≈ {}", units::bytes(it))),
                    units::bytes(did.sent_bytes),
                    percent((1.0 - did.busy() / seconds.max(f64::MIN_POSITIVE)).max(0.0)),
                ]);
            }
            row
        };
        std::iter::once(heads)
            .chain(self.stages.iter().enumerate().map(row))
            .collect()
    }

    /// Micro-batches of the last step: fewer where it had the last examples of an epoch.
    fn step_micro_batches(&self) -> usize {
        (self.step.as_ref()).map_or(self.micro_batches, |step| step.micro_batches)
    }

    /// The waiting, predicted and measured.
    fn waiting(&self) -> String {
        let predicted = format!(
            "waiting predicted for stages of equal cost on devices of their own: (p − 1)/(m + p − 1) = {}",
            percent(self.predicted)
        );
        match &self.step {
            None => format!("{predicted}; no step was made yet"),
            Some(step) => format!(
                "{predicted}; measured in the last step ({}, {}): {}",
                micro_batches(step.micro_batches),
                units::seconds(step.seconds()),
                percent(step.bubble())
            ),
        }
    }

    /// A line for each stage: F where it computes forward, B backward, · where it waits.
    fn lines(&self) -> Vec<String> {
        let Some(step) = self.step.as_ref().filter(|step| step.seconds() > 0.0) else {
            return Vec::new();
        };
        let seconds = step.seconds();
        let line = |(index, stage): (usize, &StageStep)| {
            let sign = |column: usize| {
                let at = (column as f64 + 0.5) / COLUMNS as f64 * seconds;
                let found = stage.passes.iter().find(|it| it.start <= at && at < it.end);
                found.map_or('·', |it| if it.is_forward { 'F' } else { 'B' })
            };
            let signs: String = (0..COLUMNS).map(sign).collect();
            format!("{}  {signs}", self.label(index))
        };
        step.stages.iter().enumerate().map(line).collect()
    }

    /// The timeline as a drawing.
    fn drawing(&self) -> Option<String> {
        let step = self.step.as_ref().filter(|step| step.seconds() > 0.0)?;
        let (seconds, height) = (step.seconds(), ROW * step.stages.len() as f64 + 4.0);
        let before = match self.replicas {
            0 | 1 => LABEL,
            _ => LABEL_OF_REPLICA,
        };
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"11\">"
        );
        for (index, stage) in step.stages.iter().enumerate() {
            let top = ROW * index as f64 + 3.0;
            let middle = top + ROW / 2.0 + 1.0;
            // Writing to a string cannot fail.
            let _ = write!(
                svg,
                "<text x=\"0\" y=\"{middle}\" fill=\"#888888\">{}</text>\
                 <rect x=\"{before}\" y=\"{top}\" width=\"{}\" height=\"{}\" fill=\"#88888822\"/>",
                self.label(index),
                WIDTH - before,
                ROW - 6.0
            );
            for pass in &stage.passes {
                let place = |at: f64| before + at / seconds * (WIDTH - before);
                let (left, width) = (place(pass.start), place(pass.end) - place(pass.start));
                let (name, color) = match pass.is_forward {
                    true => ("F", "#2f7ed8"),
                    false => ("B", "#2f9e5b"),
                };
                let _ = write!(
                    svg,
                    "<rect x=\"{left:.1}\" y=\"{top}\" width=\"{:.1}\" height=\"{}\" fill=\"{color}\"/>",
                    (width - 0.6).max(0.4),
                    ROW - 6.0
                );
                /// Narrower ones have no name.
                const NAMED: f64 = 18.0;
                if width >= NAMED {
                    let _ = write!(
                        svg,
                        "<text x=\"{:.1}\" y=\"{middle}\" fill=\"#ffffff\" text-anchor=\"middle\">{name}{}</text>",
                        left + width / 2.0,
                        pass.micro_batch
                    );
                }
            }
        }
        svg.push_str("</svg>");
        Some(picture(
            &svg,
            "when each stage computed forward (F) and backward (B), and when it waited",
        ))
    }

    /// As HTML.
    pub fn to_html(&self) -> String {
        let mut html = format!(
            "<div style=\"{TITLE_STYLE}\">{}</div>{}<div style=\"{NOTE_STYLE}\">{}</div>",
            escape(&self.title),
            html_of(&self.table()),
            escape(&self.waiting())
        );
        html.extend(self.drawing());
        html
    }

    /// As text.
    pub fn to_plain(&self) -> String {
        let mut lines = text::wrap(&self.title, 80);
        lines.push(text_of(&self.table()));
        lines.extend(text::wrap(&self.waiting(), 80));
        lines.extend(self.lines());
        lines.join("\n")
    }
}

impl fmt::Display for PipelineReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn micro_batches(count: usize) -> String {
    match count {
        1 => "1 micro-batch".to_owned(),
        more => format!("{more} micro-batches"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step() -> PipelineStep {
        let pass = |micro_batch, is_forward, start: f64| PassTime {
            micro_batch,
            is_forward,
            start,
            end: start + 1.0,
        };
        let stage = |passes| StageStep {
            passes,
            kept: 1,
            kept_bytes: Some(2048),
            sent_bytes: 1024,
        };
        PipelineStep {
            micro_batches: 1,
            stages: vec![
                stage(vec![pass(0, true, 0.0), pass(0, false, 3.0)]),
                stage(vec![pass(0, true, 1.0), pass(0, false, 2.0)]),
            ],
        }
    }

    fn report(step: Option<PipelineStep>) -> PipelineReport {
        let stage = |device: &str| StageRow {
            device: device.to_owned(),
            has: "layers 0 to 2 <&>".to_owned(),
            weights: 4096,
            share: 0.5,
        };
        PipelineReport {
            title: "the stages of `pipeline#1`".to_owned(),
            replicas: 1,
            stages: vec![stage("cpu:0"), stage("cpu:1")],
            micro_batches: 1,
            predicted: 0.5,
            step,
        }
    }

    /// One micro-batch through two stages: each waits half of the time, as the formula says.
    #[test]
    fn the_bubble_is_the_idle_time() {
        let step = step();
        assert_eq!((step.seconds(), step.bubble()), (4.0, 0.5));
        let plain = report(Some(step)).to_plain();
        let line = |index: usize, signs: &str| format!("stage {index}  {signs}");
        let quarter = COLUMNS / 4;
        let row = |signs: [&str; 4]| signs.map(|sign| sign.repeat(quarter)).concat();
        assert!(
            plain.contains(&line(0, &row(["F", "·", "·", "B"]))),
            "{plain}"
        );
        assert!(
            plain.contains(&line(1, &row(["·", "F", "B", "·"]))),
            "{plain}"
        );
        assert!(
            plain.contains("measured in the last step (1 micro-batch, "),
            "{plain}"
        );
    }

    /// Two replicas of one stage each.
    #[test]
    fn a_row_names_its_replica() {
        let report = PipelineReport {
            replicas: 2,
            ..report(Some(step()))
        };
        let plain = report.to_plain();
        for line in ["replica 0, stage 0  FFF", "replica 1, stage 0  ···"] {
            assert!(plain.contains(line), "{plain}");
        }
        assert!(plain.lines().any(|line| line.starts_with("replica  stage")));
        let mut rows = plain.lines().filter(|line| line.starts_with("replica 1,"));
        assert!(rows.all(|line| line.chars().count() == 80), "{plain}");
    }

    #[test]
    fn the_card_is_escaped_and_says_what_is_not_there_yet() {
        let html = report(Some(step())).to_html();
        assert!(
            html.contains("&lt;&amp;&gt;") && html.contains("<img"),
            "{html}"
        );
        let planned = report(None);
        assert!(planned.to_plain().contains("no step was made yet"));
        assert!(!planned.to_html().contains("<img"));
    }
}

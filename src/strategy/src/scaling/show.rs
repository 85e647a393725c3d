//! A prediction as a page and as text.

use std::fmt;

use stratoscope_render::chart::{Chart, Content, Series};
use stratoscope_render::html::{NOTE_STYLE, escape, picture};

use super::words::{number, share, time};
use super::{ScalingPrediction, ScalingRow};
use crate::strategy::{html_of, text_of};

/// The heads of the columns.
const COLUMNS: [&str; 9] = [
    "workers",
    "step",
    "computing",
    "gradients",
    "chief",
    "efficiency",
    "examples/s",
    "snapshot every",
    "useful time",
];

fn cells(row: &ScalingRow) -> Vec<String> {
    let of_step = |part: f64| share(part / row.step);
    vec![
        row.workers.to_string(),
        time(row.step),
        of_step(row.computing),
        of_step(row.exchange),
        of_step(row.chief),
        share(row.efficiency),
        number(row.examples_per_second),
        time(row.snapshot_every),
        share(row.useful),
    ]
}

impl ScalingPrediction {
    /// Heads, then a row for each number of workers.
    fn table(&self) -> Vec<Vec<String>> {
        let heads = COLUMNS.map(str::to_owned).to_vec();
        let rows = self.rows.iter().map(cells);
        std::iter::once(heads).chain(rows).collect()
    }

    /// The numbers that it is made of.
    fn basis(&self) -> Vec<Vec<String>> {
        let heads = ["number", "value", "from"].map(str::to_owned).to_vec();
        let rows = self.parameters.iter().map(|it| {
            let source = it.source.name().to_owned();
            vec![it.name.to_owned(), it.value.clone(), source]
        });
        std::iter::once(heads).chain(rows).collect()
    }

    /// The efficiency of each pattern.
    fn chart(&self) -> Chart {
        let series = self.patterns.iter().map(|(pattern, line)| {
            let points = line
                .iter()
                .map(|(workers, efficiency)| ((*workers as f64).log2(), 100.0 * efficiency));
            Series::new(pattern.name(), points.collect())
        });
        let last = self.rows.last().map_or(1, |row| row.workers);
        Chart {
            title: format!("predicted efficiency up to {last} workers"),
            x: "workers, as powers of 2".to_owned(),
            y: "efficiency in %".to_owned(),
            ..Chart::of(Content::Lines(series.collect()))
        }
    }

    /// What is said around the tables.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        notes.push(match &self.measured {
            None => "No run of this strategy was measured.".to_owned(),
            Some(run) => {
                let shared = match run.cores {
                    Some(cores) if run.workers > cores => format!(
                        ", which shared {cores} cores: its seconds are divided by {}",
                        number(run.workers as f64 / cores as f64)
                    ),
                    _ => String::new(),
                };
                let (steps, workers) = (run.steps, run.workers);
                let between = match run.cores {
                    Some(_) => {
                        let (bits, latency) = (8.0 * run.bandwidth, run.latency);
                        format!(
                            " Between its processes, on one machine, gradients traveled at {} with {} for a hop.",
                            super::words::bits(bits),
                            time(latency)
                        )
                    }
                    None => String::new(),
                };
                format!("Measured: {steps} steps of {workers} workers{shared}.{between}")
            }
        });
        notes.push(match self.model.cores {
            Some(cores) => format!("All workers share the {cores} cores of one machine."),
            None => "Each worker has a machine of its own, as fast as that of the run.".to_owned(),
        });
        if self.model.exchanges_per_step < 1.0 {
            let every = number(1.0 / self.model.exchanges_per_step);
            notes.push(format!("Weights are averaged every {every} steps."));
        }
        notes.push(match self.any_ends_run {
            true => "The run ends with any of its workers.".to_owned(),
            false => "The run ends with its chief only; another worker that is lost costs a step and the time until it is \
                      noticed."
                .to_owned(),
        });
        notes.push(
            "Gradients go over the chain, as workers of this library send them; ring, tree and hierarchical are drawn to compare."
                .to_owned(),
        );
        notes
    }

    /// Tables and picture as HTML.
    pub fn to_html(&self) -> String {
        let line = |text: &str| format!("<div style=\"{NOTE_STYLE}\">{}</div>", escape(text));
        let chart = self.chart();
        let notes: String = self.notes().iter().map(|note| line(note)).collect();
        format!(
            "<div style=\"font-weight:600;margin:4px 0\">A prediction: nothing of it was measured</div>{}{}{}{notes}",
            html_of(&self.table()),
            picture(&chart.svg(), &chart.summary()),
            html_of(&self.basis()),
        )
    }

    /// The same as text.
    pub fn to_plain(&self) -> String {
        format!(
            "a prediction: nothing of it was measured\n{}\n\n{}\n\n{}\n\n{}",
            text_of(&self.table()),
            self.chart().plain(),
            text_of(&self.basis()),
            self.notes().join("\n")
        )
    }
}

impl fmt::Display for ScalingPrediction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

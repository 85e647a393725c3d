//! The table of a run, drawn again after every change.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use stratoscope_models::events::{Advanced, FitStarted};
use stratoscope_models::html::{escape, prose, rate, time, value};
use stratoscope_models::text::{COLUMNS, table};
use stratoscope_models::{EpochRecord, Measured};
use stratoscope_render::html::NOTE_STYLE;
use stratoscope_render::text;
use stratoscope_strategy::device::kernels;
use stratoscope_strategy::strategy::{Workers, html_of, text_of};
use stratoscope_wire::MimeBundle;

use super::rows;
use crate::display::html_and_plain;

/// The table of a run.
pub(super) struct Fit {
    pub started: FitStarted,
    pub display_id: String,
    pub begun: Instant,
    pub drawn: Instant,
    /// The kernels that were compiled for GPUs before it began.
    pub compiled_before: usize,
    /// Whether it is below the cell: that of a call that is over at once never is.
    pub is_shown: bool,
    /// The epochs that are over, and the batches of each.
    pub epochs: Vec<(EpochRecord, u64)>,
    pub best: Option<u64>,
    pub latest: Option<Advanced>,
    /// Validated examples of this epoch, and the number of all.
    pub validated: Option<(usize, usize)>,
    /// It waits between two optimizer steps.
    pub is_paused: bool,
    pub end: Option<End>,
}

/// How a run ended.
pub(super) enum End {
    Finished(Vec<String>),
    /// A call of a run of `start!` is over: where the run stands, and the notes.
    Stands(String, Vec<String>),
    Failed,
}

/// A bar of a share, 0 to 1.
fn bar(share: f64, width: u32, color: &str) -> String {
    let filled = (share.clamp(0.0, 1.0) * f64::from(width)).round();
    format!(
        "<div style=\"display:inline-block;width:{width}px;height:9px;\
         background-color:#80808047;border-radius:3px;vertical-align:middle\">\
         <div style=\"width:{filled}px;height:9px;background-color:{color};border-radius:3px\">\
         </div></div>"
    )
}

impl Fit {
    pub fn headline(&self) -> String {
        let started = &self.started;
        let validation = match started.validation_examples {
            0 => String::new(),
            count => format!(", {count} to validate on"),
        };
        format!(
            "{}{validation}, batches of {}, {} of {}, on {}",
            text::count(started.examples, "example"),
            started.batch_size,
            text::count(started.epochs as usize, "epoch"),
            text::count(started.batches_per_epoch as usize, "batch"),
            started.devices
        )
    }

    /// `learning rate 0 at step 0, 5e-5 at 18, 2.778e-5 at 94, 2.924e-7 at 188`.
    fn rates(&self) -> String {
        let changes = self.latest.iter().flat_map(|latest| &latest.rate_changes);
        let changes = changes.fold(String::new(), |line, change| format!("{line}; {change}"));
        format!("learning rate {}{changes}", self.started.rates)
    }

    /// The processes that compute.
    fn workers(&self) -> Option<&Workers> {
        self.latest.as_ref()?.workers.as_ref()
    }

    fn has_validation(&self) -> bool {
        self.started.validation_examples > 0
    }

    /// What is done. The last event of a run may come before its last batch, so at its end the history decides.
    fn done(&self) -> stratoscope_models::Counters {
        match (&self.end, &self.latest) {
            (None | Some(End::Failed), Some(latest)) => latest.counters,
            _ => self.started.counters,
        }
    }

    /// The share of the batches that are done.
    fn share(&self) -> f64 {
        self.done().batches as f64 / self.started.planned.batches.max(1) as f64
    }

    fn columns(&self) -> Vec<String> {
        let mut columns = vec!["epoch".to_owned(), "batch".to_owned(), "loss".to_owned()];
        columns.extend(self.started.metrics.iter().map(|name| (*name).to_owned()));
        if self.has_validation() {
            columns.push("val loss".to_owned());
            columns.extend(
                self.started
                    .metrics
                    .iter()
                    .map(|name| format!("val {name}")),
            );
        }
        columns.extend(["rate", "seq/s", "time"].map(str::to_owned));
        columns
    }

    /// The cells of the validation's columns, without values.
    fn leave_validation_blank(&self, row: &mut Vec<String>) {
        row.resize(row.len() + 1 + self.started.metrics.len(), String::new());
    }

    fn epoch_row(&self, record: &EpochRecord, batches: u64) -> Vec<String> {
        let best = if self.best == Some(record.epoch) {
            " ★"
        } else {
            ""
        };
        let mut row = vec![
            (record.epoch + 1).to_string(),
            format!("{batches}/{batches}"),
            format!("{:.4}", record.loss),
        ];
        row.extend(record.metrics.iter().map(|metric| value(Some(metric))));
        match &record.validation {
            Some(validation) => {
                row.push(format!("{:.4}{best}", validation.loss));
                row.extend(validation.metrics.iter().map(|metric| value(Some(metric))));
            }
            // `validation_freq` has left this epoch out.
            None if self.has_validation() => self.leave_validation_blank(&mut row),
            None => {}
        }
        row.push(rate(record.learning_rate));
        row.push(format!("{:.1}", record.sequences_per_second));
        row.push(time(record.seconds));
        row
    }

    /// The row of the current epoch.
    fn current_row(&self) -> Option<Vec<String>> {
        let latest = self.latest.as_ref()?;
        if self
            .epochs
            .last()
            .is_some_and(|(ended, _)| ended.epoch >= latest.epoch)
        {
            return None;
        }
        let mut row = vec![
            (latest.epoch + 1).to_string(),
            format!("{}/{}", latest.batches, latest.of_epoch),
            format!("{:.4}", latest.epoch_loss),
        ];
        row.extend(
            latest
                .epoch_metrics
                .iter()
                .map(|metric: &Measured| value(Some(metric))),
        );
        if self.has_validation() {
            self.leave_validation_blank(&mut row);
        }
        row.push(rate(latest.learning_rate));
        let speed = latest.sequences_per_second;
        row.push(speed.map_or_else(String::new, |speed| format!("{speed:.1}")));
        row.push(String::new());
        Some(row)
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let ended = self.epochs.iter();
        let ended = ended.map(|(record, batches)| self.epoch_row(record, *batches));
        ended.chain(self.current_row()).collect()
    }

    /// The state of the run in a few words, `elapsed` after its start.
    fn status(&self, elapsed: Duration) -> String {
        match &self.end {
            Some(End::Failed) => "stopped by an error".to_owned(),
            Some(End::Stands(words, _)) => words.clone(),
            Some(End::Finished(_)) if self.share() < 1.0 => {
                "ended before its last epoch".to_owned()
            }
            Some(End::Finished(_)) => "finished".to_owned(),
            None if self.is_paused => "paused".to_owned(),
            None => match (&self.latest, self.validated) {
                (None, _) => self.first_step(elapsed),
                (_, Some((done, total))) => format!(
                    "validating, {} of {}",
                    text::thousands(done),
                    text::count(total, "example")
                ),
                (Some(latest), None) => match latest.seconds_left {
                    Some(left) if left > 0.0 => format!("about {} left", time(left)),
                    Some(_) => "last batch done".to_owned(),
                    // The time of the first batch does not predict that of the others.
                    None => "running".to_owned(),
                },
            },
        }
    }

    /// What happens before the first batch is done; on a GPU it can take more than a minute.
    fn first_step(&self, elapsed: Duration) -> String {
        const WORTH_EXPLAINING: Duration = Duration::from_secs(1);
        if elapsed < WORTH_EXPLAINING {
            return "starting".to_owned();
        }
        let so_far = match elapsed.as_secs() {
            seconds @ 0..60 => format!("{seconds} s"),
            seconds => time(seconds as f64),
        };
        match self.started.compiles_for.as_slice() {
            [] => format!("first step, {so_far} so far"),
            gpus => {
                let compiled = kernels::compiled().unwrap_or(0);
                let kernels = match compiled.saturating_sub(self.compiled_before) {
                    0 => String::new(),
                    compiled => format!("{} compiled, ", text::count(compiled, "kernel")),
                };
                format!(
                    "first step: compiling and tuning kernels for {}, {kernels}{so_far} so far",
                    gpus.join(", ")
                )
            }
        }
    }

    /// The three counters and their planned values: `executions 3/12`.
    fn counters(&self) -> Vec<(&'static str, u64, u64)> {
        let now = self.done();
        let planned = self.started.planned;
        let (exchanges, made) = now.exchanges(&planned);
        vec![
            ("executions", now.executions, planned.executions),
            (
                "optimizer steps",
                now.optimizer_steps,
                planned.optimizer_steps,
            ),
            (exchanges, made, planned.exchanges(&planned).1),
        ]
    }

    pub fn bundle(&self) -> MimeBundle {
        html_and_plain(self.to_html(), self.to_plain())
    }

    fn to_html(&self) -> String {
        let color = match &self.end {
            Some(End::Failed) => "#c0392b",
            Some(End::Finished(_) | End::Stands(..)) if self.share() >= 1.0 => "#2e9e5b",
            Some(End::Finished(_)) => "#c98a1b",
            None | Some(End::Stands(..)) => "#2f7fd1",
        };
        let share = self.share();
        let mut html = format!(
            "<div style=\"{NOTE_STYLE}\">{} &nbsp;<b>{:.0} %</b> &nbsp;{}</div>",
            bar(share, 260, color),
            100.0 * share,
            prose(&self.status(self.begun.elapsed()))
        );
        let is_best = |(record, _): &(EpochRecord, u64)| self.best == Some(record.epoch);
        let best = self.epochs.iter().position(is_best);
        html += &rows::html(&self.columns(), &self.rows(), best, self.end.is_some());
        if let Some(workers) = self.workers() {
            html.push_str(&html_of(&workers.table()));
            if let Some(slowest) = workers.straggler() {
                // Writing to a string cannot fail.
                let _ = write!(
                    html,
                    "<div style=\"{NOTE_STYLE}\">{}</div>",
                    escape(&slowest)
                );
            }
        }
        let counters = self
            .counters()
            .into_iter()
            .map(|(name, now, planned)| format!("{name} <b>{now}</b>/{planned}"));
        let counters: Vec<String> = counters.collect();
        let _ = write!(
            html,
            "<div style=\"{NOTE_STYLE}\">{}</div>",
            counters.join(" &nbsp;·&nbsp; ")
        );
        let _ = write!(
            html,
            "<div style=\"{NOTE_STYLE}\">{}</div>",
            escape(&format!("{}; {}", self.headline(), self.rates()))
        );
        let below = [&self.started.chosen, &self.started.tokens];
        for line in below.into_iter().flatten() {
            let _ = write!(html, "<div style=\"{NOTE_STYLE}\">{}</div>", escape(line));
        }
        if let Some(End::Finished(notes) | End::Stands(_, notes)) = &self.end {
            for line in notes.iter().flat_map(|note| note.lines()) {
                let _ = write!(html, "<div style=\"{NOTE_STYLE}\">{}</div>", prose(line));
            }
        }
        html
    }

    fn to_plain(&self) -> String {
        let filled = (self.share().clamp(0.0, 1.0) * 20.0).round() as usize;
        let mut text = format!(
            "[{}{}] {:.0} %  {}\n",
            "#".repeat(filled),
            ".".repeat(20 - filled),
            100.0 * self.share(),
            self.status(self.begun.elapsed())
        );
        text += &table(&self.columns(), &self.rows());
        if let Some(workers) = self.workers() {
            let _ = writeln!(text, "{}", text_of(&workers.table()));
            text.extend(workers.straggler().map(|slowest| slowest + "\n"));
        }
        let counters = self.counters().into_iter();
        let counters = counters.map(|(name, now, planned)| format!("{name} {now}/{planned}"));
        let _ = writeln!(text, "{}", counters.collect::<Vec<_>>().join(" · "));
        let mut below = vec![self.headline(), self.rates()];
        below.extend(self.started.chosen.clone());
        below.extend(self.started.tokens.clone());
        if let Some(End::Finished(notes) | End::Stands(_, notes)) = &self.end {
            below.extend(notes.iter().cloned());
        }
        let below = below.iter().flat_map(|line| text::wrap(line, COLUMNS));
        text + &below.collect::<Vec<_>>().join("\n")
    }

    /// The line of an epoch in a terminal.
    pub fn epoch_line(&self, record: &EpochRecord) -> String {
        let columns = self.columns();
        let cells = columns.iter().zip(self.epoch_row(record, 0));
        let cells = cells.filter(|(name, cell)| *name != "batch" && !cell.is_empty());
        let cells = cells.map(|(name, cell)| format!("{name} {cell}"));
        cells.collect::<Vec<_>>().join("  ")
    }
}

/// A line with a bar.
pub(super) fn line_bundle(words: &str, share: f64) -> MimeBundle {
    let html = format!(
        "<div style=\"{NOTE_STYLE}\">{} &nbsp;{}</div>",
        bar(share, 260, "#2f7fd1"),
        escape(words)
    );
    html_and_plain(html, words.to_owned())
}

pub(super) fn evaluation_bundle(done: usize, total: usize) -> MimeBundle {
    let words = format!("evaluated {done}/{total} examples");
    line_bundle(&words, done as f64 / total.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use stratoscope_models::Counters;

    use super::*;

    fn fit() -> Fit {
        let planned = Counters {
            batches: 20,
            executions: 6,
            optimizer_steps: 20,
            all_reduces: 20,
            ..Counters::default()
        };
        Fit {
            started: FitStarted {
                run: 1,
                epochs: 2,
                batches_per_epoch: 10,
                batch_size: 4,
                examples: 39,
                validation_examples: 8,
                devices: "2 logical CPU devices".to_owned(),
                rates: "5e-5 at step 0".to_owned(),
                chosen: None,
                tokens: None,
                metrics: vec!["accuracy"],
                planned,
                counters: Counters::default(),
                is_piece: false,
                is_quiet: false,
                compiles_for: Vec::new(),
            },
            display_id: String::new(),
            begun: Instant::now(),
            drawn: Instant::now(),
            compiled_before: 0,
            is_shown: true,
            epochs: Vec::new(),
            best: None,
            latest: None,
            validated: None,
            is_paused: false,
            end: None,
        }
    }

    fn advanced() -> Advanced {
        Advanced {
            run: 1,
            epoch: 0,
            batches: 5,
            of_epoch: 10,
            epoch_loss: 1.75,
            epoch_metrics: vec![Measured {
                name: "accuracy",
                value: Some(0.5),
            }],
            learning_rate: 5e-5,
            rate_changes: Vec::new(),
            counters: Counters {
                batches: 5,
                executions: 1,
                optimizer_steps: 5,
                all_reduces: 5,
                ..Counters::default()
            },
            sequences_per_second: Some(20.0),
            seconds_left: Some(185.0),
            workers: None,
        }
    }

    #[test]
    fn the_table_says_where_the_run_is() {
        let mut fit = fit();
        assert!(
            fit.to_plain()
                .starts_with("[....................] 0 %  starting\n")
        );
        fit.latest = Some(advanced());
        let expected = "\
[#####...............] 25 %  about 3 min 05 s left
epoch  batch    loss  accuracy  val loss  val accuracy     rate  seq/s  time
    1   5/10  1.7500    0.5000                          5.00e-5   20.0      
executions 1/6 · optimizer steps 5/20 · all-reduces 5/20
39 examples, 8 to validate on, batches of 4, 2 epochs of 10 batches, on 2 logical CPU devices
learning rate 5e-5 at step 0";
        assert_eq!(fit.to_plain(), expected);
        let tokens = "tokens of 40 texts read from the cache";
        fit.started.tokens = Some(tokens.to_owned());
        assert_eq!(fit.to_plain(), format!("{expected}\n{tokens}"));
        assert!(fit.to_html().contains(tokens));
    }

    #[test]
    fn at_the_end_the_history_decides_what_is_done() {
        let mut fit = fit();
        // The last event came before the last batch.
        fit.latest = Some(advanced());
        fit.started.counters = fit.started.planned;
        fit.end = Some(End::Finished(Vec::new()));
        let table = fit.to_plain();
        assert!(
            table.starts_with("[####################] 100 %  finished\n"),
            "{table}"
        );
    }

    fn epoch(epoch: u64) -> EpochRecord {
        EpochRecord {
            epoch,
            loss: 1.75,
            metrics: vec![Measured {
                name: "accuracy",
                value: Some(0.5),
            }],
            validation: None,
            learning_rate: 5e-5,
            seconds: 2.0,
            sequences_per_second: 20.0,
        }
    }

    #[test]
    fn an_epoch_without_validation_keeps_its_columns() {
        let mut fit = fit();
        let record = epoch(0);
        let row = fit.epoch_row(&record, 10);
        assert_eq!(row.len(), fit.columns().len());
        assert_eq!(
            row[..7],
            ["1", "10/10", "1.7500", "0.5000", "", "", "5.00e-5"]
        );
        let line = fit.epoch_line(&record);
        let expected = "epoch 1  loss 1.7500  accuracy 0.5000  rate 5.00e-5  seq/s 20.0  time ";
        assert!(line.starts_with(expected), "{line}");
        fit.started.validation_examples = 0;
        let row = fit.epoch_row(&record, 10);
        assert_eq!(row.len(), fit.columns().len());
        assert_eq!(row[3..5], ["0.5000", "5.00e-5"]);
    }

    #[test]
    fn the_first_step_says_what_it_waits_for() {
        let mut fit = fit();
        let after = |fit: &Fit, seconds: u64| fit.status(Duration::from_secs(seconds));
        assert_eq!(after(&fit, 0), "starting");
        assert_eq!(after(&fit, 12), "first step, 12 s so far");
        fit.started.compiles_for = vec!["wgpu:0".to_owned()];
        let expected = "first step: compiling and tuning kernels for wgpu:0, 1 min 34 s so far";
        assert_eq!(after(&fit, 94), expected);
        // Its duration does not predict that of later steps.
        let mut first = advanced();
        (first.sequences_per_second, first.seconds_left) = (None, None);
        fit.latest = Some(first);
        assert_eq!(after(&fit, 94), "running");
        let table = fit.to_plain();
        let mut rows = table.lines().map(str::trim_end);
        assert!(rows.any(|row| row.ends_with("5.00e-5")), "{table}");
        fit.latest = Some(advanced());
        assert_eq!(after(&fit, 95), "about 3 min 05 s left");
        fit.validated = Some((3, 8));
        assert_eq!(after(&fit, 95), "validating, 3 of 8 examples");
        fit.is_paused = true;
        assert_eq!(after(&fit, 95), "paused");
    }

    #[test]
    fn html_survives_sanitizing() {
        let mut fit = fit();
        fit.latest = Some(advanced());
        let html = fit.to_html();
        for refused in ["<style", "<svg", "<script", "class=", "var("] {
            assert!(!html.contains(refused), "{refused}");
        }
        assert!(html.contains("all-reduces <b>5</b>/20"), "{html}");
        fit.end = Some(End::Failed);
        assert!(fit.to_html().contains("stopped by an error"));
    }
}

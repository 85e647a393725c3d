//! The records of a history as tables: `history.epochs`, `history.steps`, `history.executions`.

use stratoscope_render::text;

use super::{EpochRecord, Evaluation, ExecutionRecord, StepRecord, html_table, lines};
use crate::html::{escape, rate, time, value};
use crate::text::table;

/// Longer lists are cut: a run has a record for each step.
const MAX_ROWS: usize = 200;

/// A list of records as one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Records {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
    /// How many rows are not in the table.
    more: usize,
}

impl Records {
    /// A row an epoch.
    pub fn of_epochs(records: &[EpochRecord]) -> Self {
        Self::of(columns(records), rows(records), records.len())
    }

    /// A row a step.
    pub fn of_steps(records: &[StepRecord]) -> Self {
        let rows = records.iter().map(|it| {
            vec![
                it.step.to_string(),
                format!("{:.4}", it.loss),
                rate(it.learning_rate),
            ]
        });
        Self::of(named(&["step", "loss", "rate"]), rows, records.len())
    }

    /// A row an execution.
    pub fn of_executions(records: &[ExecutionRecord]) -> Self {
        let columns = [
            "epoch",
            "first batch",
            "batches",
            "steps",
            "step",
            "loss",
            "rate",
            "gradient norm",
            "time",
        ];
        let rows = records.iter().map(|it| {
            let norm = it.gradient_norm.map(|norm| format!("{norm:.4}"));
            vec![
                (it.epoch + 1).to_string(),
                (it.first_batch + 1).to_string(),
                it.batches.to_string(),
                it.optimizer_steps.to_string(),
                it.step.to_string(),
                format!("{:.4}", it.loss),
                rate(it.learning_rate),
                norm.unwrap_or_default(),
                time(it.seconds),
            ]
        });
        Self::of(named(&columns), rows, records.len())
    }

    fn of(columns: Vec<String>, rows: impl Iterator<Item = Vec<String>>, length: usize) -> Self {
        Self {
            columns,
            rows: rows.take(MAX_ROWS).collect(),
            more: length.saturating_sub(MAX_ROWS),
        }
    }

    fn notes(&self) -> Vec<String> {
        match self.more {
            0 => Vec::new(),
            more => vec![format!("… and {} more", text::count(more, "row"))],
        }
    }

    /// As static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        let columns: Vec<String> = self.columns.iter().map(|name| escape(name)).collect();
        html_table(&columns, self.rows.iter().cloned(), &self.notes())
    }

    /// As text.
    pub fn to_plain(&self) -> String {
        let text = table(&self.columns, &self.rows) + &lines(&self.notes());
        text.trim_end().to_owned()
    }
}

fn named(columns: &[&str]) -> Vec<String> {
    columns.iter().map(|name| (*name).to_owned()).collect()
}

/// The names above the rows of epochs.
pub(super) fn columns(epochs: &[EpochRecord]) -> Vec<String> {
    let mut columns = named(&["epoch", "loss"]);
    let Some(first) = epochs.first() else {
        return columns;
    };
    columns.extend(first.metrics.iter().map(|metric| metric.name.to_owned()));
    if let Some(validation) = validated(epochs) {
        columns.push("val loss".to_owned());
        columns.extend(
            validation
                .metrics
                .iter()
                .map(|metric| format!("val {}", metric.name)),
        );
    }
    columns.extend(named(&["rate", "seq/s", "time"]));
    columns
}

/// The first validation, whatever epoch it belongs to.
pub(super) fn validated(epochs: &[EpochRecord]) -> Option<&Evaluation> {
    epochs.iter().find_map(|record| record.validation.as_ref())
}

/// A row an epoch.
pub(super) fn rows(epochs: &[EpochRecord]) -> impl Iterator<Item = Vec<String>> {
    epochs.iter().map(|record| {
        let mut row = vec![
            (record.epoch + 1).to_string(),
            format!("{:.4}", record.loss),
        ];
        row.extend(record.metrics.iter().map(|metric| value(Some(metric))));
        match &record.validation {
            Some(validation) => {
                row.push(format!("{:.4}", validation.loss));
                row.extend(validation.metrics.iter().map(|metric| value(Some(metric))));
            }
            // Other epochs were validated, this one not: `validation_freq`.
            None => {
                let columns = validated(epochs).map_or(0, |other| 1 + other.metrics.len());
                row.extend(vec![String::new(); columns]);
            }
        }
        row.push(rate(record.learning_rate));
        row.push(format!("{:.1}", record.sequences_per_second));
        row.push(time(record.seconds));
        row
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::history;
    use super::*;

    #[test]
    fn records_are_one_table() {
        let expected = "\
epoch    loss  accuracy  val loss  val accuracy     rate  seq/s   time
    1  1.5000    0.2500    0.7500     undefined  5.00e-5   12.0  2.0 s";
        let epochs = Records::of_epochs(&history().epochs);
        assert_eq!(epochs.to_plain(), expected);
        assert_eq!(epochs.to_html().matches("<tr>").count(), 2);
        let step = StepRecord {
            step: 7,
            loss: 0.5,
            learning_rate: 1e-3,
        };
        let steps = Records::of_steps(&[step]);
        assert_eq!(
            steps.to_plain(),
            "step    loss     rate\n   7  0.5000  1.00e-3"
        );
        let many = Records::of_steps(&vec![step; MAX_ROWS + 2]);
        assert!(
            many.to_plain().ends_with("… and 2 rows more"),
            "{}",
            many.to_plain()
        );
        assert_eq!(many.to_html().matches("<tr>").count(), 1 + MAX_ROWS);
    }
}

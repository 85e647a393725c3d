//! An evaluation as a table, and the note on texts that were cut.

use std::fmt;

use serde::Serialize;
use stratoscope_data::TokenReport;
use stratoscope_metrics::metric::Predicted;
use stratoscope_render::text;

use super::{Evaluation, NOTE, html_table, lines};
use crate::html::{time, value};
use crate::inspection::ConfusionMatrix;
use crate::text::table;

/// Texts that lost tokens to a maximum length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CutTexts {
    /// How many.
    pub texts: usize,
    /// How many texts there are.
    pub of: usize,
    /// The tokens that were left of each.
    pub max_length: usize,
}

impl CutTexts {
    /// `None` if all texts are whole.
    pub fn of(report: &TokenReport) -> Option<Self> {
        (report.truncated_rows > 0).then_some(Self {
            texts: report.truncated_rows,
            of: report.rows,
            max_length: report.max_length,
        })
    }

    /// The line below a table.
    pub fn to_html(self) -> String {
        format!("<div style=\"{NOTE}\">{self}</div>")
    }
}

impl fmt::Display for CutTexts {
    /// `3 of 20 texts were cut at 64 tokens`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let was = if self.texts == 1 { "was" } else { "were" };
        write!(
            f,
            "{} of {} {was} cut at {} tokens",
            text::thousands(self.texts),
            text::count(self.of, "text"),
            text::thousands(self.max_length)
        )
    }
}

/// Another length than the model was trained with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct OtherLength {
    /// The most tokens of a text that were read.
    pub max_length: usize,
    /// That of the training.
    pub trained: usize,
}

impl OtherLength {
    /// `None` where the training had the same length, or where one of them is not known.
    pub fn of(asked: Option<usize>, trained: Option<usize>) -> Option<Self> {
        let (max_length, trained) = asked.zip(trained)?;
        (max_length != trained).then_some(Self {
            max_length,
            trained,
        })
    }
}

impl fmt::Display for OtherLength {
    /// `measured with max_length = 32; the model was trained with 128`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            max_length,
            trained,
        } = self;
        write!(
            f,
            "measured with max_length = {max_length}; the model was trained with {trained}"
        )
    }
}

impl Evaluation {
    /// The value of a metric, by its name.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.metrics
            .iter()
            .find(|metric| metric.name == name)?
            .value
    }

    /// Which classes were taken for which; `None` where the model predicts a number, and for more than 256 classes.
    pub fn confusion_matrix(&self) -> Option<ConfusionMatrix> {
        let Predicted {
            confusion,
            label_names,
            ..
        } = &self.predictions;
        ConfusionMatrix::new(confusion.clone(), label_names)
    }

    fn table(&self) -> (Vec<String>, Vec<String>) {
        let mut columns = vec!["loss".to_owned()];
        let mut row = vec![format!("{:.4}", self.loss)];
        for metric in &self.metrics {
            columns.push(metric.name.to_owned());
            row.push(value(Some(metric)));
        }
        columns.extend(["examples", "time"].map(str::to_owned));
        row.extend([text::thousands(self.examples), time(self.seconds)]);
        (columns, row)
    }

    fn notes(&self) -> Vec<String> {
        let cut = self.cut.iter().map(CutTexts::to_string);
        let other = self.other_length.iter().map(OtherLength::to_string);
        cut.chain(other).collect()
    }

    /// One row, as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        let (columns, row) = self.table();
        html_table(&columns, std::iter::once(row), &self.notes())
    }

    /// One row, as text.
    pub fn to_plain(&self) -> String {
        let (columns, row) = self.table();
        table(&columns, &[row]) + &lines(&self.notes())
    }
}

impl fmt::Display for Evaluation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

impl fmt::Debug for Evaluation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

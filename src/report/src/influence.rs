//! [`Influence`]: because of which training rows a model answers a text as it does: what each of some rows has changed, exactly and as
//! TracIn estimates it.

use std::fmt::{self, Write};

use stratoscope_evaluation::Interval;
use stratoscope_render::html::{DATA_TABLE_STYLE, data_table, escape, prose};
use stratoscope_render::text;

use crate::html::{CELL, HEAD};
use crate::inspection::{notes_html, title_html};

/// Letters of a text that a table shows.
const MAX_LETTERS: usize = 60;

/// A training row and what it has changed.
#[derive(Clone, Debug, PartialEq)]
pub struct InfluentialRow {
    /// Its index in the training data, counted from 0.
    pub row: usize,
    /// Its text.
    pub text: String,
    /// Its label.
    pub label: String,
    /// TracIn: Σ over snapshots of rate · ∇loss(row) · ∇loss(text). Above 0, steps along the row lower the loss of the text.
    pub score: f64,
    /// The loss of the text by a run without the row, minus that of this run. Below 0 the row harms the text.
    pub loss_change: f64,
    /// The probability of the label by a run without the row, minus that of this run.
    pub probability_change: f64,
    /// After which step the run without the row begins; `None` if no step has used the row.
    pub from: Option<u64>,
}

/// What training rows have changed for a text.
#[derive(Clone, PartialEq)]
pub struct Influence {
    /// The text that is asked about.
    pub text: String,
    /// The label whose loss and probability are compared.
    pub label: String,
    /// The loss of the label, without dropout.
    pub loss: f64,
    /// The probability of the label.
    pub probability: f64,
    /// Optimizer steps that the run has made.
    pub step: u64,
    /// The rows, the one with the largest absolute score first.
    pub rows: Vec<InfluentialRow>,
    /// The rank correlation of scores and changes of the loss; `None` for fewer than three rows, and where one side does not vary.
    pub agreement: Option<Interval>,
    /// The snapshots that the scores are summed over, by their steps.
    pub snapshots: Vec<u64>,
    /// The training rows that have a score.
    pub scored: usize,
    /// What is to be known beside the table, a sentence each.
    pub notes: Vec<String>,
}

impl Influence {
    fn title(&self) -> String {
        let step = usize::try_from(self.step).unwrap_or(usize::MAX);
        format!(
            "because of which rows: “{}” after {}",
            text::excerpt(&self.text, MAX_LETTERS),
            text::count(step, "step")
        )
    }

    fn answer(&self) -> String {
        format!(
            "label {}: loss {:.4}, probability {:.4}",
            self.label, self.loss, self.probability
        )
    }

    fn all_notes(&self) -> Vec<String> {
        let snapshots: Vec<String> = self.snapshots.iter().map(u64::to_string).collect();
        let mut notes = vec![
            "the changes are exact: the steps were made once more with the weight 0 for the row, and the run is back where it was"
                .to_owned(),
            format!(
                "the scores are TracIn's over the snapshots after steps {}; {} have one",
                text::names(&snapshots, 8),
                text::count(self.scored, "row")
            ),
        ];
        notes.push(match &self.agreement {
            Some(it) => format!(
                "agreement of score and change, as a rank correlation over {}: {:.2}, in 95 of 100 resamples {:.2} to {:.2}",
                text::count(self.rows.len(), "row"),
                it.value,
                it.low,
                it.high
            ),
            None => "the agreement of score and change is not known for these rows".to_owned(),
        });
        notes.extend(self.notes.iter().cloned());
        notes
    }

    fn cells(&self) -> Vec<[String; 6]> {
        let row = |it: &InfluentialRow| {
            [
                it.row.to_string(),
                text::excerpt(&it.text, MAX_LETTERS),
                it.label.clone(),
                format!("{:+.2e}", it.score),
                format!("{:+.5}", it.loss_change),
                format!("{:+.5}", it.probability_change),
            ]
        };
        self.rows.iter().map(row).collect()
    }

    /// As static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        let mut html = title_html(&self.title());
        // Writing to a string cannot fail.
        let _ = write!(
            html,
            "<div style=\"font-size:13px;margin:2px 0\">{}</div>",
            prose(&self.answer())
        );
        html += &(data_table(DATA_TABLE_STYLE) + "<thead><tr>");
        for name in HEADS {
            let _ = write!(html, "<th scope=\"col\" style=\"{HEAD}\">{name}</th>");
        }
        html += "</tr></thead><tbody>";
        for row in self.cells() {
            html += "<tr>";
            for cell in row {
                let _ = write!(html, "<td style=\"{CELL}\">{}</td>", escape(&cell));
            }
            html += "</tr>";
        }
        html + "</tbody></table>" + &notes_html(&self.all_notes())
    }

    /// As text.
    pub fn to_plain(&self) -> String {
        let mut plain = format!("{}\n{}\n", self.title(), self.answer());
        for [row, text, label, score, loss, probability] in self.cells() {
            // Writing to a string cannot fail.
            let _ = writeln!(
                plain,
                "  without row {row} ({label}): loss {loss}, probability {probability}, score {score}  {text}"
            );
        }
        for note in self.all_notes() {
            plain.push_str(&note);
            plain.push('\n');
        }
        plain
    }
}

const HEADS: [&str; 6] = [
    "without row",
    "text",
    "label",
    "TracIn score",
    "change of the loss",
    "change of the probability",
];

impl fmt::Display for Influence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::visible(&self.to_plain()))
    }
}

impl fmt::Debug for Influence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_changes_and_agreement_are_shown_and_escaped() {
        let influence = Influence {
            text: "a <b> text".to_owned(),
            label: "games".to_owned(),
            loss: 0.5,
            probability: 0.6065,
            step: 12,
            rows: vec![InfluentialRow {
                row: 17,
                text: "<i>other</i>".to_owned(),
                label: "net".to_owned(),
                score: -1.5e-3,
                loss_change: -0.25,
                probability_change: 0.125,
                from: Some(0),
            }],
            agreement: Some(Interval {
                value: 0.8,
                low: 0.2,
                high: 1.0,
            }),
            snapshots: vec![0, 10],
            scored: 64,
            notes: Vec::new(),
        };
        let plain = influence.to_plain();
        for part in [
            "without row 17 (net): loss -0.25000, probability +0.12500, score -1.50e-3",
            "0.80, in 95 of 100 resamples 0.20 to 1.00",
            "64 rows have one",
            "after 12 steps",
        ] {
            assert!(plain.contains(part), "{part}: {plain}");
        }
        let html = influence.to_html();
        assert!(
            html.contains("&lt;i&gt;other") && !html.contains("<i>"),
            "{html}"
        );
        assert!(html.contains("a &lt;b&gt; text"));
        let alone = Influence {
            agreement: None,
            ..influence
        };
        assert!(alone.to_plain().contains("is not known"), "{alone}");
    }
}

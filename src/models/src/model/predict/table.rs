//! Predictions as a table: a row a text, and a note on texts that were cut.

use std::fmt::Write;

use stratoscope_render::html::{DATA_TABLE_STYLE, TABLE_CELL, data_table};
use stratoscope_render::text;

use super::{Prediction, Predictions};
use crate::report::html::{CELL, HEAD, escape};

impl Predictions {
    /// The second best label and its share.
    fn runner_up(&self, row: &Prediction) -> Option<(&str, f64)> {
        let others = row.probabilities.iter().enumerate();
        let others = others.filter(|(index, _)| Some(*index) != row.class);
        let (index, share) = others.max_by(|a, b| a.1.total_cmp(b.1))?;
        Some((self.label_names.get(index)?, *share))
    }

    /// A row a text, as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        let cut = self.cut.map(|cut| cut.to_html());
        self.rows_to_html() + &cut.unwrap_or_default()
    }

    fn rows_to_html(&self) -> String {
        if self.are_answers() {
            return self.answers_to_html();
        }
        if self.are_sets() {
            return self.sets_to_html();
        }
        if self.are_choices() {
            return self.choices_to_html();
        }
        if self.are_filled() {
            return self.filled_to_html();
        }
        if self.are_words() {
            return self.words_to_html();
        }
        const BAR: &str =
            "display:inline-block;height:9px;background-color:#3b82c4;border-radius:2px";
        let mut html = data_table(DATA_TABLE_STYLE) + "<tr>";
        // Writing to a string cannot fail.
        let has_classes = self.rows.iter().any(|row| row.class.is_some());
        let names: &[&str] = match has_classes {
            true => &["text", "label", "probability", "next best"],
            false => &["text", "value"],
        };
        for name in names {
            let _ = write!(html, "<th style=\"{HEAD};text-align:left\">{name}</th>");
        }
        html.push_str("</tr>");
        for row in &self.rows {
            let mut text = escape(&text::excerpt(&row.text, 120));
            if let Some(pair) = &row.pair {
                let _ = write!(text, "<br>{}", escape(&text::excerpt(pair, 120)));
            }
            let label = escape(&row.label);
            let _ = write!(
                html,
                "<tr><td style=\"{TABLE_CELL}\">{text}</td><td style=\"{TABLE_CELL};font-weight:600\">{label}</td>"
            );
            if !has_classes {
                html.push_str("</tr>");
                continue;
            }
            if row.class.is_some() {
                let width = (row.score * 80.0).round().clamp(1.0, 80.0);
                let _ = write!(
                    html,
                    "<td style=\"{TABLE_CELL};white-space:nowrap\"><span style=\"{BAR};width:{width}px\"></span> {:.1} %</td>",
                    100.0 * row.score
                );
            } else {
                let _ = write!(html, "<td style=\"{CELL}\"></td>");
            }
            let next = self.runner_up(row);
            let next = next.map(|(name, share)| format!("{} {:.1} %", escape(name), 100.0 * share));
            let _ = write!(
                html,
                "<td style=\"{TABLE_CELL};opacity:0.75\">{}</td></tr>",
                next.unwrap_or_default()
            );
        }
        html.push_str("</table>");
        html
    }

    /// A line a text.
    pub fn to_plain(&self) -> String {
        let cut = self.cut.map(|cut| format!("{cut}\n"));
        self.rows_to_plain() + &cut.unwrap_or_default()
    }

    fn rows_to_plain(&self) -> String {
        if self.are_answers() {
            return self.answers_to_plain();
        }
        if self.are_sets() {
            return self.sets_to_plain();
        }
        if self.are_choices() {
            return self.choices_to_plain();
        }
        if self.are_filled() {
            return self.filled_to_plain();
        }
        if self.are_words() {
            return self.words_to_plain();
        }
        let width = self
            .rows
            .iter()
            .map(|row| row.label.chars().count())
            .max()
            .unwrap_or(0);
        let mut text = String::new();
        for row in &self.rows {
            let share = match row.class {
                Some(_) => format!("{:5.1} %", 100.0 * row.score),
                None => String::new(),
            };
            let pair = row
                .pair
                .as_ref()
                .map(|pair| format!(" | {pair}"))
                .unwrap_or_default();
            let shown = text::excerpt(&format!("{}{pair}", row.text), 100);
            let _ = writeln!(text, "{:width$}  {share}  {shown}", row.label);
        }
        text::visible(&text)
    }
}

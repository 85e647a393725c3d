//! Any of several labels for each text.

use std::fmt::Write;

use stratoscope_data::Example;
use stratoscope_render::html::DATA_TABLE_STYLE;
use stratoscope_render::text;

use super::{Prediction, Predictions};
use crate::report::html::{CELL, HEAD, escape};

/// The probability above which a label is taken.
const TAKEN: f64 = 0.5;

/// The answer for an example, by the probability of each label.
pub(super) fn decided(
    example: Example,
    probabilities: Vec<f64>,
    label_names: &[String],
) -> Prediction {
    let sure = |&it: &f64| it.max(1.0 - it);
    Prediction {
        label: taken(&probabilities, label_names).join(", "),
        // Of all decisions, the least sure one.
        score: probabilities.iter().map(sure).fold(1.0, f64::min),
        probabilities,
        text: example.text,
        pair: example.pair,
        ..Prediction::default()
    }
}

/// The names of the labels that are taken.
fn taken<'n>(probabilities: &[f64], label_names: &'n [String]) -> Vec<&'n str> {
    let each = label_names.iter().zip(probabilities);
    let taken = each.filter(|(_, probability)| **probability > TAKEN);
    taken.map(|(name, _)| name.as_str()).collect()
}

impl Predictions {
    /// Whether any of several labels was decided.
    pub(super) fn are_sets(&self) -> bool {
        let of_set = |row: &Prediction| row.class.is_none() && !row.probabilities.is_empty();
        self.rows.iter().any(of_set)
    }

    /// The labels of each text, for a model that decides each by itself.
    pub fn label_sets(&self) -> Vec<Vec<&str>> {
        let rows = self.rows.iter();
        rows.map(|row| taken(&row.probabilities, &self.label_names))
            .collect()
    }

    /// A row a text with the probability of every label, as static HTML with inline styles only.
    pub(super) fn sets_to_html(&self) -> String {
        const LEFT: &str = "text-align:left";
        let mut html = format!(
            "<table style=\"{DATA_TABLE_STYLE}\"><tr>\
             <th style=\"{HEAD};{LEFT}\">text</th>"
        );
        // Writing to a string cannot fail.
        for name in &self.label_names {
            let _ = write!(html, "<th style=\"{HEAD}\">{}</th>", escape(name));
        }
        html.push_str("</tr>");
        for row in &self.rows {
            let mut text = escape(&text::excerpt(&row.text, 120));
            if let Some(pair) = &row.pair {
                let _ = write!(text, "<br>{}", escape(&text::excerpt(pair, 120)));
            }
            let _ = write!(html, "<tr><td style=\"{CELL};{LEFT}\">{text}</td>");
            for probability in &row.probabilities {
                let ground = match *probability > TAKEN {
                    true => ";background-color:#4caf7055;font-weight:600",
                    false => "",
                };
                let share = 100.0 * probability;
                let _ = write!(html, "<td style=\"{CELL}{ground}\">{share:.1} %</td>");
            }
            html.push_str("</tr>");
        }
        html.push_str("</table>");
        html
    }

    /// A line a text: its labels with their probabilities.
    pub(super) fn sets_to_plain(&self) -> String {
        let mut plain = String::new();
        for row in &self.rows {
            let each = self.label_names.iter().zip(&row.probabilities);
            let taken = each.filter(|(_, probability)| **probability > TAKEN);
            let shown = taken.map(|(name, share)| format!("{name} {:.1} %", 100.0 * share));
            let shown: Vec<String> = shown.collect();
            let shown = match shown.is_empty() {
                true => "no label".to_owned(),
                false => shown.join(", "),
            };
            // Writing to a string cannot fail.
            let _ = writeln!(plain, "{} → {shown}", text::excerpt(&row.text, 100));
        }
        text::visible(&plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_above_a_half_are_taken() {
        let label_names = ["mail", "<web>", "game"].map(str::to_owned).to_vec();
        let of = |text: &str, probabilities: [f64; 3]| {
            decided(Example::new(text), probabilities.to_vec(), &label_names)
        };
        let rows = vec![of("a & b", [0.9, 0.75, 0.5]), of("c", [0.1, 0.2, 0.3])];
        assert_eq!(
            (rows[0].label.as_str(), rows[0].score),
            ("mail, <web>", 0.5)
        );
        let predictions = Predictions {
            rows,
            label_names,
            cut: None,
        };
        assert_eq!(predictions.label_sets(), [vec!["mail", "<web>"], vec![]]);
        assert_eq!(
            predictions.to_plain(),
            "a & b → mail 90.0 %, <web> 75.0 %\nc → no label\n"
        );
        let html = predictions.to_html();
        assert!(
            html.contains("&lt;web&gt;") && html.contains("90.0 %"),
            "{html}"
        );
        assert!(!html.contains("<web>") && !html.contains("class="));
    }
}

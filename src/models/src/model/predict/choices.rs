//! One of several texts for each prompt.

use std::fmt::Write;

use stratoscope_data::Example;
use stratoscope_render::html::DATA_TABLE_STYLE;
use stratoscope_render::text;

use super::{Prediction, Predictions};
use crate::report::html::{HEAD, escape};
use stratoscope_step::head::{Head, most_probable};

/// The widest bar, in pixels.
const WIDEST: f64 = 120.0;

/// The choice for an example. A batch may have rows with more choices: what is beyond its own is padding.
pub(super) fn chosen(example: Example, head: Head, outputs: &[f32]) -> Prediction {
    let choices = example.choices().unwrap_or_default().to_vec();
    let own = &outputs[..choices.len().min(outputs.len())];
    let probabilities = head.probabilities(own);
    let class = most_probable(&probabilities).unwrap_or(0);
    Prediction {
        label: choices.get(class).cloned().unwrap_or_default(),
        class: Some(class),
        score: probabilities.get(class).copied().unwrap_or(f64::NAN),
        probabilities,
        choices,
        text: example.text,
        ..Prediction::default()
    }
}

/// A choice with its probability, and whether it is the most probable one.
fn each(row: &Prediction) -> impl Iterator<Item = (&str, f64, bool)> {
    let pairs = row.choices.iter().zip(&row.probabilities).enumerate();
    pairs.map(|(at, (choice, share))| (choice.as_str(), *share, row.class == Some(at)))
}

impl Predictions {
    /// Whether one of several texts was chosen.
    pub(super) fn are_choices(&self) -> bool {
        self.rows.iter().any(|row| !row.choices.is_empty())
    }

    /// A bar for each choice of a prompt, as static HTML with inline styles only.
    pub(super) fn choices_to_html(&self) -> String {
        const CELL: &str = "padding:3px 12px;text-align:left;vertical-align:top";
        const LAST: &str = ";border-bottom:1px solid #80808059";
        const BAR: &str = "display:inline-block;height:9px;border-radius:2px";
        let mut html = format!("<table style=\"{DATA_TABLE_STYLE}\"><tr>");
        // Writing to a string cannot fail.
        for name in ["prompt", "choice", "probability"] {
            let _ = write!(html, "<th style=\"{HEAD};text-align:left\">{name}</th>");
        }
        html.push_str("</tr>");
        for row in &self.rows {
            let prompt = escape(&text::excerpt(&row.text, 160));
            let last = row.choices.len().saturating_sub(1);
            for (at, (choice, share, is_best)) in each(row).enumerate() {
                let line = if at == last { LAST } else { "" };
                html.push_str("<tr>");
                if at == 0 {
                    let rows = row.choices.len();
                    let _ = write!(
                        html,
                        "<td rowspan=\"{rows}\" style=\"{CELL}{LAST}\">{prompt}</td>"
                    );
                }
                let (weight, color) = match is_best {
                    true => (";font-weight:600", "#3b82c4"),
                    false => ("", "#80808080"),
                };
                let choice = escape(&text::excerpt(choice, 120));
                let width = (share * WIDEST).round().clamp(1.0, WIDEST);
                let _ = write!(
                    html,
                    "<td style=\"{CELL}{line}{weight}\">{choice}</td><td style=\"{CELL}{line};white-space:nowrap\">\
                     <span style=\"{BAR};background-color:{color};width:{width}px\"></span> {:.1} %</td></tr>",
                    100.0 * share
                );
            }
        }
        html.push_str("</table>");
        html
    }

    /// A line a prompt with what was chosen, and a line for each choice.
    pub(super) fn choices_to_plain(&self) -> String {
        let mut plain = String::new();
        for row in &self.rows {
            // Writing to a string cannot fail.
            let (prompt, best) = (text::excerpt(&row.text, 100), text::excerpt(&row.label, 60));
            let _ = writeln!(plain, "{prompt} → {best}");
            for (choice, share, _) in each(row) {
                let choice = text::excerpt(choice, 80);
                let _ = writeln!(plain, "  {:5.1} %  {choice}", 100.0 * share);
            }
        }
        text::visible(&plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_probable_choice_is_the_answer() {
        let head = Head::Classes { are_logits: true };
        let example = Example::new("a & b").with_choices(["flies", "<sits>"]);
        // The third number is of a longer row of its batch.
        let row = chosen(example, head, &[1.0, 3.0, 9.0]);
        assert_eq!((row.label.as_str(), row.class), ("<sits>", Some(1)));
        assert!((row.score - 1.0 / (1.0 + (-2.0_f64).exp())).abs() < 1e-9);
        let predictions = Predictions {
            rows: vec![row],
            label_names: vec!["0".to_owned(), "1".to_owned()],
            cut: None,
        };
        assert_eq!(
            predictions.to_plain(),
            "a & b → <sits>\n   11.9 %  flies\n   88.1 %  <sits>\n"
        );
        let html = predictions.to_html();
        assert!(
            html.contains("a &amp; b") && html.contains("88.1 %"),
            "{html}"
        );
        assert_eq!(
            html.matches("height:9px").count(),
            2,
            "a bar for each choice"
        );
        assert!(!html.contains("<sits>") && !html.contains("class="));
    }
}

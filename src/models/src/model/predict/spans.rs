//! Answers to questions about texts: the best part of the text over all its windows, or none.

use std::fmt::Write;

use stratoscope_data::{Dataset, Window};
use stratoscope_render::text;

use super::{Answered, Marked, Prediction, Predictions};
use crate::metric::spans::Best;
use crate::report::html::escape;
use stratoscope_step::head::softmax;

/// What is shown of a text around an answer, in characters on each side.
const AROUND: usize = 160;

/// The answer to each question, by the outputs of the windows.
pub(super) fn answers(data: Dataset, windows: &[&Window], outputs: &[Vec<f32>]) -> Vec<Prediction> {
    let bests = windows.iter().zip(outputs);
    let bests: Vec<Best> = bests
        .map(|(window, outputs)| Best::of(window, outputs))
        .collect();
    let mut of_examples = vec![Vec::new(); data.len()];
    for (at, window) in windows.iter().enumerate() {
        of_examples[window.passage.example].push(at);
    }
    let of_example = |(example, windows): (stratoscope_data::Example, &Vec<usize>)| {
        let context = example.pair.clone().unwrap_or_default();
        let best = Best::of_windows(windows.iter().map(|&at| &bests[at]));
        let found = best.as_ref().and_then(|best| {
            let answer = best.said(&context, true)?;
            let window = windows.iter().find(|&&at| bests[at].score == best.score)?;
            Some(Marked {
                label: "answer".to_owned(),
                text: answer.to_owned(),
                start: best.bytes.start,
                end: best.bytes.end,
                score: share(&outputs[*window], best.score),
            })
        });
        // Without an answer: the probability of none, where it is said least.
        let least = windows
            .iter()
            .min_by(|a, b| bests[**a].none.total_cmp(&bests[**b].none));
        let none = least.map_or(0.0, |&at| share(&outputs[at], bests[at].none));
        let margin = best.map_or(f64::NEG_INFINITY, |best| best.score - best.none);
        Prediction {
            label: found
                .as_ref()
                .map_or_else(String::new, |found| found.text.clone()),
            score: found.as_ref().map_or(none, |found| found.score),
            answer: Some(Answered { found, margin }),
            text: example.text,
            pair: example.pair,
            ..Prediction::default()
        }
    };
    data.examples
        .into_iter()
        .zip(&of_examples)
        .map(of_example)
        .collect()
}

/// The probability of a begin times that of an end, in a window: e^score over the sums of both softmaxes.
fn share(outputs: &[f32], score: f64) -> f64 {
    let (starts, ends) = outputs.split_at(outputs.len() / 2);
    let log_sum = |of: &[f32]| {
        let most = of.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let largest = softmax(of).into_iter().fold(0.0, f64::max);
        f64::from(most) - largest.ln()
    };
    (score - log_sum(starts) - log_sum(ends)).exp()
}

impl Predictions {
    /// Whether questions were answered.
    pub(super) fn are_answers(&self) -> bool {
        self.rows.iter().any(|row| row.answer.is_some())
    }

    /// The questions, and the answers in color in their texts, as static HTML with inline styles only.
    pub(super) fn answers_to_html(&self) -> String {
        let mut html = String::from("<div style=\"font-size:13px;line-height:1.7\">");
        for row in &self.rows {
            let context = row.pair.as_deref().unwrap_or_default();
            // Writing to a string cannot fail.
            let _ = write!(
                html,
                "<div style=\"margin:4px 0 8px 0\"><b>{}</b><br>",
                escape(&text::excerpt(&row.text, 300))
            );
            match row.answer.as_ref().and_then(|answer| answer.found.as_ref()) {
                Some(found) => {
                    let (before, after) = around(context, found);
                    let _ = write!(
                        html,
                        "{}<span style=\"background-color:#4caf7055;border-radius:4px;padding:2px 5px\">{}</span>{} \
                         <span style=\"opacity:0.75;white-space:nowrap\">{:.1} %</span></div>",
                        escape(&before),
                        escape(&found.text),
                        escape(&after),
                        100.0 * found.score
                    );
                }
                None => {
                    let _ = write!(
                        html,
                        "{} <span style=\"opacity:0.75\">– no answer in this text</span></div>",
                        escape(&text::excerpt(context, 2 * AROUND))
                    );
                }
            }
        }
        html.push_str("</div>");
        html
    }

    /// Question and answer, a line each.
    pub(super) fn answers_to_plain(&self) -> String {
        let mut plain = String::new();
        for row in &self.rows {
            let question = text::excerpt(&row.text, 100);
            let _ = match row.answer.as_ref().and_then(|answer| answer.found.as_ref()) {
                Some(found) => writeln!(
                    plain,
                    "{question} → {} ({:.1} %)",
                    found.text,
                    100.0 * found.score
                ),
                None => writeln!(plain, "{question} → no answer in this text"),
            };
        }
        text::visible(&plain)
    }
}

/// What stands before and after an answer, cut where it is long.
fn around(context: &str, found: &Marked) -> (String, String) {
    let before = context.get(..found.start).unwrap_or_default();
    let after = context.get(found.end..).unwrap_or_default();
    let skipped = before.chars().count().saturating_sub(AROUND);
    let mut shown: String = before.chars().skip(skipped).collect();
    if skipped > 0 {
        shown.insert(0, '…');
    }
    let mut rest: String = after.chars().take(AROUND).collect();
    if rest.len() < after.len() {
        rest.push('…');
    }
    (shown, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_marked_in_its_text() {
        let row = Prediction {
            text: "who & why?".to_owned(),
            pair: Some("it was <Ada> again".to_owned()),
            label: "<Ada>".to_owned(),
            score: 0.75,
            answer: Some(Answered {
                found: Some(Marked {
                    label: "answer".to_owned(),
                    text: "<Ada>".to_owned(),
                    start: 7,
                    end: 12,
                    score: 0.75,
                }),
                margin: 2.0,
            }),
            ..Prediction::default()
        };
        let none = Prediction {
            answer: Some(Answered {
                found: None,
                margin: -1.0,
            }),
            ..row.clone()
        };
        let predictions = Predictions {
            rows: vec![row, none],
            label_names: Vec::new(),
            cut: None,
        };
        assert_eq!(
            predictions.to_plain(),
            "who & why? → <Ada> (75.0 %)\nwho & why? → no answer in this text\n"
        );
        let html = predictions.to_html();
        assert!(
            html.contains("it was <span")
                && html.contains("&lt;Ada&gt;")
                && !html.contains("<Ada>"),
            "{html}"
        );
    }

    #[test]
    fn a_share_is_a_product_of_two_softmaxes() {
        let outputs = [1.0, 2.0, 0.0, 0.5, -1.0, 3.0];
        let (starts, ends) = (softmax(&outputs[..3]), softmax(&outputs[3..]));
        let found = share(&outputs, f64::from(outputs[1]) + f64::from(outputs[5]));
        assert!((found - starts[1] * ends[2]).abs() < 1e-9, "{found}");
    }
}

//! [`WhatIf`] as text and as HTML: before and after, side by side.

use std::fmt;

use stratoscope_evaluation::page::{heads, sentence, table, table_text, title};
use stratoscope_render::text;

use super::WhatIf;
use stratoscope_report::inspection::ExampleView;

/// Examples that are listed.
const MAX_EXAMPLES: usize = 12;
/// Letters of a text that are shown.
const MAX_LETTERS: usize = 48;
/// Outputs of an example that are shown one by one.
const MAX_OUTPUTS: usize = 4;

impl WhatIf {
    fn title(&self) -> String {
        let changes = text::names(&self.changes, 4).replace('`', "");
        format!("what if, in step {}: {changes}", self.step)
    }

    /// A row for each number of the step: what it will be, what it would be, and the difference.
    fn numbers(&self) -> Vec<Vec<String>> {
        let (before, after) = (&self.before, &self.after);
        let mut rows = vec![
            row("loss", before.loss, after.loss),
            row("gradient norm", before.gradient_norm, after.gradient_norm),
        ];
        for (layer, old) in &before.updates {
            let new = after.updates.iter().find(|(name, _)| name == layer);
            let new = new.map_or(0.0, |(_, norm)| *norm);
            rows.push(row(&format!("update of {layer}"), *old, new));
        }
        rows
    }

    /// A row for each example that has changed.
    fn examples(&self) -> Vec<Vec<String>> {
        let places = self.changed_examples().into_iter().take(MAX_EXAMPLES);
        let row = |at: usize| {
            let (old, new) = (&self.before.examples[at], &self.after.examples[at]);
            vec![
                at.to_string(),
                text::excerpt(&old.text, MAX_LETTERS),
                both(label(old), label(new)),
                both(predicted(old), predicted(new)),
                outputs(old, new),
                both(short(old.loss), short(new.loss)),
            ]
        };
        places.map(row).collect()
    }

    fn sentences(&self) -> Vec<String> {
        let (changed, all) = (self.changed_examples().len(), self.before.examples.len());
        let pairs = self.before.examples.iter().zip(&self.after.examples);
        let predictions = pairs
            .filter(|(old, new)| old.predicted != new.predicted)
            .count();
        let mut sentences = vec![format!(
            "{changed} of {} {} changed, {} with another prediction",
            text::count(all, "example"),
            if all == 1 { "is" } else { "are" },
            predictions
        )];
        if changed > MAX_EXAMPLES {
            sentences.push(format!(
                "the {MAX_EXAMPLES} with the largest change of the loss are listed"
            ));
        }
        sentences.push(format!(
            "with the dropout masks of step {}, before its update. Nothing in the run has changed: `.commit()?` makes the change",
            self.step
        ));
        sentences
    }

    /// Static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        let mut html = title(&self.title());
        html += &table(&heads(1, &NUMBERS), &self.numbers(), None);
        let examples = self.examples();
        if !examples.is_empty() {
            html += &table(&heads(4, &EXAMPLES), &examples, None);
        }
        html.extend(self.sentences().iter().map(|it| sentence(it)));
        html
    }

    /// The same as text.
    pub fn to_plain(&self) -> String {
        let mut plain = format!(
            "{}\n{}",
            self.title(),
            table_text(&heads(1, &NUMBERS), &self.numbers())
        );
        let examples = self.examples();
        if !examples.is_empty() {
            plain += &format!("\n{}", table_text(&heads(4, &EXAMPLES), &examples));
        }
        for sentence in self.sentences() {
            plain += &format!("{sentence}\n");
        }
        text::visible(&plain)
    }
}

const NUMBERS: [&str; 4] = ["", "before", "after", "change"];
const EXAMPLES: [&str; 6] = ["example", "text", "label", "prediction", "outputs", "loss"];

fn row(name: &str, old: f64, new: f64) -> Vec<String> {
    let change = match (old == new, old == 0.0) {
        (true, _) => "none".to_owned(),
        (false, true) => format!("{:+.3e}", new - old),
        (false, false) => format!("{:+.2} %", 100.0 * (new - old) / old.abs()),
    };
    vec![name.to_owned(), short(old), short(new), change]
}

/// Five significant digits.
fn short(number: f64) -> String {
    match number.abs() {
        0.0 => "0".to_owned(),
        1e-3..1e5 => {
            let digits = (4.0 - number.abs().log10().floor()).clamp(0.0, 7.0) as usize;
            format!("{number:.digits$}")
        }
        _ => format!("{number:.3e}"),
    }
}

/// One text if both are equal.
fn both(old: String, new: String) -> String {
    match old == new {
        true => old,
        false => format!("{old} → {new}"),
    }
}

fn label(example: &ExampleView) -> String {
    example.label.clone().unwrap_or_else(|| "–".to_owned())
}

/// The prediction with its probability.
fn predicted(example: &ExampleView) -> String {
    let probability = (example.predicted_class).and_then(|class| example.probabilities.get(class));
    match probability {
        Some(probability) => format!("{} {probability:.3}", example.predicted),
        None => text::excerpt(&example.predicted, MAX_LETTERS),
    }
}

/// The outputs, or of many the one that has changed most.
fn outputs(old: &ExampleView, new: &ExampleView) -> String {
    let list = |outputs: &[f32]| {
        let outputs = outputs.iter().map(|it| format!("{it:.3}"));
        outputs.collect::<Vec<_>>().join(" ")
    };
    if old.outputs.len() <= MAX_OUTPUTS {
        return both(list(&old.outputs), list(&new.outputs));
    }
    let pairs = old.outputs.iter().zip(&new.outputs).enumerate();
    let largest =
        pairs.max_by(|(_, (a, b)), (_, (c, d))| (*a - *b).abs().total_cmp(&(*c - *d).abs()));
    largest.map_or_else(String::new, |(at, (old, new))| {
        format!("output {at}: {old:.3} → {new:.3}")
    })
}

impl fmt::Display for WhatIf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

impl fmt::Debug for WhatIf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

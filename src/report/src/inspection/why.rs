//! [`Why`]: the first value of a step that is not finite, where it came from, and what helps.

use std::fmt::{self, Write};

use stratoscope_render::html::{DATA_TABLE_STYLE, NAMED_ROW, NAMED_VALUE, code, escape, prose};
use stratoscope_render::text;

use super::tensors::TensorRow;
use super::{notes_html, number, percent, title_html};
use crate::html::{CELL, HEAD};

/// The part of a step in which something was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Before the step: a weight.
    Weights,
    /// A feature or a label of an example.
    Data,
    /// The forward pass.
    Forward,
    /// The loss of finite outputs.
    Loss,
    /// The backward pass of a finite loss.
    Backward,
}

impl Phase {
    fn words(self) -> &'static str {
        match self {
            Self::Weights => "in the weights before the step",
            Self::Data => "in the data",
            Self::Forward => "in the forward pass",
            Self::Loss => "in the loss",
            Self::Backward => "in the backward pass",
        }
    }
}

/// The first value that is not finite.
#[derive(Clone, Debug, PartialEq)]
pub struct FirstNonFinite {
    /// In which part of the step.
    pub phase: Phase,
    /// What has it: the output of a layer, or a variable: `bert.encoder.layer.3.output`.
    pub name: String,
    /// The layer: `bert.encoder.layer.3`.
    pub layer: String,
    /// The operation that made it: `softmax`. `None` where only the outputs of a part of the network are known.
    pub operation: Option<String>,
    /// The value: NaN or an infinity.
    pub value: f64,
    /// The example's row in the data set of the run, where it is of one.
    pub row: Option<usize>,
    /// The example's text, or its features.
    pub text: Option<String>,
    /// The word piece, and its position.
    pub piece: Option<(usize, String)>,
}

/// The operation at which numbers begin to be larger than they were.
#[derive(Clone, Debug, PartialEq)]
pub struct Grown {
    /// The operation; `None` where only the outputs of a part of the network are known.
    pub operation: Option<String>,
    /// The part of the network: `bert.encoder.layer.3.intermediate`.
    pub name: String,
    /// The root mean square of what it puts out in the coming step.
    pub now: f64,
    /// The same for the same batch with the weights after step `step`.
    pub before: f64,
    /// How many steps had been made then.
    pub step: u64,
    /// The loss of the batch now, and with those weights.
    pub loss: (f64, f64),
}

/// Why the coming step goes wrong, or that it does not.
#[derive(Clone, PartialEq)]
pub struct Why {
    /// The number of the step that was replayed, counted from 1.
    pub step: u64,
    /// The answer in a sentence.
    pub verdict: String,
    /// The first value that is not finite; `None` where all are.
    pub first: Option<FirstNonFinite>,
    /// Where numbers have grown since an earlier step, in a step whose values are all finite.
    pub grown: Option<Grown>,
    /// What was computed just before it, and it: the ranges of its inputs.
    pub trail: Vec<TensorRow>,
    /// Likely causes, the most likely one first.
    pub causes: Vec<String>,
    /// What helps, in the same order.
    pub fixes: Vec<String>,
    /// What is to be known beside it, a sentence each.
    pub notes: Vec<String>,
}

impl Grown {
    fn place(&self) -> Vec<(&'static str, String)> {
        let mut place = Vec::new();
        if let Some(operation) = &self.operation {
            place.push(("operation", format!("`{operation}`")));
        }
        place.push(("in", format!("`{}`", self.name)));
        place.push((
            "RMS",
            format!(
                "{} with the weights after step {}, {} now",
                number(self.before),
                self.step,
                number(self.now)
            ),
        ));
        place.push((
            "loss",
            format!("{} then, {} now", number(self.loss.1), number(self.loss.0)),
        ));
        place
    }
}

impl Why {
    /// Where the value was found, a line each.
    fn place(&self) -> Vec<(&'static str, String)> {
        if let Some(grown) = &self.grown {
            return grown.place();
        }
        let Some(first) = &self.first else {
            return Vec::new();
        };
        let mut place = vec![(
            "found",
            format!("{} {}", number(first.value), first.phase.words()),
        )];
        if let Some(operation) = &first.operation {
            place.push(("operation", format!("`{operation}`")));
        }
        place.push(("in", format!("`{}`", first.name)));
        if first.layer != first.name {
            place.push(("layer", format!("`{}`", first.layer)));
        }
        if let Some(row) = first.row {
            let shown = first.text.as_deref().unwrap_or_default();
            place.push((
                "example",
                format!("row {row}: {}", text::excerpt(shown, 120)),
            ));
        }
        if let Some((position, piece)) = &first.piece {
            place.push(("word piece", format!("`{piece}` at position {position}")));
        }
        place
    }

    fn rows(&self) -> impl Iterator<Item = [String; 5]> {
        self.trail.iter().map(|row| {
            let own = &row.statistics;
            [
                row.name.clone(),
                number(own.min),
                number(own.max),
                percent(own.zeros, own.elements),
                percent(own.non_finite(), own.elements),
            ]
        })
    }

    /// The card as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        const NAME: &str = "flex:0 0 110px;opacity:0.75";
        let mut html = title_html(&format!("why: step {}", self.step));
        // Writing to a string cannot fail.
        let _ = write!(
            html,
            "<div style=\"font-size:13px\">{}</div>",
            prose(&self.verdict)
        );
        let causes = self
            .causes
            .iter()
            .map(|cause| ("likely cause", cause.clone()));
        let fixes = self.fixes.iter().map(|fix| ("fix", fix.clone()));
        for (name, value) in self.place().into_iter().chain(causes).chain(fixes) {
            let _ = write!(
                html,
                "<div style=\"{NAMED_ROW};font-size:13px\"><div style=\"{NAME}\">{name}</div>\
                 <div style=\"{NAMED_VALUE}\">{}</div></div>",
                prose(&value)
            );
        }
        if !self.trail.is_empty() {
            let _ = write!(
                html,
                "<table style=\"{DATA_TABLE_STYLE}\"><caption \
                 style=\"text-align:left;font-size:12px\">What was computed, in this order</caption><thead><tr>",
            );
            for name in ["value", "min", "max", "zero", "not finite"] {
                let _ = write!(html, "<th scope=\"col\" style=\"{HEAD}\">{name}</th>");
            }
            html.push_str("</tr></thead><tbody>");
            for [name, rest @ ..] in self.rows() {
                let _ = write!(
                    html,
                    "<tr><th scope=\"row\" style=\"{CELL};font-weight:400\">{}</th>",
                    code(&name)
                );
                for cell in rest {
                    let _ = write!(html, "<td style=\"{CELL}\">{}</td>", escape(&cell));
                }
                html.push_str("</tr>");
            }
            html.push_str("</tbody></table>");
        }
        html + &notes_html(&self.notes)
    }

    /// The card as text.
    pub fn to_plain(&self) -> String {
        let mut plain = format!("why: step {}\n{}\n", self.step, self.verdict);
        // Writing to a string cannot fail.
        for (name, value) in self.place() {
            let _ = writeln!(plain, "  {name:12}{value}");
        }
        for [name, low, high, zeros, bad] in self.rows() {
            let _ = writeln!(
                plain,
                "    {name}: {low} to {high}, {zeros} zero, {bad} not finite"
            );
        }
        for cause in &self.causes {
            let _ = writeln!(plain, "  {:12}{cause}", "cause");
        }
        for fix in &self.fixes {
            let _ = writeln!(plain, "  {:12}{fix}", "fix");
        }
        for note in &self.notes {
            let _ = writeln!(plain, "{note}");
        }
        plain
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::visible(&self.to_plain()))
    }
}

impl fmt::Debug for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Statistics;
    use super::*;

    #[test]
    fn a_card_names_place_cause_and_fix() {
        let row = |name: &str, elements: &[f32]| TensorRow {
            name: name.to_owned(),
            shape: vec![elements.len()],
            statistics: Statistics::of(elements),
            by_replica: Vec::new(),
            compared_norm: None,
        };
        let why = Why {
            step: 7,
            verdict: "the first is `<b>`".to_owned(),
            first: Some(FirstNonFinite {
                phase: Phase::Forward,
                name: "bert.<b>.output".to_owned(),
                layer: "bert.<b>".to_owned(),
                operation: Some("soft<i>max".to_owned()),
                value: f64::NEG_INFINITY,
                row: Some(3),
                text: Some("a <i>".to_owned()),
                piece: Some((2, "[UNK]".to_owned())),
            }),
            grown: None,
            trail: vec![row("before", &[1.0, 0.0]), row("here", &[f32::NAN])],
            causes: vec!["too large".to_owned()],
            fixes: vec!["use `global_clipnorm`".to_owned()],
            notes: Vec::new(),
        };
        let html = why.to_html();
        for part in [
            "row 3: a &lt;i&gt;",
            "[UNK]",
            "too large",
            "<code",
            "−inf in the forward pass",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(!html.contains("<b>") && !html.contains("<i>"));
        let plain = why.to_plain();
        assert!(
            plain.contains("before: 0 to 1.000, 50 % zero, 0 % not finite"),
            "{plain}"
        );
        assert!(html.contains("soft&lt;i&gt;max"), "{html}");
        let grown = Why {
            grown: Some(Grown {
                operation: None,
                name: "bert.pooler".to_owned(),
                now: 12.0,
                before: 2.0,
                step: 4,
                loss: (8.0, 0.5),
            }),
            first: None,
            ..why.clone()
        };
        let plain = grown.to_plain();
        let expected = "2.000 with the weights after step 4, 12.00 now";
        assert!(plain.contains(expected), "{plain}");
        let fine = Why {
            first: None,
            trail: Vec::new(),
            ..why
        };
        assert!(!fine.to_html().contains("<table") && !fine.to_plain().contains("row 3"));
    }
}

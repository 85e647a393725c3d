//! Examples with what the model makes of them: [`BatchView`], the batch of the coming step, and [`RankedExamples`], the
//! worst or best ones of a data set.

use std::fmt::{self, Write};

use stratoscope_render::html::{CODE_FONT, DATA_TABLE_STYLE, data_table, escape};
use stratoscope_render::text;

use super::{notes_html, number, title_html};
use crate::html::HEAD;

/// Examples that a page shows; the others are counted.
const MOST: usize = 64;
/// Examples above the fold.
const OPEN: usize = 8;
/// Word pieces and numbers of an example that are shown.
const MOST_PIECES: usize = 256;
const MOST_FEATURES: usize = 24;

/// A word piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The vocabulary's entry: `##ing`, `[CLS]`, `[UNK]`.
    pub text: String,
    /// Its id.
    pub id: u32,
    /// The segment: 0 for the first text, 1 for the second.
    pub segment: u32,
    /// The attention mask: false for padding.
    pub attended: bool,
    /// Whether it stands for something that the vocabulary lacks.
    pub unknown: bool,
}

/// An example and what the model makes of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ExampleView {
    /// Its row in the data set of the run, counted from 0.
    pub row: usize,
    /// The text, decoded from the word pieces; the features of a numeric example.
    pub text: String,
    /// The word pieces, padding included; empty for numeric examples.
    pub pieces: Vec<Piece>,
    /// The features of a numeric example; empty for texts.
    pub features: Vec<f32>,
    /// The label, by its name; a number as text. `None` without a label.
    pub label: Option<String>,
    /// The label's class; `None` for a number.
    pub class: Option<usize>,
    /// The label where it is a number.
    pub target: Option<f64>,
    /// What the model predicts, by its name; a number as text.
    pub predicted: String,
    /// The predicted class; `None` for a number.
    pub predicted_class: Option<usize>,
    /// The probability of every class; empty for a number.
    pub probabilities: Vec<f64>,
    /// The outputs of the last layer.
    pub outputs: Vec<f32>,
    /// The loss of the example, weighted by its class where `class_weight` is given.
    pub loss: f64,
    /// Its micro-batch in the step, counted from 0.
    pub micro_batch: usize,
    /// The replica that computes it, counted from 0.
    pub replica: usize,
}

impl ExampleView {
    /// The probability of the label's class; `None` for a number, or without a label.
    pub fn probability(&self) -> Option<f64> {
        self.probabilities.get(self.class?).copied()
    }

    /// Whether the prediction is the label; `None` where that is no question.
    pub fn is_right(&self) -> Option<bool> {
        Some(self.predicted_class? == self.class?)
    }

    /// The attention mask: 1 for a word piece, 0 for padding.
    pub fn mask(&self) -> Vec<u8> {
        let mask = self.pieces.iter().map(|piece| u8::from(piece.attended));
        mask.collect()
    }

    /// The segment of each word piece.
    pub fn segments(&self) -> Vec<u32> {
        self.pieces.iter().map(|piece| piece.segment).collect()
    }

    /// Word pieces that the vocabulary lacks.
    pub fn unknown(&self) -> usize {
        self.pieces.iter().filter(|piece| piece.unknown).count()
    }

    fn label_text(&self) -> &str {
        self.label.as_deref().unwrap_or("–")
    }

    /// `games (0.93)`
    fn predicted_text(&self) -> String {
        let own = self.predicted_class;
        match own.and_then(|class| self.probabilities.get(class)) {
            Some(probability) => format!("{} ({})", self.predicted, number(*probability)),
            None => self.predicted.clone(),
        }
    }

    fn padding(&self) -> usize {
        self.pieces.iter().filter(|piece| !piece.attended).count()
    }

    /// Word pieces with their segments and mask, or the features.
    fn inside_html(&self) -> String {
        if self.pieces.is_empty() {
            let shown = self.features.iter().take(MOST_FEATURES);
            let shown: Vec<String> = shown.map(|&it| number(f64::from(it))).collect();
            let rest = self.features.len().saturating_sub(MOST_FEATURES);
            let more = if rest > 0 {
                format!(", and {rest} more")
            } else {
                String::new()
            };
            return format!(
                "<div style=\"{CODE_FONT}\">{}{more}</div>",
                escape(&shown.join(", "))
            );
        }
        let mut html = format!("<div style=\"{CODE_FONT};line-height:1.9\">");
        let tokens = self.pieces.len() - self.padding();
        // Padding is counted, not drawn piece by piece.
        for piece in self
            .pieces
            .iter()
            .filter(|piece| piece.attended)
            .take(MOST_PIECES)
        {
            let (edge, title) = match (piece.unknown, piece.segment) {
                (true, _) => ("2px solid #c8641e", "not in the vocabulary"),
                (false, 0) => ("1px solid #80808059", "segment 0"),
                (false, _) => ("1px dashed #2a7fc0", "segment 1"),
            };
            // Writing to a string cannot fail.
            let _ = write!(
                html,
                "<span title=\"{title}, id {}\" style=\"border:{edge};border-radius:3px;padding:0 3px;\
                 margin-right:3px\">{}</span> ",
                piece.id,
                escape(&piece.text)
            );
        }
        html.push_str("</div>");
        let mut facts = vec![text::count(tokens, "word piece")];
        if tokens > MOST_PIECES {
            facts.push(format!("the first {MOST_PIECES} shown"));
        }
        facts.push(format!("{} of padding (mask 0)", self.padding()));
        let second = self.pieces.iter().filter(|it| it.segment > 0).count();
        if second > 0 {
            facts.push(format!("{second} in segment 1 (dashed)"));
        }
        if self.unknown() > 0 {
            facts.push(format!("{} not in the vocabulary (thick)", self.unknown()));
        }
        let _ = write!(
            html,
            "<div style=\"opacity:0.8\">{}</div>",
            escape(&facts.join(", "))
        );
        html
    }
}

/// A table of examples; each opens to its word pieces or features.
fn examples_html(examples: &[&ExampleView]) -> String {
    const LEFT: &str =
        "padding:3px 12px;text-align:left;border-bottom:1px solid #80808059;vertical-align:top";
    let mut html = data_table(DATA_TABLE_STYLE) + "<thead><tr>";
    for name in ["row", "example", "label", "prediction", "p(label)", "loss"] {
        // Writing to a string cannot fail.
        let _ = write!(
            html,
            "<th scope=\"col\" style=\"{HEAD};text-align:left\">{name}</th>"
        );
    }
    html.push_str("</tr></thead><tbody>");
    for example in examples {
        let mark = match (example.is_right(), example.loss.is_finite()) {
            (Some(false), _) | (_, false) => ";color:#c8641e;font-weight:600",
            _ => "",
        };
        let probability = example.probability().map_or_else(|| "–".to_owned(), number);
        let _ = write!(
            html,
            "<tr><th scope=\"row\" style=\"{LEFT};font-weight:400\">{}</th><td style=\"{LEFT}\">\
             <details><summary style=\"cursor:pointer\">{}</summary>{}</details></td>\
             <td style=\"{LEFT}\">{}</td><td style=\"{LEFT}{mark}\">{}</td><td style=\"{LEFT}\">{}</td>\
             <td style=\"{LEFT}\">{}</td></tr>",
            example.row,
            escape(&text::excerpt(&example.text, 120)),
            example.inside_html(),
            escape(example.label_text()),
            escape(&example.predicted_text()),
            probability,
            number(example.loss)
        );
    }
    html.push_str("</tbody></table>");
    html
}

fn examples_plain(examples: &[ExampleView]) -> String {
    let mut plain = String::new();
    let width = |of: fn(&ExampleView) -> usize| examples.iter().map(of).max().unwrap_or(0);
    let label = width(|it| it.label_text().chars().count()).max("label".len());
    let predicted = width(|it| it.predicted_text().chars().count()).max("prediction".len());
    // Writing to a string cannot fail.
    let _ = writeln!(
        plain,
        "  row  {:label$}  {:predicted$}  {:>9}  example",
        "label", "prediction", "loss"
    );
    for example in examples.iter().take(MOST) {
        let shown = match (example.pieces.is_empty(), example.text.is_empty()) {
            (false, _) => {
                let own = example.pieces.iter().filter(|piece| piece.attended);
                own.map(|piece| piece.text.as_str())
                    .collect::<Vec<_>>()
                    .join(" ")
            }
            _ => example.text.clone(),
        };
        let _ = writeln!(
            plain,
            "{:>5}  {:label$}  {:predicted$}  {:>9}  {}",
            example.row,
            example.label_text(),
            example.predicted_text(),
            number(example.loss),
            text::excerpt(&shown, 100)
        );
    }
    if examples.len() > MOST {
        let _ = writeln!(plain, "and {} more", examples.len() - MOST);
    }
    plain
}

/// The batch of the coming step, all its micro-batches together.
#[derive(Clone, PartialEq)]
pub struct BatchView {
    /// The number of the coming optimizer step, counted from 1.
    pub step: u64,
    /// The examples in the order of the step.
    pub examples: Vec<ExampleView>,
    /// The mean loss over them, as training will see it.
    pub loss: f64,
    /// What is to be known beside the table, a sentence each.
    pub notes: Vec<String>,
}

impl BatchView {
    /// How many examples.
    pub fn len(&self) -> usize {
        self.examples.len()
    }

    /// Whether there is no example: the run is over.
    pub fn is_empty(&self) -> bool {
        self.examples.is_empty()
    }

    fn title(&self) -> String {
        match self.is_empty() {
            true => "no batch is left: the run is over".to_owned(),
            false => format!(
                "batch of the coming step {}: {}, mean loss {}",
                self.step,
                text::count(self.len(), "example"),
                number(self.loss)
            ),
        }
    }

    /// A table whose rows open to word pieces, as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        let mut html = title_html(&self.title());
        let shown: Vec<&ExampleView> = self.examples.iter().take(MOST).collect();
        let (open, folded) = shown.split_at(shown.len().min(OPEN));
        if !open.is_empty() {
            html += &examples_html(open);
        }
        if !folded.is_empty() {
            // Writing to a string cannot fail.
            let _ = write!(
                html,
                "<details style=\"font-size:13px\"><summary style=\"cursor:pointer\">{} more</summary>{}</details>",
                self.len() - open.len(),
                examples_html(folded)
            );
        }
        if self.len() > MOST {
            let _ = write!(
                html,
                "<div style=\"font-size:12px\">{} are not shown: `.examples` has all</div>",
                self.len() - MOST
            );
        }
        html + &notes_html(&self.notes)
    }

    /// A line an example.
    pub fn to_plain(&self) -> String {
        let mut plain = self.title() + "\n";
        if !self.is_empty() {
            plain += &examples_plain(&self.examples);
        }
        for note in &self.notes {
            plain += note;
            plain.push('\n');
        }
        plain
    }
}

/// Examples in the order of their loss.
#[derive(Clone, PartialEq)]
pub struct RankedExamples {
    /// `the 10 examples with the highest loss`
    pub title: String,
    /// The examples, the most extreme one first.
    pub examples: Vec<ExampleView>,
    /// How many examples were evaluated to find them.
    pub evaluated: usize,
    /// How many there are.
    pub total: usize,
    /// What is to be known beside the table, a sentence each.
    pub notes: Vec<String>,
}

impl RankedExamples {
    /// A table whose rows open to word pieces, as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        let shown: Vec<&ExampleView> = self.examples.iter().take(MOST).collect();
        title_html(&self.title) + &examples_html(&shown) + &notes_html(&self.notes)
    }

    /// A line an example.
    pub fn to_plain(&self) -> String {
        let mut plain = format!("{}\n{}", self.title, examples_plain(&self.examples));
        for note in &self.notes {
            plain += note;
            plain.push('\n');
        }
        plain
    }
}

macro_rules! shown_as_text {
    ($($kind:ty)*) => {
        $(impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&text::visible(&self.to_plain()))
            }
        }

        impl fmt::Debug for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        })*
    };
}

shown_as_text!(BatchView RankedExamples);

#[cfg(test)]
mod tests {
    use super::*;

    pub fn example(row: usize, word: &str) -> ExampleView {
        let piece = |text: &str, unknown, attended| Piece {
            text: text.to_owned(),
            id: 1,
            segment: 0,
            attended,
            unknown,
        };
        ExampleView {
            row,
            text: word.to_owned(),
            pieces: vec![
                piece(word, false, true),
                piece("[UNK]", true, true),
                piece("[PAD]", false, false),
            ],
            features: Vec::new(),
            label: Some("a<b".to_owned()),
            class: Some(1),
            target: None,
            predicted: "c".to_owned(),
            predicted_class: Some(0),
            probabilities: vec![0.75, 0.25],
            outputs: vec![1.0, 0.0],
            loss: f64::INFINITY,
            micro_batch: 0,
            replica: 0,
        }
    }

    #[test]
    fn an_example_has_its_pieces_mask_and_probability() {
        let view = example(3, "x");
        assert_eq!((view.mask(), view.segments()), (vec![1, 1, 0], vec![0; 3]));
        assert_eq!((view.unknown(), view.is_right()), (1, Some(false)));
        assert_eq!(view.probability(), Some(0.25));
        let number = ExampleView {
            class: None,
            predicted_class: None,
            probabilities: Vec::new(),
            ..view
        };
        assert_eq!((number.probability(), number.is_right()), (None, None));
    }

    #[test]
    fn long_batches_are_folded_and_bounded() {
        let batch = |count: usize| BatchView {
            step: 2,
            examples: (0..count).map(|row| example(row, "<i>")).collect(),
            loss: f64::NAN,
            notes: vec!["a `note`".to_owned()],
        };
        let html = batch(1000).to_html();
        assert_eq!(html.matches("<details").count(), MOST + 1);
        assert!(
            html.contains("936 are not shown") && html.len() < 200_000,
            "{}",
            html.len()
        );
        assert!(html.contains("a&lt;b") && html.contains("&lt;i&gt;") && !html.contains("<i>"));
        assert!(html.contains("not in the vocabulary") && html.contains("1 of padding"));
        assert!(html.contains("mean loss NaN") && html.contains("scope=\"row\""));
        assert!(batch(1000).to_plain().contains("and 936 more"));
        assert!(batch(1).to_plain().contains("<i> [UNK]"));
        let none = batch(0);
        assert!(none.is_empty() && none.to_html().contains("the run is over"));
        assert!(!none.to_html().contains("<table") && none.to_plain().contains("is over"));
    }
}

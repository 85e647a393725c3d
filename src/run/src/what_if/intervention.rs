//! [`Interventions`]: what a call wants to change, as it is written in a cell.

use stratoscope_bert::taps::{Change, EMBEDDINGS, Selection};

use stratoscope_step::changed::NewWeights;

/// What is to be changed about a step: `run.what_if(|it| it.head(3, 5).scale(0.0))?`. Several changes are made in their
/// order: `|it| { it.layer(2).scale(0.5); it.dropout(0.0); }`.
#[derive(Debug, Default)]
pub struct Interventions {
    pub(super) activations: Vec<Change>,
    pub(super) weights: Vec<(String, NewWeights)>,
    pub(super) gradients: Vec<(String, f64)>,
    pub(super) labels: Vec<(usize, WrittenLabel)>,
    pub(super) example_weights: Vec<(usize, f64)>,
    pub(super) dropout: Option<f64>,
}

/// A label as written.
#[derive(Clone, Debug, PartialEq)]
pub enum WrittenLabel {
    /// The name of a class.
    Name(String),
    /// The number of a class, or a number to be predicted.
    Number(f64),
}

/// What stands for a label: the name of a class, its number, or a number to be predicted.
#[diagnostic::on_unimplemented(
    message = "expected a label, got `{Self}`",
    label = "the name of a class, `\"games\"`, its number, `2`, or a number to be predicted, `0.5`"
)]
pub trait IntoWrittenLabel {
    /// The label as written.
    fn into_written_label(self) -> WrittenLabel;
}

impl IntoWrittenLabel for &str {
    fn into_written_label(self) -> WrittenLabel {
        WrittenLabel::Name(self.to_owned())
    }
}

impl IntoWrittenLabel for String {
    fn into_written_label(self) -> WrittenLabel {
        WrittenLabel::Name(self)
    }
}

macro_rules! numbers {
    ($($number:ty),*) => { $(
        impl IntoWrittenLabel for $number {
            fn into_written_label(self) -> WrittenLabel {
                WrittenLabel::Number(self as f64)
            }
        }
    )* };
}

numbers!(f32, f64, i32, i64, u32, u64, usize);

impl Interventions {
    /// The output of an encoder layer, counted from 0: `it.layer(3).scale(0.5)`, `it.layer(3).token(0).set(0.0)`.
    pub fn layer(&mut self, layer: usize) -> Selection<'_> {
        Selection::of_layer(&mut self.activations, layer)
    }

    /// The output of an attention head before the heads are mixed, both counted from 0: `it.head(3, 5).scale(0.0)`.
    pub fn head(&mut self, layer: usize, head: usize) -> Selection<'_> {
        Selection::of_head(&mut self.activations, layer, head)
    }

    /// What the encoder begins with, after LayerNorm and dropout.
    pub fn embeddings(&mut self) -> Selection<'_> {
        Selection::of_output(&mut self.activations, EMBEDDINGS)
    }

    /// Any output, by the name under which `run.activations("*")?` shows it: `it.output("dense_1").scale(0.0)`.
    pub fn output(&mut self, name: impl Into<String>) -> Selection<'_> {
        Selection::of_output(&mut self.activations, name)
    }

    /// The variables whose names match a pattern: `it.weights("classifier.weight").scale(1.1)`. They are changed before the
    /// step and stay changed.
    pub fn weights(&mut self, pattern: impl Into<String>) -> ChosenWeights<'_> {
        ChosenWeights {
            all: &mut self.weights,
            pattern: pattern.into(),
        }
    }

    /// The gradients of the variables whose names match a pattern, before clipping:
    /// `it.gradients("encoder.layer.0.*").scale(0.0)`.
    pub fn gradients(&mut self, pattern: impl Into<String>) -> ChosenGradients<'_> {
        ChosenGradients {
            all: &mut self.gradients,
            pattern: pattern.into(),
        }
    }

    /// Another label of an example of the batch, by its place in `run.batch()?`: `it.label(2, "games")`.
    pub fn label(&mut self, example: usize, label: impl IntoWrittenLabel) {
        self.labels.push((example, label.into_written_label()));
    }

    /// What an example of the batch counts in the loss: 0 leaves it out, 1 is usual.
    pub fn example_weight(&mut self, example: usize, weight: impl Into<f64>) {
        self.example_weights.push((example, weight.into()));
    }

    /// The rate of every dropout; 0 switches dropout off.
    pub fn dropout(&mut self, rate: impl Into<f64>) {
        self.dropout = Some(rate.into());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.activations.is_empty()
            && self.weights.is_empty()
            && self.gradients.is_empty()
            && self.labels.is_empty()
            && self.example_weights.is_empty()
            && self.dropout.is_none()
    }
}

/// Variables that are being chosen.
#[derive(Debug)]
#[must_use = "say what becomes of them: `.scale(1.1)` or `.set(0.0)`"]
pub struct ChosenWeights<'a> {
    all: &'a mut Vec<(String, NewWeights)>,
    pattern: String,
}

impl ChosenWeights<'_> {
    /// Multiplies them.
    pub fn scale(self, factor: impl Into<f64>) {
        self.all
            .push((self.pattern, NewWeights::Scaled(factor.into())));
    }

    /// Puts this number in place of each.
    pub fn set(self, number: impl Into<f64>) {
        self.all
            .push((self.pattern, NewWeights::Set(number.into())));
    }
}

/// Gradients that are being chosen.
#[derive(Debug)]
#[must_use = "say what becomes of them: `.scale(0.0)`"]
pub struct ChosenGradients<'a> {
    all: &'a mut Vec<(String, f64)>,
    pattern: String,
}

impl ChosenGradients<'_> {
    /// Multiplies them.
    pub fn scale(self, factor: impl Into<f64>) {
        self.all.push((self.pattern, factor.into()));
    }
}

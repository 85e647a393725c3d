//! The parts of predictions, and how Rust reads them from their rows.

use super::number::{Type, Typed};

/// What a value of the cell is, as a part of predictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// What the model returns: `outputs`.
    Outputs,
    /// `outputs.logits`.
    Logits,
    /// After softmax.
    Probabilities,
    /// The numbers of the likeliest classes.
    Classes,
    /// Their names.
    Labels,
    /// The probabilities of the likeliest classes.
    Scores,
    /// The probability of one class.
    Probability(usize),
    /// The class of one text, in a loop.
    OneClass,
}

/// A part of predictions.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub stage: Stage,
    /// The predictions, as Rust: a name, or the call that makes them.
    pub base: String,
    /// The row.
    pub at: Option<String>,
}

impl Found {
    /// It as Rust, with its type.
    pub fn rust(&self) -> Typed {
        let base = &self.base;
        let (rust, kind) = match (self.stage, &self.at) {
            (Stage::Outputs | Stage::Logits, None) => (base.clone(), Type::Unknown),
            (Stage::Outputs | Stage::Logits, Some(at)) => {
                (format!("{base}.rows[{at}].clone()"), Type::Unknown)
            }
            (Stage::Probabilities, None) => (
                format!(
                    "{base}.rows.iter().map(|row| row.probabilities.clone()).collect::<Vec<_>>()"
                ),
                Type::Unknown,
            ),
            (Stage::Probabilities, Some(at)) => (
                format!("{base}.rows[{at}].probabilities.clone()"),
                Type::Unknown,
            ),
            (Stage::Classes, None) => (
                format!("{base}.rows.iter().filter_map(|row| row.class).collect::<Vec<_>>()"),
                Type::Unknown,
            ),
            (Stage::Classes, Some(at)) => (
                format!("{base}.rows[{at}].class.unwrap_or_default()"),
                Type::Int,
            ),
            (Stage::OneClass, at) => (at.clone().unwrap_or_default(), Type::Int),
            (Stage::Labels, None) => (format!("{base}.labels()"), Type::Unknown),
            (Stage::Labels, Some(at)) if at.parse::<usize>().is_err() => {
                (format!("{base}.label_names[{at}].clone()"), Type::Text)
            }
            (Stage::Labels, Some(at)) => (format!("{base}.rows[{at}].label.clone()"), Type::Text),
            (Stage::Probability(class), at) => {
                let at = at.as_deref().unwrap_or("0");
                (
                    format!("{base}.rows[{at}].probabilities[{class}]"),
                    Type::Float,
                )
            }
            (Stage::Scores, None) => (
                format!("{base}.rows.iter().map(|row| row.score).collect::<Vec<_>>()"),
                Type::Unknown,
            ),
            (Stage::Scores, Some(at)) => (format!("{base}.rows[{at}].score"), Type::Float),
        };
        Typed::new(rust, kind)
    }
}

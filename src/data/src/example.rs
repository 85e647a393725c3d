//! [`Example`]: one row of a data set.

use std::sync::Arc;

use crate::annotation::Annotation;

/// The label of an example: a class or a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Label {
    /// The index of a class in the data set's `label_names`.
    Class(usize),
    /// A number to be predicted.
    Value(f32),
}

/// A text, a pair of texts, or a row of numbers, and its label.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// The text; the first text of a pair; for a numeric example, the text that is shown for it.
    pub text: String,
    /// The second text of a pair.
    pub pair: Option<String>,
    /// The features of a numeric example; empty for texts.
    pub features: Arc<[f32]>,
    /// The label; `None` where the data set has none.
    pub label: Option<Label>,
    /// What its loss is multiplied with in training and in evaluation: 1 unless the data says otherwise.
    pub weight: f32,
    /// The name of its class in the data set, so that an example can be shown by itself.
    pub label_name: Option<Arc<str>>,
    /// What it is labeled with where that is more than a class or a number.
    pub annotation: Option<Arc<Annotation>>,
    /// Its row in the source, counted from 0. It stays the same when the data set is
    /// shuffled or split, so that a diagnostic can name the row in the file.
    pub row: usize,
    /// The line of the file where it begins, counted from 1; `None` if it is not from a file.
    pub line: Option<usize>,
    /// The path of the file that it is from, as the user gave it or a pattern found it.
    pub file: Option<Arc<str>>,
}

impl Example {
    /// An example with a text alone.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            pair: None,
            features: Arc::default(),
            label: None,
            weight: 1.0,
            label_name: None,
            annotation: None,
            row: 0,
            line: None,
            file: None,
        }
    }

    /// A row of numbers.
    pub(crate) fn of_features(features: Arc<[f32]>) -> Self {
        const SHOWN: usize = 12;
        let shown = features.iter().take(SHOWN).map(f32::to_string);
        let mut text = shown.collect::<Vec<_>>().join(", ");
        if features.len() > SHOWN {
            text.push_str(&format!(", … ({} numbers)", features.len()));
        }
        Self {
            features,
            ..Self::new(text)
        }
    }

    /// Adds a second text.
    pub fn with_pair(mut self, pair: impl Into<String>) -> Self {
        self.pair = Some(pair.into());
        self
    }

    /// Sets the label.
    pub fn with_label(mut self, label: Label) -> Self {
        self.label = Some(label);
        // The name is set by the data set that the example is added to.
        self.label_name = None;
        self
    }

    /// Its text, or both with `|` between them.
    pub fn texts(&self) -> String {
        match &self.pair {
            Some(pair) => format!("{} | {pair}", self.text),
            None => self.text.clone(),
        }
    }

    /// The index of its class, if it has one.
    pub fn class(&self) -> Option<usize> {
        match self.label {
            Some(Label::Class(class)) => Some(class),
            _ => None,
        }
    }
}

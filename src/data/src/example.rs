//! One row of a data set.

use std::sync::Arc;

/// What an example should be answered with.
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
    /// The text; of a pair, the first one; of a row of numbers, how the row is shown to people.
    pub text: String,
    /// The second text of a pair.
    pub pair: Option<String>,
    /// The numbers of a row of numbers; empty for texts.
    pub features: Arc<[f32]>,
    /// The label; `None` where the data set has none.
    pub label: Option<Label>,
    /// The name of its class, as the data set says it, so that an example can be shown alone.
    pub label_name: Option<Arc<str>>,
    /// Where it stood in its source, counted from 0. It stays the same when the data set is
    /// shuffled or divided, so that a finding can name the row in the file.
    pub row: usize,
    /// The line of the file it begins at, counted from 1; `None` if it comes from no file.
    pub line: Option<usize>,
}

impl Example {
    /// An example with a text alone.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            pair: None,
            features: Arc::default(),
            label: None,
            label_name: None,
            row: 0,
            line: None,
        }
    }

    /// A row of numbers.
    pub(crate) fn of_features(features: &[f32]) -> Self {
        const SHOWN: usize = 12;
        let shown = features.iter().take(SHOWN).map(f32::to_string);
        let mut text = shown.collect::<Vec<_>>().join(", ");
        if features.len() > SHOWN {
            text.push_str(&format!(", … ({} numbers)", features.len()));
        }
        Self {
            features: features.into(),
            ..Self::new(text)
        }
    }

    /// The same with a second text.
    pub fn with_pair(mut self, pair: impl Into<String>) -> Self {
        self.pair = Some(pair.into());
        self
    }

    /// The same with a label.
    pub fn with_label(mut self, label: Label) -> Self {
        self.label = Some(label);
        // The data set that it joins knows the name.
        self.label_name = None;
        self
    }

    /// The index of its class, if it has one.
    pub fn class(&self) -> Option<usize> {
        match self.label {
            Some(Label::Class(class)) => Some(class),
            _ => None,
        }
    }
}

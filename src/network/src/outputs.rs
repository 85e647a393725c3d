//! What a network that takes numbers is called, and its outputs.

use stratoscope_data::Tokenize;

use super::{Files, Input, NoTokenizer};

/// What belongs to a network that takes numbers: what it is called, and its outputs.
#[derive(Clone, Debug)]
pub struct Outputs {
    name: &'static str,
    labels: Vec<String>,
    binary_labels: Option<[String; 2]>,
}

impl Outputs {
    /// For a network that users call `name`, with this many outputs: 1 predicts a number, or
    /// decides between two classes; more are classes.
    pub fn new(name: &'static str, outputs: usize) -> Self {
        let label = |index| format!("LABEL_{index}");
        Self {
            name,
            labels: (0..outputs.max(1)).map(label).collect(),
            binary_labels: None,
        }
    }
}

impl Files for Outputs {
    fn model_name(&self) -> &'static str {
        self.name
    }

    fn takes(&self) -> Input {
        Input::Features
    }

    fn tokenizer(&self) -> &dyn Tokenize {
        &NoTokenizer
    }

    fn label_names(&self) -> &[String] {
        &self.labels
    }

    fn set_label_names(&mut self, labels: Vec<String>) {
        self.labels = labels;
    }

    fn binary_labels(&self) -> Option<&[String; 2]> {
        self.binary_labels.as_ref()
    }

    fn set_binary_labels(&mut self, binary_labels: Option<[String; 2]>) {
        self.binary_labels = binary_labels;
    }

    fn max_positions(&self) -> usize {
        usize::MAX
    }
}

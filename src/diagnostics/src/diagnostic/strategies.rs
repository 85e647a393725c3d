//! The strategies that a diagnostic names and that only the text of the cell has a variable for.

use serde::{Deserialize, Serialize};

use super::Diagnostic;

/// A strategy that the running cell has made and no variable of the notebook holds yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnnamedStrategy {
    /// What the texts of the diagnostic call it: `mirrored#2`.
    pub label: String,
    /// The line of the statement that makes it, counted from 1.
    pub line: usize,
}

impl Diagnostic {
    /// Adds strategies that its texts name by their labels.
    pub fn naming(mut self, strategies: impl IntoIterator<Item = UnnamedStrategy>) -> Self {
        self.unnamed.extend(strategies);
        self
    }
}

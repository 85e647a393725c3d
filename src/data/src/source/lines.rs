//! Plain text: a line is a text without a label, for predictions.

use std::path::Path;

use stratoscope_diagnostics::Result;

use super::{Reading, files, read_text};
use crate::dataset::Dataset;
use crate::example::Example;
use crate::problem;

const CALL: &str = "Dataset::text";

impl Dataset {
    /// Reads a file of texts, one a line, without labels. Blank lines are left out.
    ///
    /// # Errors
    /// SC0911 if the file cannot be read as UTF-8, SC0914 if there is no line.
    pub fn text(path: impl AsRef<Path>) -> Result<Self> {
        files::read(CALL, path.as_ref(), lines)
    }
}

/// The lines of one file.
fn lines(path: &Path) -> Result<Dataset> {
    let content = read_text(CALL, path)?;
    let source = path.display().to_string();
    let mut reading = Reading::begin(content.len());
    let mut offset = 0;
    let mut examples = Vec::new();
    for (index, line) in content.lines().enumerate() {
        reading.row(offset)?;
        offset += line.len() + 1;
        if line.trim().is_empty() {
            continue;
        }
        examples.push(Example {
            line: Some(index + 1),
            ..Example::new(line)
        });
    }
    reading.finished();
    if examples.is_empty() {
        return Err(problem::empty(&source, CALL));
    }
    Ok(Dataset::from_examples(examples, Vec::new(), source))
}

//! [`Answer`]: what a classifier says of one example.

use stratoscope_diagnostics::Result;

use crate::bad_value;

/// An example and what a classifier says of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Its row in the source of the data.
    pub row: usize,
    /// The text; the features of a numeric example, as text.
    pub text: String,
    /// The second text of a pair.
    pub pair: Option<String>,
    /// The class that the data gives it.
    pub label: usize,
    /// The most probable class.
    pub predicted: usize,
    /// The probability of every class.
    pub probabilities: Vec<f64>,
}

impl Answer {
    /// The probability of the class that was predicted; NaN where it is not known.
    pub fn confidence(&self) -> f64 {
        let own = self.probabilities.get(self.predicted);
        own.copied().unwrap_or(f64::NAN)
    }

    /// Whether the label was predicted.
    pub fn is_right(&self) -> bool {
        self.predicted == self.label
    }
}

/// Whether there are answers, all of these classes.
pub(crate) fn check(call: &str, answers: &[Answer], classes: usize) -> Result<()> {
    if answers.is_empty() {
        let expects = "at least one example".to_owned();
        return Err(bad_value(call, "data", "none".to_owned(), expects));
    }
    let beyond = answers
        .iter()
        .find(|it| it.label >= classes || it.predicted >= classes);
    let Some(beyond) = beyond else {
        return Ok(());
    };
    let given = format!(
        "row {} with the class {}",
        beyond.row,
        beyond.label.max(beyond.predicted)
    );
    let expects = format!("one of the {classes} classes of the model");
    Err(bad_value(call, "data", given, expects))
}

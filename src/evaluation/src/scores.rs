//! [`Scores`]: the results of a trial, by name.

use serde::{Deserialize, Serialize};

use crate::assessment::Assessment;

/// Results by name, the most important one first: `accuracy` 0.87, `loss` 0.41. A missing number is one that is undefined.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scores(pub Vec<(String, Option<f64>)>);

impl Scores {
    /// The number with this name.
    pub fn get(&self, name: &str) -> Option<f64> {
        let own = self.0.iter().find(|(own, _)| own == name);
        own.and_then(|(_, value)| *value)
    }
}

/// What a trial may end with: an evaluation, a history, an assessment, a number, or numbers with names.
pub trait IntoScores {
    /// The results by name.
    fn into_scores(self) -> Scores;
}

impl IntoScores for Scores {
    fn into_scores(self) -> Scores {
        self
    }
}

impl IntoScores for f64 {
    fn into_scores(self) -> Scores {
        Scores(vec![("score".to_owned(), Some(self))])
    }
}

impl<const N: usize> IntoScores for [(&str, f64); N] {
    fn into_scores(self) -> Scores {
        let own = self.into_iter();
        Scores(
            own.map(|(name, value)| (name.to_owned(), Some(value)))
                .collect(),
        )
    }
}

impl IntoScores for &Assessment {
    fn into_scores(self) -> Scores {
        let values = [("accuracy", self.accuracy()), ("macro_f1", self.macro_f1())];
        let mut scores = values
            .map(|(name, interval)| (name.to_owned(), Some(interval.value)))
            .to_vec();
        scores.extend(
            self.calibration()
                .map(|it| ("calibration_error".to_owned(), Some(it.error))),
        );
        Scores(scores)
    }
}

impl IntoScores for Assessment {
    fn into_scores(self) -> Scores {
        (&self).into_scores()
    }
}

/// Whether a smaller number is a better one.
pub(crate) fn is_smaller_better(name: &str) -> bool {
    let name = name.strip_prefix("val_").unwrap_or(name);
    [
        "loss",
        "error",
        "mae",
        "mse",
        "rmse",
        "perplexity",
        "seconds",
    ]
    .iter()
    .any(|known| name == *known || name.ends_with(&format!("_{known}")))
}

/// A number of a table.
pub(crate) fn number(value: Option<f64>) -> String {
    match value {
        Some(value) => format!("{value:.4}"),
        None => "–".to_owned(),
    }
}

/// The names of all scores, in the order in which they first occur.
pub(crate) fn names<'a>(scores: impl IntoIterator<Item = &'a Scores>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in scores.into_iter().flat_map(|scores| &scores.0) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

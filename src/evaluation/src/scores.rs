//! [`Scores`]: the results of a trial, by name.

use serde::{Deserialize, Serialize};

use crate::assessment::Assessment;

/// Results by name, the most important one first: `accuracy` 0.87, `loss` 0.41. A missing number is one that is undefined.
/// Made of a list by `Scores::from`. Files have the list alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Scores(
    pub Vec<(String, Option<f64>)>,
    /// Whether a smaller number is a better one, of the names of which that is known.
    #[serde(skip)]
    Vec<(String, bool)>,
);

impl From<Vec<(String, Option<f64>)>> for Scores {
    fn from(values: Vec<(String, Option<f64>)>) -> Self {
        Self(values, Vec::new())
    }
}

impl Scores {
    /// The same where it is known of these names whether a smaller number is a better one. Of others it is by the name: of
    /// `loss` and `…_error` it is, of anything else a larger one.
    #[must_use]
    pub fn with_directions(self, is_smaller_better: Vec<(String, bool)>) -> Self {
        Self(self.0, is_smaller_better)
    }

    /// Of which names it is known whether a smaller number is a better one.
    pub(crate) fn directions(&self) -> &[(String, bool)] {
        &self.1
    }

    /// The number with this name.
    pub fn get(&self, name: &str) -> Option<f64> {
        let own = self.0.iter().find(|(own, _)| own == name);
        own.and_then(|(_, value)| *value)
    }
}

/// What a trial may end with: an evaluation, a history, an assessment, a number, or numbers with names.
#[diagnostic::on_unimplemented(
    message = "a trial ends with what was measured, not with `{Self}`",
    label = "an evaluation, a history, a number, or pairs of names and numbers"
)]
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
        Scores::from(vec![("score".to_owned(), Some(self))])
    }
}

impl<const N: usize> IntoScores for [(&str, f64); N] {
    fn into_scores(self) -> Scores {
        let own = self.map(|(name, value)| (name.to_owned(), Some(value)));
        Scores::from(own.to_vec())
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
        Scores::from(scores)
    }
}

impl IntoScores for Assessment {
    fn into_scores(self) -> Scores {
        (&self).into_scores()
    }
}

/// Whether a smaller number of this name is a better one: as the first of these results says that knows, else by the name.
pub(crate) fn is_smaller_better<'a>(
    scores: impl IntoIterator<Item = &'a Scores>,
    name: &str,
) -> bool {
    let mut known = scores.into_iter().flat_map(Scores::directions);
    let known = known.find(|(own, _)| own == name);
    known.map_or_else(
        || is_smaller_better_by_name(name),
        |(_, is_smaller)| *is_smaller,
    )
}

fn is_smaller_better_by_name(name: &str) -> bool {
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

//! [`AuditOptions`]: what an audit is asked beyond its data.

use std::fmt;

use stratoscope_data::{Dataset, Example};

use crate::near_duplicates::SIMILARITY;
use crate::slices::Asked;

/// How an audit is made; each has a default.
pub struct AuditOptions {
    pub(crate) folds: usize,
    pub(crate) seed: u64,
    pub(crate) similarity: f64,
    pub(crate) splits: Vec<(String, Dataset)>,
    pub(crate) slices: Vec<Asked>,
    pub(crate) probabilities: Option<Vec<Vec<f64>>>,
}

impl Default for AuditOptions {
    fn default() -> Self {
        Self {
            folds: 5,
            seed: 0,
            similarity: SIMILARITY,
            splits: Vec::new(),
            slices: Vec::new(),
            probabilities: None,
        }
    }
}

impl AuditOptions {
    /// 5 folds, seed 0, near-duplicates from a similarity of 0.7 on, no other split.
    pub fn new() -> Self {
        Self::default()
    }

    /// Folds of the cross-validation.
    #[must_use]
    pub fn folds(mut self, folds: usize) -> Self {
        self.folds = folds;
        self
    }

    /// The seed that decides which fold each row is in.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The lowest similarity of near-duplicates, above 0 and at most 1.
    #[must_use]
    pub fn similarity(mut self, similarity: f64) -> Self {
        self.similarity = similarity;
        self
    }

    /// Another split whose rows should not be in the data: `.split("dev", &dev)`.
    #[must_use]
    pub fn split(mut self, name: &str, data: &Dataset) -> Self {
        self.splits.push((name.to_owned(), data.clone()));
        self
    }

    /// One more part of the data whose error is compared with that of the rest: `.slice("short", |it| it.text.len() < 20)`.
    #[must_use]
    pub fn slice(mut self, name: &str, keep: impl Fn(&Example) -> bool + Send + 'static) -> Self {
        self.slices.push((name.to_owned(), Box::new(keep)));
        self
    }

    /// Out-of-sample probabilities of a model of your own, a row for each example with a number for each class, instead of
    /// those of a classifier on the vectors: `.probabilities(out_of_fold(&train, 5, |part, rest| …)?.probabilities)`.
    #[must_use]
    pub fn probabilities(mut self, probabilities: Vec<Vec<f64>>) -> Self {
        self.probabilities = Some(probabilities);
        self
    }

    /// Folds that were asked for.
    pub fn fold_count(&self) -> usize {
        self.folds
    }
}

impl fmt::Debug for AuditOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditOptions")
            .field("folds", &self.folds)
            .field("seed", &self.seed)
            .field("similarity", &self.similarity)
            .finish_non_exhaustive()
    }
}

//! [`Search`]: which combinations of settings are tried, and where their results are kept.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use stratoscope_data::RandomStream;
use stratoscope_diagnostics::Result;
use stratoscope_render::text;

use super::Axis;
use crate::bad_value;

/// More trials than this are not begun: it is a list of values that is longer than was meant.
const MOST: usize = 100_000;

/// Which combinations a sweep tries.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// As many, chosen by this seed; all where `None`.
    random: Option<(usize, u64)>,
    folder: Option<PathBuf>,
}

impl Search {
    /// Every combination.
    pub fn grid() -> Self {
        Self {
            random: None,
            folder: None,
        }
    }

    /// `trials` combinations, each at most once, chosen at random by a seed; all, where there are no more.
    pub fn random(trials: usize, seed: u64) -> Self {
        Self {
            random: Some((trials, seed)),
            folder: None,
        }
    }

    /// Keeps each result in this folder as soon as its trial has ended. Another sweep over the same values with the same
    /// folder makes the missing trials only.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    pub(super) fn folder_path(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Of each combination the numbers of its values; the last setting changes fastest.
    pub(super) fn combinations(&self, axes: &[Axis]) -> Result<Vec<Vec<usize>>> {
        let all = axes
            .iter()
            .try_fold(1_usize, |all, axis| all.checked_mul(axis.values.len()));
        let all = all.unwrap_or(usize::MAX);
        let wanted = match self.random {
            Some((0, _)) => {
                let expects = "at least one trial".to_owned();
                return Err(bad_value("sweep", "search", "0 trials".to_owned(), expects));
            }
            Some((trials, _)) => trials.min(all),
            None => all,
        };
        if wanted > MOST {
            let given = text::count(wanted, "trial");
            let expects = format!(
                "at most {}: fewer values, or `Search::random(50, 0)`",
                text::thousands(MOST)
            );
            return Err(bad_value("sweep", "search", given, expects));
        }
        let numbers: Vec<usize> = match self.random {
            Some((_, seed)) if wanted < all => {
                let mut random = RandomStream::new(seed, 0);
                let mut seen = HashSet::new();
                let draws = std::iter::from_fn(|| Some(random.below(all)));
                draws
                    .filter(|number| seen.insert(*number))
                    .take(wanted)
                    .collect()
            }
            _ => (0..wanted).collect(),
        };
        Ok(numbers
            .into_iter()
            .map(|number| combination(number, axes))
            .collect())
    }
}

/// The digits of a number, in which each setting is a place.
fn combination(mut number: usize, axes: &[Axis]) -> Vec<usize> {
    let mut chosen: Vec<usize> = (axes.iter().rev())
        .map(|axis| {
            let digit = number % axis.values.len();
            number /= axis.values.len();
            digit
        })
        .collect();
    chosen.reverse();
    chosen
}

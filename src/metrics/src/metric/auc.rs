//! The area under the receiver operating characteristic.
//!
//! `auc` is exact: every score is a threshold, as for scikit-learn's `roc_auc_score`. It is the share of the pairs of
//! an example of class 1 and one of class 0 in which the former has the higher score; equal scores count half (Hanley
//! and McNeil 1982).
//!
//! `keras_auc` is Keras's approximation: the curve has a point for each of 200 thresholds, and straight lines between
//! them, so that scores between two neighboring thresholds count as equal.
//! Source: `keras/src/metrics/confusion_metrics.py`, class `AUC` with its defaults (`num_thresholds=200`,
//! `curve="ROC"`, `summation_method="interpolation"`), and `keras/src/metrics/metrics_utils.py`,
//! `_update_confusion_matrix_variables_optimized`.

use super::Tally;
use super::applicability::{Answers, Fit};
use super::measure::Measure;
use super::precision_recall::INSTEAD;

/// Thresholds of the curve: −ε, 1/199, 2/199, … 198/199, 1 + ε.
pub(super) const THRESHOLDS: usize = 200;

/// How often each class has a probability between two neighboring thresholds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scores {
    /// Examples of class 0, then those of class 1.
    counts: [[u64; THRESHOLDS]; 2],
}

impl Default for Scores {
    fn default() -> Self {
        Self {
            counts: [[0; THRESHOLDS]; 2],
        }
    }
}

impl Scores {
    /// From [`Self::all`].
    pub fn from_counts(all: &[u64]) -> Self {
        let mut scores = Self::default();
        let counts = scores.counts.iter_mut().flatten();
        counts.zip(all).for_each(|(count, &other)| *count = other);
        scores
    }

    /// Adds an example by its probability of class 1. One that is not finite says nothing.
    pub fn add(&mut self, is_one: bool, probability: f64) {
        if probability.is_finite() {
            // The thresholds below a probability are those before its bucket, and the bucket's own.
            let bucket = (probability.clamp(0.0, 1.0) * (THRESHOLDS - 1) as f64).ceil() as usize;
            self.counts[usize::from(is_one)][bucket.saturating_sub(1)] += 1;
        }
    }

    pub fn merge(&mut self, other: &Self) {
        let counts = self.counts.iter_mut().flatten();
        for (count, other) in counts.zip(other.counts.iter().flatten()) {
            *count += other;
        }
    }

    /// All counts, class by class.
    pub fn all(&self) -> impl Iterator<Item = u64> {
        self.counts.iter().flatten().copied()
    }
}

/// The exact area, of labels and scores: a label above ½ is class 1. A score that is not finite says nothing. Undefined if one
/// of the classes is missing.
fn exact(pairs: &[(f64, f64)]) -> Option<f64> {
    let finite = pairs.iter().filter(|(_, score)| score.is_finite());
    let mut scored: Vec<(f64, bool)> = finite.map(|&(label, score)| (score, label > 0.5)).collect();
    // A stable sort takes the two ordered runs of a tally as they are.
    scored.sort_by(|(score, _), (other, _)| score.total_cmp(other));
    let (mut below, mut ones, mut twice_area) = (0_u128, 0_u128, 0_u128);
    // −0 and 0 are one score, which `total_cmp` orders.
    for equal in scored.chunk_by(|(score, _), (other, _)| score == other) {
        let own_ones = equal.iter().filter(|(_, is_one)| *is_one).count() as u128;
        let own_zeros = equal.len() as u128 - own_ones;
        twice_area += own_ones * (2 * below + own_zeros);
        below += own_zeros;
        ones += own_ones;
    }
    let pairs = below * ones;
    (pairs > 0).then(|| twice_area as f64 / (2.0 * pairs as f64))
}

/// Keras's area. Undefined if one of the classes is missing. (Keras says 0.)
fn of(scores: &Scores) -> Option<f64> {
    let totals = scores
        .counts
        .each_ref()
        .map(|counts| counts.iter().sum::<u64>());
    if totals.contains(&0) {
        return None;
    }
    // From the highest threshold, which nothing exceeds, down to the lowest, which everything does.
    let (mut above, mut area) = ([0_u64; 2], 0.0);
    for bucket in (0..THRESHOLDS).rev() {
        let before = above;
        for (above, counts) in above.iter_mut().zip(&scores.counts) {
            *above += counts[bucket];
        }
        // Width times twice the height, in whole numbers until the end.
        let width = (above[0] - before[0]) as f64;
        area += width * (above[1] + before[1]) as f64;
    }
    Some(area / (2.0 * totals[0] as f64 * totals[1] as f64))
}

/// [`auc`](super::auc()).
#[derive(Clone, Copy, Debug)]
pub(super) struct Auc;

impl Measure for Auc {
    fn name(&self) -> &'static str {
        "auc"
    }

    fn value(&self, tally: &Tally) -> Option<f64> {
        exact(tally.pairs())
    }

    fn fit(&self, answers: Answers) -> Fit {
        Fit::of_two_classes(answers, INSTEAD)
    }

    fn prepare(&self, tally: &mut Tally) {
        tally.keeps_pairs |= tally.classes() == 2;
    }
}

/// [`keras_auc`](super::keras_auc()).
#[derive(Clone, Copy, Debug)]
pub(super) struct KerasAuc;

impl Measure for KerasAuc {
    fn name(&self) -> &'static str {
        "keras_auc"
    }

    fn value(&self, tally: &Tally) -> Option<f64> {
        tally.scores().and_then(of)
    }

    fn fit(&self, answers: Answers) -> Fit {
        Fit::of_two_classes(answers, INSTEAD)
    }

    fn prepare(&self, tally: &mut Tally) {
        if tally.classes() == 2 {
            tally.scores = Some(Box::default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(zeros: &[f64], ones: &[f64], expected: Option<f64>) {
        let mut scores = Scores::default();
        zeros.iter().for_each(|&score| scores.add(false, score));
        ones.iter().for_each(|&score| scores.add(true, score));
        match (of(&scores), expected) {
            (Some(found), Some(expected)) => {
                assert!((found - expected).abs() < 1e-12, "{found}, not {expected}");
            }
            (found, expected) => assert_eq!(found, expected),
        }
    }

    /// The share of the pairs in the right order, pair by pair.
    fn by_pairs(pairs: &[(f64, f64)]) -> f64 {
        let of = |class: f64| pairs.iter().filter(move |(label, _)| *label == class);
        let each = of(1.0).flat_map(|one| of(0.0).map(move |zero| (one.1, zero.1)));
        let worth = each.map(|(one, zero)| match () {
            () if one > zero => 1.0,
            () if one == zero => 0.5,
            () => 0.0,
        });
        let worth: Vec<f64> = worth.collect();
        worth.iter().sum::<f64>() / worth.len() as f64
    }

    #[test]
    fn the_exact_area_is_that_of_scikit_learn() {
        // The example of its documentation: `roc_auc_score([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])` is 0.75.
        let found = exact(&[(0.0, 0.1), (0.0, 0.4), (1.0, 0.35), (1.0, 0.8)]);
        assert_eq!(found, Some(0.75));
        assert_eq!(exact(&[(0.0, 0.501), (1.0, 0.502)]), Some(1.0));
        assert_eq!(exact(&[(0.0, 0.5), (1.0, 0.5), (1.0, 0.5)]), Some(0.5));
        assert_eq!(exact(&[(0.0, 0.0), (1.0, -0.0)]), Some(0.5));
        assert_eq!(
            exact(&[(-1.0, -2.0), (1.0, 3.0), (1.0, f64::NAN)]),
            Some(1.0)
        );
        assert_eq!(exact(&[(1.0, 0.5)]), None);
        assert_eq!(exact(&[]), None);
    }

    /// 100 scores near ½, some of them equal, where Keras's thresholds are too far apart.
    #[test]
    fn scores_near_one_half_are_different_scores() {
        let pair = |row: u32| {
            let label = f64::from(u8::from((row * 31 + row / 7).is_multiple_of(3)));
            let score = 0.5 + f64::from(row * 7919 % 41) * 1e-4 - label * 1e-3;
            (label, score)
        };
        let pairs: Vec<(f64, f64)> = (0..100).map(pair).collect();
        let expected = by_pairs(&pairs);
        let found = exact(&pairs).expect("both classes");
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        let mut scores = Scores::default();
        (pairs.iter()).for_each(|&(label, score)| scores.add(label > 0.5, score));
        let of_keras = of(&scores).expect("both classes");
        assert!((found - of_keras).abs() > 0.01, "{found} {of_keras}");
    }

    #[test]
    fn pairs_in_the_right_order_count() {
        check(&[0.1, 0.2], &[0.7, 0.9], Some(1.0));
        check(&[0.7, 0.9], &[0.1, 0.2], Some(0.0));
        check(&[0.5; 3], &[0.5; 2], Some(0.5));
        // Keras's own example: `m.update_state([0, 0, 1, 1], [0, 0.5, 0.3, 0.9])` is 0.75.
        check(&[0.0, 0.5], &[0.3, 0.9], Some(0.75));
        // The ends, and what lies outside of them.
        check(&[0.0, -3.0], &[1.0, 7.0], Some(1.0));
        check(&[1.0], &[1.0], Some(0.5));
    }

    /// 0.501 and 0.502 lie between the same two thresholds: for Keras they are equal, and each of the two
    /// pairs counts half. scikit-learn's area is 1.
    #[test]
    fn what_lies_between_two_thresholds_is_equal() {
        check(&[0.501], &[0.502], Some(0.5));
        check(&[0.501, 0.1], &[0.502], Some(0.75));
    }

    #[test]
    fn one_class_has_no_curve() {
        check(&[], &[0.5], None);
        check(&[0.5], &[], None);
        check(&[f64::NAN], &[0.5], None);
    }

    /// By the definition, threshold by threshold.
    #[test]
    fn it_is_the_sum_of_trapezoids() {
        let score = |index: u32| f64::from(index * 7919 % 1000) / 999.0;
        let is_one = |index: u32| (index * 31 + index / 7).is_multiple_of(3);
        let mut scores = Scores::default();
        (0..500).for_each(|index| scores.add(is_one(index), score(index)));
        let thresholds = (0..THRESHOLDS).map(|index| match index {
            0 => -1e-7,
            199 => 1.0 + 1e-7,
            _ => index as f64 / 199.0,
        });
        let share = |class: bool, threshold: f64| {
            let of_class = (0..500).filter(|&index| is_one(index) == class);
            let above = of_class.clone().filter(|&index| score(index) > threshold);
            above.count() as f64 / of_class.count() as f64
        };
        let points: Vec<(f64, f64)> = thresholds
            .map(|threshold| (share(false, threshold), share(true, threshold)))
            .collect();
        let expected: f64 = points
            .windows(2)
            .map(|pair| (pair[0].0 - pair[1].0) * (pair[0].1 + pair[1].1) / 2.0)
            .sum();
        let found = of(&scores).expect("both classes");
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    }
}

//! The area under the receiver operating characteristic, as Keras computes it: the curve has a point for each
//! of 200 thresholds, and straight lines between them.
//! Source: `keras/src/metrics/confusion_metrics.py`, class `AUC` with its defaults (`num_thresholds=200`,
//! `curve="ROC"`, `summation_method="interpolation"`), and `keras/src/metrics/metrics_utils.py`,
//! `_update_confusion_matrix_variables_optimized`.
//!
//! scikit-learn's `roc_auc_score` takes every score for a threshold of its own; the two differ by what falls
//! between neighboring thresholds.

/// Thresholds of the curve: −ε, 1/199, 2/199, … 198/199, 1 + ε.
pub(super) const THRESHOLDS: usize = 200;

/// How often each class has a probability between two neighboring thresholds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scores {
    /// Examples of class 0, then those of class 1.
    counts: [[u64; THRESHOLDS]; 2],
}

impl Scores {
    pub fn empty() -> Self {
        Self {
            counts: [[0; THRESHOLDS]; 2],
        }
    }

    /// From [`Self::all`].
    pub fn from_counts(all: &[u64]) -> Self {
        let mut scores = Self::empty();
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

/// Undefined if one of the classes is missing. (Keras says 0.)
pub(super) fn of(scores: &Scores) -> Option<f64> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(zeros: &[f64], ones: &[f64], expected: Option<f64>) {
        let mut scores = Scores::empty();
        zeros.iter().for_each(|&score| scores.add(false, score));
        ones.iter().for_each(|&score| scores.add(true, score));
        match (of(&scores), expected) {
            (Some(found), Some(expected)) => {
                assert!((found - expected).abs() < 1e-12, "{found}, not {expected}");
            }
            (found, expected) => assert_eq!(found, expected),
        }
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
        let mut scores = Scores::empty();
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

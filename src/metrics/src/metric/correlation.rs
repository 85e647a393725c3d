//! Pearson's and Spearman's correlation of labels and outputs, over the whole split: the mean of
//! the batches' correlations is another number.

use super::applicability::{Answers, Fit};
use super::measure::Measure;
use super::{Tally, ratio};

/// Pearson's r; undefined if one side does not vary.
fn pearson(pairs: &[(f64, f64)]) -> Option<f64> {
    let count = pairs.len() as f64;
    let mean = |side: fn(&(f64, f64)) -> f64| pairs.iter().map(side).sum::<f64>() / count;
    let (x_mean, y_mean) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let (mut both, mut x_square, mut y_square) = (0.0, 0.0, 0.0);
    for (x, y) in pairs {
        let (x, y) = (x - x_mean, y - y_mean);
        both += x * y;
        x_square += x * x;
        y_square += y * y;
    }
    ratio(both, (x_square * y_square).sqrt()).filter(|value| value.is_finite())
}

/// Pearson's r of the ranks; undefined if one side does not vary.
pub fn rank_correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    let labels = ranks(&pairs.iter().map(|pair| pair.0).collect::<Vec<_>>());
    let outputs = ranks(&pairs.iter().map(|pair| pair.1).collect::<Vec<_>>());
    pearson(&labels.into_iter().zip(outputs).collect::<Vec<_>>())
}

/// Each value's place in the sorted order, counted from 1; equal values share the mean place.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    while start < order.len() {
        let same = |&&index: &&usize| values[index] == values[order[start]];
        let end = start + order[start..].iter().take_while(same).count().max(1);
        let place = (start + end + 1) as f64 / 2.0;
        for &index in &order[start..end] {
            ranks[index] = place;
        }
        start = end;
    }
    ranks
}

/// [`pearson`](super::pearson()).
#[derive(Clone, Copy, Debug)]
pub(super) struct Pearson;

impl Measure for Pearson {
    fn name(&self) -> &'static str {
        "pearson"
    }

    fn value(&self, tally: &Tally) -> Option<f64> {
        pearson(tally.pairs())
    }

    fn fit(&self, answers: Answers) -> Fit {
        Fit::when(answers == Answers::Number)
    }

    fn is_of_classes(&self) -> bool {
        false
    }
}

/// [`spearman`](super::spearman()).
#[derive(Clone, Copy, Debug)]
pub(super) struct Spearman;

impl Measure for Spearman {
    fn name(&self) -> &'static str {
        "spearman"
    }

    fn value(&self, tally: &Tally) -> Option<f64> {
        rank_correlation(tally.pairs())
    }

    fn fit(&self, answers: Answers) -> Fit {
        Fit::when(answers == Answers::Number)
    }

    fn is_of_classes(&self) -> bool {
        false
    }
}

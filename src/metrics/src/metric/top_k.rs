//! The share of examples whose label is among the k largest outputs. Keras's
//! `SparseTopKCategoricalAccuracy`: of equal outputs at the border all are among them
//! (`tf.math.in_top_k`).

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::applicability::{Answers, Fit};
use super::measure::Measure;
use super::{Tally, ratio};

/// Keras's default for k.
pub(super) const K: usize = 5;

/// How many outputs are larger than that of the label.
pub(super) fn rank(label: usize, outputs: &[f32]) -> Option<usize> {
    let own = *outputs.get(label)?;
    if !own.is_finite() {
        // It is never among the best.
        return Some(outputs.len());
    }
    Some(outputs.iter().filter(|&&output| output > own).count())
}

/// `ranks`: how often each rank was that of the label.
fn of(k: usize, ranks: &[u64]) -> Option<f64> {
    let right: u64 = ranks.iter().take(k).sum();
    ratio(right as f64, ranks.iter().sum::<u64>() as f64)
}

/// `top_3_accuracy`; one text for each k for as long as the process runs.
fn name(k: usize) -> &'static str {
    static NAMES: Mutex<BTreeMap<usize, &str>> = Mutex::new(BTreeMap::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names
        .entry(k)
        .or_insert_with(|| format!("top_{k}_accuracy").leak())
}

/// [`top_k_accuracy`](super::top_k_accuracy()).
#[derive(Clone, Copy, Debug)]
pub(super) struct TopK {
    pub k: usize,
}

impl Measure for TopK {
    fn name(&self) -> &'static str {
        name(self.k)
    }

    fn value(&self, tally: &Tally) -> Option<f64> {
        of(self.k, tally.ranks())
    }

    fn fit(&self, answers: Answers) -> Fit {
        match answers {
            _ if self.k == 0 => Fit::Instead("`k` ≥ 1"),
            Answers::TwoClasses => {
                Fit::Instead("`accuracy()`, as one output decides between two classes")
            }
            _ => Fit::when(matches!(answers, Answers::Classes(_) | Answers::Words)),
        }
    }

    fn prepare(&self, tally: &mut Tally) {
        if tally.threshold.is_none() && tally.classes() > 0 {
            // The last is for outputs that are not finite.
            tally.ranks = vec![0; tally.classes() + 1];
        }
    }

    fn needs_the_split(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_at_the_border_are_all_among_the_best() {
        assert_eq!(rank(0, &[0.1, 0.9, 0.8]), Some(2));
        assert_eq!(rank(1, &[0.1, 0.9, 0.8]), Some(0));
        assert_eq!(rank(2, &[0.4, 0.2, 0.4]), Some(0));
        assert_eq!(rank(0, &[f32::NAN, 0.2]), Some(2));
        assert_eq!(rank(2, &[0.1, 0.9]), None);
    }

    /// The example of Keras's `SparseTopKCategoricalAccuracy`: labels 2 and 1, k = 1, 0.5.
    #[test]
    fn the_example_of_keras() {
        let rows = [(2, [0.1, 0.9, 0.8]), (1, [0.05, 0.95, 0.0])];
        let mut ranks = [0; 4];
        for (label, outputs) in rows {
            ranks[rank(label, &outputs).expect("a label")] += 1;
        }
        assert_eq!((of(1, &ranks), of(2, &ranks)), (Some(0.5), Some(1.0)));
        assert_eq!(of(9, &ranks), Some(1.0));
        assert_eq!(of(1, &[0; 4]), None);
        assert_eq!(name(3), "top_3_accuracy");
        assert!(std::ptr::eq(name(3), name(3)));
    }
}

//! Labels that are decided one by one: how often each was right, and how often all of an example were.

use std::sync::Arc;

use super::applicability::{Answers, Fit};
use super::measure::Measure;
use super::{Tally, ratio};

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sets {
    /// Of each label: taken and there, taken and not there, there and not taken, neither.
    labels: Vec<[u64; 4]>,
    examples: u64,
    /// Examples whose labels were all right.
    exact: u64,
    /// The output above which a label is taken.
    threshold: f64,
}

impl Sets {
    /// Nothing yet.
    pub(super) fn counting(labels: usize, threshold: f64) -> Self {
        Self {
            labels: vec![[0; 4]; labels],
            threshold,
            ..Self::default()
        }
    }

    /// Adds examples: `outputs` are [B, C].
    pub(super) fn add(&mut self, sets: &[Arc<[usize]>], outputs: &[f32]) {
        let width = self.labels.len().max(1);
        for (set, row) in sets.iter().zip(outputs.chunks_exact(width)) {
            let mut all_right = true;
            for (label, (counts, &output)) in self.labels.iter_mut().zip(row).enumerate() {
                let (there, taken) = (set.contains(&label), f64::from(output) > self.threshold);
                counts[match (taken, there) {
                    (true, true) => 0,
                    (true, false) => 1,
                    (false, true) => 2,
                    (false, false) => 3,
                }] += 1;
                all_right &= there == taken;
            }
            self.examples += 1;
            self.exact += u64::from(all_right);
        }
    }

    /// Adds what another has counted.
    pub(super) fn merge(&mut self, other: &Self) {
        let counts = self.labels.as_flattened_mut().iter_mut();
        for (count, other) in counts.zip(other.labels.as_flattened()) {
            *count += other;
        }
        self.examples += other.examples;
        self.exact += other.exact;
    }

    pub(super) fn examples(&self) -> u64 {
        self.examples
    }

    /// The share of the decisions that are right: Keras's `BinaryAccuracy`.
    pub(super) fn accuracy(&self) -> Option<f64> {
        let right: u64 = self.labels.iter().map(|it| it[0] + it[3]).sum();
        let all: u64 = self.labels.as_flattened().iter().sum();
        ratio(right as f64, all as f64)
    }

    /// The share of the examples whose labels are all right.
    pub(super) fn exact(&self) -> Option<f64> {
        ratio(self.exact as f64, self.examples as f64)
    }

    /// F1 of all decisions together.
    pub(super) fn micro_f1(&self) -> Option<f64> {
        let sum = |at: usize| self.labels.iter().map(|it| it[at]).sum::<u64>();
        ratio(2.0 * sum(0) as f64, (2 * sum(0) + sum(1) + sum(2)) as f64)
    }

    /// The mean over the labels of each one's F1; one that is neither there nor taken counts as 0.
    pub(super) fn macro_f1(&self) -> Option<f64> {
        let f1 = |it: &[u64; 4]| ratio(2.0 * it[0] as f64, (2 * it[0] + it[1] + it[2]) as f64);
        let sum: f64 = self.labels.iter().map(|it| f1(it).unwrap_or(0.0)).sum();
        ratio(sum, self.labels.len() as f64).filter(|_| self.examples > 0)
    }

    /// What is kept, as whole numbers: of each label its four counts, then the examples.
    pub(super) fn state(&self) -> Vec<u64> {
        let counts = self.labels.as_flattened().iter().copied();
        counts.chain([self.examples, self.exact]).collect()
    }

    /// The same with what [`state`](Self::state) gave; `None` for another number of counts.
    pub(super) fn with_state(&self, state: &[u64]) -> Option<Self> {
        let (counts, ends) = state.split_at_checked(4 * self.labels.len())?;
        let &[examples, exact] = ends else {
            return None;
        };
        Some(Self {
            labels: counts.as_chunks::<4>().0.to_vec(),
            examples,
            exact,
            threshold: self.threshold,
        })
    }
}

/// [`micro_f1`](super::micro_f1()).
#[derive(Clone, Copy, Debug)]
pub(super) struct MicroF1;

impl Measure for MicroF1 {
    fn name(&self) -> &'static str {
        "micro_f1"
    }

    fn value(&self, tally: &Tally) -> Option<f64> {
        tally.sets.as_ref()?.micro_f1()
    }

    fn fit(&self, answers: Answers) -> Fit {
        match answers {
            Answers::Set => Fit::Yes,
            _ => Fit::Instead(
                "another metric: `micro_f1` is of several labels a text (`from_pretrained_multi_label`)",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use stratoscope_data::Labels;

    use super::super::{Metric, Tally};

    use super::*;

    #[test]
    fn metrics_by_hand_on_any_number_of_replicas() {
        let empty = Tally::of_sets(3, 0.0);
        let sets: Vec<Arc<[usize]>> = vec![[0, 2].into(), [].into(), [1].into()];
        let outputs = [1.0, -1.0, 2.0, -1.0, 0.5, -2.0, -0.5, 3.0, 0.25_f32];
        let mut whole = empty.clone();
        whole.add(&Labels::Sets(sets.clone()), &outputs);
        let value = |metric: Metric| metric.value(&whole).expect("it is defined");
        // Taken: {0, 2}, {1}, {1, 2}.
        assert_eq!(value(Metric::Accuracy), 7.0 / 9.0);
        assert_eq!(value(Metric::ExactMatch), 1.0 / 3.0);
        assert_eq!(value(Metric::MicroF1), 6.0 / 8.0);
        let macro_f1 = (1.0 + 2.0 / 3.0 + 2.0 / 3.0) / 3.0;
        assert!((value(Metric::MacroF1) - macro_f1).abs() < 1e-12);
        let mut parts = [empty.clone(), empty.clone()];
        parts[1].add(&Labels::Sets(sets[..1].to_vec()), &outputs[..3]);
        parts[0].add(&Labels::Sets(sets[1..].to_vec()), &outputs[3..]);
        assert_eq!(Tally::sum(&parts), whole);
        assert_eq!(
            (whole.examples(), Metric::Accuracy.value(&empty)),
            (3, None)
        );
        let sets = whole.sets.as_ref().expect("sets");
        let fresh = Sets::counting(3, 0.0);
        assert_eq!(fresh.with_state(&sets.state()).as_ref(), Some(sets));
        assert!(fresh.with_state(&[1; 13]).is_none() && fresh.with_state(&[]).is_none());
    }
}

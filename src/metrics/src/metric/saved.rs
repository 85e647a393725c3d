//! The counts of metrics as bytes, for a checkpoint, and back.

use super::auc::{Scores, THRESHOLDS};
use super::spans::Answers;
use super::{Tallies, Tally};

/// A variable of the state of metrics: name, shape, bytes.
pub(super) type Counted = (&'static str, Vec<usize>, Vec<u8>);

impl Tally {
    /// The same kind of tally with what [`state`](Tally::state) gave: `bytes` of a name. `None` for bytes that are no
    /// such state.
    pub(super) fn with_state<'b>(&self, bytes: impl Fn(&str) -> Option<&'b [u8]>) -> Option<Self> {
        let mut tally = self.clone();
        if self.classes > 0 {
            tally.confusion = numbers(bytes("metrics.confusion_matrix")?, self.confusion.len())?;
        }
        if self.answers.is_some() {
            let answers = Answers::of_state(bytes("metrics.answer_scores")?)?;
            tally.answers = Some(Box::new(answers));
        }
        if let Some(pieces) = &self.pieces {
            let state = numbers(bytes("metrics.tokens")?, 5)?;
            tally.pieces = Some(pieces.with_state(state.try_into().ok()?));
        }
        if let Some(sets) = &self.sets {
            let bytes = bytes("metrics.labels")?;
            let counts = numbers(bytes, bytes.len() / size_of::<u64>())?;
            tally.sets = Some(sets.with_state(&counts)?);
        }
        if self.is_of_numbers() || self.keeps_pairs {
            let bytes = bytes("metrics.pairs")?;
            let numbers = numbers(bytes, bytes.len() / size_of::<u64>())?;
            let (pairs, rest) = numbers.as_chunks::<2>();
            if !rest.is_empty() {
                return None;
            }
            let pair = |pair: &[u64; 2]| (f64::from_bits(pair[0]), f64::from_bits(pair[1]));
            tally.pairs = pairs.iter().map(pair).collect();
        }
        if !self.own.is_empty() {
            let bytes = bytes("metrics.own")?;
            let numbers = numbers(bytes, bytes.len() / size_of::<u64>())?;
            let numbers: Vec<f64> = numbers.into_iter().map(f64::from_bits).collect();
            let mut left = numbers.as_slice();
            for own in &mut tally.own {
                (*own, left) = own.with_state(left)?;
            }
            if !left.is_empty() {
                return None;
            }
        }
        if !self.ranks.is_empty() {
            tally.ranks = numbers(bytes("metrics.ranks")?, self.ranks.len())?;
        }
        if self.entities.is_some() {
            let bytes = bytes("metrics.entities")?;
            let numbers = numbers(bytes, bytes.len() / size_of::<u64>())?;
            let (types, rest) = numbers.as_chunks::<3>();
            if !rest.is_empty() {
                return None;
            }
            tally.entities = Some(types.to_vec());
        }
        if self.scores.is_some() {
            let counts = numbers(bytes("metrics.scores")?, 2 * THRESHOLDS)?;
            tally.scores = Some(Box::new(Scores::from_counts(&counts)));
        }
        Some(tally)
    }
}

/// So many whole numbers of 64 bits.
fn numbers(bytes: &[u8], count: usize) -> Option<Vec<u64>> {
    let (words, rest) = bytes.as_chunks::<8>();
    let fits = rest.is_empty() && words.len() == count;
    fits.then(|| words.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

impl Tallies {
    /// What each copy has counted.
    pub fn states(&self) -> Vec<Vec<Counted>> {
        self.copies.iter().map(Tally::state).collect()
    }

    /// The same tallies with what [`Self::states`] gave: the bytes of a copy and a name. `None` for bytes that are no
    /// such state.
    pub fn with_states<'b>(&self, bytes: impl Fn(usize, &str) -> Option<&'b [u8]>) -> Option<Self> {
        let copies = self.copies.iter().enumerate();
        let copies = copies.map(|(index, copy)| copy.with_state(|name| bytes(index, name)));
        let mut restored = self.clone();
        restored.copies = copies.collect::<Option<_>>()?;
        Some(restored)
    }

    /// The same tallies with the sum of what `copies` other copies have counted, by `bytes` as in [`Self::with_states`]; other
    /// copies than the first are `empty`.
    pub fn with_sum_of<'b>(
        &self,
        copies: usize,
        empty: &Tally,
        bytes: impl Fn(usize, &str) -> Option<&'b [u8]>,
    ) -> Option<Self> {
        let counted = (0..copies).map(|copy| empty.with_state(|name| bytes(copy, name)));
        let counted: Vec<Tally> = counted.collect::<Option<_>>()?;
        let mut restored = self.clone();
        match restored.copies.len() == copies {
            true => restored.copies = counted,
            false => {
                restored.copies.fill(empty.clone());
                restored.copies[0] = Tally::sum(&counted);
            }
        }
        Some(restored)
    }

    /// The size of what was counted, in bytes.
    pub fn bytes(&self) -> u64 {
        let states = self.copies.iter().flat_map(Tally::state);
        states.map(|(.., bytes)| bytes.len() as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use stratoscope_data::Labels;
    use stratoscope_strategy::Origin;

    use super::super::Metric;
    use super::*;

    #[test]
    fn what_was_counted_comes_back() {
        let classes = Tally::of_classes(3).measuring(&[Metric::TopKAccuracy { k: 2 }], true);
        let two = Tally::of_two_classes_by_one_output(0.5);
        let two = two.measuring(&[Metric::KerasAuc, Metric::Rmse], true);
        for (empty, width) in [(classes, 3), (two, 1), (Tally::of_numbers(), 1)] {
            let mut counted = empty.clone();
            let outputs: Vec<f32> = (0..2 * width).map(|i| 0.3 * i as f32).collect();
            counted.add(&Labels::Classes(vec![1, 0]), &outputs);
            let tallies = Tallies::new(counted.clone(), None, Origin::default());
            let states = tallies.states();
            let bytes = |copy: usize, name: &str| {
                let found = states[copy].iter().find(|(known, ..)| *known == name);
                found.map(|(.., bytes)| bytes.as_slice())
            };
            let fresh = Tallies::new(empty, None, Origin::default());
            let restored = fresh.with_states(bytes).expect("it is a state");
            assert_eq!(restored.read(), tallies.read());
            assert_eq!(restored.read().examples(), counted.examples());
            // Two copies that have counted this are one that has counted it twice.
            let both = fresh.with_sum_of(2, &fresh.read(), |_, name| bytes(0, name));
            let both = both.expect("it is a state").read();
            assert_eq!(both.examples(), 2 * counted.examples());
            // Bytes of another length are refused.
            let short = |copy: usize, name: &str| bytes(copy, name).map(|it| &it[..it.len() - 1]);
            assert!(fresh.with_states(short).is_none());
            assert!(fresh.with_states(|_, _| None).is_none());
        }
    }
}

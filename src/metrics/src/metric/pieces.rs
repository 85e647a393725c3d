//! Hidden tokens and what was predicted for them: how many are right, and what they cost. Perplexity is e to the mean of
//! −ln p over the tokens, p the probability of the token that was hidden (Jelinek et al. 1977).

use rayon::prelude::*;
use stratoscope_data::TokenLabels;

use super::applicability::{Answers, Fit};
use super::correct::largest;
use super::measure::Measure;
use super::{Tally, ratio};

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Pieces {
    tokens: u64,
    right: u64,
    /// Whether costs are added up: they need all outputs of a token, of which there are as many as the vocabulary has.
    costs: bool,
    /// The sum of −ln p in units of 2⁻⁴⁰: a whole number, which is the same in whatever order it is added up.
    cost: u128,
    /// Tokens whose cost is not finite.
    undefined: u64,
}

/// 2⁴⁰.
const UNIT: f64 = (1_u64 << 40) as f64;

impl Pieces {
    /// Nothing yet.
    pub(super) fn counting(costs: bool) -> Self {
        Self {
            costs,
            ..Self::default()
        }
    }

    /// Adds the hidden tokens of a batch: `outputs` are [B, K·V].
    pub(super) fn add(&mut self, labels: &TokenLabels, outputs: &[f32]) {
        let vocabulary = outputs.len() / labels.classes.len().max(1);
        if vocabulary == 0 {
            return;
        }
        let rows = labels
            .classes
            .par_iter()
            .zip(outputs.par_chunks_exact(vocabulary));
        let counted = rows.filter_map(|(&class, row)| {
            let class = usize::try_from(class).ok().filter(|&it| it < row.len())?;
            let cost = self.costs.then(|| cost(row, class));
            Some((largest(row) == class, cost))
        });
        let counted: Vec<(bool, Option<f64>)> = counted.collect();
        for (is_right, cost) in counted {
            self.tokens += 1;
            self.right += u64::from(is_right);
            match cost {
                Some(cost) if cost.is_finite() => self.cost += (cost * UNIT) as u128,
                Some(_) => self.undefined += 1,
                None => {}
            }
        }
    }

    /// Adds what another has counted.
    pub(super) fn merge(&mut self, other: &Self) {
        self.tokens += other.tokens;
        self.right += other.right;
        self.cost += other.cost;
        self.undefined += other.undefined;
    }

    pub(super) fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The share of the tokens that are right.
    pub(super) fn accuracy(&self) -> Option<f64> {
        ratio(self.right as f64, self.tokens as f64)
    }

    /// `None` too where an output was not finite.
    pub(super) fn perplexity(&self) -> Option<f64> {
        let is_defined = self.costs && self.undefined == 0;
        let mean = ratio(self.cost as f64 / UNIT, self.tokens as f64);
        mean.filter(|_| is_defined).map(f64::exp)
    }

    /// What is kept, as whole numbers.
    pub(super) fn state(&self) -> [u64; 5] {
        let (low, high) = (self.cost as u64, (self.cost >> 64) as u64);
        [self.tokens, self.right, low, high, self.undefined]
    }

    /// The same with what [`state`](Self::state) gave.
    pub(super) fn with_state(&self, state: [u64; 5]) -> Self {
        let [tokens, right, low, high, undefined] = state;
        Self {
            tokens,
            right,
            cost: u128::from(low) | u128::from(high) << 64,
            undefined,
            ..self.clone()
        }
    }
}

/// −ln p of a class, by its logits; the largest is taken away first, so that nothing overflows.
fn cost(row: &[f32], class: usize) -> f64 {
    let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    // Sums of some hundred in float32, those in float64.
    let sum: f64 = row
        .chunks(256)
        .map(|part| f64::from(part.iter().map(|&it| (it - most).exp()).sum::<f32>()))
        .sum();
    sum.ln() - f64::from(row[class] - most)
}

/// [`perplexity`](super::perplexity()).
#[derive(Clone, Copy, Debug)]
pub(super) struct Perplexity;

impl Measure for Perplexity {
    fn name(&self) -> &'static str {
        "perplexity"
    }

    fn value(&self, tally: &Tally) -> Option<f64> {
        tally.pieces.as_ref()?.perplexity()
    }

    fn fit(&self, answers: Answers) -> Fit {
        match answers {
            Answers::Tokens => Fit::Yes,
            Answers::Set => Fit::No,
            _ => Fit::Instead("another metric: perplexity is of hidden tokens (`BertForMaskedLM`)"),
        }
    }

    fn prepare(&self, tally: &mut Tally) {
        if tally.pieces.is_some() {
            tally.pieces = Some(Pieces::counting(true));
        }
    }

    fn is_low_good(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use stratoscope_data::Labels;

    use super::super::{Metric, Tally};

    use super::*;

    fn labels(classes: Vec<i32>) -> Labels {
        Labels::Tokens(TokenLabels {
            places: Some(vec![0; classes.len()]),
            seq: 2,
            weight: 1.0,
            scheme: None,
            classes,
        })
    }

    #[test]
    fn accuracy_and_perplexity_by_hand_on_any_number_of_replicas() {
        let metrics = [Metric::Accuracy, Metric::Perplexity];
        let empty = Tally::of_pieces().measuring(&metrics, true);
        let outputs = [
            1.0, 2.0, 0.5, 9.0, 0.0, 0.0, 0.0, 0.0, 3.0, 1.0, 1.0, 1.0_f32,
        ];
        let classes = vec![1, -100, 2, 0];
        let mut whole = empty.clone();
        whole.add(&labels(classes.clone()), &outputs);
        let by_hand = |row: &[f64], class: usize| {
            let sum: f64 = row.iter().map(|it| it.exp()).sum();
            -(row[class].exp() / sum).ln()
        };
        let costs = [
            by_hand(&[1.0, 2.0, 0.5], 1),
            by_hand(&[0.0, 0.0, 3.0], 2),
            by_hand(&[1.0, 1.0, 1.0], 0),
        ];
        let expected = (costs.iter().sum::<f64>() / 3.0).exp();
        let found = Metric::Perplexity.value(&whole).expect("three tokens");
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        // The first of equal outputs is taken.
        assert_eq!(Metric::Accuracy.value(&whole), Some(1.0));
        assert_eq!(whole.examples(), 3);
        let mut parts = [empty.clone(), empty.clone()];
        parts[1].add(&labels(classes[..2].to_vec()), &outputs[..6]);
        parts[0].add(&labels(classes[2..].to_vec()), &outputs[6..]);
        assert_eq!(Tally::sum(&parts), whole);
        let mut broken = whole.clone();
        broken.add(&labels(vec![0, -100]), &[f32::NAN; 6]);
        assert_eq!(Metric::Perplexity.value(&broken), None);
        assert_eq!(Metric::Perplexity.value(&empty), None);
    }

    #[test]
    fn the_state_comes_back() {
        let mut pieces = Pieces::counting(true);
        let Labels::Tokens(labels) = labels(vec![1, 0]) else {
            panic!("tokens");
        };
        for _ in 0..9 {
            pieces.add(&labels, &[0.0, -90.0, 90.0, -90.0]);
        }
        let restored = Pieces::counting(true).with_state(pieces.state());
        assert_eq!(restored, pieces);
        assert!(pieces.perplexity().is_some_and(|it| it > 1e19));
    }
}

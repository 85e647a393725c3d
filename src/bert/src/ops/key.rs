//! Which elements a dropout keeps: a hash of the key and the element's index decides.
//!
//! The generator has no state: element i of a mask depends on no other element. So a mask can be computed in any
//! order, on any number of threads and on any backend, always with the same result, and the backward pass computes it
//! again instead of storing it.

use stratoscope_data::random;

/// What determines a mask: the run's seed, the batch, the replica and the place in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DropoutKey {
    /// The seed of the whole run.
    pub seed: u64,
    /// The number of the batch since the run began, counted from 0.
    pub step: u64,
    /// The replica that computes, counted from 0.
    pub replica: u32,
    /// The place in the network.
    pub site: u32,
}

/// The attention heads that a tensor has: all of a layer, or some consecutive ones. A mask has the same elements for a head
/// wherever the head is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heads {
    /// How many it has.
    pub count: usize,
    /// The number of its first one in the layer.
    pub first: usize,
    /// How many the layer has.
    pub of: usize,
}

impl From<usize> for Heads {
    /// All heads of a layer.
    fn from(count: usize) -> Self {
        Self {
            count,
            first: 0,
            of: count,
        }
    }
}

// The multipliers of the element hash, which the kernels for GPUs use, too.
pub(super) use stratoscope_gpu::{MIX_A, MIX_B, SPREAD};

/// A dropout mask: the numbers that its elements are computed from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mask {
    /// Added to the spread index.
    pub first: u32,
    /// Mixed in between the second and the third multiplication.
    pub second: u32,
    /// An element is kept when its hash is at least this.
    pub threshold: u32,
    /// The factor of an element that is kept, 1 / (1 − rate), which preserves the expected value.
    pub scale: f32,
    /// Of the probabilities of some heads of a layer, which these are.
    pub heads: Option<Heads>,
}

impl Mask {
    /// `None` for a rate of 0 (or below, or NaN): nothing is dropped. A rate of 1 or more drops all.
    pub fn new(rate: f64, key: DropoutKey) -> Option<Self> {
        if rate.is_nan() || rate <= 0.0 {
            return None;
        }
        let mut state = mix(key.seed);
        state = mix(state ^ key.step);
        state = mix(state ^ (u64::from(key.replica) << 32 | u64::from(key.site)));
        let threshold = (rate * 2f64.powi(32)).round().min(f64::from(u32::MAX)) as u32;
        let scale = if rate >= 1.0 {
            0.0
        } else {
            (1.0 / (1.0 - rate)) as f32
        };
        Some(Self {
            first: state as u32,
            second: (state >> 32) as u32,
            threshold,
            scale,
            heads: None,
        })
    }

    /// The mask of the probabilities of these heads.
    pub fn of_heads(self, heads: Heads) -> Self {
        let is_part = heads.count != heads.of;
        Self {
            heads: is_part.then_some(heads),
            ..self
        }
    }

    /// The number of a head of a sequence, of all heads of all sequences, where a tensor has `count` heads of each.
    pub fn number_of_head(self, sequence: usize, head: usize, count: usize) -> usize {
        match self.heads {
            Some(heads) => sequence * heads.of + heads.first + head,
            None => sequence * count + head,
        }
    }

    /// What element `index` is multiplied with: 0 or [`Self::scale`]. Indices repeat after 2³².
    #[inline(always)]
    pub fn factor(self, index: u32) -> f32 {
        let mut hash = index.wrapping_mul(SPREAD).wrapping_add(self.first);
        hash ^= hash >> 16;
        hash = hash.wrapping_mul(MIX_A);
        hash ^= hash >> 15;
        hash ^= self.second;
        hash = hash.wrapping_mul(MIX_B);
        hash ^= hash >> 15;
        if hash >= self.threshold {
            self.scale
        } else {
            0.0
        }
    }
}

/// A hash of 64 bits.
fn mix(value: u64) -> u64 {
    random::mix(value.wrapping_add(random::GOLDEN_GAMMA))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: DropoutKey = DropoutKey {
        seed: 7,
        step: 3,
        replica: 0,
        site: 4,
    };
    const COUNT: u32 = 100_000;

    fn survivors(rate: f64, key: DropoutKey) -> Vec<bool> {
        let mask = Mask::new(rate, key).expect("a rate above 0");
        (0..COUNT).map(|index| mask.factor(index) != 0.0).collect()
    }

    #[test]
    fn keeps_the_share_it_should() {
        for rate in [0.05, 0.1, 0.5, 0.9] {
            let kept = survivors(rate, KEY).iter().filter(|kept| **kept).count() as f64;
            let expected = (1.0 - rate) * f64::from(COUNT);
            // Five standard deviations of a binomial count.
            let allowed = 5.0 * (f64::from(COUNT) * rate * (1.0 - rate)).sqrt();
            assert!(
                (kept - expected).abs() < allowed,
                "rate {rate}: {kept} of {expected}"
            );
        }
    }

    #[test]
    fn keys_and_neighbors_are_independent() {
        let base = survivors(0.5, KEY);
        let others = [
            DropoutKey { seed: 8, ..KEY },
            DropoutKey { step: 4, ..KEY },
            DropoutKey { replica: 1, ..KEY },
            DropoutKey { site: 5, ..KEY },
        ];
        let allowed = 5.0 * (f64::from(COUNT) * 0.25).sqrt();
        let half = f64::from(COUNT) / 2.0;
        for other in others {
            let same = base
                .iter()
                .zip(survivors(0.5, other))
                .filter(|(a, b)| **a == *b)
                .count();
            assert!((same as f64 - half).abs() < allowed, "{other:?}: {same}");
        }
        for distance in [1, 2, 64, 384, 4096] {
            let pairs = base.iter().zip(&base[distance..]);
            let same = pairs.filter(|(a, b)| a == b).count() as f64;
            let half = (base.len() - distance) as f64 / 2.0;
            assert!((same - half).abs() < allowed, "distance {distance}: {same}");
        }
    }

    #[test]
    fn edges_of_the_rate() {
        assert!(Mask::new(0.0, KEY).is_none());
        assert!(Mask::new(f64::NAN, KEY).is_none());
        let all = Mask::new(1.0, KEY).expect("a rate above 0");
        assert!((0..COUNT).all(|index| all.factor(index) == 0.0));
    }
}

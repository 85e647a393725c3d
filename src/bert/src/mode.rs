//! Whether a forward pass is for training or evaluation, and the keys of its dropout masks.

use std::cell::Cell;

use crate::ops::DropoutKey;

thread_local! {
    /// The rate of every dropout of this thread, where it is not the network's.
    static RATE: Cell<Option<f64>> = const { Cell::new(None) };
}

/// Runs a pass on this thread in which every dropout has this rate, whatever the network says; with `None` those of the
/// network. An adapter without dropout stays without. The masks of equal rates are those of a network with this rate.
pub fn with_dropout_rate<T>(rate: Option<f64>, pass: impl FnOnce() -> T) -> T {
    struct Restored(Option<f64>);
    impl Drop for Restored {
        fn drop(&mut self) {
            RATE.set(self.0);
        }
    }
    let _restored = Restored(RATE.replace(rate));
    pass()
}

/// What a forward pass is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Training: dropout is active. The three numbers and the place in the network determine every mask,
    /// on any device and with any number of threads, so a step can be repeated.
    Train {
        /// The seed of the whole run.
        seed: u64,
        /// The number of the batch since the run began, counted from 0.
        step: u64,
        /// The replica that computes, counted from 0.
        replica: u32,
    },
    /// Evaluation and prediction: no dropout.
    Eval,
}

/// The place of a dropout in the network. Each place has its own random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropoutSite {
    /// On the sum of the embeddings.
    Embeddings,
    /// On the attention probabilities of an encoder layer.
    AttentionProbabilities(usize),
    /// On what the attention of an encoder layer adds to its input.
    AttentionOutput(usize),
    /// On what the feed-forward part of an encoder layer adds to its input.
    FeedForward(usize),
    /// On the vectors of distances, in an encoder layer of DeBERTa.
    Distances(usize),
    /// On the pooled output, before a head.
    Head,
    /// A layer of a list of layers, which has no other places.
    Layer(usize),
    /// On the input of an adapter, by its number in the network.
    Adapter(usize),
}

impl DropoutSite {
    /// The site's number, unique within a network.
    fn number(self) -> u32 {
        match self {
            Self::Head => 0,
            Self::Layer(index) => index as u32,
            Self::Embeddings => 1,
            Self::AttentionProbabilities(layer) => 2 + 3 * layer as u32,
            Self::AttentionOutput(layer) => 3 + 3 * layer as u32,
            Self::FeedForward(layer) => 4 + 3 * layer as u32,
            // Beyond the last layer that a configuration can have.
            Self::Distances(layer) => (1 << 15) + layer as u32,
            Self::Adapter(number) => (1 << 16) + number as u32,
        }
    }
}

impl Mode {
    /// The rate and the key of a dropout; `None` if nothing is dropped.
    pub fn dropout(self, rate: f64, site: DropoutSite) -> Option<(f64, DropoutKey)> {
        let is_given = rate > 0.0 || !matches!(site, DropoutSite::Adapter(_));
        let rate = RATE.get().filter(|_| is_given).unwrap_or(rate);
        match self {
            Self::Train {
                seed,
                step,
                replica,
            } if rate > 0.0 => {
                let key = DropoutKey {
                    seed,
                    step,
                    replica,
                    site: site.number(),
                };
                Some((rate, key))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_site_has_its_own_number() {
        let mut sites = vec![DropoutSite::Head, DropoutSite::Embeddings];
        for layer in 0..12 {
            sites.push(DropoutSite::Adapter(layer));
            sites.push(DropoutSite::AttentionProbabilities(layer));
            sites.push(DropoutSite::AttentionOutput(layer));
            sites.push(DropoutSite::FeedForward(layer));
            sites.push(DropoutSite::Distances(layer));
        }
        let numbers: HashSet<u32> = sites.iter().map(|site| site.number()).collect();
        assert_eq!(numbers.len(), sites.len());
    }

    #[test]
    fn evaluation_and_rate_zero_drop_nothing() {
        let train = Mode::Train {
            seed: 1,
            step: 2,
            replica: 0,
        };
        assert!(train.dropout(0.1, DropoutSite::Head).is_some());
        assert!(train.dropout(0.0, DropoutSite::Head).is_none());
        assert!(Mode::Eval.dropout(0.1, DropoutSite::Head).is_none());
    }

    #[test]
    fn another_rate_is_that_of_all_places_in_a_pass() {
        let train = Mode::Train {
            seed: 1,
            step: 2,
            replica: 0,
        };
        let rate = |own: f64, site| train.dropout(own, site).map(|(rate, _)| rate);
        with_dropout_rate(Some(0.3), || {
            assert_eq!(rate(0.1, DropoutSite::Head), Some(0.3));
            assert_eq!(rate(0.0, DropoutSite::Head), Some(0.3));
            assert_eq!(rate(0.0, DropoutSite::Adapter(1)), None);
            assert!(Mode::Eval.dropout(0.1, DropoutSite::Head).is_none());
            with_dropout_rate(Some(0.0), || {
                assert_eq!(rate(0.1, DropoutSite::Adapter(1)), None);
            });
            with_dropout_rate(None, || assert_eq!(rate(0.1, DropoutSite::Head), Some(0.1)));
        });
        assert_eq!(rate(0.1, DropoutSite::Head), Some(0.1));
    }
}

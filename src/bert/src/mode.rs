//! Whether a forward pass is for training or evaluation, and the keys of its dropout masks.

use crate::ops::DropoutKey;

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
            Self::Adapter(number) => (1 << 16) + number as u32,
        }
    }
}

impl Mode {
    /// The rate and the key of a dropout; `None` if nothing is dropped.
    pub fn dropout(self, rate: f64, site: DropoutSite) -> Option<(f64, DropoutKey)> {
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
}

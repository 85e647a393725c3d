//! What a step computes with, as it travels in a message: a pass and an update, and which batches are taken.

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use stratoscope_data::Batch;
use stratoscope_workers::{Fault, Outcome};

use super::super::backward::{Dropout, Pass};
use super::flat::Variable;
use stratoscope_arguments::class_weight::ClassWeights;
use stratoscope_arguments::context::mixed_precision::Policy;
use stratoscope_metrics::loss::Loss;
use stratoscope_optim::{Averaging, Clipping, Update, UpdateRule};

/// The most positions of a batch that a worker takes, over all rows.
const MAX_TOKENS: usize = 1 << 28;

/// A [`Pass`] without what the policy decides.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WirePass {
    pub loss: Loss,
    pub class_weights: Option<ClassWeights>,
    /// Seed and number of the dropout masks.
    pub masks: Option<(u64, u64)>,
    pub scale: f64,
    pub recompute: bool,
    /// The rate of every dropout, where it is not the network's.
    pub dropout_rate: Option<f64>,
}

/// An [`Update`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WireUpdate {
    pub rule: UpdateRule,
    pub clipping: Clipping,
    pub averaging: Option<Averaging>,
    pub factor: f64,
    pub rate: f64,
    /// Whether weight decay leaves a variable alone, in the order of the network.
    pub undecayed: Vec<bool>,
    /// What the rate of a variable is multiplied with, in the same order.
    pub layer_factors: Vec<f64>,
}

/// A batch that has come in a message, if its parts fit together.
pub fn checked(batch: Batch) -> Outcome<Batch> {
    if batch.ids.len() > MAX_TOKENS || !batch.is_consistent() {
        return Err(Fault::Refused(
            "a batch whose parts do not fit together".to_owned(),
        ));
    }
    Ok(batch)
}

impl WirePass {
    pub fn of(pass: &Pass) -> Self {
        Self {
            loss: pass.loss,
            class_weights: pass.class_weights.clone(),
            masks: match pass.dropout {
                Dropout::Masks { seed, batch } => Some((seed, batch)),
                Dropout::Off => None,
            },
            scale: pass.scale,
            recompute: pass.recompute,
            dropout_rate: pass.dropout_rate,
        }
    }

    pub fn pass(self, policy: Policy) -> Pass {
        Pass {
            loss: self.loss,
            class_weights: self.class_weights,
            dropout: match self.masks {
                Some((seed, batch)) => Dropout::Masks { seed, batch },
                None => Dropout::Off,
            },
            precision: policy.precision(),
            scale: self.scale,
            recompute: self.recompute,
            dropout_rate: self.dropout_rate,
            // Nobody changes activations of a run with workers (SC0733).
            activations: None,
            timer: None,
        }
    }
}

impl WireUpdate {
    /// An update of a network with these variables.
    pub(super) fn of(update: &Update, variables: &[Variable]) -> Self {
        let undecayed = variables.iter().map(|it| update.undecayed.contains(&it.id));
        let factor = |it: &Variable| update.layer_factors.get(&it.id).copied().unwrap_or(1.0);
        Self {
            rule: update.rule,
            clipping: update.clipping,
            averaging: update.averaging,
            factor: update.factor,
            rate: update.rate,
            undecayed: undecayed.collect(),
            layer_factors: variables.iter().map(factor).collect(),
        }
    }

    /// The update, of a network with these variables.
    pub(super) fn update(self, variables: &[Variable]) -> Update {
        let undecayed = variables.iter().zip(&self.undecayed);
        let undecayed: HashSet<_> = undecayed
            .filter(|(_, is_undecayed)| **is_undecayed)
            .map(|(variable, _)| variable.id)
            .collect();
        let factors = variables.iter().zip(&self.layer_factors);
        let factors = factors
            .filter(|(_, factor)| **factor != 1.0)
            .map(|(variable, factor)| (variable.id, *factor));
        Update {
            rule: self.rule,
            clipping: self.clipping,
            averaging: self.averaging,
            factor: self.factor,
            rate: self.rate,
            undecayed: Arc::new(undecayed),
            layer_factors: Arc::new(factors.collect()),
            is_measured: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use stratoscope_data::{Labels, SpanLabels, TokenLabels};

    use super::*;

    fn batch() -> Batch {
        Batch {
            ids: vec![5, 6, 7, 0],
            mask: vec![1, 1, 1, 0],
            type_ids: vec![0; 4],
            features: Vec::new(),
            labels: Labels::Values(vec![f32::MIN_POSITIVE, -0.0]),
            rows: vec![3, 9],
            weights: Some(vec![0.5, f32::MIN_POSITIVE]),
            seq: 2,
            choices: 1,
            by_worker: None,
        }
    }

    fn sent(batch: &Batch) -> Outcome<Batch> {
        let bytes = rmp_serde::to_vec(batch).expect("written");
        checked(rmp_serde::from_slice(&bytes).expect("read"))
    }

    #[test]
    fn a_batch_keeps_its_bits_and_is_checked() {
        assert_eq!(sent(&batch()), Ok(batch()));
        let wrong = [
            Batch { seq: 3, ..batch() },
            Batch {
                choices: 0,
                ..batch()
            },
            Batch {
                choices: 3,
                ..batch()
            },
            Batch {
                seq: usize::MAX,
                ..batch()
            },
            Batch {
                rows: Vec::new(),
                ..batch()
            },
            Batch {
                weights: Some(vec![1.0]),
                ..batch()
            },
            Batch {
                features: vec![1.0],
                ..batch()
            },
        ];
        for wrong in wrong {
            let refused = sent(&wrong);
            assert!(matches!(refused, Err(Fault::Refused(_))), "{refused:?}");
        }
    }

    #[test]
    fn labels_of_every_kind_arrive_and_are_checked() {
        let tokens = |seq: usize, classes: usize, places: Option<Vec<i32>>| {
            Labels::Tokens(TokenLabels {
                classes: vec![1; classes],
                seq,
                places,
                weight: 0.5,
                scheme: None,
            })
        };
        let spans = |spans: Vec<[i32; 2]>| {
            Labels::Spans(SpanLabels {
                spans,
                windows: Vec::new(),
                has_unanswerable: false,
            })
        };
        let set: Arc<[usize]> = Arc::from([0, 2]);
        let with = |labels: Labels| Batch { labels, ..batch() };
        for labels in [
            Labels::Absent,
            Labels::Classes(vec![0, 1]),
            Labels::Sets(vec![set.clone(), Arc::from([])]),
            spans(vec![[0, 1], [1, 1]]),
            tokens(2, 4, None),
            tokens(1, 2, Some(vec![1, 0])),
            tokens(0, 0, Some(Vec::new())),
        ] {
            assert_eq!(sent(&with(labels.clone())), Ok(with(labels)));
        }
        for labels in [
            Labels::Classes(vec![0]),
            Labels::Values(vec![0.0; 3]),
            Labels::Sets(vec![set]),
            spans(vec![[0, 1]]),
            tokens(2, 3, None),
            tokens(1, 2, None),
            tokens(usize::MAX, 4, None),
            tokens(1, 2, Some(vec![1])),
            tokens(1, 2, Some(vec![1, 2])),
            tokens(1, 2, Some(vec![1, -1])),
            tokens(2, 2, Some(vec![1, 1])),
        ] {
            let refused = sent(&with(labels));
            assert!(matches!(refused, Err(Fault::Refused(_))), "{refused:?}");
        }
    }

    #[test]
    fn what_only_the_chief_uses_stays_with_it() {
        let with_workers = Batch {
            by_worker: Some(vec![1, 1]),
            ..batch()
        };
        assert_eq!(sent(&with_workers), Ok(batch()));
    }
}

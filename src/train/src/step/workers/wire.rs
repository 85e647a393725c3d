//! What a step computes with, as it travels in a message: a batch, a pass, an update.

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use stratoscope_data::{Batch, Labels, SpanLabels, TokenLabels};
use stratoscope_workers::{Fault, Outcome};

use super::super::backward::{Dropout, Pass};
use super::flat::Variable;
use crate::arguments::class_weight::ClassWeights;
use crate::context::mixed_precision::Policy;
use crate::loss::Loss;
use crate::optimizer::{Averaging, Clipping, Update, UpdateRule};

/// The most rows and tokens of a batch that a worker takes.
const MOST_TOKENS: usize = 1 << 28;

/// A [`Batch`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WireBatch {
    ids: Vec<i32>,
    mask: Vec<i32>,
    type_ids: Vec<i32>,
    features: Vec<f32>,
    labels: WireLabels,
    rows: Vec<usize>,
    weights: Option<Vec<f32>>,
    seq: usize,
    choices: usize,
}

#[derive(Debug, Serialize, Deserialize)]
enum WireLabels {
    Absent,
    Classes(Vec<i32>),
    Values(Vec<f32>),
    /// Classes of tokens, and what the loss of one counts.
    Tokens(Vec<i32>, f32),
    /// The classes that each example has.
    Sets(Vec<Vec<usize>>),
    /// Hidden tokens: what they were, where in its row each stands, and what the loss of one counts.
    Masked {
        classes: Vec<i32>,
        places: Vec<i32>,
        weight: f32,
    },
    /// Where answers begin and end.
    Spans(Vec<[i32; 2]>),
}

/// A [`Pass`] without what the policy decides.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WirePass {
    pub loss: Loss,
    pub class_weights: Option<ClassWeights>,
    /// Seed and number of the dropout masks.
    pub masks: Option<(u64, u64)>,
    pub scale: f64,
    pub recompute: bool,
}

/// An [`Update`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WireUpdate {
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

impl WireBatch {
    pub(crate) fn of(batch: &Batch) -> Self {
        Self {
            ids: batch.ids.clone(),
            mask: batch.mask.clone(),
            type_ids: batch.type_ids.clone(),
            features: batch.features.clone(),
            labels: match &batch.labels {
                Labels::Absent => WireLabels::Absent,
                Labels::Classes(classes) => WireLabels::Classes(classes.clone()),
                Labels::Values(values) => WireLabels::Values(values.clone()),
                Labels::Spans(spans) => WireLabels::Spans(spans.spans.clone()),
                Labels::Sets(sets) => {
                    WireLabels::Sets(sets.iter().map(|set| set.to_vec()).collect())
                }
                Labels::Tokens(tokens) => match &tokens.places {
                    Some(places) => WireLabels::Masked {
                        classes: tokens.classes.clone(),
                        places: places.clone(),
                        weight: tokens.weight,
                    },
                    None => WireLabels::Tokens(tokens.classes.clone(), tokens.weight),
                },
            },
            rows: batch.rows.clone(),
            weights: batch.weights.clone(),
            seq: batch.seq,
            choices: batch.choices,
        }
    }

    /// The batch, if its parts fit together.
    pub(crate) fn checked(self) -> Outcome<Batch> {
        let rows = self.rows.len();
        let tokens = rows.checked_mul(self.seq).filter(|&it| it <= MOST_TOKENS);
        let labels = match &self.labels {
            WireLabels::Absent => rows,
            WireLabels::Classes(classes) => classes.len(),
            WireLabels::Values(values) => values.len(),
            WireLabels::Spans(spans) => spans.len(),
            WireLabels::Sets(sets) => sets.len(),
            WireLabels::Tokens(classes, _) if tokens == Some(classes.len()) => rows,
            WireLabels::Tokens(..) => usize::MAX,
            WireLabels::Masked {
                classes, places, ..
            } => {
                let is_in = |&at: &i32| usize::try_from(at).is_ok_and(|at| at < self.seq);
                let fits = classes.len() == places.len()
                    && classes.len().checked_rem(rows) == Some(0)
                    && places.iter().all(is_in);
                if fits { rows } else { usize::MAX }
            }
        };
        let lengths = [self.ids.len(), self.mask.len(), self.type_ids.len()];
        let fits = tokens.is_some_and(|tokens| lengths == [tokens; 3])
            && rows > 0
            && labels == rows
            && self.weights.as_ref().is_none_or(|it| it.len() == rows)
            && self.features.len().is_multiple_of(rows)
            && self.choices > 0
            && self.seq.is_multiple_of(self.choices);
        if !fits {
            return Err(Fault::Refused(
                "a batch whose parts do not fit together".to_owned(),
            ));
        }
        Ok(Batch {
            ids: self.ids,
            mask: self.mask,
            type_ids: self.type_ids,
            features: self.features,
            labels: match self.labels {
                WireLabels::Absent => Labels::Absent,
                WireLabels::Classes(classes) => Labels::Classes(classes),
                WireLabels::Values(values) => Labels::Values(values),
                WireLabels::Sets(sets) => Labels::Sets(sets.into_iter().map(Into::into).collect()),
                WireLabels::Spans(spans) => Labels::Spans(SpanLabels {
                    spans,
                    // Answers are compared by the chief.
                    windows: Vec::new(),
                    has_unanswerable: false,
                }),
                WireLabels::Tokens(classes, weight) => Labels::Tokens(TokenLabels {
                    classes,
                    seq: self.seq,
                    weight,
                    places: None,
                    // Entities are counted by the chief.
                    scheme: None,
                }),
                WireLabels::Masked {
                    classes,
                    places,
                    weight,
                } => Labels::Tokens(TokenLabels {
                    seq: classes.len() / rows,
                    classes,
                    places: Some(places),
                    weight,
                    scheme: None,
                }),
            },
            rows: self.rows,
            weights: self.weights,
            seq: self.seq,
            choices: self.choices,
            by_worker: None,
        })
    }
}

impl WirePass {
    pub(crate) fn of(pass: &Pass) -> Self {
        Self {
            loss: pass.loss,
            class_weights: pass.class_weights.clone(),
            masks: match pass.dropout {
                Dropout::Masks { seed, batch } => Some((seed, batch)),
                Dropout::Off => None,
            },
            scale: pass.scale,
            recompute: pass.recompute,
        }
    }

    pub(crate) fn pass(self, policy: Policy) -> Pass {
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

    #[test]
    fn a_batch_keeps_its_bits_and_is_checked() {
        let bytes = rmp_serde::to_vec(&WireBatch::of(&batch())).expect("written");
        let read: WireBatch = rmp_serde::from_slice(&bytes).expect("read");
        assert_eq!(read.checked(), Ok(batch()));
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
        ];
        for wrong in wrong {
            let refused = WireBatch::of(&wrong).checked();
            assert!(matches!(refused, Err(Fault::Refused(_))), "{refused:?}");
        }
    }
}

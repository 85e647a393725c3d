//! What the chief asks of a worker in a step, and the answers. They are written with every bit of their numbers. What
//! comes is checked against the network that it is for before it is used.

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use stratoscope_data::{Batch, Labels, SpanLabels, TokenLabels};
use stratoscope_strategy::BackendKind;
use stratoscope_workers::{Fault, Outcome, Precision};

use super::super::backward::{Dropout, Pass};
use super::flat::Variable;
use crate::arguments::class_weight::ClassWeights;
use crate::context::mixed_precision::Policy;
use crate::loss::Loss;
use crate::network::Blueprint;
use crate::optimizer::{Averaging, Clipping, Kept, Update, UpdateRule};

/// The most rows and tokens of a batch that a worker takes.
const MOST_TOKENS: usize = 1 << 28;

/// A request to a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Build this network, unless it has it.
    Model(Model),
    /// Take the chief's values, which come as a broadcast of this number.
    Values {
        collective: u64,
        /// The elements of each variable, in the order of the network.
        lengths: Vec<usize>,
        trainable: Vec<bool>,
        /// One for all replicas; with local SGD one for each.
        kept: Vec<KeptBy>,
        /// The replicas of the worker that step alone, with local SGD.
        alone: Vec<usize>,
    },
    /// Run parts of a batch forward and backward and keep the gradients.
    Batch {
        /// Whether gradients that were kept are of another step.
        begins: bool,
        pass: WirePass,
        parts: Vec<Part>,
    },
    /// Reduce the gradients, by a collective of this number.
    Exchange {
        collective: u64,
        /// What the gradients of each replica of the worker are multiplied with.
        weights: Vec<(usize, f32)>,
        /// What they are divided by first.
        scale: f64,
        /// Which variables have gradients.
        present: Vec<bool>,
        /// How they travel.
        precision: Precision,
    },
    /// Update the weights with what was reduced.
    Update(WireUpdate),
    /// Local SGD: measure the gradients of each replica, divided by `scale`.
    Norms { scale: f64 },
    /// Local SGD: update each replica's own weights with its own gradients.
    UpdateOwn(WireUpdate),
    /// Local SGD: every replica gets the mean of the weights, by a collective of this number.
    Average {
        collective: u64,
        /// What the weights of each replica of the worker are multiplied with.
        weights: Vec<(usize, f32)>,
    },
    /// Local SGD: send the chief what each replica has, by a collective of this number.
    Gather { collective: u64, part: StatePart },
    /// The checksum of each variable.
    Checksums,
    /// Meet in so many barriers, numbered from `first` on, so that their time can be measured.
    Barriers { first: u64, count: u64 },
}

/// A model, for its workers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Model {
    pub number: u64,
    pub blueprint: Blueprint,
    pub policy: Policy,
    /// What the chief computes on, and so the worker.
    pub backend: BackendKind,
}

/// What is kept of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum StatePart {
    /// The weights and what the optimizer keeps beside them.
    All,
    /// What the optimizer keeps.
    Moments,
}

/// What an optimizer keeps for a replica.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct KeptBy {
    pub replica: usize,
    /// Which tensors are kept beside each variable, a bit each.
    pub tensors: Vec<u8>,
    /// Steps that the optimizer has made.
    pub steps: u64,
}

/// The gradients of a replica.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Norm {
    pub replica: usize,
    pub norm: f64,
    /// The variable with a gradient that is no number, and that.
    pub bad: Option<(String, f64)>,
}

/// An answer of a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Response {
    Done,
    /// What the replicas computed, and for how many seconds; the update before it counts, too.
    Outputs(Vec<Outputs>, f64),
    /// Gradients were reduced; so many bytes of them were sent.
    Exchanged(u64),
    Checksums(Vec<u64>),
    Norms(Vec<Norm>),
    /// What each replica has was sent, in so many bytes.
    Gathered(Vec<KeptBy>, u64),
}

/// What a replica computed for its part.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Outputs {
    pub replica: usize,
    pub outputs: Vec<f32>,
    pub loss: f64,
}

/// A replica's part of a batch.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Part {
    pub replica: usize,
    /// The examples that the replica sees in the whole step.
    pub share: usize,
    pub batch: WireBatch,
}

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
    loss: Loss,
    class_weights: Option<ClassWeights>,
    /// Seed and number of the dropout masks.
    masks: Option<(u64, u64)>,
    scale: f64,
    recompute: bool,
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

fn encoded(value: &impl Serialize) -> Outcome<Vec<u8>> {
    rmp_serde::to_vec(value).map_err(super::failed)
}

fn decoded<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Outcome<T> {
    rmp_serde::from_slice(bytes).map_err(|error| Fault::Refused(error.to_string()))
}

impl Request {
    pub(crate) fn encoded(&self) -> Outcome<Vec<u8>> {
        encoded(self)
    }

    pub(crate) fn decoded(bytes: &[u8]) -> Outcome<Self> {
        decoded(bytes)
    }

    /// What a worker does with it, in words.
    pub(crate) fn name(bytes: &[u8]) -> &'static str {
        // The name of the variant stands in the first bytes.
        let begin = &bytes[..bytes.len().min(16)];
        let has = |name: &str| {
            begin
                .windows(name.len())
                .any(|part| part == name.as_bytes())
        };
        [
            ("Model", "builds the model"),
            ("Values", "takes the weights"),
            ("Batch", "computes a batch"),
            ("Exchange", "reduces gradients"),
            ("Update", "updates the weights"),
            ("Checksums", "compares the weights"),
            ("Norms", "measures its gradients"),
            ("Average", "averages the weights"),
            ("Gather", "sends what its optimizer keeps"),
            ("Barriers", "measures the hops"),
        ]
        .into_iter()
        .find(|(variant, _)| has(variant))
        .map_or("works", |(_, words)| words)
    }
}

impl Response {
    pub(crate) fn encoded(&self) -> Outcome<Vec<u8>> {
        encoded(self)
    }

    pub(crate) fn decoded(bytes: &[u8]) -> Outcome<Self> {
        decoded(bytes)
    }
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

impl KeptBy {
    /// Whether it can be of a network with so many variables.
    pub(crate) fn is_of(&self, variables: usize) -> bool {
        self.tensors.len() == variables
            && self.tensors.iter().all(|bits| *bits < 1 << Kept::ALL.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
        let part = Part {
            replica: 1,
            share: 2,
            batch: WireBatch::of(&batch()),
        };
        let bytes = encoded(&part).expect("written");
        let part: Part = decoded(&bytes).expect("read");
        assert_eq!(part.batch.checked(), Ok(batch()));
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

    #[test]
    fn requests_say_what_they_are() {
        let bytes = Request::Checksums.encoded().expect("written");
        assert_eq!(Request::name(&bytes), "compares the weights");
        let request = Request::Batch {
            begins: true,
            pass: WirePass {
                loss: Loss::MeanSquaredError(crate::loss::MeanSquaredError),
                class_weights: None,
                masks: None,
                scale: 1.0,
                recompute: false,
            },
            parts: Vec::new(),
        };
        let bytes = request.encoded().expect("written");
        assert_eq!(Request::name(&bytes), "computes a batch");
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_request_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Request::decoded(&bytes);
            let _ = Response::decoded(&bytes);
            let _ = Request::name(&bytes);
        }
    }
}

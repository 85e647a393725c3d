//! What the chief asks of a worker in a step, and the answers. They are written with every bit of their numbers. What
//! comes is checked against the network that it is for before it is used.

use serde::{Deserialize, Serialize};
use stratoscope_data::Batch;
use stratoscope_strategy::BackendKind;
use stratoscope_workers::{Fault, Outcome, Precision};

use super::wire::{WirePass, WireUpdate};
use stratoscope_arguments::context::mixed_precision::Policy;
use stratoscope_network::Blueprint;
use stratoscope_optim::StoredTensor;

/// A request to a worker.
#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    /// Build this network, unless it has it.
    Model(ModelRequest),
    /// Take the chief's values, which come as a broadcast of this number.
    Values {
        /// The number of the broadcast.
        collective: u64,
        /// The elements of each variable, in the order of the network.
        lengths: Vec<usize>,
        /// Which of them are trained.
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
        /// What is the same for all replicas.
        pass: WirePass,
        /// The part of each replica of the worker.
        parts: Vec<ReplicaBatch>,
    },
    /// Reduce the gradients, by a collective of this number.
    Exchange {
        /// The number of the collective.
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
    Norms {
        /// What the gradients are divided by.
        scale: f64,
    },
    /// Local SGD: update each replica's own weights with its own gradients.
    UpdateOwn(WireUpdate),
    /// Local SGD: every replica gets the mean of the weights, by a collective of this number.
    Average {
        /// The number of the collective.
        collective: u64,
        /// What the weights of each replica of the worker are multiplied with.
        weights: Vec<(usize, f32)>,
    },
    /// Local SGD: send the chief what each replica has, by a collective of this number.
    Gather {
        /// The number of the collective.
        collective: u64,
        /// What is sent.
        part: StatePart,
    },
    /// The checksum of each variable.
    Checksums,
    /// Meet in so many barriers, numbered from `first` on, so that their time can be measured.
    Barriers {
        /// The number of the first.
        first: u64,
        /// Their number.
        count: u64,
    },
}

/// What a request is about: the first byte of its message, so that what a worker does has a name before a batch is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum RequestKind {
    Model,
    Values,
    Batch,
    Exchange,
    Update,
    Norms,
    UpdateOwn,
    Average,
    Gather,
    Checksums,
    Barriers,
}

/// A model, for its workers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ModelRequest {
    /// Distinguishes the models of a chief.
    pub number: u64,
    /// How the network is made.
    pub blueprint: Blueprint,
    /// What its layers compute in.
    pub policy: Policy,
    /// What the chief computes on, and so the worker.
    pub backend: BackendKind,
}

/// What is kept of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StatePart {
    /// The weights and what the optimizer keeps beside them.
    All,
    /// What the optimizer keeps.
    Moments,
}

/// What an optimizer keeps for a replica.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeptBy {
    pub replica: usize,
    /// Which tensors are kept beside each variable, a bit each.
    pub tensors: Vec<u8>,
    /// Steps that the optimizer has made.
    pub steps: u64,
}

/// The gradients of a replica.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Norm {
    pub replica: usize,
    pub norm: f64,
    /// The variable with a gradient that is no number, and that.
    pub bad: Option<(String, f64)>,
}

/// An answer of a worker.
#[derive(Debug, Serialize, Deserialize)]
pub enum Response {
    Done,
    /// What the replicas computed, and for how many seconds; the update before it counts, too.
    Outputs(Vec<ReplicaOutputs>, f64),
    /// Gradients were reduced; so many bytes of them were sent.
    Exchanged(u64),
    Checksums(Vec<u64>),
    Norms(Vec<Norm>),
    /// What each replica has was sent, in so many bytes.
    Gathered(Vec<KeptBy>, u64),
}

/// What a replica computed for its part.
#[derive(Debug, Serialize, Deserialize)]
pub struct ReplicaOutputs {
    pub replica: usize,
    pub outputs: Vec<f32>,
    pub loss: f64,
}

/// A replica's part of a batch.
#[derive(Debug, Serialize, Deserialize)]
pub struct ReplicaBatch {
    pub replica: usize,
    /// The examples that the replica sees in the whole step.
    pub share: usize,
    pub batch: Batch,
}

fn encoded(value: &impl Serialize) -> Outcome<Vec<u8>> {
    rmp_serde::to_vec(value).map_err(super::failed)
}

fn decoded<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Outcome<T> {
    rmp_serde::from_slice(bytes).map_err(|error| Fault::Refused(error.to_string()))
}

impl RequestKind {
    const ALL: [Self; 11] = [
        Self::Model,
        Self::Values,
        Self::Batch,
        Self::Exchange,
        Self::Update,
        Self::Norms,
        Self::UpdateOwn,
        Self::Average,
        Self::Gather,
        Self::Checksums,
        Self::Barriers,
    ];

    /// That of a message.
    fn of(message: &[u8]) -> Option<Self> {
        let first = *message.first()?;
        Self::ALL.into_iter().find(|kind| *kind as u8 == first)
    }

    /// What a worker does with such a request, in words.
    fn in_words(self) -> &'static str {
        match self {
            Self::Model => "builds the model",
            Self::Values => "takes the weights",
            Self::Batch => "computes a batch",
            Self::Exchange => "reduces gradients",
            Self::Update | Self::UpdateOwn => "updates the weights",
            Self::Norms => "measures its gradients",
            Self::Average => "averages the weights",
            Self::Gather => "sends what its optimizer keeps",
            Self::Checksums => "compares the weights",
            Self::Barriers => "measures the hops",
        }
    }
}

impl Request {
    fn kind(&self) -> RequestKind {
        match self {
            Self::Model(_) => RequestKind::Model,
            Self::Values { .. } => RequestKind::Values,
            Self::Batch { .. } => RequestKind::Batch,
            Self::Exchange { .. } => RequestKind::Exchange,
            Self::Update(_) => RequestKind::Update,
            Self::Norms { .. } => RequestKind::Norms,
            Self::UpdateOwn(_) => RequestKind::UpdateOwn,
            Self::Average { .. } => RequestKind::Average,
            Self::Gather { .. } => RequestKind::Gather,
            Self::Checksums => RequestKind::Checksums,
            Self::Barriers { .. } => RequestKind::Barriers,
        }
    }

    /// The message: the kind, and the request itself.
    pub fn encoded(&self) -> Outcome<Vec<u8>> {
        let mut message = vec![self.kind() as u8];
        rmp_serde::encode::write(&mut message, self).map_err(super::failed)?;
        Ok(message)
    }

    /// The request of a message.
    ///
    /// # Errors
    /// [`Fault::Refused`] for bytes that are no request, or of another kind than they say.
    pub fn decoded(message: &[u8]) -> Outcome<Self> {
        let request: Self = decoded(message.get(1..).unwrap_or_default())?;
        match RequestKind::of(message) == Some(request.kind()) {
            true => Ok(request),
            false => Err(Fault::Refused("a request of another kind".to_owned())),
        }
    }

    /// What a worker does with a message, in words.
    pub fn name(message: &[u8]) -> &'static str {
        RequestKind::of(message).map_or("works", RequestKind::in_words)
    }
}

impl Response {
    pub fn encoded(&self) -> Outcome<Vec<u8>> {
        encoded(self)
    }

    pub fn decoded(bytes: &[u8]) -> Outcome<Self> {
        decoded(bytes)
    }
}

impl KeptBy {
    /// Whether it can be of a network with so many variables.
    pub(crate) fn is_of(&self, variables: usize) -> bool {
        self.tensors.len() == variables
            && (self.tensors.iter()).all(|bits| *bits < 1 << StoredTensor::ALL.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use stratoscope_metrics::loss::{Loss, MeanSquaredError};

    #[test]
    fn requests_say_what_they_are() {
        let check = |request: Request, expected: &str| {
            let message = request.encoded().expect("written");
            assert_eq!(Request::name(&message), expected);
            let read = Request::decoded(&message).expect("read");
            assert_eq!(read.kind(), request.kind());
        };
        check(Request::Checksums, "compares the weights");
        let batch = Request::Batch {
            begins: true,
            pass: WirePass {
                loss: Loss::MeanSquaredError(MeanSquaredError),
                class_weights: None,
                masks: None,
                scale: 1.0,
                recompute: false,
                dropout_rate: None,
            },
            parts: Vec::new(),
        };
        check(batch, "computes a batch");
        let barriers = Request::Barriers { first: 1, count: 2 };
        check(barriers, "measures the hops");
    }

    #[test]
    fn a_message_of_another_kind_is_refused() {
        let mut message = Request::Checksums.encoded().expect("written");
        for kind in 0..=u8::MAX {
            message[0] = kind;
            let is_own = kind == RequestKind::Checksums as u8;
            assert_eq!(Request::decoded(&message).is_ok(), is_own, "{kind}");
        }
        assert_eq!(Request::name(&[u8::MAX]), "works");
        assert!(Request::decoded(&[]).is_err());
    }

    #[test]
    fn every_kind_has_a_byte_of_its_own() {
        for kind in RequestKind::ALL {
            assert_eq!(RequestKind::of(&[kind as u8]), Some(kind));
        }
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

//! Forward and backward of one batch on all replicas: the gradients of its mean loss.

use std::slice;
use std::sync::Arc;

use burn::tensor::Device;
use stratoscope_bert::Mode;
use stratoscope_bert::ops::{Precision, Stop};
use stratoscope_bert::recompute::{Recorded, Shards};
use stratoscope_bert::taps::{self, Change};
use stratoscope_data::Batch;
use stratoscope_diagnostics::Result;
use stratoscope_strategy::{ReplicaId, Replicas};

use super::accumulated::Accumulated;
use super::across::{self, Share};
use super::failures::guarded;
use super::forward::{BatchOutputs, PartOutputs, named_by_device, read};
use super::slices;
use super::timed::{PassSize, PassTimer};
use stratoscope_arguments::class_weight::{ClassWeights, weighted_sum};
use stratoscope_metrics::loss::{Loss, own};
use stratoscope_network::AnyNetwork;
use stratoscope_optim::squares_on_device;

/// How a batch is run.
#[derive(Clone)]
pub struct Pass {
    /// The loss.
    pub loss: Loss,
    /// What each example counts in the loss, by its class; 1 each where there are none.
    pub class_weights: Option<ClassWeights>,
    /// Whether dropout is active, and with which masks.
    pub dropout: Dropout,
    /// What the layers compute in.
    pub precision: Precision,
    /// The loss is multiplied by this before the backward pass, and so are the gradients (`loss_scale`).
    pub scale: f64,
    /// Whether layers are computed once more in the backward pass, where the network can (`Network::can_recompute`).
    pub recompute: bool,
    /// The rate of every dropout, where it is not the network's.
    pub dropout_rate: Option<f64>,
    /// What becomes of the outputs of layers; `None`: what they are.
    pub activations: Option<Arc<[Change]>>,
    /// Notes when each replica computes what, while a profile is made.
    pub timer: Option<Arc<PassTimer>>,
}

/// Whether layers drop numbers, and by which random numbers.
#[derive(Clone, Copy)]
pub enum Dropout {
    /// As in training. The masks are a function of seed, batch, replica and element.
    Masks {
        /// The seed of the run.
        seed: u64,
        /// The number of the batch in the run.
        batch: u64,
    },
    /// As in evaluation.
    Off,
}

impl Dropout {
    pub(super) fn mode(self, replica: usize) -> Mode {
        match self {
            Self::Masks { seed, batch } => Mode::Train {
                seed,
                step: batch,
                replica: replica as u32,
            },
            Self::Off => Mode::Eval,
        }
    }
}

/// The accumulators of the replicas, and what they computed; `None` where the batch was given up.
pub type Done = (Vec<Accumulated>, Option<BatchOutputs>);

/// Runs each replica's part of the batch forward and backward, and adds the gradients to what the replica has
/// accumulated.
///
/// A replica's gradient is that of the *sum* of its losses divided by `shares[replica]`, the examples that it sees
/// in the whole optimizer step. So the accumulated gradient of a replica is the mean over its examples, however
/// many batches they came in, and the all-reduce weighs replicas by the same numbers.
///
/// Where the batch was given up, the accumulators are as they were: no replica adds its gradients before `stop` has
/// committed to the batch.
///
/// # Errors
/// SC0607, SC0709, SC0710 or SC0907, naming the device that failed.
pub fn forward_backward(
    replicas: &Replicas<AnyNetwork>,
    accumulated: Vec<Accumulated>,
    batch: &Batch,
    shares: &[usize],
    pass: Pass,
    stop: &Stop,
) -> Result<Done> {
    let parts = batch.split(replicas.len());
    forward_backward_of(replicas, accumulated, parts, shares, pass, stop)
}

/// [`forward_backward`] of the parts of some of the replicas; the others have none.
///
/// # Errors
/// As [`forward_backward`].
pub(super) fn forward_backward_of(
    replicas: &Replicas<AnyNetwork>,
    mut accumulated: Vec<Accumulated>,
    parts: Vec<Option<Batch>>,
    shares: &[usize],
    pass: Pass,
    stop: &Stop,
) -> Result<Done> {
    let Some(compared) = across::shares(replicas, &parts, &pass, stop)? else {
        return Ok((accumulated, None));
    };
    let devices: Vec<Device> = replicas
        .devices()
        .iter()
        .map(|device| device.training())
        .collect();
    let (given_up, stop) = (stop, stop.clone());
    let (alone, loss) = (replicas.len() == 1, pass.loss);
    let in_parts = replicas.gathers_in_parts();
    let shards = in_parts.then(|| Shards(Arc::new(replicas.pieces())));
    // Changes of what layers put out are made in whole layers.
    let is_whole = pass.activations.is_none();
    let sliced = is_whole.then(|| slices::slices(replicas)).flatten();
    let in_slices = sliced.is_some();
    let work = move |ReplicaId(index): ReplicaId,
                     network: &AnyNetwork,
                     (part, compared, accumulated)| {
        let (part, share): (Option<Batch>, usize) = part;
        let compared: Option<Arc<Share>> = compared;
        let mut accumulated: Accumulated = accumulated;
        let Some(part) = part else {
            return (accumulated, None);
        };
        let own = ReplicaPass {
            network,
            device: &devices[index],
            replica: index,
            part: &part,
            share,
            compared: compared.as_deref(),
            pass: &pass,
            shards: shards.clone(),
            alone,
        };
        let run = || slices::during(sliced.as_ref(), index, || own.run(&mut accumulated, &stop));
        let timed = || match &pass.timer {
            Some(timer) => timer.during(index, PassSize::of(slice::from_ref(&part)), run),
            None => run(),
        };
        let outputs = pass.around(&part, timed);
        let outputs = outputs.map(|outputs| outputs.map(|outputs| (part, outputs)));
        (accumulated, outputs)
    };
    accumulated.resize_with(replicas.len(), Accumulated::default);
    let inputs = parts
        .into_iter()
        .zip(shares.iter().copied())
        .zip(compared)
        .zip(accumulated)
        .map(|((part, compared), accumulated)| (part, compared, accumulated));
    let inputs = inputs.collect();
    let computed = || match in_parts {
        true => replicas.compute_in_parts(inputs, work),
        false if in_slices => replicas.compute_in_slices(inputs, work),
        false => replicas.compute_each_replica(inputs, work),
    };
    let done = guarded(replicas.devices(), false, computed)?;
    own::failure(loss)?;
    let (accumulated, outputs): (Vec<_>, Vec<_>) = done.into_iter().unzip();
    if given_up.is_given_up() {
        return Ok((accumulated, None));
    }
    let outputs = named_by_device(outputs, replicas.devices())?;
    Ok((accumulated, Some(outputs)))
}

/// One replica's part of a batch, to be run forward and backward.
pub(super) struct ReplicaPass<'a> {
    /// The network of the replica.
    pub network: &'a AnyNetwork,
    /// The device of the replica.
    pub device: &'a Device,
    /// The replica's number: dropout masks depend on it.
    pub replica: usize,
    /// The replica's examples.
    pub part: &'a Batch,
    /// The examples that the replica sees in the whole step.
    pub share: usize,
    /// Its share of a loss that compares the examples of the whole batch, where other replicas have some of them.
    pub compared: Option<&'a Share>,
    /// What is the same for all replicas.
    pub pass: &'a Pass,
    /// The weights that its layers gather, where replicas divide the weights.
    pub shards: Option<Shards>,
    /// Its gradients are those of the step, so that on a GPU their norm is read together with the outputs.
    pub alone: bool,
}

impl ReplicaPass<'_> {
    /// Runs it, and adds the gradients to what the replica has accumulated. `None` where the batch was given up.
    pub(super) fn run(
        self,
        accumulated: &mut Accumulated,
        stop: &Stop,
    ) -> Option<std::result::Result<PartOutputs, String>> {
        let Self {
            network,
            part,
            pass,
            shards,
            compared,
            ..
        } = self;
        let forward = || network.logits(part, pass.dropout.mode(self.replica), self.device);
        let forward = || Recorded::gathering(pass.recompute, shards, forward);
        let (logits, recorded) = stop.during(|| pass.precision.during(forward));
        if stop.is_given_up() {
            return None;
        }
        taps::stage("loss");
        let loss = (pass.loss, pass.class_weights.as_ref());
        let sum = match compared {
            Some(share) => share.stand_in(logits.clone()),
            None => weighted_sum(loss, logits.clone(), &part.labels, part.weights.as_deref()),
        };
        // scale · Σ loss / examples of the step.
        let mean = sum.clone().div_scalar(self.share as f64 / pass.scale);
        taps::stage("backward");
        let backward = || recorded.backward(&mean, network);
        let gradients = stop.during(|| pass.precision.during(backward));
        // From here on the batch counts, on all replicas.
        if !stop.commit() {
            return None;
        }
        taps::stage("accumulate");
        accumulated.add(network, gradients);
        let mut squares = Vec::new();
        if self.alone {
            let gradients = accumulated.take();
            squares = squares_on_device(network, &gradients).unwrap_or_default();
            accumulated.add(network, gradients);
        }
        taps::stage("read");
        let outputs = read(Some(sum.inner()), logits.inner(), squares);
        Some(outputs.map(|outputs| match compared {
            Some(share) => share.in_place(outputs),
            None => outputs,
        }))
    }
}

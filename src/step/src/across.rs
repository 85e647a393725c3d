//! Losses that compare the examples of a batch with each other (`Loss::compares_examples`), where several replicas have parts of
//! it: the negatives of an example are those of the whole batch, as on one device.
//!
//! The gradient of such a loss by the vectors of one replica depends on the vectors of all. So each replica computes its vectors
//! first, without keeping what the backward pass needs; the loss of the whole batch and its gradient by the vectors are computed
//! once, on the host; and each replica then minimizes Σ gradient · vectors of its own part, whose gradient by the weights is its
//! part of that of the loss. Dropout masks are functions of seed, batch, replica and element, so that both passes have the same
//! ones. Source: Gao et al. 2021, "Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup", section 3.

use std::sync::Arc;

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use stratoscope_bert::ops::Stop;
use stratoscope_data::{Batch, Labels};
use stratoscope_diagnostics::Result;
use stratoscope_strategy::{ReplicaId, Replicas};

use super::backward::Pass;
use super::failures::guarded;
use super::forward::{BatchOutputs, PartOutputs, named_by_device, read};
use super::slices;
use stratoscope_metrics::loss::Loss;
use stratoscope_network::AnyNetwork;

/// What a replica has of the loss of a whole batch.
pub(super) struct Share {
    /// The gradient of the loss by the replica's vectors, row-major.
    gradient: Vec<f32>,
    /// The losses of the replica's examples, added up.
    loss: f64,
}

impl Share {
    /// A number whose gradient by the weights is that of the batch's loss.
    ///
    /// # Shapes
    /// The replica's outputs, [B, T·H] → `[1]`
    pub(super) fn stand_in(&self, outputs: Tensor<2>) -> Tensor<1> {
        let gradient = TensorData::new(self.gradient.clone(), outputs.dims());
        let gradient = Tensor::from_data(gradient, &outputs.device());
        (outputs * gradient).sum()
    }

    /// What the replica computed, with the loss of its examples in place of the number.
    pub(super) fn in_place(&self, outputs: PartOutputs) -> PartOutputs {
        PartOutputs {
            loss: self.loss,
            ..outputs
        }
    }
}

/// Each replica's share of the loss of a batch; none where every replica can compute its loss by itself. `None` where the work
/// was given up.
///
/// # Errors
/// SC0607, SC0709, SC0710 or SC0907, naming the device that failed.
pub(super) fn shares(
    replicas: &Replicas<AnyNetwork>,
    parts: &[Option<Batch>],
    pass: &Pass,
    stop: &Stop,
) -> Result<Option<Vec<Option<Arc<Share>>>>> {
    let none = || parts.iter().map(|_| None).collect();
    let is_divided = parts.iter().flatten().count() > 1;
    if !(pass.loss.needs_several() && is_divided) {
        return Ok(Some(none()));
    }
    let Some(outputs) = vectors(replicas, parts, pass, stop)? else {
        return Ok(None);
    };
    let Some(joined) = Joined::of(&outputs) else {
        return Ok(Some(none()));
    };
    let device = Device::flex().autodiff();
    let all = joined.outputs(&device).require_grad();
    let Some(each) = joined.losses(pass.loss, all.clone()) else {
        return Ok(Some(none()));
    };
    let gradients = each.clone().sum().backward();
    let Some(gradient) = all.grad(&gradients) else {
        return Ok(Some(none()));
    };
    let gradient: Vec<f32> = gradient.into_data().iter().collect();
    let losses: Vec<f32> = each.into_data().iter().collect();
    let mut shares: Vec<Option<Arc<Share>>> = none();
    let mut start = 0;
    for (slot, (part, _)) in shares.iter_mut().zip(&outputs) {
        let rows = start..start + part.size();
        let numbers = rows.start * joined.width..rows.end * joined.width;
        start = rows.end;
        *slot = Some(Arc::new(Share {
            gradient: gradient[numbers].to_vec(),
            loss: losses[rows].iter().copied().map(f64::from).sum(),
        }));
    }
    Ok(Some(shares))
}

/// The vectors of all parts, as the training pass will have them. `None` where the work was given up.
fn vectors(
    replicas: &Replicas<AnyNetwork>,
    parts: &[Option<Batch>],
    pass: &Pass,
    stop: &Stop,
) -> Result<Option<BatchOutputs>> {
    let devices = replicas.devices().iter();
    let devices: Vec<Device> = devices.map(|device| device.burn.clone()).collect();
    let sliced = slices::slices(replicas);
    let in_slices = sliced.is_some();
    let (pass, given_up, stop) = (pass.clone(), stop, stop.clone());
    let work = move |ReplicaId(index): ReplicaId, network: &AnyNetwork, part: Option<Batch>| {
        let part = part?;
        let forward = || {
            let mode = pass.dropout.mode(index);
            network.valid().logits(&part, mode, &devices[index])
        };
        let forward = || slices::during(sliced.as_ref(), index, forward);
        let outputs = pass.around(&part, || stop.during(|| pass.precision.during(forward)));
        if stop.is_given_up() {
            return None;
        }
        Some(read(None, outputs, Vec::new()).map(|outputs| (part, outputs)))
    };
    let computed = || match in_slices {
        true => replicas.compute_in_slices(parts.to_vec(), work),
        false => replicas.for_each_replica(parts.to_vec(), work),
    };
    let done = guarded(replicas.devices(), false, computed)?;
    if given_up.is_given_up() {
        return Ok(None);
    }
    named_by_device(done, replicas.devices()).map(Some)
}

/// The losses of the examples of each part, for a loss that compares the examples of a batch; `None` for another loss.
pub fn losses(loss: Loss, outputs: &BatchOutputs) -> Option<Vec<Vec<f64>>> {
    if !loss.compares_examples() {
        return None;
    }
    let joined = Joined::of(outputs)?;
    let each = joined.losses(loss, joined.outputs(&Device::flex()))?;
    let each = each.into_data();
    let mut each = each.iter::<f32>();
    let of_part = |(part, _): &(Batch, PartOutputs)| {
        let own = each.by_ref().take(part.size());
        own.map(f64::from).collect()
    };
    Some(outputs.iter().map(of_part).collect())
}

/// The parts of a batch with their sums of losses, where these are of a loss that compares the examples of the batch.
pub(super) fn with_losses(loss: Option<Loss>, mut outputs: BatchOutputs) -> BatchOutputs {
    let losses = loss.and_then(|loss| losses(loss, &outputs));
    for ((_, own), losses) in outputs.iter_mut().zip(losses.unwrap_or_default()) {
        own.loss = losses.iter().sum();
    }
    outputs
}

/// The outputs of all parts of a batch.
struct Joined {
    numbers: Vec<f32>,
    width: usize,
    labels: Labels,
    weights: Option<Vec<f32>>,
}

impl Joined {
    /// `None` without examples whose texts are compared.
    fn of(outputs: &BatchOutputs) -> Option<Self> {
        let (first, _) = outputs.first()?;
        let Labels::Apart { texts, .. } = first.labels else {
            return None;
        };
        let rows: usize = outputs.iter().map(|(part, _)| part.size()).sum();
        let numbers = outputs
            .iter()
            .flat_map(|(_, own)| own.outputs.iter().copied());
        let numbers: Vec<f32> = numbers.collect();
        let is_weighted = outputs.iter().any(|(part, _)| part.weights.is_some());
        let weights = outputs.iter().flat_map(|(part, _)| match &part.weights {
            Some(weights) => weights.clone(),
            None => vec![1.0; part.size()],
        });
        Some(Self {
            width: numbers.len() / rows.max(1),
            labels: Labels::Apart { rows, texts },
            weights: is_weighted.then(|| weights.collect()),
            numbers,
        })
    }

    fn outputs(&self, device: &Device) -> Tensor<2> {
        let shape = [self.labels.len(), self.width];
        Tensor::from_data(TensorData::new(self.numbers.clone(), shape), device)
    }

    /// The loss of each example, [B, 1].
    fn losses(&self, loss: Loss, outputs: Tensor<2>) -> Option<Tensor<2>> {
        loss.of_each(outputs, &self.labels, self.weights.as_deref())
    }
}

//! The forward pass of a batch on all replicas, without gradients and without dropout.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use stratoscope_bert::Mode;
use stratoscope_bert::ops::Precision;
use stratoscope_data::Batch;
use stratoscope_diagnostics::rules::Interrupted;
use stratoscope_diagnostics::{Diagnostic, Result, Rule};
use stratoscope_render::text;
use stratoscope_strategy::{LogicalDevice, ReplicaId, Replicas};

use crate::failures::{failed, guarded};
use crate::{across, pipeline, slices};
use stratoscope_arguments::class_weight::weighted_sum;
use stratoscope_arguments::context::interrupt;
use stratoscope_metrics::loss::{Loss, own};
use stratoscope_network::AnyNetwork;

/// Batches that are prepared ahead of the one that is computed.
pub const PREFETCHED: usize = 2;

/// What a replica computed for its part of a batch, on the host.
#[derive(Debug)]
pub struct PartOutputs {
    /// The outputs of the last layer, row by row: \[B, C\].
    pub outputs: Vec<f32>,
    /// The sum of the losses of its B examples; 0 where no loss was asked for.
    pub loss: f64,
    /// Σ g² over the gradients that the replica has accumulated, where it came with the outputs.
    pub squares: Option<f64>,
}

/// The parts of a batch with their outputs, in the order of the replicas. Replicas without a part are the last
/// ones and are left out.
pub type BatchOutputs = Vec<(Batch, PartOutputs)>;

/// Runs a batch forward on all replicas. `None` if it was interrupted on the way.
///
/// # Errors
/// SC0607, SC0709, SC0710 or SC0907, naming the device that failed.
pub fn forward(
    replicas: &Replicas<AnyNetwork>,
    batch: &Batch,
    loss: Option<Loss>,
    precision: Precision,
) -> Result<Option<BatchOutputs>> {
    let stop = interrupt::at_once();
    let given_up = stop.clone();
    let compared = loss.filter(|loss| loss.compares_examples());
    let loss = loss.filter(|_| compared.is_none());
    if let Some(stages) = replicas.stages().cloned() {
        let devices = stages.devices.clone();
        // Outputs are read from the last stage of each replica.
        let lasts = devices.iter().skip(stages.len() - 1).step_by(stages.len());
        let lasts: Vec<LogicalDevice> = lasts.cloned().collect();
        let work = move |ReplicaId(index): ReplicaId, row: &[AnyNetwork], part: Option<Batch>| {
            let part = part?;
            let outputs = || pipeline::outputs(row, (&stages, index), &part);
            let logits = stop.during(|| precision.during(outputs))?;
            if stop.is_given_up() {
                return None;
            }
            Some(measured(&part, logits, loss).map(|outputs| (part, outputs)))
        };
        let inputs = batch.split(replicas.len());
        let computed = || replicas.for_each_row(inputs, work);
        let done = guarded(&devices, false, computed)?;
        loss.map_or(Ok(()), own::failure)?;
        if given_up.is_given_up() {
            return Ok(None);
        }
        return named_by_device(done, &lasts).map(Some);
    }
    let devices: Vec<Device> = replicas
        .devices()
        .iter()
        .map(|device| device.burn.clone())
        .collect();
    let sliced = slices::slices(replicas);
    let in_slices = sliced.is_some();
    let work = move |ReplicaId(index): ReplicaId, network: &AnyNetwork, part: Option<Batch>| {
        let part = part?;
        let forward = || network.valid().logits(&part, Mode::Eval, &devices[index]);
        let forward = || slices::during(sliced.as_ref(), index, forward);
        let logits = stop.during(|| precision.during(forward));
        if stop.is_given_up() {
            return None;
        }
        Some(measured(&part, logits, loss).map(|outputs| (part, outputs)))
    };
    let inputs = batch.split(replicas.len());
    let computed = || match in_slices {
        true => replicas.compute_in_slices(inputs, work),
        false => replicas.for_each_replica(inputs, work),
    };
    let done = guarded(replicas.devices(), false, computed)?;
    loss.map_or(Ok(()), own::failure)?;
    if given_up.is_given_up() {
        return Ok(None);
    }
    let outputs = named_by_device(done, replicas.devices())?;
    Ok(Some(across::with_losses(compared, outputs)))
}

/// What came out for a part of a batch, with its loss.
fn measured(
    part: &Batch,
    logits: Tensor<2>,
    loss: Option<Loss>,
) -> std::result::Result<PartOutputs, String> {
    let weights = part.weights.as_deref();
    let sum = |loss| weighted_sum((loss, None), logits.clone(), &part.labels, weights);
    let loss = loss.map(sum);
    read(loss, logits, Vec::new())
}

/// What the replicas returned; a failure names the device of the replica that failed.
///
/// # Errors
/// SC0907 for the first replica that failed.
pub(super) fn named_by_device<T>(
    done: impl IntoIterator<Item = Option<std::result::Result<T, String>>>,
    devices: &[LogicalDevice],
) -> Result<Vec<T>> {
    let of_replica =
        |(outcome, device): (Option<std::result::Result<T, String>>, &LogicalDevice)| {
            outcome.map(|outcome| outcome.map_err(|reason| failed(&device.name, &reason)))
        };
    done.into_iter()
        .zip(devices)
        .filter_map(of_replica)
        .collect()
}

/// Reads loss, outputs and sums of squares (none of them where there are no tensors) from their device, in one transfer.
pub(super) fn read(
    loss: Option<Tensor<1>>,
    logits: Tensor<2>,
    squares: Vec<Tensor<1>>,
) -> std::result::Result<PartOutputs, String> {
    let count = logits.shape().num_elements();
    let outputs: Tensor<1> = logits.reshape([count]);
    let (has_loss, has_squares) = (loss.is_some(), !squares.is_empty());
    let mut all: Vec<Tensor<1>> = loss.into_iter().chain([outputs]).chain(squares).collect();
    let all = match all.len() {
        1 => all.remove(0),
        _ => Tensor::cat(all, 0),
    };
    let data = all.try_into_data().map_err(|error| error.to_string())?;
    let mut values = data.iter::<f32>();
    let loss = match has_loss {
        true => values.next().map_or(f64::NAN, f64::from),
        false => 0.0,
    };
    Ok(PartOutputs {
        outputs: values.by_ref().take(count).collect(),
        loss,
        squares: has_squares.then(|| values.map(f64::from).sum()),
    })
}

/// SC0520: a call whose result is only useful as a whole was interrupted.
pub fn interrupted(call: &str, done: usize, total: usize) -> Box<Diagnostic> {
    Interrupted {
        work: format!("`{call}`"),
        reached: format!(
            "{} of {}",
            text::thousands(done),
            text::count(total, "example")
        ),
    }
    .error()
}

#[cfg(test)]
mod tests {
    use stratoscope_strategy::{AsStrategy, MirroredStrategy};

    use super::*;

    #[test]
    fn the_device_that_failed_is_named() {
        let strategy = MirroredStrategy::logical(2).expect("two logical devices");
        let devices = strategy.strategy().replicas().to_vec();
        let done = [Some(Ok(1)), Some(Err("no memory left".to_owned()))];
        let problem = named_by_device(done, &devices).expect_err("the second replica failed");
        assert_eq!(problem.code, "SC0907");
        let text = format!("{problem:?}");
        assert!(text.contains("cpu:1") && !text.contains("cpu:0"), "{text}");
        let done = [Some(Ok(1)), None];
        assert_eq!(named_by_device(done, &devices), Ok(vec![1]));
    }
}

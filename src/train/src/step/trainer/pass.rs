//! Forward and backward of one batch, on all replicas.

use burn::optim::{GradientsAccumulator, GradientsParams};
use burn::tensor::Device;
use stratoscope_bert::Mode;
use stratoscope_bert::ops::Stop;
use stratoscope_data::Batch;
use stratoscope_diagnostics::Result;
use stratoscope_strategy::ReplicaId;

use super::Trainer;
use crate::model::evaluate::{Answer, failed, parts, read};
use crate::network::Network;
use crate::run::progress::Progress;

impl<N: Network> Trainer<'_, N> {
    /// Runs each replica's part of the batch and adds its gradients to what the replica has
    /// accumulated. `shares` are the examples that each replica sees in the whole optimizer step.
    /// `None` where the batch was given up: then nothing has changed.
    pub(crate) fn forward_and_backward(
        &self,
        batch: &Batch,
        shares: &[usize],
        seed: u64,
        progress: &mut Progress<N>,
        stop: &Stop,
    ) -> Result<Option<Vec<(Batch, Answer)>>> {
        let devices: Vec<Device> = self
            .replicas
            .devices()
            .iter()
            .map(|device| device.training())
            .collect();
        let begins_step = progress.accumulated.is_empty();
        if begins_step {
            self.replicas.begin_step();
        }
        let loss = self.loss()?;
        let step = progress.batches_of_run;
        let weights = progress.class_weights.clone();
        let precision = self.policy.precision();
        let scale = self.compiled.loss_scale.scale();
        let (given_up, stop) = (stop, stop.clone());
        let work = move |ReplicaId(index): ReplicaId, network: &N, (part, share, accumulated)| {
            let (part, mut accumulated): (Option<Batch>, GradientsAccumulator<N>) =
                (part, accumulated);
            let Some(part) = part else {
                return (accumulated, None);
            };
            let mode = Mode::Train {
                seed,
                step,
                replica: index as u32,
            };
            let forward = || network.logits(&part, mode, &devices[index]);
            let logits = stop.during(|| precision.during(forward));
            if stop.is_given_up() {
                return (accumulated, None);
            }
            let sum = match &weights {
                Some(weights) => weights.sum(loss, logits.clone(), &part.labels),
                None => loss.sum(logits.clone(), &part.labels),
            };
            // The mean of the step's examples, times the scale of the loss.
            let mean = sum.clone().div_scalar(share as f64 / scale);
            let gradients = stop.during(|| mean.backward());
            let gradients = GradientsParams::from_grads(gradients, network);
            // From here on the batch counts, on all replicas.
            if !stop.commit() {
                return (accumulated, None);
            }
            // The accumulator adds; what it is given was divided by the examples of the whole step.
            accumulated.accumulate(network, gradients);
            let answer = read(Some(sum.inner()), logits.inner());
            (accumulated, Some(answer.map(|answer| (part, answer))))
        };
        let mut accumulated = std::mem::take(&mut progress.accumulated);
        accumulated.resize_with(self.replicas.len(), GradientsAccumulator::new);
        let inputs = parts(batch, self.replicas.len())
            .into_iter()
            .zip(shares.iter().copied());
        let inputs = inputs
            .zip(accumulated)
            .map(|((part, share), sum)| (part, share, sum));
        let done = self.replicas.compute_each_replica(inputs.collect(), work)?;
        let (accumulated, answers): (Vec<_>, Vec<_>) = done.into_iter().unzip();
        if given_up.is_given_up() {
            if !begins_step {
                progress.accumulated = accumulated;
            }
            return Ok(None);
        }
        progress.accumulated = accumulated;
        let answers = answers.into_iter().enumerate();
        let answers = answers.filter_map(|(index, answer)| Some((index, answer?)));
        let answers = answers.map(|(index, answer)| {
            let device = &self.replicas.devices()[index].name;
            answer.map_err(|reason| failed(device, &reason))
        });
        answers.collect::<Result<_>>().map(Some)
    }
}

//! The parts of an optimizer step, each on all replicas: forward and backward, all-reduce, update. Called
//! by the loop in `fit`, which has their order.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use burn::module::{ModuleVisitor, Param, ParamId};
use burn::optim::{GradientsAccumulator, GradientsParams};
use burn::tensor::{Device, Tensor};
use stratoscope_bert::Mode;
use stratoscope_data::{Batch, Encoded};
use stratoscope_diagnostics::rules::NoLoss;
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_strategy::{BackendKind, ReplicaId, Replicas};

use crate::compile::Compiled;
use crate::evaluate::{Answer, failed, on_replicas, parts, read};
use crate::history::Evaluation;
use crate::loss::Loss;
use crate::network::Network;
use crate::optimizer::{OptimizerState, Update, apply, global_norm};
use crate::run::Progress;

/// What a step works on: the parts of a model that change, and the settings.
pub(crate) struct Trainer<'a, N: Network> {
    pub replicas: &'a mut Replicas<N>,
    pub compiled: &'a mut Compiled,
    pub gradient_bytes: &'a mut HashMap<ParamId, u64>,
    pub undecayed: Arc<HashSet<ParamId>>,
    pub classes: Option<usize>,
}

impl<N: Network> Trainer<'_, N> {
    fn loss(&self) -> Result<Loss> {
        self.compiled.loss.ok_or_else(|| NoLoss.error())
    }

    /// The rate of the step after `steps` steps of this run.
    pub(crate) fn rate(&self, steps: u64, total_steps: u64) -> f64 {
        let schedule = self.compiled.optimizer.schedule;
        let made = self
            .compiled
            .states
            .first()
            .map_or(0, OptimizerState::steps);
        schedule.rate(
            if schedule.spans_the_run() {
                steps
            } else {
                made
            },
            total_steps,
        )
    }

    /// Runs each replica's part of the batch and adds its gradients to what the replica has
    /// accumulated. `shares` are the examples that each replica sees in the whole optimizer step.
    pub(crate) fn forward_and_backward(
        &self,
        batch: &Batch,
        shares: &[usize],
        seed: u64,
        progress: &mut Progress<N>,
    ) -> Result<Vec<(Batch, Answer)>> {
        let devices: Vec<Device> = self
            .replicas
            .devices()
            .iter()
            .map(|device| device.training())
            .collect();
        let loss = self.loss()?;
        let step = progress.batches_of_run;
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
            let logits = network.logits(&part, mode, &devices[index]);
            let sum = loss.sum(logits.clone(), &part.labels);
            let gradients = sum.clone().div_scalar(share as f64).backward();
            let gradients = GradientsParams::from_grads(gradients, network);
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
        let done = self.replicas.for_each_replica(inputs.collect(), work)?;
        let (accumulated, answers): (Vec<_>, Vec<_>) = done.into_iter().unzip();
        progress.accumulated = accumulated;
        let answers = answers.into_iter().enumerate();
        let answers = answers.filter_map(|(index, answer)| Some((index, answer?)));
        answers
            .map(|(index, answer)| {
                let device = &self.replicas.devices()[index].name;
                answer.map_err(|reason| failed(device, &reason))
            })
            .collect()
    }

    /// The mean of the accumulated gradients over the replicas, by examples, on every replica.
    pub(crate) fn all_reduce(
        &mut self,
        progress: &mut Progress<N>,
        shares: &[usize],
    ) -> Result<Vec<GradientsParams>> {
        let accumulated = std::mem::take(&mut progress.accumulated);
        let gradients = accumulated.into_iter().map(|mut sum| sum.grads()).collect();
        let gradients = self.replicas.all_reduce(gradients, shares)?;
        if self.gradient_bytes.is_empty()
            && let Some(first) = gradients.first()
        {
            *self.gradient_bytes = bytes(self.replicas.first(), first);
        }
        Ok(gradients)
    }

    /// The norm over all gradients: for clipping, for the history, and to see that they are finite.
    pub(crate) fn norm(&self, gradients: &[GradientsParams]) -> f64 {
        let first = gradients.first();
        first.map_or(0.0, |first| global_norm(self.replicas.first(), first))
    }

    /// Every replica makes the same update with the same gradients. With `wait` the devices have
    /// finished when it returns, so that a clock read afterwards tells the truth.
    pub(crate) fn step(
        &mut self,
        gradients: Vec<GradientsParams>,
        norm: f64,
        rate: f64,
        wait: bool,
    ) -> Result<()> {
        let optimizer = &self.compiled.optimizer;
        let update = Update {
            rule: optimizer.rule,
            clipping: optimizer.clipping,
            factor: optimizer.clipping.global_factor(norm),
            rate,
            undecayed: Arc::clone(&self.undecayed),
        };
        let devices = self.replicas.devices().to_vec();
        let states = std::mem::take(&mut self.compiled.states);
        let inputs = gradients.into_iter().zip(states).collect();
        let work = move |ReplicaId(index): ReplicaId, network: &mut N, (gradients, state)| {
            let mut state: OptimizerState = state;
            apply(network, gradients, &mut state, &update);
            let device = &devices[index];
            let synced = match device.backend {
                BackendKind::Wgpu | BackendKind::Cuda if wait => device.burn.sync(),
                _ => Ok(()),
            };
            (
                state,
                synced.map_err(|error| failed(&device.name, &error.to_string())),
            )
        };
        let done = self.replicas.update_each_replica(inputs, work)?;
        let (states, outcomes): (Vec<_>, Vec<Result<()>>) = done.into_iter().unzip();
        self.compiled.states = states;
        outcomes.into_iter().collect()
    }

    pub(crate) fn validate(&self, data: &Encoded, batch_size: usize) -> Result<Evaluation> {
        let (loss, metrics) = (self.loss()?, &self.compiled.metrics);
        on_replicas(
            self.replicas,
            data,
            batch_size,
            loss,
            metrics,
            self.classes,
            &|_| {},
        )
    }
}

/// The size of every gradient.
fn bytes<N: Network>(network: &N, gradients: &GradientsParams) -> HashMap<ParamId, u64> {
    struct Sizes<'a>(&'a GradientsParams, HashMap<ParamId, u64>);
    impl ModuleVisitor for Sizes<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Some(gradient) = self.0.get::<D>(param.id) {
                let bytes = gradient.shape().num_elements() * gradient.dtype().size();
                self.1.insert(param.id, bytes as u64);
            }
        }
    }
    let mut sizes = Sizes(gradients, HashMap::new());
    network.visit(&mut sizes);
    sizes.1
}

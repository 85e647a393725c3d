//! The optimizer step that would come, computed without making it: its batches forward and backward with the very
//! masks that they will have, the exchange, and the update of copies of the variables. The state is only read. What
//! replicas move for it is not counted ([`Collectives::unlogged`](stratoscope_strategy::Collectives::unlogged)).

use burn::optim::GradientsParams;
use burn::tensor::Device;
use stratoscope_bert::ops::Stop;
use stratoscope_bert::taps::Taps;
use stratoscope_data::Batch;
use stratoscope_diagnostics::Result;
use stratoscope_strategy::{ReplicaId, Replicas};

use super::accumulated::Accumulated;
use super::backward::{Dropout, Pass, forward_backward};
use super::exchange::{ExchangeMode, Exchanged};
use super::failures::guarded;
use super::forward::{BatchOutputs, named_by_device, read};
use super::loss_scale::unscaled;
use super::{NumberedBatch, StepSettings, StepState};
use stratoscope_network::AnyNetwork;
use stratoscope_optim::{OptimizerState, Update, apply, global_norm};

impl StepState {
    /// How a batch of the coming step is run that has this number in the run.
    pub(super) fn coming_pass(&self, settings: &StepSettings, number: u64) -> Pass {
        let change = settings.change.as_ref();
        Pass {
            loss: settings.loss,
            class_weights: settings.class_weights.clone(),
            dropout: Dropout::Masks {
                seed: settings.seed,
                batch: number,
            },
            precision: self.policy.precision(),
            scale: self.loss_scale.scale(),
            recompute: settings.recompute,
            dropout_rate: change.and_then(|it| it.dropout).or(settings.dropout),
            activations: change.and_then(|it| it.activations.clone()),
            timer: None,
        }
    }

    /// The gradients of the coming step, whose batches these are, numbered in the run from `first` on: of each replica over
    /// its own examples, as the optimizer would get them without an exchange. `None` where the work was given up.
    ///
    /// # Errors
    /// SC0907 if a device fails.
    pub fn coming_gradients(
        &self,
        settings: &StepSettings,
        first: u64,
        batches: &[Batch],
        shares: &[usize],
        stop: &Stop,
    ) -> Result<Option<Vec<GradientsParams>>> {
        self.replicas.collectives().unlogged(|| {
            let mut accumulated: Vec<Accumulated> = Vec::new();
            for (number, batch) in (first..).zip(batches) {
                let pass = self.coming_pass(settings, number);
                let (added, outputs) =
                    forward_backward(&self.replicas, accumulated, batch, shares, pass, stop)?;
                accumulated = added;
                if outputs.is_none() {
                    return Ok(None);
                }
            }
            let (structure, scale) = (self.replicas.structure(), self.loss_scale.scale());
            let own = accumulated.into_iter().map(|mut sum| sum.take());
            Ok(Some(
                own.map(|own| unscaled(structure, own, scale)).collect(),
            ))
        })
    }

    /// What the optimizer would get of the gradients of all replicas.
    ///
    /// # Errors
    /// SC0907 if a device fails.
    pub fn coming_exchange(
        &self,
        own: Vec<GradientsParams>,
        mode: ExchangeMode,
        settings: &StepSettings,
        shares: &[usize],
    ) -> Result<Exchanged> {
        let (gradients, different) = match mode {
            ExchangeMode::AllReduce => {
                let replicas = &self.replicas;
                let reduced =
                    (replicas.collectives()).unlogged(|| replicas.all_reduce(own, shares));
                (reduced?, 1)
            }
            ExchangeMode::LocalSgd { .. } | ExchangeMode::Push => (own, shares.len()),
        };
        let norm = |gradients| global_norm(self.replicas.structure(), gradients);
        let exchanged = Exchanged {
            norms: gradients.iter().take(different).map(norm).collect(),
            gradients,
            shares: shares.to_vec(),
            elsewhere: None,
        };
        Ok(settings.changed(self.replicas.structure(), exchanged))
    }

    /// The stored modules as they would be after the update, in the order of [`Replicas::modules`]. Whatever the
    /// gradients are, they are applied: a step that is skipped, or refused for a value that is not finite, is not
    /// left out here.
    pub fn coming_modules(
        &self,
        exchanged: Exchanged,
        mode: ExchangeMode,
        settings: &StepSettings,
    ) -> Vec<AnyNetwork> {
        let Exchanged {
            gradients,
            norms,
            shares,
            ..
        } = exchanged;
        let rate = self.rate(settings);
        let mut modules = self.replicas.modules().to_vec();
        let mut moments = self.moments.clone();
        moments.resize_with(modules.len(), OptimizerState::default);
        let mut update = |inputs| {
            let (inputs, update) = self.planned(inputs, rate, settings);
            let stored = modules.iter_mut().zip(&mut moments).zip(inputs);
            for ((module, moments), input) in stored {
                if let Some((gradients, norm)) = input {
                    let factor = update.clipping.global_factor(norm);
                    let update = Update {
                        factor,
                        ..update.clone()
                    };
                    apply(module, gradients, moments, &update);
                }
            }
        };
        match mode {
            ExchangeMode::AllReduce => {
                let norm = norms.first().copied().unwrap_or(0.0);
                update(gradients.into_iter().map(|one| Some((one, norm))).collect());
            }
            ExchangeMode::LocalSgd { .. } => {
                let inputs = gradients.into_iter().zip(norms).zip(&shares);
                update(
                    inputs
                        .map(|(input, &share)| (share > 0).then_some(input))
                        .collect(),
                );
            }
            ExchangeMode::Push => {
                let collectives = self.replicas.collectives();
                collectives.unlogged(|| {
                    let pushes = gradients.into_iter().zip(norms).zip(&shares).enumerate();
                    for (worker, ((gradients, norm), _)) in pushes.filter(|it| *it.1.1 > 0) {
                        let gradients = self.replicas.push(ReplicaId(worker), gradients);
                        update(vec![Some((gradients, norm))]);
                    }
                });
            }
        }
        modules
    }

    /// The outputs of a batch of the coming step: with the masks of that batch, so that its loss is the one that training
    /// will see; without `training` as in evaluation. `taps`, one for each replica or none, see what the layers
    /// of that replica compute. `None` where the work was given up.
    ///
    /// # Errors
    /// SC0907, naming the device that failed.
    pub fn coming_outputs(
        &self,
        settings: &StepSettings,
        NumberedBatch { number, batch }: NumberedBatch<'_>,
        training: bool,
        taps: &[Taps],
        stop: &Stop,
    ) -> Result<Option<BatchOutputs>> {
        let mut pass = self.coming_pass(settings, number);
        if !training {
            pass.dropout = Dropout::Off;
        }
        let replicas: &Replicas<AnyNetwork> = &self.replicas;
        let devices = replicas.devices().iter();
        let devices: Vec<Device> = devices.map(|device| device.training()).collect();
        let (taps, given_up, stop) = (taps.to_vec(), stop, stop.clone());
        let work = move |ReplicaId(index): ReplicaId, network: &AnyNetwork, part: Option<Batch>| {
            let part = part?;
            // The graph of the backward pass is built as in training, so that the bits are the same, and dropped.
            let forward = || network.logits(&part, pass.dropout.mode(index), &devices[index]);
            let forward = || stop.during(|| pass.precision.during(forward));
            let logits = pass.around(&part, || match taps.get(index) {
                Some(taps) => taps.during(forward),
                None => forward(),
            });
            if stop.is_given_up() {
                return None;
            }
            Some(read(None, logits.inner(), Vec::new()).map(|outputs| (part, outputs)))
        };
        let inputs = batch.split(replicas.len());
        let collectives = replicas.collectives();
        let computed = || replicas.compute_each_replica(inputs, work);
        let computed = || collectives.unlogged(computed);
        let done = guarded(replicas.devices(), false, computed)?;
        if given_up.is_given_up() {
            return Ok(None);
        }
        named_by_device(done, replicas.devices()).map(Some)
    }
}

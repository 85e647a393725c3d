//! The update: every copy of the variables is changed by the optimizer's rule.

use std::sync::Arc;

use burn::optim::GradientsParams;
use stratoscope_diagnostics::Result;
use stratoscope_strategy::{BackendKind, ReplicaId};

use super::exchange::{ExchangeMode, Exchanged};
use super::failures::failed_update;
use super::{StepSettings, StepState};
use stratoscope_network::AnyNetwork;
use stratoscope_optim::{Changes, Clipping, OptimizerState, Update, apply, clip_each};

/// The gradients of one copy of the variables with their norm; `None` for a copy that makes no update.
pub(super) type Input = Option<(GradientsParams, f64)>;

impl StepState {
    /// Applies the gradients and counts what was done; returns how many updates that were, and how much the first of them
    /// has changed one copy of the variables, where that is measured. With `wait` the devices
    /// have finished when it returns, so that a clock that is read afterwards is right.
    pub(super) fn apply(
        &mut self,
        exchanged: Exchanged,
        rate: f64,
        settings: &StepSettings,
        wait: bool,
    ) -> Result<(u64, Changes)> {
        let Exchanged {
            gradients,
            norms,
            shares,
            ..
        } = exchanged;
        let (made, changes) = match settings.exchange {
            ExchangeMode::AllReduce => {
                let norm = norms.first().copied().unwrap_or(0.0);
                let inputs = gradients.into_iter().map(|one| Some((one, norm)));
                self.workers_update(norm, rate, settings);
                let changes = self.update(inputs.collect(), rate, settings, wait)?;
                self.workers_have_updated();
                self.replicas.equalize()?;
                self.counters.all_reduces += u64::from(self.replicas.len() > 1);
                (1, changes)
            }
            ExchangeMode::LocalSgd { .. } => {
                self.begin_own_updates(rate, settings);
                let inputs = self.own_inputs(gradients, norms, &shares);
                let changes = self.update(inputs, rate, settings, wait)?;
                self.own_updates_made(rate, settings);
                self.local.steps += 1;
                self.local.examples.resize(shares.len(), 0);
                for (sum, share) in self.local.examples.iter_mut().zip(shares) {
                    *sum += share;
                }
                (1, changes)
            }
            ExchangeMode::Push => {
                let before = self.replicas.collectives().totals();
                let pushes = gradients.into_iter().zip(norms).zip(&shares).enumerate();
                let mut first = None;
                for (worker, ((gradients, norm), &share)) in pushes {
                    if share > 0 {
                        let worker = ReplicaId(worker);
                        let gradients = self.replicas.push(worker, gradients);
                        let input = vec![Some((gradients, norm))];
                        let changes = self.update(input, rate, settings, wait)?;
                        first.get_or_insert(changes);
                        self.replicas.fetch(worker)?;
                    }
                }
                let after = self.replicas.collectives().totals();
                self.counters.pushes += after.pushes - before.pushes;
                self.counters.staleness += after.staleness - before.staleness;
                (after.pushes - before.pushes, first.unwrap_or_default())
            }
        };
        self.counters.optimizer_steps += made;
        self.steps += made;
        self.loss_scale.stepped(self.policy);
        if let ExchangeMode::LocalSgd { sync_every } = settings.exchange
            && self.local.steps == sync_every
        {
            self.average_parameters()?;
        }
        self.compare_workers(false)?;
        Ok((made, changes))
    }

    /// What each replica updates its own weights with: its own gradients, and nothing where it has no examples or another
    /// process computes it.
    pub(super) fn own_inputs(
        &self,
        gradients: Vec<GradientsParams>,
        norms: Vec<f64>,
        shares: &[usize],
    ) -> Vec<Input> {
        let inputs = gradients.into_iter().zip(norms).zip(shares).enumerate();
        let inputs = inputs.map(|(replica, (input, &share))| {
            (share > 0 && self.computes(replica)).then_some(input)
        });
        inputs.collect()
    }

    /// Every copy of the variables makes an update with the same gradients, which were computed elsewhere.
    ///
    /// # Errors
    /// SC0907 if a device fails.
    pub fn apply_everywhere(
        &mut self,
        gradients: Vec<GradientsParams>,
        norm: f64,
        rate: f64,
        settings: &StepSettings,
    ) -> Result<()> {
        let inputs = gradients.into_iter().map(|one| Some((one, norm)));
        self.update(inputs.collect(), rate, settings, true)?;
        self.replicas.equalize()?;
        self.fetch_on_all(settings.exchange)
    }

    /// Gives the variables the values of their moving averages, where the optimizer keeps them (`use_ema`), on every
    /// copy alike; returns whether there were any.
    ///
    /// # Errors
    /// SC0907 if a device fails.
    pub fn overwrite_with_averages(&mut self, settings: &StepSettings) -> Result<bool> {
        if settings.compiled.optimizer.averaging.is_none() {
            return Ok(false);
        }
        let moments = std::mem::take(&mut self.moments);
        let work = |_, network: &mut AnyNetwork, moments: OptimizerState| {
            let overwritten = moments.overwrite(network);
            (moments, overwritten)
        };
        let done = self.replicas.update_each_replica(moments, work)?;
        let (moments, overwritten): (Vec<_>, Vec<bool>) = done.into_iter().unzip();
        self.moments = moments;
        self.replicas.equalize()?;
        self.fetch_on_all(settings.exchange)?;
        Ok(overwritten.contains(&true))
    }

    /// The rows that each server gets of the gradients of variables that are split by rows. Operations on whole
    /// tensors, such as `clipnorm`, run before: so training on several servers is bit-identical to training on one.
    fn scatter(
        &self,
        copy: usize,
        (gradients, norm): (GradientsParams, f64),
        clipping: Clipping,
    ) -> Vec<Input> {
        let gradients = clip_each(self.replicas.structure(), gradients, clipping);
        let rows = self.replicas.scatter(copy, gradients).into_iter();
        rows.map(|own| Some((own, norm))).collect()
    }

    /// The update of a step, and for each stored module the gradients that it is made with.
    pub(super) fn planned(
        &self,
        inputs: Vec<Input>,
        rate: f64,
        settings: &StepSettings,
    ) -> (Vec<Input>, Update) {
        let optimizer = &settings.compiled.optimizer;
        let (inputs, clipping) = match (self.replicas.is_sharded(), optimizer.clipping) {
            (false, clipping) => (inputs, clipping),
            (true, clipping) => {
                let inputs = inputs.into_iter().flatten().enumerate();
                let inputs = inputs
                    .flat_map(|(copy, input)| self.scatter(copy, input, clipping))
                    .collect();
                // `scatter` has clipped the whole tensors.
                let rest = match clipping {
                    Clipping::PerTensor(_) => Clipping::None,
                    clipping => clipping,
                };
                (inputs, rest)
            }
        };
        let update = Update {
            rule: optimizer.rule,
            clipping,
            averaging: optimizer.averaging,
            factor: 1.0,
            rate,
            undecayed: Arc::clone(&settings.undecayed),
            layer_factors: Arc::clone(&settings.layer_factors),
            is_measured: settings.measures_updates,
        };
        (inputs, update)
    }

    /// Every copy of the variables makes an update with its gradients, if it has any. Returns how much that has changed one
    /// copy, where it is measured. With `wait` the devices have finished when it returns.
    pub(super) fn update(
        &mut self,
        inputs: Vec<Input>,
        rate: f64,
        settings: &StepSettings,
        wait: bool,
    ) -> Result<Changes> {
        let (inputs, update) = self.planned(inputs, rate, settings);
        let devices = self.replicas.storage_devices().to_vec();
        let one_copy = self.replicas.modules_of_a_copy();
        let moments = std::mem::take(&mut self.moments);
        let inputs = inputs.into_iter().zip(moments).collect();
        let work = move |ReplicaId(index): ReplicaId,
                         network: &mut AnyNetwork,
                         (input, moments)| {
            let (input, mut moments): (Input, OptimizerState) = (input, moments);
            let mut changes = Vec::new();
            if let Some((gradients, norm)) = input {
                let factor = update.clipping.global_factor(norm);
                let update = Update {
                    factor,
                    is_measured: update.is_measured && index < one_copy,
                    ..update.clone()
                };
                changes = apply(network, gradients, &mut moments, &update);
            }
            let device = &devices[index];
            let synced = match wait && device.backend != BackendKind::Flex {
                true => device.burn.sync(),
                false => Ok(()),
            };
            let synced = synced.map_err(|error| failed_update(&device.name, &error.to_string()));
            (moments, synced.map(|()| changes))
        };
        let done = self.replicas.update_each_replica(inputs, work)?;
        let (moments, outcomes): (Vec<_>, Vec<Result<Changes>>) = done.into_iter().unzip();
        self.moments = moments;
        let of_copies: Vec<Changes> = outcomes.into_iter().collect::<Result<_>>()?;
        Ok(of_copies.into_iter().take(one_copy).flatten().collect())
    }
}

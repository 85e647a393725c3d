//! The parts of an optimizer step, each on all replicas: forward and backward, exchange, update. Called by
//! the loop in `fit`, which has their order.
//!
//! There are three ways to exchange ([`Exchange`]). With an all-reduce, every copy of the variables makes
//! the same update with the mean gradient. With `sync_every` above 1, every replica updates its own copy with its
//! own gradient and its own moments, and from time to time the copies are averaged. With asynchronous
//! parameter servers, every replica's gradient is an update of the one copy, one after the other.

mod pass;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use burn::module::{ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use stratoscope_diagnostics::rules::{NoLoss, NotCompiled};
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_strategy::{BackendKind, ReplicaId, Replicas, Strategy};

use crate::loss::Loss;
use crate::model::State;
use crate::model::compile::Compiled;
use crate::model::evaluate::failed;
use crate::network::Network;
use crate::optimizer::{Clipping, OptimizerState, Update, apply, clip_each, global_norm};
use crate::report::counters::Exchange;
use crate::run::progress::Progress;
use crate::step::mixed_precision::{Policy, unscaled};

/// What a step works on: the parts of a model that change, and the settings.
pub(crate) struct Trainer<'a, N: Network> {
    pub replicas: &'a mut Replicas<N>,
    pub compiled: &'a mut Compiled,
    pub gradient_bytes: &'a mut HashMap<ParamId, u64>,
    pub undecayed: Arc<HashSet<ParamId>>,
    /// What the layers compute in.
    pub policy: Policy,
}

/// The gradients of an optimizer step, ready to be applied.
pub(crate) struct Exchanged {
    /// One for every copy of the variables, all the same; or one for every replica, each its own.
    pub gradients: Vec<GradientsParams>,
    /// The norm of each; of the first alone where all are the same.
    pub norms: Vec<f64>,
    /// The examples of each replica.
    shares: Vec<usize>,
}

impl Exchanged {
    /// The norm over all gradients; the largest one where replicas step alone. Not finite where one
    /// is not.
    pub(crate) fn norm(&self) -> f64 {
        let largest = |most: f64, &norm: &f64| match norm.is_nan() {
            true => norm,
            false if most.is_nan() => most,
            false => most.max(norm),
        };
        self.norms.iter().fold(0.0, largest)
    }
}

/// How far replicas that step alone have gone since their parameters were averaged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Apart {
    /// Optimizer steps.
    pub steps: u64,
    /// Examples of each replica.
    pub examples: Vec<usize>,
}

impl<'a, N: Network> Trainer<'a, N> {
    /// For a step of this model.
    ///
    /// # Errors
    /// SC0112 for a model that was not compiled.
    pub(crate) fn of(
        state: &'a mut State<N>,
        undecayed: &Arc<HashSet<ParamId>>,
        call: &str,
    ) -> Result<Self> {
        let Some(compiled) = &mut state.compiled else {
            let call = call.to_owned();
            return Err(NotCompiled { call }.error());
        };
        Ok(Self {
            replicas: &mut state.replicas,
            compiled,
            gradient_bytes: &mut state.gradient_bytes,
            undecayed: Arc::clone(undecayed),
            policy: state.policy,
        })
    }

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

    fn exchange_by(&self) -> By {
        if self.compiled.sync_every > 1 && self.replicas.copies() > 1 {
            By::Average
        } else if self
            .replicas
            .strategy()
            .is_some_and(Strategy::is_asynchronous)
        {
            By::Push
        } else {
            By::AllReduce
        }
    }

    /// The gradients that will be applied, from those that have accumulated: their mean over the replicas, by
    /// examples; or each replica's own, where it steps alone.
    pub(crate) fn exchange(
        &mut self,
        progress: &mut Progress<N>,
        shares: &[usize],
    ) -> Result<Exchanged> {
        let accumulated = std::mem::take(&mut progress.accumulated);
        let scale = self.compiled.loss_scale.scale();
        let gradients = accumulated.into_iter().map(|mut sum| sum.grads());
        let gradients = gradients
            .map(|own| unscaled(self.replicas.structure(), own, scale))
            .collect();
        let (gradients, different) = match self.exchange_by() {
            By::AllReduce => (self.replicas.all_reduce(gradients, shares)?, 1),
            By::Average | By::Push => (gradients, shares.len()),
        };
        if self.gradient_bytes.is_empty()
            && let Some(first) = gradients.first()
        {
            *self.gradient_bytes = bytes(self.replicas.structure(), first);
        }
        let norm = |gradients| global_norm(self.replicas.structure(), gradients);
        Ok(Exchanged {
            norms: gradients.iter().take(different).map(norm).collect(),
            gradients,
            shares: shares.to_vec(),
        })
    }

    /// Whether an optimizer step with these gradients is to be left out, because their scale made them
    /// infinite; the next ones have a smaller scale.
    pub(crate) fn skips(&mut self, exchanged: &Exchanged, progress: &mut Progress<N>) -> bool {
        if exchanged.norm().is_finite() || !self.compiled.loss_scale.skips() {
            return false;
        }
        self.compiled.loss_scale.skipped();
        let counters = &mut progress.history.counters;
        counters.skipped_steps += 1;
        let exchanged = self.exchange_by() == By::AllReduce && self.replicas.len() > 1;
        counters.all_reduces += u64::from(exchanged);
        true
    }

    /// Applies the gradients and counts what was done; returns the optimizer steps that were made. With `wait`
    /// the devices have finished when it returns, so that a clock read afterwards tells the truth.
    pub(crate) fn step(
        &mut self,
        exchanged: Exchanged,
        rate: f64,
        wait: bool,
        progress: &mut Progress<N>,
    ) -> Result<u64> {
        let by = self.exchange_by();
        let Exchanged {
            gradients,
            norms,
            shares,
        } = exchanged;
        let counters = &mut progress.history.counters;
        let made = match by {
            By::AllReduce => {
                let norm = norms.first().copied().unwrap_or(0.0);
                let inputs = gradients.into_iter().map(|one| Some((one, norm)));
                self.update(inputs.collect(), rate, wait)?;
                counters.all_reduces += u64::from(self.replicas.len() > 1);
                1
            }
            By::Average => {
                let inputs = gradients.into_iter().zip(norms).zip(&shares);
                let inputs = inputs.map(|(input, &share)| (share > 0).then_some(input));
                self.update(inputs.collect(), rate, wait)?;
                let apart = &mut self.compiled.apart;
                apart.steps += 1;
                apart.examples.resize(shares.len(), 0);
                for (sum, share) in apart.examples.iter_mut().zip(shares) {
                    *sum += share;
                }
                1
            }
            By::Push => {
                let before = self.replicas.collectives().totals();
                let pushes = gradients.into_iter().zip(norms).zip(&shares).enumerate();
                for (worker, ((gradients, norm), &share)) in pushes {
                    if share > 0 {
                        let worker = ReplicaId(worker);
                        let gradients = self.replicas.push(worker, gradients);
                        self.update(vec![Some((gradients, norm))], rate, wait)?;
                        self.replicas.fetch(worker)?;
                    }
                }
                let after = self.replicas.collectives().totals();
                counters.pushes += after.pushes - before.pushes;
                counters.staleness += after.staleness - before.staleness;
                after.pushes - before.pushes
            }
        };
        counters.optimizer_steps += made;
        progress.steps += made;
        self.compiled.loss_scale.stepped(self.policy);
        if by == By::Average && self.compiled.apart.steps == self.compiled.sync_every {
            self.synchronise(progress)?;
        }
        Ok(made)
    }

    /// Every copy of the variables makes an update with the same gradients, computed elsewhere.
    pub(crate) fn step_alike(
        &mut self,
        gradients: Vec<GradientsParams>,
        norm: f64,
        rate: f64,
    ) -> Result<()> {
        let inputs = gradients.into_iter().map(|one| Some((one, norm)));
        self.update(inputs.collect(), rate, true)?;
        if self.exchange_by() == By::Push {
            for worker in 0..self.replicas.len() {
                self.replicas.fetch(ReplicaId(worker))?;
            }
        }
        Ok(())
    }

    /// Averages the parameters of replicas that have stepped alone since the last average; each has the
    /// weight of the examples it saw. Whatever ends a run, the replicas are equal afterwards.
    pub(crate) fn synchronise(&mut self, progress: &mut Progress<N>) -> Result<()> {
        let apart = std::mem::take(&mut self.compiled.apart);
        if apart.steps == 0 {
            return Ok(());
        }
        self.replicas.average(&apart.examples)?;
        progress.history.counters.parameter_averages += 1;
        Ok(())
    }

    /// Gives the variables the values of their moving averages, where the optimizer keeps them
    /// (`use_ema`), on every copy alike; whether there were any.
    pub(crate) fn overwrite_with_averages(&mut self) -> Result<bool> {
        if self.compiled.optimizer.averaging.is_none() {
            return Ok(false);
        }
        let states = std::mem::take(&mut self.compiled.states);
        let work = |_, network: &mut N, state: OptimizerState| {
            let overwritten = state.overwrite(network);
            (state, overwritten)
        };
        let done = self.replicas.update_each_replica(states, work)?;
        let (states, overwritten): (Vec<_>, Vec<bool>) = done.into_iter().unzip();
        self.compiled.states = states;
        if self.exchange_by() == By::Push {
            for worker in 0..self.replicas.len() {
                self.replicas.fetch(ReplicaId(worker))?;
            }
        }
        Ok(overwritten.contains(&true))
    }

    /// The gradients of each server's rows. Per-tensor operations run before the gradients are scattered, so sharded
    /// training is bit-identical.
    fn scatter(
        &self,
        (gradients, norm): (GradientsParams, f64),
    ) -> Vec<Option<(GradientsParams, f64)>> {
        let clipping = self.compiled.optimizer.clipping;
        let gradients = clip_each(self.replicas.structure(), gradients, clipping);
        let parts = self.replicas.scatter(gradients).into_iter();
        parts.map(|own| Some((own, norm))).collect()
    }

    /// Every copy of the variables makes an update with its gradients and their norm, if it has any.
    fn update(
        &mut self,
        inputs: Vec<Option<(GradientsParams, f64)>>,
        rate: f64,
        wait: bool,
    ) -> Result<()> {
        let is_sharded = self.replicas.is_sharded();
        let inputs = match is_sharded {
            true => (inputs.into_iter().flatten())
                .flat_map(|of_all| self.scatter(of_all))
                .collect(),
            false => inputs,
        };
        let optimizer = &self.compiled.optimizer;
        let clipping = match optimizer.clipping {
            Clipping::PerTensor(_) if is_sharded => Clipping::None,
            clipping => clipping,
        };
        let update = Update {
            rule: optimizer.rule,
            clipping,
            averaging: optimizer.averaging,
            factor: 1.0,
            rate,
            undecayed: Arc::clone(&self.undecayed),
        };
        let devices = self.replicas.storage_devices().to_vec();
        let states = std::mem::take(&mut self.compiled.states);
        let inputs = inputs.into_iter().zip(states).collect();
        let work = move |ReplicaId(index): ReplicaId, network: &mut N, (input, state)| {
            let mut state: OptimizerState = state;
            let input: Option<(GradientsParams, f64)> = input;
            if let Some((gradients, norm)) = input {
                let factor = clipping.global_factor(norm);
                let update = Update {
                    factor,
                    ..update.clone()
                };
                apply(network, gradients, &mut state, &update);
            }
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
}

/// [`Exchange`] without its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    AllReduce,
    Average,
    Push,
}

/// How a run under these settings counts; `full` and `last` are the examples of the largest batch of a
/// group, and of the last group of an epoch.
pub(crate) fn exchange<N: Network>(
    replicas: &Replicas<N>,
    compiled: &Compiled,
    (full, last): (usize, usize),
) -> Exchange {
    let workers = |examples: usize| examples.min(replicas.len()) as u64;
    if replicas.strategy().is_some_and(Strategy::is_asynchronous) {
        Exchange::Push {
            each: workers(full),
            last: workers(last),
        }
    } else if compiled.sync_every > 1 {
        Exchange::Average {
            every: compiled.sync_every,
        }
    } else {
        Exchange::AllReduce
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

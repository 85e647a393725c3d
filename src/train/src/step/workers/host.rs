//! A worker's side of a step: its copy of the network, and what it does with it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use burn::optim::{GradientsAccumulator, GradientsParams};
use stratoscope_bert::ops::Stop;
use stratoscope_strategy::{LogicalDevice, Origin, Replicas, Strategy};
use stratoscope_workers::{Collective, Fault, Outcome};

use super::message::{Outputs, Part, Request, Response, WirePass, WireUpdate};
use super::{failed, flat};
use crate::context::mixed_precision::Policy;
use crate::network::Network;
use crate::optimizer::{OptimizerState, Update, apply};
use crate::step::backward::pass_of_replica;
use crate::step::loss_scale::unscaled;

/// A worker's copy of a network, whatever the network is.
pub(crate) trait Hosted {
    /// Does what is asked.
    ///
    /// # Errors
    /// What the collective returns; [`Fault::Failed`] where the work fails.
    fn serve(&mut self, request: Request, group: &mut dyn Collective) -> Outcome<Response>;
}

/// The copy of a network in a worker process.
pub(crate) struct Replica<N: Network> {
    placed: Replicas<N>,
    device: LogicalDevice,
    policy: Policy,
    moments: OptimizerState,
    /// The gradients of the step that is going on, by replica.
    accumulated: BTreeMap<usize, GradientsAccumulator<N>>,
    /// The mean over all replicas, and which variables it has.
    reduced: Option<(Vec<f32>, Vec<bool>)>,
    /// How long the latest update took.
    updating: Duration,
}

impl<N: Network> Replica<N> {
    /// A copy whose values are still to come.
    ///
    /// # Errors
    /// [`Fault::Failed`] if the device does not take it.
    pub(crate) fn new(network: N, strategy: Strategy, policy: Policy) -> Outcome<Self> {
        let device = strategy.replicas()[0].clone();
        let placed = Replicas::place_under(Some(strategy), network, &[], Origin::default());
        let placed = placed.map_err(|problem| failed(problem.one_line()))?;
        Ok(Self {
            placed,
            device,
            policy,
            moments: OptimizerState::default(),
            accumulated: BTreeMap::new(),
            reduced: None,
            updating: Duration::ZERO,
        })
    }

    fn take_values(
        &mut self,
        (collective, lengths, kept): (u64, &[usize], &[u8]),
        trainable: &[bool],
        steps: u64,
        group: &mut dyn Collective,
    ) -> Outcome<()> {
        let variables = flat::variables(self.placed.first());
        let own: Vec<usize> = variables.iter().map(|it| it.length).collect();
        let fits = own == lengths && kept.len() == own.len() && trainable.len() == own.len();
        if !fits || kept.iter().any(|bits| *bits >= 16) {
            return Err(failed("the values of another network"));
        }
        let mut row = vec![0.0; flat::length(&variables, kept)];
        group.broadcast(collective, &mut row)?;
        let network = self.placed.first().clone();
        let (network, moments) = flat::with_values(network, &row, kept, trainable, steps);
        self.placed.modules_mut()[0] = network;
        self.moments = moments;
        self.accumulated.clear();
        self.reduced = None;
        Ok(())
    }

    fn batch(&mut self, begins: bool, pass: WirePass, parts: Vec<Part>) -> Outcome<Vec<Outputs>> {
        if begins {
            self.accumulated.clear();
        }
        self.reduced = None;
        let pass = pass.pass(self.policy);
        let (network, device) = (self.placed.first(), self.device.training());
        // The chief decides when a batch is given up.
        let never = Stop::when(|| false);
        let mut outputs = Vec::with_capacity(parts.len());
        for part in parts {
            let batch = part.batch.checked()?;
            let accumulated = self.accumulated.entry(part.replica);
            let accumulated = accumulated.or_default();
            let place = (network, &device, part.replica);
            let share = (&batch, part.share.max(1));
            let computed = pass_of_replica(place, share, accumulated, (&pass, false), &never);
            let computed = computed.ok_or(Fault::Aborted)?.map_err(failed)?;
            outputs.push(Outputs {
                replica: part.replica,
                outputs: computed.outputs,
                loss: computed.loss,
            });
        }
        Ok(outputs)
    }

    fn exchange(
        &mut self,
        collective: u64,
        weights: &[(usize, f32)],
        (scale, present): (f64, Vec<bool>),
        group: &mut dyn Collective,
    ) -> Outcome<()> {
        let network = self.placed.first();
        if present.len() != flat::variables(network).len() || weights.is_empty() {
            return Err(failed("an exchange of another network"));
        }
        let mut rows = Vec::with_capacity(weights.len());
        for (replica, weight) in weights {
            let gradients = match self.accumulated.remove(replica) {
                Some(mut sum) => unscaled(network, sum.grads(), scale),
                None => GradientsParams::new(),
            };
            rows.push(flat::weighted(network, gradients, &present, *weight)?);
        }
        self.accumulated.clear();
        group.all_reduce(collective, &mut rows)?;
        self.reduced = Some((rows.swap_remove(0), present));
        Ok(())
    }

    fn update(&mut self, update: WireUpdate) -> Outcome<()> {
        let Some((row, present)) = self.reduced.take() else {
            return Err(failed("an update without gradients"));
        };
        let gradients = flat::gradients(self.placed.first(), &row, &present)?;
        let variables = flat::variables(self.placed.first());
        let undecayed = variables.iter().zip(&update.undecayed);
        let undecayed: HashSet<_> = undecayed
            .filter(|(_, is_undecayed)| **is_undecayed)
            .map(|(variable, _)| variable.id)
            .collect();
        let update = Update {
            rule: update.rule,
            clipping: update.clipping,
            averaging: update.averaging,
            factor: update.factor,
            rate: update.rate,
            undecayed: Arc::new(undecayed),
            is_measured: false,
        };
        let network = &mut self.placed.modules_mut()[0];
        apply(network, gradients, &mut self.moments, &update);
        Ok(())
    }
}

impl<N: Network> Hosted for Replica<N> {
    fn serve(&mut self, request: Request, group: &mut dyn Collective) -> Outcome<Response> {
        match request {
            Request::Model(_) => {}
            Request::Values {
                collective,
                lengths,
                kept,
                trainable,
                steps,
            } => self.take_values((collective, &lengths, &kept), &trainable, steps, group)?,
            Request::Batch {
                begins,
                pass,
                parts,
            } => {
                let since = Instant::now();
                let outputs = self.batch(begins, pass, parts)?;
                let busy = since.elapsed() + std::mem::take(&mut self.updating);
                return Ok(Response::Outputs(outputs, busy.as_secs_f64()));
            }
            Request::Exchange {
                collective,
                weights,
                scale,
                present,
            } => {
                let before = group.bytes_sent();
                self.exchange(collective, &weights, (scale, present), group)?;
                return Ok(Response::Exchanged(group.bytes_sent() - before));
            }
            Request::Update(update) => {
                let since = Instant::now();
                self.update(update)?;
                self.updating = since.elapsed();
            }
            Request::Checksums => {
                let sums = flat::checksums(self.placed.first());
                return Ok(Response::Checksums(
                    sums.into_iter().map(|it| it.1).collect(),
                ));
            }
        }
        Ok(Response::Done)
    }
}

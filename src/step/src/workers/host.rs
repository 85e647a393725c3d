//! A worker's side of a step: its copy of the network, and what it does with it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use burn::optim::GradientsParams;
use burn::tensor::Device;
use stratoscope_bert::ops::Stop;
use stratoscope_strategy::{LogicalDevice, Origin, Replicas, Strategy};
use stratoscope_workers::{Collective, Fault, Outcome, Precision};

use super::message::{KeptBy, Norm, ReplicaBatch, ReplicaOutputs, Request, Response, StatePart};
use super::wire::{WirePass, WireUpdate, checked};
use super::{failed, flat};
use crate::accumulated::Accumulated;
use crate::backward::ReplicaPass;
use crate::finite::gradients_are_finite;
use crate::loss_scale::unscaled;
use stratoscope_arguments::context::mixed_precision::Policy;
use stratoscope_network::{AnyNetwork, Network};
use stratoscope_optim::{OptimizerState, Update, apply, global_norm};

/// A worker's copy of a network, whatever the network is.
pub trait Hosted {
    /// Does what is asked.
    ///
    /// # Errors
    /// What the collective returns; [`Fault::Failed`] where the work fails.
    fn serve(&mut self, request: Request, group: &mut dyn Collective) -> Outcome<Response>;
}

/// [`host`] for some network: what a worker calls without knowing its type.
pub type Host =
    unsafe fn(*const (), Option<usize>, (Strategy, Policy), &Device) -> Outcome<Box<dyn Hosted>>;

/// The copy of a network that a function makes, built for rows of `width` numbers where it was in the chief.
///
/// # Errors
/// As [`Replica::new`].
///
/// # Safety
/// `make` is a `fn(&Device) -> N`.
pub unsafe fn host<N: Network>(
    make: *const (),
    width: Option<usize>,
    (strategy, policy): (Strategy, Policy),
    device: &Device,
) -> Outcome<Box<dyn Hosted>> {
    // SAFETY: the caller's.
    let make = unsafe { std::mem::transmute::<*const (), fn(&Device) -> N>(make) };
    let network = make(device);
    let network = match width {
        Some(width) if !network.is_built() => network.build(width, device),
        _ => network,
    };
    let network = AnyNetwork::new(network);
    Ok(Box::new(Replica::new(network, strategy, policy)?))
}

/// The copy of a network in a worker process.
pub struct Replica {
    placed: Replicas<AnyNetwork>,
    device: LogicalDevice,
    policy: Policy,
    moments: OptimizerState,
    /// The gradients of the step that is going on, by replica.
    accumulated: BTreeMap<usize, Accumulated>,
    /// The mean over all replicas, and which variables it has.
    reduced: Option<(Vec<f32>, Vec<bool>)>,
    /// With local SGD: what each replica has that steps alone.
    alone: BTreeMap<usize, (AnyNetwork, OptimizerState)>,
    /// Its gradients of the step, and their norm.
    measured: BTreeMap<usize, (GradientsParams, f64)>,
    /// How long the latest update took.
    updating: Duration,
}

impl Replica {
    /// A copy whose values are still to come.
    ///
    /// # Errors
    /// [`Fault::Failed`] if the device does not take it.
    pub fn new(network: AnyNetwork, strategy: Strategy, policy: Policy) -> Outcome<Self> {
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
            alone: BTreeMap::new(),
            measured: BTreeMap::new(),
            updating: Duration::ZERO,
        })
    }

    fn take_values(
        &mut self,
        collective: u64,
        lengths: &[usize],
        trainable: &[bool],
        kept: &[KeptBy],
        alone: &[usize],
        group: &mut dyn Collective,
    ) -> Outcome<()> {
        let variables = flat::variables(self.placed.first());
        let own: Vec<usize> = variables.iter().map(|it| it.length).collect();
        let fits = own == lengths && trainable.len() == own.len();
        if !fits || kept.is_empty() || !kept.iter().all(|it| it.is_of(own.len())) {
            return Err(failed("the values of another network"));
        }
        let length = |kept: &KeptBy| flat::length(&variables, &kept.tensors, StatePart::All);
        let mut row = vec![0.0; kept.iter().map(length).sum()];
        group.broadcast(collective, &mut row)?;
        let network = self.placed.first().clone();
        let mut rest = row.as_slice();
        self.alone.clear();
        for (index, kept) in kept.iter().enumerate() {
            let (own, after) = rest.split_at(length(kept));
            rest = after;
            let is_alone = alone.contains(&kept.replica);
            if index > 0 && !is_alone {
                continue;
            }
            let network = network.clone();
            let (network, moments) =
                flat::with_values(network, own, kept, StatePart::All, trainable);
            if is_alone {
                self.alone
                    .insert(kept.replica, (network.clone(), moments.clone()));
            }
            if index == 0 {
                self.placed.modules_mut()[0] = network;
                self.moments = moments;
            }
        }
        self.accumulated.clear();
        self.measured.clear();
        self.reduced = None;
        Ok(())
    }

    fn batch(
        &mut self,
        begins: bool,
        pass: WirePass,
        parts: Vec<ReplicaBatch>,
    ) -> Outcome<Vec<ReplicaOutputs>> {
        if begins {
            self.accumulated.clear();
        }
        self.reduced = None;
        self.measured.clear();
        let pass = pass.pass(self.policy);
        let (shared, device) = (self.placed.first(), self.device.training());
        // The chief decides when a batch is given up.
        let never = Stop::when(|| false);
        let mut outputs = Vec::with_capacity(parts.len());
        for part in parts {
            let batch = checked(part.batch)?;
            let alone = self.alone.get(&part.replica);
            let accumulated = self.accumulated.entry(part.replica);
            let own = ReplicaPass {
                network: alone.map_or(shared, |(network, _)| network),
                device: &device,
                replica: part.replica,
                part: &batch,
                share: part.share.max(1),
                compared: None,
                pass: &pass,
                shards: None,
                alone: false,
            };
            let computed = pass.around(&batch, || own.run(accumulated.or_default(), &never));
            let computed = computed.ok_or(Fault::Aborted)?.map_err(failed)?;
            outputs.push(ReplicaOutputs {
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
        scale: f64,
        present: Vec<bool>,
        precision: Precision,
        group: &mut dyn Collective,
    ) -> Outcome<()> {
        let network = self.placed.first();
        if present.len() != flat::variables(network).len() || weights.is_empty() {
            return Err(failed("an exchange of another network"));
        }
        let mut rows = Vec::with_capacity(weights.len());
        for (replica, weight) in weights {
            let gradients = match self.accumulated.remove(replica) {
                Some(mut sum) => unscaled(network, sum.take(), scale),
                None => GradientsParams::new(),
            };
            rows.push(flat::weighted(network, gradients, &present, *weight)?);
        }
        self.accumulated.clear();
        group.all_reduce(collective, &mut rows, precision)?;
        self.reduced = Some((rows.swap_remove(0), present));
        Ok(())
    }

    /// What is updated with the gradients that were reduced.
    fn update(&mut self, update: WireUpdate) -> Outcome<()> {
        let Some((row, present)) = self.reduced.take() else {
            return Err(failed("an update without gradients"));
        };
        let gradients = flat::gradients(self.placed.first(), &row, &present)?;
        let update = update.update(&flat::variables(self.placed.first()));
        let network = &mut self.placed.modules_mut()[0];
        apply(network, gradients, &mut self.moments, &update);
        Ok(())
    }

    /// The gradients of each replica of the step that is going on, kept for its own update.
    fn measure(&mut self, scale: f64) -> Vec<Norm> {
        let network = self.placed.first();
        let mut norms = Vec::new();
        for (replica, mut sum) in std::mem::take(&mut self.accumulated) {
            let gradients = unscaled(network, sum.take(), scale);
            let norm = global_norm(network, &gradients);
            let bad = gradients_are_finite(network, &gradients, norm).err();
            norms.push(Norm {
                replica,
                norm,
                bad: bad.map(|it| (it.name, it.value)),
            });
            self.measured.insert(replica, (gradients, norm));
        }
        norms
    }

    fn update_own(&mut self, update: WireUpdate) -> Outcome<()> {
        let update = update.update(&flat::variables(self.placed.first()));
        for (replica, (gradients, norm)) in std::mem::take(&mut self.measured) {
            let Some((network, moments)) = self.alone.get_mut(&replica) else {
                return Err(failed("an update of a replica of another worker"));
            };
            let factor = update.clipping.global_factor(norm);
            let update = Update {
                factor,
                ..update.clone()
            };
            apply(network, gradients, moments, &update);
        }
        Ok(())
    }

    fn average(
        &mut self,
        collective: u64,
        weights: &[(usize, f32)],
        group: &mut dyn Collective,
    ) -> Outcome<()> {
        let row = |(replica, weight): &(usize, f32)| match self.alone.get(replica) {
            Some((network, _)) => flat::trainable(network, *weight),
            None => Err(failed("an average of replicas of another worker")),
        };
        let mut rows = weights.iter().map(row).collect::<Outcome<Vec<_>>>()?;
        group.all_reduce(collective, &mut rows, Precision::Float32)?;
        for (network, _) in self.alone.values_mut() {
            *network = flat::with_trainable(network, &rows[0])?;
        }
        Ok(())
    }

    /// What each replica has that steps alone.
    fn gather(
        &self,
        collective: u64,
        part: StatePart,
        group: &mut dyn Collective,
    ) -> Outcome<Vec<KeptBy>> {
        let (mut row, mut kept) = (Vec::new(), Vec::new());
        for (&replica, (network, moments)) in &self.alone {
            let (values, tensors) = flat::values(network, moments, part)?;
            row.extend(values);
            kept.push(KeptBy {
                replica,
                tensors,
                steps: moments.steps(),
            });
        }
        group.gather(collective, &row)?;
        Ok(kept)
    }

    /// The copy whose checksums the worker tells: that of its first replica.
    fn own(&self) -> &AnyNetwork {
        let first = self.alone.values().next();
        first.map_or(self.placed.first(), |(network, _)| network)
    }
}

impl Hosted for Replica {
    fn serve(&mut self, request: Request, group: &mut dyn Collective) -> Outcome<Response> {
        match request {
            Request::Model(_) => {}
            Request::Values {
                collective,
                lengths,
                trainable,
                kept,
                alone,
            } => self.take_values(collective, &lengths, &trainable, &kept, &alone, group)?,
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
                precision,
            } => {
                let before = group.bytes_sent();
                self.exchange(collective, &weights, scale, present, precision, group)?;
                return Ok(Response::Exchanged(group.bytes_sent() - before));
            }
            Request::Update(update) => {
                let since = Instant::now();
                self.update(update)?;
                self.updating = since.elapsed();
            }
            Request::Norms { scale } => {
                let since = Instant::now();
                let norms = self.measure(scale);
                self.updating = since.elapsed();
                return Ok(Response::Norms(norms));
            }
            Request::UpdateOwn(update) => {
                let since = Instant::now();
                self.update_own(update)?;
                self.updating += since.elapsed();
            }
            Request::Average {
                collective,
                weights,
            } => {
                let before = group.bytes_sent();
                self.average(collective, &weights, group)?;
                return Ok(Response::Exchanged(group.bytes_sent() - before));
            }
            Request::Gather { collective, part } => {
                let before = group.bytes_sent();
                let kept = self.gather(collective, part, group)?;
                return Ok(Response::Gathered(kept, group.bytes_sent() - before));
            }
            Request::Barriers { first, count } => {
                for collective in first..first.saturating_add(count) {
                    group.barrier(collective)?;
                }
            }
            Request::Checksums => {
                let sums = flat::checksums(self.own());
                return Ok(Response::Checksums(
                    sums.into_iter().map(|it| it.1).collect(),
                ));
            }
        }
        Ok(Response::Done)
    }
}
